"""The report on a fitted distribution, or on several compared."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np

from foldwise.data.block import Floats
from foldwise.fold.passes import Passes
from foldwise.models.likelihood import Comparison, FittedDistribution
from foldwise.models.likelihood.families import FAMILIES
from foldwise.models.likelihood.families.base import RefusalError
from foldwise.models.likelihood.goodness import Goodness, draw
from foldwise.models.likelihood.ranking import legend
from foldwise.models.likelihood.repr import estimates, parameter_rows
from foldwise.report.charts import convergence_chart, density_chart, likelihood_chart, quantile_chart
from foldwise.report.formats import counted, whole_percent
from foldwise.report.json import plain
from foldwise.report.run_header import passes, run_table
from foldwise.report.values import Chart, Column, Fact, Group, Note, Part, Report, Table
from foldwise.stats.term_sums import BinWeights

_DECIDES = 10.0  # of AIC or BIC: a family so far behind is out of the question
_ALIKE = 2.0
_REFUTED, _DOUBTFUL = 0.01, 0.05  # p-values
_MANY, _FEW = 1000, 30  # values: a test sees small deviations, or only large ones
_MOST_BARS = 60
_MOST_CURVES = 4
_FAR = 0.5  # of log-likelihood for each value behind the best: such a family is not worth a line
_MOST_PASSES = 20_000_000  # values: beyond these a likelihood curve that takes passes is not drawn
_DOTS = 200
_SCALES = {"log": "on a logarithmic scale", "logit": "on the scale of log odds", "plain": "on its own scale"}


def distribution_report(found: FittedDistribution | Comparison, goodness: Goodness | None = None) -> Report:
    """What was fitted to what, the comparison if there is one, and the (best) fit with its tests.

    For the charts of a page the data are passed over again. There must be at least one fit.
    """
    several = isinstance(found, Comparison)
    best = found.best if isinstance(found, Comparison) else found
    said = " ".join(verdict(best, goodness))
    fits, what = found.fits if isinstance(found, Comparison) else (found,), best.column or "values"
    lines = "the best few families, the best one thick" if several else "the fit"
    ascent = Chart(
        "Convergence",
        lambda: convergence_chart(best.trace, "log_likelihood"),
        "The log-likelihood after every iteration.",
        wide=True,
        only="page",
        collapsed=True,
    )
    parts: list[Part] = [
        Chart(
            f"The values and the fitted distribution{'s' * several}",
            lambda: _density(fits, what),
            f"Bars: the data. Lines: {lines}. Arrows, if any: what lies beyond the frame.",
            alt=f"Histogram of {what} with {lines}. {said}".strip(),
        ),
        Chart(
            f"Quantiles: data against {best.family}",
            lambda: _quantiles(best),
            "Where the points follow the line, the distribution describes the data; bends at the ends are differing tails.",
            alt=f"Quantiles of {what} over those of the {best.family} distribution. {said}".strip(),
        ),
        Group([_parameters(best), Note("\n".join([*_tests(goodness), *best.notes]))]),
        _likelihoods(best),
        *([ascent] if len(best.trace) > 1 else []),
        *([] if several else [_criteria(best)]),
        run_table(best.manifest),
    ]
    if isinstance(found, Comparison):
        parts[2:2] = [_comparison(found), Note(f"the best, {best.family}:", only="text")]
    title = f"{'Distributions' if len(fits) > 1 else best.family.capitalize()} of {what}"
    lead = [*_comparison_said(found), *verdict(best, goodness)]
    return Report(title, _about(best, len(fits)), _facts(best, goodness), parts, lead=lead, lead_only="page")


def verdict(fit: FittedDistribution, goodness: Goodness | None) -> list[str]:
    """Whether the family describes the data, and how far they lie from it."""
    if goodness is None:
        return []
    name = f"{'an' if fit.family[0] in 'aeio' else 'a'} {fit.family} distribution"
    if not goodness.p_values:
        return [f"Whether {name} fits could not be tested: {goodness.note}."]
    p = _p_in_words(goodness)
    if goodness.p_value < _REFUTED:
        said = f"{name[0].upper()}{name[1:]} does not fit ({p})."
    elif goodness.p_value < _DOUBTFUL:
        said = f"It is doubtful whether {name} fits ({p})."
    else:
        said = f"The data do not contradict {name} ({p})."
    far = _how_far(goodness)
    if goodness.p_value < _DOUBTFUL and goodness.n >= _MANY:
        return [said, f"With {goodness.n:,.10g} values even small deviations show: {far}."]
    little = goodness.p_value >= _DOUBTFUL and goodness.n < _FEW
    few = f" With only {counted(round(goodness.n), 'value')} that says little." if little else ""
    return [f"{said}{few}", f"{far[0].upper()}{far[1:]}."]


def _how_far(goodness: Goodness) -> str:
    """The size of the deviation, which does not grow with the number of values as the evidence for it does."""
    if "Kolmogorov-Smirnov" in goodness.statistics:
        points = 100 * goodness.statistics["Kolmogorov-Smirnov"]
        return (
            "the share of the values below a point differs from that of the distribution by at most "
            f"{points:.2g} percentage points"
        )
    found, chance = (math.sqrt(each / goodness.n) for each in (goodness.statistics["chi-square"], goodness.degrees))
    return (
        f"counts typically differ from those expected by {whole_percent(found)}, where chance alone would make "
        f"{whole_percent(chance)}"
    )


def _p_in_words(goodness: Goodness) -> str:
    """The p-value as part of a sentence."""
    p, smallest = goodness.p_value, 1.0 / (goodness.resamples + 1) if goodness.resamples else 0.0
    if p < 0.001:
        return "p < 0.001"
    return f"p {'≤' if p <= smallest else '='} {p:.2g}"


def _comparison_said(found: FittedDistribution | Comparison) -> list[str]:
    """The family that describes the data best."""
    if not isinstance(found, Comparison) or len(found.fits) < 2:
        return []
    said = _verdict(found)[0]
    return [f"Of {counted(len(found.fits), 'family', 'families')}, {said}."]


def _about(fit: FittedDistribution, families: int) -> list[str]:
    ran = fit.manifest
    column = "" if fit.column is None else f", column {fit.column}"
    weights = "" if fit.n == ran.rows else f", weight {fit.n:,.10g}"
    how = f"{fit.family}, {fit.method}" if families == 1 else f"{families} families"
    if fit.trace and families == 1:
        how += f", {fit.outcome.reason} after {counted(len(fit.trace), 'iteration')}"
    resumed = [f"resumed from a checkpoint at iteration {ran.resumed_at}"] if ran.resumed_at else []
    return [
        f"{ran.source}{column}: {counted(ran.rows, 'value')}{weights} ({ran.dtype})",
        f"{how}, {passes(ran)}",
        *resumed,
    ]


def _facts(fit: FittedDistribution, goodness: Goodness | None) -> list[Fact]:
    facts = [Fact("family", fit.family, fit.family)]
    facts += [Fact(name, value, f"{value:.5g}", only="page") for name, value in fit.parameters.items()]
    facts += [Fact(name, value, f"{value:.3f}", only="text") for name, value in _figures(fit).items()]
    if goodness is not None and goodness.p_values:
        name, p = next(iter(goodness.p_values)), goodness.p_value
        facts.append(Fact("p-value", p, _p_value(goodness, name), f"({name})", "text"))
        word = "no" if p < _REFUTED else "doubtful" if p < _DOUBTFUL else "not contradicted"
        facts.append(Fact("does it fit?", p, word, f"{_p_in_words(goodness)} ({name})", "page"))
    return facts


def _figures(fit: FittedDistribution) -> dict[str, float]:
    return {"log-likelihood": fit.max_log_likelihood, "AIC": fit.aic, "BIC": fit.bic}


def _criteria(fit: FittedDistribution) -> Table:
    """The figures by which distributions are compared, for those who ask for them."""
    figures = _figures(fit)
    columns = [Column("", list(figures), left=True), Column("", list(figures.values()), "{:.3f}".format)]
    caption = "To compare distributions of the same values: the log-likelihood should be high, AIC and BIC low."
    return Table("Criteria", columns, caption, wide=True, only="page", collapsed=True)


def _comparison(found: Comparison) -> Group:
    """One row for each family, best first; what it says; and why other families were not fitted."""
    columns = [Column("family", [fit.family for fit in found.fits], left=True)]
    for name, key in (("log-likelihood", "max_log_likelihood"), ("AIC", "aic"), ("BIC", "bic")):
        columns.append(Column(name, [getattr(fit, key) for fit in found.fits], "{:.3f}".format))
    columns.append(Column("score", [found.score(fit) for fit in found.fits], "{:.3f}".format))
    columns.append(Column("behind", [found.behind(fit) for fit in found.fits], "{:.2f}".format))
    columns.append(Column("parameters", [estimates(fit) for fit in found.fits], left=True))
    return Group(
        [Table("Families compared", columns), Note(refusals(found)), Note("\n".join(_verdict(found)))], wide=True
    )


def refusals(found: Comparison) -> str:
    """Why families were not fitted, those with the same reason together."""
    reasons: dict[str, list[str]] = {}
    for name, reason in found.refused.items():
        reasons.setdefault(reason, []).append(name)
    return "\n".join(f"not fitted: {', '.join(names)}: {reason}" for reason, names in reasons.items())


def _verdict(found: Comparison) -> list[str]:
    """What the comparison says, and what it does not."""
    ranked = legend(found.criterion, bool(found.log_probabilities))
    if len(found.fits) < 2:
        return [ranked]
    first, second, behind = found.fits[0].family, found.fits[1].family, found.behind(found.fits[1])
    alike = [fit.family for fit in found.fits if not found.behind(fit) >= _ALIKE]
    if len(alike) > 1:
        said = f"{', '.join(alike[:-1])} and {alike[-1]} describe the data about equally well"
    elif behind < _DECIDES:
        said = f"{first} is ahead of {second}, but not by much (a difference of {_DECIDES:g} would decide)"
    else:
        said = f"{first} is clearly ahead of {second}"
    return [said, ranked]


def _parameters(fit: FittedDistribution) -> Table:
    head, *rows = parameter_rows(fit)
    texts = list(zip(*rows, strict=True))
    scales = "; ".join(f"{name} {_SCALES[scale]}" for name, scale in fit.interval_scales.items())
    return Table(
        f"{fit.family}: parameters",
        [
            Column(head[0], texts[0], left=True),
            Column(head[1], list(fit.parameters.values()), texts[1]),
            Column(head[2], [fit.standard_errors.get(name) for name in fit.parameters], texts[2]),
            Column(head[3], [fit.intervals.get(name) for name in fit.parameters], texts[3], left=True),
        ],
        f"Standard errors by the observed Fisher information. Intervals are symmetric: {scales}.",
    )


def _tests(goodness: Goodness | None) -> list[str]:
    """The tests of fit, and what they mean."""
    if goodness is None:
        return []
    lines = [f"{name}: {v:.4g}, p-value {_p_value(goodness, name)}" for name, v in goodness.statistics.items()]
    lines.append(f"({goodness.note})")
    if goodness.p_values and goodness.p_value < _REFUTED:
        lines.append("data from this family would hardly ever lie so far from it: it does not describe all of the data")
    elif goodness.p_values and goodness.p_value < _DOUBTFUL:
        lines.append("data from this family seldom lie so far from it: use it with care")
    return lines


def _p_value(goodness: Goodness, test: str) -> str:
    p, smallest = goodness.p_values[test], 1.0 / (goodness.resamples + 1) if goodness.resamples else 0.0
    return f"{'at most ' if p <= smallest else ''}{f'{p:.3f}' if p >= 0.001 else f'{p:.1e}'}"


# --------------------------------------------------------------------- charts


def _density(fits: tuple[FittedDistribution, ...], what: str) -> str:
    """The data as a histogram, with the densities of the best few families."""
    best = fits[0]
    low, high = best.statistics.low, best.statistics.high
    # Heavy tails would leave nothing to see of the rest: what lies outside of all but a thousandth is not drawn.
    with np.errstate(all="ignore"):
        inner = np.asarray(best.quantile([0.001, 0.999]), dtype=np.float64)
    if np.isfinite(inner).all():
        low = max(low, float(inner[0]) - 0.05 * float(np.ptp(inner)))
        high = min(high, float(inner[1]) + 0.3 * float(np.ptp(inner)))
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
    below, *inside, above = run.fold(partial(BinWeights.of, edges=edges)).weights.tolist()
    weights = np.array(inside)
    curves = []
    near = [fit for fit in fits if best.max_log_likelihood - fit.max_log_likelihood < _FAR * best.n]
    for fit in [one for one in near if one.discrete == best.discrete][:_MOST_CURVES]:
        xs = np.arange(math.ceil(edges[0]), math.floor(edges[-1]) + 1) if best.discrete else np.linspace(low, high, 400)
        with np.errstate(all="ignore"):
            curves.append((fit.family, np.asarray(xs, dtype=np.float64), np.asarray(fit.pdf(xs), dtype=np.float64)))
    dots = best.discrete and len(curves[0][1]) <= _MOST_BARS
    return density_chart(edges, weights / best.n / np.diff(edges), curves, what, dots=dots, beyond=(below, above))


def _quantiles(fit: FittedDistribution) -> str | None:
    try:
        values: Floats = np.sort(draw(fit, 2000, 0))
    except RefusalError:
        return None
    dots = min(_DOTS, len(values))
    levels = (np.arange(dots) + 0.5) / dots
    with np.errstate(all="ignore"):
        fitted = np.asarray(fit.quantile(levels), dtype=np.float64)
    sample = f" ({counted(len(values), 'value')} drawn at random)" if len(values) < fit.n else ""
    below, beside = f"quantiles of the {fit.family} distribution", f"quantiles of the data{sample}"
    return quantile_chart(fitted, np.quantile(values, levels), below, beside)


def _likelihoods(fit: FittedDistribution) -> Group:
    """The log-likelihood along each parameter."""

    def along(name: str) -> str | None:
        values, likelihoods = fit.curve(name, points=65)
        if np.isfinite(likelihoods).sum() < 2:
            return None
        return likelihood_chart(name, values, likelihoods, fit.parameters[name], fit.intervals[name])

    costly = FAMILIES[fit.family].passes and fit.manifest.rows > _MOST_PASSES
    charts = [Chart(f"Log-likelihood along {name}", lambda name=name: along(name)) for name in fit.free]  # type: ignore[misc]
    caption = "Other parameters stay at their estimates. Shaded: the interval."
    return Group([] if costly else charts, caption="" if costly else caption, only="page")


def as_values(found: FittedDistribution | Comparison, goodness: Goodness | None = None) -> dict[str, Any]:
    """Everything that is known about the fits as plain values; what does not exist is None."""
    if isinstance(found, Comparison):
        return {
            "criterion": found.criterion,
            "best": found.best.family if found.fits else None,
            "fits": [
                as_values(fit, goodness if fit is found.fits[0] else None)
                | plain({"score": found.score(fit), "behind": found.behind(fit)})
                for fit in found.fits
            ],
            "ranked_by": legend(found.criterion, bool(found.log_probabilities)),
            "refused": dict(found.refused),
        }
    same = ("family", "parameters", "fixed", "standard_errors", "intervals", "interval_scales", "confidence")
    values = {name: getattr(found, name) for name in same} | {
        "log_likelihood": found.max_log_likelihood,
        **{name: getattr(found, name) for name in ("aic", "bic", "n", "method", "notes")},
        "outcome": str(found.outcome.reason),
        "trace": [dict(step) for step in found.trace],
        "manifest": found.manifest.as_dict(),
    }
    if goodness is not None:
        values["goodness_of_fit"] = {name: getattr(goodness, name) for name in ("statistics", "p_values", "n", "note")}
    finite: dict[str, Any] = plain(values)
    return finite
