"""Small plots as SVG text: no plotting library, a few kilobytes each, sharp at any size."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

import numpy as np
from numpy.typing import NDArray

_INK, _FAINT, _BLUE, _ORANGE = "#1f2933", "#d5dbe1", "#2f6db3", "#c8641b"


def scree(shares: Sequence[float], width: int = 520, height: int = 260) -> str:
    """Bars of the components' shares with the cumulative share as a line."""
    left, bottom, top = 44, 34, 12
    n = len(shares)
    inner_w, inner_h = width - left - 12, height - bottom - top
    step = inner_w / max(n, 1)

    def y(share: float) -> float:
        return top + inner_h * (1 - share)

    parts = [_open(width, height)]
    for tick in (0.0, 0.25, 0.5, 0.75, 1.0):
        parts.append(_line(left, y(tick), width - 12, y(tick), _FAINT))
        parts.append(_text(left - 6, y(tick) + 4, f"{100 * tick:.0f} %", "end"))
    for i, share in enumerate(shares):
        x = left + i * step
        bar = f'<rect x="{x + step * 0.15:.1f}" y="{y(share):.1f}" width="{step * 0.7:.1f}"'
        parts.append(f'{bar} height="{inner_h * share:.1f}" fill="{_BLUE}"><title>{100 * share:.1f} %</title></rect>')
        if n <= 20 or i % (n // 10 + 1) == 0:
            parts.append(_text(x + step / 2, height - bottom + 16, str(i), "middle"))
    points = " ".join(f"{left + (i + 0.5) * step:.1f},{y(s):.1f}" for i, s in enumerate(np.cumsum(shares)))
    parts.append(f'<polyline points="{points}" fill="none" stroke="{_ORANGE}" stroke-width="2"/>')
    parts.append(_text(left + inner_w / 2, height - 3, "component", "middle"))
    return "".join([*parts, "</svg>"])


class Cloud:
    """Rows in the plane: points while they are few, counts on a grid when they are many; bounded either way."""

    MOST_POINTS = 2000
    CELLS = 72

    def __init__(self, reach_x: float, reach_y: float) -> None:
        """The reaches are the half widths of the picture; what lies outside is counted at its edge."""
        self._reach = np.array([reach_x or 1.0, reach_y or 1.0])
        self._points: list[NDArray[np.float64]] = []
        self._counts = np.zeros((self.CELLS, self.CELLS), dtype=np.int64)
        self.rows = 0

    def add(self, scores: NDArray[np.float64]) -> None:
        """Put in rows of two scores."""
        place = np.clip((scores / self._reach + 1) / 2, 0.0, 1.0 - 1e-9)
        cells = (place * self.CELLS).astype(int)
        np.add.at(self._counts, (cells[:, 0], cells[:, 1]), 1)
        self.rows += len(scores)
        if self.rows <= self.MOST_POINTS:
            self._points.append(place)

    def draw(self, arrows: Sequence[tuple[float, float, str]], labels: tuple[str, str], size: int = 520) -> str:
        """The picture, with columns as arrows from the middle."""
        pad, inner = 34, size - 68
        parts = [_open(size, size), _line(pad, size / 2, size - pad, size / 2, _FAINT)]
        parts.append(_line(size / 2, pad, size / 2, size - pad, _FAINT))
        if self.rows <= self.MOST_POINTS:
            for x, y in np.vstack([np.zeros((0, 2)), *self._points]):
                spot = f'cx="{pad + x * inner:.1f}" cy="{size - pad - y * inner:.1f}"'
                parts.append(f'<circle {spot} r="3" fill="{_BLUE}" fill-opacity="0.55"/>')
        else:
            cell, most = inner / self.CELLS, np.log1p(self._counts.max())
            for i, j in np.argwhere(self._counts):
                shade = float(np.log1p(self._counts[i, j]) / most)
                where = f'x="{pad + i * cell:.1f}" y="{size - pad - (j + 1) * cell:.1f}"'
                parts.append(
                    f'<rect {where} width="{cell:.2f}" height="{cell:.2f}" fill="{_BLUE}" opacity="{shade:.2f}"/>'
                )
        taken: list[tuple[float, float]] = []
        for x, y, name in arrows:
            end_x, end_y = size / 2 + x * inner / 2, size / 2 - y * inner / 2
            parts.append(_line(size / 2, size / 2, end_x, end_y, _ORANGE, 1.6))
            at = end_y + (-5 if y >= 0 else 13)
            while any(abs(at - other) < 13 and abs(end_x - ox) < 90 for ox, other in taken):
                at += 13 if y < 0 else -13  # labels keep apart
            taken.append((end_x, at))
            parts.append(_text(min(max(end_x, 50), size - 50), at, name, "middle", _ORANGE))
        parts.append(_text(size / 2, size - 8, labels[0], "middle"))
        parts.append(f'<g transform="rotate(-90 14 {size / 2})">{_text(14, size / 2, labels[1], "middle")}</g>')
        return "".join([*parts, "</svg>"])


def _open(width: float, height: float) -> str:
    return f'<svg viewBox="0 0 {width:g} {height:g}" width="{width:g}" height="{height:g}" role="img" font-size="12">'


def _line(x1: float, y1: float, x2: float, y2: float, colour: str, width: float = 1) -> str:
    ends = f'x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"'
    return f'<line {ends} stroke="{colour}" stroke-width="{width:g}"/>'


def _text(x: float, y: float, words: str, anchor: str, colour: str = _INK) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{colour}">{escape(words)}</text>'
