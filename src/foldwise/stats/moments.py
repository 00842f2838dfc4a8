"""Weight, mean and centred scatter: the statistic behind PCA and other models."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from foldwise import kernels
from foldwise.data.block import Block, Floats


@dataclass(frozen=True)
class Moments:
    """Total weight, number of rows with non-zero weight, centre, and sum of w (x - mean)(x - mean)'.

    `scatter` holds the upper triangle; entries below the diagonal are undefined. Moments about each block's own mean
    merge without cancellation (Chan, Golub and LeVeque 1983), whatever the offset of the data.
    """

    weight: float
    rows: int
    centre: Floats
    scatter: Floats

    @classmethod
    def empty(cls, n_columns: int) -> Moments:
        """The identity of `merge`."""
        return cls(0.0, 0, np.zeros((2, n_columns)), np.zeros((n_columns, n_columns)))

    @classmethod
    def of(cls, block: Block) -> Moments:
        """The moments of a block's rows."""
        weight, centre, scatter = block.moments()
        return cls(weight, block.rows_with_weight, centre, scatter)

    @classmethod
    def of_wide(cls, block: Block) -> Moments:
        """The same of float32 rows, with products in float64."""
        return cls.of(block.astype(np.float64))

    def merge(self, other: Moments) -> Moments:
        """The moments of both sets of rows together."""
        if other.weight == 0.0:
            return self
        if self.weight == 0.0:
            return other
        weight = self.weight + other.weight
        centre, scatter = kernels.merge_moments(
            self.centre, self.scatter, self.weight, other.centre, other.scatter, other.weight
        )
        return Moments(weight, self.rows + other.rows, centre, scatter)

    @property
    def mean(self) -> Floats:
        """The mean of each column."""
        return np.asarray(self.centre[0])

    @property
    def squares(self) -> Floats:
        """The centred sum of squares of each column."""
        return np.ascontiguousarray(np.diagonal(self.scatter))

    def covariance(self, ddof: float = 1.0) -> Floats:
        """The upper triangle of scatter / (weight - ddof)."""
        return self.scatter / (self.weight - ddof)
