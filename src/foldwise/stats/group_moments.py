"""Weight, mean and sum of squares of each column within groups of rows, such as clusters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from foldwise.data.block import Block, Floats
from foldwise.kernels.reference import two_parts
from foldwise.stats.column_moments import ColumnMoments
from foldwise.stats.observed import ObservedColumns
from foldwise.stats.two_part_mean import distance, moved


@dataclass(frozen=True)
class GroupMoments:
    """For each group: weight, number of rows with non-zero weight, centre (2, groups, columns) and centred sums of squares.

    Where cells are missing, centre and squares are those of the observed ones, whose weight is in `cells`.
    """

    weight: Floats
    rows: NDArray[np.int64]
    centre: Floats
    squares: Floats
    cells: Floats | None = None  # groups x columns

    @classmethod
    def empty(cls, n_groups: int, n_columns: int, *, observed: bool = False) -> GroupMoments:
        """The identity of `merge`."""
        shape, rows = (n_groups, n_columns), np.zeros(n_groups, dtype=np.int64)
        cells = np.zeros(shape) if observed else None
        return cls(np.zeros(n_groups), rows, np.zeros((2, *shape)), np.zeros(shape), cells)

    @classmethod
    def of(cls, block: Block, labels: NDArray[np.int32], n_groups: int, scale: float = 1.0) -> GroupMoments:
        """The moments of a block's rows, times `scale`, by their labels."""
        weights = np.ones(block.n_rows) if block.weights is None else block.weights
        member = _membership(labels, weights, n_groups)
        weight = np.bincount(labels, weights, minlength=n_groups).astype(np.float64)
        counted = np.bincount(labels[weights > 0], minlength=n_groups)
        share = np.divide(1.0, weight, out=np.zeros(n_groups), where=weight > 0)[:, None]
        with np.errstate(over="ignore", invalid="ignore"):  # callers that find infinities try another scale
            centre, squares = _moments(block, labels, member, share, weight, scale)
        return cls(weight, counted, np.where(share > 0, centre, 0.0), squares)

    @classmethod
    def of_observed(cls, block: Block, labels: NDArray[np.int32], n_groups: int, scale: float = 1.0) -> GroupMoments:
        """The moments of a block's observed cells; rows with the label -1 are in no group."""
        kept = np.flatnonzero(labels >= 0)
        labels, rows = labels[kept], block.dense()[kept].astype(np.float64) * scale
        weights = np.ones(len(kept)) if block.weights is None else block.weights[kept]
        seen, member = ~np.isnan(rows), _membership(labels, weights, n_groups)
        first = rows[seen.argmax(axis=0), np.arange(block.n_columns)] if len(rows) else np.zeros(block.n_columns)
        pivot = np.nan_to_num(first)
        with np.errstate(over="ignore", invalid="ignore"):
            wide = np.where(seen, rows - pivot, 0.0)
            cells = np.asarray(member @ seen.astype(np.float64))
            shift = np.divide(member @ wide, cells, out=np.zeros(cells.shape), where=cells > 0)
            squares = member @ np.where(seen, np.square(wide - shift[labels]), 0.0)
        centre = two_parts(np.broadcast_to(pivot, shift.shape), shift)
        weight = np.bincount(labels, weights, minlength=n_groups).astype(np.float64)
        counted = np.bincount(labels[weights > 0], minlength=n_groups)
        return cls(weight, counted, np.where(cells > 0, centre, 0.0), squares, cells)

    def merge(self, other: GroupMoments) -> GroupMoments:
        """The moments of both sets of rows together; a group that is empty in one is taken from the other."""
        weight = self.weight + other.weight
        here, there = self._by_column, other._by_column
        both = here + there
        share = np.divide(there, both, out=np.zeros_like(both), where=both > 0)
        with np.errstate(over="ignore", invalid="ignore"):
            delta = distance(self.centre, other.centre)
            centre = moved(self.centre, delta * share)
            squares = self.squares + other.squares + delta**2 * (here * share)
        mine, its = here > 0, there > 0
        centre = np.where(mine & its, centre, np.where(its, other.centre, self.centre))
        squares = np.where(mine & its, squares, np.where(its, other.squares, self.squares))
        return GroupMoments(weight, self.rows + other.rows, centre, squares, None if self.cells is None else both)

    @property
    def _by_column(self) -> Floats:
        """The weights that centres and squares belong to: of groups, or of their observed cells."""
        return self.weight[:, None] if self.cells is None else self.cells

    @property
    def mean(self) -> Floats:
        """The mean of each column in each group."""
        return np.asarray(self.centre[0])

    def whole(self) -> ColumnMoments | ObservedColumns:
        """The moments of all groups together."""
        if self.cells is not None:
            return self._whole_observed(self.cells)
        total = ColumnMoments.empty(self.squares.shape[1])
        for i in range(len(self.weight)):
            centre = np.ascontiguousarray(self.centre[:, i])
            total = total.merge(ColumnMoments(float(self.weight[i]), int(self.rows[i]), centre, self.squares[i]))
        return total

    def _whole_observed(self, cells: Floats) -> ObservedColumns:
        d = self.squares.shape[1]
        total, none = ObservedColumns.empty(d), np.zeros(d, dtype=np.int64)
        for i in range(len(self.weight)):
            rows, squares = int(self.rows[i]), np.asarray(self.squares[i])
            part = ObservedColumns(np.asarray(cells[i]), self.centre[:, i], squares, rows, none, 0, 0)
            total = total.merge(part)
        return total


def _membership(labels: NDArray[np.int32], weights: Floats, n_groups: int) -> Any:
    """A sparse matrix (groups by rows) of row weights; multiplying by it sums by group."""
    import scipy.sparse as sp

    return sp.csc_array((weights, labels, np.arange(len(labels) + 1)), shape=(n_groups, len(labels))).tocsr()


def _moments(
    block: Block, labels: NDArray[np.int32], member: Any, share: Floats, weight: Floats, scale: float
) -> tuple[Floats, Floats]:
    rows = block.rows
    if not isinstance(rows, np.ndarray):  # sparse: a pivot would make it dense
        wide = rows.astype(np.float64) * scale
        mean = (member @ wide).toarray() * share
        squares = (member @ wide.multiply(wide).tocsr()).toarray() - weight[:, None] * mean**2
        return np.stack([mean, np.zeros_like(mean)]), np.maximum(squares, 0.0)
    pivot = rows[0].astype(np.float64) * scale if len(rows) else np.zeros(rows.shape[1])
    wide = rows.astype(np.float64) * scale - pivot
    shift = (member @ wide) * share
    wide -= shift[labels]
    squares = member @ np.square(wide, out=wide)
    return two_parts(np.broadcast_to(pivot, shift.shape), shift), squares
