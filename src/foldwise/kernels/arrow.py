"""Columns in, rows out: typed entry points to `cpp/arrow.cpp`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from foldwise.kernels._core import Batch, Stream
from foldwise.kernels._core import batch_of as _batch_of
from foldwise.kernels._core import copy_into as _copy_into

__all__ = ["Batch", "Stream", "batch_of", "copy_into", "is_number"]

_NUMBERS = frozenset("cCsSiIlLefgb")  # the Arrow formats that `copy_into` accepts, besides 128-bit decimals


def is_number(field: str) -> bool:
    """Whether `copy_into` can copy a column of this Arrow format."""
    return field in _NUMBERS or (field.startswith("d:") and field.count(",") == 1)


def batch_of(arrays: Sequence[NDArray[Any]]) -> Batch:
    """A batch whose columns are 1-D arrays of native numbers, of any stride; nothing is copied."""
    return _batch_of(list(arrays))


def copy_into(
    batch: Batch, start: int, stop: int, out: NDArray[np.floating], out_row: int = 0, *, first: int = 0
) -> tuple[int, int] | None:
    """Copy rows [start, stop) of the columns from `first` on into `out`, from row `out_row` on.

    The number of columns copied is that of `out`. Returns the row (counted from `start`) and column (counted from
    `first`) of the first missing value, or None. NaN is written in place of every missing one.
    """
    return _copy_into(batch, first, start, stop, out, out_row)
