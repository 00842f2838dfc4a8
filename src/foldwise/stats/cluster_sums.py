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
    """

    which: NDArray[np.int32]
    high: Floats
    low: Floats
    weight: Floats

    @classmethod
    def zero(cls, which: NDArray[np.int32], n_columns: int) -> ClusterSums:
        """No rows yet."""
        m = len(which)
        return cls(which, np.zeros((m, n_columns)), np.zeros((m, n_columns)), np.zeros((2, m)))

    def merge(self, other: ClusterSums) -> ClusterSums:
        """The sums of both sets of rows."""
        which = np.union1d(self.which, other.which).astype(np.int32)
        both = ClusterSums.zero(which, self.high.shape[1])
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

    @property
    def weights(self) -> Floats:
        """The weight of each cluster, relative to the scale of the weights."""
        return np.asarray(self.weight[0] + self.weight[1])

    def means(self) -> Floats:
        """The mean of each cluster; NaN for an empty one."""
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.asarray((self.high + self.low) / self.weights[:, None])
