"""Pictures about clusters: the curve of the inertia, the way to a solution, and what sets a cluster apart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from foldwise.report.svg_primitives import BLUE, FAINT, INK, ORANGE, colour, cut, line, short, start, text, ticks

_MOST_STEPS = 600
_MUTED = "#7b8794"


class _Axes:
    """Where values come to lie in a picture with a scale on the left and one below."""

    def __init__(self, x: tuple[float, float], y: tuple[float, float], width: int, height: int) -> None:
        self._x, self._y = x, y
        widest = max(len(short(value)) for value in ticks(*y))
        self.left, self.right, self.top, self.bottom = 20.0 + 7 * widest, width - 14.0, 14.0, height - 40.0
        self.width, self.height = width, height

    def x(self, value: float) -> float:
        low, high = self._x
        return self.left + (self.right - self.left) * ((value - low) / (high - low) if high > low else 0.5)

    def y(self, value: float) -> float:
        low, high = self._y
        return self.bottom - (self.bottom - self.top) * ((value - low) / (high - low) if high > low else 0.5)

    def draw(self, below: str, most: int = 10) -> list[str]:
        parts = [start(self.width, self.height)]
        for value in ticks(*self._y):
            parts.append(line(self.left, self.y(value), self.right, self.y(value), FAINT))
            parts.append(text(self.left - 7, self.y(value) + 4, short(value), "end"))
        whole = [value for value in ticks(*self._x, most) if value.is_integer()]
        parts += [text(self.x(value), self.bottom + 16, f"{value:g}", "middle") for value in whole]
        parts.append(text((self.left + self.right) / 2, self.height - 5, below, "middle"))
        return parts

    def path(self, points: Sequence[tuple[float, float]], ink: str, width: float = 2, more: str = "") -> str:
        places = " ".join(f"{self.x(x):.1f},{self.y(y):.1f}" for x, y in points)
        return f'<polyline points="{places}" fill="none" stroke="{ink}" stroke-width="{width:g}" {more}/>'


def numbers_chart(
    ks: Sequence[int], values: Sequence[float], mark: int | None, words: str, *, chord: bool, height: int = 260
) -> str:
    """A figure over the number of clusters, with one number marked, and the straight line between the ends if wanted."""
    axes = _Axes((float(ks[0]), float(ks[-1])), (min(0.0, *values), 1.1 * max(values) or 1.0), 520, height)
    parts = axes.draw("number of clusters")
    points = [(float(k), float(value)) for k, value in zip(ks, values, strict=True)]
    if chord:
        parts.append(axes.path([points[0], points[-1]], _MUTED, 1, 'stroke-dasharray="4 4"'))
    parts.append(axes.path(points, BLUE))
    for x, y in points:
        known, place = f"<title>{x:g} clusters: {y:.5g}</title>", f'cx="{axes.x(x):.1f}" cy="{axes.y(y):.1f}"'
        parts.append(f'<circle {place} r="3.5" fill="{BLUE}">{known}</circle>')
        if x == mark:
            parts.append(f'<circle {place} r="8" fill="none" stroke="{ORANGE}" stroke-width="2.5"/>')
            # To the left of the last points, so as not to leave the picture; above, where the curve is not.
            right = axes.x(x) < axes.right - 120
            at = (axes.x(x) + 12, "start") if right else (axes.x(x) - 12, "end")
            parts.append(text(at[0], max(axes.y(y) - 11, axes.top + 4), f"{words}: {mark}", at[1], ORANGE))
    return "".join([*parts, "</svg>"])


def trace_chart(trace: Sequence[dict[str, Any]], clusters: int, width: int = 520, height: int = 260) -> str | None:
    """The inertia after every step; runs with other numbers of centres, on the way out of an optimum, are faint."""
    if len(trace) < 2:
        return None
    runs: list[list[tuple[float, float]]] = []
    kinds: list[bool] = []
    every = len(trace) // _MOST_STEPS + 1
    for number, step in enumerate(trace):
        if number == 0 or step["run"] != trace[number - 1]["run"]:
            runs.append([])
            kinds.append(step["clusters"] == clusters)
        if not runs[-1] or number % every == 0 or number == len(trace) - 1:
            runs[-1].append((float(number + 1), float(step["inertia"])))
    values = [value for run in runs for _, value in run]
    low, high = min(values), max(values)
    room = 0.06 * (high - low) or abs(high) or 1.0
    axes = _Axes((1.0, float(len(trace))), (max(0.0, low - room), high + room), width, height)
    parts = axes.draw("step")
    for run, ours in sorted(zip(runs, kinds, strict=True), key=lambda pair: pair[1]):  # ours above the others
        ink = BLUE if ours else _MUTED
        parts.append(axes.path(run, ink, 2 if ours else 1))
        if ours:
            x, y = run[-1]
            parts.append(f'<circle cx="{axes.x(x):.1f}" cy="{axes.y(y):.1f}" r="2.5" fill="{ink}"/>')
    return "".join([*parts, "</svg>"])


def difference_bars(
    names: Sequence[str], values: Sequence[float], reach: float, ink: str, width: int = 330, row: int = 20
) -> str:
    """Differences from the mean of all rows as bars to the left and to the right; `reach` is where they would end."""
    left, height = 150.0, row * len(values) + 6
    middle, half = left + (width - left) / 2, (width - left) / 2 - 42  # room for the figures at both ends
    parts = [start(width, height)]
    for i, (name, value) in enumerate(zip(names, values, strict=True)):
        top, length = 3 + i * row, half * min(abs(value) / reach, 1.0) if reach > 0 else 0.0
        known = f"<title>{escape(name)}: {value:+.2f}</title>"
        parts.append(f"<g>{text(left - 8, top + row * 0.7, cut(name, 20), 'end')}{known}</g>")
        x = middle if value >= 0 else middle - length
        parts.append(f'<rect x="{x:.1f}" y="{top + 2:g}" width="{length:.1f}" height="{row - 5}" fill="{ink}"/>')
        beside, anchor = (middle + length + 4, "start") if value >= 0 else (middle - length - 4, "end")
        parts.append(text(beside, top + row * 0.7, f"{value:+.1f}", anchor, INK))
    parts.append(line(middle, 0, middle, height, _MUTED))
    return "".join([*parts, "</svg>"])


def lines_chart(
    numbers: Sequence[int],
    series: Mapping[str, Sequence[float]],
    best: tuple[str, int],
    below: str,
    width: int = 520,
    height: int = 300,
) -> str:
    """Several figures over a number, lower being better; what is far above the rest is cut off, the best is marked."""
    values = sorted(value for each in series.values() for value in each if value == value)
    low, high = values[0], values[(6 * (len(values) - 1)) // 10]
    room = 0.08 * (high - low) or abs(high) or 1.0
    axes = _Axes((float(numbers[0]), float(numbers[-1])), (low - room, high + room), width, height)
    axes.top = 30.0  # room for the names
    parts, across = axes.draw(below), axes.left
    frame = f'x="{axes.left:.1f}" y="{axes.top:.1f}" width="{axes.right - axes.left:.1f}"'
    parts.append(f'<clipPath id="lines"><rect {frame} height="{axes.bottom - axes.top:.1f}"/></clipPath>')
    for place, (name, each) in enumerate(series.items()):
        ink = colour(place)
        points = [(float(k), float(v)) for k, v in zip(numbers, each, strict=True) if v == v]
        parts.append(f'<g clip-path="url(#lines)">{axes.path(points, ink)}')
        for x, y in points:
            known = f"<title>{escape(name)}, {x:g}: {y:.2f}</title>"
            parts.append(f'<circle cx="{axes.x(x):.1f}" cy="{axes.y(y):.1f}" r="3.5" fill="{ink}">{known}</circle>')
        parts.append("</g>")
        parts.append(
            f'<circle cx="{across + 5:.1f}" cy="14" r="5" fill="{ink}"/>{text(across + 14, 18, name, "start")}'
        )
        across += 34.0 + 7 * len(name)
        if name == best[0]:
            y = float(each[list(numbers).index(best[1])])
            spot = f'cx="{axes.x(best[1]):.1f}" cy="{axes.y(y):.1f}"'
            parts.append(f'<circle {spot} r="8" fill="none" stroke="{ORANGE}" stroke-width="2.5"/>')
    return "".join([*parts, "</svg>"])


def histogram(shares: Sequence[float], below: str, width: int = 520, height: int = 220) -> str:
    """Bars over 0 to 1, as shares of all."""
    axes = _Axes((0.0, 1.0), (0.0, 1.05 * max(shares) or 1.0), width, height)
    axes.left = 52.0
    parts = [start(width, height)]
    for value in ticks(0.0, 1.05 * max(shares) or 1.0):
        parts.append(line(axes.left, axes.y(value), axes.right, axes.y(value), FAINT))
        parts.append(text(axes.left - 7, axes.y(value) + 4, f"{100 * value:.0f} %", "end"))
    step = 1.0 / len(shares)
    for i, value in enumerate(shares):
        x, y = axes.x(i * step) + 1, axes.y(value)
        known = f"<title>{i * step:.2f} to {(i + 1) * step:.2f}: {100 * value:.1f} %</title>"
        size = f'width="{axes.x((i + 1) * step) - x - 1:.1f}" height="{axes.bottom - y:.1f}"'
        parts.append(f'<rect x="{x:.1f}" y="{y:.1f}" {size} fill="{BLUE}">{known}</rect>')
    parts += [text(axes.x(value), axes.bottom + 16, f"{value:g}", "middle") for value in (0.0, 0.25, 0.5, 0.75, 1.0)]
    parts.append(text((axes.left + axes.right) / 2, height - 5, below, "middle"))
    return "".join([*parts, "</svg>"])
