"""Empty clusters: each gets a row whose neighbourhood is badly served by the centres there are, and all rows are assigned anew.

A single one takes the row farthest from its centre, as in scikit-learn. Where several do, these are outliers, or all in one
place, and clusters are wasted on them. So distinct rows are drawn in proportion to their squared distance, as seeds are, and
of these each empty cluster takes the one that lowers the inertia most. What is taken depends on the values of the rows alone,
and repeating a row is the same as giving it more weight.
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
_EACH, _BESIDES = 20, 100  # rows drawn for each empty cluster, and besides; but at most
_MOST, _VALUES, _LEAST = 2000, 1 << 22, 20  # so many, with so many values in all, unless that is fewer than the least
_SHARE = 4  # drawn rows for each cluster that is filled, at least
_FEW = 16  # clusters that are filled at once, however few are empty
_TOGETHER = 16  # candidates whose gain is found together
_TIE = 1e-9  # relative difference of gains that counts as none
_ALONE = 1e-12  # relative rounding error of sums of weights


def fill_empty(assignment: Assignment, centres: NDArray[Any]) -> tuple[int, int, NDArray[Any]]:
    """Put the centres of empty clusters on rows and assign all rows to the centres, until no cluster is empty.

    Returns how many were filled, how many rows changed their cluster (at most), and the centres. Some clusters stay empty only
    if there are fewer distinct rows than clusters: every other cluster then has equal rows alone. Each round adds rows to those
    that coincide with a centre, and takes none away, so there is a last one.
    """
    data, filled, moved = assignment.data, 0, 0
    most = min(max(_VALUES // data.d, _LEAST), _MOST)
    while (nobody := assignment.sums.weights <= 0).any():
        empty = np.flatnonzero(nobody)
        # The other half waits for the next assignment: what rows are badly served shows better then.
        empty = empty[: min(max(-(-len(empty) // 2), _FEW), most // _SHARE)]
        single, count = len(empty) == 1, min(_EACH * len(empty) + _BESIDES, most)
        rows, least = _drawn(assignment, centres, count, by_chance=not single)
        if single:
            rows = rows.take(slice(1))
        if not len(rows.numbers):
            break
        values = data.take(rows.numbers)
        # A missing cell is where the row's centre is: it adds nothing to the distance, either.
        values = np.where(np.isnan(values), centres[rows.labels], values)
        chosen = [0] if single else _Candidates(data.rescaling.apply(values), rows, least).best(len(empty))
        centres = centres.copy()
        centres[empty[: len(chosen)]] = values[chosen]
        moved += assignment.assign(centres).moved
        filled += len(chosen)
    return filled, moved, centres


def _drawn(assignment: Assignment, centres: NDArray[Any], count: int, *, by_chance: bool) -> tuple[FarRows, float]:
    """Distinct rows that do not coincide with their centre and are not all that their cluster has, the largest key first.

    They are drawn by chance or the farthest. Also the least key that was enough: 0 if no row was left out.
    """
    data, weights = assignment.data, assignment.cluster_weights
    skipped = np.zeros(len(centres) + 1, dtype=bool)
    skipped[-1] = True  # no cluster at all
    while True:
        task = DrawFar(data.targets(centres), count, data.d * _ROUNDING**2, skipped, assignment.name, by_chance)
        rows = FarRows.joined(data.passes.each(task), count)
        least = float(rows.keys[-1]) if len(rows.keys) == count else 0.0
        alone = rows.masses >= weights[rows.labels] * (1 - _ALONE)
        if not len(alone) or not alone.all():
            return rows.take(~alone), least
        skipped = skipped.copy()  # engines may hold the one before
        skipped[rows.labels] = True


class _Candidates:
    """Drawn rows, each with what the inertia would lose if it were a centre, as far as the drawn rows tell."""

    def __init__(self, points: Floats, rows: FarRows, least: float) -> None:
        """`least` is the key that was enough to be drawn; rows come with the largest key first."""
        self.points, self.away = points, rows.distances.copy()
        # A row stands for all that were as likely to be drawn; for itself if none was left out.
        self.stands_for = rows.masses * np.maximum(least / rows.distances, 1.0)
        squares = np.einsum("ij,ij->i", points, points)
        with blas.single():
            self.between = points @ points.T
            self.between *= -2.0
            self.between += squares
            self.between += squares[:, None]
            np.fill_diagonal(self.between, 0.0)  # rounding must not hide that a row itself is served
            self.gains = self._saved(np.arange(len(points)))

    def best(self, count: int) -> list[int]:
        """At most `count` of them, each the best after those before."""
        chosen: list[int] = []
        with blas.single():
            while len(chosen) < count and (place := self._next()) is not None:
                chosen.append(place)
                gap = self.points - self.points[place]
                self.away = np.minimum(self.away, np.einsum("ij,ij->i", gap, gap))
                self.gains[self.away <= 0.0] = 0.0  # a centre is there
        return chosen

    def _next(self) -> int | None:
        """The best one. Gains only ever fall, so those found earlier are bounds; of equal gains, the largest key counts."""
        known = np.zeros(len(self.gains), dtype=bool)
        while (top := self.gains.max(initial=0.0)) > 0.0:
            near = self.gains >= top * (1 - _TIE)
            if known[near].all():
                return int(np.argmax(near))
            bounds = np.where(known, -1.0, self.gains)
            some = np.argsort(-bounds, kind="stable")[:_TOGETHER]
            some = some[bounds[some] > 0.0]
            known[some] = True
            self.gains[some] = np.minimum(self._saved(some), self.gains[some])
        return None

    def _saved(self, some: NDArray[np.intp]) -> Floats:
        """What the inertia would lose, for each of some candidates."""
        out = np.empty(len(some))
        for start in range(0, len(some), _TOGETHER):
            part = some[start : start + _TOGETHER]
            out[start : start + _TOGETHER] = np.maximum(self.away - self.between[part], 0.0) @ self.stands_for
        return out
