"""Weight, mean and sum of squares of each column, in one cheap pass."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from foldwise import kernels
from foldwise.data.block import Block, Floats


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
        parts = (
            (np.ascontiguousarray(one.centre), np.ascontiguousarray(one.squares), one.weight) for one in (self, other)
        )
        left, right = parts
        centre, squares = kernels.merge_columns(*left, *right)
        return ColumnMoments(self.weight + other.weight, self.rows + other.rows, centre, squares)

    @property
    def mean(self) -> Floats:
        """The mean of each column."""
        return np.asarray(self.centre[0])
