"""Fitted distributions as plain text: what their repr shows."""

from __future__ import annotations

import math
from typing import Any


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
        "  ".join(f"{c:<{w}}" if j in left else f"{c:>{w}}" for j, (c, w) in enumerate(zip(row, widths, strict=True))).rstrip()
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


def compared(comparison: Any) -> str:
    """Fits, best first, and what was refused."""
    best = getattr(comparison.fits[0], comparison.criterion) if comparison.fits else 0.0
    rows = [["family", "log-likelihood", "AIC", "BIC", "behind", "parameters"]]
    for fit in comparison.fits:
        behind = getattr(fit, comparison.criterion) - best
        rows.append(
            [
                fit.family,
                f"{fit.max_log_likelihood:.3f}",
                f"{fit.aic:.3f}",
                f"{fit.bic:.3f}",
                f"{behind:.2f}",
                estimates(fit),
            ]
        )
    lines = lines_up(rows, left=(0, 5))
    lines += [f"{name}: not fitted: {reason}" for name, reason in comparison.refused.items()]
    if comparison.fits and len({fit.discrete for fit in comparison.fits}) > 1:
        lines.append("densities and probabilities of counts are on one footing only where counts are one apart")
    return "\n".join(lines)
