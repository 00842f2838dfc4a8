"""How compact clusters are, and how far apart: figures of their means and of the distances of their rows to these."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from foldwise.data.block import Block, Floats
from foldwise.errors import DataError, ParameterError
from foldwise.fold.passes import Passes
from foldwise.selection.cluster_moments import check_row_count, grouped
from foldwise.selection.silhouette_result import LabelledRows, labelled_rows
from foldwise.stats.array_sum import ArraySum
from foldwise.stats.group_moments import GroupMoments
from foldwise.stats.two_part_mean import distance

_AT_ONCE = 1_000_000  # values of rows held in memory at a time


def calinski_harabasz(
    X: Any,
    labels: Any,
    *,
    ignore: Any = None,
    sample_weight: Any = None,
    n_threads: int | None = None,
    engine: Any = None,
) -> float:
    """The variance ratio (Calinski and Harabasz 1974): variance between the clusters over that within; higher is better.

    `labels` is one label per row, or a fitted model, and `ignore` a label of rows to leave out, as for `fw.silhouette`. Both
    variances are per degree of freedom: (B / (k - 1)) / (W / (n - k)). A weight counts as repetition of its row. One pass. It
    is infinite if all rows of each cluster are equal (scikit-learn says 1).

    >>> import foldwise as fw
    >>> fw.calinski_harabasz([[0.0], [2.0], [10.0], [12.0]], [0, 0, 1, 1])
    50.0
    """
    with labelled_rows(X, labels, None, sample_weight, engine, n_threads, ignore=ignore) as opened:
        return calinski_harabasz_of(moments_of(opened)[0])


def davies_bouldin(
    X: Any,
    labels: Any,
    *,
    ignore: Any = None,
    sample_weight: Any = None,
    n_threads: int | None = None,
    engine: Any = None,
) -> float:
    """The index of Davies and Bouldin (1979), as scikit-learn's: lower is better, and 0 is best.

    Of every cluster the worst neighbour counts: the sum of their radii (mean distance to the mean) over the distance of their
    means; the index is the mean over the clusters. Labels, `ignore` and weights are as for `fw.silhouette`. Two passes.
    Clusters with the same mean are infinitely bad (scikit-learn leaves such pairs out).

    >>> import foldwise as fw
    >>> fw.davies_bouldin([[0.0], [2.0], [10.0], [12.0]], [0, 0, 1, 1])
    0.2
    """
    with labelled_rows(X, labels, None, sample_weight, engine, n_threads, ignore=ignore) as opened:
        known = moments_of(opened)
        return davies_bouldin_of(known[0], radii(opened.passes, opened.labels, known))


def dunn(
    X: Any,
    labels: Any,
    *,
    ignore: Any = None,
    sample_weight: Any = None,
    n_threads: int | None = None,
    engine: Any = None,
) -> float:
    """A generalised Dunn index (Bezdek and Pal 1998): least distance of two means over the largest diameter; higher is better.

    A diameter is twice the mean distance of a cluster's rows to their mean. Dunn's own index takes the least distance of two
    rows and the largest, so that a single row decides it, and all pairs are needed; this one (GD43 in their table) takes two
    passes. Labels, `ignore` and weights are as for `fw.silhouette`.

    >>> import foldwise as fw
    >>> fw.dunn([[0.0], [2.0], [10.0], [12.0]], [0, 0, 1, 1])
    5.0
    """
    with labelled_rows(X, labels, None, sample_weight, engine, n_threads, ignore=ignore) as opened:
        known = moments_of(opened)
        return dunn_of(known[0], radii(opened.passes, opened.labels, known))


def moments_of(opened: LabelledRows) -> tuple[GroupMoments, float]:
    """What `grouped` gives, of rows that can be judged by it."""
    if opened.observed:
        raise DataError(
            "this score needs whole rows, but cells are missing", advice="Use fw.silhouette, or fill them first"
        )
    return grouped(opened.passes, opened.labels, len(opened.names))


# ---------------------------------------------------------------- from moments, for whoever has them


def calinski_harabasz_of(groups: GroupMoments) -> float:
    """The variance ratio, from the moments of each cluster alone; empty clusters do not count."""
    k, n = _count(groups), float(groups.weight.sum())
    if n <= k:
        raise ParameterError("the variance ratio compares variances, so there must be more rows than clusters.")
    gaps = distance(groups.whole().centre[:, None, :], groups.centre)
    between = float((groups.weight[:, None] * np.square(gaps)).sum())
    within = float(groups.squares.sum())
    return between / (k - 1) / (within / (n - k)) if within > 0 else float("inf")


def davies_bouldin_of(groups: GroupMoments, radii: Floats) -> float:
    """The index, from the moments of each cluster and its radius, in the same units."""
    k, some = _count(groups), groups.weight > 0
    centres, sizes = groups.centre[:, some], radii[some]
    worst = np.zeros(k)
    for i in range(k):
        apart, sums = _distances(centres, i), sizes[i] + sizes
        # Two clusters in one point are not apart, but neither is there anything that overlaps.
        ratio = np.divide(sums, apart, out=np.where(sums > 0, np.inf, 0.0), where=apart > 0)
        ratio[i] = 0.0
        worst[i] = ratio.max()
    return float(worst.mean())


def dunn_of(groups: GroupMoments, radii: Floats) -> float:
    """The index, from the moments of each cluster and its radius, in the same units."""
    k, some = _count(groups), groups.weight > 0
    centres, least = groups.centre[:, some], float("inf")
    for i in range(k - 1):
        least = min(least, float(_distances(centres, i)[i + 1 :].min()))
    largest = 2 * float(radii[some].max())
    return least / largest if largest > 0 else float("inf") if least > 0 else 0.0


def radii(passes: Passes, labels: NDArray[np.integer], known: tuple[GroupMoments, float]) -> Floats:
    """The mean distance of each cluster's rows to their mean, in one pass, in the units of `known` (see `grouped`)."""
    groups, scale = known
    pivot = groups.centre[0][int(np.argmax(groups.weight))]  # close to the rows, unlike 0
    sums = passes.fold(_DistanceSums(scale, pivot, (groups.centre[0] - pivot) + groups.centre[1]), beside=labels).value
    check_row_count(labels, int(sums[-1]))
    return np.asarray(np.divide(sums[:-1], groups.weight, out=np.zeros(len(groups.weight)), where=groups.weight > 0))


def _count(groups: GroupMoments) -> int:
    k = int(np.count_nonzero(groups.weight))
    if k < 2:
        raise ParameterError("this score compares clusters, so there must be at least two.")
    return k


def _distances(centres: Floats, i: int) -> Floats:
    return np.asarray(np.sqrt(np.square(distance(centres[:, i : i + 1], centres)).sum(axis=1)))


@dataclass(frozen=True)
class _DistanceSums:
    """The summed distances of a block's rows to the means of their clusters, and after them the number of rows."""

    scale: float
    pivot: Floats
    points: Floats  # cluster means minus the pivot

    def __call__(self, block: Block, labels: NDArray[np.integer]) -> ArraySum:
        found = np.empty(block.n_rows)
        step = max(1, _AT_ONCE // max(len(self.points) if block.sparse else 1, block.n_columns))
        for start in range(0, block.n_rows, step):
            some = slice(start, start + step)
            found[some] = self._of(block.take(some), labels[some])
        np.sqrt(found, out=found)
        weighted = found if block.weights is None else found * block.weights
        sums = np.bincount(labels, weighted, minlength=len(self.points))
        return ArraySum(np.append(sums, float(block.n_rows)))

    def _of(self, block: Block, labels: NDArray[np.integer]) -> Floats:
        if block.sparse:  # a difference would make it dense
            everywhere = block.squared_distances(self.points, self.pivot, self.scale)
            return np.asarray(everywhere[np.arange(len(labels)), labels])
        gaps = block.dense().astype(np.float64)
        if self.scale != 1.0:
            gaps *= self.scale
        gaps -= self.pivot
        gaps -= self.points[labels]
        return np.asarray(np.einsum("ij,ij->i", gaps, gaps))
