"""Solver `full`: the singular values of the centred rows themselves, no covariance formed (SPEC A3).

A QR factor folds like any other statistic, so this too takes one pass and works on files. It keeps all the digits of small
variances, of which the covariance keeps half, and costs several times as much.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from foldwise.data.source import Source
from foldwise.errors import ParameterError
from foldwise.fold import blas
from foldwise.fold.passes import Passes
from foldwise.models.pca.solver import EPS, Solver, SolverOptions, floor_of_rows, lengths
from foldwise.models.pca.spectrum import Spectrum
from foldwise.stats.qr_factor import QRFactor


class FullSVD(Solver):
    """One pass, any number of rows; sparse rows are refused."""

    name = "full"
    names = ("full",)

    def count(self, asked: str, n_components: Any, source: Source) -> int | None:
        """Sparse rows would have to be filled in."""
        if source.sparse:
            raise ParameterError(
                "svd_solver='full' would make sparse data dense; use 'auto', 'covariance_eigh' or 'krylov'"
            )
        return super().count(asked, n_components, source)

    def solve(self, passes: Passes, options: SolverOptions) -> Spectrum:
        """Fold the triangular factor and take its singular values."""
        rows = passes.fold(QRFactor.of)
        scale, k = options.resolve(rows)
        factor = rows.factor if scale is None else rows.factor / scale
        divisor = rows.weight - options.ddof
        with blas.single(factor.size * factor.shape[1]):
            _, singular, directions = np.linalg.svd(factor, full_matrices=factor.shape[0] < k)
            # Weighted data can have fewer rows in the factor than directions are wanted; the others have no variance.
            singular = np.concatenate([singular, np.zeros(max(0, k - len(singular)))])
            directions = directions[:k]
            variances, dropped = singular[:k] ** 2 / divisor, float((singular[k:] ** 2).sum()) / divisor
            applied = factor.T @ (factor @ directions.T) / divisor
        off = factor.shape[1] * EPS * float(np.sqrt(options.total_variance(rows)))
        return Spectrum.of(
            rows,
            options,
            variances=variances,
            directions=directions,
            residuals=lengths(applied - directions.T * variances),
            # What QR changes is in proportion to the largest singular value, not to its square.
            rounding=2 * off * np.sqrt(variances) + off**2,
            # Values themselves are known no better than to the last bit of their dtype.
            floor=floor_of_rows(passes.source.dtype, factor.shape[1], float(variances.max(initial=0.0))),
            dropped=dropped,
        )
