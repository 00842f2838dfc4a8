"""A table of an SQLite database, read by Python's own sqlite3, which SQLite's free typing of cells needs."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from typing import Any, NoReturn
from urllib.parse import quote

from foldwise.data import cells
from foldwise.data.duckdb_sql import quoted
from foldwise.data.duckdb_table import DuckDBTable
from foldwise.data.excel import cell_notes
from foldwise.data.files import Files
from foldwise.data.notes import Note
from foldwise.data.reading import Reading
from foldwise.data.scratch_table import ScratchTable, chosen_name, named, rows_per_batch
from foldwise.errors import DataError

_COUNTED = 400  # columns in one query; a result of SQLite has at most 2000


def open_table(files: Files, reading: Reading) -> DuckDBTable:
    """The table that was asked for, or the largest."""
    try:
        return _tried(files, reading, None)
    except (sqlite3.Error, UnicodeError, OverflowError) as problem:
        _explain(problem, files.where)


def _tried(files: Files, reading: Reading, text: _Text | None) -> DuckDBTable:
    with closing(_connect(files.paths[0])) as base:
        if text is not None:
            base.text_factory = text
        try:
            return _read(base, files, reading, text)
        except sqlite3.OperationalError as problem:
            if text is not None or "decode" not in str(problem):
                raise
    return _tried(files, reading, _Text())


def _connect(path: str) -> sqlite3.Connection:
    """The database, opened so that nothing is written, beside it neither."""
    # A journal beside the file holds changes that only a normal connection sees; without one there is nothing to lock.
    pending = any(os.path.exists(path + end) and os.path.getsize(path + end) for end in ("-wal", "-journal"))
    address = f"file:{quote(os.path.abspath(path))}?mode=ro" + ("" if pending else "&immutable=1")
    base = sqlite3.connect(address, uri=True, check_same_thread=False)
    base.execute("PRAGMA trusted_schema = OFF")
    base.execute("PRAGMA cell_size_check = ON")
    return base


class _Text:
    """Turns bytes into text; old programs wrote other bytes than UTF-8, which SQLite keeps as they are."""

    def __init__(self) -> None:
        self.odd, self.example = False, ""

    def __call__(self, text: bytes) -> str:
        try:
            return text.decode("utf-8")
        except UnicodeDecodeError:
            found = text.decode("latin-1")
            if not self.odd:
                self.odd, self.example = True, found[:30]
            return found


def _read(base: sqlite3.Connection, files: Files, reading: Reading, text: _Text | None) -> DuckDBTable:
    tables, views = _listed(base)
    table, notes = _choice(base, tables, views, reading, files.where)
    given = [row[0] for row in base.execute(f"SELECT * FROM {quoted(table)} LIMIT 0").description]
    names, made_up = named(given, files.where)
    tokens = cells.MISSING | {token.strip().lower() for token in reading.missing_values or ()}
    seen = _censuses(base, table, given, tokens)
    types = [census.type for census in seen]
    quick = [cells.is_plain(census) for census in seen]
    written = ScratchTable(names, types)
    for rows in _batches(base, quoted(table), "*", len(names)):
        columns = zip(*rows, strict=True)
        written.add(
            [
                cells.plain_column(values, kind) if plain else cells.column(values, kind)
                for values, kind, plain in zip(columns, types, quick, strict=True)
            ]
        )
    if text is not None and text.odd:
        notes.append(Note("encoding", f"cells that are not UTF-8 were read as Latin-1, such as {text.example!r}"))
    return written.finished(
        files,
        partial(open_table, files, reading),
        notes=(*notes, *made_up, *cell_notes(names, seen)),
        key=f"table={table!r}",
    )


def _listed(base: sqlite3.Connection) -> tuple[list[str], list[str]]:
    """The names of the tables and of the views, without those of SQLite itself and the parts of its text index."""
    rows = base.execute(
        "SELECT type, name FROM sqlite_master WHERE type IN ('table', 'view') ORDER BY rowid"
    ).fetchall()
    own = [(kind, name) for kind, name in rows if not name.lower().startswith("sqlite_")]
    return [name for kind, name in own if kind == "table"], [name for kind, name in own if kind == "view"]


def _choice(
    base: sqlite3.Connection, tables: list[str], views: list[str], reading: Reading, where: str
) -> tuple[str, list[Note]]:
    if reading.table is not None:
        return chosen_name(reading.table, [*tables, *views], "table", where), []
    if not tables and len(views) != 1:
        shown = f"only the views {', '.join(views)}" if views else "no table"
        raise DataError(f"the database has {shown}", where=where, advice="Name a view: table='...'" if views else None)
    if len(tables) + len(views) == 1:
        return (tables or views)[0], []
    count = {name: base.execute(f"SELECT count(*) FROM {quoted(name)}").fetchone()[0] for name in tables}
    best = max(tables, key=lambda name: count[name])
    shown = ", ".join(f"{name} ({count[name]} rows)" for name in tables)
    also = f"; views: {', '.join(views)}" if views else ""
    return best, [Note("several-tables", f"{len(tables)} table(s): {shown}{also}; read: {best}")]


def _censuses(base: sqlite3.Connection, table: str, names: list[str], tokens: frozenset[str]) -> list[cells.Census]:
    """What the cells of each column hold: counted by SQLite, and looked at one by one only where text is among numbers."""
    seen = []
    for at in range(0, len(names), _COUNTED):
        some = names[at : at + _COUNTED]
        counts = ", ".join(
            f"sum(typeof({quoted(name)}) = '{kind}')" for name in some for kind in ("integer", "real", "text", "blob")
        )
        row = [value or 0 for value in base.execute(f"SELECT {counts} FROM {quoted(table)}").fetchone()]
        for j in range(len(some)):
            integers, reals, texts, blobs = row[4 * j : 4 * j + 4]
            census = cells.Census(tokens, integers + reals + texts + blobs, integers, reals, words=texts + blobs)
            if texts and integers + reals:
                census = cells.Census(tokens)
                for rows in _batches(base, quoted(table), quoted(some[j]), 1):
                    census.update(value for (value,) in rows)
            elif blobs and not texts and not integers + reals:
                census.mixed = True  # bytes, that are shown as text
            seen.append(census)
    return seen


def _batches(base: sqlite3.Connection, table: str, columns: str, width: int) -> Iterator[list[tuple[Any, ...]]]:
    cursor = base.execute(f"SELECT {columns} FROM {table}")
    while rows := cursor.fetchmany(rows_per_batch(width)):
        yield rows


def _explain(problem: Exception, where: str) -> NoReturn:
    text = str(problem)
    if "locked" in text or "busy" in text:
        raise DataError("the database is in use by another program", where=where, advice="Try again later") from None
    if "no such" in text:  # of a view, or of a table that needs an extension
        raise DataError(f"the table cannot be read ({text})", where=where, advice="Name another table") from None
    raise DataError(
        f"not an SQLite database, or damaged ({text})",
        where=where,
        advice="Copy it again; the program sqlite3 can save what is left with .recover",
    ) from None
