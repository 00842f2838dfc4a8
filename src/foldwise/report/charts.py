"""The charts of reports, each as SVG text."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from foldwise.data.block import Floats
from foldwise.report.labels import text_width, wrapped
from foldwise.report.legend import legend
from foldwise.report.svg import BLUE, INK, MUTED, ORANGE, PALE, TINT, Plot, colour, fill, line, over, start, text

_MOST_STEPS = 600


def scree(shares: Sequence[float]) -> str:
    """Bars of the components' shares of the variance, with the cumulative share as a line."""
    n = len(shares)
    plot = Plot((-0.5, n - 0.5), (0.0, 1.0), "component", whole=True, percent=True)
    plot.bars(
        [i - 0.5 for i in range(n + 1)], shares, BLUE, "component: {height:.1%}", gap=0.3 * (plot.x(1) - plot.x(0))
    )
    plot.line(range(n), np.cumsum(shares), ORANGE)
    return plot.svg()


def convergence_chart(trace: Sequence[Mapping[str, Any]], figure: str, clusters: int | None = None) -> str | None:
    """A figure after every iteration; runs with other numbers of clusters, on the way out of an optimum, are grey."""
    if len(trace) < 2:
        return None
    runs: list[tuple[list[float], list[float], bool]] = []
    every = len(trace) // _MOST_STEPS + 1
    for number, step in enumerate(trace):
        if number == 0 or step.get("run") != trace[number - 1].get("run"):
            runs.append(([], [], step.get("clusters") == clusters))
        steps, values, _ = runs[-1]
        if not steps or number % every == 0 or number == len(trace) - 1:
            steps.append(number + 1)
            values.append(float(step[figure]))
    drawn = [value for _, values, _ in runs for value in values]
    room = 0.06 * (max(drawn) - min(drawn)) or abs(max(drawn)) or 1.0
    plot = Plot((1, len(trace)), (min(drawn) - room, max(drawn) + room), "iteration", whole=True)
    for steps, values, ours in sorted(runs, key=lambda run: run[2]):  # ours above the others
        plot.line(steps, values, BLUE if ours else MUTED, 2 if ours else 1)
        if ours:
            plot.dots(steps[-1:], values[-1:], BLUE, 2.5, "iteration {x:g}: {y:.5g}")
    return plot.svg()


def difference_bars(names: Sequence[str], values: Floats, reach: float, ink: str, width: int = 330) -> str:
    """Differences from the overall mean as bars to the left and to the right; `reach` is the longest bar.

    A name too long for half of the width is set in two lines, or shortened with the whole of it under the pointer.
    """
    left = min(1.1 * max(text_width(name) for name in names) + 12, 0.48 * width)
    lines = [wrapped(name, left - 10) for name in names]
    tops = np.cumsum([3, *(20 if len(each) == 1 else 34 for each in lines)])
    height = float(tops[-1]) + 3
    figures = max(text_width(f"{value:+.1f}") for value in values) + 8
    middle, half = left + (width - left) / 2, (width - left) / 2 - figures
    parts = [start(width, height)]
    for i, (name, value) in enumerate(zip(names, values, strict=True)):
        top, tall = float(tops[i]), float(tops[i + 1] - tops[i])
        length = half * min(abs(value) / reach, 1.0) if reach > 0 else 0.0
        words = [text(left - 8, top + 14 + 14 * j, each, "end") for j, each in enumerate(lines[i])]
        parts.append(f"<g>{over(f'{name}: {value:+.2f}')}{''.join(words)}</g>")
        x = middle if value >= 0 else middle - length
        parts.append(
            f'<rect x="{x:.1f}" y="{top + (tall - 15) / 2:.1f}" width="{length:.1f}" height="15" {fill(ink)}/>'
        )
        beside, anchor = (middle + length + 4, "start") if value >= 0 else (middle - length - 4, "end")
        parts.append(text(beside, top + tall / 2 + 4, f"{value:+.1f}", anchor, INK))
    parts.append(line(middle, 0, middle, height, MUTED))
    return "".join([*parts, "</svg>"])


def criterion_chart(numbers: Sequence[int], series: Mapping[str, Sequence[float]], best: tuple[str, int]) -> str:
    """A criterion over the number of components, one line for each covariance type; far values become arrows."""
    values = sorted(value for each in series.values() for value in each if value == value)
    low, high = values[0], values[(6 * (len(values) - 1)) // 10]
    room = 0.08 * (high - low) or abs(high) or 1.0
    ends, below = (low - room, high + room), "number of components"
    named, tall = legend([(name, colour(place)) for place, name in enumerate(series)], 460)
    plot = Plot((numbers[0], numbers[-1]), ends, below, height=280 + int(tall), whole=True, top=16 + tall)
    plot.add(named)
    for place, (name, each) in enumerate(series.items()):
        plot.line(numbers, each, colour(place))
        plot.dots(numbers, each, colour(place), what=f"{name}, {{x:g}}: {{y:.2f}}")
    plot.ring(best[1], series[best[0]][list(numbers).index(best[1])])
    return plot.svg()


def share_histogram(shares: Floats, below: str) -> str:
    """Bars over 0 to 1, as shares of all rows."""
    plot = Plot((0.0, 1.0), (0.0, 1.05 * float(shares.max()) or 1.0), below, height=220, percent=True)
    plot.bars(
        np.linspace(0.0, 1.0, len(shares) + 1).tolist(), shares, BLUE, "{low:.2f} to {high:.2f}: {height:.1%}", gap=2
    )
    return plot.svg()


def density_chart(
    edges: Floats,
    heights: Floats,
    curves: Sequence[tuple[str, Floats, Floats]],
    below: str,
    *,
    dots: bool,
    beyond: tuple[float, float] = (0, 0),
) -> str:
    """Bars of the data's density, and lines of fitted ones with their names; for counts with a dot at each.

    `beyond` is how many values lie to the left and to the right of what is drawn.
    """
    tops = [float(_finite(ys).max(initial=0.0)) for _, _, ys in curves]
    least = max(float(heights.max(initial=0.0)), tops[0])
    top = 1.08 * min(max(least, *tops), 2.5 * least)
    named, tall = legend([(name, colour(number)) for number, (name, _, _) in enumerate(curves)], 460)
    plot = Plot((float(edges[0]), float(edges[-1])), (0.0, top or 1.0), below, height=290 + int(tall), top=16 + tall)
    plot.add(named)
    plot.bars(edges.tolist(), heights, PALE)
    for number, (name, xs, ys) in reversed(list(enumerate(curves))):
        plot.line(xs, ys, colour(number), 2.4 if number == 0 else 1.4)
        if dots:
            plot.dots(xs, ys, colour(number), 2.5, f"{name}, {{x:g}}: {{y:.4g}}")
        elif tops[number] > top:
            peak = int(np.argmax(np.where(np.isfinite(ys), ys, -np.inf)))
            plot.arrow(float(xs[peak]), tops[number], colour(number), f"{name}: up to {tops[number]:.3g}")
    wide = edges[-1] - edges[0]
    for many, x in zip(beyond, (edges[0] - wide, edges[-1] + wide), strict=True):
        if many > 0:
            words = f"{many:,.10g} value{'s' * (many != 1)}"
            plot.arrow(float(x), 0.04 * top, INK, words, many=round(many))
    return plot.svg()


def _finite(values: Floats) -> Floats:
    return values[np.isfinite(values)]


def quantile_chart(fitted: Floats, observed: Floats, below: str, beside: str) -> str:
    """Quantiles of the data over those of the fit: along the line where both agree."""
    both = np.concatenate([_finite(fitted), observed])
    ends = float(both.min()), float(both.max())
    room = 0.03 * (ends[1] - ends[0])
    ends = ends[0] - room, ends[1] + room
    plot = Plot(ends, ends, below, 420, beside=beside, equal=True)
    plot.line(ends, ends, ORANGE, 1.5)
    plot.dots(fitted, observed, BLUE, 2.5, opacity=0.6)
    return plot.svg()


def likelihood_chart(
    name: str, values: Floats, likelihoods: Floats, estimate: float, interval: tuple[float, float]
) -> str:
    """The log-likelihood along a parameter, with the estimate and its interval."""
    seen = _finite(likelihoods)
    low, high = float(seen.min()), float(seen.max())
    plot = Plot((float(values[0]), float(values[-1])), (low, high + 0.06 * (high - low)), name, 420)
    if all(math.isfinite(end) for end in interval):
        plot.bars(interval, [math.inf], TINT)
    plot.line(values, likelihoods, BLUE)
    plot.add(line(plot.x(estimate), plot.top + 8, plot.x(estimate), plot.bottom, ORANGE, 1.5))
    plot.add(text(plot.x(estimate), plot.top + 2, f"{estimate:.5g}", "middle", INK))
    return plot.svg()


def vote_curve(
    ks: Sequence[int], values: Floats, errors: Floats | None, null: Floats | None, chosen: int | None
) -> str:
    """A criterion over the number of clusters, with error bars, what no clusters would give, and the number chosen."""
    drawn = [values, *([null] if null is not None else [])]
    spread = errors if errors is not None else np.zeros(len(values))
    low, high = min(float(one.min()) for one in drawn), max(float(one.max()) for one in drawn)
    low, high = min(low, float((values - spread).min())), max(high, float((values + spread).max()))
    room = 0.1 * (high - low) or abs(high) or 1.0
    plot = Plot((ks[0], ks[-1]), (low - room, high + room), "number of clusters", 330, 190, whole=True)
    if null is not None:
        plot.line(ks, null, MUTED, 1.5, dash=4)
    plot.line(ks, values, BLUE)
    for k, value, error in zip(ks, values, spread, strict=True):
        if error > 0:
            plot.line((k, k), (value - error, value + error), BLUE, 1)
    plot.dots(ks, values, BLUE, 2.5, "{x:g} clusters: {y:.4g}")
    if chosen is not None and chosen in ks:
        plot.ring(chosen, float(values[list(ks).index(chosen)]))
    return plot.svg()


def path_chart(
    sizes: Sequence[int],
    scores: Floats,
    bounds: Floats | None,
    errors: Floats | None,
    chosen: int,
    names: tuple[str, str],
    *,
    percent: bool,
) -> str:
    """The score over the number of columns, with error bars, the most that is possible, and the number chosen.

    `names` are those of the two lines.
    """
    spread = np.zeros(len(scores)) if errors is None else np.nan_to_num(errors)
    tops = scores + spread if bounds is None else np.maximum(scores + spread, bounds)
    low, high = float((scores - spread).min()), float(tops.max())
    room = 0.08 * (high - low) or 0.1 * abs(high) or 1.0
    if percent:  # a share is seen against 0 and 1, unless all are close together
        low, high = (0.0 if low > 0 and low < 0.5 * high else low - room), min(high + room, 1.0)
    else:
        low, high = low - room, high + room
    inks = (BLUE, MUTED) if bounds is not None else (BLUE,)
    named, tall = legend(list(zip(names, inks, strict=False)), 860)
    ends = (min(sizes), max(sizes))
    plot = Plot(ends, (low, high), "number of columns", 860, 320, whole=True, percent=percent, top=14 + tall)
    plot.add(named)
    words = "{x:g} columns: {y:.1%}" if percent else "{x:g} columns: {y:.4g}"
    if bounds is not None:
        plot.line(sizes, bounds, MUTED, 1.5, dash=4)
        plot.dots(sizes, bounds, MUTED, 2.0, f"at most, {words}")
    for size, score, error in zip(sizes, scores, spread, strict=True):
        if error > 0:
            plot.line((size, size), (score - error, score + error), BLUE, 1)
    plot.line(sizes, scores, BLUE)
    plot.dots(sizes, scores, BLUE, 3.0 if len(sizes) <= 60 else 1.5, words)
    plot.ring(chosen, float(scores[list(sizes).index(chosen)]))
    return plot.svg()
