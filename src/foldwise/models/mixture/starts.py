"""Where EM starts: weights, means and covariances in the units of the fit, from our k-means, seeds or chance."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from foldwise.data.block import Block, Floats
from foldwise.data.cache import cached
from foldwise.errors import ParameterError
from foldwise.kernels.targets import Rescaling, rescaling_within, targets_of
from foldwise.models.kmeans.descent import cluster
from foldwise.models.kmeans.fit_data import KMeansData
from foldwise.models.kmeans.seeding import STARTS
from foldwise.models.mixture.collapse import least_weight
from foldwise.models.mixture.covariance import CovarianceType
from foldwise.models.mixture.fit_data import FitData, OneNormal
from foldwise.models.mixture.search import searched_start
from foldwise.models.mixture.search_gaps import searched_start_with_gaps
from foldwise.models.mixture.start import Start
from foldwise.stats.responsibility_sums import ResponsibilitySums

Labels: TypeAlias = NDArray[np.int32]


@dataclass(frozen=True)
class UserInit:
    """What the user gave of a start, checked, in the units of the model; None where the method is to find it."""

    weights: Floats | None = None
    means: Floats | None = None
    covariances: Floats | None = None

    @property
    def whole(self) -> bool:
        """Whether nothing is left to be found."""
        return self.weights is not None and self.means is not None and self.covariances is not None

    @property
    def nothing(self) -> bool:
        """Whether all is left to be found."""
        return self.weights is None and self.means is None and self.covariances is None


@dataclass(frozen=True)
class MixtureStart:
    """Weights, means and covariances (components, columns, columns) to start from, in the units of the model."""

    weights: Floats
    means: Floats
    covariances: Floats


def checked(weights: Any, means: Any, precisions: Any, k: int, covariance: CovarianceType) -> UserInit:
    """Refuse starts that cannot be meant; the first words of these messages are scikit-learn's contract."""
    found = UserInit()
    if weights is not None:
        w = _array(weights, "weights", (k,))
        if (w < 0).any() or (w > 1).any():
            raise ParameterError(
                "The parameter 'weights' should be in the range [0, 1], but got "
                f"max value {w.min():.5f}, min value {w.max():.5f}"
            )
        if abs(w.sum() - 1.0) > 1e-6:
            raise ParameterError(f"The parameter 'weights' should be normalized, but got sum(weights) = {w.sum():.5f}")
        found = replace(found, weights=w)
    if means is not None:
        found = replace(found, means=_array(means, "means", (k, covariance.d)))
    if precisions is not None:
        p = _array(precisions, f"{covariance.name} precision", covariance.shape(k))
        found = replace(found, covariances=covariance.invert(p))
    return found


def _array(values: Any, name: str, shape: tuple[int, ...]) -> Floats:
    try:
        found = np.array(values, dtype=np.float64)
    except (TypeError, ValueError) as problem:
        raise ParameterError(f"The parameter '{name}' should be numbers ({problem})") from None
    if found.shape != shape:
        raise ParameterError(f"The parameter '{name}' should have the shape of {shape}, but got {found.shape}")
    if not np.isfinite(found).all():
        raise ParameterError(f"The parameter '{name}' contains NaN or infinity")
    return found


@dataclass(frozen=True)
class Starts:
    """The starts of one fit: its own, by `method`, as far as the user gave none; then those in `further`."""

    k: int
    method: str
    given: UserInit
    seed: int
    own: int
    further: tuple[MixtureStart, ...] = ()
    search: str = "none"

    def __len__(self) -> int:
        return self.own + len(self.further)

    def make(self, data: FitData, number: int, within: Floats | None) -> Start:
        """Start `number`; `within` are the variances that the ridge is taken from, if earlier starts have settled them."""
        if number >= self.own:
            return _converted(data, self.further[number - self.own])
        given, units = self.given, data.units
        means = None if given.means is None else units.seen(given.means)
        covariances = None if given.covariances is None else data.covariance.scaled(given.covariances, units.factor)
        if given.weights is not None and means is not None and covariances is not None:
            return Start(given.weights, means, covariances)
        found = self._found(data, means, number, within)
        return Start(
            found.weights if given.weights is None else given.weights,
            found.means if means is None else means,
            found.covariances if covariances is None else covariances,
            found.within,
        )

    def _found(self, data: FitData, means: Floats | None, number: int, within: Floats | None) -> Start:
        rng = np.random.default_rng([self.seed, 0, number])
        if means is not None:
            return _about(data, means, within)  # rows go with the nearest of the means given
        if self.k == 1 and data.one is not None:
            return _single(data, data.one, within)
        if self.k == 1:
            return _m_step(data, data.mean[None], _nearest(data, data.mean[None]), within)
        if self.method == "random":
            shares = _RandomShares(int(rng.integers(2**62)), self.k)
            return _m_step(data, np.repeat(data.mean[None], self.k, axis=0), shares, within)
        if self.method == "kmeans":
            if self.search != "none" and self.given.nothing:
                look = searched_start_with_gaps if data.gaps else searched_start
                searched = look(data, self.k, self.seed, number, within)
                if searched is not None:
                    return searched
            seed = self.seed if number == 0 else int(rng.integers(2**31))
            centres, labels = kmeans_start(data, self.k, seed)
            return _m_step(data, centres, partial(_one_each, self.k), within, labels)
        return _about(data, seeds(data, self.k, self.method, rng), within)


def _converted(data: FitData, given: MixtureStart) -> Start:
    factor = data.units.factor
    scaled = (given.covariances * factor) * factor[:, None]
    covariances = data.covariance.of_matrices(scaled, given.weights)
    return Start(given.weights, given.means * factor, covariances)


# ---------------------------------------------------------------- centres and seeds


def kmeans_start(data: FitData, k: int, seed: int) -> tuple[Floats, Labels]:
    """Centres and labels by our k-means."""
    # Units do not matter to a model with a variance for each column, so they should not matter to its start.
    scale = not data.covariance.compares_columns and bool((data.extent.high > data.extent.low).all())
    passes = data.complete
    if data.gaps:  # not to be completed anew in every pass
        passes = passes.over(cached(passes.source))
    found = cluster(passes, k, seed=seed, scale=scale)
    return found.centres_in_data_units, found.labels


def seeds(data: FitData, k: int, method: str, rng: np.random.Generator) -> Floats:
    """Rows to start from."""
    start = STARTS["random" if method == "random_from_data" else method]
    return np.asarray(start(KMeansData(data.complete), k, rng), dtype=np.float64)


def _about(data: FitData, means: Floats, within: Floats | None) -> Start:
    """A start about these means: weights and covariances are those of the rows nearest to each."""
    return replace(_m_step(data, means, _nearest(data, means), within), means=means)


def _nearest(data: FitData, means: Floats) -> _Nearest:
    low, high = data.units.seen(data.extent.low), data.units.seen(data.extent.high)
    rescaling = rescaling_within(data.pivot, low, high, data.dtype)
    return _Nearest(np.ascontiguousarray(means, dtype=data.dtype), rescaling)


def _single(data: FitData, one: OneNormal, within: Floats | None) -> Start:
    """One component with the mean and covariance of all rows, where cells are missing."""
    raw = data.covariance.of_matrices(one.matrix[None], np.ones(1))
    if within is None:
        within = data.widths(raw, np.array([data.weight]))
    return Start(np.ones(1), one.mean[None], data.with_ridge(raw, data.ridge(within)), within)


# ---------------------------------------------------------------- the M-step for given responsibilities


@dataclass(frozen=True)
class _Nearest:
    """Responsibilities of rows that belong to the nearest of some points."""

    points: NDArray[Any]
    rescaling: Rescaling

    def __call__(self, block: Block) -> Floats:
        labels = np.full(block.n_rows, -1, dtype=np.int32)
        targets_of(self.points, self.rescaling, sparse=False).nearest(block.rows, labels)
        return _one_each(len(self.points), block, labels)


def _one_each(k: int, block: Block, labels: Labels) -> Floats:
    """Responsibilities of rows that belong to one component each."""
    out = np.zeros((block.n_rows, k))
    out[np.arange(block.n_rows), labels] = 1.0
    return out


@dataclass(frozen=True)
class _RandomShares:
    """Responsibilities by chance; every block draws from a stream of its own."""

    stream: int
    k: int

    def __call__(self, block: Block) -> Floats:
        drawn = np.random.default_rng([self.stream, block.start]).random((block.n_rows, self.k))
        return np.asarray(drawn / drawn.sum(axis=1, keepdims=True))


@dataclass(frozen=True)
class _Sums:
    """The sums of the M-step over a block, for responsibilities from elsewhere."""

    scatter: str
    means: Floats
    shares: Callable[..., Floats]

    def __call__(self, block: Block, *labels: Labels) -> ResponsibilitySums:
        return ResponsibilitySums.given(block, self.scatter, self.means, self.shares(block, *labels))


def _m_step(
    data: FitData, means: Floats, shares: Callable[..., Floats], within: Floats | None, labels: Labels | None = None
) -> Start:
    """The M-step for responsibilities `shares(block)`, or `shares(block, its labels)`.

    A component with too few rows gets the shape of all rows; but where many have too few, those with hardly any.
    """
    covariance = data.covariance
    found = data.complete.fold(_Sums(covariance.scatter, means, shares), beside=labels)
    raw, k = covariance.raw(found), len(means)
    if within is None:
        within = data.widths(raw, found.counts)
    ridge = data.ridge(within)
    few = found.counts < least_weight(covariance, found.counts)
    covariances = data.broadened(data.with_ridge(raw, ridge), few, ridge)
    weights = np.maximum(found.counts, 1e-3 * found.counts.sum() / k)
    moved = np.where(found.counts[:, None] > 0, means + found.moves, means)
    return Start(weights / weights.sum(), moved, covariances, within)
