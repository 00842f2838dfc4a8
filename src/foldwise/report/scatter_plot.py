"""Rows in the plane as SVG: points while they are few, counts on a grid when they are many."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from foldwise.data.block import Floats
from foldwise.report.svg import BLUE, FAINT, ORANGE, colour, line, start, text

_SIZE, _PAD = 520, 34
_INNER = _SIZE - 2 * _PAD


class ScatterPlot:
    """Rows of two scores, put in block by block; memory and drawing stay small for any number of rows."""

    MOST_POINTS = 2000
    CELLS = 72
    SHADES = 20

    def __init__(self, reach_x: float, reach_y: float, below: str, beside: str, groups: int = 1) -> None:
        """The reaches are the half widths of the plot; what lies outside is counted at its edge."""
        self._reach, self._labels = np.array([reach_x or 1.0, reach_y or 1.0]), (below, beside)
        self._points: list[NDArray[np.float64]] = []
        self._groups: list[NDArray[np.int32]] = []
        self._counts = np.zeros((groups, self.CELLS, self.CELLS), dtype=np.int32)
        self.rows = 0

    def add(self, scores: NDArray[np.float64], groups: NDArray[np.int32] | None = None) -> None:
        """Put in rows of two scores, with the numbers of their groups if they have any."""
        share = np.clip((scores / self._reach + 1) / 2, 0.0, 1.0 - 1e-9)
        cells = (share * self.CELLS).astype(int)
        group = np.zeros(len(scores), dtype=np.int32) if groups is None else np.array(groups)
        np.add.at(self._counts, (group, cells[:, 0], cells[:, 1]), 1)
        self.rows += len(scores)
        if self.rows <= self.MOST_POINTS:
            self._points.append(scores)
            self._groups.append(group)

    def _place(self, scores: Floats, *, inside: bool = True) -> Floats:
        """Where scores are drawn."""
        share = (scores / self._reach + 1) / 2
        share = np.clip(share, 0.0, 1.0) if inside else share
        return np.asarray(share * [_INNER, -_INNER] + [_PAD, _SIZE - _PAD])

    def _fill(self, group: int) -> str:
        return colour(int(group)) if len(self._counts) > 1 else BLUE

    def draw(
        self,
        arrows: Sequence[tuple[float, float, str]] = (),
        centres: Floats | None = None,
        ellipses: Sequence[tuple[Floats, Floats, int]] = (),
    ) -> str:
        """The plot, with columns as arrows from the middle, or the centres of groups with their numbers.

        An ellipse is a mean, a covariance and the number of its group: what lies within two standard deviations.
        """
        middle = _SIZE / 2
        parts = [start(_SIZE, _SIZE), line(_PAD, middle, _SIZE - _PAD, middle, FAINT)]
        parts += [line(middle, _PAD, middle, _SIZE - _PAD, FAINT), *self._draw_rows()]
        if ellipses:
            frame = f'<rect x="{_PAD}" y="{_PAD}" width="{_INNER}" height="{_INNER}"/>'
            parts.append(f'<clipPath id="scatter-frame">{frame}</clipPath><g clip-path="url(#scatter-frame)">')
            parts += [*(self._ellipse(*one) for one in ellipses), "</g>"]
        for number, (x, y) in enumerate([] if centres is None else self._place(centres)):
            ring = f'stroke="{colour(number)}" stroke-width="2"'
            parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="10" fill="#fff" fill-opacity="0.9" {ring}/>')
            parts.append(text(x, y + 4, str(number), "middle"))
        taken: list[tuple[float, float]] = []
        for x, y, name in arrows:
            end_x, end_y = middle + x * _INNER / 2, middle - y * _INNER / 2
            parts.append(line(middle, middle, end_x, end_y, ORANGE, 1.6))
            at = end_y + (-5 if y >= 0 else 13)
            while any(abs(at - other) < 13 and abs(end_x - ox) < 90 for ox, other in taken):
                at += 13 if y < 0 else -13  # labels keep apart
            taken.append((end_x, at))
            parts.append(text(min(max(end_x, 50), _SIZE - 50), at, name, "middle", ORANGE))
        below, beside = (
            text(x, y, words, "middle")
            for (x, y), words in zip([(middle, _SIZE - 8), (14, middle)], self._labels, strict=True)
        )
        return "".join([*parts, below, f'<g transform="rotate(-90 14 {middle})">{beside}</g></svg>'])

    def _draw_rows(self) -> list[str]:
        if self.rows <= self.MOST_POINTS:
            places = self._place(np.vstack([np.zeros((0, 2)), *self._points]))
            groups = np.concatenate([np.zeros(0, dtype=np.int32), *self._groups])
            return [
                f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{self._fill(group)}" fill-opacity="0.55"/>'
                for (x, y), group in zip(places, groups, strict=True)
            ]
        # A cell has the colour of the group that has most rows there.
        counts, group_of = self._counts.sum(axis=0), self._counts.argmax(axis=0)
        cell, most = _INNER / self.CELLS, np.log1p(counts.max())
        squares: dict[tuple[str, int], list[str]] = {}
        for i, j in np.argwhere(counts):
            paint = self._fill(group_of[i, j]), max(2, int(np.ceil(self.SHADES * np.log1p(counts[i, j]) / most)))
            where = f"M{_PAD + i * cell:.1f} {_SIZE - _PAD - (j + 1) * cell:.1f}"
            squares.setdefault(paint, []).append(f"{where}h{cell:.2f}v{cell:.2f}h-{cell:.2f}z")
        return [
            f'<path fill="{fill}" opacity="{shade / self.SHADES:.2f}" d="{"".join(paths)}"/>'
            for (fill, shade), paths in squares.items()
        ]

    def _ellipse(self, mean: Floats, covariance: Floats, group: int) -> str:
        values, vectors = np.linalg.eigh(covariance)
        turn = np.linspace(0.0, 2 * np.pi, 61)[:-1]
        circle = np.column_stack([np.cos(turn), np.sin(turn)]) * (2 * np.sqrt(np.maximum(values, 0.0)))
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in self._place(mean + circle @ vectors.T, inside=False))
        ink = self._fill(group)
        return f'<polygon points="{path}" fill="{ink}" fill-opacity="0.08" stroke="{ink}" stroke-width="1.8"/>'
