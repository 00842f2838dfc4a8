"""Restarted block Lanczos with full reorthogonalisation: the leading eigenvalues of a matrix that can only be multiplied with.

A state holds an orthonormal basis, the matrix as seen from within it (`small`), the block of vectors that comes next, and how
the matrix couples it to the basis: S basis = basis small + block coupling. From these follow all approximations, their
residuals, and bounds of their errors, without another look at the data.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from foldwise.data.block import Floats
from foldwise.fold.iterate import State
from foldwise.models.pca.solver import lengths

_ROUNDING = 1e-14
_BLOCKS = 12  # blocks held before the basis is condensed to its best part
_DEPENDENT = 1e-3  # columns with so little of their own are made orthonormal by slower means


@dataclass(frozen=True)
class Ritz:
    """The best approximations of eigenvalues within a basis, falling, with their residuals and their coefficients."""

    values: Floats
    residuals: Floats
    vectors: Floats
    beyond: float  # no eigenvalue after these is believed to be above

    @classmethod
    def of(cls, state: State) -> Ritz:
        """All approximations that a state holds."""
        small, coupling = state["small"], state["coupling"]
        even = (small + small.T) / 2
        values, vectors = np.linalg.eigh(even)
        values, vectors = values[::-1], vectors[:, ::-1]
        # What is not symmetric is rounding of the products: it counts as part of the residual.
        odd = lengths((small - even) @ vectors)
        return cls(values, np.hypot(odd, lengths(coupling @ vectors)), vectors, float(state["beyond"]))

    def errors(self, k: int) -> Floats:
        """By how much each of the first k values can be off, row c - 1 if only the first c approximations are looked at.

        An eigenvalue is no further away than the residual. And the first c values together are off by no more than the sum
        of their squared residuals divided by the distance to the eigenvalues that follow (Mathias 1998), the largest of
        which is taken to be within its residual of the next value: a direction that the basis has not met is not covered.
        """
        values, m = self.values, len(self.values)
        edges = np.append(values[1:] + self.residuals[1:], self.beyond)
        gaps = values[:k] - edges[:, None]
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
    }


def enlarged(state: State, times: Callable[[Floats], Floats]) -> State:
    """The state whose basis has taken in the block that was next; `times` multiplies with the matrix."""
    new = times(state["block"])
    basis = np.hstack([state["basis"], state["block"]])
    m = state["basis"].shape[1]
    rest, inside, block = _outside(new, basis)
    small = np.empty((basis.shape[1], basis.shape[1]))
    small[:m, :m], small[m:, :m] = state["small"], state["coupling"]
    small[:, m:] = inside
    coupling = np.hstack([np.zeros((block.shape[1], m)), block.T @ rest])
    return {"basis": basis, "small": small, "block": block, "coupling": coupling, "beyond": state["beyond"]}


def refilled(state: State, width: int, seed: int) -> State:
    """The same with random vectors as the next block, for a basis that the matrix maps into itself but that is too small."""
    d, m = state["basis"].shape
    block = np.random.default_rng((seed, m)).standard_normal((d, min(width, d - m)))
    for _ in range(2):  # the second time makes good what rounding has left
        block = np.linalg.qr(block - state["basis"] @ (state["basis"].T @ block))[0]
    return {**state, "block": block, "coupling": np.zeros((block.shape[1], m))}


def condensed(state: State, ritz: Ritz, kept: int) -> State:
    """The same with the basis cut to its best approximations, once it has become large."""
    m, b = state["basis"].shape[1], state["block"].shape[1]
    if m + b <= max(_BLOCKS * b, kept + 4 * b):
        return state
    best = ritz.vectors[:, :kept]
    basis = state["basis"] @ best
    return {**state, "basis": basis, "small": best.T @ state["small"] @ best, "coupling": state["coupling"] @ best}


def random_block(d: int, width: int, seed: int) -> Floats:
    """Orthonormal vectors without any preference."""
    return orthonormal(np.random.default_rng(seed).standard_normal((d, width)))


def _outside(new: Floats, basis: Floats) -> tuple[Floats, Floats, Floats]:
    """`new` = basis inside + rest, and orthonormal columns (perhaps none) that span the rest."""
    inside = basis.T @ new
    rest = new - basis @ inside
    size, after = float(lengths(new).max(initial=0.0)), lengths(rest)
    room = len(new) - basis.shape[1]
    if after.max(initial=0.0) <= _ROUNDING * np.sqrt(len(new)) * size or room <= 0:
        return rest, inside, rest[:, :0]
    block = _by_cholesky(rest / after) if room >= rest.shape[1] and after.min() > 0 else None
    if block is not None:  # what is scaled up to length one has errors that are scaled up, too: once more
        block = _by_cholesky(block - basis @ (basis.T @ block))
    if block is not None:
        return rest, inside, block
    left, strengths, _ = np.linalg.svd(rest / size, full_matrices=False)
    fresh = left[:, strengths > _ROUNDING * np.sqrt(len(new))][:, :room]
    if fresh.shape[1]:
        fresh = fresh - basis @ (basis.T @ fresh)
        fresh = np.linalg.qr(fresh)[0]
    return rest, inside, fresh


def orthonormal(block: Floats) -> Floats:
    """Orthonormal columns that span the same space."""
    found = _by_cholesky(block)
    return np.linalg.qr(block)[0] if found is None else found


def _by_cholesky(block: Floats) -> Floats | None:
    """The same at the speed of matrix products, several times that of Householder's; None if columns are nearly dependent."""
    for _ in range(2):  # the second time makes good what rounding has left
        try:
            root = np.linalg.cholesky(block.T @ block)
        except np.linalg.LinAlgError:
            return None
        strengths = np.diagonal(root)
        if not strengths.min(initial=1.0) > _DEPENDENT * strengths.max(initial=0.0):
            return None
        block = block @ np.linalg.inv(root).T
    return np.asarray(block)
