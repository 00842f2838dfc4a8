"""The silhouette of squared distances, computed without the n x n distance matrix."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from foldwise.data.block import Block, Floats
from foldwise.data.scan import scan
from foldwise.errors import DataError, ParameterError
from foldwise.fold.passes import Passes
from foldwise.models.base import n_clusters_of, open_for_use
from foldwise.models.labelled_matrix import LabelledMatrix
from foldwise.models.session import open_passes
from foldwise.stats.extent import Extent
from foldwise.stats.group_moments import GroupMoments

_AT_ONCE = 2_000_000  # distances from rows to clusters held in memory at a time


@dataclass(frozen=True)
class Silhouette:
    """Silhouettes range from -1 (nearer to another cluster) through 0 (between two) to 1 (far from all others).

    `mean` is over all rows, `cluster_means` over the rows of each of `clusters`; `values` has one per row if values=True.
    """

    mean: float
    clusters: tuple[Any, ...]
    cluster_means: Floats
    cluster_weights: Floats
    values: Floats | None = None

    @property
    def table(self) -> LabelledMatrix:
        """One row per cluster."""
        values = np.column_stack([self.cluster_means, self.cluster_weights])
        return LabelledMatrix(values, tuple(str(name) for name in self.clusters), ("silhouette", "weight"))


def silhouette(
    X: Any,
    labels: Any,
    *,
    sample_weight: Any = None,
    values: bool = False,
    n_threads: int | None = None,
    engine: Any = None,
) -> Silhouette:
    """The exact silhouette (Rousseeuw 1987) of squared Euclidean distances, in O(n k) time rather than O(n^2).

    `labels` is one label per row, or a fitted model, whose clusters are evaluated in the space in which it compares rows
    (standardised with scale=True, say; for KernelKMeans, the space of the columns). Where a and b are the mean squared
    distances from a row to the others of its own cluster and to the rows of the nearest other cluster, s = (b - a) / max(a, b),
    or 0 for a row alone in its cluster. The mean squared distance to a cluster depends only on its mean m and its mean squared
    deviation V: |x - m|^2 + V. A weight counts as repetition of its row.

    >>> import foldwise as fw
    >>> X = [[0.0], [2.0], [10.0], [12.0]]
    >>> fw.silhouette(X, [0, 0, 1, 1], values=True).values.round(3)
    array([0.967, 0.951, 0.951, 0.967])
    >>> round(fw.silhouette(X, fw.KMeans(2).fit(X)).mean, 3)
    0.959
    """
    if hasattr(labels, "predict"):
        model = labels
        if model.__sklearn_tags__().input_tags.pairwise:
            raise ParameterError(
                "a precomputed kernel has no rows to compute distances from. Pass labels and the rows themselves."
            )
        with open_passes(open_for_use(model, X, sample_weight), engine=engine, n_threads=n_threads) as passes:
            numbers = model.predict(passes.source)
            seen = model.as_compared(passes.source) if hasattr(model, "as_compared") else passes.source
            names: tuple[Any, ...] = tuple(range(n_clusters_of(model)))
            return silhouette_of(passes.over(seen), numbers, names, values=values)
    given = np.asarray(labels)
    if given.ndim != 1:
        raise ParameterError(f"labels of shape {given.shape}: pass one label per row, or a fitted model.")
    found, numbers = np.unique(given, return_inverse=True)
    with open_passes(scan(X, weights=sample_weight), engine=engine, n_threads=n_threads) as passes:
        return silhouette_of(passes, numbers.astype(np.int32), tuple(found.tolist()), values=values)


def silhouette_of(
    passes: Passes,
    labels: NDArray[np.integer],
    names: tuple[Any, ...],
    *,
    values: bool = False,
    known: tuple[GroupMoments, float] | None = None,
) -> Silhouette:
    """The silhouette of rows with labels from 0 to len(names) - 1; passing the result of `grouped` saves a pass."""
    groups, scale = grouped(passes, labels, len(names)) if known is None else known
    if np.count_nonzero(groups.weight) < 2:
        raise ParameterError("a silhouette compares clusters, so there must be at least two.")
    parts = passes.each(_Scores.about(groups, scale, values), beside=labels)
    rows = sum(n_rows for n_rows, _, _ in parts)
    if len(labels) > rows:
        raise DataError(f"there are {len(labels)} labels, but {rows} rows", advice="Pass one label per row")
    sums = np.sum([part for _, part, _ in parts], axis=0)
    some = groups.weight > 0
    means = np.divide(sums, groups.weight, out=np.full(len(names), np.nan), where=some)
    each = np.concatenate([part for _, _, part in parts]) if values else None
    return Silhouette(float(sums.sum() / groups.weight.sum()), names, means, groups.weight, each)


def grouped(passes: Passes, labels: NDArray[np.integer], n_groups: int) -> tuple[GroupMoments, float]:
    """The moments of each cluster, in one pass, and the power of two by which rows were multiplied.

    The factor is 1 unless squares would leave the range of float64, which takes two more passes.
    """
    groups, scale = passes.fold(partial(_moments, n_groups=n_groups), beside=labels), 1.0
    if not _in_range(groups):
        scale = _scale_of(passes)
        if scale != 1.0:
            groups = passes.fold(partial(_moments, n_groups=n_groups, scale=scale), beside=labels)
    return groups, scale


def _moments(block: Block, labels: NDArray[np.int32], *, n_groups: int, scale: float = 1.0) -> GroupMoments:
    if len(labels) < block.n_rows:
        raise DataError("there are fewer labels than rows", advice="Pass one label per row")
    return GroupMoments.of(block, labels, n_groups, scale)


def _in_range(groups: GroupMoments) -> bool:
    """Whether squares neither overflow nor underflow float64; those of equal rows are 0, which is fine."""
    means = groups.mean[groups.weight > 0]
    with np.errstate(over="ignore"):
        apart = np.square(means - means[:1]).max(initial=0.0)
    spread = groups.squares.max(initial=0.0)
    return bool(np.isfinite(spread) and np.isfinite(apart) and max(spread, apart) > 1e-200)


def _scale_of(passes: Passes) -> float:
    """A power of two that scales the range of the data to about 1."""
    with np.errstate(over="ignore", invalid="ignore"):
        extent = passes.fold(Extent.of)
    reach = float((extent.high / 2 - extent.low / 2).max(initial=0.0))
    return 1.0 if reach == 0.0 else 2.0 ** max(-1000, min(-math.frexp(reach)[1], 1000))


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
