"""Data frames in memory: pandas through its column arrays, others through the Arrow stream they export.

An Arrow stream is read once and its batches are kept: for a table in memory this copies nothing, and a
single-use stream is collected.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Sequence
from numbers import Number
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from foldwise.data import block_grid, check, column_selection
from foldwise.data.block import DenseBlock
from foldwise.data.rebatch import BatchList, rows_of
from foldwise.data.source import Piece, row_ranges
from foldwise.errors import DataError
from foldwise.kernels.arrow import Stream, batch_of, is_number

_WHERE = "data frame"
_SAMPLE = 1000  # values examined to tell a text column from a numeric column with a stray word

# load(positions, start, stop, dtype): those columns of those rows, with NaN for missing values
_Load: TypeAlias = Callable[[Sequence[int], int, int, np.dtype[Any]], NDArray[Any]]

# 'number', 'float32' or 'other'; or, for a numeric column with a stray word, the word's row and the word
_Kind: TypeAlias = str | tuple[int, Any]


class FrameSource:
    """A data frame in memory."""

    where = _WHERE
    sparse = False
    slow = False
    in_memory = True
    cut_anywhere = True

    def __init__(
        self,
        load: _Load,
        n_rows: int,
        chosen: list[int],
        names: tuple[str, ...] | None,
        left_out: tuple[str, ...],
        dtype: np.dtype[np.floating],
        weights: NDArray[np.float64] | None,
    ) -> None:
        self._load_columns, self._chosen, self._weights = load, chosen, weights
        self.n_rows, self.n_columns, self.positions = n_rows, len(chosen), chosen
        self.names, self.left_out, self.dtype = names, left_out, dtype

    def pieces(self, first: int = 0, last: int | None = None) -> Iterator[Piece]:
        """The blocks to load."""
        return row_ranges(self, first, last)

    def load(self, start: int, stop: int) -> DenseBlock:
        """The block of rows from `start` to `stop` - 1."""
        values = self._load_columns(self._chosen, start, stop, self.dtype)
        weights = None if self._weights is None else self._weights[start:stop]
        return DenseBlock(values, start, weights, check.Finite(_WHERE, self.names, self._chosen))

    def fingerprint(self) -> str:
        """Shape, names, dtype and checksums of the first and last block."""
        rows = block_grid.rows_per_block(self.n_columns, self.dtype)
        ends = {0, (self.n_rows - 1) // rows * rows}
        sums = [zlib.crc32(self.load(at, min(at + rows, self.n_rows)).unchecked.data) for at in sorted(ends)]
        sums.append(zlib.crc32(repr((self.names, self._chosen)).encode()))
        if self._weights is not None:
            sums.append(zlib.crc32(self._weights.data))
        return f"frame {self.n_rows}x{self.n_columns} {self.dtype.name} " + " ".join(f"{s:08x}" for s in sums)


def open_pandas(frame: Any, *, columns_: Any, where: Any, weights: Any, dtype: Any) -> Any:
    """A source over a pandas data frame."""
    if where is not None:
        return _filtered(frame, columns_=columns_, where=where, weights=weights, dtype=dtype)
    names = check.names(list(frame.columns), _WHERE)
    series = [frame.iloc[:, j] for j in range(frame.shape[1])]
    kinds = [_pandas_kind(one) for one in series]
    arrays = [one.to_numpy() if isinstance(one.dtype, np.dtype) else one.array for one in series]

    def load(chosen: Sequence[int], start: int, stop: int, dtype: np.dtype[Any]) -> NDArray[Any]:
        parts = [_pandas_slice(arrays[j][start:stop], dtype, start, j if names is None else names[j]) for j in chosen]
        return rows_of([(batch_of(parts), 0, stop - start)], len(chosen), dtype)

    return _opened(
        load,
        len(frame),
        names,
        [str(name) for name in frame.columns],
        kinds,
        columns_=columns_,
        weights=weights,
        dtype=dtype,
    )


def _pandas_kind(series: Any) -> _Kind:
    kind = series.dtype.kind
    if kind == "c":  # refused even if not selected: discarding the imaginary part is never intended
        check.number_kind(np.dtype(complex), _WHERE)
    if kind in "biuf":
        width = getattr(series.dtype, "subtype", series.dtype).itemsize  # of a sparse column: of its values
        return "float32" if kind == "f" and width == 4 else "number"
    if kind == "O" and series.dtype.name in ("object", "str", "string"):
        return _text_kind(series.iloc[:_SAMPLE].tolist())
    return "other"


def _text_kind(sample: Sequence[Any]) -> _Kind:
    """Whether a column of text or objects holds numbers; if most values are numbers, a word is taken for an error."""
    present = [(i, value) for i, value in enumerate(sample) if not _is_missing(value)]
    numbers = sum(isinstance(value, Number) for _, value in present)
    if numbers == len(present):
        return "number"
    words = [(i, value) for i, value in present if not _reads_as_number(value)]
    if words and 2 * len(words) < len(present):
        return words[0]
    return "other"


def _is_missing(value: Any) -> bool:
    return check.is_missing(value) or (np.ndim(value) == 0 and bool(value != value))  # NaN


def _reads_as_number(value: Any) -> bool:
    try:
        float(value)
    except (TypeError, ValueError):
        return False
    return True


def _pandas_slice(values: Any, dtype: np.dtype[Any], start: int, column: str | int) -> NDArray[Any]:
    if isinstance(values, np.ndarray) and values.dtype.kind != "O":
        return values if values.dtype.isnative else values.astype(values.dtype.newbyteorder("="))
    if values.dtype.kind in "biuf":
        return np.asarray(values.to_numpy(dtype=dtype, na_value=np.nan))
    objects = np.asarray(values, dtype=object)[:, None]
    return check.as_numbers(objects, dtype, start=start, where=_WHERE, column=lambda _: column)[:, 0]


def open_arrow(table: Any, *, columns_: Any, where: Any, weights: Any, dtype: Any) -> Any:
    """A source over anything with `__arrow_c_stream__`, such as polars and pyarrow tables."""
    if type(table).__name__ == "LazyFrame":
        table = table.collect()
    elif type(table).__name__ == "RecordBatchReader":
        table = table.read_all()
    if where is not None:
        return _filtered(table, columns_=columns_, where=where, weights=weights, dtype=dtype)
    stream = Stream(table.__arrow_c_stream__())
    fields = stream.fields()
    names = check.names([name for name, _ in fields], _WHERE) or ()
    batches = []
    while (batch := stream.next()) is not None:
        batches.append(batch)
    held = BatchList(batches)
    kinds = [_arrow_kind(table, j, form) for j, (_, form) in enumerate(fields)]

    def load(chosen: Sequence[int], start: int, stop: int, dtype: np.dtype[Any]) -> NDArray[Any]:
        parts = [(batch.chosen(list(chosen)), first, last) for batch, first, last in held.parts(start, stop)]
        return rows_of(parts, len(chosen), dtype)

    return _opened(load, held.rows, names, list(names), kinds, columns_=columns_, weights=weights, dtype=dtype)


def _arrow_kind(table: Any, column: int, form: str) -> _Kind:
    if is_number(form):
        return "float32" if form == "f" else "number"
    if form in ("u", "U", "vu") and (sample := _sample(table, column)):
        kind = _text_kind(sample)
        return kind if isinstance(kind, tuple) else "other"
    return "other"


def _sample(table: Any, column: int) -> list[Any]:
    """The first values of a text column, if the library gives cheap access to them."""
    if hasattr(table, "to_series"):  # polars
        return list(table.to_series(column).head(_SAMPLE).to_list())
    if hasattr(table, "column"):  # pyarrow
        return list(table.column(column).slice(0, _SAMPLE).to_pylist())
    return []


def _opened(
    load: _Load,
    n_rows: int,
    names: tuple[str, ...] | None,
    texts: list[str],
    kinds: list[_Kind],
    *,
    columns_: Any,
    weights: Any,
    dtype: Any,
) -> FrameSource:
    """Choose the columns and find the weights, for every kind of data frame."""
    check.not_empty(n_rows, len(kinds), _WHERE)
    weight_at = column_selection.find(weights, names, _WHERE) if isinstance(weights, str) else None
    left_out: tuple[str, ...] = ()
    if column_selection.all_numeric(columns_):
        is_number = [kind != "other" for kind in kinds]
        chosen, left_out = column_selection.numeric(texts, is_number, weight_at, _WHERE)
    else:
        chosen = column_selection.positions(columns_, names, len(kinds), _WHERE)
    for j in chosen if weight_at is None else [*chosen, weight_at]:
        kind, column = kinds[j], check.label(j, names)
        if isinstance(kind, tuple):
            extra = " although most values in its column are"
            check.not_a_number(kind[1], None, where=_WHERE, row=kind[0], column=column, extra=extra)
        if kind == "other":
            raise DataError("this column does not hold numbers", where=_WHERE, row=0, column=column)
    if weight_at is not None:
        found = load([weight_at], 0, n_rows, np.dtype(np.float64))
        weights = found[:, 0]
    asked = check.float_dtype(dtype)
    single = all(kinds[j] == "float32" for j in chosen)
    return FrameSource(
        load,
        n_rows,
        chosen,
        None if names is None else tuple(names[j] for j in chosen),
        left_out,
        asked or (np.dtype(np.float32) if single else np.dtype(np.float64)),
        None if weights is None else check.weights(weights, _WHERE, n_rows),
    )


def _filtered(frame: Any, *, columns_: Any, where: Any, weights: Any, dtype: Any) -> Any:
    """The rows of a data frame selected by an SQL condition, through DuckDB."""
    from foldwise.data.duckdb_source import open_source
    from foldwise.data.tables import of_frame

    if not isinstance(where, str):
        raise DataError("where= for a data frame must be SQL text", where=_WHERE, advice="For a mask, pass frame[mask]")
    return open_source(of_frame(frame), columns_=columns_, where=where, weights=weights, dtype=dtype)
