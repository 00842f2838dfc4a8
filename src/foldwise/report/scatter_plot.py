"""Small plots as SVG text: no plotting library, a few kilobytes each, sharp at any size."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from foldwise.report.svg_primitives import BLUE, FAINT, ORANGE, colour, line, start, text


def scree(shares: Sequence[float], width: int = 520, height: int = 260) -> str:
    """Bars of the components' shares with the cumulative share as a line."""
    left, bottom, top = 44, 34, 12
    n = len(shares)
    inner_w, inner_h = width - left - 12, height - bottom - top
    step = inner_w / max(n, 1)

    def y(share: float) -> float:
        return top + inner_h * (1 - share)

    parts = [start(width, height)]
    for tick in (0.0, 0.25, 0.5, 0.75, 1.0):
        parts.append(line(left, y(tick), width - 12, y(tick), FAINT))
        parts.append(text(left - 6, y(tick) + 4, f"{100 * tick:.0f} %", "end"))
    for i, share in enumerate(shares):
        x = left + i * step
        bar = f'<rect x="{x + step * 0.15:.1f}" y="{y(share):.1f}" width="{step * 0.7:.1f}"'
        parts.append(f'{bar} height="{inner_h * share:.1f}" fill="{BLUE}"><title>{100 * share:.1f} %</title></rect>')
        if n <= 20 or i % (n // 10 + 1) == 0:
            parts.append(text(x + step / 2, height - bottom + 16, str(i), "middle"))
    points = " ".join(f"{left + (i + 0.5) * step:.1f},{y(s):.1f}" for i, s in enumerate(np.cumsum(shares)))
    parts.append(f'<polyline points="{points}" fill="none" stroke="{ORANGE}" stroke-width="2"/>')
    parts.append(text(left + inner_w / 2, height - 3, "component", "middle"))
    return "".join([*parts, "</svg>"])


class Cloud:
    """Rows in the plane: points while they are few, counts on a grid when they are many; bounded either way."""

    MOST_POINTS = 2000
    CELLS = 72
    SHADES = 20

    def __init__(self, reach_x: float, reach_y: float, groups: int = 1) -> None:
        """The reaches are the half widths of the picture; what lies outside is counted at its edge."""
        self._reach = np.array([reach_x or 1.0, reach_y or 1.0])
        self._points: list[NDArray[np.float64]] = []
        self._labels: list[NDArray[np.int32]] = []
        self._counts = np.zeros((groups, self.CELLS, self.CELLS), dtype=np.int32)
        self.rows = 0

    def add(self, scores: NDArray[np.float64], labels: NDArray[np.int32] | None = None) -> None:
        """Put in rows of two scores, with the numbers of their groups if they have any."""
        place = self._place(scores)
        cells = (place * self.CELLS).astype(int)
        group = np.zeros(len(scores), dtype=np.int32) if labels is None else labels
        np.add.at(self._counts, (group, cells[:, 0], cells[:, 1]), 1)
        self.rows += len(scores)
        if self.rows <= self.MOST_POINTS:
            self._points.append(place)
            self._labels.append(np.array(group))

    def _place(self, scores: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray(np.clip((scores / self._reach + 1) / 2, 0.0, 1.0 - 1e-9))

    def draw(
        self,
        arrows: Sequence[tuple[float, float, str]],
        labels: tuple[str, str],
        size: int = 520,
        centres: NDArray[np.float64] | None = None,
        ellipses: Sequence[tuple[NDArray[np.float64], NDArray[np.float64], int]] = (),
    ) -> str:
        """The picture, with columns as arrows from the middle, or the centres of groups with their numbers.

        An ellipse is a mean, a covariance and the number of its group: what lies within two standard deviations.
        """
        pad, inner = 34, size - 68
        parts = [start(size, size), line(pad, size / 2, size - pad, size / 2, FAINT)]
        parts.append(line(size / 2, pad, size / 2, size - pad, FAINT))
        if self.rows <= self.MOST_POINTS:
            groups = np.concatenate([np.zeros(0, dtype=np.int32), *self._labels])
            for (x, y), group in zip(np.vstack([np.zeros((0, 2)), *self._points]), groups, strict=True):
                spot = f'cx="{pad + x * inner:.1f}" cy="{size - pad - y * inner:.1f}"'
                parts.append(f'<circle {spot} r="3" fill="{self._fill(group)}" fill-opacity="0.55"/>')
        else:
            # A cell has the colour of the group that has most rows there.
            counts, group_of = self._counts.sum(axis=0), self._counts.argmax(axis=0)
            cell, most = inner / self.CELLS, np.log1p(counts.max())
            squares: dict[tuple[str, int], list[str]] = {}
            for i, j in np.argwhere(counts):
                paint = self._fill(group_of[i, j]), max(2, int(np.ceil(self.SHADES * np.log1p(counts[i, j]) / most)))
                where = f"M{pad + i * cell:.1f} {size - pad - (j + 1) * cell:.1f}"
                squares.setdefault(paint, []).append(f"{where}h{cell:.2f}v{cell:.2f}h-{cell:.2f}z")
            for (fill, shade), paths in squares.items():
                parts.append(f'<path fill="{fill}" opacity="{shade / self.SHADES:.2f}" d="{"".join(paths)}"/>')
        if ellipses:
            frame = f'<rect x="{pad}" y="{pad}" width="{inner}" height="{inner}"/>'
            parts.append(f'<clipPath id="frame">{frame}</clipPath><g clip-path="url(#frame)">')
            parts += [self._ellipse(*one, pad, inner, size) for one in ellipses]
            parts.append("</g>")
        for number, (x, y) in enumerate([] if centres is None else self._place(centres)):
            at_x, at_y = pad + x * inner, size - pad - y * inner
            ring = f'stroke="{colour(number)}" stroke-width="2"'
            parts.append(f'<circle cx="{at_x:.1f}" cy="{at_y:.1f}" r="10" fill="#fff" fill-opacity="0.9" {ring}/>')
            parts.append(text(at_x, at_y + 4, str(number), "middle"))
        taken: list[tuple[float, float]] = []
        for x, y, name in arrows:
            end_x, end_y = size / 2 + x * inner / 2, size / 2 - y * inner / 2
            parts.append(line(size / 2, size / 2, end_x, end_y, ORANGE, 1.6))
            at = end_y + (-5 if y >= 0 else 13)
            while any(abs(at - other) < 13 and abs(end_x - ox) < 90 for ox, other in taken):
                at += 13 if y < 0 else -13  # labels keep apart
            taken.append((end_x, at))
            parts.append(text(min(max(end_x, 50), size - 50), at, name, "middle", ORANGE))
        parts.append(text(size / 2, size - 8, labels[0], "middle"))
        parts.append(f'<g transform="rotate(-90 14 {size / 2})">{text(14, size / 2, labels[1], "middle")}</g>')
        return "".join([*parts, "</svg>"])

    def _ellipse(
        self, mean: NDArray[np.float64], covariance: NDArray[np.float64], group: int, pad: int, inner: int, size: int
    ) -> str:
        values, vectors = np.linalg.eigh(covariance)
        turn = np.linspace(0.0, 2 * np.pi, 61)[:-1]
        circle = np.column_stack([np.cos(turn), np.sin(turn)]) * (2 * np.sqrt(np.maximum(values, 0.0)))
        place = ((mean + circle @ vectors.T) / self._reach + 1) / 2
        path = " ".join(f"{pad + x * inner:.1f},{size - pad - y * inner:.1f}" for x, y in place)
        ink = self._fill(group)
        return f'<polygon points="{path}" fill="{ink}" fill-opacity="0.08" stroke="{ink}" stroke-width="1.8"/>'

    def _fill(self, group: int) -> str:
        return colour(int(group)) if len(self._counts) > 1 else BLUE
