"""The tasks of k-means on a block of rows. Labels and bounds stay in the block `state`; sums and counts are returned."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from threading import Lock, local
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from foldwise.data.block import Block, Floats
from foldwise.kernels.targets import Changes, Grid, Labels, Moved, integer_rows
from foldwise.models.hashing import row_hashes
from foldwise.stats.cluster_sums import ClusterSums

_room = local()  # buffers for each thread
_moving = Lock()  # of sparse rows between sums that threads share


@dataclass
class Assigned:
    """The result of an E-step: changes in cluster sums, and numbers of rows.

    Those with a new label, those compared with all centres, near ties, and exact ties (or a few more).
    """

    sums: ClusterSums
    moved: int = 0
    computed: int = 0
    settled: int = 0
    tied: int = 0

    @classmethod
    def zero(cls, k: int, d: int, missing: bool) -> Assigned:
        """Nothing yet; `missing` says whether rows may have missing cells."""
        return cls(ClusterSums.zero(np.arange(k, dtype=np.int32), d, missing=missing))

    def beside(self) -> Assigned:
        """Nothing yet, with the same sums, for another thread."""
        return Assigned(self.sums)

    def count(self, moved: int, computed: int, settled: int, tied: int) -> None:
        """Count the rows of a block."""
        self.moved += moved
        self.computed += computed
        self.settled += settled
        self.tied += tied

    def add(self, other: Assigned) -> None:
        """Add the result for other blocks."""
        if other.sums is not self.sums:
            self.sums.add(other.sums)
        self.count(other.moved, other.computed, other.settled, other.tied)


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
    grid: Grid
    weight_scale: float
    blank: bool  # whether no row has a label
    sparse: bool
    fixed: bool  # whether rows are added up in fixed point
    bounds: BoundsInUse | None = None
    name: str = "labels"  # key of the labels in the block state
    integers: bool | None = None  # True: rows kept as integers are read; False: they are written; None: they are not used

    def prepare(self, state: dict[str, Any], n: int) -> None:
        """Allocate the arrays of a block state."""
        if self.name not in state:
            # a first pass writes every label, and so all threads get the memory, not only the calling one
            state[self.name] = np.empty(n, np.int32) if self.blank else np.full(n, -1, dtype=np.int32)
        if self.bounds is not None:
            self._clear(state[self.name])
        if self.integers is False and "integers" not in state:
            with suppress(MemoryError):  # they only save time
                state["integers"] = integer_rows(n, self.targets.points.shape[1])
        if self.bounds is not None:
            dtype, groups = self.targets.points.dtype, self.bounds.n_groups
            for bound in ("upper", "lower"):  # one may be missing: a pass can be interrupted here
                if bound not in state:
                    state[bound] = np.empty(n, dtype)
            if "group_lower" not in state or state["group_lower"].shape[1] != groups:
                state["group_lower"] = np.empty((n if groups > 1 else 0, groups), dtype)

    @property
    def shares_total(self) -> bool:
        """Whether threads add to the same sums: those of sparse rows may be larger than the rows themselves."""
        return self.sparse

    @property
    def takes_parts(self) -> bool:
        """Whether the kernel shares out rows in memory among threads: it leaves nothing to do for each part."""
        return self.fixed and not self.sparse

    def __call__(self, block: Block, state: dict[str, Any], total: Assigned, parts: Any = None) -> None:
        """Assign the rows of a block, or the `parts` of it; labels are written to the state, changes in the sums are added to
        the total.
        """
        if parts is None:
            self.prepare(state, block.n_rows)
        labels, rows = state[self.name], block.unchecked
        if self.sparse:
            return self._sparse(block, labels, total)
        changes = None if self.blank or self.fixed else _changes(block.n_rows)
        counts = self.nearest(rows, labels, state, changes, total.sums if self.fixed else None, parts=parts)
        total.count(*counts)
        if counts[0] and not self.fixed:
            if changes is not None:
                changes = changes[0][: counts[0]], changes[1][: counts[0]]
            self.add_rows(block, changes, labels, total)
        return None

    def nearest(
        self,
        rows: Any,
        labels: Labels,
        state: dict[str, Any],
        changes: Changes | None,
        add_to: ClusterSums | None = None,
        residuals: Floats | None = None,
        parts: Any = None,
    ) -> tuple[int, int, int, int]:
        """Write the labels of dense rows; returns what is counted in `Assigned`. Moves are added in fixed point, if asked.

        The inertias and sizes of the clusters are added to `residuals`, if given.
        """
        counts: tuple[int, int, int, int]
        sums = None if add_to is None else self.grid.fixed(*add_to.parts)
        if self.bounds is None:
            kept = None if self.integers is None else state.get("integers")
            integers = None if kept is None else (kept, bool(self.integers))
            given = {"changes": changes, "sums": sums, "integers": integers, "residuals": residuals, "parts": parts}
            counts = self.targets.nearest(rows, labels, **given, fresh=self.blank)
        else:
            arrays = state["upper"], state["lower"], state["group_lower"]
            given = {"fresh": self.bounds.fresh, "changes": changes, "sums": sums, "parts": parts}
            counts = self.targets.nearest_bounded(rows, labels, arrays, self.bounds.moved, **given)
            if residuals is not None:
                residuals += self.targets.residuals_and_counts(rows, labels)
        return counts

    def add_rows(self, block: Block, changes: Changes | None, after: Labels, total: Assigned) -> Any:
        """Add the changes in the cluster sums due to the rows that moved; all rows if `changes` is None."""
        sums = total.sums
        if self.fixed:
            return self.targets.move_rows_fixed(block.unchecked, changes, after, self.grid.fixed(*sums.parts))
        given = block.unchecked, block.weights, self.weight_scale, changes, after, sums.which, self.grid
        return self.targets.move_rows(*given, sums.parts)

    def _clear(self, labels: Labels) -> None:
        if self.blank:
            labels.fill(-1)

    def _sparse(self, block: Block, labels: Labels, total: Assigned) -> None:
        self._clear(labels)
        before = labels.copy()
        done = self.targets.nearest(block.unchecked, labels)
        with _moving:
            total.count(*done)
            if done[0]:
                sums = total.sums
                given = block.rows, block.weights, self.weight_scale, before, labels, sums.which, self.grid
                self.targets.move_rows(*given, (sums.high, sums.low, sums.weight))


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
        labels = state[self.name]
        np.take(np.append(self.mapping, np.int32(-1)), labels.copy(), out=labels, mode="wrap")  # -1 is the last entry


def labels_of(name: str, state: dict[str, Any]) -> Labels:
    """The labels in a block state."""
    labels: Labels = state[name]
    return labels


def take_labels(name: str, state: dict[str, Any]) -> Labels:
    """The labels in a block state, which then has none."""
    labels: Labels = state.pop(name)
    return labels


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
    """Distinct rows: the number of one of each, its hash, key (see `DrawFar`), squared distance to its centre and label.

    `masses` are the weights of all rows equal to it.
    """

    numbers: NDArray[np.intp]
    hashes: NDArray[np.uint64]
    keys: Floats
    distances: Floats
    labels: Labels
    masses: Floats

    @classmethod
    def joined(cls, parts: Sequence[FarRows], count: int) -> FarRows:
        """Those with the `count` largest keys; equal rows are one, and it does not matter in which order they come."""
        all_of = {name: np.concatenate([getattr(part, name) for part in parts]) for name in cls.__dataclass_fields__}
        _, first, which = np.unique(all_of["hashes"], return_index=True, return_inverse=True)
        masses = np.bincount(which, all_of["masses"], minlength=len(first))
        order = np.lexsort((all_of["hashes"][first], -all_of["keys"][first]))[:count]
        some = {name: values[first[order]] for name, values in all_of.items()}
        return cls(**{**some, "masses": masses[order]})

    def take(self, which: NDArray[np.bool_] | slice) -> FarRows:
        """Some of them."""
        return FarRows(*(getattr(self, name)[which] for name in FarRows.__dataclass_fields__))


@dataclass(frozen=True)
class DrawFar:
    """At most `count` distinct rows of a block, drawn in proportion to their squared distance from their centre.

    They are those with the largest keys. A key is the squared distance divided by a number between 0 and 1 made of the values
    of the row, so neither the order of the rows nor their repetition matters, and the largest of all blocks are the largest
    of the whole.
    """

    keeps_state: ClassVar[bool] = True

    targets: Any
    count: int
    rounding: float  # squared distances up to this count as 0
    skipped: NDArray[np.bool_]  # clusters whose rows are not wanted
    name: str
    by_chance: bool = True  # or else the farthest: keys are distances

    def __call__(self, block: Block, state: dict[str, Any]) -> FarRows:
        """Rows of weight 0 are excluded: they cannot fill a cluster, and many of them could crowd out a row that can."""
        distances, labels = np.empty(block.n_rows), state[self.name]
        self.targets.residuals(block.unchecked, block.weights, labels, distances)
        far = distances > self.rounding  # not so for a row with nothing observed, whose distance is NaN and label -1
        far &= ~self.skipped[labels]
        if block.weights is not None:
            far &= block.weights > 0.0
        some = np.flatnonzero(far)
        hashes = row_hashes(block.unchecked[some])
        keys = distances[some]
        if self.by_chance:
            keys = keys / (((hashes >> np.uint64(11)).astype(np.float64) + 1.0) * 2.0**-53)
        masses = np.ones(len(some)) if block.weights is None else block.weights[some]
        found = FarRows(block.start + some, hashes, keys, distances[some], labels[some], masses)
        return FarRows.joined([found], self.count)


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
