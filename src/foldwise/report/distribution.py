"""Fitted distributions in words and figures, and as plain values for JSON."""

from __future__ import annotations

import math
from typing import Any

from foldwise.models.likelihood import Comparison, FittedDistribution
from foldwise.models.likelihood.goodness import Goodness
from foldwise.models.likelihood.repr import TWO_KINDS, compared, estimates, figures, parameter_rows
from foldwise.report.run_header import counted
from foldwise.report.tables import table

_DECIDES = 10.0


def summary(found: FittedDistribution | Comparison, goodness: Goodness | None) -> str:
    """What was fitted to what, the comparison if there is one, and the (best) fit with its test."""
    if isinstance(found, Comparison):
        if not found.fits:
            return compared(found) + "\n"
        parts = [
            header(found.best, len(found.fits)),
            comparison_table(found),
            refusals(found),
            "\n".join(verdict(found)),
        ]
        parts += [f"the best, {found.best.family}:\n{fit_table(found.best)}"]
        best = found.best
    else:
        parts, best = [header(found), fit_table(found)], found
    parts.append("\n".join([criteria(best), *tests(goodness), *best.notes]))
    return "\n\n".join(part for part in parts if part) + "\n"


def header(fit: FittedDistribution, compared_with: int = 1) -> str:
    """One line on the data, one on the work done."""
    ran = fit.manifest
    column = "" if fit.column is None else f", column {fit.column}"
    weights = "" if fit.n == ran.rows else f", weight {fit.n:,.10g}"
    lines = [f"{ran.source}{column}: {counted(ran.rows, 'value')}{weights} ({ran.dtype})"]
    how = f"{fit.family}, {fit.method}" if compared_with == 1 else f"{compared_with} families"
    if fit.trace and compared_with == 1:
        how += f", {fit.outcome.reason} after {counted(len(fit.trace), 'point')}"
    lines.append(f"{how}, {counted(ran.passes, 'pass', 'passes')}, {ran.seconds:.2f} s")
    if ran.resumed_at:
        lines.append(f"went on from a checkpoint at step {ran.resumed_at}")
    return "\n".join(lines)


def fit_table(fit: FittedDistribution) -> str:
    """The parameters with standard errors and intervals."""
    head, *rows = parameter_rows(fit)
    return table(head, rows, left=(0, 3))


def criteria(fit: FittedDistribution) -> str:
    """The log-likelihood and what is made of it."""
    return f"log-likelihood {fit.max_log_likelihood:.3f}, AIC {fit.aic:.3f}, BIC {fit.bic:.3f}"


def comparison_table(found: Comparison) -> str:
    """One line for each family, best first."""
    rows = [[fit.family, *figures(found, fit), estimates(fit)] for fit in found.fits]
    return table(["family", "log-likelihood", "AIC", "BIC", "behind", "parameters"], rows, left=(0, 5))


def refusals(found: Comparison) -> str:
    """Why families were left out, those with one reason together."""
    reasons: dict[str, list[str]] = {}
    for name, reason in found.refused.items():
        reasons.setdefault(reason, []).append(name)
    return "\n".join(f"not fitted: {', '.join(names)}: {reason}" for reason, names in reasons.items())


def verdict(found: Comparison) -> list[str]:
    """What the comparison says, and what it does not."""
    name, lines = found.criterion.upper(), []
    together = found.comparable
    for discrete in (True,) if together else (True, False):
        kind = [fit for fit in found.fits if together or fit.discrete is discrete]
        if len(kind) < 2:
            continue
        first, second = kind[:2]
        behind = found.behind(second)
        if behind < 2:
            lines.append(f"{first.family} and {second.family} describe the data about equally well ({name})")
        elif behind < _DECIDES:
            lines.append(
                f"{first.family} is ahead of {second.family}, but not by much ({name}; {_DECIDES:g} would decide)"
            )
        else:
            lines.append(f"{first.family} is clearly ahead of {second.family} ({name})")
    if not together:
        lines.append(TWO_KINDS)
    return lines


def tests(goodness: Goodness | None) -> list[str]:
    """The tests of fit."""
    if goodness is None:
        return []
    smallest = 1.0 / (goodness.resamples + 1) if goodness.resamples else 0.0
    lines = []
    for name, value in goodness.statistics.items():
        p = goodness.p_values[name]
        lines.append(f"{name}: {value:.4g}, p-value {'at most ' if p <= smallest else ''}{_p(p)}")
    lines.append(f"({goodness.note})")
    if goodness.p_values and goodness.p_value < 0.01:
        lines.append(
            "values from this family would hardly ever lie so far from it: it does not describe all of the data"
        )
    elif goodness.p_values and goodness.p_value < 0.05:
        lines.append("values from this family seldom lie so far from it: take it with care")
    return lines


def _p(value: float) -> str:
    return f"{value:.3f}" if value >= 0.001 else f"{value:.1e}"


def as_values(found: FittedDistribution | Comparison, goodness: Goodness | None = None) -> dict[str, Any]:
    """Everything as plain values; what does not exist is None."""
    if isinstance(found, Comparison):
        return {
            "criterion": found.criterion,
            "best": found.best.family if found.fits else None,
            "fits": [as_values(fit, goodness if fit is found.fits[0] else None) for fit in found.fits],
            "refused": dict(found.refused),
        }
    plain = {
        "family": found.family,
        "parameters": found.parameters,
        "fixed": list(found.fixed),
        "standard_errors": found.standard_errors,
        "intervals": {name: list(ends) for name, ends in found.intervals.items()},
        "interval_scales": found.interval_scales,
        "confidence": found.confidence,
        "log_likelihood": found.max_log_likelihood,
        "aic": found.aic,
        "bic": found.bic,
        "n": found.n,
        "method": found.method,
        "notes": list(found.notes),
        "outcome": str(found.outcome.reason),
        "trace": [dict(step) for step in found.trace],
        "manifest": found.manifest.as_dict(),
    }
    if goodness is not None:
        plain["goodness_of_fit"] = {
            "statistics": goodness.statistics,
            "p_values": goodness.p_values,
            "n": goodness.n,
            "note": goodness.note,
        }
    finite: dict[str, Any] = _finite(plain)
    return finite


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(item) for item in value]
    return value
