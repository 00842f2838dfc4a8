"""Empty clusters: each takes the row that lies farthest from its centre, which lowers the inertia; labels and sums follow."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from foldwise.models.kmeans.assignment import Assignment

# In units of the scaled data, whose values are at most 1: the mean of equal rows can be off by that much for each column.
_ROUNDING = 2.0**-50


def fill_empty(rows: Assignment, centres: NDArray[Any]) -> tuple[int, NDArray[Any]]:
    """Move rows to clusters that have none; how many, and the centres with those of the filled clusters at their new rows.

    Fewer than there are empty clusters only if no row is left that lies off its centre and is not alone with it: then there are
    fewer distinct points than clusters.
    """
    empty = np.flatnonzero(rows.sums.weights <= 0)
    if not len(empty):
        return 0, centres
    distance = np.empty(rows.n)
    rows.residuals(centres, distance)
    distance[distance <= rows.d * _ROUNDING**2] = 0.0
    if rows.weights is not None:
        distance[rows.weights == 0.0] = 0.0  # such a row cannot fill anything, and many could hide one that can
    filled, taken, placed = 0, set(), centres.copy()
    # Members of a cluster can all be equal: more rows than needed are looked at, but never all of them.
    numbers = _farthest(distance, 20 * len(empty) + 100)
    for number, value in zip(numbers.tolist(), rows.take(numbers), strict=True):
        if filled == len(empty):
            break
        mine = 1.0 if rows.weights is None else float(rows.weights[number])
        if value.tobytes() in taken:
            continue
        if rows.cluster_weights[rows.labels[number]] <= mine:
            continue  # alone with its centre: its own cluster would be the next to be empty
        rows.move(number, int(empty[filled]))
        placed[empty[filled]] = value
        taken.add(value.tobytes())
        filled += 1
    return filled, placed


def _farthest(distance: NDArray[np.float64], count: int) -> NDArray[np.intp]:
    """At most `count` rows with the largest distances above 0, the first of equals first."""
    count = min(count, len(distance))
    least = np.partition(distance, len(distance) - count)[len(distance) - count]
    some = np.flatnonzero((distance >= least) & (distance > 0.0))
    return np.asarray(some[np.argsort(-distance[some], kind="stable")][:count])
