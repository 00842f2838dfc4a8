"""The scatter matrix that variance explained is worked out from: of complete rows, or as expected where cells are missing."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from foldwise.data.block import Floats
from foldwise.errors import DataError
from foldwise.models.pca.covariance import from_moments
from foldwise.models.pca.observed import fit_observed
from foldwise.models.pca.solver import SolverOptions
from foldwise.models.pca.spectrum import Spectrum
from foldwise.models.session import Session
from foldwise.stats.completed_moments import symmetric
from foldwise.stats.moments import Moments

_MOST_COLUMNS = 10_000  # three matrices of 800 MB


@dataclass(frozen=True)
class Scatter:
    """The covariance of all columns (both triangles), in the space of the fit, and what it was made of."""

    matrix: Floats
    mean: Floats
    scale: Floats | None
    rows: int
    _moments: Moments | None
    _options: SolverOptions
    _spectrum: Spectrum | None

    @property
    def spectrum(self) -> Spectrum:
        """Its eigenvalues and eigenvectors."""
        if self._spectrum is not None:
            return self._spectrum
        assert self._moments is not None
        return from_moments(self._moments, self._options, np.float64)


def scatter_of(opened: Session, scale: bool) -> Scatter:
    """One pass over the rows, or several of EM if cells are missing; products of float32 values are formed in float64."""
    data = opened.data
    if data.n_columns > _MOST_COLUMNS:
        raise DataError(
            f"there are {data.n_columns:,} columns, of which all pairs are compared; {_MOST_COLUMNS:,} are the most",
            where=opened.where,
            advice="Leave out columns that hardly vary first",
        )
    options = SolverOptions(
        scale=scale, ddof=0.0, indicators=getattr(data, "indicators", None), wide=True, seed=opened.seed
    )
    if opened.missing is not None:
        spectrum = fit_observed(opened.passes, opened.missing, options, None).spectrum
        matrix = (spectrum.directions.T * spectrum.variances) @ spectrum.directions
        found = Scatter((matrix + matrix.T) / 2, spectrum.mean, spectrum.scale, spectrum.rows, None, options, spectrum)
    else:
        moments = opened.passes.fold(Moments.of_wide)
        options.total_variance(moments)
        scales, matrix = options.deviations(moments), symmetric(moments.covariance(0.0))
        if scales is not None:
            matrix /= np.outer(scales, scales)
        found = Scatter(matrix, moments.mean, scales, moments.rows, moments, options, None)
    if not np.trace(found.matrix) > 0:
        if found.rows == 1:
            raise DataError(
                "there is only 1 sample (row): columns have no variance", where=opened.where, advice="Give more rows"
            )
        raise DataError("all columns are constant, so that there is nothing to explain", where=opened.where)
    return found
