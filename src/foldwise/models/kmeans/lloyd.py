"""One step of Lloyd's algorithm, and the rule for stopping."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from foldwise.models.kmeans.assignment import Assignment
from foldwise.models.kmeans.empty_clusters import fill_empty

_CANCELS = 1e-6


@dataclass(frozen=True)
class LloydStep:
    """New centres and what the step found: inertias (in units of the scaled data) after the E- and the M-half."""

    centres: NDArray[Any]
    after_e: float
    after_m: float
    moved: int
    computed: int
    settled: int
    filled: int
    shift: float  # summed squared movement of the centres


def step(
    rows: Assignment, centres: NDArray[Any], project: Callable[[NDArray[Any]], NDArray[Any]] | None = None
) -> LloydStep:
    """E: every row to its nearest centre. M: every centre to the mean of its rows (and then onto the sphere, for cosine)."""
    done = rows.assign(centres)
    filled, placed = fill_empty(rows, centres)
    new, after_e, after_m, shift = rows.finish(centres, project)
    if filled:  # a row that was moved is measured from where its cluster was put, not from the centre left behind
        after_e = rows.inertias(placed)[0]
    if after_m < _CANCELS * rows.spread:  # little is left of the whole: then only differences have its digits
        after_e, after_m = (float(rows.residuals(points).sum()) for points in (placed, new))
    return LloydStep(new, after_e, after_m, done.moved + filled, done.computed, done.settled, filled, shift)


def settle_down(
    rows: Assignment,
    centres: NDArray[Any],
    project: Callable[[NDArray[Any]], NDArray[Any]] | None = None,
    max_iter: int = 100,
) -> NDArray[Any]:
    """Steps until nothing moves, for what is small or nearly done."""
    for _ in range(max_iter):
        done = step(rows, centres, project)
        centres = done.centres
        if done.shift == 0.0:
            break
    return centres
