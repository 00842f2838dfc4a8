"""Restarted block Lanczos with full reorthogonalisation: the leading eigenvalues of a matrix that can only be multiplied with.

A state holds an orthonormal basis, the matrix as seen from within it (`small`), the block of vectors that comes next, and how
the matrix couples it to the basis: S basis = basis small + block coupling. From these follow all approximations, their
residuals, and bounds of their errors, without another look at the data. In the last step, after which no block is needed, it
may be left as it is: the part of the product outside of the basis (`raw`), not yet orthonormal. If that product was formed in
float32, the state also says how far off residuals may be (`blur`).

Most of what the next step would show can be guessed, since the matrix looks much alike from within one block and the next
(`guess`). Vectors found by way of such a guess are nearly as good as those of the next step; how good is an estimate, until
they are multiplied with the matrix.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from foldwise.data.block import Floats
from foldwise.fold.iterate import State
from foldwise.models.pca import tall
from foldwise.models.pca.solver import lengths

_ROUNDING = 1e-14
# Blocks held before the basis is condensed to its best part: what is lost then costs a step or two.
_BLOCKS, _FEW_BLOCKS = 24, 12
_BASIS_BYTES = 64 << 20  # a basis that would be larger is condensed sooner
_NEAR = 0.5  # columns whose products with each other are so near to those of orthonormal ones need no second round
_UNSEEN = 4.0  # times what is seen of rounding errors is taken for granted in other directions
_UNWANTED = 0.9  # times the last value that is wanted: about the next one
_NO_MATTER = 0.1  # of what a step leaves of the error: so much may come of vectors that it does not multiply with
_FEWEST, _MULTIPLE = 8, 4  # vectors of a narrow block: with fewer, reading the rows takes as long
_DEPENDENT = 1e-3  # columns with so little of their own are made orthonormal by slower means


@dataclass(frozen=True)
class Ritz:
    """The best approximations of eigenvalues within a basis, falling, with their residuals and their coefficients."""

    values: Floats
    residuals: Floats
    vectors: Floats
    edges: Floats  # no eigenvalue after the first, the first two, ... is believed to be above

    @classmethod
    def of(cls, state: State, n_threads: int = 1) -> Ritz:
        """All approximations that a state holds."""
        small, coupling = state["small"], state["coupling"]
        even = (small + small.T) / 2
        values, vectors = np.linalg.eigh(even)
        values, vectors = values[::-1], vectors[:, ::-1]
        # What is not symmetric is rounding of the products: it counts as part of the residual.
        odd, outside = lengths((small - even) @ vectors), coupling @ vectors
        if state["raw"]:
            outside = tall.times(state["block"], outside, n_threads)
        residuals = np.hypot(odd, lengths(outside))
        if "blur" in state:
            residuals = residuals + lengths(state["blur"][:, None] * vectors)
        return cls(values, residuals, vectors, np.append(values[1:] + residuals[1:], state["beyond"]))

    def ahead(self, state: State) -> Ritz:
        """What these will be after the next step, by a guess; coefficients are those of the basis and of the next block.

        Residuals are estimates. Edges remain those that are known.
        """
        level, doubt = state["guess"]
        values, vectors = _guessed(state["small"], state["coupling"], level)
        m = len(self.values)
        outside = lengths(vectors[m:])
        residuals = np.where(outside > 0, doubt * np.where(outside > 0, outside, 1.0), 0.0)
        return Ritz(values[:m], residuals[:m], vectors[:, :m], self.edges)

    def errors(self, k: int) -> Floats:
        """By how much each of the first k values can be off, row c - 1 if only the first c approximations are looked at.

        An eigenvalue is no further away than the residual. And the first c values together are off by no more than the sum
        of their squared residuals divided by the distance to the eigenvalues that follow (Mathias 1998), the largest of
        which is taken to be within its residual of the next value: a direction that the basis has not met is not covered.
        """
        values, m = self.values, len(self.values)
        gaps = values[:k] - self.edges[:, None]
        inside = (np.arange(m)[:, None] >= np.arange(min(k, m))) & (gaps > 0)
        bounds = np.where(inside, np.cumsum(self.residuals**2)[:, None] / np.where(inside, gaps, 1.0), np.inf)
        bounds[0] = np.minimum(bounds[0], self.residuals[:k])
        return np.asarray(np.minimum.accumulate(bounds, axis=0))


def empty(block: Floats, beyond: float = np.inf) -> State:
    """The state before the first step, which will multiply with this block of orthonormal vectors."""
    d, b = block.shape
    return {
        "basis": np.zeros((d, 0)),
        "small": np.zeros((0, 0)),
        "block": block,
        "coupling": np.zeros((b, 0)),
        "beyond": np.array(beyond),
        "raw": np.array(False),
        "guess": np.full(2, np.inf),
    }


def enlarged(
    state: State, times: Callable[[Floats], Floats], n_threads: int = 1, *, raw: bool = False, few: int | None = None
) -> State:
    """The state whose basis has taken in the block that was next; `times` multiplies with the matrix.

    With `raw`, the block after it is left as it is, until `completed`. With `few`, the basis takes in only so many vectors of
    the block; the others become part of the block after it, so that residuals stay what they are.
    """
    width = state["block"].shape[1] if few is None else few
    taken, left = state["block"][:, :width], state["block"][:, width:]
    coupled, others = state["coupling"][:width], state["coupling"][width:]
    new = times(taken)
    basis = np.hstack([state["basis"], taken])
    m = state["basis"].shape[1]
    inside = tall.transposed_times(basis, new, n_threads)
    rest = tall.less(new, basis, inside, n_threads)
    small = np.empty((basis.shape[1], basis.shape[1]))
    small[:m, :m], small[m:, :m] = state["small"], coupled
    small[:, m:] = inside
    coupling = np.hstack([np.zeros((new.shape[1], m)), np.eye(new.shape[1])])
    size = np.linalg.norm(others, axis=1)
    if size.any():  # each as long as its share of the product: what is next to nothing of it is dropped
        left, others, size = left[:, size > 0], others[size > 0], size[size > 0]
        rest = np.hstack([rest, left * size])
        coupling = np.vstack([coupling, np.hstack([others / size[:, None], np.zeros((len(size), new.shape[1]))])])
    found = {"basis": basis, "small": small, "block": rest, "coupling": coupling, "beyond": state["beyond"]}
    found["raw"], found["guess"] = np.array(True), state["guess"]
    return found if raw else completed(found, n_threads)


def by_weight(state: State, ritz: Ritz, k: int, pace: float) -> tuple[State, int]:
    """The same with a block turned so that its vectors matter less and less to the first k values, and how many matter.

    It matters by its share of the squared residuals, each relative to the value and to about its distance from those that are
    not wanted: at most k vectors have any. A step is expected to bring the error down to `pace` times what it is.
    """
    values = ritz.values[:k]
    gaps = values - _UNWANTED * values[-1]
    left, sizes, _ = np.linalg.svd((state["coupling"] @ ritz.vectors[:, :k]) / np.sqrt(values * gaps))
    shares = np.zeros(len(left))
    shares[: len(sizes)] = sizes**2
    after = np.append(np.cumsum(shares[::-1])[::-1], 0.0)
    matter = int(np.argmax(after <= _NO_MATTER * pace * after[0]))
    few = max(_FEWEST, -(-matter // _MULTIPLE) * _MULTIPLE)
    turned = {"block": tall.times(state["block"], left), "coupling": left.T @ state["coupling"]}
    return {**state, **turned}, min(few, len(left))


def closed(state: State, product: Floats, form: Floats, total: float, n_threads: int = 1) -> State:
    """The state after a last step from its next block alone, by a product that has rounding errors and a form that has none.

    The form is what the matrix is within the block. What float32 may hide of the residuals, the `blur`, is seen in it: within
    the block, the product is off by its difference from the form. Rounding has no preference for a direction, so that in all
    of them it is larger by the root of how many there are. As much as one rounding of each product comes on top, in case
    the few numbers seen are small by chance; `total` is the sum of all variances.
    """
    block = state["block"]
    d, b = block.shape
    inside = tall.transposed_times(block, product, n_threads)
    blur = _UNSEEN * np.sqrt(d / b) * lengths(inside - form) + 2.0**-24 * np.sqrt(total * np.abs(np.diagonal(form)))
    found = {
        "basis": block,
        "small": form,
        "block": tall.less(product, block, inside, n_threads),
        "coupling": np.eye(b),
    }
    return {**found, "beyond": state["beyond"], "raw": np.array(True), "guess": state["guess"], "blur": blur}


def completed(state: State, n_threads: int = 1) -> State:
    """The same with orthonormal columns (perhaps none) as the next block, if it was left raw."""
    if not state["raw"]:
        return state
    rest = state["block"]
    inside = lengths(state["small"][:, -rest.shape[1] :])
    size = np.hypot(inside.max(initial=0.0), lengths(rest).max(initial=0.0))  # that of the product
    block = _outside(rest, state["basis"], float(size), n_threads)
    coupling = tall.transposed_times(block, rest, n_threads)
    return {**state, "block": block, "coupling": coupling @ state["coupling"], "raw": np.array(False)}


def rehearsed(state: State, before: State, k: int, *, near: bool) -> State:
    """The same with a guess of what the next step will show, for a state that was enlarged from the one `before`.

    As seen from within the next block, the matrix is about a multiple of the identity, the mean of what it is within the last
    one. By how much the residuals of vectors found with this guess exceed their part within that block, two things tell: how
    far it would have been off for the last block (the first k vectors), where too much is made of what the block before
    lacked, and how much the matrix varies within the last block and couples it to the next. The geometric mean is taken: in
    251 cases (24 made spectra and that of MNIST) the error of a variance was then estimated at 0.87 times what it was or more,
    in most at 1.0 to 2 times. Only near the end (`near`) is that worth the work.
    """
    small, coupling, m = state["small"], state["coupling"], before["basis"].shape[1]
    inside, b = small[m:, m:], max(len(small) - m, 1)
    level, doubt = float(np.trace(inside)) / b, np.inf
    if near and 0 < k <= m and np.isfinite(before["guess"][0]):
        values, vectors = _guessed(small[:m, :m], small[m:, :m], before["guess"][0])
        values, vectors = values[:k], vectors[:, :k]
        off = np.hypot(np.linalg.norm(small @ vectors - vectors * values), np.linalg.norm(coupling @ vectors))
        varies = np.hypot(np.linalg.norm(inside - level * np.eye(len(inside))), np.linalg.norm(coupling)) / np.sqrt(b)
        outside = np.linalg.norm(vectors[m:])
        doubt = float(np.sqrt(off / outside * varies)) if outside > 0 else np.inf
    return {**state, "guess": np.array([level, doubt])}


def _guessed(small: Floats, coupling: Floats, level: float) -> tuple[Floats, Floats]:
    """Eigenvalues, falling, and vectors, if the matrix within the next block were `level` times the identity."""
    corner = level * np.eye(len(coupling))
    values, vectors = np.linalg.eigh(np.block([[(small + small.T) / 2, coupling.T], [coupling, corner]]))
    return values[::-1], vectors[:, ::-1]


def refilled(state: State, width: int, seed: int) -> State:
    """The same with random vectors as the next block, for a basis that the matrix maps into itself but that is too small."""
    d, m = state["basis"].shape
    block = np.random.default_rng((seed, m)).standard_normal((d, min(width, d - m)))
    for _ in range(2):  # the second time makes good what rounding has left
        block = np.linalg.qr(block - state["basis"] @ (state["basis"].T @ block))[0]
    return {**state, "block": block, "coupling": np.zeros((block.shape[1], m))}


def condensed(state: State, ritz: Ritz, k: int, n_threads: int = 1) -> State:
    """The same with the basis cut to its best approximations, the first k and more, once it has become large."""
    (d, m), b = state["basis"].shape, state["block"].shape[1]
    blocks, kept = (_BLOCKS, k + max(8, k // 2)) if 8 * d * b * _BLOCKS <= _BASIS_BYTES else (_FEW_BLOCKS, k + 8)
    if state["raw"] or m + b <= max(blocks * b, kept + 4 * b):
        return state
    best = ritz.vectors[:, :kept]
    basis = tall.times(state["basis"], best, n_threads)
    return {**state, "basis": basis, "small": best.T @ state["small"] @ best, "coupling": state["coupling"] @ best}


def random_block(d: int, width: int, seed: int) -> Floats:
    """Orthonormal vectors without any preference."""
    return orthonormal(np.random.default_rng(seed).standard_normal((d, width)))


def _outside(rest: Floats, basis: Floats, size: float, n_threads: int) -> Floats:
    """Orthonormal columns (perhaps none) that span what is left of a product of this size outside of a basis."""
    after, room = lengths(rest), len(rest) - basis.shape[1]
    if after.max(initial=0.0) <= _ROUNDING * np.sqrt(len(rest)) * size or room <= 0:
        return rest[:, :0]
    block = _by_cholesky(rest / after, n_threads) if room >= rest.shape[1] and after.min() > 0 else None
    if block is not None:  # what is scaled up to length one has errors that are scaled up, too: once more
        twice = tall.less(block, basis, tall.transposed_times(basis, block, n_threads), n_threads)
        block = _by_cholesky(twice, n_threads)
    if block is not None:
        return block
    left, strengths, _ = np.linalg.svd(rest / size, full_matrices=False)
    fresh = left[:, strengths > _ROUNDING * np.sqrt(len(rest))][:, :room]
    if fresh.shape[1]:
        fresh = fresh - basis @ (basis.T @ fresh)
        fresh = np.linalg.qr(fresh)[0]
    return np.asarray(fresh)


def orthonormal(block: Floats, n_threads: int = 1) -> Floats:
    """Orthonormal columns that span the same space."""
    size = lengths(block)
    found = _by_cholesky(block / size, n_threads) if size.min(initial=1.0) > 0 else None
    return np.linalg.qr(block)[0] if found is None else found


def _by_cholesky(block: Floats, n_threads: int) -> Floats | None:
    """The same at the speed of matrix products, several times that of Householder's; None if columns are nearly dependent."""
    for _ in range(2):  # the second time makes good what rounding has left
        products = tall.transposed_times(block, block, n_threads)
        try:
            root = np.linalg.cholesky(products)
        except np.linalg.LinAlgError:
            return None
        strengths = np.diagonal(root)
        if not strengths.min(initial=1.0) > _DEPENDENT * strengths.max(initial=0.0):
            return None
        block = tall.times(block, np.linalg.inv(root).T, n_threads)
        if np.linalg.norm(products - np.eye(len(products))) < _NEAR:
            break
    return np.asarray(block)
