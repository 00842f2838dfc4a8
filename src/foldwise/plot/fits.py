"""Pictures of fits: how a fit went, and a fitted distribution over its values."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from foldwise.errors import ParameterError
from foldwise.models.likelihood import Comparison, FittedDistribution
from foldwise.models.likelihood.goodness import draw
from foldwise.plot.axes import BLUE, FAINT, MUTED, PALE, PALETTE, axes, cut, part_of, refuse, titled, whole_ticks

_FIGURES = {
    "inertia": "inertia",
    "lower_bound": "log-likelihood of a row",
    "log_likelihood": "log-likelihood",
    "held_out_error": "error of held-out rows",
    "free_energy": "free energy",
    "error": "error",
    "change": "change",
}
_MOST_VALUES = 100_000
_MOST_CURVES = 4
_MOST_BARS = 60
_FAR = 0.5  # of log-likelihood for each value behind the best: such a family is not worth a line


def trace(model: Any, ax: Any = None) -> Any:
    """How a fit went: its figure after every step. Runs that were not kept, or lead to the one that was, are grey.

    Takes any fitted model that goes step by step, or a fitted distribution.
    """
    found = part_of(model, "clusters")
    found = found.best if isinstance(found, Comparison) and found.fits else found
    steps = getattr(found, "trace_", None) if hasattr(found, "fit") else getattr(found, "trace", None)
    if steps is None:
        raise refuse("trace", model, "a fitted model, a fitted distribution, or what fw.explore found")
    figure = next((name for name in _FIGURES if steps and name in steps[0]), None)
    if figure is None:
        raise ParameterError(f"this {type(found).__name__} was found in one step, so that there is nothing to draw.")
    ax = axes(ax)
    runs: list[tuple[Any, list[int], list[float]]] = []
    for number, step in enumerate(steps, 1):
        if not runs or runs[-1][0] != (step.get("start"), step.get("run")):
            runs.append(((step.get("start"), step.get("run")), [], []))
        runs[-1][1].append(number)
        runs[-1][2].append(float(step[figure]))
    kept = _kept(found, figure, runs)
    for place, (_, xs, ys) in enumerate(runs):
        ours = place == kept
        look = {"color": BLUE if ours else MUTED, "linewidth": 1.8 if ours else 0.8, "zorder": 3 if ours else 2}
        ax.plot(xs, ys, marker="o" if len(steps) <= 60 else None, markersize=3, **look)
    whole_ticks(ax.xaxis)
    if len(steps) == 1:
        ax.set_xlim(0.5, 1.5)
    ax.grid(axis="y", color=FAINT, linewidth=0.6)
    ax.set_axisbelow(True)
    ax.margins(y=0.08)
    outcome = getattr(found, "outcome_", getattr(found, "outcome", None))
    ended = f", {outcome.reason}" if outcome is not None else ""
    if len(steps) == 1:
        ended += ": there is nothing to follow"
    return titled(ax, f"{len(steps):,} step{'s' * (len(steps) != 1)}{ended}", "step", _FIGURES[figure])


def _kept(model: Any, figure: str, runs: list[Any]) -> int:
    """The run whose end is the result: that with the figure of the model, or the last."""
    result = getattr(model, {"inertia": "inertia_", "lower_bound": "lower_bound_"}.get(figure, ""), None)
    if result is None:
        return len(runs) - 1
    return int(np.argmin([abs(ys[-1] - float(result)) for _, _, ys in runs]))


def distribution(fit: Any, ax: Any = None) -> Any:
    """The values as a histogram, and the fitted density over it; of several families, those of the best few.

    Takes the result of `fw.fit_distribution`. Of more than 100,000 values, a random sample makes the histogram.
    """
    if isinstance(fit, Comparison) and fit.fits:
        fits = fit.fits
    elif isinstance(fit, FittedDistribution):
        fits = (fit,)
    else:
        raise refuse("distribution", fit, "the result of fw.fit_distribution")
    best = fits[0]
    if best.source is None:
        raise ParameterError("this fit was loaded or copied without its values: fit it again to draw them.")
    values = np.asarray(draw(best, _MOST_VALUES, 0), dtype=np.float64)
    low, high = _ends(best, values)
    ax = axes(ax)
    if best.discrete:
        step = max(1, math.ceil((high - low + 1) / _MOST_BARS))
        edges = np.arange(math.floor(low), math.ceil(high) + step + 1, step) - 0.5
        xs = np.arange(math.ceil(edges[0]), math.floor(edges[-1]) + 1, dtype=np.float64)
    else:
        edges = np.linspace(low, high, int(np.clip(2 * len(values) ** (1 / 3), 8, _MOST_BARS)) + 1)
        xs = np.linspace(low, high, 500)
    counts, _ = np.histogram(values, edges)
    ax.stairs(counts / len(values) / np.diff(edges), edges, fill=True, color=PALE, label="values")
    near = [one for one in fits if best.max_log_likelihood - one.max_log_likelihood < _FAR * best.n]
    top = 0.0
    for number, one in enumerate([one for one in near if one.discrete == best.discrete][:_MOST_CURVES]):
        with np.errstate(all="ignore"):
            ys = np.asarray(one.pdf(xs), dtype=np.float64)
        mark = "o" if best.discrete and len(xs) <= _MOST_BARS else None
        ax.plot(
            xs,
            ys,
            color=PALETTE[number],
            linewidth=2.2 if number == 0 else 1.2,
            marker=mark,
            markersize=3,
            label=one.family,
        )
        top = max(top, float(np.max(ys[np.isfinite(ys)], initial=0.0))) if number == 0 else top
    ax.set_ylim(0, 1.1 * min(max(top, float((counts / len(values) / np.diff(edges)).max())), 3 * top or np.inf))
    ax.set_xlim(edges[0], edges[-1])
    ax.legend(frameon=False, fontsize=9)
    what = cut(best.column or "values")
    outside = int(np.count_nonzero((values < edges[0]) | (values > edges[-1])))
    sample = f", {len(values):,} drawn at random" if len(values) < best.n else ""
    beyond = f" ({outside:,} beyond the frame)" if outside else ""
    return titled(ax, f"{best.n:,.10g} values{sample}{beyond}", what, "probability" if best.discrete else "density")


def _ends(best: FittedDistribution, values: Any) -> tuple[float, float]:
    """The frame: heavy tails would leave nothing to see of the rest."""
    low, high = float(values.min()), float(values.max())
    with np.errstate(all="ignore"):
        inner = np.asarray(best.quantile([0.001, 0.999]), dtype=np.float64)
    if np.isfinite(inner).all():
        room = float(np.ptp(inner))
        low, high = max(low, float(inner[0]) - 0.05 * room), min(high, float(inner[1]) + 0.3 * room)
    return (low, high) if high > low else (low - 0.5, high + 0.5)
