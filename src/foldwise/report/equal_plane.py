"""Points in a plane with equal scales on both axes: a unit across is as long as a unit upwards, and nothing is left out."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from foldwise.data.block import Floats
from foldwise.report.plane import CELLS, MOST_POINTS, squares
from foldwise.report.svg import MUTED, Plot, line

WIDTH, LOWEST, HIGHEST = 620, 300, 620
Ends = tuple[float, float]


def equal_plot(x: Ends, y: Ends, below: str, beside: str, width: int = WIDTH, *, top: float = 14.0) -> Plot:
    """A frame that holds both ranges, with equal scales; the shorter range is widened where the frame would be too flat."""
    x, y, height = _apart(*x), _apart(*y), HIGHEST
    plot = Plot(x, y, below, width, height, beside=beside, top=top)
    for _ in range(4):  # the room for the figures at the left depends on the scale, and the scale on the room
        wide, edges = plot.right - plot.left, height - (plot.bottom - plot.top)
        tall = wide * (y[1] - y[0]) / (x[1] - x[0])
        height = round(min(max(tall + edges, LOWEST), min(HIGHEST, width)))
        unit = min(wide / (x[1] - x[0]), (height - edges) / (y[1] - y[0]))
        x, y = _widened(x, wide / unit), _widened(y, (height - edges) / unit)
        plot = Plot(x, y, below, width, height, beside=beside, top=top)
    return plot


def _apart(low: float, high: float) -> Ends:
    return (low, high) if high > low else (low - 0.5, high + 0.5)


def _widened(ends: Ends, length: float) -> Ends:
    """A range of at least this length about the same middle."""
    room = max(0.0, (length - (ends[1] - ends[0])) / 2)
    return ends[0] - room, ends[1] + room


def ends_of(values: Floats, room: float = 0.04) -> Ends:
    """The smallest and the largest value, with some room."""
    low, high = float(np.min(values, initial=np.inf)), float(np.max(values, initial=-np.inf))
    if not low <= high:
        return -1.0, 1.0
    more = room * (high - low)
    return low - more, high + more


def cross(plot: Plot) -> None:
    """Lines through the origin."""
    plot.add(line(plot.x(0), plot.top, plot.x(0), plot.bottom, MUTED, 0.6))
    plot.add(line(plot.left, plot.y(0), plot.right, plot.y(0), MUTED, 0.6))


def draw_points(
    plot: Plot, places: Floats, groups: NDArray[np.intp], ink: Callable[[int], str], opacity: float = 0.6
) -> None:
    """Rows as points while they are few, else the number of rows in each small square; groups below 0 come first."""
    if len(places) <= MOST_POINTS:
        for group in np.unique(groups):
            dots = "".join(f"M{plot.x(x):.1f} {plot.y(y):.1f}h0" for x, y in places[groups == group])
            look = f'stroke="{ink(int(group))}" stroke-width="5.5" stroke-linecap="round" stroke-opacity="{opacity:g}"'
            plot.add(f'<path d="{dots}" fill="none" {look}/>')
        return
    numbers = np.unique(groups)
    counts = np.zeros((len(numbers), CELLS, CELLS), dtype=np.int32)
    across = np.array([plot.left, plot.bottom])
    # Along each axis the place in the frame, in cells: the axes are linear, so two points give the scale.
    origin = np.array([plot.x(places[0, 0]), plot.y(places[0, 1])])
    unit = np.array(_units(plot, places))
    pixels = origin + (places - places[0]) * unit
    size = np.array([plot.right - plot.left, plot.top - plot.bottom]) / CELLS
    cells = np.clip((pixels - across) / size, 0, CELLS - 1).astype(np.intp)
    np.add.at(counts, (np.searchsorted(numbers, groups), cells[:, 0], cells[:, 1]), 1)
    plot.add(*squares(plot, counts, lambda place: ink(int(numbers[place]))))


def _units(plot: Plot, places: Floats) -> tuple[float, float]:
    """Pixels of one unit across and downwards."""
    low, high = places.min(axis=0), places.max(axis=0)
    far = np.where(high > low, high - low, 1.0)
    across = (plot.x(high[0]) - plot.x(low[0])) / far[0] if high[0] > low[0] else 1.0
    down = (plot.y(high[1]) - plot.y(low[1])) / far[1] if high[1] > low[1] else 1.0
    return across, down
