"""A table of a DuckDB database file, attached for reading only, with access to no other file."""

from __future__ import annotations

import os
from typing import Any, NoReturn

import duckdb

from foldwise.data import check
from foldwise.data.duckdb_connection import ATTACHED, Database
from foldwise.data.duckdb_sql import Column, quoted
from foldwise.data.duckdb_table import DuckDBTable
from foldwise.data.files import Files
from foldwise.data.notes import Note
from foldwise.data.reading import Reading
from foldwise.data.scratch_table import chosen_name
from foldwise.errors import DataError


def open_table(files: Files, reading: Reading) -> DuckDBTable:
    """The table that was asked for, or the largest."""
    path = os.path.abspath(files.paths[0])
    database = Database((path, f"{path}.wal"), attach=path)
    try:
        return _opened(database, files, reading)
    except duckdb.Error as problem:
        _explain(problem, files.where)


def _opened(database: Database, files: Files, reading: Reading) -> DuckDBTable:
    tables = _listed(database, "duckdb_tables()", "table_name, estimated_size")
    views = _listed(database, "duckdb_views()", "view_name, -1")
    place = tables | {name: at for name, at in views.items() if name not in tables}
    if not place:
        raise DataError("the database has no table", where=files.where)
    notes: tuple[Note, ...] = ()
    if reading.table is not None:
        chosen = chosen_name(reading.table, list(place), "table", files.where)
    else:
        chosen = max(place, key=lambda name: place[name][2])
        if len(place) > 1:
            shown = ", ".join(tables) + (f"; views: {', '.join(views)}" if views else "")
            notes = (Note("several-tables", f"{len(tables)} table(s): {shown}; read: {chosen}"),)
    schema, name, _ = place[chosen]
    sql = f"FROM {ATTACHED}.{quoted(schema)}.{quoted(name)}"
    relation: Any = database.cursor().sql(sql)
    names = check.names(list(relation.columns), files.where) or ()
    columns = tuple(Column(name, name, str(kind)) for name, kind in zip(names, relation.types, strict=True))
    n_rows = int(relation.aggregate("count(*)").fetchall()[0][0])
    database.seal()
    key = f"table={chosen!r}"
    return DuckDBTable(files.where, database, columns, sql=sql, files=files, notes=notes, key=key, n_rows=n_rows)


def _listed(database: Database, function: str, about: str) -> dict[str, tuple[str, str, int]]:
    """Schema, name and size of tables or views, by what users call them."""
    rows = database.query(
        f"SELECT schema_name, {about} FROM {function} WHERE database_name = '{ATTACHED}' AND NOT internal ORDER BY ALL"
    )
    return {
        (name if schema == "main" else f"{schema}.{name}"): (schema, name, int(size)) for schema, name, size in rows
    }


def _explain(problem: Exception, where: str) -> NoReturn:
    text = str(problem).strip()
    first = text.splitlines()[0] if text else type(problem).__name__
    if "lock" in text.lower():
        raise DataError("the database is in use by another program", where=where, advice="Close it there") from None
    if "Permission Error" in text:
        raise DataError(
            f"the view reads other files, which is not done here ({first})", where=where, advice="Name another table"
        ) from None
    if "newer" in text or "version number" in text:
        raise DataError(f"written by another version of DuckDB ({first})", where=where) from None
    if "Catalog Error" in text or "Binder Error" in text:
        raise DataError(f"the table cannot be read ({first})", where=where, advice="Name another table") from None
    raise DataError(f"not a DuckDB database, or damaged ({first})", where=where, advice="Copy it again") from None
