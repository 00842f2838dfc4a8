"""Charts of groups: silhouettes of the rows, how often each group is found again, and distributions of columns by group."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

import numpy as np
from numpy.typing import NDArray

from foldwise.data.block import Floats
from foldwise.report.svg import INK, MUTED, ORANGE, colour, fill, line, short, start, stroke, text, ticks

_STEPS = 90  # points of an outline
_BINS = 64


def _across(
    x: tuple[float, float], left: float, width: int, height: float, below: str
) -> tuple[list[str], float, float]:
    """A drawing with a scale below only: its first parts, the pixel of 0 and pixels per unit."""
    right, bottom = width - 16.0, height - (40.0 if below else 24.0)
    unit = (right - left) / (x[1] - x[0])
    parts = [start(width, height)]
    for value in ticks(*x, 6):
        at = left + (value - x[0]) * unit
        parts += [line(at, 16, at, bottom, MUTED, 0.25), text(at, bottom + 16, short(value), "middle")]
    return [*parts, text((left + right) / 2, height - 5, below, "middle", room=right)], left - x[0] * unit, unit


def silhouette_areas(values: Floats, labels: NDArray[np.int32], numbers: Sequence[int], mean: float) -> str:
    """The silhouettes of the rows, sorted within each group, as areas one below the other; a line marks the mean."""
    sizes = [int(np.count_nonzero(labels == number)) for number in numbers]
    room, gap, total = max(220.0, 22.0 * len(numbers)), 8.0, max(sum(sizes), 1)
    talls = [max(room * size / total, 8.0) if size else 0.0 for size in sizes]
    height = 24 + sum(tall + gap for tall in talls if tall) + 42
    low = min(-0.1, float(np.floor(10 * np.min(values, initial=0.0)) / 10))
    parts, zero, unit = _across((low, 1.0), 40.0, 520, height, "how much nearer a row is to its own group")
    y = 24.0
    for number, size, tall in zip(numbers, sizes, talls, strict=True):
        if not size:
            continue
        own = np.sort(values[labels == number])[::-1]
        some = own[np.linspace(0, size - 1, min(max(size, 2), _STEPS)).round().astype(np.intp)]
        ys = np.linspace(y, y + tall, len(some))
        points = " ".join(f"{zero + unit * v:.1f},{at:.1f}" for v, at in zip(some, ys, strict=True))
        edge = f"{zero:.1f},{y + tall:.1f} {zero:.1f},{y:.1f}"
        words = (
            f"<title>group {number}: mean {own.mean():.2f}, {100 * np.mean(own < 0):.0f} % of the rows below 0</title>"
        )
        parts.append(f'<polygon points="{points} {edge}" {fill(colour(number))}>{words}</polygon>')
        parts.append(text(32, y + tall / 2 + 4, str(number), "end"))
        y += tall + gap
    parts.append(line(zero, 16, zero, height - 40, INK, 0.8))
    at = zero + unit * mean
    parts.append(f'<g stroke-dasharray="4">{line(at, 16, at, height - 40, ORANGE, 1.5)}</g>')
    parts.append(text(at, 12, f"mean {mean:.2f}", "middle", ORANGE))
    return "".join([*parts, "</svg>"])


def found_again(jaccard: Floats, base: Floats, verdicts: Sequence[str], numbers: Sequence[int]) -> str:
    """Bars of how well each group is found again, a mark where chance alone would be, and the verdict in words."""
    row, left = 26.0, 40.0
    height = 20 + row * len(numbers) + 44
    parts, zero, unit = _across((0.0, 1.35), left, 560, height, "")
    del parts[1:]  # the scale ends at 1, and the verdicts stand beyond it
    for value in ticks(0.0, 1.0):
        at = zero + unit * value
        parts += [line(at, 12, at, height - 40, MUTED, 0.25), text(at, height - 24, f"{value:g}", "middle")]
    parts.append(text(zero + unit / 2, height - 5, "overlap with the same group in other draws (Jaccard)", "middle"))
    for i, number in enumerate(numbers):
        y = 16 + row * i
        words = f"<title>group {number}: {jaccard[i]:.2f}, by chance {base[i]:.2f}</title>"
        size = f'x="{zero:.1f}" y="{y:.1f}" width="{max(unit * float(jaccard[i]), 0.5):.1f}" height="{row - 8:g}"'
        parts.append(f"<rect {size} {fill(colour(number))}>{words}</rect>")
        if base[i] == base[i]:
            at = zero + unit * float(base[i])
            parts.append(line(at, y - 3, at, y + row - 5, INK, 2))
        parts.append(text(left - 8, y + row / 2, str(number), "end"))
        parts.append(text(zero + unit * 1.02, y + row / 2, verdicts[i], "start"))
    return "".join([*parts, "</svg>"])


def ridgelines(values: Floats, labels: NDArray[np.int32], numbers: Sequence[int]) -> str | None:
    """The distribution of one column in each group as smooth outlines, one below the other, over the whole range."""
    known = np.isfinite(values)
    values, labels = values[known], labels[known]
    if not len(values) or not values.max() > values.min():
        return None
    low, high = float(values.min()), float(values.max())
    row = 34.0 if len(numbers) <= 8 else 20.0
    height = 30 + row * len(numbers) + 24
    parts, zero, unit = _across((low, high), 34.0, 330, height, "")
    places = np.linspace(low, high, _BINS)
    for i, number in enumerate(numbers):
        y, own = 30 + row * (i + 1), values[labels == number]
        parts.append(text(26, y - 3, str(number), "end"))
        parts.append(line(34, y, 314, y, MUTED, 0.4))
        if not len(own):
            continue
        density = _density(own, places)
        tops = y - 1.35 * row * density / (density.max() or 1.0)
        points = " ".join(f"{zero + unit * x:.1f},{at:.1f}" for x, at in zip(places, tops, strict=True))
        edge = f"{zero + unit * high:.1f},{y:.1f} {zero + unit * low:.1f},{y:.1f}"
        words = f"<title>group {number}: mean {escape(short(float(f'{own.mean():.4g}')))}</title>"
        look = stroke(colour(number), 1.4, colour(number))
        parts.append(f'<polygon points="{edge} {points}" fill-opacity="0.35" {look}>{words}</polygon>')
    return "".join([*parts, "</svg>"])


def _density(values: Floats, places: Floats) -> Floats:
    """A kernel estimate from counts: as wide as Silverman's rule says, and at least two places."""
    step = places[1] - places[0]
    counts = np.histogram(values, len(places), (places[0] - step / 2, places[-1] + step / 2))[0]
    spread = min(float(values.std()), float(np.subtract(*np.quantile(values, [0.75, 0.25]))) / 1.34 or np.inf)
    width = max(0.9 * spread * len(values) ** -0.2, step) if np.isfinite(spread) else step
    kernel = np.exp(-0.5 * ((places[:, None] - places) / width) ** 2)
    return np.asarray(kernel @ counts)
