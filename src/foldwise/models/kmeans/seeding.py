"""Where to start: greedy k-means++ (Arthur and Vassilvitskii 2007), k-means|| (Bahmani and others 2012) or random rows."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from foldwise.data.block import Block, Floats
from foldwise.errors import ParameterError
from foldwise.models.kmeans.rows import Rows

_ROUNDS = 5  # of k-means||
_OVERSAMPLING = 2


class Distances:
    """Every row's squared distance to its nearest seed so far, and rows drawn in proportion to it."""

    def __init__(self, rows: Rows) -> None:
        self.rows = rows
        self.closest = np.full(rows.n, np.finfo(rows.dtype).max, dtype=rows.dtype)
        self.totals = np.zeros(math.ceil(rows.n / rows.block_rows))

    def update(self, seeds: NDArray[Any], candidates: NDArray[Any]) -> Floats:
        """One pass: bring distances up to date with new seeds; the sum of them that each candidate would leave."""
        rows, points = self.rows, np.concatenate([seeds, candidates])
        targets = rows.targets(np.ascontiguousarray(points))
        potentials: dict[int, Floats] = {}

        def of(block: Block) -> tuple[float, Floats]:
            found: tuple[float, Floats] = targets.closer(
                block.rows, block.weights, len(seeds), rows.part(block, self.closest)
            )
            return found

        def take(number: int, found: tuple[float, Floats]) -> None:
            self.totals[number], potentials[number] = found

        rows.run.visit(of, take)
        return np.asarray(np.sum([potentials[number] for number in sorted(potentials)], axis=0))

    def draw(self, count: int, rng: np.random.Generator) -> NDArray[np.intp]:
        """Rows drawn with probability in proportion to weight times squared distance."""
        ends = np.cumsum(self.totals)
        where = np.sort(rng.random(count)) * ends[-1]
        numbers = np.minimum(np.searchsorted(ends, where, side="right"), len(ends) - 1)
        out = np.empty(count, dtype=np.intp)
        for number in np.unique(numbers):
            here = numbers == number
            start = int(number) * self.rows.block_rows
            inside = np.cumsum(self._mass(start))
            left = where[here] - (ends[number] - self.totals[number])
            # The block's own sum was rounded in another way: scaled to it, nobody falls off the end.
            left *= inside[-1] / self.totals[number] if self.totals[number] > 0 else 0.0
            place = np.searchsorted(inside, left, side="right")
            last = int(np.flatnonzero(np.diff(inside, prepend=0.0) > 0)[-1]) if inside[-1] > 0 else len(inside) - 1
            out[here] = start + np.minimum(place, last)
        rng.shuffle(out)
        return out

    def _mass(self, start: int) -> Floats:
        stop = min(start + self.rows.block_rows, self.rows.n)
        mass = self.closest[start:stop].astype(np.float64)
        weights = self.rows.weights
        return mass if weights is None else mass * weights[start:stop]


def plusplus(rows: Rows, k: int, rng: np.random.Generator) -> NDArray[Any]:
    """Greedy k-means++: of a few rows drawn by squared distance, the one that lowers the sum most is the next seed.

    One pass a seed: distances to the last seed are brought up to date in the pass that tries the next candidates. These are drawn
    from the distances before, and kept with the probability by which the last seed has lowered theirs: exactly as if they
    were drawn after.
    """
    trials = 2 + int(math.log(k))
    seeds = np.empty((k, rows.d), dtype=rows.dtype)
    seeds[0] = rows.take([_first(rows, rng)])[0]
    distances = Distances(rows)
    distances.update(seeds[:1], seeds[:0])
    pending = seeds[:0]
    for number in range(1, k):
        if not distances.totals.sum() > 0:
            return _with_equals(rows, seeds, number, rng)
        candidates = _candidates(distances, pending, trials, rng)
        if candidates is None:  # the last seed left nothing of what the distances promised
            distances.update(pending, seeds[:0])
            pending = seeds[:0]
            if not distances.totals.sum() > 0:
                return _with_equals(rows, seeds, number, rng)
            candidates = _candidates(distances, pending, trials, rng)
            assert candidates is not None
        potentials = distances.update(pending, candidates)
        seeds[number] = candidates[int(np.argmin(potentials))]
        pending = seeds[number : number + 1]
    return seeds


def _candidates(
    distances: Distances, pending: NDArray[Any], trials: int, rng: np.random.Generator
) -> NDArray[Any] | None:
    """Rows drawn by their distance to the nearest seed, those in `pending` included."""
    rows = distances.rows
    if not len(pending):
        return rows.take(distances.draw(trials, rng))
    kept: list[NDArray[Any]] = []
    for _ in range(20):
        drawn = distances.draw(2 * trials, rng)
        points = rows.take(drawn)
        now = np.full(len(drawn), np.inf)
        for seed in pending:
            gap = rows.frame.seen(points) - rows.frame.seen(seed[None])
            now = np.minimum(now, np.einsum("ij,ij->i", gap, gap))
        before = distances.closest[drawn].astype(np.float64)
        kept += list(points[rng.random(len(drawn)) * before < now])
        if len(kept) >= trials:
            return np.asarray(kept[:trials])
    return np.asarray(kept) if kept else None


def _first(rows: Rows, rng: np.random.Generator) -> int:
    if rows.weights is None:
        return int(rng.integers(rows.n))
    ends = np.cumsum(rows.weights)
    place = int(np.searchsorted(ends, rng.random() * ends[-1], side="right"))
    return min(place, int(np.flatnonzero(rows.weights)[-1]))


def _with_equals(rows: Rows, seeds: NDArray[Any], found: int, rng: np.random.Generator) -> NDArray[Any]:
    """Fewer distinct rows than seeds: the rest are copies, and stay empty."""
    seeds[found:] = rows.take(rng.integers(rows.n, size=len(seeds) - found))
    return seeds


def random_rows(rows: Rows, k: int, rng: np.random.Generator) -> NDArray[Any]:
    """Rows drawn without repetition, in proportion to their weights."""
    if rows.weights is None:
        return rows.take(np.sort(rng.choice(rows.n, k, replace=False)))
    some = np.flatnonzero(rows.weights)
    if len(some) < k:
        raise ParameterError(f"n_clusters={k} is more than the {len(some)} rows whose weight is not 0.")
    # The k smallest of exponential times are drawn as without repetition (Efraimidis and Spirakis 2006).
    times = rng.exponential(size=len(some)) / rows.weights[some]
    return rows.take(np.sort(some[np.argpartition(times, k - 1)[:k]]))


def parallel(rows: Rows, k: int, rng: np.random.Generator, seed: int) -> NDArray[Any]:
    """k-means||: a few passes draw some 2k rows each; these, weighted by the rows nearest to them, are clustered in memory."""
    from foldwise.data.arrays import ArraySource
    from foldwise.fold.run import Run
    from foldwise.models.kmeans.lloyd import settle_down

    distances = Distances(rows)
    chosen = [rows.take([_first(rows, rng)])]
    distances.update(chosen[0], chosen[0][:0])
    for turn in range(_ROUNDS):
        total = float(distances.totals.sum())
        if not total > 0:
            break
        picked: dict[int, NDArray[np.intp]] = {}
        for number in range(len(distances.totals)):
            start = number * rows.block_rows
            chance = distances._mass(start) * (_OVERSAMPLING * k / total)
            own = np.random.default_rng([seed, turn, number])
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
    few = Rows(Run(ArraySource(points, weights=weights), n_threads=rows.run.n_threads))
    return settle_down(few, plusplus(few, k, rng))
