"""The NumPy equivalents of the kernels of superpixels: their specification and test oracle, written for clarity."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from foldwise.kernels.superpixels import CELL_COLUMNS, CELL_ROWS, PHASES, Labels, Planes, Search, Sums

_DIAGONAL = np.float32(0.7)


def assign(planes: Planes, centres: NDArray[np.float32], search: Search, width: int) -> tuple[Labels, Sums]:
    """The nearest segment of each pixel, among those that reach its tile, and the sums of segments.

    Distances are computed in float32 in the order column, row, then channel by channel; of equal ones the first counts.
    """
    channels, height = planes.shape[:2]
    weight, radius = np.float32(search.weight), np.float32(search.radius)
    labels = np.empty((height, width), np.int32)
    tall, wide = search.tile_rows * CELL_ROWS, search.tile_columns * CELL_COLUMNS
    for top in range(0, height, tall):
        for left in range(0, width, wide):
            bottom, right = min(top + tall, height), min(left + wide, width)
            ends = ((top, bottom - 1), (left, right - 1))
            near = [
                (centres[:, channels + i] >= np.float32(low) - radius)
                & (centres[:, channels + i] <= np.float32(high) + radius)
                for i, (low, high) in enumerate(ends)
            ]
            which = np.flatnonzero(near[0] & near[1])
            some = centres[which] if len(which) else centres
            columns, rows = np.arange(left, right, dtype=np.float32), np.arange(top, bottom, dtype=np.float32)
            beside = weight * (columns[None, None, :] - some[:, channels + 1, None, None]) ** 2
            below = weight * (rows[None, :, None] - some[:, channels, None, None]) ** 2
            distances = beside + below
            for c in range(channels):
                values = planes[c, top:bottom, left:right].astype(np.float32)
                distances = distances + (values - some[:, c, None, None]) ** 2
            nearest = distances.argmin(0)
            labels[top:bottom, left:right] = which[nearest] if len(which) else nearest
    return labels, plane_sums(planes, labels, len(centres))


def plane_sums(planes: Planes, labels: Labels, n: int) -> Sums:
    """Of each segment: the sum of each plane, of rows and of columns, and the number of pixels."""
    row, column = np.indices(labels.shape)
    features = [*planes[:, :, : labels.shape[1]].astype(np.int64), row, column, np.ones_like(row)]
    out = np.zeros((n, len(features)), np.int64)
    for j, values in enumerate(features):
        np.add.at(out[:, j], labels.reshape(-1), values.reshape(-1))
    return out


def smooth(
    labels: Labels, planes: Planes, centres: NDArray[np.float32], weight: float, price: float, whole: bool, visit: int
) -> Labels:
    """Each pixel of the phase that has a side to another segment goes to the cheapest of its neighbours' (and its own).

    A segment costs the squared distance, and `price` for each neighbour that is in another (0.7 of it for diagonal ones). With
    `whole`, pixels stay whose removal would leave their neighbours of the same segment in other than one piece.
    """
    out, phase = labels.copy(), PHASES[visit % 4]
    height, width = labels.shape
    ring = ((-1, 0), (-1, 1), (0, 1), (1, 1), (1, 0), (1, -1), (0, -1), (-1, -1))
    for y in range(phase >> 1, height, 2):
        for x in range(phase & 1, width, 2):
            around = [labels[y + a, x + b] if 0 <= y + a < height and 0 <= x + b < width else -1 for a, b in ring]
            own, sides = labels[y, x], [one for one in around[::2] if one >= 0]
            if all(side == own for side in sides):
                continue
            same = [one == own for one in around]
            pieces = sum(same[i] and not (same[i + 1] and same[(i + 2) % 8]) for i in range(0, 8, 2))
            if whole and pieces != 1:
                continue
            found = {}
            for label in {int(own), *map(int, sides)}:
                found[label] = _cost(label, around, planes[:, y, x], (y, x), centres[label], weight, price)
            best = min(found.values())
            out[y, x] = own if found[int(own)] == best else min(label for label in found if found[label] == best)
    return out


def _cost(
    label: int,
    around: list[Any],
    colour: NDArray[np.int16],
    place: tuple[int, int],
    centre: NDArray[np.float32],
    weight: float,
    price: float,
) -> np.float32:
    down, across = np.float32(place[0]) - centre[-2], np.float32(place[1]) - centre[-1]
    total = np.float32(weight) * (down * down + across * across)
    for value, at in zip(colour, centre[:-2], strict=True):
        total = total + (np.float32(value) - at) ** 2
    sides, corners = around[::2], around[1::2]
    others = np.float32(sum(one >= 0 and one != label for one in sides))
    for one in corners:
        if one >= 0 and one != label:
            others = others + _DIAGONAL
    return np.float32(total + np.float32(price) * others)


def shapes(labels: Labels, n: int) -> Sums:
    """Of each segment: pixels, sides on its outline, sums of rows and columns, first and last row, first and last column."""
    framed = np.pad(labels, 1, constant_values=-1)
    out = np.zeros((n, 8), np.int64)
    for k in range(n):
        row, column = np.nonzero(labels == k)
        sides = sum(
            int((framed[row + 1 + a, column + 1 + b] != k).sum()) for a, b in ((-1, 0), (1, 0), (0, -1), (0, 1))
        )
        ends = row.min(), row.max(), column.min(), column.max()
        out[k] = len(row), sides, row.sum(), column.sum(), *ends
    return out
