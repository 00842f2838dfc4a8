"""The NumPy twin of each compiled kernel: its specification and its test oracle. Clear before fast."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def scatter(
    x: NDArray[Any], weights: NDArray[np.float64] | None
) -> tuple[float, NDArray[np.float64], NDArray[np.float64]]:
    """Total weight, weighted mean and scatter about it, sum of w (x - m)(x - m)': upper triangle, zeros below."""
    n, d = x.shape
    if n == 0:
        return 0.0, np.zeros(d), np.zeros((d, d))
    w = np.ones(n) if weights is None else weights
    total = float(w.sum())
    if total == 0.0:
        return 0.0, np.zeros(d), np.zeros((d, d))
    pivot = x[0].astype(np.float64)
    shifted = x.astype(np.float64) - pivot
    shift = (w @ shifted) / total
    shifted -= shift
    return total, pivot + shift, np.triu((shifted * w[:, None]).T @ shifted)


def merge_scatter(
    left: NDArray[np.float64], right: NDArray[np.float64], delta: NDArray[np.float64], factor: float
) -> NDArray[np.float64]:
    """left + right + factor * delta delta': upper triangle, zeros below."""
    return np.triu(left + right + factor * np.outer(delta, delta))


def columns(
    x: NDArray[Any], weights: NDArray[np.float64] | None
) -> tuple[float, NDArray[np.float64], NDArray[np.float64]]:
    """Total weight, weighted mean and weighted centred sum of squares, column by column."""
    n, d = x.shape
    w = np.ones(n) if weights is None else weights
    total = float(w.sum())
    if total == 0.0:
        return 0.0, np.zeros(d), np.zeros(d)
    pivot = x[0].astype(np.float64)
    shifted = x.astype(np.float64) - pivot
    shift = (w @ shifted) / total
    shifted -= shift
    return total, pivot + shift, np.asarray(w @ shifted**2)


def finite(x: NDArray[Any]) -> int:
    """The flat (row-major) position of the first NaN or infinity, or -1."""
    bad = np.flatnonzero(~np.isfinite(x))
    return int(bad[0]) if bad.size else -1


def centred(x: NDArray[Any], centre: NDArray[np.float64], scale: NDArray[np.float64] | None) -> NDArray[Any]:
    """(x - centre) / scale computed in float64, rounded once to the dtype of x."""
    shifted = x.astype(np.float64) - centre
    if scale is not None:
        shifted /= scale
    return shifted.astype(x.dtype)
