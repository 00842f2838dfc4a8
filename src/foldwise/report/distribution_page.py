"""A fitted distribution, or several compared, as one self-contained page: no script, nothing loaded from elsewhere."""

from __future__ import annotations

import math
import os
from typing import Any

import numpy as np

from foldwise.data.block import Floats
from foldwise.fold.passes import Passes
from foldwise.models.likelihood import Comparison, FittedDistribution
from foldwise.models.likelihood.families import FAMILIES
from foldwise.models.likelihood.families.base import RefusalError
from foldwise.models.likelihood.goodness import Goodness, draw
from foldwise.models.likelihood.repr import parameter_rows
from foldwise.report.distribution import header, refusals, tests, verdict
from foldwise.report.distribution_charts import ascent_chart, histogram, likelihood_chart, quantile_chart
from foldwise.report.page import write_page
from foldwise.report.run_header import counted, manifest_lines
from foldwise.stats.term_sums import BinWeights

_MOST_BARS = 60
_MOST_CURVES = 4
_FAR = 0.5  # of log-likelihood for each value behind the best: such a family is not worth a line
_MOST_PASSES = 20_000_000  # values: beyond these a likelihood curve that takes passes is not drawn
_DOTS = 200


def write_distribution_page(
    found: FittedDistribution | Comparison, goodness: Goodness | None, path: str | os.PathLike[str]
) -> str:
    """Write the page; the data are passed over again for the histogram, the quantiles and some likelihood curves."""
    fits = found.fits if isinstance(found, Comparison) else (found,)
    if not fits:
        raise RefusalError("no family could be fitted")
    best = fits[0]
    what = best.column or "values"
    return write_page(
        path,
        "distribution.html",
        title=f"{'Distributions' if len(fits) > 1 else best.family.capitalize()} of {what}",
        header=header(best, len(fits)).splitlines(),
        figures=_figures(best, goodness),
        best=best.family,
        lines=_lines(found) if isinstance(found, Comparison) else [],
        criterion=found.criterion.upper() if isinstance(found, Comparison) else "",
        refused=refusals(found).splitlines() if isinstance(found, Comparison) else [],
        verdict=verdict(found) if isinstance(found, Comparison) else [],
        parameters=parameter_rows(best),
        scales=_scales(best),
        tests=tests(goodness),
        notes=best.notes,
        histogram=_histogram(fits, what),
        quantiles=_quantiles(best),
        curves=_curves(best),
        ascent=ascent_chart([step["log_likelihood"] for step in best.trace]),
        manifest=manifest_lines(best.manifest),
    )


def _figures(fit: FittedDistribution, goodness: Goodness | None) -> list[dict[str, str]]:
    shown = [{"value": f"{value:.5g}", "what": name} for name, value in fit.parameters.items()]
    shown.append({"value": f"{fit.max_log_likelihood:,.2f}", "what": "log-likelihood"})
    if goodness is not None and goodness.p_values:
        shown.append({"value": f"{goodness.p_value:.3g}", "what": f"p-value, {next(iter(goodness.p_values))}"})
    return shown


def _lines(found: Comparison) -> list[dict[str, str]]:
    return [
        {
            "family": fit.family,
            "likelihood": f"{fit.max_log_likelihood:,.3f}",
            "aic": f"{fit.aic:,.3f}",
            "bic": f"{fit.bic:,.3f}",
            "behind": f"{found.behind(fit):,.2f}",
            "parameters": ", ".join(f"{name} {value:.5g}" for name, value in fit.parameters.items()),
        }
        for fit in found.fits
    ]


def _scales(fit: FittedDistribution) -> str:
    words = {"log": "on a logarithmic scale", "logit": "on the scale of log odds", "plain": "as it is"}
    return "; ".join(f"{name} {words[scale]}" for name, scale in fit.interval_scales.items())


def _histogram(fits: tuple[FittedDistribution, ...], what: str) -> str:
    best = fits[0]
    low, high = best.statistics.low, best.statistics.high
    # Heavy tails would leave nothing to see of the rest: what lies outside of all but a thousandth is not drawn.
    with np.errstate(all="ignore"):
        inner = np.asarray(best.quantile([0.001, 0.999]), dtype=np.float64)
    if np.isfinite(inner).all():
        low, high = (
            max(low, float(inner[0]) - 0.05 * float(np.ptp(inner))),
            min(high, float(inner[1]) + 0.3 * float(np.ptp(inner))),
        )
    if best.discrete:
        low, high = math.floor(low), max(math.ceil(high), math.floor(low) + 1)
        step = max(1, math.ceil((high - low + 1) / _MOST_BARS))
        edges: Floats = np.arange(low, high + step + 1, step, dtype=np.float64) - 0.5
    else:
        if not high > low:
            low, high = low - 0.5, high + 0.5
        bars = int(np.clip(math.ceil(2 * best.manifest.rows ** (1 / 3)), 8, _MOST_BARS))
        edges = np.linspace(low, high, bars + 1, dtype=np.float64)
        edges[-1] = np.nextafter(edges[-1], np.inf)  # the largest value lies in the last bar
    run = Passes(best.source, n_threads=best.manifest.threads)  # type: ignore[arg-type]
    weights = run.fold(lambda block: BinWeights.of(block, edges)).weights[1:-1]
    heights = weights / best.n / np.diff(edges)
    curves = []
    near = [one for one in fits if best.max_log_likelihood - one.max_log_likelihood < _FAR * best.n]
    for fit in [one for one in near if one.discrete == best.discrete][:_MOST_CURVES]:
        xs = np.arange(math.ceil(edges[0]), math.floor(edges[-1]) + 1) if best.discrete else np.linspace(low, high, 400)
        with np.errstate(all="ignore"):
            curves.append((fit.family, np.asarray(xs, dtype=np.float64), np.asarray(fit.pdf(xs), dtype=np.float64)))
    return histogram(edges, heights, curves, what, steps=best.discrete and len(curves[0][1]) <= _MOST_BARS)


def _quantiles(fit: FittedDistribution) -> str | None:
    try:
        values: Floats = np.sort(draw(fit, 2000, 0))
    except RefusalError:
        return None
    dots = min(_DOTS, len(values))
    levels = (np.arange(dots) + 0.5) / dots
    with np.errstate(all="ignore"):
        fitted = np.asarray(fit.quantile(levels), dtype=np.float64)
    beside = "quantiles of the data"
    if len(values) < fit.n:
        beside += f" ({counted(len(values), 'value')} drawn at random)"
    return quantile_chart(fitted, np.quantile(values, levels), f"quantiles of the {fit.family} distribution", beside)


def _curves(fit: FittedDistribution) -> list[dict[str, Any]]:
    charts = []
    if FAMILIES[fit.family].passes and fit.manifest.rows > _MOST_PASSES:
        return []
    for name in fit.free:
        values, likelihoods = fit.curve(name, points=65)
        if np.isfinite(likelihoods).sum() < 2:
            continue
        chart = likelihood_chart(name, values, likelihoods, fit.parameters[name], fit.intervals[name])
        charts.append({"name": name, "chart": chart})
    return charts
