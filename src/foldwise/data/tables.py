"""`open_table`: anything with rows and named columns as a table of DuckDB, before columns are chosen."""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import duckdb

from foldwise import forks
from foldwise.data import check, duckdb_sql, file_errors, parquet_files, sql_rights
from foldwise.data import files as found_files
from foldwise.data.duckdb_connection import Database, bound_parquet_memory, duckdb_errors, memory_for
from foldwise.data.duckdb_sql import Column
from foldwise.data.duckdb_table import DuckDBTable, relation_of
from foldwise.data.files import COMPRESSIONS, Files
from foldwise.data.image_shape import refuse_image_options
from foldwise.data.missing_numbers import as_said
from foldwise.data.notes import Note
from foldwise.data.reading import FOUND_OUT, Reading
from foldwise.data.scan import is_dask, is_query
from foldwise.data.text_table import text_table
from foldwise.errors import DataError
from foldwise.kernels.arrow import Stream

_LONGEST_LINE = 1 << 24  # bytes


def _own(module: str) -> Callable[[Files, Reading], DuckDBTable]:
    """The reader of a format that DuckDB does not read by itself, whose module is imported on first use."""

    def opened(files: Files, reading: Reading) -> DuckDBTable:
        with forks.importing:
            found = importlib.import_module(f"foldwise.data.{module}")
        try:
            return found.open_table(files, reading)  # type: ignore[no-any-return]
        except duckdb.Error as problem:  # values that even a sound file cannot hold
            text = str(problem).strip().splitlines()[0]
            raise DataError(
                f"cannot be read ({text})", where=files.where, advice="Write it as CSV or Parquet"
            ) from None

    return opened


_OWN = {
    "excel": _own("excel"),
    "sqlite": _own("sqlite_file"),
    "duckdb": _own("duckdb_file"),
    "arrow": _own("arrow_file"),
    "npz": _own("numpy_file"),
    "npy": _own("numpy_file"),
}


def open_table(x: Any, reading: Reading = FOUND_OUT) -> DuckDBTable:
    """The table behind a path, a pattern, a list of paths, SQL text, a DuckDB relation or a data frame."""
    if is_query(x):
        return of_query(x, reading)
    if isinstance(x, (str, os.PathLike)):
        if isinstance(x, str) and "://" in x:
            advice = "Try SQL text: SELECT * FROM 'address'"
            raise DataError("only local files can be read by path", where=x, advice=advice)
        return of_files(found_files.find(x), reading)
    if isinstance(x, (list, tuple)) and x and all(isinstance(one, (str, os.PathLike)) for one in x):
        return of_files(found_files.find(x), reading)
    if hasattr(x, "sql_query") and hasattr(x, "project"):
        return of_relation(x, reading)
    if is_dask(x):
        raise DataError(
            "columns of a Dask collection cannot be judged, since its parts are not here",
            where="Dask collection",
            advice="Pass x.compute(), or the files behind it; columns that are all numbers can be fitted as they are",
        )
    if type(x).__name__ == "LazyFrame":
        x = x.collect()
    elif type(x).__name__ == "RecordBatchReader":
        x = x.read_all()
    if hasattr(x, "iloc") or hasattr(x, "__arrow_c_stream__"):
        return of_frame(x, reading)
    raise DataError(
        f"data of type {type(x).__module__}.{type(x).__qualname__} are no table",
        advice="Pass a data frame, a path, a DuckDB relation or SQL text",
    )


def of_files(files: Files, reading: Reading = FOUND_OUT) -> DuckDBTable:
    """Files of any format."""
    if files.kind in ("image", "idx"):
        raise DataError(
            "images and arrays of them have no columns with names to be prepared or queried",
            where=files.where,
            advice="fw.scan opens them, and every model takes them by their path",
        )
    refuse_image_options(reading, f"the table {files.where}")
    if files.kind in _OWN:
        return as_said(_with_nested(_OWN[files.kind](files, reading)), reading)
    database = Database(files.paths, memory=_memory_for_text(files))
    if files.kind == "csv":
        return _of_text(files, reading, database)
    try:
        reader = duckdb_sql.reader(files, database.query)
    except duckdb.Error as problem:
        file_errors.explain(files, problem)
    n_rows, pages = None, None
    if files.kind == "parquet":
        try:
            about = parquet_files.metadata(files.paths, database.query)
            n_rows, pages = about.n_rows, about.files
            bound_parquet_memory(about.groups, about.largest, len(reader.columns), database)
        except duckdb_errors() as problem:
            file_errors.explain(files, problem)
    database.seal()
    table = DuckDBTable(
        files.where,
        database,
        reader.columns,
        sql=f"FROM {reader.clause(files.paths)}",
        named=reader.named,
        files=files,
        reader=reader,
        n_rows=n_rows,
        pages=pages,
    )
    return as_said(_with_nested(table), reading)


def _memory_for_text(files: Files) -> str | None:
    """The memory limit for text files, by the number of columns that the longest of the first lines may have."""
    if files.kind == "parquet":
        return None
    width = 0
    for path in files.paths[:1]:
        if not path.lower().endswith(COMPRESSIONS):
            try:
                with open(path, "rb") as file:
                    line = file.readline(_LONGEST_LINE)
            except OSError as problem:
                raise DataError(
                    f"the file cannot be read: {problem.strerror}",
                    where=path,
                    advice="Ask its owner for the right to read it",
                ) from problem
            width = max(line.count(mark) for mark in (b",", b";", b"\t", b"|", b" "))
    return memory_for(width, 8)


def _with_nested(table: DuckDBTable) -> DuckDBTable:
    """The table with a note about columns of lists and objects."""
    nested = [c.name for c in table.columns if c.is_nested]
    if not nested:
        return table
    text = f"lists or objects, of no use as they are: {', '.join(nested)}"
    return replace(table, notes=(*table.notes, Note("nested", text)))


def _of_text(files: Files, reading: Reading, database: Database) -> DuckDBTable:
    found = text_table(files, reading, database)
    database.seal()
    typed = found.typed()
    return DuckDBTable(
        files.where,
        database,
        typed.columns,
        named=typed.named,
        files=files,
        reader=typed,
        notes=found.notes,
        layout=found.layout.sentence,
        reading=reading,
    )


def of_query(text: str, reading: Reading = FOUND_OUT) -> DuckDBTable:
    """The rows of a query: one statement, which may read whatever the user may, and writes nothing."""
    database = Database()
    try:
        sql_rights.check_query(text, Database(files=()).query)
        database.seal()  # functions that change settings, such as where logs go, could write files
        found = _columns_of(database.cursor().sql(text), "SQL query")
    except duckdb.Error as problem:
        raise DataError(str(problem).strip(), where="SQL query") from None
    return as_said(DuckDBTable("SQL query", database, found, sql=text, confined=False, key=text), reading)


def of_relation(relation: Any, reading: Reading = FOUND_OUT) -> DuckDBTable:
    """A DuckDB relation, read through its own connection."""
    found = _columns_of(relation, "DuckDB relation")
    database = Database(files=())
    key = relation.sql_query()
    table = DuckDBTable("DuckDB relation", database, found, object=relation, confined=False, key=key)
    return as_said(table, reading)


def of_frame(frame: Any, reading: Reading = FOUND_OUT) -> DuckDBTable:
    """A data frame of pandas, polars, or anything with an Arrow stream that can be read more than once."""
    if hasattr(frame, "iloc"):
        frame = _without_sparse_columns(frame)
    database = Database(files=())
    database.seal()
    try:
        found = _columns_of(relation_of(frame, database), "data frame")
    except duckdb.Error as problem:
        raise DataError(
            f"DuckDB cannot read this frame ({problem})",
            where="data frame",
            advice="Leave out the column that it names, or select the rows first: frame[mask]",
        ) from None
    own = list(frame.columns) if hasattr(frame, "iloc") else _arrow_names(frame)
    named = check.names(own, "data frame") is not None
    if named and len(own) == len(found):  # DuckDB renames one of two names that differ only by case
        found = tuple(Column(name, column.sql, column.type) for name, column in zip(own, found, strict=True))
    return as_said(DuckDBTable("data frame", database, found, object=frame, named=named), reading)


def _columns_of(relation: Any, where: str) -> tuple[Column, ...]:
    names = check.names(list(relation.columns), where) or ()
    return tuple(Column(name, name, str(kind)) for name, kind in zip(names, relation.types, strict=True))


def _arrow_names(frame: Any) -> list[str]:
    return [name for name, _ in Stream(frame.__arrow_c_stream__()).fields()]


def _without_sparse_columns(frame: Any) -> Any:
    """The same pandas frame with sparse columns made dense, since DuckDB does not read them."""
    for j, dtype in enumerate(frame.dtypes):
        if type(dtype).__name__ == "SparseDtype":
            frame = frame.copy(deep=False)
            frame.isetitem(j, frame.iloc[:, j].sparse.to_dense())
    return frame
