"""Rows in a plane: points while they are few, shades on a grid when they are many."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from foldwise.data.block import Floats
from foldwise.report.legend import legend
from foldwise.report.svg import BLUE, MUTED, Plot, colour, fill

CELLS = 72
MOST_POINTS = 2000
_SHADES = 20
_FAR = 8.0  # standard deviations: of many rows, those further out would leave no room for the others, and become arrows


def window(low: Floats, high: Floats, mean: Floats, deviation: Floats) -> tuple[Floats, Floats]:
    """The corners of what is drawn of many rows: all of them, but for those that are very far out."""
    return np.maximum(low, mean - _FAR * deviation), np.minimum(high, mean + _FAR * deviation)


def with_room(low: Floats, high: Floats) -> tuple[tuple[float, float], tuple[float, float]]:
    """The ends of both axes, with some room beyond two corners."""
    room = 0.04 * float((high - low).max()) or 0.5
    return (float(low[0]) - room, float(high[0]) + room), (float(low[1]) - room, float(high[1]) + room)


class Grid:
    """Counts of rows on a grid of square cells from the corner `low` on, by group; what lies far out is kept apart."""

    def __init__(self, low: Floats, high: Floats, groups: int) -> None:
        self._low, self._high = low, high
        self._size = float((high - low).max()) / CELLS or 1.0
        self._counts = np.zeros((groups, CELLS, CELLS), dtype=np.int32)
        self._far: list[tuple[Floats, NDArray[Any]]] = []
        self._beyond: Counter[tuple[int, int]] = Counter()

    def add(self, places: Floats, groups: NDArray[Any]) -> None:
        """Count rows."""
        inside = ((places >= self._low) & (places <= self._high)).all(axis=1)
        cells = np.clip((places[inside] - self._low) / self._size, 0, CELLS - 1).astype(int)
        np.add.at(self._counts, (groups[inside], cells[:, 0], cells[:, 1]), 1)
        kept = max(MOST_POINTS - sum(len(some) for some, _ in self._far), 0)
        self._far.append((places[~inside][:kept], groups[~inside][:kept]))
        far, last = places[~inside][kept:], np.ceil((self._high - self._low) / self._size)
        cells = np.clip((far - self._low) / self._size, 0, last)
        cells = np.where(far < self._low, -1, np.where(far > self._high, last, cells)).astype(int)
        self._beyond.update((int(i), int(j)) for i, j in cells)

    def draw(self, plot: Plot, ink: Callable[[int], str]) -> None:
        """A cell has the colour of the group with the most rows there, and is the darker the more rows there are."""
        total, group_of = self._counts.sum(axis=0), self._counts.argmax(axis=0)
        found: dict[tuple[str, int], list[str]] = {}
        for i, j in np.argwhere(total):
            (x, y), (end_x, end_y) = self._corner(plot, i, j), self._corner(plot, i + 1, j + 1)
            shade = max(2, int(np.ceil(_SHADES * np.log1p(total[i, j]) / np.log1p(total.max()))))
            path = f"M{x:.1f} {y:.1f}H{end_x:.1f}V{end_y:.1f}H{x:.1f}z"
            found.setdefault((ink(int(group_of[i, j])), shade), []).append(path)
        for (used, shade), paths in found.items():
            plot.add(f'<path {fill(used)} opacity="{shade / _SHADES:.2f}" d="{"".join(paths)}"/>')
        for places, groups in self._far:  # in the frame if there is room on account of something else, arrows if not
            for group in np.unique(groups):
                xs, ys = places[groups == group].T
                plot.dots(xs, ys, ink(int(group)), 3, opacity=0.55)
        low, high = self._corner(plot, 0, 0), (plot.x(self._high[0]), plot.y(self._high[1]))
        box = low[0], high[1], high[0], low[1]
        for (i, j), rows in self._beyond.items():
            x, y = self._low + self._size * (np.array([i, j]) + 0.5)
            plot.arrow(float(x), float(y), MUTED, f"{rows:,} rows" if rows > 1 else "1 row", many=rows, box=box)

    def _corner(self, plot: Plot, i: int, j: int) -> tuple[float, float]:
        return plot.x(self._low[0] + i * self._size), plot.y(self._low[1] + j * self._size)


def scatter(
    places: Floats, groups: NDArray[np.intp] | None, names: Sequence[str], below: str, beside: str, size: int = 460
) -> str:
    """Rows at places in a plane, in the colours of their groups (-1: grey), which are named above."""
    low, high = places.min(axis=0), places.max(axis=0)
    few = len(places) <= MOST_POINTS
    if not few:
        low, high = window(low, high, places.mean(axis=0), places.std(axis=0))
    named, tall = legend([(name, colour(place)) for place, name in enumerate(names)], size)
    plot = Plot(*with_room(low, high), below, size, beside=beside, top=14 + tall, equal=True)
    plot.add(named)
    numbers = np.zeros(len(places), dtype=np.intp) if groups is None else np.where(groups < 0, len(names), groups)

    def ink(group: int) -> str:
        return BLUE if groups is None else colour(group) if group < len(names) else MUTED

    if few:
        for group in np.unique(numbers):
            xs, ys = places[numbers == group].T
            plot.dots(xs, ys, ink(int(group)), 3, opacity=0.55)
        return plot.svg()
    grid = Grid(low, high, len(names) + 1)
    grid.add(places, numbers)
    grid.draw(plot, ink)
    return plot.svg()
