"""Empty clusters: each takes the row that lies farthest from its centre, which lowers the inertia; labels and sums follow."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from foldwise.models.kmeans.assignment import Assignment
from foldwise.models.kmeans.tasks import FarRows, Farthest

# In units of the rescaled data, whose values are at most 1: the mean of equal rows can be off by that much for each column.
_ROUNDING = 2.0**-50


def fill_empty(assignment: Assignment, centres: NDArray[Any]) -> tuple[int, NDArray[Any]]:
    """Move rows to clusters that have none; how many, and the centres with those of the filled clusters at their new rows.

    Fewer than there are empty clusters only if no row is left that lies off its centre and is not alone with it: then there are
    fewer distinct points than clusters.
    """
    empty = np.flatnonzero(assignment.sums.weights <= 0)
    if not len(empty):
        return 0, centres
    filled, taken, placed = 0, set(), centres.copy()
    # Members of a cluster can all be equal: more rows than needed are looked at, but never all of them.
    rows = _farthest(assignment, centres, 20 * len(empty) + 100)
    for place, value in enumerate(rows.values):
        if filled == len(empty):
            break
        if value.tobytes() in taken:
            continue
        if assignment.cluster_weights[rows.labels[place]] <= rows.weights[place]:
            continue  # alone with its centre: its own cluster would be the next to be empty
        assignment.move(rows, place, int(empty[filled]))
        placed[empty[filled]] = value
        taken.add(value.tobytes())
        filled += 1
    return filled, placed


def _farthest(assignment: Assignment, centres: NDArray[Any], count: int) -> FarRows:
    data = assignment.data
    found = data.passes.each(Farthest(data.targets(centres), count, data.d * _ROUNDING**2))
    distances = np.concatenate([rows.distances for rows in found])
    order = np.argsort(-distances, kind="stable")[:count]  # by block, so that of equals the first row stays first
    return FarRows(
        *(np.concatenate([getattr(rows, name) for rows in found])[order] for name in FarRows.__dataclass_fields__)
    )
