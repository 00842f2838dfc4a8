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
    """The result of a step: new centres, and the inertia (in units of the rescaled data) after the E- and M-steps."""

    centres: NDArray[Any]
    after_e: float
    after_m: float
    moved: int
    computed: int
    settled: int
    filled: int
    shift: float  # summed squared movement of the centres


def step(assignment: Assignment, centres: NDArray[Any], geometry: Geometry = EUCLIDEAN) -> LloydStep:
    """E: assign every row to its nearest centre. M: move every centre to the mean of its rows (projected, for cosine)."""
    done = assignment.assign(centres)
    filled, placed = fill_empty(assignment, centres)
    new, after_e, after_m, shift = assignment.update_centres(centres, geometry.project)
    if filled:  # a moved row is measured from its new centre, not from the one it left
        after_e = assignment.inertia(placed)
    # Where little of the total remains, only differences are accurate.
    if after_m < _CANCELS * assignment.data.spread:
        after_e, after_m = (float(assignment.residuals(points).sum()) for points in (placed, new))
    return LloydStep(new, after_e, after_m, done.moved + filled, done.computed, done.settled, filled, shift)


def settle_down(
    assignment: Assignment, centres: NDArray[Any], geometry: Geometry = EUCLIDEAN, max_iter: int = 100
) -> NDArray[Any]:
    """Steps until nothing moves, for small data or nearly converged centres."""
    for _ in range(max_iter):
        done = step(assignment, centres, geometry)
        centres = done.centres
        if done.shift == 0.0:
            break
    return centres
