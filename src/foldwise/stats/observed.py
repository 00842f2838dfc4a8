"""What is observed of each column where cells are missing, and how much is missing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from foldwise import kernels
from foldwise.data.block import Block, Floats
from foldwise.kernels.reference import LEAST_POSITIVE, two_parts
from foldwise.stats.two_part_mean import distance, moved

_SAMPLED = 64  # rows of a block, for values in the middle of its columns


@dataclass(frozen=True)
class ObservedColumns:
    """Weight, centre and centred sum of squares of each column's observed cells; counts of what is missing.

    The counts are of cells and rows with non-zero weight, and not weighted.
    """

    weight: Floats  # of the observed cells of each column
    centre: Floats  # in two parts
    squares: Floats
    rows: int
    missing: NDArray[np.int64]  # cells of each column
    incomplete: int  # rows with a missing cell
    blank: int  # rows in which nothing was observed
    weightless: int = 0  # missing cells of rows without weight, which count nowhere else

    @classmethod
    def empty(cls, n_columns: int) -> ObservedColumns:
        """The identity of `merge`."""
        zero = np.zeros(n_columns)
        return cls(zero, np.zeros((2, n_columns)), zero, 0, np.zeros(n_columns, np.int64), 0, 0)

    @classmethod
    def of(cls, block: Block) -> ObservedColumns:
        """What is observed in a block's rows."""
        rows, weights, weightless = block.dense(), block.weights, 0
        if weights is not None and not weights.all():
            weightless = int(np.isnan(rows[weights == 0]).sum())
            rows, weights = rows[weights > 0], weights[weights > 0]
        gaps = np.isnan(rows)
        weight, centre, squares = _moments(np.ascontiguousarray(rows), weights, gaps)
        return cls(
            weight,
            centre,
            squares,
            len(rows),
            gaps.sum(axis=0, dtype=np.int64),
            int(gaps.any(axis=1).sum()),
            int(gaps.all(axis=1).sum()),
            weightless,
        )

    def merge(self, other: ObservedColumns) -> ObservedColumns:
        """What is observed in both sets of rows together."""
        weight = self.weight + other.weight
        share = other.weight / np.where(weight > 0, weight, 1.0)
        here, there = self.weight > 0, other.weight > 0
        delta = np.where(here & there, distance(self.centre, other.centre), 0.0)
        with np.errstate(over="ignore", invalid="ignore"):
            squares = self.squares + other.squares + delta**2 * (self.weight * share)
        return ObservedColumns(
            weight,
            np.where(here, moved(self.centre, delta * share), other.centre),
            np.where((squares == 0) & (delta != 0), LEAST_POSITIVE, squares),
            self.rows + other.rows,
            self.missing + other.missing,
            self.incomplete + other.incomplete,
            self.blank + other.blank,
            self.weightless + other.weightless,
        )

    @property
    def mean(self) -> Floats:
        """The mean of each column's observed cells; 0 for a column without any."""
        return np.asarray(self.centre[0])

    @property
    def cells(self) -> int:
        """How many cells are missing."""
        return int(self.missing.sum())

    @property
    def columns(self) -> int:
        """How many columns have a missing cell."""
        return int(np.count_nonzero(self.missing))


def _moments(rows: NDArray[Any], weights: Floats | None, gaps: NDArray[np.bool_]) -> tuple[Floats, Floats, Floats]:
    """Weight, centre and centred squares of the observed cells of each column.

    The kernel for complete rows does the work: missing cells are filled with one observed value of their column, and what they
    contribute, which then is known, is taken away.
    """
    if not gaps.any():
        total, centre, squares = kernels.columns(rows, weights)
        return np.full(rows.shape[1], total), centre, squares
    pivot = _typical(rows)
    filled = np.where(gaps, pivot, rows)
    total, centre, squares = kernels.columns(filled, weights)
    missing = gaps.sum(axis=0).astype(np.float64) if weights is None else _sums(weights, gaps)
    weight = total - missing if weights is None else _sums(weights, ~gaps)
    some = weight > 0
    with np.errstate(invalid="ignore", over="ignore"):  # an infinite sum of squares is for the caller to judge
        moved_by = (centre[0] - pivot) + centre[1]
        shift = np.divide(moved_by * total, weight, out=np.zeros(len(weight)), where=some)
        rest = squares - np.divide(weight * missing, total) * shift**2
        squares = np.where(np.isnan(rest) & some, np.inf, np.maximum(rest, 0.0))
    flat = np.flatnonzero(squares == 0)
    # As for complete columns: a column that varies never has a sum of squares of exactly zero.
    squares[flat] = np.where((filled[:, flat] != pivot[flat]).any(axis=0), LEAST_POSITIVE, 0.0)
    return weight, np.where(some, two_parts(pivot.astype(np.float64), shift), 0.0), squares


def _typical(rows: NDArray[Any]) -> NDArray[Any]:
    """An observed value of each column, the median of a sample: near the others, and equal to them if they are all equal."""
    some = np.sort(rows[:: max(1, len(rows) // _SAMPLED)], axis=0)  # NaN comes last
    counts = np.count_nonzero(~np.isnan(some), axis=0)
    found = some[np.maximum(counts - 1, 0) // 2, np.arange(rows.shape[1])]
    for column in np.flatnonzero(counts == 0):
        seen = rows[:, column][~np.isnan(rows[:, column])]
        found[column] = seen[0] if len(seen) else 0.0
    return np.asarray(found)


def _sums(weights: Floats, cells: NDArray[Any]) -> Floats:
    """The weighted sum of each column, in the order of the rows whatever BLAS would do."""
    return np.asarray(np.einsum("i,ij->j", weights, cells, dtype=np.float64))
