"""One step of Lloyd's algorithm."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from foldwise.models.kmeans.assignment import Assignment
from foldwise.models.kmeans.empty_clusters import fill_empty
from foldwise.models.kmeans.geometry import EUCLIDEAN, Geometry

_CANCELS = 1e-6


@dataclass(frozen=True)
class LloydStep:
    """New centres and what the step found: inertias (in units of the rescaled data) after the E- and the M-half."""

    centres: NDArray[Any]
    after_e: float
    after_m: float
    moved: int
    computed: int
    settled: int
    filled: int
    shift: float  # summed squared movement of the centres


def step(assignment: Assignment, centres: NDArray[Any], geometry: Geometry = EUCLIDEAN) -> LloydStep:
    """E: every row to its nearest centre. M: every centre to the mean of its rows (and then onto the sphere, for cosine)."""
    done = assignment.assign(centres)
    filled, placed = fill_empty(assignment, centres)
    new, after_e, after_m, shift = assignment.update_centres(centres, geometry.project)
    if filled:  # a row that was moved is measured from where its cluster was put, not from the centre left behind
        after_e = assignment.inertia(placed)
    if (
        after_m < _CANCELS * assignment.data.spread
    ):  # little is left of the whole: then only differences have its digits
        after_e, after_m = (float(assignment.residuals(points).sum()) for points in (placed, new))
    return LloydStep(new, after_e, after_m, done.moved + filled, done.computed, done.settled, filled, shift)


def settle_down(
    assignment: Assignment, centres: NDArray[Any], geometry: Geometry = EUCLIDEAN, max_iter: int = 100
) -> NDArray[Any]:
    """Steps until nothing moves, for what is small or nearly done."""
    for _ in range(max_iter):
        done = step(assignment, centres, geometry)
        centres = done.centres
        if done.shift == 0.0:
            break
    return centres
