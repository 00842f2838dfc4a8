"""The moments of many columns, in half the memory."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from foldwise.data.block import DenseBlock, Floats
from foldwise.kernels import triangle
from foldwise.stats.moments import Moments


@dataclass(frozen=True)
class PackedMoments:
    """The same numbers as in `Moments`, with the upper triangle of the scatter matrix packed row by row.

    A fold holds several of them at a time, and they decide how much memory a PCA of thousands of columns takes.
    """

    weight: float
    rows: int
    centre: Floats
    packed: Floats
    spare: triangle.Spare | None = field(default=None, compare=False, repr=False)  # where `absorb` leaves memory

    @classmethod
    def empty(cls, n_columns: int) -> PackedMoments:
        """The identity of `merge`."""
        return cls(0.0, 0, np.zeros((2, n_columns)), np.zeros(n_columns * (n_columns + 1) // 2))

    @classmethod
    def of(cls, block: DenseBlock, spare: triangle.Spare | None = None) -> PackedMoments:
        """The moments of a block's rows, which are dense; `spare` is memory that the blocks of a fold share."""
        weight, centre, packed = block.packed_moments(spare)
        return cls(weight, block.rows_with_weight, centre, packed, spare)

    @classmethod
    def of_wide(cls, block: DenseBlock, spare: triangle.Spare | None = None) -> PackedMoments:
        """The same of float32 rows, with products in float64."""
        return cls.of(block.astype(np.float64), spare)

    def merge(self, other: PackedMoments) -> PackedMoments:
        """The moments of both sets of rows together."""
        if other.weight == 0.0 or self.weight == 0.0:
            return self if other.weight == 0.0 else other
        return replace(self, packed=self.packed.copy(), spare=None).absorb(other)

    def absorb(self, other: PackedMoments) -> PackedMoments:
        """The same in the memory of this one, which must not be used any more; with `spare`, nor must the other."""
        if other.weight == 0.0 or self.weight == 0.0:
            return self if other.weight == 0.0 else other
        if not self.packed.flags.writeable:
            return self.merge(other)  # what came from another process may be read-only
        centre = triangle.merge_into(self.centre, self.packed, self.weight, other.centre, other.packed, other.weight)
        if self.spare is not None:
            self.spare.give(other.packed)
        return PackedMoments(self.weight + other.weight, self.rows + other.rows, centre, self.packed, self.spare)

    def __reduce__(self) -> tuple[Any, ...]:
        return PackedMoments, (self.weight, self.rows, self.centre, self.packed)  # without memory of another process

    def unpacked(self) -> Moments:
        """The same with a square matrix."""
        return Moments(self.weight, self.rows, self.centre, triangle.square(self.packed, self.centre.shape[1]))
