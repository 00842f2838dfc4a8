"""The rows of one fit and what is kept beside them: labels, bounds, and the exact sums of the clusters they form.

`assign` is the E-step; since it keeps the sums up to date with the rows that moved, the M-step needs no pass of its own.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from threading import Lock, local
from typing import Any

import numpy as np
from numpy.typing import NDArray

from foldwise.data.block import Block, DenseBlock, Floats, SparseBlock
from foldwise.data.block_grid import rows_per_block
from foldwise.data.cache import CachedSource, cached
from foldwise.data.scan import scan
from foldwise.data.source import Piece, Source
from foldwise.fold.passes import Passes
from foldwise.kernels import _core
from foldwise.kernels.targets import Changes, DenseTargets, Grid, Labels, rescaling_within, targets_of
from foldwise.models.kmeans.bounds import Bounds
from foldwise.stats.cluster_sums import ClusterSums
from foldwise.stats.column_moments import ColumnMoments
from foldwise.stats.extent import Extent

_SMALL = 1000


@dataclass
class Pass:
    """What one E-step did: rows with a new label, products with centres (in rows, the rest was pruned), near ties settled."""

    moved: int = 0
    computed: int = 0
    settled: int = 0


class Assignment:
    """Passes over one source for one fit."""

    def __init__(self, run: Passes, *, bounds: str = "auto") -> None:
        self.run, self.source = run, run.source
        weights: dict[int, Floats] = {}

        def of(block: Block) -> Extent:
            if block.weights is not None:
                weights[block.start] = np.array(block.weights)
            return Extent.of(block)

        self.extent = run.fold(of)
        self.weights = np.concatenate([weights[start] for start in sorted(weights)]) if weights else None
        self.n, self.d = self.extent.count, self.source.n_columns
        self.dtype = self.source.dtype
        mean = self.extent.columns.mean
        middle = np.zeros_like(mean) if self.source.sparse else mean  # a pivot would fill in zeros
        self.frame = rescaling_within(middle, self.extent.low, self.extent.high, self.dtype)
        self.grid = Grid.of(self.n)
        self.squares = self._squares()
        heaviest = math.frexp(self.extent.heaviest)[1] if self.extent.heaviest != 1.0 else 0
        self.weight_scale = 2.0 ** min(-heaviest, 1000)
        self.block_rows = rows_per_block(self.d, self.dtype, sparse=self.source.sparse)
        self.labels: Labels = np.full(self.n, -1, dtype=np.int32)
        self.sums = ClusterSums.zero(np.arange(0, dtype=np.int32), self.d)
        self.centres: NDArray[Any] | None = None  # whose nearest the labels are, if anybody's
        self.near_ties = 0  # that the last pass met
        self.labelled = False  # whether there was a pass that was not forgotten
        self._blank = True  # whether no row has a label
        self._whole = True  # whether the sums are those of the labels: not if a pass was cut short
        in_memory = isinstance(self.source, CachedSource)
        self.bounds = Bounds(bounds, self.n, self.d, self.dtype, sparse=self.source.sparse, in_memory=in_memory)
        self._lock = Lock()
        self._room = local()

    def _squares(self) -> Floats:
        """The centred sum of squares of each column, times scale squared."""
        scale = self.frame.scale
        if 2.0**-400 < scale < 2.0**400:
            return np.asarray(self.extent.columns.squares * scale * scale)

        def scaled(block: Block) -> ColumnMoments:  # squares of such values leave float64
            if isinstance(block, SparseBlock):
                return ColumnMoments.of(
                    SparseBlock(block.matrix.astype(np.float64) * scale, block.start, block.weights)
                )
            return ColumnMoments.of(DenseBlock(block.dense().astype(np.float64) * scale, block.start, block.weights))

        return self.run.fold(scaled).squares

    # ------------------------------------------------------------ targets and blocks

    def targets(self, points: NDArray[Any]) -> Any:
        """Points that blocks of this source can be compared with."""
        return targets_of(points, self.frame, sparse=self.source.sparse)

    def part(self, block: Block, array: NDArray[Any]) -> NDArray[Any]:
        """The part of an array with one entry per row that belongs to a block."""
        return array[block.start : block.start + block.n_rows]

    def take(self, which: Sequence[int] | NDArray[np.intp]) -> NDArray[Any]:
        """Some rows, by number, as a dense array; only their blocks are read."""
        numbers = np.asarray(which, dtype=np.intp)
        out = np.empty((len(numbers), self.d), dtype=self.dtype)
        for here, rows in self._some(numbers):
            out[here] = rows.toarray() if self.source.sparse else rows
        return out

    def _some(self, numbers: NDArray[np.intp]) -> Iterator[tuple[NDArray[np.intp], Any]]:
        """By block: which of the numbers are in it, and these rows as they are."""
        of_block = numbers // self.block_rows
        wanted = set(of_block.tolist())
        last = max(wanted, default=-1)
        for number, piece in enumerate(self.source.pieces()):
            if number > last:
                return
            if number in wanted:
                block = piece()
                here = np.flatnonzero(of_block == number)
                yield here, block.again[numbers[here] - block.start]

    def sample(self, size: int, rng: np.random.Generator) -> Assignment:
        """Some of the rows, drawn without repetition, in memory; in the same frame."""
        which = np.sort(rng.choice(self.n, size, replace=False))
        weights = None if self.weights is None else np.ascontiguousarray(self.weights[which])
        if self.source.sparse:
            import scipy.sparse as sp

            parts = [rows for _, rows in self._some(which)]
            source: Source = scan(sp.vstack(parts, format="csr"), weights=weights)
        else:
            source = scan(self.take(which), weights=weights)
        some = Assignment(Passes(cached(source), n_threads=self.run.n_threads))
        some.frame, some.squares = self.frame, some.squares * (self.frame.scale / some.frame.scale) ** 2
        return some

    @property
    def is_small(self) -> bool:
        """Whether looking at all rows at once costs nothing to speak of."""
        return self.n <= _SMALL and not (self.source.sparse and self.n * self.d > _SMALL**2)

    @cached_property
    def canonical_order(self) -> NDArray[np.intp] | None:
        """The rows of a small table sorted by their values, or None: so that a start does not depend on their order.

        In a large table the order would cost more than the start.
        """
        if not self.is_small:
            return None
        return np.asarray(np.lexsort(self.take(np.arange(self.n)).T[::-1]))

    # ------------------------------------------------------------ the E-step

    def assign(self, centres: NDArray[Any]) -> Pass:
        """Give every row its nearest centre, exactly, and bring the clusters' sums up to date."""
        k = len(centres)
        if not self._whole or len(self.sums.which) != k:
            self.relabel(np.where(np.arange(len(self.sums.which)) < k, self.sums.which, -1), k)
        bounded = self.bounds.prepare(centres, self.frame)
        targets = self.targets(centres) if bounded is None else bounded
        self.centres, self._whole = None, False
        done = Pass()

        def of(block: Block) -> tuple[ClusterSums | None, int, int, int]:
            labels, rows = self.part(block, self.labels), block.again
            if self.source.sparse:
                before = labels.copy()
                moved, computed, settled = targets.nearest(rows, labels)
                if moved:
                    self._move_sparse(targets, block, before, labels)
                return None, moved, computed, settled
            changes = None if self._blank else self._changes(block.n_rows)
            if bounded is None:
                moved, computed, settled = targets.nearest(rows, labels, changes=changes)
            else:
                moved, computed, settled = self.bounds.nearest(targets, rows, labels, block.start, changes)
            if not moved:
                return None, moved, computed, settled
            if changes is not None:
                changes = changes[0][:moved], changes[1][:moved]
            return self._moved(targets, block, changes, labels), moved, computed, settled

        def add(number: int, found: tuple[ClusterSums | None, int, int, int]) -> None:
            sums, moved, computed, settled = found
            with self._lock:
                if sums is not None:
                    self.sums.add(sums)
                done.moved += moved
                done.computed += computed
                done.settled += settled

        self.run.visit(of, add, self._evenly(k))
        self.centres, self._whole, self.near_ties, self.labelled = centres, True, done.settled, True
        self._blank = False
        self.bounds.learn(done.computed, done.moved, self.n)
        return done

    def _evenly(self, k: int) -> list[Piece] | None:
        """Parts of the blocks, if there are fewer blocks than threads; labels and exact sums do not mind.

        A part is worth some tenths of a millisecond: handing it out takes nearly one.
        """
        threads, blocks = self.run.n_threads, -(-self.n // self.block_rows)
        if threads == 1 or not isinstance(self.source, CachedSource) or blocks >= threads:
            return None
        rows = max(-(-self.n // (4 * threads)), math.ceil(1e7 / (k * self.d)), 128)
        rows = -(-rows // 128) * 128
        return None if 2 * rows > self.n else self.source.parts(rows)

    def _changes(self, rows: int) -> Changes:
        """Room for what changes in a block; each thread keeps its own."""
        kept: Changes | None = getattr(self._room, "changes", None)
        if kept is None or len(kept[0]) < rows:
            kept = self._room.changes = np.empty(rows, np.int32), np.empty(rows, np.int32)
        return kept

    def _move_sparse(self, targets: Any, block: Block, before: Labels, after: Labels) -> None:
        """What the block's rows that moved change in the sums, at once: a block's own would be larger than it."""
        whole = (self.sums.high, self.sums.low, self.sums.weight)
        with self._lock:
            targets.move_rows(
                block.rows, block.weights, self.weight_scale, before, after, self.sums.which, self.grid, whole
            )

    def _moved(self, targets: DenseTargets, block: Block, changes: Changes | None, after: Labels) -> ClusterSums:
        """What the block's rows that moved, all if nothing is said, take from some clusters and bring to others."""
        k = len(self.sums.which)
        which = slots = self.sums.which
        if k * self.d > 65536:  # then it pays to know which clusters are touched
            seen = np.zeros(k + 1, dtype=bool)
            if changes is None:
                seen[after] = True
            else:
                seen[changes[1]] = True  # -1, no cluster, lands on the last place
                seen[after[changes[0]]] = True
            which = np.flatnonzero(seen[:k]).astype(np.int32)
            slots = np.full(k, -1, dtype=np.int32)
            slots[which] = np.arange(len(which), dtype=np.int32)
        sums = ClusterSums.zero(which, self.d)
        parts = (sums.high, sums.low, sums.weight)
        targets.move_rows(block.again, block.weights, self.weight_scale, changes, after, slots, self.grid, parts)
        return sums

    def forget(self) -> None:
        """Start again from rows without labels."""
        self._whole = self.labelled = False

    def relabel(self, new: Sequence[int] | NDArray[Any], k: int) -> None:
        """Change the number of clusters: cluster i becomes new[i], or none if that is -1; places without one are empty."""
        mapping, old = np.asarray(new, dtype=np.int32), self.sums
        self.sums = ClusterSums.zero(np.arange(k, dtype=np.int32), self.d)
        self.bounds.forget()
        self.centres = None
        if not self._whole:
            self.labels[:] = -1
            self._blank = self._whole = True
            return
        self._whole = False
        kept = np.flatnonzero(mapping >= 0)
        self.sums.high[mapping[kept]] = old.high[kept]
        self.sums.low[mapping[kept]] = old.low[kept]
        self.sums.weight[:, mapping[kept]] = old.weight[:, kept]
        self.labels = np.append(mapping, np.int32(-1))[self.labels]
        self._whole = True

    def move(self, number: int, to: int) -> None:
        """Give one row another label."""
        row = self.take([number])
        weights = None if self.weights is None else self.weights[[number]]
        which = np.unique(np.array([self.labels[number], to], np.int32))  # of all clusters, these two are touched
        before, after = np.searchsorted(which, [self.labels[number], to]).astype(np.int32)
        part = ClusterSums.zero(which, self.d)
        self.centres, self._whole = None, False  # the labels are no longer those of anybody's nearest
        DenseTargets(np.zeros((len(which), self.d), dtype=self.dtype), self.frame).move_rows(
            row,
            weights,
            self.weight_scale,
            (np.zeros(1, np.int32), np.array([before], np.int32)),
            np.array([after], np.int32),
            np.arange(len(which), dtype=np.int32),
            self.grid,
            (part.high, part.low, part.weight),
        )
        self.sums.add(part)
        self.labels[number] = to
        self.bounds.doubt(number)
        self._whole = True

    # ------------------------------------------------------------ figures

    @property
    def cluster_weights(self) -> Floats:
        """The weight of each cluster."""
        return np.asarray(self.sums.weights / self.weight_scale)

    def means(self, centres: NDArray[Any]) -> NDArray[Any]:
        """The M-step: each cluster's mean, in the data's dtype; an empty cluster keeps its centre."""
        means = self.sums.means()
        empty = self.sums.weights <= 0
        if empty.any():
            means[empty] = 0.0
            new = self.frame.back(means, self.dtype)
            new[empty] = centres[empty]
            return new
        return self.frame.back(means, self.dtype)

    def inertias(self, *centres: NDArray[Any]) -> list[float]:
        """The weighted sum of squared distances, times scale squared, of the present clusters to each of the given centres.

        From the sums alone: what is left of the whole spread, plus how far centres are from the means.
        """
        weights = self.cluster_weights
        some = weights > 0
        means = self.sums.means()
        within = self._within(np.einsum("ij,ij->i", means, means))
        means = means[some]
        out = []
        for points in centres:
            gap = self.frame.seen(points[some]) - means
            out.append(within + float(weights[some] @ np.einsum("ij,ij->i", gap, gap)))
        return out

    def finish(
        self, centres: NDArray[Any], project: Callable[[NDArray[Any]], NDArray[Any]] | None = None
    ) -> tuple[NDArray[Any], float, float, float]:
        """`means` and `inertias` of the old and the new centres at once, and the summed squared movement between them."""
        new, figures = np.empty_like(centres), np.empty((4, len(centres)))
        sums, frame = self.sums, self.frame
        given = (sums.high, sums.low, sums.weights, frame.pivot, frame.scale, centres)
        _core.update_centres(*given, new, False, figures)
        if project is not None:
            new = np.ascontiguousarray(project(new))
            _core.update_centres(*given, new, True, figures)
        within, weights = self._within(figures[0]), self.cluster_weights
        return new, within + float(weights @ figures[1]), within + float(weights @ figures[2]), float(figures[3].sum())

    def _within(self, squares: Floats) -> float:
        """The inertia of the clusters to their means, which have these squared lengths: what is left of the whole spread."""
        weights = self.cluster_weights
        some = weights > 0
        return max(self.spread - float(weights[some] @ squares[some]), 0.0)

    @cached_property
    def spread(self) -> float:
        """The inertia of all rows to the pivot."""
        columns, frame = self.extent.columns, self.frame
        offset = (columns.mean - frame.pivot) * frame.scale
        return float(self.squares.sum() + columns.weight * (offset @ offset))

    def settled_down(self, centres: NDArray[Any]) -> bool:
        """Whether these centres are the means of their rows."""
        return bool(np.array_equal(self.means(centres), centres))

    def residuals(self, centres: NDArray[Any], each: Floats | None = None) -> Floats:
        """The inertia of each cluster, by differences in float64, in units of the scaled data."""
        targets = self.targets(centres)
        parts: dict[int, Floats] = {}

        def of(block: Block) -> Floats:
            mine = None if each is None else self.part(block, each)
            return np.asarray(targets.residuals(block.again, block.weights, self.part(block, self.labels), mine))

        self.run.visit(of, parts.__setitem__)
        total = np.zeros(len(centres))
        for number in sorted(parts):
            total += parts[number]
        return total

    def unscaled(self, inertia: float) -> float:
        """An inertia in the units of the data."""
        return inertia / self.frame.scale / self.frame.scale
