"""How the clusters and the categories of a table go together: counts of each level in each cluster."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from foldwise.data.block import Block, Floats
from foldwise.data.missing import allow_missing
from foldwise.data.source import count_rows
from foldwise.fold.passes import Passes
from foldwise.models.base import with_missing
from foldwise.selection.agreement import adjusted_rand_of
from foldwise.stats.array_sum import ArraySum
from foldwise.stats.contingency import Contingency


@dataclass(frozen=True)
class CategoryCounts:
    """The weight of every level (columns) in every cluster (rows) where the category is known.

    `agreement` is the adjusted Rand index of the clusters and the levels: 1 if they are the same groups, 0 on average if they
    have nothing to do with each other. `association` is Cramer's V, from 0 to 1.
    """

    name: str
    levels: tuple[str, ...]
    counts: Floats
    is_label: bool

    @property
    def shares(self) -> Floats:
        """The share of each level in each cluster."""
        total = self.counts.sum(axis=1, keepdims=True)
        return np.asarray(np.divide(self.counts, total, out=np.full_like(self.counts, np.nan), where=total > 0))

    @property
    def overall(self) -> Floats:
        """The share of each level in all rows."""
        return np.asarray(self.counts.sum(axis=0) / self.counts.sum())

    @property
    def association(self) -> float:
        """Cramer's V."""
        counts = self.counts[self.counts.sum(axis=1) > 0][:, self.counts.sum(axis=0) > 0]
        if min(counts.shape) < 2:
            return 0.0
        expected = np.outer(counts.sum(axis=1), counts.sum(axis=0)) / counts.sum()
        chi2 = float(((counts - expected) ** 2 / expected).sum())
        return float(np.sqrt(chi2 / counts.sum() / (min(counts.shape) - 1)))

    @property
    def agreement(self) -> float:
        """The adjusted Rand index (Hubert and Arabie 1985).

        >>> CategoryCounts("a", ("x", "y"), np.array([[3.0, 0.0], [0.0, 2.0]]), True).agreement
        1.0
        """
        return adjusted_rand_of(Contingency.of_table(self.counts))


@dataclass(frozen=True)
class _CountLevels:
    """Counts a block's codes by cluster: for each category a table of clusters and levels, side by side."""

    clusters: int
    sizes: tuple[int, ...]

    def __call__(self, block: Block, labels: NDArray[np.intp]) -> ArraySum:
        """The weights of the levels, of all categories, in each cluster."""
        codes, weights = block.unchecked, np.ones(block.n_rows) if block.weights is None else block.weights
        parts = []
        for j, size in enumerate(self.sizes):
            known = (codes[:, j] >= 0) & (labels >= 0)
            place = labels[known].astype(np.intp) * size + codes[known, j].astype(np.intp)
            parts.append(np.bincount(place, weights[known], self.clusters * size).reshape(self.clusters, size))
        return ArraySum(np.concatenate(parts, axis=1))


def describe_clusters(source: Any, labels: NDArray[Any], n_clusters: int) -> list[CategoryCounts]:
    """How the categories that describe a prepared table, and its labels, are spread over clusters; the closest first.

    Takes one query for the levels and one pass.
    """
    from foldwise.prepare.prepared import describing

    found = describing(source)
    if found is None:
        return []
    codes, columns = found
    sizes = tuple(len(levels.levels) for levels, _ in columns)
    counted = Passes(allow_missing(codes)).fold(_CountLevels(n_clusters, sizes), beside=labels).value
    ends = np.cumsum(sizes)[:-1]
    tables = [
        CategoryCounts(levels.name, levels.levels, part, is_label)
        for (levels, is_label), part in zip(columns, np.split(counted, ends, axis=1), strict=True)
        if part.sum() > 0
    ]
    return sorted(tables, key=lambda one: (not one.is_label, -one.association))


@dataclass(frozen=True)
class CategoryScores:
    """Where the levels of a category lie along components: mean scores (levels x components), in standard deviations.

    `explained` is the share of each component's variance that lies between the levels (the squared correlation ratio).
    """

    name: str
    levels: tuple[str, ...]
    shares: Floats
    means: Floats
    explained: Floats
    is_label: bool


@dataclass(frozen=True)
class _ScoreSums:
    """Sums by level: the weight, the scores and their squares."""

    sizes: tuple[int, ...]

    def __call__(self, block: Block, scores: Floats) -> ArraySum:
        """The sums of all categories below each other: a row for each level."""
        codes, weights = block.unchecked, np.ones(block.n_rows) if block.weights is None else block.weights
        terms = np.column_stack([np.ones(block.n_rows), scores, scores**2]) * weights[:, None]
        parts = []
        for j, size in enumerate(self.sizes):
            known = codes[:, j] >= 0
            place = codes[known, j].astype(np.intp)
            parts.append(np.column_stack([np.bincount(place, term[known], size) for term in terms.T]))
        return ArraySum(np.concatenate(parts))


@dataclass(frozen=True)
class _FirstScores:
    """The scores on the first components."""

    of: Any
    most: int

    def __call__(self, block: Block) -> Floats:
        return np.asarray(self.of(block)[:, : self.most], dtype=np.float64)


_MOST_ROWS = 2_000_000  # whose scores are held in memory


def describe_components(model: Any, source: Any, most: int = 3) -> list[CategoryScores]:
    """Where the categories that describe a prepared table, and its labels, lie along the first components, closest first."""
    from foldwise.prepare.prepared import describing

    found = describing(source)
    if found is None:
        return []
    codes, columns = found
    told = model.row_output(with_missing(model, source))
    if count_rows(told.source, _MOST_ROWS + 1) > _MOST_ROWS:
        return []
    scores = Passes(told.source, n_threads=model.n_threads).rows(_FirstScores(told.of, most))
    sizes = tuple(len(levels.levels) for levels, _ in columns)
    sums = Passes(allow_missing(codes)).fold(_ScoreSums(sizes), beside=scores).value
    tables, m = [], scores.shape[1]
    for (levels, is_label), part in zip(columns, np.split(sums, np.cumsum(sizes)[:-1]), strict=True):
        weight = part[:, 0]
        total = weight.sum()
        if total == 0:
            continue
        mean = part[:, 1 : m + 1].sum(axis=0) / total
        variance = np.maximum(part[:, m + 1 :].sum(axis=0) / total - mean**2, 0.0)
        means = part[:, 1 : m + 1] / np.where(weight > 0, weight, 1.0)[:, None]
        between = (weight[:, None] * (means - mean) ** 2).sum(axis=0) / total
        spread = np.sqrt(np.where(variance > 0, variance, 1.0))
        explained = np.where(variance > 0, between / np.where(variance > 0, variance, 1.0), 0.0)
        tables.append(
            CategoryScores(levels.name, levels.levels, weight / total, (means - mean) / spread, explained, is_label)
        )
    return sorted(tables, key=lambda one: (not one.is_label, -float(one.explained.max(initial=0.0))))
