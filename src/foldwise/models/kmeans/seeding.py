"""Where to start: greedy k-means++ (Arthur and Vassilvitskii 2007), k-means|| (Bahmani and others 2012) or random rows."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from foldwise.data.block import Block, Floats
from foldwise.models.kmeans.assignment import Assignment

_ROUNDS = 5  # of k-means||
_OVERSAMPLING = 2
_SAMPLE = 16384  # rows on which candidates are compared, at least; and
_SAMPLE_PER_SEED = 16
_WAITING = 24  # seeds that the distances may not know yet, at most


class Distances:
    """Every row's squared distance to its nearest seed so far, and rows drawn in proportion to it."""

    def __init__(self, rows: Assignment) -> None:
        self.rows = rows
        self.closest = np.full(rows.n, np.finfo(rows.dtype).max, dtype=rows.dtype)
        self.totals = np.zeros(math.ceil(rows.n / rows.block_rows))
        self._sums: dict[int, Floats] = {}
        self._order = rows.canonical_order

    def update(self, seeds: NDArray[Any], candidates: NDArray[Any]) -> Floats:
        """One pass: bring distances up to date with new seeds; the sum of them that each candidate would leave."""
        rows, points = self.rows, np.concatenate([seeds, candidates])
        targets = rows.targets(np.ascontiguousarray(points))
        potentials: dict[int, Floats] = {}
        self._sums.clear()

        def of(block: Block) -> tuple[float, Floats]:
            weights = None if block.weights is None else block.weights * rows.weight_scale
            found: tuple[float, Floats] = targets.update_closest(
                block.again, weights, len(seeds), rows.part(block, self.closest)
            )
            return found

        def take(number: int, found: tuple[float, Floats]) -> None:
            self.totals[number], potentials[number] = found

        rows.run.visit(of, take)
        return np.asarray(np.sum([potentials[number] for number in sorted(potentials)], axis=0))

    @property
    def total(self) -> float:
        """The weighted sum of all of them."""
        return float(self.totals.sum())

    def draw(self, count: int, rng: np.random.Generator) -> NDArray[np.intp]:
        """Rows drawn with probability in proportion to weight times squared distance."""
        ends = np.cumsum(self.totals)
        where = rng.random(count) * ends[-1]
        numbers = np.minimum(np.searchsorted(ends, where, side="right"), len(ends) - 1)
        out = np.empty(count, dtype=np.intp)
        for place, number in enumerate(numbers.tolist()):
            sums = self._sums.get(number)
            if sums is None:
                mass = self.mass(number)
                sums = self._sums[number] = np.cumsum(mass if self._order is None else mass[self._order])
            # The block's own sum was rounded in another way: taken from this one, nobody falls off the end.
            share = (where[place] - (ends[number] - self.totals[number])) / self.totals[number]
            found = int(np.searchsorted(sums, share * sums[-1], side="right"))
            found = min(found, int(np.searchsorted(sums, sums[-1])))
            out[place] = number * self.rows.block_rows + (found if self._order is None else self._order[found])
        return out

    def mass(self, number: int) -> Floats:
        """Weight times squared distance of the rows of a block."""
        start = number * self.rows.block_rows
        stop = min(start + self.rows.block_rows, self.rows.n)
        mass = self.closest[start:stop].astype(np.float64)
        return mass if self.rows.weights is None else mass * (self.rows.weights[start:stop] * self.rows.weight_scale)


def plusplus(rows: Assignment, k: int, rng: np.random.Generator) -> NDArray[Any]:
    """Greedy k-means++: of a few rows drawn by squared distance, the one that lowers the sum most is the next seed.

    Drawing is exact, though the distances are brought up to date only once for a number of seeds: a row drawn by older
    distances is kept with the probability by which its distance has fallen since. How much candidates would lower the sum is
    measured on all rows if they are few, else on a sample of them.
    """
    trials = 2 + int(math.log(k))
    seeds = np.empty((k, rows.d), dtype=rows.dtype)
    seeds[0] = rows.take([_first(rows, rng)])[0]
    distances = Distances(rows)
    distances.update(seeds[:1], seeds[:0])
    judge = _Judge(rows, k, seeds[:1], rng)
    known = 1  # seeds that the distances know
    for number in range(1, k):
        drawn = _candidates(distances, seeds[known:number], trials, rng)
        if number > known and (drawn.stale or number - known >= _WAITING):
            distances.update(seeds[known:number], seeds[:0])
            known = number
        if not len(drawn.points):
            if not distances.total > 0:
                return _with_equals(rows, seeds, number, rng)
            drawn = _candidates(distances, seeds[:0], trials, rng)
        seeds[number] = drawn.points[judge.best(drawn)]
    return seeds


@dataclass(frozen=True)
class Drawn:
    """Rows drawn as candidates, their weighted squared distances to the nearest seed, and whether too many were refused."""

    points: NDArray[Any]
    masses: Floats
    stale: bool


def _candidates(distances: Distances, waiting: NDArray[Any], trials: int, rng: np.random.Generator) -> Drawn:
    """Rows drawn by their distance to the nearest seed, those in `waiting` included."""
    rows = distances.rows
    kept, drawn = np.empty(0, dtype=np.intp), 0
    squares = np.empty(0)
    while len(kept) < trials and drawn < 8 * trials and distances.total > 0:
        which = distances.draw(2 * trials if len(waiting) else trials, rng)
        drawn += len(which)
        before = now = distances.closest[which].astype(np.float64)
        if len(waiting):
            gap = rows.frame.seen(rows.take(which))[:, None, :] - rows.frame.seen(waiting)
            now = np.minimum(np.einsum("ijk,ijk->ij", gap, gap).min(axis=1), before)
        stay = rng.random(len(which)) * before < now
        kept, squares = np.append(kept, which[stay]), np.append(squares, now[stay])
    stale = len(kept) < drawn / 2 or not drawn
    kept, squares = kept[:trials], squares[:trials]
    return Drawn(
        rows.take(kept), squares if rows.weights is None else squares * (rows.weights[kept] * rows.weight_scale), stale
    )


class _Judge:
    """Says which of some candidates lowers the sum of squared distances most."""

    def __init__(self, rows: Assignment, k: int, first: NDArray[Any], rng: np.random.Generator) -> None:
        size = max(_SAMPLE, _SAMPLE_PER_SEED * k)
        self._sample = rows if rows.n <= 2 * size else rows.sample(size, rng)
        self._distances = Distances(self._sample)
        self._stands_for = rows.n / self._sample.n
        self._last = first

    def best(self, drawn: Drawn) -> int:
        """The number of the best one, which becomes a seed."""
        left = self._stands_for * self._distances.update(self._last, drawn.points)
        if self._stands_for > 1:
            # A row far from all others may have no like in the sample, but its own distance it does lower.
            left = left - drawn.masses
        number = int(np.argmin(left))
        self._last = drawn.points[number : number + 1]
        return number


def _first(rows: Assignment, rng: np.random.Generator) -> int:
    """A row drawn by weight alone."""
    place, order = rng.random(), rows.canonical_order
    if rows.weights is None:
        found = min(int(place * rows.n), rows.n - 1)
    else:
        ends = np.cumsum(rows.weights if order is None else rows.weights[order])
        found = min(int(np.searchsorted(ends, place * ends[-1], side="right")), int(np.searchsorted(ends, ends[-1])))
    return found if order is None else int(order[found])


def _with_equals(rows: Assignment, seeds: NDArray[Any], found: int, rng: np.random.Generator) -> NDArray[Any]:
    """Fewer distinct rows than seeds: the rest are copies, and stay empty."""
    seeds[found:] = rows.take(rng.integers(rows.n, size=len(seeds) - found))
    return seeds


def random_rows(rows: Assignment, k: int, rng: np.random.Generator) -> NDArray[Any]:
    """Rows drawn without repetition, in proportion to their weights."""
    if rows.is_small:
        return _distinct_rows(rows, k, rng)
    if rows.weights is None:
        return rows.take(np.sort(rng.choice(rows.n, k, replace=False)))
    some = np.flatnonzero(rows.weights)
    # The k smallest of exponential times are drawn as without repetition (Efraimidis and Spirakis 2006).
    times = rng.exponential(size=len(some)) / rows.weights[some]
    return rows.take(np.sort(some[np.argpartition(times, k - 1)[:k]]))


def _distinct_rows(rows: Assignment, k: int, rng: np.random.Generator) -> NDArray[Any]:
    """Distinct rows of a small table, drawn by how often they occur: equal rows and weights are then the same thing."""
    table = rows.take(np.arange(rows.n))
    points, which = np.unique(table, axis=0, return_inverse=True)
    counts = np.bincount(which.ravel(), rows.weights, minlength=len(points))
    points, counts = points[counts > 0], counts[counts > 0]
    order = np.argsort(rng.exponential(size=len(points)) / counts, kind="stable")
    seeds = np.empty((k, rows.d), dtype=rows.dtype)
    found = min(k, len(points))
    seeds[:found] = points[order[:found]]
    return seeds if found == k else _with_equals(rows, seeds, found, rng)


def parallel(rows: Assignment, k: int, rng: np.random.Generator) -> NDArray[Any]:
    """k-means||: a few passes draw some 2k rows each; these, weighted by the rows nearest to them, are clustered in memory."""
    from foldwise.data.arrays import ArraySource
    from foldwise.fold.passes import Passes
    from foldwise.models.kmeans.lloyd import settle_down

    distances = Distances(rows)
    base = int(rng.integers(2**62))  # every block draws from a stream of its own
    chosen = [rows.take([_first(rows, rng)])]
    distances.update(chosen[0], chosen[0][:0])
    for turn in range(_ROUNDS):
        total = float(distances.totals.sum())
        if not total > 0:
            break
        picked: dict[int, NDArray[np.intp]] = {}
        for number in range(len(distances.totals)):
            start = number * rows.block_rows
            chance = distances.mass(number) * (_OVERSAMPLING * k / total)
            own = np.random.default_rng([base, turn, number])
            picked[number] = start + np.flatnonzero(own.random(len(chance)) < chance)
        numbers = np.concatenate([picked[number] for number in sorted(picked)])
        if not len(numbers):
            continue
        new = rows.take(numbers)
        for first in range(0, len(new), 256):  # a panel of all at once would not fit the caches
            distances.update(new[first : first + 256], new[:0])
        chosen.append(new)
    points = np.unique(np.concatenate(chosen), axis=0)
    if len(points) <= k:
        return np.concatenate([points, _with_equals(rows, np.empty((k, rows.d), rows.dtype), 0, rng)])[:k]
    rows.assign(points)
    weights = rows.cluster_weights
    rows.forget()
    few = Assignment(Passes(ArraySource(points, weights=weights), n_threads=rows.run.n_threads))
    return settle_down(few, plusplus(few, k, rng))
