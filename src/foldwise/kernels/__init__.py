"""Compiled kernels: C-contiguous float32 or float64 input, one thread, the GIL released.

`reference.py` specifies each function. Any other dtype or memory order raises TypeError: a kernel never copies.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from numpy.typing import NDArray

from foldwise.errors import ParameterError
from foldwise.kernels import _core
from foldwise.kernels._core import finite
from foldwise.kernels._core import isa as instruction_set

__all__ = [
    "centred",
    "columns",
    "columns_and_extent",
    "distance_sums",
    "dither",
    "extent",
    "finite",
    "instruction_set",
    "merge_columns",
    "merge_moments",
    "observed_distance_sums",
    "product_and_form",
    "row_product",
    "scatter",
    "scatter_product",
    "similarity",
    "unit_rows",
]

_ISA = os.environ.get("FOLDWISE_ISA", "")
if _ISA not in ("", "baseline", "avx2", "avx512"):
    raise ParameterError(f"FOLDWISE_ISA={_ISA!r} is not one of baseline, avx2 and avx512.")


def scatter(
    x: NDArray[Any], weights: NDArray[np.float64] | None
) -> tuple[float, NDArray[np.float64], NDArray[np.float64]]:
    """Total weight, mean and the upper triangle of the centred scatter matrix; see `reference.scatter`."""
    d = x.shape[1]
    mean, out = np.empty((2, d)), np.zeros((d, d))
    return _core.scatter(x, weights, mean, out), mean, out


def merge_moments(
    left: NDArray[np.float64],
    left_scatter: NDArray[np.float64],
    left_weight: float,
    right: NDArray[np.float64],
    right_scatter: NDArray[np.float64],
    right_weight: float,
    out: NDArray[np.float64] | None = None,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Centre and upper triangle of the scatter of two sets of rows together; see `reference.merge_moments`.

    `out` takes the triangle; it may be that of the left or right side.
    """
    centre, scatter = np.empty_like(left), np.zeros_like(left_scatter) if out is None else out
    _core.merge_moments(left, left_scatter, left_weight, right, right_scatter, right_weight, centre, scatter)
    return centre, scatter


def scatter_product(
    x: NDArray[Any],
    weights: NDArray[np.float64] | None,
    centre: NDArray[np.float64],
    factor: NDArray[np.float64] | None,
    basis: NDArray[np.float64],
    *,
    wide: bool,
) -> NDArray[np.float64]:
    """Z'W Z `basis` for the rows Z = (x - centre) * factor; see `reference.scatter_product`."""
    out = np.empty(basis.shape)
    _core.scatter_product(x, weights, centre, factor, basis, wide, out)
    return out


def product_and_columns(
    x: NDArray[Any],
    centre: NDArray[np.float64],
    factor: NDArray[np.float64] | None,
    basis: NDArray[np.float64],
    *,
    wide: bool,
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """The same for rows without weights, of which there are some; then the mean and squares of `columns`, in one sweep."""
    out, mean, squares = np.empty(basis.shape), np.empty((2, x.shape[1])), np.empty(x.shape[1])
    _core.product_and_columns(x, centre, factor, basis, wide, out, mean, squares)
    return out, mean, squares


def product_and_form(
    x: NDArray[Any],
    weights: NDArray[np.float64] | None,
    centre: NDArray[np.float64],
    factor: NDArray[np.float64] | None,
    basis: NDArray[np.float64],
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The same, with products in the dtype of x, and the form `basis`' Z'W Z `basis` in float64."""
    out, form = np.empty(basis.shape), np.empty((basis.shape[1], basis.shape[1]))
    _core.product_and_form(x, weights, centre, factor, basis, out, form)
    return out, form


def row_product(x: NDArray[np.float32], vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """The product of every row with every vector, x `vectors`'; see `reference.row_product`."""
    out = np.empty((len(x), len(vectors)), np.float32)
    _core.row_product(x, np.ascontiguousarray(vectors), out)
    return out


def columns(
    x: NDArray[Any], weights: NDArray[np.float64] | None
) -> tuple[float, NDArray[np.float64], NDArray[np.float64]]:
    """Total weight, mean and centred sum of squares of each column; see `reference.columns`."""
    return columns_and_extent(x, weights)[:3]


def columns_and_extent(
    x: NDArray[Any], weights: NDArray[np.float64] | None
) -> tuple[float, NDArray[np.float64], NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """The same, and minimum and maximum of each column over rows with non-zero weight, in one sweep.

    Without such rows the minimum is infinity and the maximum -infinity.
    """
    d = x.shape[1]
    mean, out, low, high = np.empty((2, d)), np.empty(d), np.empty(d, x.dtype), np.empty(d, x.dtype)
    total = _core.columns(x, weights, mean, out, low, high)
    return total, mean, out, low.astype(np.float64), high.astype(np.float64)


def merge_columns(
    left: NDArray[np.float64],
    left_squares: NDArray[np.float64],
    left_weight: float,
    right: NDArray[np.float64],
    right_squares: NDArray[np.float64],
    right_weight: float,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Centre and sums of squares of the columns of two sets of rows together; see `reference.merge_columns`."""
    centre, squares = np.empty_like(left), np.empty_like(left_squares)
    _core.merge_columns(left, left_squares, left_weight, right, right_squares, right_weight, centre, squares)
    return centre, squares


def centred(x: NDArray[Any], centre: NDArray[np.float64], scale: NDArray[np.float64] | None) -> NDArray[Any]:
    """(x - centre) / scale as a new array; see `reference.centred`."""
    out = np.empty_like(x)
    _core.centred(x, centre, scale, out)
    return out


def extent(x: NDArray[Any]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Minimum and maximum of each column; see `reference.extent`."""
    return columns_and_extent(x, None)[3:]


def similarity(x: NDArray[np.float64]) -> None:
    """e^x in place, for exponents that are at most 0 up to rounding; see `reference.similarity`."""
    _core.similarity(x.reshape(-1))


def distance_sums(
    points: NDArray[np.float64],
    x: NDArray[Any],
    weights: NDArray[np.float64] | None,
    labels: NDArray[np.int32],
    n_clusters: int,
    scale: float = 1.0,
) -> NDArray[np.float64]:
    """Distances from each point to the rows of each cluster, summed by weight; see `reference.distance_sums`."""
    out = np.empty((len(points), n_clusters))
    _core.distance_sums(points, x, weights, labels, scale, out)
    return out


def observed_distance_sums(
    points: NDArray[np.float64],
    x: NDArray[Any],
    weights: NDArray[np.float64] | None,
    labels: NDArray[np.int32],
    n_clusters: int,
    scale: float = 1.0,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The same where cells are missing, and the weights of the rows compared; see `reference.observed_distance_sums`."""
    out, compared = np.empty((len(points), n_clusters)), np.empty((len(points), n_clusters))
    _core.distance_sums(points, x, weights, labels, scale, out, compared)
    return out, compared


def digest(data: NDArray[np.uint8], start: int, stop: int) -> str:
    """64 hexadecimal digits that tell whether bytes have changed, with those from `start` to `stop` - 1 taken as "0".

    >>> digest(np.frombuffer(b"12345", np.uint8), 1, 2) == digest(np.frombuffer(b"1x345", np.uint8), 1, 2)
    True
    """
    return _core.digest(data, start, stop)


def unit_rows(x: NDArray[Any]) -> tuple[NDArray[Any], int]:
    """Rows divided by their lengths, and the number of zero rows; see `reference.unit_rows`."""
    out = np.empty_like(x)
    return out, _core.unit_rows(x.reshape(-1), None, x.shape[1], out.reshape(-1))


def dither(pixels: NDArray[Any], palette: NDArray[np.float32]) -> NDArray[Any]:
    """Numbers of the palette's colours, with errors passed on to neighbours; see `reference.dither`."""
    labels = np.empty(pixels.shape[:2], np.uint8 if len(palette) <= 256 else np.uint16)
    _core.dither(pixels, palette, 1.0 if pixels.dtype == np.uint8 else 255 / 65535, labels)
    return labels
