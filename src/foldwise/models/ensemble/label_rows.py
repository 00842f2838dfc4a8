"""Passes over distinct label rows: how often base clusters occur together, and which cluster each row scores highest for."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from foldwise.data.arrays import ArraySource
from foldwise.data.block import Block, Floats
from foldwise.data.cache import cached
from foldwise.fold.passes import Passes
from foldwise.kernels.targets import Labels
from foldwise.models.ensemble.clusterings import Clusterings
from foldwise.stats.array_sum import ArraySum

_AT_ONCE = 1 << 21  # scores held in memory at a time
_NOTHING = 1e-10  # of the largest entry: shorter rows of a spectral embedding are 0 but for rounding
_MOST_DRAWN = 2**53  # rows that weights stand for, beyond which whole numbers are not exact
_TIE = (
    1e-11  # relative difference below which scores are equal: label rows have many ties, which rounding must not decide
)


class LabelRows:
    """Distinct label rows with their weights, in memory, cut into blocks."""

    def __init__(self, clusterings: Clusterings, weights: Floats, passes: Passes | None = None) -> None:
        self.clusterings, self.weights, self.n = clusterings, weights, clusterings.n_rows
        dtype = np.float64 if clusterings.soft else np.float32  # labels are small whole numbers
        source = cached(ArraySource(clusterings.values.astype(dtype), weights=weights))
        self.passes = Passes(source) if passes is None else passes.over(source, here=True)

    @cached_property
    def present(self) -> NDArray[np.bool_]:
        """Which rows have a label in some clustering; the others belong nowhere."""
        return np.asarray(self.clusterings.presence().any(axis=1))

    @property
    def counted(self) -> int:
        """How many rows have a label and a weight."""
        return int(np.count_nonzero(self.present & (self.weights > 0)))

    @cached_property
    def weight(self) -> float:
        """The weight of all rows with a label."""
        return float(self.weights[self.present].sum())

    @cached_property
    def gram(self) -> Floats:
        """B'B: how often each pair of base clusters has a row in common (L x L)."""
        return np.asarray(self.passes.fold(_Gram(self.clusterings)).value)

    def sums(self, labels: Labels, k: int) -> tuple[Floats, Floats]:
        """The sum of the rows of B in each cluster (k x L), and the weights of the clusters; a label -1 is in none."""
        found = self.passes.fold(_Sums(self.clusterings, k), beside=labels).value
        return found[:, :-1], found[:, -1]

    def times(self, table: Floats) -> Floats:
        """B @ table, for a table with L rows."""
        return self.passes.rows(_Times(self.clusterings, table))

    def label(self, scoring: Scoring) -> Labels:
        """The cluster of each row."""
        return self.passes.rows(_Label(self.clusterings, scoring))

    def sample(self, size: int, seed: int) -> LabelRows:
        """So many of the rows that the weights stand for, in the same form; all of them if few label rows have a weight."""
        if self.n <= size:
            return self
        which = np.flatnonzero(self.weights > 0)
        times = self.weights[which]
        if len(which) > size:
            total = max(round(float(times.sum())), size)
            which, counts = np.unique(which[draw_repeated(times, total, size, [seed, 11])], return_counts=True)
            times = counts.astype(np.float64)
        return LabelRows(self.clusterings.some(which), times, self.passes)


def draw_repeated(weights: Floats | None, total: int, size: int, seed: list[int]) -> NDArray[np.intp]:
    """The numbers of `size` of `total` rows (all if they are fewer), in which each row is as often as its weight says.

    >>> draw_repeated(np.array([2.0, 0.0, 3.0]), 5, 10, [0]), len(draw_repeated(np.array([1e12, 2e12]), 3 * 10**12, 10, [0]))
    (array([0, 0, 2, 2, 2]), 10)
    """
    total = min(total, _MOST_DRAWN)
    few = total <= size
    which = np.arange(total) if few else np.sort(np.random.default_rng(seed).choice(total, size, replace=False))
    if weights is None:
        return which
    ends = np.cumsum(weights) * (total / float(weights.sum()))
    return np.searchsorted(ends[:-1], which + 0.5, side="right")


@dataclass(frozen=True)
class Scoring:
    """Scores of label rows for clusters: b @ table + offset; a row belongs to the highest, among equals to the first.

    With `directions`, b @ table is divided by the length of b @ directions (rows of a spectral embedding have length 1). With
    `merged`, the scores are for groups, and merged[g] is the cluster of group g.
    """

    table: Floats
    offset: Floats
    directions: Floats | None = None
    merged: Labels | None = None

    def scores(self, rows: Any) -> Floats:
        """The scores of rows of B."""
        found = np.asarray(rows @ self.table)
        if self.directions is not None:
            found /= _lengths(np.asarray(rows @ self.directions), self.directions)[:, None]
        return found + self.offset

    def labels(self, given: Clusterings, values: NDArray[Any]) -> Labels:
        """The cluster of each row, in parts that bound memory; -1 for a row without any label."""
        labels = np.empty(len(values), dtype=np.int32)
        step = max(_AT_ONCE // len(self.offset), 1)
        offsets = np.abs(self.offset[np.isfinite(self.offset)])  # minus infinity for an empty cluster
        reach = _TIE * (offsets.max() + given.count * np.abs(self.table).max())
        for start in range(0, len(values), step):
            part = values[start : start + step]
            found = self.scores(given.memberships(part))
            best = found.max(axis=1, keepdims=True) - reach
            labels[start : start + step] = np.where(
                given.presence(part).any(axis=1), np.argmax(found >= best, axis=1), -1
            )
        return labels if self.merged is None else np.where(labels >= 0, self.merged[labels], -1).astype(np.int32)


def unit_rows(points: Floats, directions: Floats) -> Floats:
    """The rows of B @ directions, scaled to length 1; those that are 0 but for rounding are 0."""
    return np.asarray(points / _lengths(points, directions)[:, None])


def _lengths(points: Floats, directions: Floats) -> Floats:
    lengths = np.sqrt(np.einsum("ij,ij->i", points, points))
    return np.where(lengths > _NOTHING * np.abs(directions).max(), lengths, np.inf)


# ---------------------------------------------------------------- tasks


@dataclass(frozen=True)
class _OfRows:
    clusterings: Clusterings

    def _values(self, block: Block) -> NDArray[Any]:
        return block.unchecked if self.clusterings.soft else block.unchecked.astype(np.int32)


@dataclass(frozen=True)
class _Label(_OfRows):
    scoring: Scoring

    def __call__(self, block: Block) -> Labels:
        return self.scoring.labels(self.clusterings, self._values(block))


@dataclass(frozen=True)
class _Times(_OfRows):
    table: Floats

    def __call__(self, block: Block) -> Floats:
        return np.asarray(self.clusterings.memberships(self._values(block)) @ self.table)


def _cells(given: Clusterings, values: NDArray[Any]) -> tuple[NDArray[np.intp], Floats]:
    """Labels with the number of clusters in place of -1, and the factor T / p of each row."""
    present = values >= 0
    factor = given.count / np.maximum(present.sum(axis=1), 1)
    return np.where(present, values, np.array(given.sizes)).astype(np.intp), factor


@dataclass(frozen=True)
class _Gram(_OfRows):
    def __call__(self, block: Block) -> ArraySum:
        given, values = self.clusterings, self._values(block)
        weights = np.ones(block.n_rows) if block.weights is None else block.weights
        if given.soft:
            rows = given.memberships(values)
            return ArraySum(np.asarray(rows.T @ (rows * weights[:, None])))
        cells, factor = _cells(given, values)
        weights = weights * factor**2
        found = np.zeros((given.total, given.total))
        for s, size in enumerate(given.sizes):
            at = given.starts[s]
            for t in range(s, given.count):
                other, to = given.sizes[t], given.starts[t]
                both = np.bincount(cells[:, s] * (other + 1) + cells[:, t], weights, (size + 1) * (other + 1))
                part = both.reshape(size + 1, other + 1)[:-1, :-1]
                found[at : at + size, to : to + other] = part
                found[to : to + other, at : at + size] = part.T
        return ArraySum(found)


@dataclass(frozen=True)
class _Sums(_OfRows):
    k: int

    def __call__(self, block: Block, labels: Labels) -> ArraySum:
        given, values, inside = self.clusterings, self._values(block), labels >= 0
        weights = np.ones(block.n_rows) if block.weights is None else block.weights
        own = np.where(inside, labels, self.k).astype(np.intp)
        found = np.zeros((self.k + 1, given.total + 1))
        found[:, -1] = np.bincount(own, weights, self.k + 1)
        if given.soft:
            rows = given.memberships(values) * weights[:, None]
            np.add.at(found[:, :-1], own, rows)
            return ArraySum(found[:-1])
        cells, factor = _cells(given, values)
        for t, size in enumerate(given.sizes):
            both = np.bincount(own * (size + 1) + cells[:, t], weights * factor, (self.k + 1) * (size + 1))
            found[:, given.starts[t] : given.starts[t] + size] = both.reshape(self.k + 1, size + 1)[:, :-1]
        return ArraySum(found[:-1])
