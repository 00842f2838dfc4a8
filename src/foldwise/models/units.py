"""Rescaling of columns by powers of two, so that squares and products of their ranges neither overflow nor underflow.

Multiplying by powers of two is exact, so the model is the same; results are converted back to the units of the data.
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

# Ranges, as powers of two, whose squares and products are safe; and the largest power of a factor.
_COMFORT = {"float64": 250, "float32": 30}
_MOST = {"float64": 1000, "float32": 120}
_ADVICE = "Multiply or divide the data by a constant"


@dataclass(frozen=True)
class Units:
    """Each column is multiplied by its `factor`, a power of two; 1 for all columns of ordinary data."""

    factor: Floats

    @classmethod
    def of(cls, extent: Extent, dtype: np.dtype[Any], *, per_column: bool = False) -> Self:
        """Units in which the range of the data is about one, if their own units are unsafe."""
        return cls.of_reach(extent.high / 2 - extent.low / 2, dtype, per_column=per_column)

    @classmethod
    def of_reach(cls, reach: Floats, dtype: np.dtype[Any], *, per_column: bool = False) -> Self:
        """The same from the half ranges of the columns. All columns share one factor, unless `per_column`."""
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
        """Whether these are the units of the data."""
        return bool((self.factor == 1.0).all())

    @property
    def log_volume(self) -> float:
        """The term to add to log densities to convert them to the units of the data."""
        return float(np.log(self.factor).sum())

    @property
    def inverse(self) -> Floats:
        """The factors that convert back."""
        return np.asarray(1.0 / self.factor)

    def view(self, source: Source) -> Source:
        """The rows in these units."""
        return multiplied(source, self.factor)

    def seen(self, values: Any, power: int = 1) -> Any:
        """Values converted to these units; `power` is 1 for lengths, 2 for squares, -2 for inverse squares.

        The last axis of the values runs over columns, unless all columns share a factor.
        """
        return self._times(values, self.factor, power)

    def back(self, values: Any, power: int = 1) -> Any:
        """Values converted back to the units of the data."""
        return self._times(values, self.inverse, power)

    @staticmethod
    def _times(values: Any, factor: Floats, power: int) -> Any:
        if power < 0:
            factor, power = np.asarray(1.0 / factor), -power
        shared = np.ndim(values) == 0
        by = factor[0] if shared else factor.astype(values.dtype)
        with np.errstate(over="ignore", under="ignore"):
            for _ in range(power):  # squaring the factor first could overflow
                values = values * by
        return float(values) if shared else values

    def trace(
        self, steps: Iterable[Figures], powers: Mapping[str, int], log_densities: Collection[str] = ()
    ) -> tuple[Figures, ...]:
        """The figures of each step in the units of the data; those without a power are dimensionless."""
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
    """The values; raises if they left the range of float64 in the conversion."""
    array = np.abs(values)
    if not np.isfinite(array).all() or (array.size and array.max() < least):
        raise DataError(f"{what} {verb} the range of float64", advice=advice)
    return values
