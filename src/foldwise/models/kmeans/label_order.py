"""Canonical numbering, so that equal partitions get equal numbers: clusters by size, then by centre."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from foldwise.models.kmeans import lloyd
from foldwise.models.kmeans.assignment import Assignment
from foldwise.models.kmeans.geometry import EUCLIDEAN, Geometry

_TRIES = 3


def ordered(assignment: Assignment, centres: NDArray[Any], geometry: Geometry = EUCLIDEAN) -> NDArray[Any]:
    """The centres from the largest cluster to the smallest; the labels are renumbered to match.

    A row equidistant from two centres belongs to the one with the lower number. Renumbering can move such rows, and only
    such rows (see cpp/exact_ties.h); where there are any, Lloyd steps are repeated, which may leave clusters of nearly equal
    size out of order.
    """
    for _ in range(_TRIES):
        order = by_size(assignment.cluster_weights, centres)
        if np.array_equal(order, np.arange(len(order))):
            break
        ties = assignment.exact_ties
        settled = ties and assignment.is_settled(centres)
        place = np.empty(len(order), dtype=np.int32)
        place[order] = np.arange(len(order), dtype=np.int32)
        centres = np.ascontiguousarray(centres[order])
        assignment.relabel(place, len(order))
        if not ties:
            assignment.centres = centres
            break
        if settled:
            centres = lloyd.settle_down(assignment, centres, geometry)
        assignment.assign(centres)
    return centres


def by_size(weights: NDArray[np.float64], centres: NDArray[Any]) -> NDArray[np.intp]:
    """Clusters from the largest to the smallest, ties ordered by centre; independent of the order of the rows."""
    order = np.argsort(-weights, kind="stable")
    sizes = weights[order]
    if not (sizes[1:] == sizes[:-1]).any():  # as a rule: then no column of the centres needs sorting
        return order
    return np.lexsort((*centres.T[::-1], -weights))
