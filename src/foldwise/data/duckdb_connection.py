"""DuckDB connections: bounded memory, rows in the order of the file, opened anew in another process."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from foldwise.data import n_threads, scratch

MEMORY = "1GB"
ATTACHED = "attached"
_WIDE = 500  # columns, from which on the chunks of a thread take more than the row groups of a usual file
_MOST_MEGABYTES = 1_000_000
_CHUNK = 2048  # rows that DuckDB decodes at a time
_inherited: list[
    Any
] = []  # connections of the parent of a forked process: closing one waits for threads that are not there


def connect(files: Sequence[str] | None = None, *, memory: str = MEMORY, attach: str | None = None) -> Any:
    """A DuckDB connection with the configured number of threads and bounded memory.

    With `files`, possibly none, it can read these and nothing else, and write nothing. The database in the file `attach` is
    called `attached` in SQL.
    """
    import duckdb

    connection = duckdb.connect(
        config={
            "threads": n_threads.count(),
            "memory_limit": memory,  # anything larger (a sort in a query, say) spills to the scratch folder
            # Of this process, since DuckDB's names are always the same. DuckDB may read whatever is in its scratch folder, so a
            # connection to given files has none.
            "temp_directory": scratch.folder() if files is None else "",
            "preserve_insertion_order": True,  # rows arrive in file order
            "python_enable_replacements": False,  # a table name in SQL never refers to a Python variable
        }
    )
    # For local files, prefetching gave no measurable gain and took a third more memory.
    connection.execute("SET GLOBAL disable_parquet_prefetching = true")
    if attach is not None:
        connection.execute(f"ATTACH {literal(attach)} AS {ATTACHED} (TYPE duckdb, READ_ONLY)")
    if connection.execute("SELECT count(*) FROM duckdb_optimizers() WHERE name = 'type_pushdown'").fetchall()[0][0]:
        # It makes TRY_CAST(column AS DOUBLE) over text files a strict read, which fails at the first word.
        connection.execute("SET GLOBAL disabled_optimizers = 'type_pushdown'")
    if files is not None:
        connection.execute(f"SET GLOBAL allowed_paths = [{', '.join(literal(path) for path in files)}]")
        connection.execute("SET GLOBAL enable_external_access = false")
    return connection


def literal(text: str) -> str:
    """A string as an SQL literal."""
    return "'" + text.replace("'", "''") + "'"


def duckdb_errors() -> tuple[type[Exception], ...]:
    """The exceptions that DuckDB or its Arrow stream raises."""
    import duckdb

    return duckdb.Error, RuntimeError


class Database:
    """A DuckDB connection that opens on first use; a pickled copy and a forked child open their own."""

    def __init__(
        self, files: Sequence[str] | None = None, *, memory: str | None = None, attach: str | None = None
    ) -> None:
        """With `files`, only these can be read, whatever the SQL; otherwise all that the user may read.

        `attach` is a database file that its SQL calls `attached`.
        """
        self._files, self._attach = files, attach
        self._sealed = False
        self._connection: Any = None
        self._process = 0
        self._memory = memory

    def cursor(self) -> Any:
        """A new cursor for each use, since several threads may read at once."""
        if self._connection is not None and self._process != os.getpid():
            _inherited.append(self._connection)
            self._connection = None
        if self._connection is None:
            self._connection = connect(self._files, memory=self._memory or MEMORY, attach=self._attach)
            self._process = os.getpid()
            if self._sealed:
                self.seal()
        return self._connection.cursor()

    def query(self, sql: str) -> Any:
        """All rows of a query."""
        return self.cursor().execute(sql).fetchall()

    def allow(self, path: str) -> None:
        """Let a further file be read, one that this process made; connections that are open stay as they are."""
        if self._files is not None and path not in self._files:
            self._files = (*self._files, path)
            self._connection = None

    def limit_memory(self, memory: str) -> None:
        """Set DuckDB's memory limit, here and in pickled copies."""
        self._memory = memory
        self.query(f"SET GLOBAL memory_limit = '{memory}'")

    def seal(self) -> None:
        """Keep SQL from changing the settings, here and in pickled copies."""
        self._sealed = True
        if self._connection is not None:
            self._connection.execute("SET GLOBAL lock_configuration = true")

    def __getstate__(self) -> dict[str, Any]:
        return vars(self) | {"_connection": None, "_process": 0}


def memory_for(width: int, chunks: int) -> str:
    """A memory limit for tables of `width` columns, of which DuckDB holds so many chunks for each thread."""
    return f"{_megabytes_for(width, chunks)}MB"


def _megabytes_for(width: int, chunks: int) -> int:
    # A cell takes up to 16 bytes, and a chunk has the same number of rows however few the table has.
    return 1000 + (chunks * n_threads.count() * width * _CHUNK * 16) // 1_000_000


def bound_parquet_memory(groups: int, largest: int, width: int, database: Database) -> None:
    """Limit memory to what is needed, a row group or two per thread, since DuckDB fills whatever it is allowed."""
    megabytes = 256 + 2 * min(n_threads.count(), groups) * largest // 1_000_000
    # The metadata of a damaged file may say anything; what a wide table needs beyond its values depends on its width.
    wide = _megabytes_for(width, 2) if width > _WIDE else 0
    database.limit_memory(f"{min(max(megabytes, wide), _MOST_MEGABYTES)}MB")
