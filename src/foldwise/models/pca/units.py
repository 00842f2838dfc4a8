"""What columns are multiplied with, so that products keep within the range of float64, and perhaps float32."""

from __future__ import annotations

import numpy as np

from foldwise.data.block import Floats
from foldwise.stats.column_moments import ColumnMoments


def units(columns: ColumnMoments, scale: Floats | None, ddof: float) -> tuple[float, Floats | None]:
    """A power of two that brings the largest column to size 1, and what to multiply each column with."""
    if scale is not None:
        return 1.0, 1.0 / scale
    largest = float(np.sqrt(columns.squares.max(initial=0.0) / (columns.weight - ddof)))
    unit = 2.0 ** -np.floor(np.log2(largest)) if largest > 0 else 1.0
    return unit, None if unit == 1.0 else np.full(len(columns.squares), unit)


def in_range(columns: ColumnMoments, factor: Floats | None, unit: float) -> bool:
    """Whether float32 holds all differences between rows and their mean, however unequal the weights."""
    furthest = np.sqrt(float(columns.squares.max(initial=0.0))) * 2.0**10 + float(np.abs(columns.mean).max(initial=0.0))
    factors = np.ones(1) if factor is None else factor
    return bool(furthest < 1e37 and factors.max(initial=1.0) < 1e37 and factors.min(initial=1.0) > 1e-37)
