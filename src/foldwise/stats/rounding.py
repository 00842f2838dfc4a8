"""How values were rounded before they were stored: to how many decimals, and how many of them end in a 0 or a 5."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from foldwise.data.block import Floats

_MOST_DECIMALS = 6
_HEAD = 64  # values at which all others are given up, unless these are rounded
_SMALL = 8192  # values: up to so many all are looked at
_LOOKED_AT = 1024  # else so many, evenly apart: more would cost more time than the rest of a fit, and say no more


@dataclass(frozen=True)
class Rounding:
    """All values are multiples of 10 to the power of minus `decimals`, and not all of a coarser power; at least whole numbers.

    Of a large block only some values are looked at, evenly apart: `weight` is theirs. `fives` and `tens` are the weights of
    those that are multiples of 5 and of 10 such units.
    """

    decimals: int
    weight: float
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
        Rounding(decimals=1, weight=3.0, fives=3.0, tens=2.0)
        >>> Rounding.of(np.array([1.0, 5.0, 20.0]), None), Rounding.of(np.array([0.1, np.pi]), None)
        (Rounding(decimals=0, weight=3.0, fives=2.0, tens=1.0), None)
        """
        if exact and not _multiples(x[:_HEAD], _MOST_DECIMALS, exact).all():
            return None
        x, w = x[some_rows(len(x))], None if w is None else w[some_rows(len(x))]
        decimals = 0
        for some in (x[:_HEAD], x):
            while not _multiples(some, decimals, exact).all():
                decimals += 1
                if decimals > _MOST_DECIMALS:
                    return None
        weight = float(len(x)) if w is None else math.fsum(w)
        fives, tens = _multiples(x * 2.0, decimals - 1, exact), _multiples(x, decimals - 1, exact)
        return cls(decimals, weight, _weight(fives, w), _weight(tens, w))

    def merge(self, other: Rounding | None) -> Rounding | None:
        """Of both sets of values."""
        if other is None:
            return None
        decimals = max(self.decimals, other.decimals)
        # In a finer unit all values of the coarser one are multiples of 5 and of 10.
        tallies = [
            (part.fives, part.tens) if part.decimals == decimals else (part.weight, part.weight)
            for part in (self, other)
        ]
        (fives, tens), (more_fives, more_tens) = tallies
        return Rounding(decimals, self.weight + other.weight, fives + more_fives, tens + more_tens)


def some_rows(n: int) -> slice:
    """Rows of a block of n that are looked at."""
    return slice(None, None, 1 if n <= _SMALL else -(-n // _LOOKED_AT))


def _weight(which: NDArray[np.bool_], w: Floats | None) -> float:
    return float(which.sum()) if w is None else math.fsum(w[which])


def _multiples(x: Floats, decimals: int, exact: bool) -> NDArray[np.bool_]:
    """Which values are multiples of 10 to the power of minus `decimals`, as nearly as they can be stored."""
    power = 10.0 ** abs(decimals)
    with np.errstate(over="ignore", invalid="ignore"):
        nearest = np.rint(x * power) / power if decimals >= 0 else np.rint(x / power) * power
        # Beyond 2^51 units every value looks like a multiple, which says nothing.
        # Of float32's 24 bits a unit leaves some to spare, or it is their spacing.
        most = 2.0**51 if exact else (2.0**19 if decimals > 0 else 2.0**24)
        inside = np.abs(x) < most / power if decimals > 0 else np.abs(x) < most
        close = nearest == x if exact else np.abs(nearest - x) <= 6e-8 * np.abs(x)
    return np.asarray(close & inside)
