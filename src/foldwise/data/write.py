"""Writing blocks of rows to a file that appears only when it is complete."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Collection, Sequence
from types import TracebackType
from typing import Any, BinaryIO, Protocol

import numpy as np
from numpy.typing import NDArray

from foldwise.data import scratch
from foldwise.data.atomic import Replacement, explained
from foldwise.data.duckdb_connection import duckdb_errors, literal
from foldwise.data.duckdb_sql import quoted
from foldwise.data.files import output_format_of
from foldwise.errors import DataError


class _Format(Protocol):
    def write(self, rows: NDArray[Any]) -> None: ...
    def finish(self) -> None: ...
    def close(self) -> None: ...


class Beside(Protocol):
    """Columns of any type that go before those that are written, in as many rows and in the same order."""

    @property
    def names(self) -> Sequence[str]:
        """Their names."""

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        """The columns as an Arrow stream."""

    def fall_back(self, problem: Exception) -> bool:
        """After an error of the stream: whether a new one is worth a try."""


def open_writer(path: str | os.PathLike[str], names: Sequence[str], dtype: Any, beside: Beside | None = None) -> Writer:
    """A writer to .parquet, .csv (or .csv.gz), .jsonl or .npy, to be used in a `with` statement.

    With a structured dtype, each field is a column of its own type, and rows are passed as structured arrays. A .npy file has
    numbers only, so that nothing goes `beside` them there.
    """
    return Writer(path, names, dtype, beside)


def unused(name: str, taken: Collection[str]) -> str:
    """The name with an underscore or more added while another column has it, whatever the case.

    >>> unused("cluster", ["Cluster", "id"])
    'cluster_'
    """
    return name if name.lower() not in {one.lower() for one in taken} else unused(name + "_", taken)


class Writer:
    """Writes blocks of rows; the file appears under its name when the `with` block succeeds, and not before."""

    def __init__(
        self, path: str | os.PathLike[str], names: Sequence[str], dtype: Any, beside: Beside | None = None
    ) -> None:
        self.path = os.path.expanduser(os.fspath(path))
        self.rows = 0
        self._names, self._dtype, self._kind = list(names), np.dtype(dtype), output_format_of(self.path)
        self._beside = None if self._kind == "npy" else beside
        if self._beside is not None:
            self._names = [unused(name, self._beside.names) for name in self._names]
        self._format: _Format | None = None
        if not names:
            raise DataError("there is no column to write", where=self.path)
        if len({name.lower() for name in names}) < len(names) and self._kind != "npy":
            # DuckDB would rename the duplicate
            raise DataError(f"two of the columns {list(names)} have the same name, ignoring case", where=self.path)
        self._new: Replacement | None = None
        self._errors = () if self._kind == "npy" else duckdb_errors()

    def __enter__(self) -> Writer:
        self._new = new = Replacement(self.path)
        try:
            with explained(self.path, *self._errors):
                if self._kind == "npy":
                    self._format = _Npy(new.temporary, len(self._names), self._dtype)
                else:
                    self._format = _Table(new.temporary, self.path, self._kind, self._names, self._dtype, self._beside)
        except BaseException:
            new.close()
            raise
        return self

    def write(self, rows: NDArray[Any]) -> None:
        """Append rows."""
        if self._format is None:
            raise RuntimeError("a Writer must be used in a with statement")
        fits = rows.ndim == 1 if self._dtype.names else rows.ndim == 2 and rows.shape[1] == len(self._names)
        if not fits:
            raise ValueError(f"rows of shape {rows.shape} do not fit {len(self._names)} columns")
        with explained(self.path, *self._errors):
            self._format.write(rows)
        self.rows += len(rows)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._format is not None
        assert self._new is not None
        try:
            with explained(self.path, *self._errors):
                try:
                    if kind is None:
                        self._format.finish()
                finally:
                    self._format.close()
                if kind is None:
                    self._new.settle()
        finally:
            self._format = None
            self._new.close()


class _Npy:
    """A .npy file; NumPy reserves space in the header for the number of rows, which is known only at the end."""

    def __init__(self, path: str, n_columns: int, dtype: np.dtype[Any]) -> None:
        self._file: BinaryIO = open(path, "wb")  # noqa: SIM115
        self._n_columns, self._dtype, self._rows = n_columns, dtype, 0
        self._header()
        self._start = self._file.tell()

    def _header(self) -> None:
        shape = (self._rows,) if self._dtype.names else (self._rows, self._n_columns)
        described = {"descr": np.lib.format.dtype_to_descr(self._dtype), "fortran_order": False, "shape": shape}
        np.lib.format.write_array_header_1_0(self._file, described)

    def write(self, rows: NDArray[Any]) -> None:
        self._file.write(np.ascontiguousarray(rows, dtype=self._dtype).reshape(-1).view(np.uint8).data)
        self._rows += len(rows)

    def finish(self) -> None:
        self._file.seek(0)
        self._header()
        if self._file.tell() != self._start:
            raise RuntimeError("the .npy header does not fit its reserved space")

    def close(self) -> None:
        self._file.close()


def _sql_type(dtype: np.dtype[Any]) -> str:
    if dtype.kind in "iu":
        return "INTEGER" if dtype.itemsize < 8 else "BIGINT"
    return "FLOAT" if dtype == np.float32 else "DOUBLE"


_COPY = {"parquet": "FORMAT parquet", "csv": "FORMAT csv, HEADER true", "json": "FORMAT json"}
_MEMORY = "256MB"  # for rows that wait to be written; more are in the scratch file
_INSERT_BYTES = 16 << 20  # each insert has a fixed cost, so small blocks are collected


def _selection(kind: str, names: Sequence[str], cells: Sequence[str], table: str) -> tuple[str, str]:
    """The query whose rows are written, and the format for COPY.

    DuckDB would rename one of two columns whose names differ only by case, so that those of text are written as cells. In a
    Parquet file, which DuckDB reads without regard to case as well, the second gets an underscore.
    """
    clash = len({name.lower() for name in names}) < len(names)
    if clash and kind == "csv":
        header = ", ".join(literal(name) for name in names)
        texts = ", ".join(f"CAST({cell} AS VARCHAR)" for cell in cells)
        return f"SELECT {header} UNION ALL SELECT {texts} FROM {table}", "FORMAT csv, HEADER false"
    if clash and kind == "json":
        pairs = ", ".join(f"{literal(name)}, {cell}" for name, cell in zip(names, cells, strict=True))
        plainly = "FORMAT csv, HEADER false, QUOTE '', ESCAPE '', DELIMITER '\x01'"  # which JSON does not contain
        return f"SELECT json_object({pairs}) FROM {table}", plainly
    told: list[str] = []
    for name in names:
        told.append(unused(name, told) if clash else name)
    shown = ", ".join(f"{cell} AS {quoted(name)}" for cell, name in zip(cells, told, strict=True))
    return f"SELECT {shown} FROM {table}", _COPY[kind]


class _Table:
    """Rows collected in a DuckDB table on disk and exported at the end, since Parquet files cannot be appended to."""

    def __init__(
        self,
        part: str,
        path: str,
        kind: str,
        names: Sequence[str],
        dtype: np.dtype[Any],
        beside: Beside | None = None,
    ) -> None:
        from foldwise.data.duckdb_connection import connect

        self._folder = tempfile.TemporaryDirectory(prefix="rows-", dir=scratch.folder())
        self._part, self._kind, self._names, self._dtype, self._beside = part, kind, names, dtype, beside
        self._rows = 0
        self._waiting: list[NDArray[Any]] = []
        self._compressed = path.lower().endswith(".gz")
        self._tab = path.lower().removesuffix(".gz").endswith(".tsv")
        self._connection = connect(memory=_MEMORY)
        self._connection.execute(f"ATTACH {literal(os.path.join(self._folder.name, 'rows.db'))} AS scratch")
        kinds = [dtype[j] for j in range(len(names))] if dtype.names else [dtype] * len(names)
        columns = ", ".join(f"c{j} {_sql_type(kind)}" for j, kind in enumerate(kinds))
        self._connection.execute("BEGIN")  # one transaction: committing each block would cost a sync each
        self._connection.execute(f"CREATE TABLE scratch.main.rows ({columns})")

    def write(self, rows: NDArray[Any]) -> None:
        self._waiting.append(np.array(rows, dtype=self._dtype))  # a copy: the caller may reuse the block
        if sum(block.nbytes for block in self._waiting) >= _INSERT_BYTES:
            self._insert()

    def _insert(self) -> None:
        if not self._waiting:
            return
        rows = np.concatenate(self._waiting)
        self._rows += len(rows)
        columns = [rows[name] for name in self._dtype.names] if self._dtype.names else list(rows.T)
        self._waiting = []
        self._connection.register("block", {f"c{j}": np.ascontiguousarray(column) for j, column in enumerate(columns)})
        self._connection.execute("INSERT INTO scratch.main.rows FROM block")
        self._connection.unregister("block")

    def finish(self) -> None:
        self._insert()
        options = ", USE_TMP_FILE false"  # the file is a temporary one already
        if self._kind != "parquet":
            options += f", COMPRESSION {'gzip' if self._compressed else 'none'}"
        if self._tab:
            options += ", DELIMITER '\t'"
        # NaN, where a cell is missing, is an empty cell of a text file and a NULL.
        kinds = (
            [self._dtype[j] for j in range(len(self._names))] if self._dtype.names else [self._dtype] * len(self._names)
        )
        cells = [f"nullif(c{j}, 'NaN')" if kind.kind == "f" else f"c{j}" for j, kind in enumerate(kinds)]
        names, table = list(self._names), "scratch.main.rows"
        if self._beside is not None:
            own = list(self._beside.names)
            self._take_beside(len(own))
            names, cells = own + names, [f"b{j}" for j in range(len(own))] + cells
            table = f"scratch.main.beside POSITIONAL JOIN {table}"
        select, form = _selection(self._kind, names, cells, table)
        self._connection.execute(f"COPY ({select}) TO {literal(self._part)} ({form}{options})")

    def _take_beside(self, n_columns: int) -> None:
        """Keep the columns that go beside the rows, too, since joining by position needs two tables."""
        assert self._beside is not None
        self._connection.execute("COMMIT")  # an error of the stream would undo the rows as well
        while not self._taken(self._beside, n_columns):
            pass  # from the start, in another way
        count = self._connection.execute("SELECT count(*) FROM scratch.main.beside").fetchall()[0][0]
        if count != self._rows:
            raise DataError(
                f"the data have {count} rows now, and had {self._rows} when they were used",
                advice="A query must give the same rows each time: write its result to a file first",
            )

    def _taken(self, beside: Beside, n_columns: int) -> bool:
        given = self._connection.from_arrow(beside)
        listed = ", ".join(f"{quoted(name)} AS b{j}" for j, name in enumerate(given.columns[:n_columns]))
        self._connection.register("given", given)
        try:
            self._connection.execute(f"CREATE TABLE scratch.main.beside AS SELECT {listed} FROM given")
        except duckdb_errors() as problem:
            if not beside.fall_back(problem):
                raise
            return False
        finally:
            self._connection.unregister("given")
        return True

    def close(self) -> None:
        self._connection.close()
        self._folder.cleanup()
