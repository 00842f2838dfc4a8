"""Counts of rows by two labelings: the statistic behind every comparison of two partitions."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from foldwise.data.block import Floats

_DENSE = 1 << 22  # cells counted in an array of their own; with more, the rows' cells are sorted


@dataclass(frozen=True)
class Contingency:
    """The weight of the rows with label i in the first labeling and j in the second, for the cells that have any.

    Cell (i, j) has the number i * shape[1] + j; `cells` rise. Labels are numbers from 0; rows with a negative label in either
    are in no cell. Whole weights are added without rounding up to 2^53, so that `merge` is exact. `squares` are the sums of the
    squared weights (None without weights: they are the counts then), and `whole` says whether every weight is a whole number.
    """

    shape: tuple[int, int]
    cells: NDArray[np.int64]
    counts: Floats
    squares: Floats | None = None
    whole: bool = True

    @classmethod
    def empty(cls, shape: tuple[int, int]) -> Contingency:
        """The identity of `merge`."""
        return cls(shape, np.zeros(0, dtype=np.int64), np.zeros(0))

    @classmethod
    def of(
        cls,
        first: NDArray[np.integer],
        second: NDArray[np.integer],
        shape: tuple[int, int],
        weights: Floats | None = None,
    ) -> Contingency:
        """The counts of some rows."""
        size = shape[0] * shape[1]
        # Numbers of a narrow type take half the time to count.
        narrow: type[np.signedinteger[Any]] = np.int32 if size < 2**31 else np.int64
        cell: NDArray[Any] = first.astype(narrow) * narrow(shape[1]) + second.astype(narrow)
        if len(first) and min(int(first.min()), int(second.min())) < 0:
            known = (first >= 0) & (second >= 0)
            cell, weights = cell[known], None if weights is None else weights[known]
        if size <= max(_DENSE, len(cell)):
            counts = np.bincount(cell, weights, size).astype(np.float64)
            some = np.flatnonzero(counts)
            cells, place = some, cell
        else:
            cells, place = np.unique(cell, return_inverse=True)
            size = len(cells)
            counts = np.bincount(place, weights, size).astype(np.float64)
            some = np.flatnonzero(counts)
            cells = cells[some]
        found = cls(shape, cells.astype(np.int64), counts[some])
        if weights is None:
            return found
        with np.errstate(over="ignore"):  # of numbers of repetitions, whose squares nobody needs
            squares: Floats = np.bincount(place, weights * weights, size)[some].astype(np.float64)
        return replace(found, squares=squares, whole=bool((weights == np.rint(weights)).all()))

    @classmethod
    def of_table(cls, table: Floats) -> Contingency:
        """Counts that are there as a matrix; if they are not whole, as of very many rows of very small weights."""
        cells = np.flatnonzero(table)
        counts = np.asarray(table, np.float64).ravel()[cells]
        found = cls((table.shape[0], table.shape[1]), cells.astype(np.int64), counts)
        if (counts == np.rint(counts)).all():
            return found
        return replace(found, squares=np.zeros(len(cells)), whole=False)

    def merge(self, other: Contingency) -> Contingency:
        """The counts of both sets of rows."""
        cells = np.union1d(self.cells, other.cells)
        counts, squares = np.zeros(len(cells)), np.zeros(len(cells))
        for part in (self, other):
            place = np.searchsorted(cells, part.cells)
            counts[place] += part.counts
            squares[place] += part.counts if part.squares is None else part.squares
        weighted = self.squares is not None or other.squares is not None
        return Contingency(self.shape, cells, counts, squares if weighted else None, self.whole and other.whole)

    @property
    def margins(self) -> tuple[Floats, Floats]:
        """The weight of each label of the first labeling, and of the second."""
        return self.margins_of(self.counts)

    def margins_of(self, figures: Floats) -> tuple[Floats, Floats]:
        """Figures of the cells, added up for each label of the first labeling, and of the second."""
        first, second = np.divmod(self.cells, self.shape[1])
        return (
            np.bincount(first, figures, self.shape[0]).astype(np.float64),
            np.bincount(second, figures, self.shape[1]).astype(np.float64),
        )

    def table(self) -> Floats:
        """The counts as a matrix with a row for each label of the first labeling."""
        out = np.zeros(self.shape)
        out.ravel()[self.cells] = self.counts
        return out
