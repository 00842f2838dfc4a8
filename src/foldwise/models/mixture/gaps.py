"""Rows with missing cells: what EM needs before it begins, one normal distribution of all rows, and completed rows.

EM itself integrates missing cells out (`kernels/mixture_gaps.py`). Starts come from methods for complete rows, so for these
missing cells are drawn from what one normal distribution, fitted to all rows by EM, says of them given the observed cells.
Drawn, not filled with what is expected: expected values lie in a plane, where a search for high densities would find nothing
else. The numbers drawn depend on the values of the row alone, so that neither order nor repetition of rows matters.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from scipy.special import ndtri

from foldwise.data.block import Block, DenseBlock, Floats
from foldwise.data.cache import cached
from foldwise.data.mapped import MappedSource
from foldwise.data.missing import fill_missing
from foldwise.fold.passes import Passes
from foldwise.kernels.mixture_gaps import GapComponents
from foldwise.models.hashing import scrambled
from foldwise.models.mixture.covariance import CovarianceType
from foldwise.models.mixture.covariance.diag import Diag
from foldwise.models.mixture.covariance.full import Full
from foldwise.models.mixture.covariance.matrices import MatrixType
from foldwise.models.mixture.fit_data import RIDGE, FitData, OneNormal
from foldwise.models.units import Units
from foldwise.stats.extent import Extent
from foldwise.stats.observed import ObservedColumns
from foldwise.stats.responsibility_sums import ResponsibilitySums

_STEPS, _TOL = 30, 1e-3  # of the one normal distribution, which is only to start from
_MOST_COLUMNS = 128  # above, types without matrices do without correlations here, too


def filled(passes: Passes, observed: ObservedColumns) -> Passes:
    """Passes over rows whose missing cells are filled with the means of their columns: they have the same extent."""
    return passes.over(fill_missing(passes.source, observed.mean))


def data_with_gaps(
    passes: Passes, covariance: CovarianceType, reg_covar: float | str, extent: Extent, observed: ObservedColumns
) -> FitData:
    """The data of a fit to rows with missing cells; `observed` is in the units of the passes."""
    dtype = passes.source.dtype
    units = Units.of(extent, dtype, per_column=not covariance.compares_columns)
    if not units.plain:
        passes = passes.over(cached(units.view(passes.source)))
        observed = passes.fold(ObservedColumns.of)  # squares may have left the range of float64
    pivot = (extent.columns.mean * units.factor).astype(dtype).astype(np.float64)
    one = _one_normal(passes, covariance, observed.mean, observed.squares / observed.weight, pivot, extent)
    low, high = units.seen(extent.low), units.seen(extent.high)
    drawn = Drawn(_completing(one, extent, pivot, dtype), low, high, blank=observed.blank > 0)
    whole = one.matrix if isinstance(covariance, MatrixType) else np.array(np.diagonal(one.matrix))
    return FitData(
        passes,
        covariance,
        reg_covar,
        units,
        extent,
        pivot,
        one.mean,
        whole,
        np.array(np.diagonal(one.matrix)),
        RIDGE[dtype.name],
        complete=passes.over(MappedSource(passes.source, drawn)),
        one=one,
        blank=observed.blank,
    )


def covariance_of_all(passes: Passes, observed: ObservedColumns) -> Floats:
    """The covariance matrix of rows with missing cells, as one normal distribution has it; in the units of the data."""
    extent = filled(passes, observed).fold(Extent.of)
    kind = Full(passes.source.n_columns)
    data = data_with_gaps(passes, kind, 0.0, extent, observed)
    assert data.one is not None
    return np.asarray(kind.scaled(data.one.matrix, data.units.inverse))


def scaled(observed: ObservedColumns, mean: Floats, scale: Floats) -> ObservedColumns:
    """What is observed of columns that are standardised: (x - mean) / scale, with the mean of the observed cells."""
    centre = (observed.centre - np.stack([mean, np.zeros_like(mean)])) / scale
    return replace(observed, centre=centre, squares=observed.squares / scale / scale)


# ---------------------------------------------------------------- one normal distribution


def _one_normal(
    passes: Passes, covariance: CovarianceType, mean: Floats, variances: Floats, pivot: Floats, extent: Extent
) -> OneNormal:
    """By EM from the means and variances of the observed cells, without correlations; without steps if there are too many
    columns for matrices."""
    d, dtype = len(mean), passes.source.dtype
    if not isinstance(covariance, MatrixType) and d > _MOST_COLUMNS:
        return OneNormal(mean, np.diag(variances))
    some = variances[variances > 0]
    ridge = RIDGE[dtype.name] * np.where(variances > 0, variances, some.mean() if len(some) else 1.0)
    kind, matrix, before = Full(d), np.diag(variances) + np.diag(ridge), -np.inf
    for _ in range(_STEPS):
        try:
            whiten = kind.whiten(matrix[None])
        except np.linalg.LinAlgError:
            break
        compared = kind.components(
            np.ones(1), mean[None], whiten, pivot, dtype, ridge=ridge, scatter="full", narrow=extent.alike, gaps=True
        )
        found = passes.fold(partial(ResponsibilitySums.of, components=compared))
        bound = found.log_likelihood / extent.columns.weight
        if not np.isfinite(bound):
            break
        mean = mean + found.moves[0]
        matrix = kind.with_ridge(kind.raw(found), ridge)[0]
        if bound - before < _TOL:
            break
        before = bound
    return OneNormal(mean, matrix)


def completing(data: FitData) -> GapComponents:
    """What missing cells are drawn from before there is a mixture."""
    assert data.one is not None
    return _completing(data.one, data.extent, data.pivot, data.dtype)


def _completing(one: OneNormal, extent: Extent, pivot: Floats, dtype: np.dtype[np.floating]) -> GapComponents:
    """What missing cells are drawn from: with few rows, correlations are taken to be weaker than they seem."""
    d, variances = len(one.mean), np.diagonal(one.matrix)
    floor = np.where(variances > 0, variances, 1.0) * RIDGE[dtype.name]
    share = d / (d + extent.columns.weight)  # weights are repetition, so not the number of rows
    matrix = (1 - share) * one.matrix + np.diag(share * variances + floor)
    kind: CovarianceType = Full(d) if d <= _MOST_COLUMNS else Diag(d)
    try:
        whiten = kind.whiten(kind.of_matrices(matrix[None], np.ones(1)))
    except np.linalg.LinAlgError:
        kind = Diag(d)
        whiten = kind.whiten((variances + floor)[None])
    made = kind.components(np.ones(1), one.mean[None], whiten, pivot, dtype, narrow=False, gaps=True)
    assert isinstance(made, GapComponents)
    return made


# ---------------------------------------------------------------- completed rows


@dataclass(frozen=True)
class Drawn:
    """Rows whose missing cells are drawn, within the range of what was observed; rows without anything get weight 0."""

    components: GapComponents
    low: Floats
    high: Floats
    blank: bool  # whether there are such rows

    def __call__(self, block: Block) -> Block:
        """The block, completed."""
        rows, weights = block.dense(), block.weights
        missing = np.isnan(rows)
        if self.blank:
            weights = np.where(missing.all(axis=1), 0.0, 1.0 if weights is None else weights)
        if missing.any():
            drawn = self.components.drawn(rows, *noise(rows))
            rows = np.where(missing, np.clip(drawn, self.low, self.high).astype(rows.dtype), rows)
        return DenseBlock(rows, block.start, weights)


_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


def noise(rows: np.typing.NDArray[np.floating], turn: int = 0) -> tuple[Floats, Floats]:
    """A uniform number for every row and a unit normal for every cell, made of nothing but the observed values of the row.

    Each `turn` has others.
    """
    wide = np.where(np.isnan(rows), 0.0, rows).astype(np.float64) + 0.0  # so that -0 is 0
    state = np.full(len(rows), turn, dtype=np.uint64)
    for column in np.ascontiguousarray(wide.T).view(np.uint64):
        state = scrambled(state * _GOLDEN + column)
    places = _GOLDEN * np.arange(1, rows.shape[1] + 2, dtype=np.uint64)
    uniform = ((scrambled(state[:, None] + places) >> np.uint64(11)).astype(np.float64) + 0.5) * 2.0**-53
    return uniform[:, 0], np.asarray(ndtri(uniform[:, 1:]))
