"""Weight, mean and sum of squares of each column within groups of rows, such as clusters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from foldwise.data.block import Block, Floats
from foldwise.kernels.reference import two_parts
from foldwise.stats.column_moments import ColumnMoments
from foldwise.stats.two_part_mean import distance, moved


@dataclass(frozen=True)
class GroupMoments:
    """For each group: weight, number of rows with non-zero weight, centre (2, groups, columns) and centred sums of squares."""

    weight: Floats
    rows: NDArray[np.int64]
    centre: Floats
    squares: Floats

    @classmethod
    def empty(cls, n_groups: int, n_columns: int) -> GroupMoments:
        """The identity of `merge`."""
        shape = (n_groups, n_columns)
        return cls(np.zeros(n_groups), np.zeros(n_groups, dtype=np.int64), np.zeros((2, *shape)), np.zeros(shape))

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

    def merge(self, other: GroupMoments) -> GroupMoments:
        """The moments of both sets of rows together; a group that is empty in one is taken from the other."""
        weight = self.weight + other.weight
        share = np.divide(other.weight, weight, out=np.zeros_like(weight), where=weight > 0)[:, None]
        with np.errstate(over="ignore", invalid="ignore"):
            delta = distance(self.centre, other.centre)
            centre = moved(self.centre, delta * share)
            squares = self.squares + other.squares + delta**2 * (self.weight[:, None] * share)
        mine, its = (self.weight > 0)[:, None], (other.weight > 0)[:, None]
        centre = np.where(mine & its, centre, np.where(its, other.centre, self.centre))
        squares = np.where(mine & its, squares, np.where(its, other.squares, self.squares))
        return GroupMoments(weight, self.rows + other.rows, centre, squares)

    @property
    def mean(self) -> Floats:
        """The mean of each column in each group."""
        return np.asarray(self.centre[0])

    def whole(self) -> ColumnMoments:
        """The moments of all groups together."""
        total = ColumnMoments.empty(self.squares.shape[1])
        for i in range(len(self.weight)):
            total = total.merge(
                ColumnMoments(float(self.weight[i]), int(self.rows[i]), self.centre[:, i], np.asarray(self.squares[i]))
            )
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
