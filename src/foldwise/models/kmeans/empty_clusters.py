"""Empty clusters: each takes the row farthest from its centre, which lowers the inertia; labels and sums are updated."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from foldwise.models.kmeans.assignment import Assignment
from foldwise.models.kmeans.tasks import FarRows, Farthest

# Rounding error of the mean of equal rows, per column, in units of the rescaled data (values of at most 1).
_ROUNDING = 2.0**-50


def fill_empty(assignment: Assignment, centres: NDArray[Any]) -> tuple[int, NDArray[Any]]:
    """Move rows to empty clusters; returns how many were moved, and the centres, with each filled cluster's at its new row.

    Some clusters stay empty only if there are fewer distinct points than clusters: every remaining row then coincides with
    its centre or is the only row of its cluster.
    """
    empty = np.flatnonzero(assignment.sums.weights <= 0)
    if not len(empty):
        return 0, centres
    filled, taken, placed = 0, set(), centres.copy()
    # Rows may be equal, so consider more rows than needed, but never all of them.
    rows = _farthest(assignment, centres, 20 * len(empty) + 100)
    for place, value in enumerate(rows.values):
        if filled == len(empty):
            break
        if value.tobytes() in taken:
            continue
        if assignment.cluster_weights[rows.labels[place]] <= rows.weights[place]:
            continue  # the only row of its cluster, which would become empty
        assignment.move(rows, place, int(empty[filled]))
        placed[empty[filled]] = np.where(np.isnan(value), centres[empty[filled]], value)  # if a cell is missing
        taken.add(value.tobytes())
        filled += 1
    return filled, placed


def _farthest(assignment: Assignment, centres: NDArray[Any], count: int) -> FarRows:
    data = assignment.data
    found = data.passes.each(Farthest(data.targets(centres), count, data.d * _ROUNDING**2, assignment.name))
    distances = np.concatenate([rows.distances for rows in found])
    order = np.argsort(-distances, kind="stable")[:count]  # stable, so that the first of equal rows stays first
    return FarRows(
        *(np.concatenate([getattr(rows, name) for rows in found])[order] for name in FarRows.__dataclass_fields__)
    )
