"""SLIC: k-means of pixels by colour and position, each centre within its neighbourhood only."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from threading import Lock

import numpy as np
from numpy.typing import NDArray

from foldwise.data.block import Floats
from foldwise.fold.iterate import Figures, State
from foldwise.kernels import superpixels as kernel
from foldwise.models.images.planes import Planes, cells, over_strips
from foldwise.models.images.segments import SegmentFigures
from foldwise.stats.segment_sums import SegmentSums

_REACH = 2.0  # steps of the grid: how far from its centre a segment may take pixels
_BEFORE, _AFTER = 2, 8  # passes of smoothing, before and after segments are made connected
_SQUARE = 0.3  # what a factor of e between the sides of a rectangle of the grid costs, in shares of segments too many
_PRICE = 2.0  # of a neighbour in another segment, in mean squared distances of pixels from their centres
_SHORT = 32.0  # pixels: step of the grid up to which this is the price
_LARGE = 1 << 22  # pixels
_FEW = 1e-4  # pixels of all: smoothing ends if no more change
_OFF_EDGES = 3.0  # pixels: below this step of the grid, its points are not moved


@dataclass(frozen=True)
class Slic:
    """The descent: `start`, `step` and `done` as `iterate` takes them, then `finish`."""

    planes: Planes
    n_segments: int
    compactness: float
    tol: float
    n_threads: int

    @property
    def grid_step(self) -> float:
        """The side of a square as large as a segment on average."""
        return math.sqrt(self.planes.height * self.planes.width / self.n_segments)

    @property
    def search(self) -> kernel.Search:
        """What a pixel compares; tiles grow with the segments, so that few of them are looked at in each."""
        s = self.grid_step
        rows = 1 << min(3, max(0, round(math.log2(s / kernel.CELL_ROWS))))
        columns = 1 << min(2, max(0, round(math.log2(s / kernel.CELL_COLUMNS))))
        return kernel.Search((self.compactness / s * kernel.UNIT) ** 2, _REACH * s, rows, columns)

    def start(self) -> State:
        """Centres on a grid, each moved off an edge of the picture."""
        height, width = self.planes.height, self.planes.width
        places = grid(height, width, self.n_segments)
        at = np.clip(np.rint(places), 0, (height - 1, width - 1)).astype(np.intp)
        if self.grid_step >= _OFF_EDGES:
            moved = off_edges(self.planes, at)
            places = np.where((moved != at).any(1)[:, None], moved, places)
            at = moved
        colours = self.planes.values[:, at[:, 0], at[:, 1]].T
        return {"centres": np.column_stack([colours, places]), "moved": np.array(np.inf)}

    def step(self, state: State) -> tuple[State, Figures]:
        """Assign every pixel and move each centre to the mean of its pixels."""
        before = state["centres"]
        centres = self._assigned(before).centres(before)
        moved = float(np.sqrt(((centres - before)[:, -2:] ** 2).sum(1)).max())
        return {"centres": centres, "moved": np.array(moved)}, {"moved": moved}

    def done(self, state: State) -> bool:
        """Whether no centre has moved more than `tol` pixels."""
        return bool(state["moved"] <= self.tol)

    def finish(self, state: State, min_size: float, smoothness: float) -> tuple[NDArray[np.int32], int]:
        """Connected segments with smooth outlines, and their number."""
        labels = np.empty((self.planes.height, self.planes.width), np.int32)
        self._assigned(state["centres"], labels)
        least = math.ceil(min_size * self.grid_step**2)
        if smoothness > 0:  # most of the specks vanish already, in several threads
            self._smooth(labels, len(state["centres"]), smoothness, _BEFORE, whole=False)
        n = kernel.connect(labels, self.planes.values, least, self.n_segments)
        if n < self.n_segments:  # those of scattered specks are gone
            split_largest(labels, n, self.n_segments - n, 2 * least)
            n = kernel.connect(labels, self.planes.values, least, self.n_segments)
        if smoothness > 0:
            self._smooth(labels, n, smoothness, _AFTER, whole=True)
            n = kernel.connect(labels, self.planes.values, least, self.n_segments)
        return labels, n

    def _assigned(self, centres: Floats, labels: NDArray[np.int32] | None = None) -> SegmentSums:
        planes, search = self.planes, self.search
        narrow = np.ascontiguousarray(centres, np.float32)
        total, lock = [SegmentSums.empty(len(centres), planes.channels)], Lock()

        def work(rows: range) -> SegmentSums | None:
            found = None if labels is not None else SegmentSums.empty(len(centres), planes.channels)
            sums = None if found is None else found.values
            kernel.assign(
                planes.values, planes.bounds, narrow, search, cells(rows), planes.width, labels=labels, sums=sums
            )
            return found

        def take(number: int, found: SegmentSums | None) -> None:
            if found is not None:
                with lock:
                    total[0] = total[0].merge(found)

        over_strips(planes.height, work, self.n_threads, take)
        return total[0]

    def _smooth(self, labels: NDArray[np.int32], n: int, smoothness: float, passes: int, *, whole: bool) -> None:
        """Neighbours in other segments cost in proportion to the mean squared distance of pixels from their centres.

        So outlines are as smooth in a picture with much texture as in a calm one.
        """
        planes, weight = self.planes, self.search.weight
        sums = SegmentSums.empty(n, planes.channels)
        squares = kernel.plane_sums(planes.values, labels, range(planes.height), sums.values)
        centres = sums.centres(np.zeros((n, planes.channels + 2)))
        larger = math.sqrt(max(1.0, self.grid_step / _SHORT))  # long outlines have more bends of a few pixels
        price = smoothness * _PRICE * larger * _mean_distance(sums, squares, labels.shape, weight)
        narrow = centres.astype(np.float32)
        stamps = np.zeros((planes.height, kernel.stamp_columns(planes.width)), np.uint8)
        for each in range(passes):
            changed = 0
            for visit in range(4 * each, 4 * each + 4):
                work = partial(kernel.smooth, labels, planes.values, narrow, weight, price, whole, visit, stamps)
                # After the first pass little is left to do: to wait for threads would take longer.
                threads = self.n_threads if each == 0 or labels.size > _LARGE else 1
                changed += sum(over_strips(planes.height, work, threads))
            if changed <= _FEW * labels.size:
                break


def grid(height: int, width: int, n: int) -> Floats:
    """At least `n` points (row, column) in rows and columns at equal distances; a few more if squares would be far from square.

    What is too many is merged later. Squares, and not hexagons: pixels have sides, so that squares have the shorter outlines.
    """
    near = height / math.sqrt(height * width / n)
    fewest = -(-n // width)
    tried = range(max(1, fewest, math.floor(0.7 * near)), min(height, max(fewest, math.ceil(1.4 * near))) + 1)

    def cost(rows: int) -> float:
        columns = -(-n // rows)
        return (rows * columns - n) / n + _SQUARE * abs(math.log(height / rows * columns / width))

    rows = min(tried, key=cost)
    columns = -(-n // rows)
    down, across = np.divmod(np.arange(rows * columns), columns)
    return np.column_stack([(down + 0.5) * height / rows - 0.5, (across + 0.5) * width / columns - 0.5])


def split_largest(labels: NDArray[np.int32], n: int, count: int, least: int) -> None:
    """Cut the `count` largest of `n` segments in two, across the longer side of their boxes, in place.

    Those of fewer than `least` pixels stay whole.
    """
    figures = SegmentFigures.of(labels, n)
    chosen = np.argsort(-figures.sizes, kind="stable")[:count]
    chosen = chosen[figures.sizes[chosen] >= max(2, least)]
    top, left, bottom, right = figures.boxes.T
    upright = bottom - top >= right - left
    last_row, last_column = np.full(n, labels.shape[0]), np.full(n, labels.shape[1])  # of the first half
    last_row[chosen] = np.where(upright, np.floor(figures.centres[:, 0]), last_row)[chosen]
    last_column[chosen] = np.where(upright, last_column, np.floor(figures.centres[:, 1]))[chosen]
    other = np.arange(n, dtype=np.int32)
    other[chosen] = n + np.arange(len(chosen), dtype=np.int32)
    columns = np.arange(labels.shape[1])
    for row, line in enumerate(labels):
        beyond = (row > last_row[line]) | (columns > last_column[line])
        line[beyond] = other[line[beyond]]


def off_edges(planes: Planes, at: NDArray[np.intp]) -> NDArray[np.intp]:
    """Of each pixel and its eight neighbours, that with the smallest gradient; itself if none is smaller."""
    height, width = planes.height, planes.width
    best, least = at, _gradient(planes, at)
    for down in (-1, 0, 1):
        for across in (-1, 0, 1):
            other = np.clip(at + np.array([down, across]), 0, (height - 1, width - 1))
            found = _gradient(planes, other)
            best = np.where((found < least)[:, None], other, best)
            least = np.minimum(found, least)
    return best


def _gradient(planes: Planes, at: NDArray[np.intp]) -> NDArray[np.int64]:
    row, column = at.T
    up, down = np.maximum(row - 1, 0), np.minimum(row + 1, planes.height - 1)
    left, right = np.maximum(column - 1, 0), np.minimum(column + 1, planes.width - 1)
    values = planes.values
    vertical = values[:, down, column].astype(np.int64) - values[:, up, column]
    horizontal = values[:, row, right].astype(np.int64) - values[:, row, left]
    found: NDArray[np.int64] = (vertical**2 + horizontal**2).sum(0)
    return found


def _mean_distance(sums: SegmentSums, squares: int, shape: tuple[int, ...], weight: float) -> float:
    """The mean squared distance of pixels from their centres, from exact sums."""
    height, width = shape
    places = width * (height - 1) * height * (2 * height - 1) // 6 + height * (width - 1) * width * (2 * width - 1) // 6
    explained = sums.values[:, :-1].astype(np.float64) ** 2 / np.maximum(sums.sizes, 1)[:, None]
    colour, place = squares - float(explained[:, :-2].sum()), places - float(explained[:, -2:].sum())
    return max(0.0, colour + weight * place) / (height * width)
