"""The data of one fit as EM sees them: in units near one, with what the whole of them says about scale and ridge."""

from __future__ import annotations

from typing import Any

import numpy as np

from foldwise.data.block import Floats
from foldwise.data.cache import cached
from foldwise.data.mapped import multiplied
from foldwise.data.source import Source
from foldwise.errors import DataError
from foldwise.fold.passes import Passes
from foldwise.models.mixture.covariance_types import CovarianceType
from foldwise.stats.column_moments import ColumnMoments
from foldwise.stats.extent import Extent
from foldwise.stats.moments import Moments
from foldwise.stats.responsibility_sums import ResponsibilitySums

# The ridge of reg_covar="auto", as a share of each column's variance within components: as little as the arithmetic on such
# rows allows.
RIDGE = {"float64": 1e-10, "float32": 1e-7}
_LEAST = 1e-10  # of the variance of all rows: components are taken to be at least so wide
# Spreads, as powers of two, whose squares and products are safe: beyond them columns are multiplied by a power of two.
_COMFORT = {"float64": 250, "float32": 30}


class FitData:
    """A source under way in a fit: `run` passes over rows that are `factor` times those of the data."""

    def __init__(self, source: Source, name: str, n_latent: int | None, reg_covar: float | str, n_threads: Any) -> None:
        run = Passes(cached(source), n_threads=n_threads)
        with np.errstate(over="ignore", invalid="ignore"):
            self.extent = run.fold(Extent.of)
        self.n, self.d, self.dtype = self.extent.count, source.n_columns, source.dtype
        self.weight = self.extent.columns.weight
        self.family = CovarianceType(name, self.d, latent(n_latent, self.d) if name == "ppca" else 0)
        self.factor = factors(self._reaches(), self.dtype, alone=name in ("full", "tied", "diag"))
        if (self.factor != 1.0).any():
            run = Passes(cached(multiplied(source, self.factor)), n_threads=n_threads)
            run.passes = 1
        self.run, self.source = run, run.source
        self.pivot = (self.extent.columns.mean * self.factor).astype(self.dtype).astype(np.float64)
        self.whole, self.variances = self._whole()
        self._reg_covar = reg_covar
        self.settle(self.variances)
        self.settled = False  # until a start says how wide components are

    def _reaches(self) -> Floats:
        """Half of each column's range."""
        return np.asarray(self.extent.high / 2 - self.extent.low / 2)

    def _whole(self) -> tuple[Floats, Floats]:
        """The covariance of all rows, or the variances alone where no more is needed; and the variances."""
        if self.family.scatter == "diag":
            columns = self.run.fold(ColumnMoments.of)
            self.mean = columns.mean
            variances = columns.squares / columns.weight
            return variances, variances
        moments = self.run.fold(Moments.of)
        self.mean = moments.mean
        upper = np.triu(moments.scatter) / moments.weight
        whole = upper + np.triu(upper, 1).T
        return whole, np.array(np.diagonal(whole))

    def settle(self, within: Floats) -> None:
        """Take the ridge, and what is flat, from these variances, one a column, of rows within components."""
        share = RIDGE[self.dtype.name]
        known = np.maximum(within, _LEAST * self.variances)
        some = self.variances[
            self.variances > 0
        ]  # of columns that do not vary: the same ridge, whatever the components
        filled = np.where(known > 0, known, some.mean() if len(some) else 1.0)
        if self.family.name in ("spherical", "ppca"):
            filled = np.full(self.d, filled.mean())
        asked = self._reg_covar
        self.ridge = share * filled if isinstance(asked, str) else np.asarray(float(asked) * self.factor * self.factor)
        self.flat = np.maximum(
            self.ridge, filled * 1e-13
        )  # with reg_covar=0, too, some variances are nothing but rounding
        self.within, self.settled = within, True

    def sound(self, covariances: Floats) -> Floats:
        """Covariances that rounding left without a density get one; with a ridge of the caller's, they stay as they are.

        The ridge is small beside the variances of a component much wider than others. Rounding of its sums is not.
        """
        family = self.family
        if not isinstance(self._reg_covar, str) or family.layout not in ("full", "tied"):
            return covariances
        try:
            family.whiten(covariances)
        except np.linalg.LinAlgError:
            share, out = RIDGE[self.dtype.name], np.array(covariances)
            for one in out if family.layout == "full" else [out]:
                variances = np.maximum(np.diagonal(one), self.ridge)
                size = np.sqrt(np.full(self.d, variances.mean()) if family.name == "ppca" else variances)
                values, vectors = np.linalg.eigh(one / size / size[:, None])
                if values[0] < share:
                    one[:] = ((vectors * np.maximum(values, share)) @ vectors.T) * size * size[:, None]
            return out
        return covariances

    def widths(self, raw: Floats, counts: Floats) -> Floats:
        """The variances, one a column, within the component of a row in the middle: the median over components by weight.

        Neither a few rows far away, which make one component wide, nor a few that are alike, which make one flat, change it.
        """
        k, layout = len(counts), self.family.layout
        if layout == "tied":
            return np.array(np.maximum(np.diagonal(raw), 0.0))
        if layout == "full":
            raw = np.diagonal(raw, axis1=1, axis2=2)
        each = raw if raw.ndim == 2 else np.repeat(raw[:, None], self.d, axis=1)
        some = counts >= self.family.least_rows()
        weights = np.where(some if some.any() else counts > 0, counts, 0.0)
        least = _LEAST * RIDGE[self.dtype.name] * self.variances  # of rows that are alike
        found = np.zeros(self.d)
        for j in range(self.d):
            order = np.argsort(each[:, j], kind="stable")
            mass = np.cumsum(np.where(each[:, j] > least[j], weights, 0.0)[order])
            if mass[-1] > 0:
                found[j] = each[order[min(int(np.searchsorted(mass, mass[-1] / 2)), k - 1)], j]
        return found

    def expected(self, weights: Floats, means: Floats, whiten: Floats) -> ResponsibilitySums:
        """The E-step: one fold."""
        family = self.family
        components = family.components(
            weights,
            means,
            whiten,
            self.pivot,
            self.dtype,
            ridge=self.ridge,
            scatter=family.scatter,
            narrow=self.extent.alike,
        )
        return self.run.fold(lambda block: ResponsibilitySums.of(block, components, family.scatter, len(weights)))


def latent(asked: int | None, d: int) -> int:
    """How many latent dimensions: two unless it is said, and at least one direction is left for noise."""
    return min(2 if asked is None else asked, d - 1)


def factors(reaches: Floats, dtype: np.dtype[Any], *, alone: bool) -> Floats:
    """Powers of two that bring columns of these half ranges near one; 1 for all if all are comfortable as they are.

    Unless columns may be changed `alone`, they get one in common: where a model compares variances between columns.
    """
    with np.errstate(divide="ignore"):
        powers = np.where(reaches > 0, np.frexp(reaches)[1], 0)
    if (np.abs(powers) <= _COMFORT[dtype.name]).all():
        return np.ones(len(reaches))
    if not alone:
        powers = np.full(len(powers), powers[reaches > 0].max())
    most = 1000 if dtype == np.float64 else 120
    return np.asarray(np.ldexp(1.0, -np.clip(powers, -most, most)))


def in_range(values: Floats, what: str) -> Floats:
    """The values, unless they left float64's range on the way back to the units of the data."""
    if not np.isfinite(values).all() or (values.size and not values.any()):
        raise DataError(f"the {what} leave the range of float64", advice="Multiply or divide the data by a constant")
    return values
