"""Fitted distributions as plain text: what their repr shows."""

from __future__ import annotations

import math
from typing import Any

TWO_KINDS = (
    "probabilities of counts (first) and densities cannot be compared with each other: each kind has its own best"
)


def figure(value: float) -> str:
    """Six significant digits.

    >>> figure(0.55), figure(1234567.0), figure(float("nan"))
    ('0.55', '1.23457e+06', 'none')
    """
    return "none" if math.isnan(value) else f"{value:.6g}"


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
            rows.append([name, figure(value), "given", ""])
            continue
        low, high = fit.intervals[name]
        interval = "none" if math.isnan(low) or math.isnan(high) else f"{figure(low)} to {figure(high)}"
        rows.append([name, figure(value), figure(fit.standard_errors[name]), interval])
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
    """Log-likelihood, criteria, and how far behind the best of its kind."""
    return [f"{value:.3f}" for value in (fit.max_log_likelihood, fit.aic, fit.bic)] + [f"{comparison.behind(fit):.2f}"]


def compared(comparison: Any) -> str:
    """Fits, best first, and what was refused."""
    rows = [["family", "log-likelihood", "AIC", "BIC", "behind", "parameters"]]
    rows += [[fit.family, *figures(comparison, fit), estimates(fit)] for fit in comparison.fits]
    lines = lines_up(rows, left=(0, 5))
    lines += [f"{name}: not fitted: {reason}" for name, reason in comparison.refused.items()]
    if comparison.fits and len({fit.discrete for fit in comparison.fits}) > 1:
        lines.append(TWO_KINDS)
    return "\n".join(lines)
