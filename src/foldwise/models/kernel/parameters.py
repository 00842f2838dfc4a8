"""What each parameter of KernelKMeans may be, alone and with others, and how large an exact fit may get."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from foldwise.errors import DataError, ParameterError
from foldwise.models.kernel.functions import KERNELS, kernel_class
from foldwise.models.parameters import BOOLEAN, Parameter, number, shared, whole, words

PARAMETERS: dict[str, Parameter] = {
    **shared("n_clusters", "n_init", "max_iter", "tol", "random_state", "time_budget", "checkpoint", "n_threads"),
    "kernel": Parameter((words(*KERNELS), callable)),
    "gamma": number(0, None, "neither", words("auto")),
    "degree": whole(),
    "coef0": number(None, None, "neither"),
    "approximation": Parameter((words("nystroem", "random-features", "auto"), None)),
    "n_features": whole(),
    "normalize": BOOLEAN,
    "init": Parameter((words("auto", "spectral", "k-means++", "random"), "array-like")),
    "memory_budget": replace(number(), affects_result=False),
}

_PASSES, _PATIENCE = 20, 3600.0


def check_combination(model: Any) -> None:
    """Refuse parameters that contradict each other."""
    kind, approximate = kernel_class(model.kernel), model.approximation is not None
    if approximate and kind.precomputed:
        raise ParameterError("a precomputed kernel matrix leaves nothing to approximate: use approximation=None.")
    if model.approximation == "random-features" and not kind.has_random_features:
        known = " or ".join(repr(name) for name, each in KERNELS.items() if each.has_random_features)
        raise ParameterError(f"random features are for kernel={known}: use approximation='nystroem' for others.")
    if model.normalize and approximate:
        raise ParameterError("normalize=True needs the exact kernel: use approximation=None.")
    if model.normalize and not kind.can_normalize:
        raise ParameterError(
            f"normalize=True needs a kernel without negative values, and {model.kernel!r} can be negative."
        )
    if approximate and not isinstance(model.init, str):
        raise ParameterError("init as an array is for exact fits: use 'spectral', 'k-means++' or 'random'.")


def seconds_per_pass(n: int, d: int, k: int, n_threads: int) -> float:
    """About how long one pass over all pairs of n rows takes: measured on a laptop's core, per pair."""
    return float(n) * n * (3.0 + 0.3 * d + 0.3 * k) * 1e-9 / n_threads


def refusal(n: int, d: int, k: int, n_threads: int, budget: float, *, timed: bool) -> DataError | None:
    """Why an exact fit is out of the question, or None; `timed` says that it ends with a time budget."""
    needed = 8.0 * n * (d + 2 + 4 * k)
    if needed > max(budget, 2**20):
        what = f"{n:,} rows and their sums need {_size(needed)} of memory, and memory_budget is {_size(budget)}"
    else:
        seconds = seconds_per_pass(n, d, k, n_threads)
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
