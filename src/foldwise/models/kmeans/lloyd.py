"""One step of Lloyd's algorithm."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from foldwise.models.kmeans.assignment import Assignment
from foldwise.models.kmeans.empty_clusters import fill_empty
from foldwise.models.kmeans.geometry import EUCLIDEAN, Geometry
from foldwise.models.kmeans.tasks import Assigned

_CANCELS = 1e-6


@dataclass(frozen=True)
class LloydStep:
    """The result of a step: new centres, and the inertia (in units of the rescaled data) after the E- and M-steps."""

    centres: NDArray[Any]
    before: NDArray[Any]  # the centres that rows were assigned to: those given, but for empty clusters that were filled
    after_e: float
    after_m: float
    moved: int
    computed: int
    settled: int
    filled: int
    shift: float  # summed squared movement of the centres


def step(assignment: Assignment, centres: NDArray[Any], geometry: Geometry = EUCLIDEAN) -> LloydStep:
    """E: assign every row to its nearest centre. M: move every centre to the mean of its rows (projected, for cosine)."""
    done = assignment.assign(centres) if assignment.labelled else _assign_first(assignment, centres)
    filled, moved, placed = fill_empty(assignment, centres)
    new, after_e, after_m, shift = assignment.update_centres(centres, geometry.project)
    if filled:  # rows are measured from the centres that they were assigned to
        after_e = assignment.inertia(placed)
    # Where little of the total remains, only differences are accurate.
    if after_m < _CANCELS * assignment.data.spread:
        after_e, after_m = (float(assignment.residuals(points).sum()) for points in (placed, new))
    moved = min(done.moved + moved, assignment.data.n)
    return LloydStep(new, placed, after_e, after_m, moved, done.computed, done.settled, filled, shift)


def _assign_first(assignment: Assignment, centres: NDArray[Any]) -> Assigned:
    """The first assignment of a start, whose centres may be equal: the first of these has all the rows.

    The others need not be compared. Every row would be tied between all of them, and ties are settled one by one.
    """
    first = sorted({centre.tobytes(): place for place, centre in reversed([*enumerate(centres)])}.values())
    if len(first) == len(centres):
        return assignment.assign(centres)
    done = assignment.assign(np.ascontiguousarray(centres[first]))
    assignment.relabel(first, len(centres))
    return done


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
