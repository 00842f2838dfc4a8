"""Exact sums of the rows of each cluster: the statistic behind every step of k-means."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from foldwise.data.block import Floats
from foldwise.kernels.targets import Grid


@dataclass(frozen=True)
class ClusterSums:
    """For some clusters (`which`): sums of weighted rows and of weights, each in two parts on a grid.

    On the grid (`foldwise.kernels.targets.Grid`) float64 additions are exact, so `merge` is associative and commutative to the
    last bit, and subtracting a row undoes adding it. A cluster's mean is thus a function of its members alone, independent of
    the order of blocks, of threads, and of when rows moved.

    Where rows have missing cells, these are left out of the sums, and `missing` has their weight by cluster and column: they
    are fewer than the observed ones, and so is what has to be changed when a row moves.
    """

    which: NDArray[np.int32]
    high: Floats
    low: Floats
    weight: Floats
    missing: Floats | None = None  # 2 x clusters x columns

    @classmethod
    def zero(cls, which: NDArray[np.int32], n_columns: int, *, missing: bool = False) -> ClusterSums:
        """No rows yet; `missing` says whether they may have missing cells."""
        m = len(which)
        cells = np.zeros((2, m, n_columns)) if missing else None
        return cls(which, np.zeros((m, n_columns)), np.zeros((m, n_columns)), np.zeros((2, m)), cells)

    @property
    def parts(self) -> tuple[Floats, ...]:
        """The arrays that kernels add to."""
        return (
            (self.high, self.low, self.weight)
            if self.missing is None
            else (self.high, self.low, self.weight, self.missing)
        )

    def merge(self, other: ClusterSums) -> ClusterSums:
        """The sums of both sets of rows."""
        which = np.union1d(self.which, other.which).astype(np.int32)
        both = ClusterSums.zero(which, self.high.shape[1], missing=self.missing is not None)
        both.add(self)
        both.add(other)
        return both

    def add(self, part: ClusterSums) -> None:
        """Add a part in place, for sums over all centres; all its clusters must be present here."""
        if len(part.which) == len(self.which):
            place: slice | NDArray[np.intp] = slice(None)
        else:
            place = np.searchsorted(self.which, part.which)
        self.high[place] += part.high
        self.low[place] += part.low
        self.weight[:, place] += part.weight
        if self.missing is not None and part.missing is not None:
            self.missing[:, place] += part.missing

    def renumbered(self, mapping: NDArray[np.int32], k: int) -> ClusterSums:
        """The sums of `k` clusters, of which number mapping[i] was number i; -1 drops one, and others are empty."""
        new = ClusterSums.zero(np.arange(k, dtype=np.int32), self.high.shape[1], missing=self.missing is not None)
        kept = np.flatnonzero(mapping >= 0)
        new.high[mapping[kept]] = self.high[kept]
        new.low[mapping[kept]] = self.low[kept]
        new.weight[:, mapping[kept]] = self.weight[:, kept]
        if new.missing is not None and self.missing is not None:
            new.missing[:, mapping[kept]] = self.missing[:, kept]
        return new

    @property
    def weights(self) -> Floats:
        """The weight of each cluster, relative to the scale of the weights."""
        return np.asarray(self.weight[0] + self.weight[1])

    @property
    def cell_weights(self) -> Floats:
        """The weight of the observed cells of each cluster and column; each part is a difference on the grid, so exact."""
        if self.missing is None:
            return np.repeat(self.weights[:, None], self.high.shape[1], axis=1)
        parts = self.weight[:, :, None] - self.missing
        return np.asarray(parts[0] + parts[1])

    def means(self) -> Floats:
        """The mean of each cluster; NaN for an empty one, and in columns of which no cell is observed."""
        weights = self.weights[:, None] if self.missing is None else self.cell_weights
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.asarray((self.high + self.low) / weights)


@dataclass(frozen=True)
class FixedPointSums:
    """The same for all clusters and unweighted float32 rows in fixed point, as 64-bit integers: one sum instead of two parts.

    Each value is rounded to a multiple of 2^-bits. Integers may be added and subtracted in any order, modulo 2^64. Every
    value carries the constant `offset`, which `as_parts` takes off.
    """

    sums: NDArray[np.int64]
    counts: NDArray[np.int64]
    bits: int

    @classmethod
    def zero(cls, k: int, n_columns: int, bits: int) -> FixedPointSums:
        """No rows yet."""
        return cls(np.zeros((k, n_columns), np.int64), np.zeros(k, np.int64), bits)

    @staticmethod
    def most_bits(rows: int) -> int:
        """The finest fixed point in which sums of so many values of at most 1 fit into 64 bits."""
        return min(62 - max(rows - 1, 0).bit_length(), 50)

    @property
    def offset(self) -> np.int64:
        """What every value carries: the bits of the float64 number that rounds it."""
        return np.float64(1.5 * 2.0 ** (52 - self.bits)).view(np.int64)

    def add(self, other: FixedPointSums) -> None:
        """Add those of other rows in place."""
        np.add(self.sums, other.sums, out=self.sums)
        np.add(self.counts, other.counts, out=self.counts)

    def merge(self, other: FixedPointSums) -> FixedPointSums:
        """The sums of both sets of rows."""
        return FixedPointSums(self.sums + other.sums, self.counts + other.counts, self.bits)

    def as_parts(self, grid: Grid) -> ClusterSums:
        """The same sums, exactly, in two parts on the grid."""
        values = self.sums - self.counts[:, None] * self.offset
        shift = max(self.bits - grid.bits, 0)
        high = np.ldexp((values >> shift).astype(np.float64), shift - self.bits)
        low = np.ldexp((values & ((1 << shift) - 1)).astype(np.float64), -self.bits)
        weight = np.stack([self.counts.astype(np.float64), np.zeros(len(self.counts))])
        return ClusterSums(np.arange(len(self.counts), dtype=np.int32), high, low, weight)
