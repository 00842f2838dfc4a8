"""Empty clusters: each is given a row whose neighbourhood is badly served by the centres there are; labels and sums follow.

A single one takes the row farthest from its centre, as in scikit-learn. Where several do, these are outliers, or all in one
place, and clusters are wasted on them. So rows are drawn in proportion to their squared distance, as seeds are, and of these
each empty cluster takes the one that lowers the inertia most.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from foldwise.data.block import Floats
from foldwise.fold import blas
from foldwise.models.kmeans.assignment import Assignment
from foldwise.models.kmeans.tasks import DrawFar, FarRows

# Rounding error of the mean of equal rows, per column, in units of the rescaled data (values of at most 1).
_ROUNDING = 2.0**-50
_EACH, _BESIDES = 20, 100  # rows drawn for each empty cluster, and besides
_MOST = 2000  # drawn rows that are compared with each other
_AT_A_STEP = 500  # clusters that are filled in one step: what the next ones need shows after it
_COMPARED = 2000  # empty clusters; more take the rows as they were drawn, all in one step
_AT_ONCE = 16  # candidates whose gain is found together


def fill_empty(assignment: Assignment, centres: NDArray[Any]) -> tuple[int, NDArray[Any]]:
    """Move rows to empty clusters; returns how many were moved, and the centres, with each filled cluster's at its new row.

    Some clusters stay empty only if there are fewer distinct points than clusters: every remaining row then coincides with
    its centre or is the only row of its cluster; the next step fills those that are too many for this one.
    """
    empty = np.flatnonzero(assignment.sums.weights <= 0)
    if not len(empty):
        return 0, centres
    compare, several = 1 < len(empty) <= _COMPARED, len(empty) > 1
    if compare:
        empty = empty[:_AT_A_STEP]
    count = min(_EACH * len(empty) + _BESIDES, _MOST) if compare else 2 * len(empty) + _BESIDES
    rows = _drawn(assignment, centres, count, by_chance=several)
    candidates = _Candidates(assignment, rows, centres, count, compare)
    placed = centres.copy()
    for filled, cluster in enumerate(empty):
        place = candidates.best()
        if place is None:
            return filled, placed
        assignment.move(rows, place, int(cluster))
        candidates.take(place)
        value = rows.values[place]
        placed[cluster] = np.where(np.isnan(value), centres[cluster], value)  # if a cell is missing
    return len(empty), placed


class _Candidates:
    """Drawn rows, each with what the inertia would lose if it were a centre, as far as the drawn rows tell."""

    def __init__(self, assignment: Assignment, rows: FarRows, centres: NDArray[Any], count: int, compare: bool) -> None:
        """`count` rows were to be drawn."""
        self.assignment, self.rows, self.compare = assignment, rows, compare
        # A missing cell is where the centre is: it adds nothing to the distance, either.
        values = np.where(np.isnan(rows.values), centres[rows.labels], rows.values)
        self.points = assignment.data.rescaling.apply(values)
        self.away = rows.distances.copy()
        # A row stands for all that were as likely to be drawn; for itself if none was left out.
        least = rows.keys.min() if len(rows.keys) == count else 0.0
        self.stands_for = rows.masses * np.maximum(least / rows.distances, 1.0)
        self.gains = rows.keys.copy()
        if compare:
            squares = np.einsum("ij,ij->i", self.points, self.points)
            with blas.single():
                self.between = self.points @ self.points.T
            self.between *= -2.0
            self.between += squares
            self.between += squares[:, None]
            np.fill_diagonal(self.between, 0.0)  # rounding must not hide that a row itself is served
            self.gains = self._saved(np.arange(len(self.gains)))

    def best(self) -> int | None:
        """The best candidate that is left. Gains only ever fall, so those found earlier are bounds."""
        known = np.zeros(len(self.gains), dtype=bool)
        while len(self.gains):
            place = int(np.argmax(self.gains))
            if self.gains[place] <= 0.0:
                return None
            if self._alone(place):
                self.gains[place] = 0.0
                continue
            if known[place] or not self.compare:
                return place
            unknown = np.where(known, -1.0, self.gains)
            some = np.argpartition(-unknown, min(_AT_ONCE, len(unknown) - 1))[:_AT_ONCE]
            known[some] = True
            self.gains[some] = np.minimum(self._saved(some), self.gains[some])
        return None

    def _saved(self, some: NDArray[np.intp]) -> Floats:
        """What the inertia would lose, for each of some candidates."""
        out = np.empty(len(some))
        for start in range(0, len(some), _AT_ONCE):
            part = some[start : start + _AT_ONCE]
            out[start : start + _AT_ONCE] = np.maximum(self.away - self.between[part], 0.0) @ self.stands_for
        return out

    def _alone(self, place: int) -> bool:
        """Whether this is the only row of its cluster, which would become empty."""
        return bool(self.assignment.cluster_weights[self.rows.labels[place]] <= self.rows.weights[place])

    def take(self, place: int) -> None:
        """This one is a centre from now on, and equal rows are of no use."""
        gap = self.points - self.points[place]
        self.away = np.minimum(self.away, np.einsum("ij,ij->i", gap, gap))
        self.gains[self.away <= 0.0] = 0.0


def _drawn(assignment: Assignment, centres: NDArray[Any], count: int, by_chance: bool) -> FarRows:
    data = assignment.data
    rounding = data.d * _ROUNDING**2
    found = data.passes.each(DrawFar(data.targets(centres), count, rounding, assignment.name, by_chance))
    keys = np.concatenate([rows.keys for rows in found])
    order = np.argsort(-keys, kind="stable")  # stable, so that the first of equal rows stays first
    fresh = np.r_[True, np.diff(keys[order]) != 0.0][: len(order)]
    mass = np.bincount(np.cumsum(fresh) - 1, np.concatenate([rows.masses for rows in found])[order])
    order = order[fresh][:count]
    joined = {name: np.concatenate([getattr(rows, name) for rows in found])[order] for name in FarRows.__dataclass_fields__}
    return FarRows(**{**joined, "masses": mass[:count]})
