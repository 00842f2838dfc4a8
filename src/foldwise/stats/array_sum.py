"""A sum of arrays, for figures that only need to be added in a fixed order."""

from __future__ import annotations

from dataclasses import dataclass

from foldwise.data.block import Floats


@dataclass(frozen=True)
class ArraySum:
    """An array merged by addition."""

    value: Floats

    def merge(self, other: ArraySum) -> ArraySum:
        """Both together."""
        return ArraySum(self.value + other.value)
