"""The classical silhouette: from all pairs of rows, or estimated from the pairs of a sample of rows with all others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from foldwise.data.block import Block, Floats, join
from foldwise.data.recut import RecutSource
from foldwise.data.row_pairs import distance_sums, observed_distance_sums
from foldwise.errors import FoldwiseWarning, ParameterError, warn
from foldwise.fold.passes import Passes
from foldwise.models.kmeans.geometry import Geometry
from foldwise.models.parameters import is_whole, seed_of
from foldwise.selection.cluster_moments import check_row_count, grouped, repetitions
from foldwise.selection.silhouette_result import TWO_CLUSTERS, Silhouette, labelled_rows
from foldwise.selection.squared_silhouette import squared_silhouette_of
from foldwise.stats.array_sum import ArraySum
from foldwise.stats.group_moments import GroupMoments

EXACT_ROWS = 10_000  # up to this many, all rows are evaluated
SAMPLE_SIZE = 2_000
_LEAST_ROWS = 10  # sampled from each cluster, so that its mean has an error bar
_LEAST_HEIGHT, _MOST_HEIGHT, _ROWS_PER_CLUSTER = 1024, 16384, 16  # of the blocks that rows are compared with
_SUMS_AT_ONCE, _VALUES_AT_ONCE = 1_000_000, 4_000_000


def silhouette(
    X: Any,
    labels: Any,
    *,
    metric: str | None = None,
    ignore: Any = None,
    sample_size: int | str | None = "auto",
    random_state: Any = None,
    sample_weight: Any = None,
    values: bool = False,
    missing: str = "error",
    n_threads: int | None = None,
    engine: Any = None,
) -> Silhouette:
    """The silhouette (Rousseeuw 1987), as scikit-learn's `silhouette_score` and `silhouette_samples`.

    `labels` is one label per row, or a fitted model, whose clusters are evaluated in the space in which it compares rows
    (standardised with scale=True, say; for KernelKMeans, the space of the columns). Where a and b are the mean distances from a
    row to the others of its own cluster and to the rows of the nearest other cluster, s = (b - a) / max(a, b), or 0 for a row
    alone in its cluster. A weight counts as repetition of its row.

    Parameters
    ----------
    metric : "euclidean" (the default) or "cosine"; a model has its own.
    ignore : rows with this label are left out (value NaN): -1 for rows without a cluster, which else are a cluster like any
        other, as in scikit-learn. Missing labels (None or NaN) are refused, or left out with ignore=float("nan").
    sample_size : the number of rows to evaluate, each of them against all rows, or None for all. "auto" is all up to 10,000
        rows and with values=True, otherwise 2000. A sample is drawn from every cluster in proportion to its weight (at least
        10 rows), and the result has standard errors. With cosine distances all rows are evaluated, in O(n k) time.
    random_state : the seed of the sample; None is a fixed seed.
    values : whether to return the silhouette of every row.
    missing : "model" compares two rows in the cells that both have, and multiplies their squared distance by columns / such
        cells; pairs without any are left out, and a row with nothing observed has no silhouette (NaN). "error" refuses missing
        cells. A model has its own.

    All pairs of n rows take O(n^2) time. `fw.squared_silhouette` is a different figure, exact in O(n k) time.

    >>> import foldwise as fw
    >>> X = [[0.0], [2.0], [10.0], [12.0]]
    >>> fw.silhouette(X, [0, 0, 1, 1], values=True).values.round(3)
    array([0.818, 0.778, 0.778, 0.818])
    >>> round(fw.silhouette(X, fw.KMeans(2).fit(X)).mean, 3)
    0.798
    """
    if not (sample_size is None or sample_size == "auto" or (is_whole(sample_size) and int(sample_size) >= 1)):
        raise ParameterError(f'sample_size={sample_size!r}: give a number of rows, None for all, or "auto".')
    if sample_size == "auto" and values:
        sample_size = None
    with labelled_rows(X, labels, metric, sample_weight, engine, n_threads, missing, ignore) as opened:
        found = silhouette_of(
            opened.passes,
            opened.labels,
            opened.names,
            geometry=opened.geometry,
            sample_size=sample_size,
            seed=seed_of(random_state),
            values=values,
            observed=opened.observed,
        )
        return opened.numbered_in_all(found)


def silhouette_of(
    passes: Passes,
    labels: NDArray[np.int32],
    names: tuple[Any, ...],
    *,
    geometry: Geometry,
    sample_size: int | str | None = "auto",
    seed: int = 0,
    values: bool = False,
    known: tuple[GroupMoments, float] | None = None,
    observed: bool = False,
) -> Silhouette:
    """The same for rows as they are compared, with labels from 0 to len(names) - 1; `known` is the result of `grouped`.

    If `observed`, cells are missing, and the label of rows with nothing observed is -1.
    """
    groups, scale = grouped(passes, labels, len(names), observed=observed) if known is None else known
    if geometry.squared:
        return squared_silhouette_of(passes, labels, names, values=values, known=(groups, scale))
    if np.count_nonzero(groups.weight) < 2:
        raise ParameterError(TWO_CLUSTERS)
    weights = repetitions(passes)
    check_row_count(labels, len(weights))
    weights[labels < 0] = 0.0
    if weights.sum() < 0.999 * np.count_nonzero(weights):
        warn(
            "sample_weight is taken as a number of repetitions, but adds up to less than the number of rows: rows seem to have "
            "hardly any others in their cluster. Multiply the weights so that their mean is 1, or leave them out.",
            FoldwiseWarning,
        )
    size = sample_size
    if size == "auto":
        size = None if len(weights) <= EXACT_ROWS else SAMPLE_SIZE
    draw = _Draw.of(labels, weights, groups.weight, None if size is None else int(size), seed)
    each = _values(passes, draw.rows, labels, weights, groups.weight, scale, observed=observed)
    means, errors = draw.estimates(each, labels)
    share = groups.weight / groups.weight.sum()
    some = share > 0
    return Silhouette(
        float(share[some] @ means[some]),
        names,
        means,
        groups.weight,
        (each if draw.sampled else _for_all(each, draw.rows, len(weights))) if values else None,
        float(np.sqrt(np.square(share[some] * errors[some]).sum())),
        errors,
        draw.rows if draw.sampled else None,
    )


def _for_all(values: Floats, rows: NDArray[np.intp], n: int) -> Floats:
    """The values of all rows: NaN for those in no cluster."""
    if len(rows) == n:
        return values
    out = np.full(n, np.nan)
    out[rows] = values
    return out


# ---------------------------------------------------------------- which rows


@dataclass(frozen=True)
class _Draw:
    """The rows to evaluate (rising), and how often each counts in the mean of its cluster."""

    rows: NDArray[np.intp]
    counts: Floats
    unseen: Floats  # the share of each cluster's rows that was left out, for the variance of its mean
    sampled: bool

    @classmethod
    def of(
        cls, labels: NDArray[np.int32], weights: Floats, cluster_weights: Floats, size: int | None, seed: int
    ) -> _Draw:
        """All rows, or a sample of about `size` of them: from each cluster in proportion to its weight."""
        n, k = len(weights), len(cluster_weights)
        if size is None or size >= n:
            some = np.flatnonzero(labels >= 0)
            return cls(some, weights[some], np.zeros(k), False)
        wanted = np.rint(size * (cluster_weights / cluster_weights.sum())).astype(np.intp)
        rng, found, counts, unseen = np.random.default_rng([seed, 3]), [], [], np.zeros(k)
        members = np.argsort(labels, kind="stable")
        ends = np.searchsorted(labels[members], np.arange(k + 1))
        for cluster in range(k):
            mine = members[ends[cluster] : ends[cluster + 1]]
            mine = mine[weights[mine] > 0]
            count = max(int(wanted[cluster]), _LEAST_ROWS)
            if len(mine) <= count:
                which, often = mine, weights[mine]
            elif (weights[mine] == weights[mine[0]]).all():
                which, often = np.sort(rng.choice(mine, count, replace=False)), np.ones(count)
                unseen[cluster] = 1.0 - count / len(mine)
            else:  # with replacement: a row of weight 2 is drawn as often as two rows
                sums = np.cumsum(weights[mine])
                drawn = np.minimum(np.searchsorted(sums, rng.random(count) * sums[-1], side="right"), len(mine) - 1)
                places, times = np.unique(drawn, return_counts=True)
                which, often, unseen[cluster] = mine[places], times.astype(np.float64), 1.0
            found.append(which)
            counts.append(often)
        rows = np.concatenate(found)
        order = np.argsort(rows)
        return cls(rows[order], np.concatenate(counts)[order], unseen, True)

    def estimates(self, values: Floats, labels: NDArray[np.int32]) -> tuple[Floats, Floats]:
        """The mean of each cluster and its standard error; NaN for an empty cluster."""
        k, own = len(self.unseen), labels[self.rows]
        weight = np.bincount(own, self.counts, minlength=k)
        some = weight > 0
        means = np.divide(
            np.bincount(own, self.counts * values, minlength=k), weight, where=some, out=np.full(k, np.nan)
        )
        squares = np.bincount(own, self.counts * np.square(values - means[own]), minlength=k)
        freedom = np.maximum(weight - 1.0, 1.0) * np.maximum(weight, 1.0)
        return means, np.where(some, np.sqrt(self.unseen * squares / freedom), np.nan)


# ---------------------------------------------------------------- their silhouettes


def _values(
    passes: Passes,
    rows: NDArray[np.intp],
    labels: NDArray[np.int32],
    weights: Floats,
    cluster_weights: Floats,
    scale: float,
    *,
    observed: bool,
) -> Floats:
    """The silhouettes of some rows (rising): as many at a time as have room, each time with a pass over all rows."""
    k, out = len(cluster_weights), np.empty(len(rows))
    step = max(256, min(_SUMS_AT_ONCE // k, _VALUES_AT_ONCE // max(1, passes.source.n_columns)))
    # Blocks of a height that depends on the number of clusters alone: enough for all threads, few rows to fill up.
    height = min(max(_LEAST_HEIGHT, _ROWS_PER_CLUSTER * k), _MOST_HEIGHT)
    low = passes.over(RecutSource(passes.source, height))
    for start in range(0, len(rows), step):
        some = rows[start : start + step]
        points, own = _gather(passes, some), labels[some]
        if observed:
            sums, compared = low.fold(_ObservedSums(points, k, scale), beside=labels).value
            rest = compared[np.arange(len(own)), own]
        else:
            sums = low.fold(_Sums(points, k, scale), beside=labels).value
            compared, rest = cluster_weights, cluster_weights[own]
        out[start : start + step] = _silhouettes(sums, own, weights[some], compared, rest)
    return out


def _gather(passes: Passes, rows: NDArray[np.intp]) -> Block:
    """These rows, from the blocks that hold them."""
    of_block = rows // passes.block_rows
    inside = {int(number): rows[of_block == number] - number * passes.block_rows for number in np.unique(of_block)}
    found = passes.ask(_take, inside)
    return join([found[number] for number in sorted(found)], 0)


def _take(block: Block, state: Any, inside: NDArray[np.intp]) -> Block:
    return block.take(inside)


@dataclass(frozen=True)
class _Sums:
    """The summed distances from some points to the rows of each cluster."""

    points: Block
    n_clusters: int
    scale: float

    def __call__(self, block: Block, labels: NDArray[np.int32]) -> ArraySum:
        """Those to the rows of a block."""
        numbers = np.ascontiguousarray(labels, dtype=np.int32)
        return ArraySum(distance_sums(self.points, block, numbers, self.n_clusters, self.scale))


@dataclass(frozen=True)
class _ObservedSums(_Sums):
    """The same over the cells that point and row have in common, and the weights of the rows compared."""

    def __call__(self, block: Block, labels: NDArray[np.int32]) -> ArraySum:
        numbers = np.maximum(labels, 0).astype(np.int32)  # a row with nothing observed is compared with no point
        return ArraySum(np.stack(observed_distance_sums(self.points, block, numbers, self.n_clusters, self.scale)))


def _silhouettes(sums: Floats, own: NDArray[np.int32], weights: Floats, compared: Floats, total: Floats) -> Floats:
    """Silhouettes from the summed distances to each cluster, the own cluster, and the weights.

    `compared` are the weights of the clusters, or of the rows of each cluster that a row was compared with; `total` is that of
    its own cluster.
    """
    place = np.arange(len(own))
    rest = total - (weights > 0)  # a row is not compared with itself
    alone = rest <= 1e-12 * np.maximum(total, 1.0)
    a = np.divide(sums[place, own], rest, out=np.zeros(len(own)), where=~alone)
    weight = np.broadcast_to(compared, sums.shape)
    means = np.divide(sums, weight, out=np.full(sums.shape, np.inf), where=weight > 0)
    means[place, own] = np.inf
    b = means.min(axis=1)
    larger = np.maximum(a, b)
    # Where cells are missing, a row may have no cell in common with any other cluster: then b is infinite.
    value = np.divide(b - a, larger, out=np.zeros(len(a)), where=(larger > 0) & (larger < np.inf))
    return np.asarray(np.where(alone, 0.0, value))
