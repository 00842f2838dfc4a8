"""SciPy's sparse matrices and arrays: blocks stay sparse."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from foldwise.data import arrays, block_grid, check, column_selection
from foldwise.data.block import SparseBlock
from foldwise.data.source import Piece, row_ranges
from foldwise.errors import DataError


class SparseSource:
    """A sparse matrix, held as CSR."""

    where = "sparse matrix"
    sparse = True
    slow = False
    in_memory = True
    names: tuple[str, ...] | None = None
    left_out: tuple[str, ...] = ()

    def __init__(
        self,
        matrix: Any,
        weights: NDArray[np.float64] | None,
        dtype: np.dtype[np.floating] | None,
        positions: list[int] | None = None,
    ) -> None:
        self.positions = positions
        self._matrix, self._weights = matrix, weights
        self.n_rows, self.n_columns = (int(n) for n in matrix.shape)
        self.fill = matrix.nnz / max(1, self.n_rows * self.n_columns)
        single = matrix.dtype == np.float32
        self.dtype: np.dtype[np.floating] = dtype or (np.dtype(np.float32) if single else np.dtype(np.float64))

    def pieces(self, first: int = 0, last: int | None = None) -> Iterator[Piece]:
        """The blocks to load."""
        return row_ranges(self, first, last)

    def load(self, start: int, stop: int) -> SparseBlock:
        """The block of rows from `start` to `stop` - 1."""
        matrix = self._matrix[start:stop]
        with np.errstate(over="ignore"):
            matrix = matrix.astype(self.dtype, copy=False)
        if not matrix.has_canonical_format:  # the statistics would count duplicates twice
            if np.shares_memory(matrix.data, self._matrix.data):
                matrix = matrix.copy()
            matrix.sum_duplicates()
        self._check(matrix, start)
        return SparseBlock(matrix, start, None if self._weights is None else self._weights[start:stop])

    def _check(self, matrix: Any, start: int) -> None:
        bad = np.flatnonzero(~np.isfinite(matrix.data))
        if bad.size:
            at = int(bad[0])
            row = int(np.searchsorted(matrix.indptr, at, side="right")) - 1
            value = float(matrix.data[at])
            column = check.label(int(matrix.indices[at]), None, self.positions)
            check.bad_value(value, self.dtype, where=self.where, row=start + row, column=column)

    def fingerprint(self) -> str:
        """Shape, dtype, number of stored values and checksums of the first and last block."""
        rows = block_grid.rows_per_block(self.n_columns, self.dtype, sparse=True)
        ends = {0, (self.n_rows - 1) // rows * rows}
        blocks = [self.load(at, min(at + rows, self.n_rows)).matrix for at in sorted(ends)]
        sums = [zlib.crc32(part) for m in blocks for part in (m.data, m.indices, m.indptr)]
        if self._weights is not None:
            sums.append(zlib.crc32(self._weights.data))
        shown = " ".join(f"{s:08x}" for s in sums)
        return f"sparse {self.n_rows}x{self.n_columns} {self.dtype.name} {self._matrix.nnz} {shown}"


def open_sparse(x: Any, *, columns_: Any, where: Any, weights: Any, dtype: Any) -> SparseSource:
    """A source over a SciPy sparse matrix or array of any format."""
    name = SparseSource.where
    check.two_dimensional(x.shape, name)
    check.number_kind(x.dtype, name)
    matrix, chosen = x.tocsr(), None
    _check_structure(matrix)
    if not column_selection.all_numeric(columns_):
        chosen = column_selection.positions(columns_, None, matrix.shape[1], name)
        matrix = matrix[:, chosen]
    if where is not None:
        matrix = matrix[arrays.row_numbers(where, matrix.shape[0])]
    check.not_empty(matrix.shape[0], matrix.shape[1], name)
    if isinstance(weights, str):
        column_selection.find(weights, None, name)
    if weights is not None:
        weights = check.weights(weights, name, matrix.shape[0])
    return SparseSource(matrix, weights, check.float_dtype(dtype), chosen)


def _check_structure(matrix: Any) -> None:
    """Refuse a CSR matrix that somebody has put together wrongly: kernels would read outside of it."""
    starts, columns = matrix.indptr, matrix.indices
    sound = len(starts) == matrix.shape[0] + 1 and starts[0] == 0 and starts[-1] <= min(len(columns), len(matrix.data))
    sound = sound and bool((starts[1:] >= starts[:-1]).all())
    if sound and len(columns):
        sound = int(columns.min()) >= 0 and int(columns.max()) < matrix.shape[1]
    if not sound:
        raise DataError(
            "indptr and indices do not describe a matrix of this shape",
            where=SparseSource.where,
            advice="Make it anew, for instance with scipy.sparse.coo_array((values, (rows, columns)), shape).tocsr()",
        )
