"""A table whose file DuckDB does not read itself: its rows are written once, batch by batch, to scratch Parquet files.

Memory holds one batch; all passes then read Parquet. Every error of the file shows when the table is opened.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from foldwise.data import check, scratch
from foldwise.data.atomic import explained
from foldwise.data.duckdb_connection import Database, connect, literal, memory_for
from foldwise.data.duckdb_sql import Column, quoted
from foldwise.data.duckdb_table import DuckDBTable
from foldwise.data.files import Files
from foldwise.data.notes import Note
from foldwise.errors import DataError

_CELLS = 2_000_000  # in a batch


class ScratchFolder:
    """A folder that is removed with the last table that reads from it."""

    def __init__(self) -> None:
        self.path, self._process = tempfile.mkdtemp(dir=scratch.folder()), os.getpid()

    def __del__(self) -> None:
        if self._process == os.getpid():  # a forked child does not remove what its parent reads
            shutil.rmtree(self.path, ignore_errors=True)


def rows_per_batch(width: int) -> int:
    """How many rows a batch of a table with `width` columns has."""
    return max(1024, min(_CELLS // max(width, 1), 1 << 17))


def unique_sql(names: Sequence[str]) -> list[str]:
    """Names that DuckDB can tell apart, although it ignores case: the same names wherever possible."""
    used: set[str] = set()
    found = []
    for name in names:
        made, k = name, 1
        while made.lower() in used:
            made, k = f"{name}_{k}", k + 1
        used.add(made.lower())
        found.append(made)
    return found


@dataclass
class ScratchTable:
    """Rows on their way to scratch files; `names` and `types` (of SQL) describe the columns."""

    names: Sequence[str]
    types: Sequence[str]
    folder: ScratchFolder = field(default_factory=ScratchFolder)
    n_rows: int = 0
    parts: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._sql = unique_sql(self.names)
        self._connection: Any = None

    def add(self, columns: Sequence[NDArray[Any]]) -> None:
        """Append a batch, given as one array for each column; masked cells are NULL."""
        self.add_from({f"c{j}": column for j, column in enumerate(columns)}, len(columns[0]))

    def add_from(self, batch: Any, n_rows: int) -> None:
        """Append a batch that DuckDB can read: arrays by name, or an Arrow table; its columns are named c0, c1, ..."""
        if n_rows == 0 and self.parts:
            return
        if self._connection is None:
            # The rows of a batch are in memory anyway, so that they are the measure of what DuckDB needs.
            self._connection = connect(memory=memory_for(len(self.types), 4))
        part = os.path.join(self.folder.path, f"{len(self.parts):06d}.parquet")
        self._connection.register("batch", batch)
        select = ", ".join(
            f"CAST(c{j} AS {kind}) AS {quoted(name)}"
            for j, (name, kind) in enumerate(zip(self._sql, self.types, strict=True))
        )
        with explained(part):
            self._connection.execute(f"COPY (SELECT {select} FROM batch) TO {literal(part)} (FORMAT parquet)")
        self._connection.unregister("batch")
        self.parts.append(part)
        self.n_rows += n_rows

    def finished(self, files: Files, reopen: Callable[[], DuckDBTable], **about: Any) -> DuckDBTable:
        """The table; `reopen` makes it again in another process, and `about` are further attributes."""
        if not self.parts:
            self.add([np.empty(0, dtype=object) for _ in self.types])
        self._connection.close()
        database = Database(self.parts, memory=memory_for(len(self.types), 2))
        database.seal()
        columns = tuple(
            Column(name, sql, kind) for name, sql, kind in zip(self.names, self._sql, self.types, strict=True)
        )
        listed = ", ".join(literal(part) for part in self.parts)
        return DuckDBTable(
            files.where,
            database,
            columns,
            sql=f"FROM read_parquet([{listed}], hive_partitioning=false)",
            files=files,
            n_rows=self.n_rows,
            scratch=self.folder,
            reopen=reopen,
            **about,
        )


def named(names: Sequence[str | None], where: str) -> tuple[list[str], list[Note]]:
    """Names that are neither empty nor alike, and what had to be made up for that."""
    texts = ["" if name is None else str(name).strip() for name in names]
    notes = []
    empty = [j for j, name in enumerate(texts) if not name]
    used = {name.lower() for name in texts}
    for j in empty:
        texts[j] = _free(f"column {j + 1}", used)
    if empty:
        shown = ", ".join(texts[j] for j in empty[:5]) + (", ..." if len(empty) > 5 else "")
        notes.append(Note("empty-names", f"{len(empty)} column(s) had no name and are called {shown}"))
    seen: set[str] = set()
    renamed = []
    for j, name in enumerate(texts):
        if name in seen:
            texts[j] = _free(f"{name} 2", used)
            renamed.append(f"{name} -> {texts[j]}")
        seen.add(texts[j])
    if renamed:
        shown = ", ".join(renamed[:5]) + (", ..." if len(renamed) > 5 else "")
        notes.append(Note("duplicate-names", f"columns of the same name were renamed: {shown}"))
    check.names(texts, where)
    return texts, notes


def _free(wanted: str, used: set[str]) -> str:
    made, k = wanted, 2
    stem = wanted.removesuffix(" 2")
    while made.lower() in used:
        k += 1
        made = f"{stem} {k}"
    used.add(made.lower())
    return made


def chosen_name(asked: str, names: Sequence[str], what: str, where: str) -> str:
    """The sheet, table or array that the user asked for: by name, by name in any case, or by number from 1."""
    alike = [name for name in names if name.lower() == asked.lower()]
    if asked in names:
        return asked
    if len(alike) == 1:
        return alike[0]
    if asked.isdigit() and 1 <= int(asked) <= len(names):
        return names[int(asked) - 1]
    shown = ", ".join(repr(name) for name in names[:20]) + (", ..." if len(names) > 20 else "")
    raise DataError(f"there is no {what} {asked!r}", where=where, advice=f"There are {shown}")
