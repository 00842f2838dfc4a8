"""Pixels of an image as planes of whole numbers, and segments of them; parts of an image are ranges of its rows.

Planes are channels x rows x stride, 256 steps to a unit, with rows as long as cells need (`stride`). A cell is CELL_ROWS x
CELL_COLUMNS pixels. `reference_segments.py` specifies each function.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from foldwise.kernels import _core

CELL_ROWS, CELL_COLUMNS = 8, 16  # as in cpp/segments.h
UNIT = 256
PHASES = (0, 3, 1, 2)  # of a pixel: 2 for odd rows plus 1 for odd columns

Planes = NDArray[np.int16]
Labels = NDArray[np.int32]
Sums = NDArray[np.int64]


class Search(NamedTuple):
    """How pixels find their segment.

    Squared distances of colours plus `weight` times those in pixels; segments whose centre is at most `radius` rows and
    columns away from a tile of so many cells are compared there.
    """

    weight: float
    radius: float
    tile_rows: int
    tile_columns: int


def lab_planes(image: NDArray[Any], light: NDArray[np.float32], rows: range, out: Planes) -> None:
    """Lightness of grey pixels (rows x columns x 1), Lab of RGB, Lab times opacity and opacity of RGBA."""
    _core.lab_planes(image, light, rows.start, rows.stop, out)


def cell_bounds(planes: Planes, width: int, cell_rows: range, out: Planes) -> None:
    """The least and largest value of each plane in each cell; also fills planes from `width` to their stride."""
    _core.cell_bounds(planes, width, cell_rows.start, cell_rows.stop, out)


def assign(
    planes: Planes,
    bounds: Planes,
    centres: NDArray[np.float32],
    search: Search,
    cell_rows: range,
    width: int,
    *,
    labels: Labels | None = None,
    sums: Sums | None = None,
) -> int:
    """The nearest segment of each pixel into `labels`, and the sums of segments added to `sums`.

    Gives the number of distances that were computed; see `reference_segments.assign`.
    """
    return _core.assign_segments(planes, bounds, width, centres, *search, cell_rows.start, cell_rows.stop, labels, sums)


def smooth(
    labels: Labels,
    planes: Planes,
    centres: NDArray[np.float32],
    weight: float,
    price: float,
    whole: bool,
    visit: int,
    stamps: NDArray[np.uint8],
    rows: range,
) -> int:
    """Pixels of one phase on outlines go to the best of their neighbours' segments; gives how many changed.

    With `whole` no segment falls apart; see `reference_segments.smooth`. Four visits see every pixel once. `stamps`, zeros of
    (rows, `stamp_columns`), remembers what has changed since.
    """
    return _core.smooth_segments(
        labels, planes, centres, weight, price, whole, PHASES[visit % 4], visit, stamps, rows.start, rows.stop
    )


def stamp_columns(width: int) -> int:
    """The number of columns of `stamps`."""
    return -(-width // 8)


def connect(labels: Labels, planes: Planes, least: int, most: int) -> int:
    """Make every segment connected, none smaller than `least` pixels, no more than `most`; gives their number."""
    return _core.connect_segments(labels, planes, least, most)


def plane_sums(planes: Planes, labels: Labels, rows: range, sums: Sums) -> int:
    """Add the sums of segments, as `assign` does, for known labels; gives the sum of squares of all values."""
    return _core.plane_sums(planes, labels, rows.start, rows.stop, sums)


def pixel_sums(
    image: NDArray[Any], labels: Labels, pivot: NDArray[np.float64], rows: range, base: int, n: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The sums of pixels minus `pivot` in each of the segments from `base`, and of the squares of all."""
    sums, squares = np.zeros((n, image.shape[2])), np.zeros(image.shape[2])
    _core.pixel_sums(image, labels, pivot, rows.start, rows.stop, base, sums, squares)
    return sums, squares


def shapes(labels: Labels, n: int) -> Sums:
    """Of each segment: pixels, sides on its outline, sums of rows and columns, first and last row, first and last column."""
    out = np.zeros((n, 8), np.int64)
    out[:, [4, 6]] = np.iinfo(np.int64).max
    out[:, [5, 7]] = -1
    _core.segment_shapes(labels, 0, labels.shape[0], out)
    return out
