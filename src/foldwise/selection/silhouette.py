"""How well rows lie in their clusters: the silhouette of squared distances, without the n x n matrix of them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from foldwise.data.block import Block, Floats
from foldwise.data.scan import scan
from foldwise.data.source import Source
from foldwise.data.spool import spooled
from foldwise.errors import DataError, ParameterError
from foldwise.fold.passes import Passes
from foldwise.models.base import open_for_use
from foldwise.models.labelled_matrix import LabelledMatrix
from foldwise.stats.extent import Extent
from foldwise.stats.group_moments import GroupMoments

_AT_ONCE = 2_000_000  # distances of some rows to all clusters that are held at a time


@dataclass(frozen=True)
class Silhouette:
    """Values from -1 (nearer to another cluster) over 0 (between two) to 1 (far from all others).

    `mean` is over all rows, `cluster_means` over those of each of `clusters`; `values` has one for each row, if asked for.
    """

    mean: float
    clusters: tuple[Any, ...]
    cluster_means: Floats
    cluster_weights: Floats
    values: Floats | None = None

    @property
    def table(self) -> LabelledMatrix:
        """One line for each cluster."""
        values = np.column_stack([self.cluster_means, self.cluster_weights])
        return LabelledMatrix(values, tuple(str(name) for name in self.clusters), ("silhouette", "weight"))


def silhouette(
    X: Any, labels: Any, *, sample_weight: Any = None, values: bool = False, n_threads: int | None = None
) -> Silhouette:
    """The silhouette (Rousseeuw 1987) of squared Euclidean distances, exactly, in time n k instead of n squared.

    `labels` is one label for each row, or a fitted KMeans, whose clusters (in the space it compares rows in) are then judged.
    With a and b the mean squared distances of a row to the others of its own cluster and to the rows of the nearest other one,
    s = (b - a) / max(a, b); it is 0 for a row alone in its cluster. The mean squared distance to a cluster needs its mean m
    and its mean squared spread V only: |x - m|^2 + V. Weights mean repetition.

    >>> import foldwise as fw
    >>> X = [[0.0], [2.0], [10.0], [12.0]]
    >>> fw.silhouette(X, [0, 0, 1, 1], values=True).values.round(3)
    array([0.967, 0.951, 0.951, 0.967])
    >>> round(fw.silhouette(X, fw.KMeans(2).fit(X)).mean, 3)
    0.959
    """
    if hasattr(labels, "as_compared"):
        source, numbers = _of_model(labels, X, sample_weight)
        names: tuple[Any, ...] = tuple(range(labels.n_clusters_))
    else:
        source = scan(X, weights=sample_weight)
        given = np.asarray(labels)
        if given.ndim != 1:
            raise ParameterError(f"labels of shape {given.shape}: give one label for each row, or a fitted KMeans.")
        found, places = np.unique(given, return_inverse=True)
        names, numbers = tuple(found.tolist()), places.astype(np.int32)
    with spooled(source) as source:
        return judged(source, numbers, names, values=values, n_threads=n_threads)


def _of_model(model: Any, X: Any, sample_weight: Any) -> tuple[Source, NDArray[np.int32]]:
    source = open_for_use(model, X, sample_weight)
    return model.as_compared(source), model.predict(source)


def judged(
    source: Source,
    labels: NDArray[np.int32],
    names: tuple[Any, ...],
    *,
    values: bool = False,
    known: tuple[GroupMoments, float] | None = None,
    n_threads: int | None = None,
) -> Silhouette:
    """The silhouette of rows with labels from 0 to len(names) - 1; what `grouped` gave, if known already, saves a pass."""
    run = Passes(source, n_threads=n_threads)
    groups, scale = grouped(run, labels, len(names)) if known is None else known
    if np.count_nonzero(groups.weight) < 2:
        raise ParameterError("a silhouette compares clusters: there must be at least two of them.")
    scores = _Scores(groups, scale)
    each = np.empty(len(labels)) if values else None
    parts: dict[int, Floats] = {}
    rows_of: dict[int, int] = {}

    def of(block: Block) -> Floats:
        own = _part(block, labels)
        rows_of[block.start] = block.n_rows
        found = scores.of(block, own)
        if each is not None:
            each[block.start : block.start + block.n_rows] = found
        weighted = found if block.weights is None else found * block.weights
        return np.bincount(own, weighted, minlength=len(names)).astype(np.float64)

    run.visit(of, parts.__setitem__)
    rows = sum(rows_of.values())
    if len(labels) > rows:
        raise DataError(f"there are {len(labels)} labels, but {rows} rows", advice="Give one label for each row")
    sums = np.sum([parts[number] for number in sorted(parts)], axis=0)
    some = groups.weight > 0
    means = np.divide(sums, groups.weight, out=np.full(len(names), np.nan), where=some)
    return Silhouette(float(sums.sum() / groups.weight.sum()), names, means, groups.weight, each)


def grouped(run: Passes, labels: NDArray[np.int32], n_groups: int) -> tuple[GroupMoments, float]:
    """The moments of each cluster, in one pass, and the power of two that rows were multiplied by for them.

    That is 1 unless squares would leave float64, which takes two passes more.
    """

    def of(scale: float) -> GroupMoments:
        return run.fold(lambda block: GroupMoments.of(block, _part(block, labels), n_groups, scale))

    groups, scale = of(1.0), 1.0
    if not _in_range(groups):
        scale = _scale_of(run)
        groups = groups if scale == 1.0 else of(scale)
    return groups, scale


def _part(block: Block, labels: NDArray[np.int32]) -> NDArray[np.int32]:
    part = labels[block.start : block.start + block.n_rows]
    if len(part) < block.n_rows:
        raise DataError(f"there are {len(labels)} labels, but more rows", advice="Give one label for each row")
    return part


def _in_range(groups: GroupMoments) -> bool:
    """Whether squares are neither too large nor too small for float64; those of equal rows are 0, which is fine."""
    means = groups.mean[groups.weight > 0]
    with np.errstate(over="ignore"):
        apart = np.square(means - means[:1]).max(initial=0.0)
    spread = groups.squares.max(initial=0.0)
    return bool(np.isfinite(spread) and np.isfinite(apart) and max(spread, apart) > 1e-200)


def _scale_of(run: Passes) -> float:
    """A power of two that brings the data's range near 1."""
    with np.errstate(over="ignore", invalid="ignore"):
        extent = run.fold(Extent.of)
    reach = float((extent.high / 2 - extent.low / 2).max(initial=0.0))
    return 1.0 if reach == 0.0 else 2.0 ** max(-1000, min(-math.frexp(reach)[1], 1000))


class _Scores:
    """The silhouette of the rows of a block."""

    def __init__(self, groups: GroupMoments, scale: float) -> None:
        self._scale = scale
        self._pivot = groups.centre[0][int(np.argmax(groups.weight))]  # near the rows, unlike 0
        self._points = (groups.centre[0] - self._pivot) + groups.centre[1]
        self._norms = np.einsum("ij,ij->i", self._points, self._points)
        some = groups.weight > 0
        self._spread = np.divide(groups.squares.sum(axis=1), groups.weight, out=np.full(len(some), np.inf), where=some)
        # A row is not compared with itself: of a cluster of weight W, W - 1 is left.
        rest = groups.weight - 1.0
        self._alone = rest <= 1e-12 * np.maximum(groups.weight, 1.0)
        self._others = np.divide(groups.weight, rest, out=np.ones(len(some)), where=~self._alone)

    def of(self, block: Block, labels: NDArray[np.int32]) -> Floats:
        rows, out = block.rows, np.empty(block.n_rows)
        step = max(1, _AT_ONCE // max(len(self._norms), block.n_columns))
        for start in range(0, block.n_rows, step):
            some = slice(start, start + step)
            out[some] = self._some(rows[some], labels[some])
        return out

    def _some(self, rows: Any, labels: NDArray[np.int32]) -> Floats:
        distances = self._squared(rows)
        place = np.arange(len(labels))
        distances += self._spread
        a = distances[place, labels] * self._others[labels]
        distances[place, labels] = np.inf
        b = distances.min(axis=1)
        larger = np.maximum(a, b)
        value = np.divide(b - a, larger, out=np.zeros(len(a)), where=larger > 0)
        return np.asarray(np.where(self._alone[labels], 0.0, value))

    def _squared(self, rows: Any) -> Floats:
        """Squared distances to all clusters' means, in float64."""
        if not isinstance(rows, np.ndarray):
            wide = rows.astype(np.float64) * self._scale
            points = self._points + self._pivot
            square = np.asarray(wide.multiply(wide).sum(axis=1)).ravel()
            found = square[:, None] + np.einsum("ij,ij->i", points, points) - 2 * (wide @ points.T)
            return np.asarray(np.maximum(found, 0.0))
        y = rows.astype(np.float64) * self._scale - self._pivot
        square = np.einsum("ij,ij->i", y, y)
        found = square[:, None] + self._norms - 2 * (y @ self._points.T)
        # Where the terms nearly cancel, differences are taken first.
        row, group = np.nonzero(found < 1e-3 * (square[:, None] + self._norms))
        for some in np.array_split(np.arange(len(row)), len(row) * y.shape[1] // _AT_ONCE + 1):
            gap = y[row[some]] - self._points[group[some]]
            found[row[some], group[some]] = np.einsum("ij,ij->i", gap, gap)
        return np.asarray(found)
