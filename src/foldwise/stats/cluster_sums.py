"""Exact sums of the rows of each cluster: the statistic behind every step of k-means."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from foldwise.data.block import Floats


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

