"""Points in a plane with equal scales on both axes: a unit across is as long as a unit upwards, and nothing is left out."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from foldwise.data.block import Floats
from foldwise.report.plane import MOST_POINTS, Grid
from foldwise.report.svg import MUTED, Plot, line

WIDTH = 620
Ends = tuple[float, float]


def equal_plot(x: Ends, y: Ends, below: str, beside: str, width: int = WIDTH) -> Plot:
    """A frame that holds both ranges, with equal scales."""
    return Plot(x, y, below, width, beside=beside, equal=True)


def ends_of(values: Floats, room: float = 0.04) -> Ends:
    """The smallest and the largest value, with some room."""
    low, high = float(np.min(values, initial=np.inf)), float(np.max(values, initial=-np.inf))
    if not low <= high:
        return -1.0, 1.0
    more = room * (high - low)
    return low - more, high + more


def cross(plot: Plot) -> None:
    """Lines through the origin."""
    if plot.left <= plot.x(0) <= plot.right:
        plot.add(line(plot.x(0), plot.top, plot.x(0), plot.bottom, MUTED, 0.6))
    if plot.top <= plot.y(0) <= plot.bottom:
        plot.add(line(plot.left, plot.y(0), plot.right, plot.y(0), MUTED, 0.6))


def draw_points(
    plot: Plot, places: Floats, groups: NDArray[np.intp], ink: Callable[[int], str], opacity: float = 0.6
) -> None:
    """Rows as points while they are few, else the number of rows in each small square."""
    numbers = np.unique(groups)
    if len(places) <= MOST_POINTS:
        for group in numbers:
            dots = "".join(f"M{plot.x(x):.1f} {plot.y(y):.1f}h0" for x, y in places[groups == group])
            look = f'stroke-width="5.5" stroke-linecap="round" stroke-opacity="{opacity:g}"'
            plot.add(f'<path d="{dots}" style="fill:none;stroke:{ink(int(group))}" {look}/>')
        return
    grid = Grid(places.min(axis=0), places.max(axis=0), len(numbers))
    grid.add(places, np.searchsorted(numbers, groups))
    grid.draw(plot, lambda place: ink(int(numbers[place])))
