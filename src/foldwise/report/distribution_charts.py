"""Pictures of distributions: histogram and densities, quantiles against quantiles, the likelihood along a parameter."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from foldwise.data.block import Floats
from foldwise.report.svg_primitives import BLUE, FAINT, INK, ORANGE, colour, line, short, start, text, ticks

_BAR = "#c9d8ea"


class Frame:
    """Where values come to lie in a picture with numbers on both sides; infinities lie at its edge."""

    def __init__(self, x: tuple[float, float], y: tuple[float, float], width: int = 520, height: int = 300) -> None:
        self._x, self._y, self.width, self.height = _open(x), _open(y), width, height
        widest = max(len(short(value)) for value in ticks(*self._y))
        self.left, self.right, self.top, self.bottom = 20.0 + 7 * widest, width - 14.0, 14.0, height - 40.0

    def x(self, value: float) -> float:
        """The place of a value along the picture."""
        low, high = self._x
        return self.left + (self.right - self.left) * min(max((value - low) / (high - low), 0.0), 1.0)

    def y(self, value: float) -> float:
        """The place of a value up the picture."""
        low, high = self._y
        return self.bottom - (self.bottom - self.top) * min(max((value - low) / (high - low), 0.0), 1.0)

    def draw(self, below: str) -> list[str]:
        """The numbers, and the words below."""
        parts = [start(self.width, self.height)]
        for value in ticks(*self._y):
            parts.append(line(self.left, self.y(value), self.right, self.y(value), FAINT))
            parts.append(text(self.left - 7, self.y(value) + 4, short(value), "end"))
        parts += [text(self.x(value), self.bottom + 16, short(value), "middle") for value in ticks(*self._x, 6)]
        parts.append(text((self.left + self.right) / 2, self.height - 5, below, "middle"))
        return parts

    def path(self, xs: Sequence[float], ys: Sequence[float], ink: str, width: float = 2, more: str = "") -> str:
        """A line through points."""
        places = " ".join(
            f"{self.x(float(x)):.1f},{self.y(float(y)):.1f}" for x, y in zip(xs, ys, strict=True) if math.isfinite(y)
        )
        return f'<polyline points="{places}" fill="none" stroke="{ink}" stroke-width="{width:g}" {more}/>'


def _open(ends: tuple[float, float]) -> tuple[float, float]:
    low, high = ends
    if high > low:
        return low, high
    room = abs(low) or 1.0
    return low - 0.5 * room, high + 0.5 * room


def histogram(
    edges: Floats, heights: Floats, curves: Sequence[tuple[str, Floats, Floats]], below: str, *, steps: bool
) -> str:
    """Bars of the data's density and lines of fitted ones, with their names; of counts, points joined by thin lines."""
    tops = [float(_seen(ys).max(initial=0.0)) for _, _, ys in curves]
    least = max(float(heights.max(initial=0.0)), tops[0])
    top = 1.08 * min(max(least, *tops), 2.5 * least)
    frame = Frame((float(edges[0]), float(edges[-1])), (0.0, top or 1.0))
    parts = frame.draw(below)
    for low, high, height in zip(edges[:-1], edges[1:], heights, strict=True):
        x, y = frame.x(float(low)), frame.y(float(height))
        size = f'width="{max(frame.x(float(high)) - x - 0.6, 0.6):.1f}" height="{frame.bottom - y:.1f}"'
        parts.append(f'<rect x="{x:.1f}" y="{y:.1f}" {size} fill="{_BAR}"/>')
    for number, (name, xs, ys) in reversed(list(enumerate(curves))):
        parts.append(frame.path(list(xs), list(ys), colour(number), 2.4 if number == 0 else 1.4))
        if steps:
            for x, y in zip(xs, ys, strict=True):
                parts.append(
                    f'<circle cx="{frame.x(float(x)):.1f}" cy="{frame.y(float(y)):.1f}" r="2.5" fill="{colour(number)}"/>'
                )
        parts.append(text(frame.right - 6, frame.top + 12 + 16 * number, name, "end", colour(number)))
    return "".join([*parts, "</svg>"])


def _seen(values: Floats) -> Floats:
    return values[np.isfinite(values)]


def quantile_chart(fitted: Floats, found: Floats, below: str, beside: str) -> str:
    """Quantiles of the data over those of the fit: along the line where both agree."""
    both = np.concatenate([_seen(fitted), found])
    ends = float(both.min()), float(both.max())
    frame = Frame(ends, ends, 420, 340)
    parts = frame.draw(below)
    parts.append(line(frame.x(ends[0]), frame.y(ends[0]), frame.x(ends[1]), frame.y(ends[1]), ORANGE, 1.5))
    for x, y in zip(fitted, found, strict=True):
        if math.isfinite(x):
            parts.append(
                f'<circle cx="{frame.x(float(x)):.1f}" cy="{frame.y(float(y)):.1f}" r="2.5" fill="{BLUE}" fill-opacity="0.6"/>'
            )
    parts.append(text(frame.left + 8, frame.top + 12, beside, "start"))
    return "".join([*parts, "</svg>"])


def likelihood_chart(
    name: str, values: Floats, likelihoods: Floats, estimate: float, interval: tuple[float, float]
) -> str:
    """The log-likelihood along a parameter, with the estimate and its interval."""
    seen = _seen(likelihoods)
    low, high = float(seen.min(initial=0.0)) if len(seen) else -1.0, float(seen.max()) if len(seen) else 0.0
    low = float(seen.min()) if len(seen) else low
    frame = Frame((float(values[0]), float(values[-1])), (low, high + 0.06 * (high - low)), 420, 260)
    parts = frame.draw(name)
    if all(math.isfinite(end) for end in interval):
        x, width = frame.x(interval[0]), frame.x(interval[1]) - frame.x(interval[0])
        parts.append(
            f'<rect x="{x:.1f}" y="{frame.top:.1f}" width="{width:.1f}" height="{frame.bottom - frame.top:.1f}" '
            f'fill="{ORANGE}" fill-opacity="0.10"/>'
        )
    parts.append(frame.path(list(values), list(likelihoods), BLUE))
    parts.append(line(frame.x(estimate), frame.top + 8, frame.x(estimate), frame.bottom, ORANGE, 1.5))
    parts.append(text(frame.x(estimate), frame.top + 2, f"{estimate:.5g}", "middle", INK))
    return "".join([*parts, "</svg>"])


def ascent_chart(likelihoods: Sequence[float]) -> str | None:
    """The log-likelihood point by point of a climb."""
    if len(likelihoods) < 2:
        return None
    low, high = min(likelihoods), max(likelihoods)
    frame = Frame((1.0, float(len(likelihoods))), (low, high + 0.05 * (high - low)), 420, 220)
    parts = frame.draw("point")
    places = range(1, len(likelihoods) + 1)
    parts.append(frame.path([float(p) for p in places], likelihoods, BLUE))
    if len(likelihoods) <= 60:
        for place, value in zip(places, likelihoods, strict=True):
            parts.append(f'<circle cx="{frame.x(place):.1f}" cy="{frame.y(value):.1f}" r="3" fill="{BLUE}"/>')
    return "".join([*parts, "</svg>"])
