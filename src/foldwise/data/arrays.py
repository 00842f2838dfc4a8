"""Arrays, in memory or memory-mapped: blocks are views where possible, otherwise copies of one block's rows."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from foldwise.data import block_grid, check, column_selection
from foldwise.data.block import DenseBlock
from foldwise.data.image_shape import rows_of_images, said_shape
from foldwise.data.reading import FOUND_OUT, Reading
from foldwise.data.source import Piece, row_ranges
from foldwise.errors import DataError

_FLOATS = (np.dtype(np.float32), np.dtype(np.float64))


class ArraySource:
    """A 2-D NumPy array."""

    where = "array"
    sparse = False
    slow = False
    in_memory = True
    cut_anywhere = True
    left_out: tuple[str, ...] = ()
    image_shape: tuple[int, ...] | None = None  # of rows that are images: height, width[, channels]
    indicators: Any = None  # which columns stand for categories, if these rows come from such a source

    def __init__(
        self,
        array: NDArray[Any],
        *,
        chosen: list[int] | None = None,
        rows: NDArray[np.intp] | None = None,
        weights: NDArray[np.float64] | None = None,
        dtype: np.dtype[np.floating] | None = None,
        names: tuple[str, ...] | None = None,
    ) -> None:
        shape = array.shape
        if len(shape) != 2:
            check.two_dimensional(shape, self.where)
        if array.dtype not in _FLOATS:
            check.number_kind(array.dtype, self.where)
        self._array, self._chosen, self._rows, self._weights = array, chosen, rows, weights
        self.n_rows: int = shape[0] if rows is None else len(rows)
        self.n_columns: int = shape[1] if chosen is None else len(chosen)
        self.dtype: np.dtype[np.floating] = dtype or (
            _FLOATS[0] if array.dtype.kind == "f" and array.dtype.itemsize == 4 else _FLOATS[1]
        )
        self.positions = chosen
        self.names = names
        self._finite = check.Finite(self.where, names, chosen)
        if not self.n_rows or not self.n_columns:
            check.not_empty(self.n_rows, self.n_columns, self.where)

    def pieces(self, first: int = 0, last: int | None = None) -> Iterator[Piece]:
        """The blocks to load."""
        return row_ranges(self, first, last)

    def load(self, start: int, stop: int) -> DenseBlock:
        """The block of rows from `start` to `stop` - 1."""
        values = self._array[start:stop] if self._rows is None else self._array[self._rows[start:stop]]
        if self._chosen is not None:
            values = values[:, self._chosen]
        if values.dtype != self.dtype or not values.flags.carray:
            values = self._converted(values, start)
        weights = None if self._weights is None else self._weights[start:stop]
        return DenseBlock(values, start, weights, self._finite)

    def _converted(self, values: NDArray[Any], start: int) -> NDArray[Any]:
        if values.dtype.kind in "OUST":
            values = check.as_numbers(
                values,
                self.dtype,
                start=start,
                where=self.where,
                column=lambda j: check.label(j, None, self._chosen),
            )
        if values.dtype == self.dtype and values.flags.c_contiguous and values.flags.aligned:
            return values  # only read-only
        with np.errstate(over="ignore"):  # reported by check.Finite with its position
            return np.array(values, dtype=self.dtype, order="C")

    def fingerprint(self) -> str:
        """Shape, dtype and checksums of the first and last block."""
        rows = block_grid.rows_per_block(self.n_columns, self.dtype)
        ends = {0, (self.n_rows - 1) // rows * rows}
        sums = [zlib.crc32(self.load(at, min(at + rows, self.n_rows)).unchecked.data) for at in sorted(ends)]
        if self._weights is not None:
            sums.append(zlib.crc32(self._weights.data))
        return f"array {self.n_rows}x{self.n_columns} {self.dtype.name} " + " ".join(f"{s:08x}" for s in sums)


def plain_array(x: Any, where: str = "array") -> NDArray[Any]:
    """Anything NumPy can convert, as an ordinary array."""
    if isinstance(x, np.ma.MaskedArray):
        if np.ma.getmaskarray(x).any():
            place = np.argwhere(np.ma.getmaskarray(x))[0]
            column = int(place[1]) if len(place) > 1 else None
            raise DataError(
                "Input contains NaN: a masked value",
                where=where,
                row=int(place[0]),
                column=column,
                advice=check.MISSING_ADVICE,
            )
        return np.asarray(x.data)
    try:
        return np.asarray(x)
    except ValueError as problem:
        raise DataError(f"the rows differ in length ({problem})", where=where) from None


def row_numbers(where: Any, n_rows: int) -> NDArray[np.intp]:
    """The row numbers selected by a mask or an index array."""
    if isinstance(where, str):
        raise DataError(
            "where= as SQL text works only for tables and data frames",
            where="array",
            advice="Pass a boolean mask or row numbers, or a data frame",
        )
    if isinstance(where, np.ma.MaskedArray) and np.ma.getmaskarray(where).any():
        raise DataError("where= has masked entries", advice="Fill them: where.filled(False) leaves these rows out")
    picked = np.asarray(where)
    if picked.ndim != 1 or picked.dtype.kind not in "biu":
        raise DataError(f"where= takes a mask or row numbers, not {picked.dtype} of shape {picked.shape}")
    if picked.dtype.kind == "b":
        if len(picked) != n_rows:
            raise DataError(f"the mask in where= has {len(picked)} entries, but there are {n_rows} rows")
        return np.flatnonzero(picked)
    if len(picked) and not (-n_rows <= picked.min() and picked.max() < n_rows):
        raise DataError(f"where= contains a row number outside 0 to {n_rows - 1}")
    return picked.astype(np.intp) % max(n_rows, 1)


def open_array(
    x: Any, reading: Reading = FOUND_OUT, *, columns_: Any, where: Any, weights: Any, dtype: Any
) -> ArraySource:
    """A source over anything NumPy can convert to an array; with `image_size`, over rows of pixels."""
    array = x if type(x) is np.ndarray else plain_array(x)
    image = None
    if (
        reading.image_size is not None or reading.grey
    ):  # without, more than two dimensions are more often a slip than images
        image = rows_of_images(array.shape, ArraySource.where)
        array = array.reshape(len(array), -1)
        image = said_shape(array.shape[1], image, reading, ArraySource.where)
    check.two_dimensional(array.shape, ArraySource.where)
    rows = None if where is None else row_numbers(where, array.shape[0])
    chosen = None
    if not column_selection.all_numeric(columns_):
        chosen = column_selection.positions(columns_, None, array.shape[1], ArraySource.where)
    if isinstance(weights, str):
        column_selection.find(weights, None, ArraySource.where)
    if weights is not None:
        weights = check.weights(weights, ArraySource.where, array.shape[0] if rows is None else len(rows))
    source = ArraySource(array, chosen=chosen, rows=rows, weights=weights, dtype=check.float_dtype(dtype))
    source.image_shape = image if chosen is None else None
    return source
