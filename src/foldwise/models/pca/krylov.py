"""Solver `krylov`: a few leading directions of data with very many columns, by restarted block Lanczos.

Each step is one pass that multiplies the scatter matrix with a block of vectors; the matrix itself is never formed, and
sparse rows stay sparse. All of the basis is kept orthonormal, and the images of the basis are kept too, so the residual of
every direction is known at every step and is the stopping rule: no guess about convergence (Epperly and Tropp 2024).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from foldwise.data.block import Floats
from foldwise.data.source import Source
from foldwise.errors import ParameterError
from foldwise.fold import blas
from foldwise.fold.iterate import Figures, State, iterate
from foldwise.fold.passes import Passes
from foldwise.models.pca import sparse_start
from foldwise.models.pca.solver import EPS, Solver, SolverOptions, lengths, rounding_of
from foldwise.models.pca.spectrum import Spectrum
from foldwise.stats.column_moments import ColumnMoments
from foldwise.stats.scatter_product import ScatterProduct

_OVERSAMPLING = 8
_RESTART = 12  # blocks held before the basis is condensed to its best part
# Residual relative to the variance itself; the error of a variance is about the residual's square over the gap.
_TOLERANCE = 1e-10
_ROUNDING = 1e-14
_MAX_ITER = 300


class Krylov(Solver):
    """One pass for the means, then one for each step; "randomized" and "arpack" of scikit-learn mean this, too."""

    name = "krylov"
    names = ("krylov", "randomized", "arpack")

    def count(self, asked: str, n_components: Any, source: Source) -> int | None:
        """A number of components is needed; as in scikit-learn, "arpack" leaves out at least one direction."""
        if asked == "auto":
            return super().count(asked, n_components, source)
        if isinstance(n_components, str):
            raise ParameterError(f"n_components={n_components!r} cannot be a string with svd_solver={asked!r}")
        if isinstance(n_components, float) or (n_components == 0 and asked != "krylov"):
            raise ParameterError(
                f"n_components={n_components} must be between 1 and min(n_samples, n_features) with "
                f"svd_solver={asked!r}: a share of variance needs all of the variances"
            )
        if asked != "arpack" or source.n_rows is None:
            return super().count(asked, n_components, source)
        most = min(source.n_rows, source.n_columns)
        if n_components == most:
            raise ParameterError(
                f"n_components={n_components} must be strictly less than min(n_samples, n_features)={most} with "
                "svd_solver='arpack'"
            )
        return most - 1 if n_components is None else int(n_components)

    def reads_again(self, *, checkpoint: bool) -> bool:
        """At every step."""
        return True

    def solve(self, passes: Passes, options: SolverOptions) -> Spectrum:
        """Enlarge a basis by a block of vectors a step, until all directions are good enough."""
        columns = passes.fold(ColumnMoments.of)
        scale, k = options.resolve(columns)
        if options.checkpoint is not None:
            options.checkpoint.bind(columns.weight, columns.centre, columns.squares)
        lanczos = _Lanczos(
            k,
            passes,
            partial(ScatterProduct.of, centre=columns.centre, scale=scale),
            divisor=columns.weight - options.ddof,
            tolerance=options.tol or _TOLERANCE,
            seed=options.seed,
            first=partial(sparse_start.directions, passes, columns.mean, scale)
            if sparse_start.is_wide(passes)
            else None,
        )
        state, outcome, resumed_at = iterate(
            lanczos.start,
            lanczos.step,
            lanczos.done,
            max_iter=options.max_iter or _MAX_ITER,
            time_budget=options.time_budget,
            checkpoint=options.checkpoint,
        )
        if state["basis"].shape[1] < k:  # stopped before the first step: a model of that size needs one
            state, _ = lanczos.step(state)
        values, vectors, residuals = _ritz(state["basis"], state["images"], k)
        return Spectrum.of(
            columns,
            options,
            variances=np.maximum(values, 0.0),
            directions=(state["basis"] @ vectors[:, :k]).T,
            residuals=residuals,
            rounding=rounding_of(np.float64, passes.block_rows) * options.total_variance(columns),
            floor=len(columns.mean) * EPS * float(values.max(initial=0.0)),
            outcome=outcome,
            resumed_at=resumed_at,
        )


@dataclass(frozen=True)
class _Lanczos:
    """The steps: an orthonormal basis, its images under the covariance, and the block that comes next."""

    k: int
    passes: Passes
    product: partial[ScatterProduct]
    divisor: float
    tolerance: float
    seed: int
    first: Callable[[int, int], Floats] | None = None  # the first block, of so many vectors; None: random

    @property
    def width(self) -> int:
        return min(self.passes.source.n_columns, self.k + _OVERSAMPLING)

    def start(self) -> State:
        d = self.passes.source.n_columns
        if self.first is not None:
            block = self.first(self.width, self.seed)
        else:
            block, _ = np.linalg.qr(np.random.default_rng(self.seed).standard_normal((d, self.width)))
        nothing = np.zeros((d, 0))
        return {"basis": nothing, "images": nothing, "block": block, "values": np.zeros(0), "residuals": np.zeros(0)}

    def step(self, state: State) -> tuple[State, Figures]:
        k = self.k
        with blas.single():
            new = self.passes.fold(partial(self.product, basis=state["block"])).value / self.divisor
            basis = np.hstack([state["basis"], state["block"]])
            image = np.hstack([state["images"], new])
            values, vectors, residuals = _ritz(basis, image, k)
            block = _orthonormal(new, basis)
            if basis.shape[1] + block.shape[1] > max(_RESTART * self.width, k + 2 * self.width):
                keep = vectors[:, : k + _OVERSAMPLING]
                basis, image = basis @ keep, image @ keep
                block = _orthonormal(block, basis)
        figures = {
            "variance": float(values[0]) if k else 0.0,
            "residual": float(residuals[:k].max(initial=0.0)),
            "basis": float(basis.shape[1]),
        }
        return {"basis": basis, "images": image, "block": block, "values": values, "residuals": residuals}, figures

    def done(self, state: State) -> bool:
        if state["basis"].shape[1] < self.k:
            return False
        if state["block"].shape[1] == 0:  # the basis is invariant: nothing new can come
            return True
        values, residuals = state["values"], state["residuals"]
        # Each direction to its own scale; below the rounding of the largest nothing can be known.
        rounding = 16 * EPS * float(values.max(initial=0.0))
        return bool(np.all(residuals <= self.tolerance * np.abs(values) + rounding))


def _ritz(basis: Floats, images: Floats, k: int) -> tuple[Floats, Floats, Floats]:
    """The best k approximations within the basis: variances, all coefficient vectors, residual norms."""
    small = basis.T @ images
    values, vectors = np.linalg.eigh((small + small.T) / 2)
    values, vectors = values[::-1][:k], vectors[:, ::-1]
    lead = vectors[:, :k]
    residuals = lengths(images @ lead - (basis @ lead) * values)
    return values, vectors, residuals


def _orthonormal(block: Floats, basis: Floats) -> Floats:
    """What of the block lies outside the basis, as orthonormal columns (perhaps none)."""
    size = lengths(block).max(initial=0.0)
    if size == 0.0:
        return block[:, :0]
    rest = block / size
    for _ in range(2):  # once leaves rounding errors of the first size; twice is enough (Kahan, Parlett)
        rest = rest - basis @ (basis.T @ rest)
    left, strengths, _ = np.linalg.svd(rest, full_matrices=False)
    fresh = left[:, strengths > _ROUNDING * np.sqrt(len(block))]
    room = len(block) - basis.shape[1]
    fresh = fresh[:, : max(0, room)]
    fresh = fresh - basis @ (basis.T @ fresh)  # a weak direction was scaled up, and its errors with it
    return np.linalg.qr(fresh)[0] if fresh.shape[1] else fresh
