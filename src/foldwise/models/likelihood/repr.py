"""Fitted distributions as plain text: what their repr shows."""

from __future__ import annotations

import math
from typing import Any

from foldwise.models.likelihood.ranking import legend


def figure(value: float, error: float = math.nan) -> str:
    """Six significant digits, or more where a standard error says that they count.

    >>> figure(0.55), figure(1234567.0), figure(float("nan")), figure(1e10 + 2, 0.5)
    ('0.55', '1.23457e+06', 'none', '10000000002')
    """
    if math.isnan(value):
        return "none"
    digits = 6
    if error > 0 and value != 0 and math.isfinite(error) and math.isfinite(value):
        digits = min(max(6, math.floor(math.log10(abs(value))) - math.floor(math.log10(error)) + 2), 17)
    return f"{value:.{digits}g}"


def lines_up(rows: list[list[str]], left: tuple[int, ...] = (0,)) -> list[str]:
    """Rows of cells as aligned lines."""
    widths = [max(len(cell) for cell in column) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            f"{c:<{w}}" if j in left else f"{c:>{w}}" for j, (c, w) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def parameter_rows(fit: Any) -> list[list[str]]:
    """One line of cells for each parameter, under a head."""
    rows = [["parameter", "estimate", "std. error", f"{100 * fit.confidence:g} % interval"]]
    for name, value in fit.parameters.items():
        if name in fit.fixed:
            rows.append([name, figure(value), "convention" if name == "start" else "given", ""])
            continue
        low, high = fit.intervals[name]
        error = fit.standard_errors[name]
        interval = "none" if math.isnan(low) or math.isnan(high) else f"{figure(low, error)} to {figure(high, error)}"
        rows.append([name, figure(value, error), figure(error), interval])
    return rows


def described(fit: Any) -> str:
    """A fit as a table of parameters."""
    head = f"{fit.family}, {fit.n:,.15g} values, {fit.method}"
    if fit.trace:
        steps = len(fit.trace)
        head += f", {fit.outcome.reason} after {steps} point{'s' if steps != 1 else ''}"
    criteria = f"log-likelihood {fit.max_log_likelihood:.10g}, AIC {fit.aic:.10g}, BIC {fit.bic:.10g}"
    return "\n".join([head, *lines_up(parameter_rows(fit), left=(0, 3)), criteria, *fit.notes])


def estimates(fit: Any) -> str:
    """The parameters in one line."""
    return ", ".join(f"{name} {value:.5g}" for name, value in fit.parameters.items())


def figures(comparison: Any, fit: Any) -> list[str]:
    """Log-likelihood, criteria, the score by which fits are ranked, and how far behind the best it is."""
    values = (fit.max_log_likelihood, fit.aic, fit.bic, comparison.score(fit))
    return [f"{value:.3f}" for value in values] + [f"{comparison.behind(fit):.2f}"]


def compared(comparison: Any) -> str:
    """Fits, best first, what was refused, and what is odd about the values."""
    rows = [["family", "log-likelihood", "AIC", "BIC", "score", "behind", "parameters"]]
    rows += [[fit.family, *figures(comparison, fit), estimates(fit)] for fit in comparison.fits]
    lines = lines_up(rows, left=(0, 6))
    lines += [f"{name}: not fitted: {reason}" for name, reason in comparison.refused.items()]
    if comparison.fits:
        lines.append(legend(comparison.criterion, bool(comparison.log_probabilities)))
        lines += [f"{comparison.best.family}: {note}" for note in comparison.best.notes]
    return "\n".join(lines)
