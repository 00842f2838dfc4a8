"""Solver `krylov`: a few leading directions of data with very many columns, by restarted block Lanczos.

Each step is one pass that multiplies the scatter matrix with a block of vectors; the matrix itself is never formed, and
sparse rows stay sparse. All of the basis is kept orthonormal, and the images of the basis are kept too, so the residual of
every direction is known at every step and is the stopping rule: no guess about convergence (Epperly and Tropp 2024).
"""

from __future__ import annotations

from functools import partial

import numpy as np

from foldwise.data.block import Floats
from foldwise.fold import blas
from foldwise.fold.iterate import Figures, State, iterate
from foldwise.fold.passes import Passes
from foldwise.models.pca.spectrum import EPS, Plan, Spectrum, check, components, lengths, spread
from foldwise.stats.column_moments import ColumnMoments
from foldwise.stats.scatter_product import ScatterProduct

_OVERSAMPLING = 8
_RESTART = 12  # blocks held before the basis is condensed to its best part
# Residual relative to the variance itself; the error of a variance is about the residual's square over the gap.
_TOLERANCE = 1e-10
_ROUNDING = 1e-14
_MAX_ITER = 300


def solve(run: Passes, plan: Plan) -> Spectrum:
    """One pass for the means, then one for each step."""
    columns = run.fold(ColumnMoments.of)
    check(columns.weight, columns.rows, columns.squares, plan)
    scale = spread(columns.weight, columns.squares, plan)
    d = len(columns.mean)
    k = components(plan, columns.rows, columns.weight, d)
    width = min(d, k + _OVERSAMPLING)
    tolerance = plan.tol or _TOLERANCE
    divisor = columns.weight - plan.ddof
    if plan.checkpoint is not None:
        plan.checkpoint.bind(columns.weight, columns.centre, columns.squares)

    def images(basis: Floats) -> Floats:
        of = partial(ScatterProduct.of, basis=basis, centre=columns.mean, scale=scale)
        return run.fold(of).value / divisor

    def start() -> State:
        rng = np.random.default_rng(plan.seed)
        block, _ = np.linalg.qr(rng.standard_normal((d, width)))
        nothing = np.zeros((d, 0))
        return {"basis": nothing, "images": nothing, "block": block, "values": np.zeros(0), "residuals": np.zeros(0)}

    def step(state: State) -> tuple[State, Figures]:
        with blas.single():
            new = images(state["block"])
            basis = np.hstack([state["basis"], state["block"]])
            image = np.hstack([state["images"], new])
            values, vectors, residuals = _ritz(basis, image, k)
            block = _orthonormal(new, basis)
            if basis.shape[1] + block.shape[1] > max(_RESTART * width, k + 2 * width):
                keep = vectors[:, : k + _OVERSAMPLING]
                basis, image = basis @ keep, image @ keep
                block = _orthonormal(block, basis)
        figures = {
            "variance": float(values[0]) if k else 0.0,
            "residual": float(residuals[:k].max(initial=0.0)),
            "basis": float(basis.shape[1]),
        }
        return {"basis": basis, "images": image, "block": block, "values": values, "residuals": residuals}, figures

    def done(state: State) -> bool:
        if state["basis"].shape[1] < k:
            return False
        if state["block"].shape[1] == 0:  # the basis is invariant: nothing new can come
            return True
        values, residuals = state["values"], state["residuals"]
        # Each direction to its own scale; below the rounding of the largest nothing can be known.
        rounding = 16 * EPS * float(values.max(initial=0.0))
        return bool(np.all(residuals <= tolerance * np.abs(values) + rounding))

    state, outcome, resumed_at = iterate(
        start,
        step,
        done,
        max_iter=plan.max_iter or _MAX_ITER,
        time_budget=plan.time_budget,
        checkpoint=plan.checkpoint,
    )
    if state["basis"].shape[1] < k:  # stopped before the first step: a model of the size asked for needs one
        state, _ = step(state)
    values, vectors, residuals = _ritz(state["basis"], state["images"], k)
    directions = (state["basis"] @ vectors[:, :k]).T
    return Spectrum.of(
        columns,
        plan,
        variances=np.maximum(values, 0.0),
        directions=directions,
        residuals=residuals,
        floor=d * EPS * float(values.max(initial=0.0)),
        outcome=outcome,
        resumed_at=resumed_at,
    )


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
