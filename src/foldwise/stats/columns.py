"""Weight, mean and spread of each column on its own, in one cheap pass."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from foldwise.data.block import Block, Floats


@dataclass(frozen=True)
class Columns:
    """Total weight, number of rows with weight, and each column's mean and centred sum of squares."""

    weight: float
    rows: int
    mean: Floats
    squares: Floats

    @classmethod
    def empty(cls, n_columns: int) -> Columns:
        """The identity of `merge`."""
        return cls(0.0, 0, np.zeros(n_columns), np.zeros(n_columns))

    @classmethod
    def of(cls, block: Block) -> Columns:
        """The column moments of a block's rows."""
        weight, mean, squares = block.column_moments()
        return cls(weight, block.rows_with_weight, mean, squares)

    def merge(self, other: Columns) -> Columns:
        """The column moments of both sets of rows together."""
        if other.weight == 0.0:
            return self
        if self.weight == 0.0:
            return other
        weight = self.weight + other.weight
        delta = other.mean - self.mean
        return Columns(
            weight,
            self.rows + other.rows,
            self.mean + delta * (other.weight / weight),
            self.squares + other.squares + delta**2 * (self.weight * other.weight / weight),
        )
