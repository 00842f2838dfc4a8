"""The data of one fit as EM sees them: in units near one, with what the whole of them says about scale and ridge."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from foldwise.data.block import Floats
from foldwise.data.cache import cached
from foldwise.fold.passes import Passes
from foldwise.models.mixture.covariance import CovarianceType
from foldwise.models.units import Units
from foldwise.stats.extent import Extent
from foldwise.stats.responsibility_sums import ResponsibilitySums

# The ridge of reg_covar="auto", as a share of each column's variance within components: as little as the arithmetic on such
# rows allows.
RIDGE = {"float64": 1e-10, "float32": 1e-7}
_LEAST = 1e-10  # of the variance of all rows: components are taken to be at least so wide


@dataclass(frozen=True)
class Ridge:
    """The variance added to each column of every covariance, and the variance below which a component is flat."""

    added: Floats
    flat: Floats


@dataclass(frozen=True)
class OneNormal:
    """Mean and covariance matrix of all rows, where some have missing cells."""

    mean: Floats
    matrix: Floats


@dataclass(frozen=True)
class FitData:
    """Passes over the rows in `units`, in which all figures but `extent` are given too.

    Rows with missing cells (`gaps.py`) are described by `one` distribution; `complete` are then passes over completed rows, to
    start from, and `blank` of the rows have no observed cell at all.
    """

    passes: Passes
    covariance: CovarianceType
    reg_covar: float | str
    units: Units
    extent: Extent  # in the units of the data
    pivot: Floats
    mean: Floats
    whole: Floats  # the covariance matrix of all rows, or their variances: what the covariance type needs
    variances: Floats
    share: float  # of a variance, which the ridge is
    complete: Passes
    one: OneNormal | None = None
    blank: int = 0

    @classmethod
    def of(cls, passes: Passes, covariance: CovarianceType, reg_covar: float | str, extent: Extent) -> FitData:
        """One pass more, over the rows in their units."""
        dtype = passes.source.dtype
        units = Units.of(extent, dtype, per_column=not covariance.compares_columns)
        if not units.plain:
            passes = passes.over(cached(units.view(passes.source)))
        pivot = (extent.columns.mean * units.factor).astype(dtype).astype(np.float64)
        mean, whole = covariance.of_all_rows(passes)
        variances = whole if whole.ndim == 1 else np.array(np.diagonal(whole))
        return cls(
            passes, covariance, reg_covar, units, extent, pivot, mean, whole, variances, RIDGE[dtype.name], passes
        )

    @property
    def gaps(self) -> bool:
        """Whether cells are missing."""
        return self.one is not None

    @property
    def weight(self) -> float:
        """The weight of all rows."""
        return self.extent.columns.weight

    @property
    def dtype(self) -> np.dtype[np.floating]:
        """The rows' dtype."""
        return self.passes.source.dtype

    def ridge(self, within: Floats) -> Ridge:
        """The ridge for components with these variances, one for each column."""
        known = np.maximum(within, _LEAST * self.variances)
        some = self.variances[self.variances > 0]
        # Columns that do not vary get the same ridge whatever the components are.
        filled = np.where(known > 0, known, some.mean() if len(some) else 1.0)
        if self.covariance.compares_columns:
            filled = np.full(len(filled), filled.mean())
        if isinstance(self.reg_covar, str):
            added = self.share * filled
        else:
            added = np.asarray(float(self.reg_covar) * self.units.factor * self.units.factor)
        return Ridge(added, np.maximum(added, filled * 1e-13))  # without a ridge, too, some variances are mere rounding

    def with_ridge(self, raw: Floats, ridge: Ridge) -> Floats:
        """The covariances of the M-step: with a ridge and, unless that is the caller's, with a density."""
        return self.sound(self.covariance.with_ridge(raw, ridge.added), ridge)

    def broadened(self, covariances: Floats, which: NDArray[np.bool_], ridge: Ridge) -> Floats:
        """Some components as if they knew nothing yet: with the shape of all rows, k of them filling the same room."""
        covariance = self.covariance
        if covariance.shared or not which.any():
            return covariances
        broad = covariance.broad(self.whole, len(which) ** (-2 / covariance.d), ridge.flat)
        out = covariances.copy()
        out[which] = self.sound(broad[None], ridge)[0]
        return out

    def sound(self, covariances: Floats, ridge: Ridge) -> Floats:
        """Covariances with a density, unless the ridge is the caller's."""
        if not isinstance(self.reg_covar, str):
            return covariances
        return self.covariance.sound(covariances, ridge.added, self.share)

    def factorised(self, covariances: Floats, ridge: Ridge) -> tuple[Floats, Floats | None]:
        """`sound` covariances and their `whiten`, which is None if they have none."""
        whiten = self.try_whiten(covariances)
        if whiten is not None and not (
            isinstance(self.reg_covar, str) and self.covariance.is_rounding(covariances, whiten)
        ):
            return covariances, whiten
        covariances = self.sound(covariances, ridge)
        return covariances, self.try_whiten(covariances)

    def try_whiten(self, covariances: Floats) -> Floats | None:
        """What densities need of these covariances, or None if some are singular."""
        try:
            return self.covariance.whiten(covariances)
        except np.linalg.LinAlgError:
            return None

    def widths(self, raw: Floats, counts: Floats) -> Floats:
        """The variances, one for each column, within the component of a row in the middle: the median by weight.

        Neither a few rows far away, which make one component wide, nor a few that are alike, which make one flat, change it.
        With reg_covar="total" it is the variance of all rows.
        """
        if self.reg_covar == "total":
            return self.variances
        each = self.covariance.variances(raw)
        if self.covariance.shared:
            return np.array(np.maximum(each[0], 0.0))
        some = counts >= self.covariance.least_rows()
        weights = np.where(some if some.any() else counts > 0, counts, 0.0)
        least = _LEAST * self.share * self.variances  # of rows that are alike
        order = np.argsort(each, axis=0, kind="stable")
        mass = np.cumsum(np.take_along_axis(np.where(each > least, weights[:, None], 0.0), order, axis=0), axis=0)
        middle = np.minimum((mass < mass[-1] / 2).sum(axis=0), len(counts) - 1)
        columns = np.arange(each.shape[1])
        return np.where(mass[-1] > 0, each[order[middle, columns], columns], 0.0)

    def expected(self, weights: Floats, means: Floats, whiten: Floats, ridge: Ridge) -> ResponsibilitySums:
        """The E-step: one fold."""
        components = self.covariance.components(
            weights,
            means,
            whiten,
            self.pivot,
            self.dtype,
            ridge=ridge.added,
            scatter=self.covariance.scatter,
            narrow=self.extent.alike,
            gaps=self.gaps,
        )
        return self.passes.fold(partial(ResponsibilitySums.of, components=components))
