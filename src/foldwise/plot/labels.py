"""Labels that keep apart: each is moved away from the others, and tied to its place by a thin line if it went far."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from foldwise.plot.axes import MUTED

_TURNS = np.deg2rad([0, 20, -20, 40, -40, 65, -65, 90, -90])
_FAR = (0.0, 1.0, 2.0, 3.2, 4.6, 6.2)  # heights of a line that a label may go outwards


def place_labels(ax: Any, ends: Any, names: Sequence[str], ink: str, *, size: float = 9) -> list[Any]:
    """Write names outwards of the ends of arrows from the origin, so that no two overlap; gives the texts.

    Longer arrows are named first, at the nearest of several places that is free and inside the axes.
    """
    from matplotlib.patheffects import withStroke

    figure = ax.figure
    renderer = figure.canvas.get_renderer() if hasattr(figure.canvas, "get_renderer") else figure._get_renderer()
    figure.draw_without_rendering()  # the layout settles where the axes are
    frame, origin = ax.get_window_extent(renderer), ax.transData.transform((0.0, 0.0))
    points = ax.transData.transform(np.asarray(ends, dtype=np.float64))
    taken = [(x - 4.0, y - 4.0, x + 4.0, y + 4.0) for x, y in points]  # the heads of the arrows
    texts: list[Any] = []
    order = np.argsort(-np.hypot(*(points - origin).T), kind="stable")
    for j in order:
        text = ax.text(0.0, 0.0, names[j], color=ink, fontsize=size, ha="center", va="center", zorder=5)
        text.set_path_effects([withStroke(linewidth=2.5, foreground="white", alpha=0.8)])
        box = text.get_window_extent(renderer)
        half = np.array([box.width / 2 + 2, box.height / 2 + 1])
        middle = _free_place(points[j], origin, half, taken, frame)
        taken.append((*(middle - half), *(middle + half)))
        text.set_position(ax.transData.inverted().transform(middle))
        texts.append(text)
        away = np.maximum(np.abs(middle - points[j]) - half, 0.0)
        if np.hypot(*away) > box.height:
            near = np.clip(points[j], middle - half, middle + half)
            (x0, y0), (x1, y1) = ax.transData.inverted().transform(np.array([points[j], near]))
            ax.plot([x0, x1], [y0, y1], color=MUTED, linewidth=0.6, zorder=4)
    return texts


def _free_place(point: Any, origin: Any, half: Any, taken: Sequence[tuple[float, ...]], frame: Any) -> Any:
    """The middle of a label of this size: the first place that overlaps nothing, else the one that overlaps least."""
    outwards = point - origin
    length = float(np.hypot(*outwards))
    direction = outwards / length if length > 0 else np.array([1.0, 0.0])
    best, least = point, np.inf
    for far in _FAR:
        for turn in _TURNS:
            turned = np.array(
                [
                    direction[0] * np.cos(turn) - direction[1] * np.sin(turn),
                    direction[0] * np.sin(turn) + direction[1] * np.cos(turn),
                ]
            )
            # So far that the nearest edge of the label, not its middle, is at the end of the arrow.
            reach = min(half[0] / max(abs(turned[0]), 1e-9), half[1] / max(abs(turned[1]), 1e-9))
            middle = point + turned * (reach + 5 + 2 * half[1] * far)
            low, high = middle - half, middle + half
            overlap = sum(
                max(0.0, min(high[0], x1) - max(low[0], x0)) * max(0.0, min(high[1], y1) - max(low[1], y0))
                for x0, y0, x1, y1 in taken
            )
            outside = max(0.0, frame.x0 - low[0], high[0] - frame.x1) + max(0.0, frame.y0 - low[1], high[1] - frame.y1)
            cost = overlap + 50.0 * outside
            if cost == 0.0:
                return middle
            if cost < least:
                best, least = middle, cost
    return best
