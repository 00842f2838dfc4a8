"""The tasks of k-means on a block of rows. Labels and bounds stay in the block `state`; sums and counts are returned."""

from __future__ import annotations

from dataclasses import dataclass
from threading import local
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from foldwise.data.block import Block, Floats, dense_rows
from foldwise.kernels.targets import Changes, Grid, Labels, Moved
from foldwise.stats.cluster_sums import ClusterSums

_room = local()  # buffers for each thread


@dataclass
class Assigned:
    """The result of an E-step: changes in cluster sums, and numbers of rows.

    Those with a new label, those compared with all centres, near ties, and exact ties (or a few more).
    """

    sums: ClusterSums | None
    moved: int = 0
    computed: int = 0
    settled: int = 0
    tied: int = 0

    @classmethod
    def zero(cls, k: int, d: int, missing: bool) -> Assigned:
        """Nothing yet; `missing` says whether rows may have missing cells."""
        return cls(ClusterSums.zero(np.arange(k, dtype=np.int32), d, missing=missing))

    def add(self, other: Assigned) -> None:
        """Add the result for another block."""
        assert self.sums is not None
        other.add_sums_to(self.sums)
        self.moved += other.moved
        self.computed += other.computed
        self.settled += other.settled
        self.tied += other.tied

    def add_sums_to(self, total: ClusterSums) -> None:
        """Add the changes to the sums of all clusters."""
        if self.sums is not None:
            total.add(self.sums)


@dataclass
class _SparseMoves(Assigned):
    """Rows that moved, added to the sums directly, because cluster sums per block would be larger than the block."""

    move: Any = None

    def add_sums_to(self, total: ClusterSums) -> None:
        self.move(total.which, (total.high, total.low, total.weight))


@dataclass(frozen=True)
class BoundsInUse:
    """Bounds for one pass: number of groups, movement of the centres since, and whether they are initialised in this pass."""

    n_groups: int
    moved: Moved
    fresh: bool


@dataclass(frozen=True)
class Assign:
    """The E-step: assign every row to its nearest centre, exactly, and return the changes in the cluster sums."""

    keeps_state: ClassVar[bool] = True

    targets: Any
    k: int
    grid: Grid
    weight_scale: float
    blank: bool  # whether no row has a label
    sparse: bool
    bounds: BoundsInUse | None = None
    name: str = "labels"  # key of the labels in the block state

    def prepare(self, state: dict[str, Any], n: int) -> None:
        """Allocate the arrays of a block state."""
        if self.name not in state:
            state[self.name] = np.full(n, -1, dtype=np.int32)
        if self.bounds is not None:
            dtype, groups = self.targets.points.dtype, self.bounds.n_groups
            if "upper" not in state:
                state["upper"], state["lower"] = np.empty(n, dtype), np.empty(n, dtype)
            if "group_lower" not in state or state["group_lower"].shape[1] != groups:
                state["group_lower"] = np.empty((n if groups > 1 else 0, groups), dtype)

    def __call__(self, block: Block, state: dict[str, Any]) -> Assigned:
        """Assign the rows of a block; labels are written to the state."""
        self.prepare(state, block.n_rows)
        labels, rows = state[self.name], block.unchecked
        if self.blank:
            labels.fill(-1)
        if self.sparse:
            return self._sparse(block, labels)
        changes = None if self.blank else _changes(block.n_rows)
        counts = self.nearest(rows, labels, state, changes)
        moved = counts[0]
        if not moved:
            return Assigned(None, *counts)
        if changes is not None:
            changes = changes[0][:moved], changes[1][:moved]
        return Assigned(self.moved(block, changes, labels), *counts)

    def nearest(
        self, rows: Any, labels: Labels, state: dict[str, Any], changes: Changes | None
    ) -> tuple[int, int, int, int]:
        """Write the labels of dense rows; returns what is counted in `Assigned`."""
        counts: tuple[int, int, int, int]
        if self.bounds is None:
            counts = self.targets.nearest(rows, labels, changes=changes)
        else:
            arrays = state["upper"], state["lower"], state["group_lower"]
            given, fresh = self.bounds.moved, self.bounds.fresh
            counts = self.targets.nearest_bounded(rows, labels, arrays, given, fresh=fresh, changes=changes)
        return counts

    def _sparse(self, block: Block, labels: Labels) -> Assigned:
        before = labels.copy()
        counts: tuple[int, int, int, int] = self.targets.nearest(block.unchecked, labels)
        if not counts[0]:
            return Assigned(None, *counts)

        def move(slots: Labels, sums: tuple[Floats, Floats, Floats]) -> None:
            given = block.rows, block.weights, self.weight_scale, before, labels, slots, self.grid, sums
            self.targets.move_rows(*given)

        return _SparseMoves(None, *counts, move)

    def moved(self, block: Block, changes: Changes | None, after: Labels) -> ClusterSums:
        """Changes in the cluster sums due to the rows that moved; all rows if `changes` is None."""
        k, d = self.k, block.n_columns
        which = slots = np.arange(k, dtype=np.int32)
        if k * d > 65536:  # then it pays to sum only the clusters affected
            seen = np.zeros(k + 1, dtype=bool)
            if changes is None:
                seen[after] = True
            else:
                seen[changes[1]] = True  # -1, no cluster, falls on the last entry
                seen[after[changes[0]]] = True
            which = np.flatnonzero(seen[:k]).astype(np.int32)
            slots = np.full(k, -1, dtype=np.int32)
            slots[which] = np.arange(len(which), dtype=np.int32)
        sums = ClusterSums.zero(which, d, missing=self.targets.observed)
        self.targets.move_rows(
            block.unchecked, block.weights, self.weight_scale, changes, after, slots, self.grid, sums.parts
        )
        return sums


def _changes(rows: int) -> Changes:
    """Buffers for the changes in a block."""
    kept: Changes | None = getattr(_room, "changes", None)
    if kept is None or len(kept[0]) < rows:
        kept = _room.changes = np.empty(rows, np.int32), np.empty(rows, np.int32)
    return kept


@dataclass(frozen=True)
class Relabel:
    """Cluster i becomes mapping[i], or none if that is -1."""

    mapping: Labels
    name: str

    def __call__(self, state: dict[str, Any]) -> None:
        """Change the labels in a block state."""
        state[self.name] = np.append(self.mapping, np.int32(-1))[state[self.name]]


def labels_of(name: str, state: dict[str, Any]) -> Labels:
    """The labels in a block state."""
    labels: Labels = state[name]
    return labels


@dataclass(frozen=True)
class SetLabel:
    """Changes the label of one row and invalidates its bounds; other rows keep theirs."""

    place: int
    label: int
    name: str

    def __call__(self, state: dict[str, Any]) -> None:
        """Change the block state."""
        state[self.name][self.place] = self.label
        if "upper" in state:
            state["upper"][self.place], state["lower"][self.place] = np.inf, -np.inf
            if len(state["group_lower"]):
                state["group_lower"][self.place] = -np.inf


@dataclass(frozen=True)
class Residuals:
    """The weighted squared distances of the rows of each cluster to its centre, from differences in float64."""

    keeps_state: ClassVar[bool] = True

    targets: Any
    name: str

    def __call__(self, block: Block, state: dict[str, Any]) -> Floats:
        """One sum per cluster."""
        return np.asarray(self.targets.residuals(block.unchecked, block.weights, state[self.name]))


@dataclass(frozen=True)
class FarRows:
    """Some rows: their numbers, squared distances to their centres, labels, weights and values."""

    numbers: NDArray[np.intp]
    distances: Floats
    labels: Labels
    weights: Floats
    values: NDArray[Any]


@dataclass(frozen=True)
class Farthest:
    """At most `count` rows of a block farthest from their centres; ties in row order."""

    keeps_state: ClassVar[bool] = True

    targets: Any
    count: int
    rounding: float  # squared distances up to this count as 0
    name: str

    def __call__(self, block: Block, state: dict[str, Any]) -> FarRows:
        """Rows of weight 0 are excluded: they cannot fill a cluster, and many of them could crowd out a row that can."""
        distances = np.empty(block.n_rows)
        self.targets.residuals(block.unchecked, block.weights, state[self.name], distances)
        distances[~(distances > self.rounding)] = 0.0  # also that of a row with nothing observed, which is NaN
        if block.weights is not None:
            distances[block.weights == 0.0] = 0.0
        some = farthest(distances, self.count)
        weights = np.ones(len(some)) if block.weights is None else block.weights[some]
        values = dense_rows(block.unchecked[some])
        return FarRows(block.start + some, distances[some], state[self.name][some], weights, values)


def farthest(distances: Floats, count: int) -> NDArray[np.intp]:
    """Positions of at most `count` of the largest distances above 0; ties in order."""
    count = min(count, len(distances))
    if not count:
        return np.empty(0, dtype=np.intp)
    least = np.partition(distances, len(distances) - count)[len(distances) - count]
    some = np.flatnonzero((distances >= least) & (distances > 0.0))
    return np.asarray(some[np.argsort(-distances[some], kind="stable")][:count])


@dataclass(frozen=True)
class SecondNearest:
    """For each centre, the inertia of its rows and the increase in inertia if it were removed."""

    targets: Any

    def __call__(self, block: Block) -> tuple[Floats, Floats]:
        """Both, summed over the rows of a block."""
        k, dtype = len(self.targets.points), self.targets.points.dtype
        near, second = np.empty(block.n_rows, dtype), np.empty(block.n_rows, dtype)
        labels = np.full(block.n_rows, -1, dtype=np.int32)
        self.targets.nearest(block.unchecked, labels, near, second)
        factor = np.ones(block.n_rows) if block.weights is None else block.weights
        rise = second.astype(np.float64) - near
        labels = np.maximum(labels, 0)  # a row with nothing observed has no cluster, and no distance
        return (
            np.asarray(np.bincount(labels, factor * near, minlength=k), dtype=np.float64),
            np.asarray(np.bincount(labels, factor * rise, minlength=k), dtype=np.float64),
        )
