"""A block of rows in memory, dense or sparse, with its weights and its position in the data.

Models and statistics use the operations below and never test whether a block is sparse.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray

from foldwise import kernels
from foldwise.errors import DataError
from foldwise.kernels import sparse as sparse_kernels
from foldwise.kernels import triangle
from foldwise.kernels.reference import LEAST_POSITIVE, two_parts

Floats: TypeAlias = NDArray[np.float64]
_AT_ONCE = 2_000_000  # differences between rows and points held in memory at a time


def _adjacent(first: NDArray[Any], second: NDArray[Any] | None) -> bool:
    """Whether two C-ordered arrays are views of the same array, the second right behind the first."""
    if second is None or first.base is None or first.base is not second.base or first.shape[1:] != second.shape[1:]:
        return False
    whole = first.flags.c_contiguous and second.flags.c_contiguous and first.dtype == second.dtype
    return bool(whole and first.ctypes.data + first.nbytes == second.ctypes.data)


def _extended(first: NDArray[Any], n_rows: int) -> NDArray[Any]:
    """A view of more rows of the array that this one is a view of."""
    return np.lib.stride_tricks.as_strided(first, (n_rows, *first.shape[1:]), first.strides, writeable=False)


@dataclass(frozen=True)
class DenseBlock:
    """Rows as a C-ordered array of float32 or float64.

    `check(values, start)` raises if a value is not finite, and reports its position. It is called before the values are
    used, except for the moments: a NaN or infinity propagates into them, which saves a second look at the rows.
    """

    sparse: ClassVar[bool] = False

    values: NDArray[Any]
    start: int = 0
    weights: Floats | None = None
    check: Callable[[NDArray[Any], int], None] | None = None
    _checked: bool = field(default=False, init=False, repr=False, compare=False)

    @property
    def n_rows(self) -> int:
        """Rows in this block."""
        return int(self.values.shape[0])

    @property
    def n_columns(self) -> int:
        """Columns of the data."""
        return int(self.values.shape[1])

    @property
    def rows_with_weight(self) -> int:
        """The number of rows with non-zero weight."""
        return self.n_rows if self.weights is None else int(np.count_nonzero(self.weights))

    def moments(self, spare: triangle.Spare | None = None) -> tuple[float, Floats, Floats]:
        """Weight, mean in two parts and centred scatter matrix (its upper triangle) of the rows, in spare memory if given."""
        if spare is None:
            return self._if_finite(kernels.scatter(self.values, self.weights))
        return self._if_finite(triangle.scatter_square(self.values, self.weights, spare))

    def packed_moments(self, spare: triangle.Spare | None = None) -> tuple[float, Floats, Floats]:
        """The same with the triangle packed, row by row; of dense rows alone."""
        return self._if_finite(triangle.scatter(self.values, self.weights, spare))

    def column_moments(self) -> tuple[float, Floats, Floats]:
        """Weight, mean in two parts and centred sum of squares of each column."""
        return self._if_finite(kernels.columns(self.values, self.weights))

    def column_moments_and_extent(self) -> tuple[float, Floats, Floats, Floats, Floats]:
        """The same, and the minimum and maximum of each column over rows with non-zero weight, in one sweep."""
        weight, mean, squares, low, high = kernels.columns_and_extent(self.values, self.weights)
        return *self._if_finite((weight, mean, squares)), low, high

    def _if_finite(self, moments: tuple[float, Floats, Floats]) -> tuple[float, Floats, Floats]:
        if moments[0] == 0.0 or not np.isfinite(moments[1]).all():
            self.dense()
        return moments

    def centred(self, centre: Floats, scale: Floats | None = None) -> NDArray[Any]:
        """(x - centre) / scale, subtracted in float64, in the block's own dtype; the centre may be in two parts."""
        return _less(self.dense(), centre, scale)

    def times(self, basis: Floats, centre: Floats, scale: Floats | None = None) -> Floats:
        """((X - centre) / scale) @ basis in float64."""
        return np.asarray(self._centred_wide(centre, scale) @ basis)

    def scatter_times(self, basis: Floats, centre: Floats, factor: Floats | None, *, wide: bool) -> Floats:
        """Z'W Z `basis` for the rows Z = (X - centre) * factor; for passes after the first, which has checked the rows."""
        rows = self.values if self.weights is None else self.dense()  # rows of weight 0 are in no moments
        return kernels.scatter_product(rows, self.weights, centre, factor, basis, wide=wide)

    def scatter_and_moments(
        self, basis: Floats, centre: Floats, factor: Floats | None, *, wide: bool
    ) -> tuple[Floats, tuple[float, Floats, Floats]]:
        """The same and the moments of the columns, for a pass that checks the rows; in one sweep if there are no weights."""
        if self.weights is not None or not self.values.size or not basis.size:
            moments = self.column_moments()
            return self.scatter_times(basis, centre, factor, wide=wide), moments
        value, mean, squares = kernels.product_and_columns(self.values, centre, factor, basis, wide=wide)
        return value, self._if_finite((float(self.n_rows), mean, squares))

    def scatter_form(self, basis: Floats, centre: Floats, factor: Floats | None) -> tuple[Floats, Floats]:
        """The same with products in the rows' own dtype, and the form `basis`' Z'W Z `basis` in float64."""
        rows = self.values if self.weights is None else self.dense()
        return kernels.product_and_form(rows, self.weights, centre, factor, basis)

    def _centred_wide(self, centre: Floats, scale: Floats | None) -> Floats:
        """(x - centre) / scale in float64: differences of extreme float32 values overflow float32."""
        return _less(self.dense().astype(np.float64, copy=False), centre, scale)

    def codes(self, directions: NDArray[Any], centre: Floats, scale: Floats | None = None) -> NDArray[Any]:
        """((X - centre) / scale) @ directions.T in the block's own dtype."""
        with np.errstate(over="ignore", invalid="ignore"):  # raised below, with advice
            codes = np.asarray(self.centred(centre, scale) @ directions.T.astype(self.values.dtype, copy=False))
        if not np.isfinite(codes).all():
            raise DataError(
                f"scores leave the range of {codes.dtype}",
                advice="Use fw.scan(x, dtype=np.float64), or divide the data by a constant first",
            )
        return codes

    def squared_norms(self, centre: Floats, scale: Floats | None = None) -> Floats:
        """The squared length of each row of (X - centre) / scale."""
        rows = self._centred_wide(centre, scale)
        return np.asarray(np.einsum("ij,ij->i", rows, rows))

    def residual_norms(self, directions: Floats, centre: Floats, scale: Floats | None = None) -> Floats:
        """The squared length of each row's residual outside the span of the orthonormal directions."""
        rows = self._centred_wide(centre, scale)
        rows = rows - (rows @ directions.T) @ directions
        return np.asarray(np.einsum("ij,ij->i", rows, rows))

    def squared_distances(self, points: Floats, pivot: Floats, scale: float = 1.0) -> Floats:
        """The squared distance of each row, times `scale`, to each of points + pivot; the pivot should be near the rows."""
        y = self.dense().astype(np.float64) * scale - pivot
        square, norms = np.einsum("ij,ij->i", y, y), np.einsum("ij,ij->i", points, points)
        found = square[:, None] + norms - 2 * (y @ points.T)
        # Where the terms nearly cancel, subtract first and square afterwards.
        row, point = np.nonzero(found < 1e-3 * (square[:, None] + norms))
        for some in np.array_split(np.arange(len(row)), len(row) * y.shape[1] // _AT_ONCE + 1):
            gap = y[row[some]] - points[point[some]]
            found[row[some], point[some]] = np.einsum("ij,ij->i", gap, gap)
        return np.asarray(found)

    @property
    def rows(self) -> NDArray[Any]:
        """The rows in the form the kernels take, checked to be finite."""
        return self.dense()

    @property
    def unchecked(self) -> NDArray[Any]:
        """The same without the check, for passes after the first, which has already made it."""
        return self.values

    def take(self, which: Any) -> DenseBlock:
        """Some of the rows, by a slice or by their positions in the block."""
        weights = None if self.weights is None else self.weights[which]
        first = which.start or 0 if isinstance(which, slice) else 0
        return DenseBlock(self.values[which], self.start + first, weights)

    def is_followed_by(self, other: DenseBlock) -> bool:
        """Whether the other block's rows and weights are in the same arrays, right behind these."""
        if (self.weights is None) != (other.weights is None) or self.start + self.n_rows != other.start:
            return False
        if self.weights is not None and not _adjacent(self.weights, other.weights):
            return False
        return _adjacent(self.values, other.values)

    def longer(self, n_rows: int) -> DenseBlock:
        """The same block with those that follow it in memory, up to so many rows."""
        if n_rows == self.n_rows:
            return self
        weights = None if self.weights is None else _extended(self.weights, n_rows)
        return DenseBlock(_extended(self.values, n_rows), self.start, weights)

    def with_rows(self, rows: NDArray[Any]) -> DenseBlock:
        """The same block with other rows."""
        return DenseBlock(rows, self.start, self.weights)

    def times_number(self, factor: float | Floats, dtype: Any = None) -> DenseBlock:
        """The rows, in `dtype`, times a factor (or one factor per column)."""
        values = self.dense().astype(dtype or self.values.dtype, copy=False)
        return self.with_rows(values * np.asarray(factor, dtype=values.dtype))

    def astype(self, dtype: Any) -> DenseBlock:
        """The rows in another dtype."""
        return self.with_rows(self.dense().astype(dtype))

    def standardised(self, mean: Floats | None, scale: Floats) -> DenseBlock:
        """(x - mean) / scale, computed in float64."""
        return self.with_rows(kernels.centred(self.dense(), np.zeros(len(scale)) if mean is None else mean, scale))

    def unit_rows(self) -> tuple[DenseBlock, int]:
        """Rows divided by their lengths, and how many of them are zero."""
        rows, zeros = kernels.unit_rows(self.dense())
        return self.with_rows(rows), zeros

    def zero_rows(self) -> NDArray[np.bool_]:
        """Which rows are all zeros."""
        return np.asarray(~self.dense().any(axis=1))

    def dense(self) -> NDArray[Any]:
        """The rows as an ordinary array, checked to be finite."""
        if self.check is not None and not self._checked:
            self.check(self.values, self.start)
            object.__setattr__(self, "_checked", True)
        return self.values


@dataclass(frozen=True)
class SparseBlock:
    """Rows as a SciPy CSR matrix of finite values; no operation here makes it dense, except `dense`."""

    sparse: ClassVar[bool] = True

    matrix: Any
    start: int = 0
    weights: Floats | None = None

    @property
    def n_rows(self) -> int:
        """Rows in this block."""
        return int(self.matrix.shape[0])

    @property
    def n_columns(self) -> int:
        """Columns of the data."""
        return int(self.matrix.shape[1])

    @property
    def rows_with_weight(self) -> int:
        """The number of rows with non-zero weight."""
        return self.n_rows if self.weights is None else int(np.count_nonzero(self.weights))

    @property
    def weight(self) -> float:
        """The sum of the weights."""
        return float(self.n_rows) if self.weights is None else float(self.weights.sum())

    @cached_property
    def _shifted(self) -> tuple[Any, Floats]:
        """The rows in float64 less a pivot, and the pivot.

        Only columns stored in every row can be shifted without filling in zeros, and only those can lose digits to a
        large offset: where zeros occur among large values, the standard deviation is of the order of those values.
        """
        rows = self.matrix.astype(np.float64)
        counted = rows if self.weights is None else rows[self.weights > 0]  # zeros in rows of weight 0 do not matter
        full = np.bincount(counted.indices, minlength=self.n_columns) == counted.shape[0]
        pivot = np.zeros(self.n_columns)
        if full.any() and counted.shape[0]:
            pivot = np.where(full, counted[[0]].toarray().ravel(), 0.0)
            rows.data -= pivot[rows.indices]  # astype made a copy
        return rows, pivot

    def _weighted(self, rows: Any) -> Any:
        if self.weights is None:
            return rows
        import scipy.sparse as sp

        return sp.diags_array(self.weights) @ rows

    def moments(self, spare: triangle.Spare | None = None) -> tuple[float, Floats, Floats]:
        """Weight, mean in two parts and centred scatter matrix (its upper triangle) of the rows, in memory of its own."""
        rows, pivot = self._shifted
        weighted = self._weighted(rows)
        total = self.weight
        shift = np.asarray(weighted.sum(axis=0)).ravel() / total if total else np.zeros(self.n_columns)
        # In C order, as kernels want it: the product may come in columns, and a difference keeps the order of a large array.
        scatter = np.ascontiguousarray((rows.T @ weighted).toarray() - total * np.outer(shift, shift))
        np.fill_diagonal(scatter, self._never_lost(scatter.diagonal()))
        return total, two_parts(pivot, shift), scatter

    def column_moments(self) -> tuple[float, Floats, Floats]:
        """Weight, mean in two parts and centred sum of squares of each column."""
        rows, pivot = self._shifted
        weighted = self._weighted(rows)
        total = self.weight
        shift = np.asarray(weighted.sum(axis=0)).ravel() / total if total else np.zeros(self.n_columns)
        with np.errstate(over="ignore", invalid="ignore"):  # callers rescale such rows first
            squares = np.asarray(weighted.multiply(rows).sum(axis=0)).ravel() - total * shift**2
        squares[np.isnan(squares)] = np.inf  # from inf - inf
        return total, two_parts(pivot, shift), self._never_lost(squares)

    def column_moments_and_extent(self) -> tuple[float, Floats, Floats, Floats, Floats]:
        """The same, and the minimum and maximum of each column over rows with non-zero weight."""
        return *self.column_moments(), *self.extent()

    def _never_lost(self, squares: Floats) -> Floats:
        """Sums of squares corrected for rounding: never negative, and never zero in a column that varies."""
        rows, _ = self._shifted
        counted = rows if self.weights is None else rows[self.weights > 0]
        varies = np.bincount(counted.indices[counted.data != 0], minlength=self.n_columns) > 0
        return np.where((squares <= 0) & varies, LEAST_POSITIVE, np.maximum(squares, 0.0))

    def times(self, basis: Floats, centre: Floats, scale: Floats | None = None) -> Floats:
        """((X - centre) / scale) @ basis, with the centre subtracted from the product rather than from the rows."""
        rows, pivot = self._shifted
        scaled = basis if scale is None else basis / scale[:, None]
        return np.asarray(rows @ scaled - _gap(centre, pivot) @ scaled)

    def scatter_times(self, basis: Floats, centre: Floats, factor: Floats | None, *, wide: bool) -> Floats:
        """Z'W Z `basis` for the rows Z = (X - centre) * factor."""
        return sparse_kernels.scatter_product(self.matrix, self.weights, centre, factor, basis, wide=wide)

    def scatter_and_moments(
        self, basis: Floats, centre: Floats, factor: Floats | None, *, wide: bool
    ) -> tuple[Floats, tuple[float, Floats, Floats]]:
        """The same, and the moments of the columns."""
        moments = self.column_moments()
        return self.scatter_times(basis, centre, factor, wide=wide), moments

    def scatter_form(self, basis: Floats, centre: Floats, factor: Floats | None) -> tuple[Floats, Floats]:
        """The same, and the form `basis`' Z'W Z `basis`, both in float64."""
        product = self.scatter_times(basis, centre, factor, wide=True)
        return product, np.asarray(basis.T @ product)

    def projected(self, basis: Floats, centre: Floats, factor: Floats | None) -> Floats:
        """W^(1/2) Z `basis`, one half of that product."""
        return sparse_kernels.project(self.matrix, self.weights, centre, factor, basis)

    def projected_back(self, codes: Floats, centre: Floats, factor: Floats | None) -> Floats:
        """Z'W^(1/2) `codes`, the other half."""
        return sparse_kernels.project_back(self.matrix, self.weights, centre, factor, codes)

    def codes(self, directions: NDArray[Any], centre: Floats, scale: Floats | None = None) -> NDArray[Any]:
        """((X - centre) / scale) @ directions.T in the block's own dtype."""
        return self.times(directions.T.astype(np.float64), centre, scale).astype(self.matrix.dtype, copy=False)

    def squared_norms(self, centre: Floats, scale: Floats | None = None) -> Floats:
        """The squared length of each row of (X - centre) / scale."""
        rows, pivot = self._shifted
        gap = centre - pivot
        inverse = np.ones(self.n_columns) if scale is None else 1.0 / scale**2
        squares = np.asarray(rows.multiply(rows) @ inverse)
        return np.asarray(np.maximum(squares - 2 * (rows @ (gap * inverse)) + gap**2 @ inverse, 0.0))

    def residual_norms(self, directions: Floats, centre: Floats, scale: Floats | None = None) -> Floats:
        """The squared length of each row's residual outside the span of the orthonormal directions.

        Computed by Pythagoras, since subtracting from the rows would make them dense.
        """
        inside = self.times(directions.T, centre, scale)
        return np.asarray(np.maximum(self.squared_norms(centre, scale) - np.einsum("ij,ij->i", inside, inside), 0.0))

    def squared_distances(self, points: Floats, pivot: Floats, scale: float = 1.0) -> Floats:
        """The squared distance of each row, times `scale`, to each of points + pivot."""
        rows, points = self.matrix.astype(np.float64) * scale, points + pivot
        square = np.asarray(rows.multiply(rows).sum(axis=1)).ravel()
        found = square[:, None] + np.einsum("ij,ij->i", points, points) - 2 * (rows @ points.T)
        return np.asarray(np.maximum(found, 0.0))

    def extent(self) -> tuple[Floats, Floats]:
        """Minimum and maximum of each column over rows with non-zero weight."""
        rows = self.matrix if self.weights is None else self.matrix[self.weights > 0]
        if not rows.shape[0]:
            return np.full(self.n_columns, np.inf), np.full(self.n_columns, -np.inf)
        low, high = (
            np.asarray(part.todense(), dtype=np.float64).ravel() for part in (rows.min(axis=0), rows.max(axis=0))
        )
        return low, high

    @property
    def rows(self) -> Any:
        """The rows in the form the kernels take."""
        return self.matrix

    @property
    def unchecked(self) -> Any:
        """The same; sparse rows are checked when they are loaded."""
        return self.matrix

    def take(self, which: Any) -> SparseBlock:
        """Some of the rows, by a slice or by their positions in the block."""
        weights = None if self.weights is None else self.weights[which]
        first = which.start or 0 if isinstance(which, slice) else 0
        return SparseBlock(self.matrix[which], self.start + first, weights)

    def with_rows(self, rows: Any) -> SparseBlock:
        """The same block with other rows."""
        return SparseBlock(rows, self.start, self.weights)

    def times_number(self, factor: float | Floats, dtype: Any = None) -> SparseBlock:
        """The rows, in `dtype`, times a factor."""
        return self.with_rows(self.matrix.astype(dtype or self.matrix.dtype) * factor)

    def astype(self, dtype: Any) -> SparseBlock:
        """The rows in another dtype."""
        return self.with_rows(self.matrix.astype(dtype))

    def standardised(self, mean: Floats | None, scale: Floats) -> SparseBlock:
        """x / scale; `mean` must be None, since subtracting it would fill in the zeros."""
        assert mean is None
        matrix = self.matrix.copy()
        matrix.data = (matrix.data / scale[matrix.indices]).astype(matrix.dtype)
        return self.with_rows(matrix)

    def unit_rows(self) -> tuple[SparseBlock, int]:
        """Rows divided by their lengths, and how many of them are zero."""
        rows, zeros = sparse_kernels.unit_rows(self.matrix)
        return self.with_rows(rows), zeros

    def zero_rows(self) -> NDArray[np.bool_]:
        """Which rows are all zeros."""
        return np.asarray(np.asarray(abs(self.matrix).max(axis=1).todense()).ravel() == 0.0)

    def dense(self) -> NDArray[Any]:
        """The rows as an ordinary array."""
        return np.asarray(self.matrix.toarray())


Block: TypeAlias = DenseBlock | SparseBlock


def stack(rows: Sequence[Any]) -> Any:
    """Arrays or CSR matrices, stacked vertically."""
    if len(rows) == 1:
        return rows[0]
    if isinstance(rows[0], np.ndarray):
        return np.concatenate(rows)
    import scipy.sparse as sp

    return sp.vstack(rows, format="csr")


def block_of(rows: Any, start: int = 0, weights: Floats | None = None) -> Block:
    """A block of rows in memory, dense or sparse like the rows."""
    return DenseBlock(rows, start, weights) if isinstance(rows, np.ndarray) else SparseBlock(rows, start, weights)


def join(blocks: Sequence[Block], start: int) -> Block:
    """Blocks stacked vertically into one, which begins at row `start`."""
    weighted = any(block.weights is not None for block in blocks)
    weights = [np.ones(b.n_rows) if b.weights is None else b.weights for b in blocks] if weighted else []
    return block_of(stack([block.rows for block in blocks]), start, np.concatenate(weights) if weighted else None)


def dense_rows(rows: Any) -> NDArray[Any]:
    """Rows as an ordinary array, whether dense or sparse."""
    return rows if isinstance(rows, np.ndarray) else np.asarray(rows.toarray())


def _less(rows: NDArray[Any], centre: Floats, scale: Floats | None) -> NDArray[Any]:
    """(rows - centre) / scale; of a centre in two parts float32 rows need only the first."""
    if centre.ndim == 1 or rows.dtype == np.float32 or not centre[1].any():
        return kernels.centred(rows, centre if centre.ndim == 1 else centre[0], scale)
    away = kernels.centred(rows, centre[0], None)
    away -= centre[1]
    return away if scale is None else np.asarray(away / scale)


def _gap(centre: Floats, pivot: Floats) -> Floats:
    """centre - pivot, of a centre in one part or two."""
    return centre - pivot if centre.ndim == 1 else (centre[0] - pivot) + centre[1]
