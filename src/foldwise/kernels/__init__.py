"""Fast arithmetic: C-contiguous float32 or float64 in, one thread, the GIL released.

`reference.py` says what each function computes. Another dtype or order is a TypeError: a kernel never copies.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from foldwise.kernels import _core
from foldwise.kernels._core import finite
from foldwise.kernels._core import isa as instruction_set

__all__ = ["centred", "columns", "finite", "instruction_set", "merge_scatter", "scatter"]


def scatter(
    x: NDArray[Any], weights: NDArray[np.float64] | None
) -> tuple[float, NDArray[np.float64], NDArray[np.float64]]:
    """Total weight, mean and the upper triangle of the centred scatter matrix; see `reference.scatter`."""
    d = x.shape[1]
    mean, out = np.empty((2, d)), np.zeros((d, d))
    return _core.scatter(x, weights, mean, out), mean, out


def merge_scatter(
    left: NDArray[np.float64], right: NDArray[np.float64], delta: NDArray[np.float64], factor: float
) -> NDArray[np.float64]:
    """The upper triangle of left + right + factor delta delta'; see `reference.merge_scatter`."""
    out = np.zeros_like(left)
    _core.merge_scatter(left, right, delta, factor, out)
    return out


def columns(
    x: NDArray[Any], weights: NDArray[np.float64] | None
) -> tuple[float, NDArray[np.float64], NDArray[np.float64]]:
    """Total weight, mean and centred sum of squares of each column; see `reference.columns`."""
    d = x.shape[1]
    mean, out = np.empty((2, d)), np.empty(d)
    return _core.columns(x, weights, mean, out), mean, out


def centred(x: NDArray[Any], centre: NDArray[np.float64], scale: NDArray[np.float64] | None) -> NDArray[Any]:
    """(x - centre) / scale as a new array; see `reference.centred`."""
    out = np.empty_like(x)
    _core.centred(x, centre, scale, out)
    return out
