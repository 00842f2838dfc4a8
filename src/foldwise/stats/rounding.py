"""How values were rounded before they were stored: to how many decimals, and how many of them end in a 0 or a 5."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from foldwise.data.block import Floats

_MOST_DECIMALS = 6
_HEAD = 256  # of these values the decimals are guessed, which unrounded values do not survive
_AT_ONCE = 16384


@dataclass(frozen=True)
class Rounding:
    """All values are multiples of 10 to the power of minus `decimals`, and not all of a coarser power; at least whole numbers.

    `fives` and `tens` are the weights of the values that are multiples of 5 and of 10 such units.
    """

    decimals: int
    fives: float
    tens: float

    @property
    def step(self) -> float:
        """The unit to which the values were rounded."""
        return 10.0**-self.decimals

    @classmethod
    def of(cls, x: Floats, w: Floats | None, *, exact: bool = True) -> Rounding | None:
        """Of some values, or None where there is no such unit; `exact=False` for values that were stored as float32.

        >>> Rounding.of(np.array([1.5, 2.0, 20.0]), None)
        Rounding(decimals=1, fives=3.0, tens=2.0)
        >>> Rounding.of(np.array([1.0, 5.0, 20.0]), None), Rounding.of(np.array([0.1, np.pi]), None)
        (Rounding(decimals=0, fives=2.0, tens=1.0), None)
        """
        decimals = 0
        for start, stop in ((0, min(_HEAD, len(x))), *_ranges(len(x))):
            while not _multiples(x[start:stop], decimals, exact).all():
                decimals += 1
                if decimals > _MOST_DECIMALS:
                    return None
        fives = tens = 0.0
        for start, stop in _ranges(len(x)):
            some, times = x[start:stop], None if w is None else w[start:stop]
            fives += _weight(_multiples(some * 2.0, decimals - 1, exact), times)
            tens += _weight(_multiples(some, decimals - 1, exact), times)
        return cls(decimals, fives, tens)

    def merge(self, other: Rounding | None, weight: float, other_weight: float) -> Rounding | None:
        """Of both sets of values, given their weights."""
        if other is None:
            return None
        decimals = max(self.decimals, other.decimals)
        pairs = [
            (part.fives, part.tens) if part.decimals == decimals else (whole, whole)
            for part, whole in ((self, weight), (other, other_weight))
        ]
        return Rounding(decimals, pairs[0][0] + pairs[1][0], pairs[0][1] + pairs[1][1])


def _ranges(n: int) -> list[tuple[int, int]]:
    return [(start, min(start + _AT_ONCE, n)) for start in range(0, n, _AT_ONCE)]


def _weight(which: NDArray[np.bool_], w: Floats | None) -> float:
    return float(which.sum()) if w is None else math.fsum(w[which])


def _multiples(x: Floats, decimals: int, exact: bool) -> NDArray[np.bool_]:
    """Which values are multiples of 10 to the power of minus `decimals`, as nearly as they can be stored."""
    power = 10.0 ** abs(decimals)
    with np.errstate(over="ignore", invalid="ignore"):
        nearest = np.rint(x * power) / power if decimals >= 0 else np.rint(x / power) * power
        # Beyond 2^51 units every value looks like a multiple, which says nothing.
        inside = np.abs(x) < 2.0**51 / power if decimals > 0 else np.abs(x) < 2.0**51
        close = nearest == x if exact else np.abs(nearest - x) <= 6e-8 * np.abs(x)
    return np.asarray(close & inside)
