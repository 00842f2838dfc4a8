"""Weight, mean and centred scatter: the statistic behind PCA and other models."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from foldwise import kernels
from foldwise.data.block import Block, Floats
from foldwise.kernels.triangle import Spare


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
    spare: Spare | None = field(default=None, compare=False, repr=False)  # where `absorb` leaves memory

    @classmethod
    def empty(cls, n_columns: int) -> Moments:
        """The identity of `merge`."""
        return cls(0.0, 0, np.zeros((2, n_columns)), np.zeros((n_columns, n_columns)))

    @classmethod
    def of(cls, block: Block, spare: Spare | None = None) -> Moments:
        """The moments of a block's rows; `spare` is memory that the blocks of a fold share."""
        weight, centre, scatter = block.moments(spare)
        return cls(weight, block.rows_with_weight, centre, scatter, spare)

    @classmethod
    def of_wide(cls, block: Block, spare: Spare | None = None) -> Moments:
        """The same of float32 rows, with products in float64."""
        return cls.of(block.astype(np.float64), spare)

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

    def absorb(self, other: Moments) -> Moments:
        """The same in the memory of this one, which must not be used any more; with `spare`, nor must the other."""
        if other.weight == 0.0 or self.weight == 0.0 or not self.scatter.flags.writeable:
            return self.merge(other)  # what came from another process may be read-only
        centre, scatter = kernels.merge_moments(
            self.centre, self.scatter, self.weight, other.centre, other.scatter, other.weight, out=self.scatter
        )
        if self.spare is not None:
            self.spare.give(other.scatter)
        return Moments(self.weight + other.weight, self.rows + other.rows, centre, scatter, self.spare)

    def __reduce__(self) -> tuple[Any, ...]:
        return Moments, (self.weight, self.rows, self.centre, self.scatter)  # without memory of another process

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
