"""Solver `covariance_eigh`: fold the centred moments in one pass, then diagonalise a d x d matrix."""

from __future__ import annotations

from typing import Any

import numpy as np

from foldwise.data.block import Floats
from foldwise.fold import blas
from foldwise.fold.passes import Passes
from foldwise.models.pca.solver import Solver, SolverOptions, floor_of_products, lengths, rounding_of
from foldwise.models.pca.spectrum import Spectrum
from foldwise.stats.moments import Moments


class CovarianceEigh(Solver):
    """One pass, any number of rows."""

    name = "covariance_eigh"
    names = ("covariance_eigh",)

    def solve(self, passes: Passes, options: SolverOptions) -> Spectrum:
        """Fold the moments and diagonalise the covariance."""
        return from_moments(folded(passes, options), options, options.arithmetic(passes.source))


def folded(passes: Passes, options: SolverOptions) -> Moments:
    """The moments of all rows, in the arithmetic that the options ask for."""
    return passes.fold(Moments.of if options.arithmetic(passes.source) == passes.source.dtype else Moments.of_wide)


def from_moments(moments: Moments, options: SolverOptions, dtype: Any) -> Spectrum:
    """The directions of largest variance of rows with these moments, which were formed in this arithmetic."""
    scale, k = options.resolve(moments)
    matrix = moments.covariance(options.ddof)
    if scale is not None:
        matrix /= np.outer(scale, scale)
    d = len(matrix)
    with blas.single(d**3):
        values, vectors, dropped = leading(matrix, k)
        residuals = lengths(_symmetric_times(matrix, vectors) - values * vectors)
    return Spectrum.of(
        moments,
        options,
        variances=values,
        directions=vectors.T,
        residuals=residuals,
        rounding=rounding_of(dtype) * float(np.trace(matrix)),
        floor=floor_of_products(dtype, d, float(values.max(initial=0.0))),
        dropped=dropped,
    )


def leading(upper: Floats, k: int) -> tuple[Floats, Floats, float | None]:
    """The k largest eigenvalues, falling, none below zero, their vectors as columns, and the sum of the others if known.

    Only the upper triangle is read.
    """
    d = len(upper)
    if k == 0:
        return np.zeros(0), np.zeros((d, 0)), None
    if d > 64 and k <= d // 2:
        from scipy.linalg import eigh

        values, vectors = eigh(upper, lower=False, subset_by_index=[d - k, d - 1], check_finite=False)
    else:
        values, vectors = np.linalg.eigh(upper, UPLO="U")
    values, vectors = np.maximum(values[::-1], 0.0), vectors[:, ::-1][:, :k]
    return values[:k], vectors, float(values[k:].sum()) if len(values) == d else None


def _symmetric_times(upper: Floats, vectors: Floats) -> Floats:
    d, k = vectors.shape
    if not k or d <= 64:
        return (np.triu(upper) + np.triu(upper, 1).T) @ vectors
    from scipy.linalg.blas import dsymm

    # The upper triangle in C order is the lower one in Fortran's: no copy, no mirror.
    return np.asarray(dsymm(1.0, upper.T, np.asfortranarray(vectors), lower=1))
