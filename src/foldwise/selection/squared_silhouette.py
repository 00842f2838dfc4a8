"""The silhouette of squared distances, exact in O(n k) time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from foldwise.data.block import Block, Floats
from foldwise.errors import DataError, ParameterError
from foldwise.fold.passes import Passes
from foldwise.selection.cluster_moments import check_row_count, grouped
from foldwise.selection.silhouette_result import TWO_CLUSTERS, Silhouette, labelled_rows
from foldwise.stats.group_moments import GroupMoments

_AT_ONCE = 2_000_000  # distances from rows to clusters held in memory at a time


def squared_silhouette(
    X: Any,
    labels: Any,
    *,
    ignore: Any = None,
    sample_weight: Any = None,
    values: bool = False,
    n_threads: int | None = None,
    engine: Any = None,
) -> Silhouette:
    """The silhouette with squared Euclidean distances, exact in O(n k) time: for tables of any size.

    `labels` is one label per row, or a fitted model, and `ignore` a label of rows to leave out, as for `fw.silhouette`. The
    mean squared distance from a row to a cluster depends only on the cluster's mean m and its mean squared deviation V:
    |x - m|^2 + V. Squares exaggerate differences, so this silhouette is further from 0 than the classical one: compare it only
    with itself, and note that it may prefer another number of clusters. scikit-learn calls it metric="sqeuclidean". A weight
    counts as repetition of its row.

    >>> import foldwise as fw
    >>> X = [[0.0], [2.0], [10.0], [12.0]]
    >>> fw.squared_silhouette(X, [0, 0, 1, 1], values=True).values.round(3)
    array([0.967, 0.951, 0.951, 0.967])
    """
    with labelled_rows(X, labels, None, sample_weight, engine, n_threads, ignore=ignore) as opened:
        if opened.observed:
            raise DataError("squared distances need whole rows, but cells are missing", advice="Use fw.silhouette")
        found = squared_silhouette_of(opened.passes, opened.labels, opened.names, values=values)
        return opened.numbered_in_all(found)


def squared_silhouette_of(
    passes: Passes,
    labels: NDArray[np.integer],
    names: tuple[Any, ...],
    *,
    values: bool = False,
    known: tuple[GroupMoments, float] | None = None,
) -> Silhouette:
    """The same for rows with labels from 0 to len(names) - 1; passing the result of `grouped` saves a pass."""
    groups, scale = grouped(passes, labels, len(names)) if known is None else known
    if np.count_nonzero(groups.weight) < 2:
        raise ParameterError(TWO_CLUSTERS)
    parts = passes.each(_Scores.about(groups, scale, values), beside=labels)
    check_row_count(labels, sum(n_rows for n_rows, _, _ in parts))
    sums = np.sum([part for _, part, _ in parts], axis=0)
    some = groups.weight > 0
    means = np.divide(sums, groups.weight, out=np.full(len(names), np.nan), where=some)
    each = np.concatenate([part for _, _, part in parts]) if values else None
    mean = float(sums.sum() / groups.weight.sum())
    return Silhouette(mean, names, means, groups.weight, each, cluster_errors=np.where(some, 0.0, np.nan))


@dataclass(frozen=True)
class _Scores:
    """The silhouettes of the rows of a block: their number, their weighted sum by cluster and, with `values`, all of them."""

    scale: float
    pivot: Floats
    points: Floats  # cluster means minus the pivot
    spread: Floats
    alone: NDArray[np.bool_]
    others: Floats
    values: bool

    @classmethod
    def about(cls, groups: GroupMoments, scale: float, values: bool) -> _Scores:
        pivot = groups.centre[0][int(np.argmax(groups.weight))]  # close to the rows, unlike 0
        some = groups.weight > 0
        spread = np.divide(groups.squares.sum(axis=1), groups.weight, out=np.full(len(some), np.inf), where=some)
        # A row is not compared with itself: in a cluster of weight W, W - 1 remains.
        rest = groups.weight - 1.0
        alone = rest <= 1e-12 * np.maximum(groups.weight, 1.0)
        others = np.divide(groups.weight, rest, out=np.ones(len(some)), where=~alone)
        return cls(scale, pivot, (groups.centre[0] - pivot) + groups.centre[1], spread, alone, others, values)

    def __call__(self, block: Block, labels: NDArray[np.integer]) -> tuple[int, Floats, Floats | None]:
        found = np.empty(block.n_rows)
        step = max(1, _AT_ONCE // max(len(self.points), block.n_columns))
        for start in range(0, block.n_rows, step):
            some = slice(start, start + step)
            found[some] = self._of(block.take(some), labels[some])
        weighted = found if block.weights is None else found * block.weights
        sums = np.bincount(labels, weighted, minlength=len(self.points)).astype(np.float64)
        return block.n_rows, sums, found if self.values else None

    def _of(self, block: Block, labels: NDArray[np.integer]) -> Floats:
        distances = block.squared_distances(self.points, self.pivot, self.scale)
        distances += self.spread
        place = np.arange(len(labels))
        a = distances[place, labels] * self.others[labels]
        distances[place, labels] = np.inf
        b = distances.min(axis=1)
        larger = np.maximum(a, b)
        value = np.divide(b - a, larger, out=np.zeros(len(a)), where=larger > 0)
        return np.asarray(np.where(self.alone[labels], 0.0, value))
