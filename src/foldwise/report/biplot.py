"""Columns as arrows: over the rows (the biplot), and in the circle of their correlations with two directions."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from foldwise.data.block import Floats
from foldwise.report.equal_plane import cross, draw_points, ends_of, equal_plot
from foldwise.report.labels import shortened
from foldwise.report.place_labels import Anchor, Box, draw_labels
from foldwise.report.svg import INK, MUTED, ORANGE, Plot, fill, over

_LONGEST = 150.0  # pixels of a name
_HEAD, _WING = 9.0, 0.42  # of an arrow: length in pixels, half its angle
_EVERY = 10.0  # pixels of an arrow, at which names keep off it
_REACH = 0.85  # of the frame, for the longest arrow


def biplot(
    places: Floats,
    groups: NDArray[np.intp],
    ink: Callable[[int], str],
    arrows: Floats,
    names: Sequence[str],
    axes: tuple[str, str],
) -> str:
    """Rows on two directions, and columns as arrows (columns x 2), all made longer by one factor so that they can be seen."""
    x, y = ends_of(places[:, 0]), ends_of(places[:, 1])
    reach = _REACH * min(max(-x[0], x[1]), max(-y[0], y[1]) if y[1] > y[0] else math.inf)
    longest = float(np.hypot(*arrows.T).max(initial=0.0))
    ends = arrows * (max(reach, 1e-300) / longest) if longest > 0 else arrows
    both = np.vstack([places, ends * 1.12, [[0.0, 0.0]]])
    plot = equal_plot(ends_of(both[:, 0]), ends_of(both[:, 1]), *axes)
    draw_points(plot, places, groups, ink, 0.45)
    cross(plot)
    draw_arrows(plot, ends, names)
    return plot.svg()


def correlation_circle(correlations: Floats, names: Sequence[str], axes: tuple[str, str]) -> str:
    """The correlations of columns with two directions as arrows in a circle of radius 1."""
    plot = equal_plot((-1.12, 1.12), (-1.12, 1.12), *axes, width=520)
    turn = np.linspace(0.0, 2 * np.pi, 121)
    plot.line(np.cos(turn), np.sin(turn), MUTED, 1.2)
    cross(plot)
    draw_arrows(plot, correlations, names)
    return plot.svg()


def draw_arrows(plot: Plot, ends: Floats, names: Sequence[str]) -> None:
    """Arrows from the origin with heads, and their names, which appear in full under the pointer."""
    anchors, shafts = [], list[Box]()
    x0, y0 = plot.x(0.0), plot.y(0.0)
    for (x, y), name in zip(ends, names, strict=True):
        x1, y1 = plot.x(float(x)), plot.y(float(y))
        length = math.hypot(x1 - x0, y1 - y0)
        anchors.append(Anchor(x1, y1, shortened(name, _LONGEST), x1 - x0 if length else 1.0, y1 - y0))
        plot.add(f"<g>{over(name)}{_arrow(x0, y0, x1, y1)}</g>")
        for share in np.arange(_EVERY / 2, length - _HEAD, _EVERY) / max(length, 1.0):
            at = x0 + (x1 - x0) * share, y0 + (y1 - y0) * share
            shafts.append(Box(at[0] - 2, at[1] - 2, at[0] + 2, at[1] + 2))
    frame = Box(plot.left + 2, plot.top + 2, plot.right - 2, plot.bottom - 2)
    plot.add(*draw_labels(anchors, frame, INK, shafts))


def _arrow(x0: float, y0: float, x1: float, y1: float) -> str:
    """A line with a filled head at its end; without one if there is no room for it."""
    length, angle = math.hypot(x1 - x0, y1 - y0), math.atan2(y1 - y0, x1 - x0)
    head = min(_HEAD, 0.6 * length)
    wings = [(x1 - head * math.cos(angle + turn), y1 - head * math.sin(angle + turn)) for turn in (-_WING, _WING)]
    points = " ".join(f"{x:.1f},{y:.1f}" for x, y in [(x1, y1), *wings])
    neck = max(0.0, length - 0.7 * head) / length if length else 0.0
    shaft = f'x1="{x0:.1f}" y1="{y0:.1f}" x2="{x0 + (x1 - x0) * neck:.1f}" y2="{y0 + (y1 - y0) * neck:.1f}"'
    return f'<line {shaft} style="stroke:{ORANGE}" stroke-width="1.8"/><polygon points="{points}" {fill(ORANGE)}/>'
