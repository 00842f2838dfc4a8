"""Groups with a gap between them: dip tests of the rows on the lines between neighbouring centres.

For two centres a and b, look at the rows that are nearer to the segment from a to b than to any other centre, by their
positions along it. That region is an intersection of half-spaces, so convex: a log-concave density (a ball, a cube, a normal or
a skewed blob; a heavy-tailed elliptical one too) has a single peak there, wherever the centres are, and a gap between a and b
shows as a second one. The centres must not come from the rows that are tested: rows are cut in folds, and each is tested with
centres of the others. Clusters that no gap separates are joined, so that more clusters than there are groups do no harm.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import connected_components
from scipy.special import betainc

from foldwise.data.block import Floats
from foldwise.selection.clusters.criterion import Judgement, vote
from foldwise.selection.clusters.rows import Rows
from foldwise.selection.clusters.sweep import Sweep, Task, contingency, fitted, nearest, refitted, squared_distances
from foldwise.selection.dip_test import dip_of, p_value

FOLDS = 5
_FRESH = 3  # up to so many clusters, the centres of a fold are found anew: all rows together know too much of each
_SAME = 0.5  # Jaccard index above which a cluster of a fold is that of all rows
_GAP = 0.05  # two clusters are apart if one peak has less than this probability
_ANY = 0.01  # for more than two clusters, at least one group must be apart from all others by this
_NEAR, _MANY = (
    4,
    12,
)  # with more than _MANY clusters, rows count if one of the pair is among their _NEAR nearest centres
_MIDDLES = (1 / 3, 1 / 2, 2 / 3)  # where between the centres a valley is looked for
_LEVELS = 0.5  # a column with fewer distinct values than this share of the rows is taken as rounded
_TELLS_APART = 1.05  # distinct rows for each distinct value of a column


class Dip:
    """The largest number of groups that are all separated by gaps; the only criterion that can rule clusters out."""

    name, label, weight = "dip", "groups with gaps between them", 2.0

    def tasks(self, sweep: Sweep) -> list[Task]:
        """The tests, for each number of clusters."""
        return [Task(f"dip {k}", lambda k=k: self._run(sweep, k)) for k in sweep.several]  # type: ignore[misc]

    def _run(self, sweep: Sweep, k: int) -> dict[str, Any]:
        rows: Rows = sweep.remember("smooth", lambda: _unrounded(_once(sweep.rows), sweep.seed))
        groups, chance = separated(rows, sweep.centres(k), sweep.seed)
        return {f"dip {k}": np.array([groups, chance])}

    def judge(self, sweep: Sweep) -> Judgement:
        """The most groups, if there are any at all."""
        ks = sweep.several
        found = {k: sweep.state[f"dip {k}"] for k in ks}
        groups = np.array([found[k][0] for k in ks])
        chances = np.array([found[k][1] for k in ks])
        some = any(found[k][1] < (_GAP if k == 2 else _ANY) for k in ks)
        figures = {"chance": chances}
        if not some:
            least = int(np.argmin(chances))
            needed = _GAP if ks[least] == 2 else _ANY
            reason = f"no gap between groups that is sure enough (at best p = {chances[least]:.2g}, where {needed:g} is needed)"
            return Judgement(vote(self, 1, reason), ks, groups, figures=figures)
        most = int(groups.max())
        at = ks[int(np.argmax(groups))]
        beyond = "" if at == most else f", found with {at} clusters"
        reason = f"{most} groups with gaps between them{beyond} (p < {_GAP:g} for each gap)"
        return Judgement(vote(self, most, reason), ks, groups, figures=figures, at=at)


def separated(rows: Rows, centres: Floats, seed: int) -> tuple[int, float]:
    """How many groups of clusters have gaps between them, and the least probability at which there are two."""
    k, n = len(centres), rows.n
    pairs = neighbours(rows.x, centres)
    if n < 2 * k or not len(pairs):
        return 1, 1.0
    own = nearest(rows.x, centres)
    fold = np.random.default_rng([seed, 7]).permutation(n) % FOLDS
    along: dict[tuple[int, int], list[Floats]] = {pair: [] for pair in pairs}
    weight: dict[tuple[int, int], list[Floats]] = {pair: [] for pair in pairs}
    for number in range(FOLDS):
        inside = fold == number
        others = rows.take(~inside)
        if others.n <= k:
            continue
        moved = _centres_without(others, centres, seed + number)
        there = nearest(rows.x, moved)
        shared = contingency(own, there, k, rows.weight)
        same = np.diag(shared) / np.maximum(shared.sum(axis=0) + shared.sum(axis=1) - np.diag(shared), 1e-300)
        tested = rows.take(inside)
        lines = _Lines(tested.x, moved)
        for a, b in pairs:
            if same[a] >= _SAME and same[b] >= _SAME:
                t, here = lines.between(a, b)
                along[a, b].append(t)
                weight[a, b].append(tested.weight[here])
    chances = np.array([_chance(along[pair], weight[pair]) for pair in pairs])
    return n_groups(k, pairs, chances, _GAP), _bottleneck(k, pairs, chances)


def _centres_without(rows: Rows, centres: Floats, seed: int) -> Floats:
    """The clusters of a part of the rows, numbered like those of all."""
    k = len(centres)
    if k > _FRESH:
        return refitted(rows, centres)
    found = fitted(rows, k, seed, "auto")
    shared = contingency(nearest(rows.x, centres), nearest(rows.x, found), k, rows.weight)
    return np.asarray(found[linear_sum_assignment(-shared)[1]])


def _chance(parts: list[Floats], weights: list[Floats]) -> float:
    if not parts:
        return 1.0
    along, weight = np.concatenate(parts), np.concatenate(weights)
    # Repetition is no evidence: rows of equal weight count as that many rows, whatever the weight (Kish 1965).
    n = float(weight.sum() ** 2 / max(np.square(weight).sum(), 1e-300))
    return min(p_value(dip_of(along, weight).dip, n), _valley(along, weight * (n / max(weight.sum(), 1e-300))))


def _valley(along: Floats, counts: Floats) -> float:
    """The probability that so few rows lie between two centres as against at either of them, if there is one peak.

    With one peak, a stretch has no fewer rows than the lesser of two others as long on either side of it. The dip is a share of
    all rows, and so hardly sees a group of a few beside many, however far apart; this does.
    """
    width = 1 / 3
    near = min(float(counts[np.abs(along - centre) <= width / 2].sum()) for centre in (0.0, 1.0))
    if near < 1.0:
        return 1.0
    between = [float(counts[np.abs(along - middle) <= width / 2].sum()) for middle in _MIDDLES]
    # A binomial distribution, continued to counts that are not whole.
    return min(1.0, len(_MIDDLES) * min(float(betainc(near, here + 1.0, 0.5)) for here in between))


def neighbours(x: Floats, centres: Floats) -> list[tuple[int, int]]:
    """Pairs of clusters that are the two nearest of some row."""
    k = len(centres)
    two = np.sort(np.argpartition(squared_distances(x, centres), 1, axis=1)[:, :2], axis=1)
    return [(int(code) // k, int(code) % k) for code in np.unique(two[:, 0] * k + two[:, 1])]


class _Lines:
    """Rows by their positions on the lines between centres."""

    def __init__(self, x: Floats, centres: Floats) -> None:
        self.x, self.centres, self.k = x, centres, len(centres)
        self.near: NDArray[np.intp] | None = None
        if self.k > _MANY:
            self.near = np.argpartition(squared_distances(x, centres), _NEAR - 1, axis=1)[:, :_NEAR]

    def between(self, a: int, b: int) -> tuple[Floats, NDArray[np.intp]]:
        """The positions of the rows near the segment from a (0) to b (1), and which rows they are."""
        rows = np.arange(len(self.x))
        if self.near is not None:
            rows = np.flatnonzero(((self.near == a) | (self.near == b)).any(axis=1))
        way = self.centres[b] - self.centres[a]
        length = max(float(way @ way), 1e-300)
        x = self.x[rows] - self.centres[a]
        t = x @ way / length
        others = np.delete(self.centres, [a, b], axis=0) - self.centres[a]
        if not len(others):
            return t, rows
        # The point of the segment that is nearest to each other centre; the plane halfway between them bounds the region.
        points = np.clip(others @ way / length, 0.0, 1.0)[:, None] * way
        across, halfway = others - points, (others + points) / 2
        inside = (x @ across.T <= np.einsum("ij,ij->i", across, halfway)).all(axis=1)
        return t[inside], rows[inside]


def n_groups(k: int, pairs: list[tuple[int, int]], chances: Floats, level: float) -> int:
    """How many groups are left if clusters without a gap between them are joined."""
    joined = np.array([pair for pair, chance in zip(pairs, chances, strict=True) if chance >= level]).reshape(-1, 2)
    graph = coo_matrix((np.ones(len(joined)), (joined[:, 0], joined[:, 1])), shape=(k, k))
    return int(connected_components(graph, directed=False)[0])


def _bottleneck(k: int, pairs: list[tuple[int, int]], chances: Floats) -> float:
    """The least level at which there are two groups."""
    for level in np.unique(chances):
        if n_groups(k, pairs, chances, float(np.nextafter(level, 2.0))) > 1:
            return float(level)
    return 1.0


def _once(rows: Rows) -> Rows:
    """Rows that are repeated, each once with its weight.

    Rows are taken as repeated if a single column tells nearly all of them apart: rounded columns do not.
    """
    levels = max(len(np.unique(column)) for column in rows.x.T)
    if rows.x.shape[1] < 2 or levels > _LEVELS * rows.n:
        return rows
    distinct, place = np.unique(rows.x, axis=0, return_inverse=True)
    if len(distinct) > _TELLS_APART * levels:
        return rows
    return replace(rows, x=distinct, weights=np.bincount(place.reshape(-1), rows.weight).astype(np.float64))


def _unrounded(rows: Rows, seed: int) -> Rows:
    """Rows with rounded columns spread over the width of the rounding, which would otherwise look like gaps."""
    x, rng = rows.x.copy(), np.random.default_rng([seed, 8])
    for j in range(x.shape[1]):
        noise = rng.random(rows.n) - 0.5
        levels = np.unique(x[:, j])
        if 1 < len(levels) < _LEVELS * rows.n:
            x[:, j] += noise * np.quantile(np.diff(levels), 0.25)
    return replace(rows, x=x)
