"""Initial centres: greedy k-means++ (Arthur and Vassilvitskii 2007), k-means|| (Bahmani et al. 2012) or random rows."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from foldwise.data.arrays import ArraySource
from foldwise.data.block import Block, Floats, dense_rows
from foldwise.models.kmeans.assignment import Assignment
from foldwise.models.kmeans.fit_data import KMeansData
from foldwise.models.kmeans.lloyd import settle_down

_ROUNDS = 5  # of k-means||
_OVERSAMPLING = 2
_SAMPLE = 16384  # minimum number of rows on which candidates are compared; and
_SAMPLE_PER_SEED = 16
_WAITING = 24  # maximum number of seeds not yet included in the distances


# ---------------------------------------------------------------- tasks


@dataclass(frozen=True)
class UpdateClosest:
    """Update the squared distances of rows to their nearest seed, kept in the block state under `name`."""

    keeps_state: ClassVar[bool] = True

    targets: Any
    n_seeds: int  # the other targets are candidates
    name: str
    weight_scale: float
    fresh: bool

    def __call__(self, block: Block, state: dict[str, Any]) -> tuple[float, Floats]:
        """The weighted sum of the distances, and its value if each candidate were added."""
        if self.fresh:
            dtype = self.targets.points.dtype
            state[self.name] = np.full(block.n_rows, np.finfo(dtype).max, dtype=dtype)
        state.pop(f"{self.name}_sums", None)
        weights = None if block.weights is None else block.weights * self.weight_scale
        found: tuple[float, Floats] = self.targets.update_closest(
            block.unchecked, weights, self.n_seeds, state[self.name]
        )
        return found


@dataclass(frozen=True)
class ForgetState:
    """Remove an array from the state of a block."""

    name: str

    def __call__(self, state: dict[str, Any]) -> None:
        """If it is there."""
        state.pop(self.name, None)


def _mass(block: Block, closest: NDArray[Any], weight_scale: float) -> Floats:
    """Weight times squared distance of each row."""
    mass = closest.astype(np.float64)
    return mass if block.weights is None else mass * (block.weights * weight_scale)


@dataclass(frozen=True)
class Rows:
    """Some rows: numbers, values, squared distances to the nearest seed, and weights, if any."""

    numbers: NDArray[np.intp]
    values: NDArray[Any]
    closest: Floats
    weights: Floats | None

    @classmethod
    def of(cls, block: Block, which: NDArray[np.intp], closest: NDArray[Any]) -> Rows:
        """Rows of a block, by their positions in it."""
        return cls(
            block.start + which,
            dense_rows(block.unchecked[which]),
            closest[which].astype(np.float64),
            None if block.weights is None else block.weights[which],
        )


@dataclass(frozen=True)
class DrawRows:
    """Rows of a block at given fractions of its cumulative weight times squared distance."""

    name: str
    weight_scale: float
    order: NDArray[np.intp] | None

    def __call__(self, block: Block, state: dict[str, Any], shares: Floats) -> Rows:
        """One row per fraction."""
        sums = state.get(f"{self.name}_sums")
        if sums is None:
            mass = _mass(block, state[self.name], self.weight_scale)
            sums = state[f"{self.name}_sums"] = np.cumsum(mass if self.order is None else mass[self.order])
        # The block's stored sum was rounded differently; using this one keeps every fraction in range.
        found = np.searchsorted(sums, shares * sums[-1], side="right")
        found = np.minimum(found, int(np.searchsorted(sums, sums[-1])))
        return Rows.of(block, found if self.order is None else self.order[found], state[self.name])


@dataclass(frozen=True)
class PickRows:
    """Each row of a block with probability proportional to weight times squared distance: a round of k-means||."""

    keeps_state: ClassVar[bool] = True

    name: str
    weight_scale: float
    factor: float
    stream: tuple[int, int]
    block_rows: int

    def __call__(self, block: Block, state: dict[str, Any]) -> NDArray[Any]:
        """The values of the selected rows; each block uses its own random stream."""
        chance = _mass(block, state[self.name], self.weight_scale) * self.factor
        rng = np.random.default_rng([*self.stream, block.start // self.block_rows])
        return dense_rows(block.unchecked[np.flatnonzero(rng.random(len(chance)) < chance)])


# ---------------------------------------------------------------- distances to the seeds so far


class Distances:
    """The squared distance of every row to its nearest seed so far, and rows drawn in proportion to it."""

    def __init__(self, data: KMeansData, name: str = "closest") -> None:
        self.data, self.name = data, name
        self.totals = np.zeros(math.ceil(data.n / data.block_rows))
        self._fresh = True

    def update(self, seeds: NDArray[Any], candidates: NDArray[Any]) -> Floats:
        """Update the distances for new seeds in one pass; returns the sum of distances if each candidate were added."""
        data = self.data
        targets = data.targets(np.ascontiguousarray(np.concatenate([seeds, candidates])))
        task = UpdateClosest(targets, len(seeds), self.name, data.weight_scale, self._fresh)
        self._fresh = False
        found = data.passes.each(task)
        self.totals = np.array([total for total, _ in found])
        return np.asarray(np.sum([potentials for _, potentials in found], axis=0))

    @property
    def total(self) -> float:
        """The weighted sum of all squared distances."""
        return float(self.totals.sum())

    def forget(self) -> None:
        """Give up the distances of the rows; their total stays."""
        self.data.passes.update(ForgetState(self.name))
        self._fresh = True

    def draw(self, count: int, rng: np.random.Generator) -> Rows:
        """Rows drawn with probability proportional to weight times squared distance."""
        data, ends = self.data, np.cumsum(self.totals)
        where = rng.random(count) * ends[-1]
        task = DrawRows(self.name, data.weight_scale, data.canonical_order)
        if len(ends) == 1:  # small tables pay for no more than they need
            only: Rows = data.passes.ask(task, {0: where / ends[0]})[0]
            return only
        blocks = np.minimum(np.searchsorted(ends, where, side="right"), len(ends) - 1)
        places = {int(block): np.flatnonzero(blocks == block) for block in np.unique(blocks)}
        shares = {b: (where[at] - (ends[b] - self.totals[b])) / self.totals[b] for b, at in places.items()}
        drawn = data.passes.ask(task, shares)
        back = np.argsort(np.concatenate([places[b] for b in sorted(drawn)]), kind="stable")
        found = [drawn[b] for b in sorted(drawn)]
        weights = None if data.weights is None else np.concatenate([rows.weights for rows in found])[back]
        numbers, values, closest = (
            np.concatenate([getattr(rows, name) for rows in found])[back] for name in ("numbers", "values", "closest")
        )
        return Rows(numbers, values, closest, weights)


# ---------------------------------------------------------------- k-means++


def plusplus(data: KMeansData, k: int, rng: np.random.Generator) -> NDArray[Any]:
    """Greedy k-means++: of a few rows drawn by squared distance, the one that lowers the sum most becomes the next seed.

    Drawing is exact, although the distances are updated only once every few seeds: a row drawn by older distances is accepted
    with probability equal to the ratio of its current distance to the older one. The reduction by each candidate is measured
    on all rows if they are few, otherwise on a sample.
    """
    trials = 2 + int(math.log(k))
    seeds = np.empty((k, data.d), dtype=data.dtype)
    seeds[0] = data.filled(data.take([_first(data, rng)]))[0]
    distances = Distances(data)
    distances.update(seeds[:1], seeds[:0])
    judge = _Judge(data, k, seeds[:1], rng)
    known = 1  # seeds included in the distances
    for number in range(1, k):
        drawn = _candidates(distances, seeds[known:number], trials, rng)
        if number > known and (drawn.stale or number - known >= _WAITING):
            distances.update(seeds[known:number], seeds[:0])
            known = number
        if not len(drawn.points):
            if not distances.total > 0:
                return _with_equals(data, seeds, number, rng)
            drawn = _candidates(distances, seeds[:0], trials, rng)
        seeds[number] = drawn.points[judge.best(drawn)]
    return seeds


@dataclass(frozen=True)
class Candidates:
    """Candidate rows, their weighted squared distances to the nearest seed, and whether too many draws were rejected."""

    points: NDArray[Any]
    masses: Floats
    stale: bool


def _candidates(distances: Distances, waiting: NDArray[Any], trials: int, rng: np.random.Generator) -> Candidates:
    """Rows drawn by distance to the nearest seed, including the seeds in `waiting`."""
    data = distances.data
    points, masses = [np.empty((0, data.d), data.dtype)], [np.empty(0)]
    kept = drawn = 0
    while kept < trials and drawn < 8 * trials and distances.total > 0:
        rows = distances.draw(2 * trials if len(waiting) else trials, rng)
        drawn += len(rows.numbers)
        now = rows.closest
        if len(waiting):
            gap = data.gaps(rows.values, waiting)
            now = np.minimum(np.einsum("ijk,ijk->ij", gap, gap).min(axis=1), rows.closest)
        stay = rng.random(len(rows.numbers)) * rows.closest < now
        points.append(data.filled(rows.values[stay]))
        weights = 1.0 if rows.weights is None else rows.weights[stay] * data.weight_scale
        masses.append(now[stay] * weights)
        kept += int(stay.sum())
    stale = kept < drawn / 2 or not drawn
    return Candidates(np.concatenate(points)[:trials], np.concatenate(masses)[:trials], stale)


class _Judge:
    """Finds which candidate lowers the sum of squared distances most."""

    def __init__(self, data: KMeansData, k: int, first: NDArray[Any], rng: np.random.Generator) -> None:
        size = max(_SAMPLE, _SAMPLE_PER_SEED * k)
        sample = data if data.n <= 2 * size else data.sample(size, rng)
        self._distances = Distances(sample, "closest_judged")
        self._stands_for = data.n / sample.n
        self._last = first

    def best(self, drawn: Candidates) -> int:
        """The number of the best candidate, which becomes a seed."""
        left = self._stands_for * self._distances.update(self._last, drawn.points)
        if self._stands_for > 1:
            # An outlier may have no neighbours in the sample, but it does reduce its own distance to zero.
            left = left - drawn.masses
        number = int(np.argmin(left))
        self._last = drawn.points[number : number + 1]
        return number


def _first(data: KMeansData, rng: np.random.Generator) -> int:
    """A row drawn with probability proportional to its weight."""
    place, order = rng.random(), data.canonical_order
    if data.chances is None:
        found = min(int(place * data.n), data.n - 1)
    else:
        ends = np.cumsum(data.chances if order is None else data.chances[order])
        found = min(int(np.searchsorted(ends, place * ends[-1], side="right")), int(np.searchsorted(ends, ends[-1])))
    return found if order is None else int(order[found])


def _with_equals(data: KMeansData, seeds: NDArray[Any], found: int, rng: np.random.Generator) -> NDArray[Any]:
    """Seeds when there are fewer distinct rows than seeds: the rest are copies, whose clusters stay empty."""
    numbers = rng.integers(data.counted, size=len(seeds) - found)
    if data.chances is not None:
        numbers = np.flatnonzero(data.chances)[numbers]  # rows of weight 0 must not matter
    seeds[found:] = data.filled(data.take(numbers))
    return seeds


# ---------------------------------------------------------------- random rows, k-means||


def random_rows(data: KMeansData, k: int, rng: np.random.Generator) -> NDArray[Any]:
    """Rows drawn without replacement, with probability proportional to weight."""
    if data.is_small:
        return _distinct_rows(data, k, rng)
    if data.chances is None:
        return data.filled(data.take(np.sort(rng.choice(data.n, k, replace=False))))
    some = np.flatnonzero(data.chances)
    # The k smallest exponential variates are a weighted sample without replacement (Efraimidis and Spirakis 2006).
    times = rng.exponential(size=len(some)) / data.chances[some]
    return data.filled(data.take(np.sort(some[np.argpartition(times, k - 1)[:k]])))


def _distinct_rows(data: KMeansData, k: int, rng: np.random.Generator) -> NDArray[Any]:
    """Distinct rows of a small table, drawn by frequency, so that repeated rows and weights are equivalent."""
    table = data.filled(data.take(np.arange(data.n)))
    points, which = np.unique(table, axis=0, return_inverse=True)
    counts = np.bincount(which.ravel(), data.chances, minlength=len(points))
    points, counts = points[counts > 0], counts[counts > 0]
    order = np.argsort(rng.exponential(size=len(points)) / counts, kind="stable")
    seeds = np.empty((k, data.d), dtype=data.dtype)
    found = min(k, len(points))
    seeds[:found] = points[order[:found]]
    return seeds if found == k else _with_equals(data, seeds, found, rng)


def parallel(data: KMeansData, k: int, rng: np.random.Generator) -> NDArray[Any]:
    """k-means||: a few passes draw about 2k rows each; these, weighted by the rows nearest them, are clustered in memory."""
    distances = Distances(data)
    base = int(rng.integers(2**62))
    chosen = [data.filled(data.take([_first(data, rng)]))]
    distances.update(chosen[0], chosen[0][:0])
    for turn in range(_ROUNDS):
        total = distances.total
        if not total > 0:
            break
        factor = _OVERSAMPLING * k / total
        task = PickRows(distances.name, data.weight_scale, factor, (base, turn), data.block_rows)
        new = data.filled(np.concatenate(data.passes.each(task)))
        for first in range(0, len(new), 256):  # one panel of all points would not fit in the cache
            distances.update(new[first : first + 256], new[:0])
        chosen.append(new)
    points = np.unique(np.concatenate(chosen), axis=0)
    if len(points) <= k:
        return np.concatenate([points, _with_equals(data, np.empty((k, data.d), data.dtype), 0, rng)])[:k]
    every = Assignment(data, bounds="off", name="nearest_point")  # leaves the labels of the fit unchanged
    every.assign(points)
    few = KMeansData(data.passes.over(ArraySource(points, weights=every.cluster_weights), here=True))
    return settle_down(Assignment(few), plusplus(few, k, rng))


STARTS = {"k-means++": plusplus, "random": random_rows, "k-means||": parallel}
