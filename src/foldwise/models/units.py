"""Units once: columns times powers of two, so that squares and products of their spreads are in range, and the way back.

Powers of two round nothing, so a model is the same in any of them; what it says is told in the units of the data.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from foldwise.data.block import Floats
from foldwise.data.mapped import multiplied
from foldwise.data.source import Source
from foldwise.errors import DataError
from foldwise.fold.iterate import Figures
from foldwise.stats.extent import Extent

# Spreads, as powers of two, whose squares and products are safe, and the largest power that a factor may be.
_COMFORT = {"float64": 250, "float32": 30}
_MOST = {"float64": 1000, "float32": 120}
_ADVICE = "Multiply or divide the data by a constant"


@dataclass(frozen=True)
class Units:
    """Rows are seen with each column times its `factor`, a power of two; 1 for all columns of ordinary data."""

    factor: Floats

    @classmethod
    def of(cls, extent: Extent, dtype: np.dtype[Any], *, per_column: bool = False) -> Self:
        """Units in which these data spread by about one, if their own are not good enough."""
        return cls.of_reach(extent.high / 2 - extent.low / 2, dtype, per_column=per_column)

    @classmethod
    def of_reach(cls, reach: Floats, dtype: np.dtype[Any], *, per_column: bool = False) -> Self:
        """The same for columns of these half ranges. All columns share a factor, unless they are never compared."""
        with np.errstate(divide="ignore"):
            powers = np.where(reach > 0, np.frexp(reach)[1], 0)
        if (np.abs(powers) <= _COMFORT[dtype.name]).all():
            return cls(np.ones(len(reach)))
        if not per_column:
            powers = np.full(len(powers), powers[reach > 0].max())
        most = _MOST[dtype.name]
        return cls(np.asarray(np.ldexp(1.0, -np.clip(powers, -most, most))))

    @property
    def plain(self) -> bool:
        """Whether they are the units of the data."""
        return bool((self.factor == 1.0).all())

    @property
    def log_volume(self) -> float:
        """What log densities in the units of the data have more."""
        return float(np.log(self.factor).sum())

    @property
    def inverse(self) -> Floats:
        """The factors that lead back."""
        return np.asarray(1.0 / self.factor)

    def view(self, source: Source) -> Source:
        """The rows in these units."""
        return multiplied(source, self.factor)

    def seen(self, values: Any, power: int = 1) -> Any:
        """Values in these units; `power` is 1 for lengths, 2 for squares of them, -2 for inverse squares.

        Values with one entry for each column along the last axis, or for columns that share a factor.
        """
        return self._times(values, self.factor, power)

    def back(self, values: Any, power: int = 1) -> Any:
        """Values in the units of the data."""
        return self._times(values, self.inverse, power)

    @staticmethod
    def _times(values: Any, factor: Floats, power: int) -> Any:
        if power < 0:
            factor, power = np.asarray(1.0 / factor), -power
        shared = np.ndim(values) == 0
        by = factor[0] if shared else factor.astype(values.dtype)
        with np.errstate(over="ignore", under="ignore"):
            for _ in range(power):  # not squared first: that could leave the range by itself
                values = values * by
        return float(values) if shared else values

    def trace(
        self, steps: Iterable[Figures], powers: Mapping[str, int], log_densities: Collection[str] = ()
    ) -> tuple[Figures, ...]:
        """The figures of steps in the units of the data; those without a power have no unit."""
        if self.plain:
            return tuple(steps)
        return tuple(
            {
                name: self.back(value, powers.get(name, 0)) + (self.log_volume if name in log_densities else 0.0)
                for name, value in step.items()
            }
            for step in steps
        )


def in_range(values: Any, what: str, verb: str = "leave", *, least: float = 5e-324, advice: str = _ADVICE) -> Any:
    """The values, unless they left float64's range on the way from one unit to another."""
    array = np.abs(values)
    if not np.isfinite(array).all() or (array.size and array.max() < least):
        raise DataError(f"{what} {verb} the range of float64", advice=advice)
    return values
