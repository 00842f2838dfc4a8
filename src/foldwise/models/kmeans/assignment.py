"""The assignment of rows to clusters, and the exact sums of the clusters.

`assign` is the E-step; it updates the sums for the rows that moved, so the M-step needs no pass of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from foldwise.data.block import Floats
from foldwise.data.cache import CachedSource
from foldwise.fold.local import Cuts
from foldwise.kernels import _core
from foldwise.kernels.targets import VECTOR_ROWS, Labels
from foldwise.models.kmeans import tasks
from foldwise.models.kmeans.bounds import Bounds
from foldwise.models.kmeans.fit_data import KMeansData
from foldwise.models.kmeans.last_pass import LastAssign, LastAssignParts, LastFound, SumClusters
from foldwise.models.kmeans.tasks import Assigned
from foldwise.stats.cluster_sums import ClusterSums

# The work of a part of the rows: beginning one costs some microseconds, and Ctrl-C waits for it; and work for one thread, as
# to wake another takes some hundredths of a millisecond.
_PART_FLOPS = 4e6, 2e10
_ALONE_FLOPS = 1e7
_PART_ROWS = 96  # parts have multiples of so many rows: whole panels
_BOUNDED_SHARES = 4  # with bounds, parts are made as for so many threads


class Assignment:
    """The labels of all rows, kept as block state, and the corresponding cluster sums."""

    def __init__(self, data: KMeansData, *, bounds: str = "auto", name: str = "labels") -> None:
        """Concurrent assignments of the same rows must use different names for their labels."""
        self.data, self.name = data, name
        self._sums = ClusterSums.zero(np.arange(0, dtype=np.int32), data.d, missing=data.observed)
        self._weights_only = False  # whether of the sums only the weights match the labels
        self._inertias: Floats | None = None  # of the clusters at `centres`, if the last pass found them
        self.centres: NDArray[Any] | None = None  # the centres that the labels refer to, if any
        self.exact_ties = 0  # in the last pass: rows that renumbering the centres can move, or a few more
        self.labelled = False  # whether a pass has been made since the last forget()
        self._blank = True  # whether no row has a label
        self._whole = True  # whether the sums match the labels; False after an interrupted pass
        in_memory = isinstance(data.source, CachedSource)
        within = data.row_length > 0
        given = {"sparse": data.source.sparse, "in_memory": in_memory, "observed": data.observed, "within": within}
        helpers = data.passes.helpers
        self.bounds = Bounds(bounds, data.n, data.d, data.dtype, kept=data.integers.suit, helpers=helpers, **given)

    @property
    def labels(self) -> Labels:
        """The cluster of every row, collected from the block states."""
        return np.concatenate(self.data.passes.update(partial(tasks.labels_of, self.name)))

    def hand_over_labels(self) -> Labels:
        """The same, which are then forgotten here: without a copy, if they are in one array in memory."""
        parts = self.data.passes.update(partial(tasks.take_labels, self.name))
        self._whole = self.labelled = False
        whole = parts[0] if len(parts) == 1 else parts[0].base
        if whole is None or whole.shape != (self.data.n,) or any(part.base is not whole for part in parts[1:]):
            return np.concatenate(parts)
        return whole

    @property
    def sums(self) -> ClusterSums:
        """The sums of the clusters. After `assign_last` they need a pass of their own, which is rarely wanted."""
        if self._weights_only:
            data, k = self.data, len(self._sums.which)
            targets = data.targets(np.zeros((k, data.d), dtype=data.dtype))
            task = tasks.Assign(targets, data.grid, data.weight_scale, True, False, data.fixed, None, self.name)
            done = data.passes.total(SumClusters(task), partial(Assigned.zero, k, data.d, data.observed))
            self._sums, self._weights_only = done.sums, False
        return self._sums

    # ------------------------------------------------------------ the E-step

    def assign(self, centres: NDArray[Any], *, last: bool = False) -> Assigned:
        """Assign every row to its nearest centre, exactly, and update the cluster sums."""
        data, k = self.data, len(centres)
        self._whole &= not self._weights_only
        task = self._task(centres, last=last)
        zero = partial(Assigned.zero, k, data.d, data.observed)
        bounded = task.bounds is not None
        cuts = self._cuts(k, self.bounds.share if bounded else 1.0, bounded=bounded)
        done = data.passes.total(task, zero, cuts=cuts, into=Assigned(self._sums))
        if task.integers is False:
            data.integers.ready = True
        self._assigned(centres, done)
        return done

    def assign_last(self, centres: NDArray[Any]) -> None:
        """`assign`, for centres that stay: finds the inertias in the same pass, and sums only if they are asked for."""
        data, k = self.data, len(centres)
        if data.source.sparse or data.weights is not None or self._shares_blocks(k):
            self.assign(centres, last=True)
            return
        done = Assigned(self._sums)
        lines = self._last_found(self._task(centres, last=True), k, done)
        # One block after the other, as in `residuals`.
        inertias, rows = (np.add.accumulate(lines[i::2])[-1] for i in range(2))
        weight = np.stack([rows, np.zeros(k)])
        self._sums, self._weights_only = replace(self._sums, weight=weight), True
        self._assigned(centres, done)
        self._inertias = inertias

    def _last_found(self, task: tasks.Assign, k: int, done: Assigned) -> Floats:
        """Inertias and sizes of the clusters of block after block, in two lines each; rows are counted in `done`."""
        data = self.data
        if task.bounds is not None or data.passes.engine.remote or not isinstance(data.source, CachedSource):
            found = data.passes.each(LastAssign(task))
            for counts, _ in found:
                done.count(*counts)
            return np.concatenate([lines for _, lines in found])
        blocks = Cuts(data.passes.n_threads, data.block_rows, data.block_rows, data.block_rows)
        into = LastFound(done, k, data.block_rows)
        return data.passes.total(LastAssignParts(task), lambda: into, cuts=blocks, into=into).in_order()

    def _shares_blocks(self, k: int) -> bool:
        """Whether threads share out the rows of blocks, of which there are fewer than threads."""
        data = self.data
        cuts = self._cuts(k, 1.0, bounded=False)
        return -(-data.n // data.block_rows) < data.passes.n_threads and cuts is not None and cuts.most_threads(data.n) > 1

    def _task(self, centres: NDArray[Any], *, last: bool = False) -> tasks.Assign:
        """The E-step for these centres; from here on the labels are in doubt. The last one leaves nothing for later ones."""
        data, k = self.data, len(centres)
        known = self._sums.which
        if not self._whole or len(known) != k:
            self.relabel([] if self._blank else np.where(np.arange(len(known)) < k, known, -1), k)
        self.centres, self._whole, self._inertias = None, False, None  # bounds, too, if it is interrupted from here on
        bounded = self.bounds.prepare(centres, data.rescaling, last=last)
        integers = None
        if bounded is None:
            integers = None if last else data.integers.for_pass(k, reads_rows=self._blank)
            targets, bounds = data.targets(centres, for_labels=True, kept=integers is not None), None
            if integers is not None and not targets.rounded:  # these centres cannot be compared as integers
                integers = None
        else:
            targets, bounds = bounded
        sparse = data.source.sparse
        given = data.grid, data.weight_scale, self._blank, sparse, data.fixed, bounds, self.name
        return tasks.Assign(targets, *given, integers)

    def _assigned(self, centres: NDArray[Any], done: Assigned) -> None:
        self.centres, self._whole, self.exact_ties, self.labelled = centres, True, done.tied, True
        self._blank = False
        self.bounds.learn(done.computed, done.moved, self.data.n)

    def _cuts(self, k: int, share: float, *, bounded: bool) -> Cuts | None:
        """How rows in memory are cut into parts, if about this share of the rows is compared.

        Labels and sums do not depend on it. The number of comparisons that bounds save may, so with bounds the parts do not
        depend on the number of threads.
        """
        data = self.data
        if not isinstance(data.source, CachedSource) or data.source.sparse:
            return None
        flops = 2.0 * k * data.d * share + 40  # for a row
        least, most, alone = (
            max(int(work / flops) // _PART_ROWS, 1) * _PART_ROWS for work in (*_PART_FLOPS, _ALONE_FLOPS)
        )
        return Cuts(_BOUNDED_SHARES if bounded else data.passes.n_threads, least, most, VECTOR_ROWS, alone)

    # ------------------------------------------------------------ other label changes

    def forget(self) -> None:
        """Discard all labels, and what was found with them."""
        self._whole = self.labelled = False
        self.centres = self._inertias = None

    def relabel(self, new: Sequence[int] | NDArray[Any], k: int) -> None:
        """Change the number of clusters: cluster i becomes new[i], or none if that is -1; unused numbers are empty clusters."""
        mapping, old, inertias = np.asarray(new, dtype=np.int32), self._sums, self._inertias
        self.bounds.forget()
        self.centres = self._inertias = None
        if not self._whole or self._blank:
            self._sums = ClusterSums.zero(np.arange(k, dtype=np.int32), self.data.d, missing=self.data.observed)
            self._blank = self._whole = True
            self._weights_only = False
            return
        self._whole = False
        if self._weights_only and (mapping < 0).any():  # sums cannot be made up later for rows in no cluster
            self.relabel(new, k)
            return
        self._sums = old.renumbered(mapping, k)
        if inertias is not None and np.array_equal(np.sort(mapping), np.arange(k)):
            self._inertias = np.empty(k)
            self._inertias[mapping] = inertias
        if not self._blank:
            self.data.passes.update(tasks.Relabel(mapping, self.name))
        self._whole = True

    # ------------------------------------------------------------ figures

    @property
    def cluster_weights(self) -> Floats:
        """The weight of each cluster."""
        return np.asarray(self._sums.weights / self.data.weight_scale)

    def means(self, centres: NDArray[Any]) -> NDArray[Any]:
        """The M-step: each cluster's mean, in the data's dtype; an empty cluster keeps its centre."""
        means, data = self.sums.means(), self.data
        if data.observed:
            return self._means_of_cells(means, centres)
        empty = self.sums.weights <= 0
        if not empty.any():
            return data.rescaling.undo(means, data.dtype)
        means[empty] = 0.0
        new = data.rescaling.undo(means, data.dtype)
        new[empty] = centres[empty]
        return new

    def _means_of_cells(self, means: Floats, centres: NDArray[Any]) -> NDArray[Any]:
        """With missing cells: a coordinate of which the cluster has no observed cell keeps its value."""
        unseen = np.isnan(means)
        return np.where(unseen, centres, self.data.rescaling.undo(np.where(unseen, 0.0, means), self.data.dtype))

    def inertia(self, centres: NDArray[Any]) -> float:
        """The weighted sum of squared distances, times scale squared, of the current clusters to these centres.

        Computed from the sums alone: the within-cluster sum of squares, plus the distances of the centres from the means.
        """
        if self.data.observed:
            return self._inertias_of_cells(centres)[0]
        weights, means = self.cluster_weights, self.sums.means()
        some = weights > 0
        within = self._within(np.einsum("ij,ij->i", means, means), weights)
        gap = self.data.rescaling.apply(centres[some]) - means[some]
        return within + float(weights[some] @ np.einsum("ij,ij->i", gap, gap))

    def update_centres(
        self, centres: NDArray[Any], project: Callable[[NDArray[Any]], NDArray[Any]] | None = None
    ) -> tuple[NDArray[Any], float, float, float]:
        """The new centres, the inertia at the old and new centres, and the summed squared movement between them."""
        if self.data.observed:
            new = self.means(centres)
            step = (new.astype(np.float64) - centres.astype(np.float64)) * self.data.rescaling.scale
            after_e, after_m = self._inertias_of_cells(centres, new)
            return new, after_e, after_m, float(np.einsum("ij,ij->", step, step))
        new, figures = np.empty_like(centres), np.empty((4, len(centres)))
        sums, rescaling = self.sums, self.data.rescaling
        given = (sums.high, sums.low, sums.weights, rescaling.pivot, rescaling.scale, centres)
        _core.update_centres(*given, new, False, figures, self.data.passes.helpers)
        if project is not None:
            new = np.ascontiguousarray(project(new))
            _core.update_centres(*given, new, True, figures, self.data.passes.helpers)
        weights = np.asarray(sums.weights / self.data.weight_scale)
        within = self._within(figures[0], weights)
        return new, within + float(weights @ figures[1]), within + float(weights @ figures[2]), float(figures[3].sum())

    def _inertias_of_cells(self, *points: NDArray[Any]) -> list[float]:
        """The inertia of the current clusters at several sets of centres, over observed cells."""
        data, means = self.data, self.sums.means()
        unseen = np.isnan(means)
        weights = np.where(unseen, 0.0, self.sums.cell_weights / data.weight_scale)
        means = np.where(unseen, 0.0, means)
        within = max(data.spread - float(np.einsum("ij,ij->", weights, means * means)), 0.0)
        gaps = (data.rescaling.apply(centres) - means for centres in points)
        return [within + float(np.einsum("ij,ij->", weights, gap * gap)) for gap in gaps]

    def _within(self, squares: Floats, weights: Floats) -> float:
        """The inertia of the clusters about their means, which have these squared lengths: total minus between-cluster."""
        some = weights > 0
        if not some.all():
            weights, squares = weights[some], squares[some]
        return max(self.data.spread - float(weights @ squares), 0.0)

    def is_settled(self, centres: NDArray[Any]) -> bool:
        """Whether these centres are already the means of their rows."""
        return bool(np.array_equal(self.means(centres), centres))

    def residuals(self, centres: NDArray[Any]) -> Floats:
        """The inertia of each cluster, from differences in float64, in units of the rescaled data."""
        if self._inertias is not None and self.centres is not None and np.array_equal(self.centres, centres):
            return self._inertias.copy()
        total = np.zeros(len(centres))
        for part in self.data.passes.each(tasks.Residuals(self.data.targets(centres), self.name)):
            total += part
        return total
