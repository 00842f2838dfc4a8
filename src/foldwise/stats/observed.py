"""What is observed of each column where cells are missing, and how much is missing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from foldwise.data.block import Block, Floats
from foldwise.kernels.reference import LEAST_POSITIVE, two_parts
from foldwise.stats.two_part_mean import distance, moved


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

    @classmethod
    def empty(cls, n_columns: int) -> ObservedColumns:
        """The identity of `merge`."""
        zero = np.zeros(n_columns)
        return cls(zero, np.zeros((2, n_columns)), zero, 0, np.zeros(n_columns, np.int64), 0, 0)

    @classmethod
    def of(cls, block: Block) -> ObservedColumns:
        """What is observed in a block's rows."""
        rows, weights = block.dense(), block.weights
        if weights is not None and not weights.all():
            rows, weights = rows[weights > 0], weights[weights > 0]
        gaps = np.isnan(rows)
        wide = np.where(gaps, 0.0, rows.astype(np.float64, copy=False))
        each = np.ones(len(rows)) if weights is None else weights
        weight = _sums(each, ~gaps)
        with np.errstate(invalid="ignore", over="ignore"):  # an infinite sum of squares is for the caller to judge
            pivot = np.where(weight > 0, _sums(each, wide) / np.where(weight > 0, weight, 1.0), 0.0)
            away = np.where(gaps, 0.0, wide - pivot)
            shift = np.where(weight > 0, _sums(each, away) / np.where(weight > 0, weight, 1.0), 0.0)
            squares = np.maximum(_sums(each, away**2) - weight * shift**2, 0.0)
        # As for complete columns: a column that varies never has a sum of squares of exactly zero.
        squares = np.where((squares == 0) & (away != 0).any(axis=0), LEAST_POSITIVE, squares)
        return cls(
            weight,
            two_parts(pivot, shift),
            squares,
            len(rows),
            gaps.sum(axis=0, dtype=np.int64),
            int(gaps.any(axis=1).sum()),
            int(gaps.all(axis=1).sum()),
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


def _sums(weights: Floats, cells: NDArray[Any]) -> Floats:
    """The weighted sum of each column, in the order of the rows whatever BLAS would do."""
    return np.asarray(np.einsum("i,ij->j", weights, cells, dtype=np.float64))
