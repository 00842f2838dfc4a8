"""Rows in a plane: points while they are few, shades on a grid when they are many."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from foldwise.data.block import Floats
from foldwise.report.svg import BLUE, MUTED, Plot, colour, dot, text

CELLS = 72
MOST_POINTS = 2000
_SHADES = 20


def squares(plot: Plot, counts: NDArray[np.int32], ink: Callable[[int], str]) -> list[str]:
    """The cells of a grid over the plot, by group: a cell has the colour of the group with the most rows there."""
    total, group_of = counts.sum(axis=0), counts.argmax(axis=0)
    width, height = (plot.right - plot.left) / CELLS, (plot.bottom - plot.top) / CELLS
    found: dict[tuple[str, int], list[str]] = {}
    for i, j in np.argwhere(total):
        shade = max(2, int(np.ceil(_SHADES * np.log1p(total[i, j]) / np.log1p(total.max()))))
        where = f"M{plot.left + i * width:.1f} {plot.bottom - (j + 1) * height:.1f}"
        found.setdefault((ink(int(group_of[i, j])), shade), []).append(
            f"{where}h{width:.2f}v{height:.2f}h-{width:.2f}z"
        )
    return [
        f'<path style="fill:{fill}" opacity="{shade / _SHADES:.2f}" d="{"".join(paths)}"/>'
        for (fill, shade), paths in found.items()
    ]


def scatter(
    places: Floats, groups: NDArray[np.intp] | None, names: Sequence[str], below: str, beside: str, size: int = 480
) -> str:
    """Rows at places in a plane, in the colours of their groups (-1: grey), which are named above."""
    low, high = _ends(places)
    legend = 26.0 * bool(names)
    plot = Plot((low[0], high[0]), (low[1], high[1]), below, size, size + int(legend), beside=beside, top=14 + legend)
    _legend(plot, names)
    numbers = np.zeros(len(places), dtype=np.intp) if groups is None else groups

    def ink(group: int) -> str:
        return BLUE if groups is None else colour(group) if group < len(names) else MUTED

    if len(places) <= MOST_POINTS:
        for group in np.unique(numbers):
            xs, ys = places[numbers == group].T
            plot.dots(xs, ys, ink(int(group) if group >= 0 else len(names)), 3, opacity=0.55)
        return plot.svg()
    counts = np.zeros((max(len(names), 0) + 1, CELLS, CELLS), dtype=np.int32)
    room = np.where(high > low, high - low, 1.0)
    inside = ((places >= low) & (places <= high)).all(axis=1)
    cells = np.clip((places[inside] - low) / room * CELLS, 0, CELLS - 1).astype(int)
    np.add.at(counts, (np.where(numbers < 0, len(names), numbers)[inside], cells[:, 0], cells[:, 1]), 1)
    plot.add(*squares(plot, counts, ink))
    return plot.svg()


def _ends(places: Floats) -> tuple[Floats, Floats]:
    """The frame: all points of few rows; of many rows all but the outermost in a thousand, which lie beyond it."""
    cut = 0.0 if len(places) <= MOST_POINTS else 0.001
    low, high = np.quantile(places, [cut, 1 - cut], axis=0)
    room = 0.04 * (high - low)
    return low - room, high + room


def _legend(plot: Plot, names: Sequence[str]) -> None:
    across = plot.left
    for place, name in enumerate(names):
        wide = 22.0 + 7 * len(name)
        if across + wide > plot.right and place:
            plot.add(text(across, 18, "…", "start"))
            return
        plot.add(dot(across + 5, 14, 5, colour(place)))
        plot.add(text(across + 13, 18, name, "start"))
        across += wide
