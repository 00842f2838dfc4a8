"""Weight, mean and sum of squares of each column, in one cheap pass."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from foldwise.data.block import Block, Floats
from foldwise.kernels.reference import LEAST_POSITIVE
from foldwise.stats.two_part_mean import distance, moved


@dataclass(frozen=True)
class ColumnMoments:
    """Total weight, number of rows with non-zero weight, the centre, and each column's centred sum of squares."""

    weight: float
    rows: int
    centre: Floats
    squares: Floats

    @classmethod
    def empty(cls, n_columns: int) -> ColumnMoments:
        """The identity of `merge`."""
        return cls(0.0, 0, np.zeros((2, n_columns)), np.zeros(n_columns))

    @classmethod
    def of(cls, block: Block) -> ColumnMoments:
        """The column moments of a block's rows."""
        weight, centre, squares = block.column_moments()
        return cls(weight, block.rows_with_weight, centre, squares)

    def merge(self, other: ColumnMoments) -> ColumnMoments:
        """The column moments of both sets of rows together."""
        if other.weight == 0.0:
            return self
        if self.weight == 0.0:
            return other
        weight = self.weight + other.weight
        delta = distance(self.centre, other.centre)
        squares = self.squares + other.squares + delta**2 * (self.weight * other.weight / weight)
        return ColumnMoments(
            weight,
            self.rows + other.rows,
            moved(self.centre, delta * (other.weight / weight)),
            np.where((squares == 0) & (delta != 0), LEAST_POSITIVE, squares),
        )

    @property
    def mean(self) -> Floats:
        """The mean of each column."""
        return np.asarray(self.centre[0])
