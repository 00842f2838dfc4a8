"""A sum of arrays: for figures that need no more than being added up in a fixed order."""

from __future__ import annotations

from dataclasses import dataclass

from foldwise.data.block import Floats


@dataclass(frozen=True)
class ArraySum:
    """An array that adds up."""

    value: Floats

    def merge(self, other: ArraySum) -> ArraySum:
        """Both together."""
        return ArraySum(self.value + other.value)
