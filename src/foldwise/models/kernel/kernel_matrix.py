"""The kernel matrix of a fit, of which only products are ever needed: all rows with some columns, times coefficients.

It is cut into stripes of rows, which threads take in turn, and tiles of columns, which are added up from left to right: sums
have the same bits for any number of threads, and whether the matrix is kept or computed anew for each pass.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from foldwise.data.block import Block, Floats, block_of
from foldwise.data.recut import BlockList, cut
from foldwise.errors import DataError
from foldwise.fold import blas
from foldwise.fold.deadline import Deadline
from foldwise.fold.passes import Passes
from foldwise.models.kernel.functions import Kernel

STRIPE, _TILE = 256, 1024  # a tile of float64 stays in the second-level cache, or nearly
_SYMMETRIC = {np.dtype(np.float32): 1e-4, np.dtype(np.float64): 1e-8}

Numbers = NDArray[np.intp]


class KernelMatrix(Protocol):
    """The kernel matrix K of n rows."""

    n: int
    diagonal: Floats

    def times(self, coefficients: Floats, which: Numbers | None = None) -> Floats:
        """K[:, which] @ coefficients."""

    def columns(self, which: Numbers) -> Floats:
        """K[:, which]."""

    def submatrix(self, which: Numbers) -> Floats:
        """K[which][:, which]."""


class PrecomputedMatrix:
    """A matrix that somebody else has computed: in memory, or in a file that is read once for each pass."""

    held = "given"

    def __init__(self, passes: Passes, diagonal: Floats) -> None:
        self._passes, self.n, self.diagonal = passes, len(diagonal), diagonal

    def times(self, coefficients: Floats, which: Numbers | None = None) -> Floats:
        """K[:, which] @ coefficients."""
        return self._passes.rows(partial(matrix_sums, coefficients, which))

    def columns(self, which: Numbers) -> Floats:
        """K[:, which]."""
        return self._passes.rows(partial(_columns, which))

    def submatrix(self, which: Numbers) -> Floats:
        """K[which][:, which]."""
        return np.concatenate(self._passes.each(partial(_submatrix, which)))

    def keep(self, budget: float) -> PrecomputedMatrix:
        """It is where it is."""
        return self


class ComputedMatrix:
    """The matrix of a kernel of rows, computed again for each pass unless it is kept.

    Passes over it raise OutOfTimeError between two stripes, when the time is over.
    """

    def __init__(self, passes: Passes, kernel: Kernel, rows: Block, deadline: Deadline | None = None) -> None:
        self._kernel, self._rows, self._deadline = kernel, kernel.prepare(rows), deadline or Deadline()
        self.n, self.diagonal = rows.n_rows, kernel.diagonal(self._rows)
        self._passes = passes
        self._stripes = self._over(cut(self._rows, STRIPE))
        self._kept: PrecomputedMatrix | None = None

    def keep(self, budget: float) -> ComputedMatrix:
        """Keep all values in memory, if they fit `budget` bytes."""
        if 8.0 * self.n * self.n <= budget:
            stripes = self._stripes.each(partial(_stripe, self._kernel, cut(self._rows, _TILE)))
            blocks = [block_of(stripe, number * STRIPE) for number, stripe in enumerate(stripes)]
            self._kept = PrecomputedMatrix(self._over(blocks), self.diagonal)
        return self

    def _over(self, blocks: list[Block]) -> Passes:
        return self._passes.over(BlockList(blocks, STRIPE), here=True).until(self._deadline)

    @property
    def held(self) -> str:
        """How it is held."""
        return "in tiles" if self._kept is None else "kept"

    def times(self, coefficients: Floats, which: Numbers | None = None) -> Floats:
        """K[:, which] @ coefficients."""
        if self._kept is not None:
            return self._kept.times(coefficients, which)
        others = self._rows if which is None else self._rows.take(which)
        return self._stripes.rows(partial(kernel_sums, self._kernel, others, coefficients))

    def columns(self, which: Numbers) -> Floats:
        """K[:, which]."""
        if self._kept is not None:
            return self._kept.columns(which)
        return self._stripes.rows(partial(_kernel_columns, self._kernel, self._rows.take(which)))

    def submatrix(self, which: Numbers) -> Floats:
        """K[which][:, which]."""
        some = self._rows.take(which)
        with blas.single():
            return self._kernel.matrix(some, some)


# ---------------------------------------------------------------- tasks


def matrix_sums(coefficients: Floats, which: Numbers | None, block: Block) -> Floats:
    """Rows of the matrix times coefficients, in float64, tile by tile."""
    total, rows = np.zeros((block.n_rows, coefficients.shape[1])), block.unchecked
    for first in range(0, len(coefficients), _TILE):
        tile = slice(first, first + _TILE)
        columns = tile if which is None else which[tile]
        total += np.asarray(rows[:, columns], dtype=np.float64) @ coefficients[tile]
    return total


def kernel_sums(kernel: Kernel, others: Block, coefficients: Floats, block: Block) -> Floats:
    """The kernel of prepared rows with others, times coefficients, tile by tile."""
    total = np.zeros((block.n_rows, coefficients.shape[1]))
    for first in range(0, len(coefficients), _TILE):
        tile = slice(first, first + _TILE)
        total += kernel.matrix(block, others.take(tile)) @ coefficients[tile]
    return total


def _stripe(kernel: Kernel, tiles: list[Block], block: Block) -> Floats:
    return np.concatenate([kernel.matrix(block, tile) for tile in tiles], axis=1)


def _kernel_columns(kernel: Kernel, others: Block, block: Block) -> Floats:
    return kernel.matrix(block, others)


def _columns(which: Numbers, block: Block) -> Floats:
    return np.asarray(block.unchecked[:, which], dtype=np.float64)


def _submatrix(which: Numbers, block: Block) -> Floats:
    inside = which[(which >= block.start) & (which < block.start + block.n_rows)] - block.start
    return np.asarray(block.unchecked[inside][:, which], dtype=np.float64)


# ---------------------------------------------------------------- a matrix that is given


class PrecomputedFitData:
    """A precomputed matrix, checked in one pass: square, finite, symmetric."""

    def __init__(self, passes: Passes) -> None:
        source, self._passes = passes.source, passes
        self.n = source.n_columns
        if source.n_rows is not None and source.n_rows != self.n:
            raise _not_square(source.n_rows, self.n, source.where)
        probe = np.sort(np.random.default_rng(0).choice(self.n, min(self.n, 200), replace=False))
        parts = passes.each(partial(_Probed.of, probe, source.where))
        if (read := sum(len(part.diagonal) for part in parts)) != self.n:
            raise _not_square(read, self.n, source.where)
        rows, columns = (np.concatenate([getattr(part, name) for part in parts]) for name in ("rows", "columns"))
        _check_symmetric(rows, columns, probe, np.dtype(source.dtype), source.where)
        self._diagonal = np.concatenate([part.diagonal for part in parts])
        weights = [part.weights for part in parts if part.weights is not None]
        self.weights = np.concatenate(weights) if weights else None
        self.n_with_weight = self.n if self.weights is None else int(np.count_nonzero(self.weights))
        self.figures = (self._diagonal,)
        self.canonical_order = None
        self.all_rows, self.gamma, self.gammas = None, None, (None,)
        self.attributes: dict[str, Any] = {"gamma_": None, "rows_": None, "diagonal_": self._diagonal}

    def matrix(self, deadline: Deadline) -> PrecomputedMatrix:
        """The matrix."""
        return PrecomputedMatrix(self._passes.until(deadline), self._diagonal)

    def sample_matrix(self, rows: Block | None, which: Numbers, gamma: float | None) -> Floats:
        """The matrix of the rows with these numbers."""
        return PrecomputedMatrix(self._passes, self._diagonal).submatrix(which)

    def rows(self, which: Numbers) -> None:
        """There are none."""


@dataclass(frozen=True)
class _Probed:
    """What a check of the matrix takes from a block: its diagonal, rows and columns with some numbers, weights."""

    diagonal: Floats
    rows: Floats
    columns: Floats
    weights: Floats | None

    @classmethod
    def of(cls, probe: Numbers, where: str, block: Block) -> _Probed:
        """From one block."""
        stop = block.start + block.n_rows
        if stop > block.n_columns:
            raise _not_square(stop, block.n_columns, where)
        inside = probe[(probe >= block.start) & (probe < stop)] - block.start
        rows, columns = (np.array(part, np.float64) for part in (block.rows[inside], block.rows[:, probe]))
        return cls(diagonal_of(block), rows, columns, None if block.weights is None else np.array(block.weights))


def diagonal_of(block: Block) -> Floats:
    """The diagonal of a matrix, where it crosses these rows."""
    places = np.arange(block.n_rows)
    return np.asarray(block.rows[places, block.start + places], dtype=np.float64)


def _check_symmetric(rows: Floats, columns: Floats, probe: Numbers, dtype: np.dtype[Any], where: str) -> None:
    gap = np.abs(rows - columns.T)
    if gap.max(initial=0.0) > _SYMMETRIC[dtype] * np.abs(rows).max(initial=0.0):
        i, j = np.unravel_index(int(np.argmax(gap)), gap.shape)
        raise DataError(
            f"the precomputed kernel matrix is not symmetric: {rows[i, j]:.6g} here, {columns[j, i]:.6g} across",
            where=where,
            row=int(probe[i]),
            column=int(j),
            advice="Pass (K + K.T) / 2 if that is what is meant",
        )


def _not_square(rows: int, columns: int, where: str) -> DataError:
    return DataError(
        f"a precomputed kernel matrix has as many columns as rows, not {rows} x {columns}",
        where=where,
        advice="Row i, column j is the kernel of rows i and j of the data",
    )
