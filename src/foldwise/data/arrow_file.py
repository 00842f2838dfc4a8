"""Arrow IPC files and streams (.feather, .arrow, .ipc), read batch by batch by pyarrow."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from foldwise.data.duckdb_table import DuckDBTable
from foldwise.data.files import Files
from foldwise.data.reading import Reading
from foldwise.data.scratch_table import ScratchTable, named, rows_per_batch
from foldwise.errors import DataError, MissingDependencyError

_FILE = b"ARROW1"
_OLD = b"FEA1"


def open_table(files: Files, reading: Reading) -> DuckDBTable:
    """The table in an Arrow file or stream."""
    pa = _pyarrow()
    try:
        with _opened(pa, files.paths[0]) as (schema, batches):
            return _written(pa, schema, batches, files, reading)
    except MemoryError:
        raise DataError(
            "a batch of the file does not fit in memory, or its header is damaged",
            where=files.where,
            advice="Write it again, with smaller batches",
        ) from None
    except (pa.ArrowException, OSError, ValueError, KeyError, NotImplementedError) as problem:
        if isinstance(problem, DataError):
            raise
        raise DataError(
            f"not an Arrow file or stream, or damaged ({str(problem).splitlines()[0][:200] if str(problem) else '?'})",
            where=files.where,
            advice="Write or copy it again",
        ) from None


def _pyarrow() -> Any:
    try:
        import pyarrow
        import pyarrow.feather
        import pyarrow.ipc
    except ImportError:
        raise MissingDependencyError(
            "Arrow files are read by pyarrow. Install it: pip install 'foldwise[arrow]'"
        ) from None
    return pyarrow


@contextmanager
def _opened(pa: Any, path: str) -> Iterator[tuple[Any, Iterator[Any]]]:
    """The schema and the batches, one at a time."""
    with pa.OSFile(path) as file:
        magic = file.read(6)
        file.seek(0)
        if magic == _FILE:
            reader = pa.ipc.open_file(file)
            yield reader.schema, (reader.get_batch(i) for i in range(reader.num_record_batches))
        elif magic.startswith(_OLD):
            table = pa.feather.read_table(path, memory_map=False)
            yield table.schema, iter(table.to_batches())
        else:
            reader = pa.ipc.open_stream(file)
            yield reader.schema, iter(reader)


def _written(pa: Any, schema: Any, batches: Iterator[Any], files: Files, reading: Reading) -> DuckDBTable:
    names, notes = named(schema.names, files.where)
    kinds = [_plain(pa, one.type) for one in schema]
    simple = pa.schema([(f"c{j}", kind) for j, kind in enumerate(kinds)])
    types = _sql_types(simple)
    written = ScratchTable(names, types)
    waiting: list[Any] = []
    most, rows = rows_per_batch(len(names)), 0
    for batch in batches:
        batch.validate(full=True)  # offsets beyond the end of a damaged file would be followed
        columns = [
            one if one.type.equals(kind) else one.cast(kind) for one, kind in zip(batch.columns, kinds, strict=True)
        ]
        waiting.append(pa.RecordBatch.from_arrays(columns, schema=simple))
        rows += batch.num_rows
        if rows >= most:
            written.add_from(pa.Table.from_batches(waiting, schema=simple), rows)
            waiting, rows = [], 0
    if rows or not written.parts:
        written.add_from(pa.Table.from_batches(waiting, schema=simple), rows)
    return written.finished(files, partial(open_table, files, reading), notes=tuple(notes))


def _plain(pa: Any, kind: Any) -> Any:
    """The type of a column as DuckDB reads it: values instead of dictionaries, and what it does not know as text."""
    if pa.types.is_dictionary(kind):
        return _plain(pa, kind.value_type)
    if isinstance(kind, pa.BaseExtensionType):
        return _plain(pa, kind.storage_type)
    if pa.types.is_null(kind):
        return pa.string()
    if pa.types.is_float16(kind):
        return pa.float32()
    if pa.types.is_decimal256(kind):
        return pa.float64()
    if pa.types.is_run_end_encoded(kind):
        return _plain(pa, kind.value_type)
    return kind


def _sql_types(schema: Any) -> list[str]:
    from foldwise.data.duckdb_connection import connect

    connection = connect(())
    try:
        return [str(kind) for kind in connection.from_arrow(schema.empty_table()).types]
    finally:
        connection.close()
