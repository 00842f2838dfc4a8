"""What each parameter of KernelKMeans may be, and how large an exact fit may get."""

from __future__ import annotations

import os
from numbers import Integral, Real
from typing import Any

from sklearn.utils._param_validation import Interval, StrOptions

from foldwise.errors import DataError

_count = Interval(Integral, 1, None, closed="left")

CONSTRAINTS: dict[str, Any] = {
    "n_clusters": [_count],
    "kernel": [StrOptions({"rbf", "poly", "linear", "laplacian", "precomputed"}), callable],
    "gamma": [StrOptions({"auto"}), Interval(Real, 0, None, closed="neither")],
    "degree": [_count],
    "coef0": [Interval(Real, None, None, closed="neither")],
    "approximation": [StrOptions({"nystroem", "random-features", "auto"}), None],
    "n_features": [_count],
    "normalize": ["boolean"],
    "init": [StrOptions({"auto", "spectral", "k-means++", "random"}), "array-like"],
    "n_init": [StrOptions({"auto"}), _count],
    "max_iter": [_count],
    "tol": [Interval(Real, 0, None, closed="left")],
    "memory_budget": [Interval(Real, 0, None, closed="left")],
    "random_state": ["random_state"],
    "time_budget": [Interval(Real, 0, None, closed="left"), None],
    "checkpoint": [str, os.PathLike, None],
    "n_threads": [_count, None],
}

NOT_ABOUT_THE_RESULT = ("checkpoint", "memory_budget", "n_threads", "time_budget")
_PASSES, _PATIENCE = 20, 3600.0


def seconds_a_pass(n: int, d: int, k: int, n_threads: int) -> float:
    """About how long one pass over all pairs of n rows takes: measured on a laptop's core, per pair."""
    return float(n) * n * (3.0 + 0.3 * d + 0.3 * k) * 1e-9 / n_threads


def refusal(n: int, d: int, k: int, n_threads: int, budget: float, *, timed: bool) -> DataError | None:
    """Why an exact fit would not do, or None."""
    held = 8.0 * n * (d + 2 + 4 * k)
    if held > max(budget, 2**20):
        what = f"{n:,} rows and their sums need {_size(held)} of memory, and memory_budget is {_size(budget)}"
    else:
        seconds = seconds_a_pass(n, d, k, n_threads)
        if timed or seconds * _PASSES <= _PATIENCE:
            return None
        what = (
            f"the exact kernel matrix of {n:,} rows has {float(n) * n:.1e} values; a pass over it would take about "
            f"{seconds / 60:,.0f} minutes, and some {_PASSES} are needed"
        )
    return DataError(
        what,
        advice="Use approximation='nystroem' (it reads files larger than memory); for an exact fit give a time_budget "
        "and a checkpoint, or raise memory_budget",
    )


def _size(n_bytes: float) -> str:
    return f"{n_bytes / 1e9:,.1f} GB" if n_bytes >= 1e9 else f"{n_bytes / 1e6:,.0f} MB"
