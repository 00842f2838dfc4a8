"""Solver `full`: the singular values of the centred rows themselves, no covariance formed (SPEC A3).

A QR factor folds like any other statistic, so this too takes one pass and works on files. It keeps all the digits of small
variances, of which the covariance keeps half, and costs several times as much.
"""

from __future__ import annotations

import numpy as np

from foldwise.fold import blas
from foldwise.fold.passes import Passes
from foldwise.models.pca.spectrum import EPS, Plan, Spectrum, check, components, lengths, spread
from foldwise.stats.qr_factor import QRFactor


def solve(run: Passes, plan: Plan) -> Spectrum:
    """One pass, any number of rows."""
    triangle = run.fold(QRFactor.of)
    factor = triangle.factor
    squares = triangle.squares
    check(triangle.weight, triangle.rows, squares, plan)
    scale = spread(triangle.weight, squares, plan)
    if scale is not None:
        factor = factor / scale
    divisor = triangle.weight - plan.ddof
    k = components(plan, triangle.rows, triangle.weight, factor.shape[1])
    with blas.single(factor.size * factor.shape[1]):
        _, singular, directions = np.linalg.svd(factor, full_matrices=factor.shape[0] < k)
        # Weighted data can have fewer rows in the factor than asked for; what is missing has no variance.
        singular = np.concatenate([singular, np.zeros(max(0, k - len(singular)))])
        directions = directions[:k]
        variances, dropped = singular[:k] ** 2 / divisor, float((singular[k:] ** 2).sum()) / divisor
        applied = factor.T @ (factor @ directions.T) / divisor
    return Spectrum.of(
        triangle,
        plan,
        variances=variances,
        directions=directions,
        residuals=lengths(applied - directions.T * variances),
        floor=(factor.shape[1] * EPS) ** 2 * float(variances.max(initial=0.0)),
        dropped=dropped,
    )
