"""The extent of the data: mean, sum of squares and range of each column, in one pass before k-means."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from foldwise.data.block import Block, Floats
from foldwise.stats.column_moments import ColumnMoments


@dataclass(frozen=True)
class Extent:
    """Column moments, the number of all rows, and the minima and maxima of values and weights over rows with weight > 0."""

    columns: ColumnMoments
    count: int
    low: Floats
    high: Floats
    heaviest: float
    lightest: float

    @property
    def alike(self) -> bool:
        """Whether the weights, with the largest scaled to about one, all fit in the range of float32."""
        return self.lightest >= self.heaviest * 2.0**-60

    @property
    def figures(self) -> tuple[Any, ...]:
        """What ties a checkpoint to these values."""
        return self.columns.weight, self.columns.centre, self.columns.squares, self.low, self.high

    @classmethod
    def empty(cls, n_columns: int) -> Extent:
        """The identity of `merge`."""
        return cls(
            ColumnMoments.empty(n_columns), 0, np.full(n_columns, np.inf), np.full(n_columns, -np.inf), 0.0, np.inf
        )

    @classmethod
    def of(cls, block: Block) -> Extent:
        """The extent of a block's rows."""
        weight, centre, squares, low, high = block.column_moments_and_extent()  # raises for values that are not finite
        columns = ColumnMoments(weight, block.rows_with_weight, centre, squares)
        heaviest = 1.0 if block.weights is None else float(block.weights.max(initial=0.0))
        lightest = 1.0 if block.weights is None else float(block.weights.min(initial=np.inf, where=block.weights > 0))
        return cls(columns, block.n_rows, low, high, heaviest, lightest)

    def merge(self, other: Self) -> Self:
        """The extent of both sets of rows together."""
        return type(self)(
            self.columns.merge(other.columns),
            self.count + other.count,
            np.minimum(self.low, other.low),
            np.maximum(self.high, other.high),
            max(self.heaviest, other.heaviest),
            min(self.lightest, other.lightest),
        )
