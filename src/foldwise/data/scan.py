"""`scan`: the only place that determines what kind of object the data are."""

from __future__ import annotations

import os
import re
from typing import Any

import numpy as np

from foldwise import forks
from foldwise.data.array_files import is_array_file
from foldwise.data.arrays import ArraySource, open_array
from foldwise.data.image_shape import refuse_image_options
from foldwise.data.reading import Reading, reading_options
from foldwise.data.source import Source
from foldwise.errors import DataError, LeftOutWarning, ParameterError, warn

_SQL = re.compile(r"\s*(select|with|from)\s", re.IGNORECASE)


def scan(
    x: Any,
    *,
    columns: Any = None,
    where: Any = None,
    weights: Any = None,
    dtype: Any = None,
    reading: Reading | None = None,
    **options: Any,
) -> Source:
    """Open data of any supported kind for reading in blocks.

    `x` is an array (also sparse, memory-mapped or nested lists), a data frame (pandas, polars, pyarrow, or anything with an
    Arrow stream), a path, pattern or list of paths (text, Parquet, JSON lines, images; one file of .npy, .npz, IDX, Arrow,
    Excel, SQLite or DuckDB; "-" is standard input), a DuckDB relation or SQL text. How files are read is found out, or said by
    options: header, delimiter, decimal, encoding, missing_values, sheet, table, skip, comment, image_size, grey.

    Of images (also a folder of them and its subfolders), each is a row and its pixels are columns, line by line, channels last.
    `image_size=(64, 48)` or "64x48" (width, height) resizes them, grey=True takes colours away. The source has `paths`,
    `image_shape` (height, width[, 3]) and `labels`, the names of the subfolders. Of an array, `image_size` says what its
    columns are; one in a file may be (images, height, width) or (images, height, width, channels).

    `columns` selects columns by name or position (default: all numeric columns).
    `where` selects rows: SQL text for tables and data frames, a mask or row numbers for arrays. `weights` is one
    number per selected row, or the name of a column. A single-use Arrow stream is collected in memory.

    SQL text is one query that only reads; it may read every file that you may read (and, if DuckDB's extensions for that are
    installed, addresses), so do not pass on text of strangers. A `where` for files or a frame sees that table and no other
    file; for a query or relation it cannot contain a sub-query.

    >>> source = scan([[1.0, 2.0], [3.0, 4.0]])
    >>> source.n_rows, source.n_columns, source.dtype
    (2, 2, dtype('float64'))
    """
    given = {"columns_": columns, "where": where, "weights": weights, "dtype": dtype}
    if type(x) is np.ndarray and not options and reading is None and all(value is None for value in given.values()):
        return ArraySource(x)
    source = _opened(x, given, reading_options(reading, options))
    if columns is None and source.left_out and source is not x:
        shown = ", ".join(source.left_out[:5]) + (", ..." if len(source.left_out) > 5 else "")
        warn(
            f"{source.where}: {len(source.left_out)} non-numeric column(s) left out: {shown}. "
            "fw.scan(..., columns='numeric'), or naming the columns there, silences this warning.",
            LeftOutWarning,
        )
    return source


def _opened(x: Any, given: dict[str, Any], reading: Reading) -> Source:
    if isinstance(x, (str, os.PathLike)):
        return _open_text(x, given, reading)
    if isinstance(x, (np.ndarray, list, tuple)):
        if isinstance(x, (list, tuple)) and x and all(isinstance(one, (str, os.PathLike)) for one in x):
            return _open_files(x, given, reading)
        _refuse_missing_values(reading, "an array")
        return open_array(x, reading, **given)
    if isinstance(x, Source):
        refuse_image_options(reading, "a source that is open")
        _refuse_missing_values(reading, "a source that is open")
        if any(value is not None for value in given.values()):
            raise ParameterError("columns, where, weights and dtype can be given only when a source is first opened")
        return x
    return _open_by_library(x, given, reading)


def _refuse_missing_values(reading: Reading, what: str) -> None:
    if reading.missing_values is not None:
        raise ParameterError(
            f"missing_values cannot be said of {what}: put NaN in its cells, or pass a file or a frame."
        )


def is_query(x: Any) -> bool:
    """Whether `x` is SQL text rather than a path."""
    return isinstance(x, str) and _SQL.match(x) is not None


def is_table(x: Any, names: Any = ()) -> bool:
    """Whether `x` refers to a table (files, a query) whose columns can be selected by name before anything is read.

    Those of arrays and images can if `names` are positions, as when a model was fitted to some columns of such a file.
    """
    if is_query(x):
        return True
    if isinstance(x, (str, os.PathLike)):
        return not is_array_file(x) or (len(names) > 0 and all(str(name).isdecimal() for name in names))
    listed = isinstance(x, (list, tuple)) and bool(x) and all(isinstance(one, (str, os.PathLike)) for one in x)
    return listed and not is_array_file(x)


def is_table_or_frame(x: Any) -> bool:
    """Whether `x` is a table with columns of any kind: files, SQL text, a relation or a frame, but not an array."""
    if isinstance(x, (np.ndarray, Source)):
        return False
    if isinstance(x, (str, os.PathLike, list, tuple)):
        return is_table(x)
    if is_dask(x):  # its parts are not here
        return False
    return type(x).__name__ == "LazyFrame" or any(
        hasattr(x, way) for way in ("iloc", "__arrow_c_stream__", "sql_query")
    )


def is_dask(x: Any) -> bool:
    """Whether `x` is a collection of Dask, told without importing it."""
    return bool(_homes(x) & {"dask", "dask_expr"}) and hasattr(x, "to_delayed")


def _homes(x: Any) -> set[str]:
    return {str(base.__module__).partition(".")[0] for base in type(x).__mro__}


def _open_text(x: Any, given: dict[str, Any], reading: Reading) -> Source:
    if is_query(x):
        refuse_image_options(reading, "a query")
        return _table_source("of_query", x, given, reading)
    if isinstance(x, str) and "://" in x:
        raise DataError("only local files can be read by path", where=x, advice="Try SQL text: SELECT * FROM 'address'")
    return _open_files(x, given, reading)


def _open_files(x: Any, given: dict[str, Any], reading: Reading) -> Source:
    from foldwise.data import files

    found = files.find(x)
    if found.kind == "npy":
        from foldwise.data.npy import open_npy

        _refuse_missing_values(reading, "an array")
        return open_npy(found.paths[0], reading, **given)
    if found.kind == "image":
        from foldwise.data.image_folder import open_images

        return open_images(found, reading, **given)
    if found.kind == "idx":
        from foldwise.data.idx_file import open_idx

        return open_idx(found.paths[0], reading, **given)
    if found.kind == "npz":
        from foldwise.data.npz_images import holds_images, open_npz_images

        if holds_images(found.paths[0], reading.table):
            return open_npz_images(found.paths[0], reading, **given)
    return _table_source("of_files", found, given, reading)


def _table_source(way: str, x: Any, given: dict[str, Any], *reading: Reading) -> Source:
    """A source over a table; the modules that read tables are imported on first use."""
    with forks.importing:
        from foldwise.data import duckdb_source, tables, typed_text
    table = getattr(tables, way)(x, *reading)
    return duckdb_source.open_source(typed_text.typed_text(table), **given)


def _open_by_library(x: Any, given: dict[str, Any], reading: Reading) -> Source:
    """Recognise a library by the module of the object's class, without importing the library."""
    homes = _homes(x)
    if reading.missing_values is not None and "scipy" not in homes and is_table_or_frame(x):
        with forks.importing:
            from foldwise.data import duckdb_source, tables
        return duckdb_source.open_source(tables.open_table(x, reading), **given)
    _refuse_missing_values(reading, f"data of type {type(x).__name__}")
    if not hasattr(x, "__array__") or is_table_or_frame(x) or is_dask(x):
        refuse_image_options(reading, f"data of type {type(x).__name__}")
    if "scipy" in homes and hasattr(x, "tocsr"):
        from foldwise.data.sparse import open_sparse

        return open_sparse(x, **given)
    if is_dask(x):
        from foldwise.data.dask import open_dask

        return open_dask(x, **given)
    if homes & {"duckdb", "_duckdb"} and hasattr(x, "project"):
        return _table_source("of_relation", x, given)
    if "pandas" in homes and hasattr(x, "iloc") and getattr(x, "ndim", 0) == 2:
        from foldwise.data.frames import open_pandas

        return open_pandas(x, **given)  # type: ignore[no-any-return]
    if type(x).__name__ == "LazyFrame" or (
        hasattr(x, "__arrow_c_stream__") and getattr(x, "ndim", 2) == 2 and type(x).__name__ != "Series"
    ):
        from foldwise.data.frames import open_arrow

        return open_arrow(x, **given)  # type: ignore[no-any-return]
    if any(hasattr(x, way) for way in ("__array__", "__array_interface__", "__buffer__", "__dlpack__")) or np.isscalar(
        x
    ):
        return open_array(x, reading, **given)
    if hasattr(x, "__next__"):
        raise DataError(
            "a generator can be read only once, but several passes may be needed",
            where=type(x).__name__,
            advice="Collect it (numpy.vstack) or write it to a file first",
        )
    raise DataError(
        f"data of type {type(x).__module__}.{type(x).__qualname__} are not understood",
        advice="Pass an array, a data frame, a sparse matrix, a path, a DuckDB relation or SQL text",
    )
