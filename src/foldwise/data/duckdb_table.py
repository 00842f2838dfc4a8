"""A table that DuckDB reads, before columns are chosen: where its rows come from, its columns, and how it is read."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, NoReturn, TypeVar

import duckdb

from foldwise.data import file_errors
from foldwise.data.column_text import MISFIT
from foldwise.data.duckdb_connection import Database, duckdb_errors
from foldwise.data.duckdb_sql import Column, Reader
from foldwise.data.files import Files
from foldwise.data.notes import Note
from foldwise.data.parquet_files import ParquetFiles
from foldwise.data.reading import FOUND_OUT, Reading
from foldwise.errors import DataError

_MISFIT = re.compile(rf"a cell {MISFIT} ([^:]*): (.*)", re.DOTALL)  # what the SQL of prepared columns says of a cell
T = TypeVar("T")


@dataclass
class Pace:
    """How a table is read by all who have a copy of it: `slow` takes the place of a read that refused a cell."""

    slow: DuckDBTable | None = None


@dataclass(frozen=True)
class DuckDBTable:
    """A table to read: SQL or an in-process object, its columns, and the files behind it, if any."""

    where: str
    database: Database
    columns: tuple[Column, ...]
    sql: str | None = None
    object: Any = None  # a data frame, or a DuckDB relation
    named: bool = True
    files: Files | None = None
    reader: Reader | None = None
    confined: bool = True  # whether settings of the database keep a condition from reading anything else
    key: str = ""  # identifies a table without files in the fingerprint
    n_rows: int | None = None  # if that is known without reading
    pages: ParquetFiles | None = field(default=None, compare=False)  # where columns are that can be read without DuckDB
    notes: tuple[Note, ...] = ()  # how the data were understood
    layout: str = ""  # how a text file is laid out, in a few words
    mask: str | None = None  # what is selected of the rows as they are stored, if numbers in them stand for missing
    projection: str | None = None  # expressions that the columns are computed by
    slower: DuckDBTable | None = None  # the same, by SQL that reads what a typed read refuses
    pace: Pace = field(default_factory=Pace, compare=False)
    reading: Reading = FOUND_OUT  # what the user said about how to read
    strays: tuple[tuple[str, str], ...] = ()  # columns of numbers with a word among them, and the word
    scratch: Any = None  # what keeps the scratch files that were written for a table
    reopen: Callable[[], DuckDBTable] | None = None  # writes them anew, in another process

    def __reduce__(self) -> Any:
        if self.reopen is not None:
            return _reopened, (self.reopen, {name: getattr(self, name) for name in _KEPT})
        return DuckDBTable, tuple(getattr(self, one.name) for one in fields(self))

    def relation(self) -> Any:
        """The table as a DuckDB relation, created anew for each pass."""
        if self.pace.slow is not None:
            return self.pace.slow.relation()
        rows = self.as_given()
        return rows if self.projection is None else rows.project(self.projection)

    def as_given(self) -> Any:
        """The rows before columns are computed, as a DuckDB relation."""
        rows = self._stored()
        return rows if self.mask is None else rows.project(self.mask)

    def _stored(self) -> Any:
        if self.sql is not None:
            return self.database.cursor().sql(self.sql)
        if self.files is not None and self.reader is not None:  # text files may be read from a copy by now
            clause = self.reader.clause(self.files.paths)  # before the cursor, which may read the copies made by now
            return self.database.cursor().sql(f"FROM {clause}")
        return relation_of(self.object, self.database)

    def selecting(self, expressions: Sequence[str], columns: tuple[Column, ...]) -> DuckDBTable:
        """The table with columns that are computed from its own, and known by their names, even if these were made up."""
        if self.projection is not None:
            raise ValueError("the columns are computed already")
        return replace(self, projection=", ".join(expressions), columns=columns, named=True)

    @property
    def names(self) -> tuple[str, ...] | None:
        """The names of all columns, if they have names."""
        return tuple(column.name for column in self.columns) if self.named else None

    def label(self, column: Column) -> str | int:
        """How messages refer to a column."""
        return column.name if self.named else self.columns.index(column)

    def fall_back(self, problem: Exception) -> bool:
        """After an error of DuckDB: whether text files are read in another way now, so that another try is worth it.

        That is from clean copies, or by SQL that knows more of what is missing.
        """
        text = None if self.reader is None else self.reader.text_files
        if text is None:
            return False
        return text.fall_back(problem) or ("converting column" in str(problem) and self.slow_down())

    def slow_down(self) -> bool:
        """Read text files by SQL that knows more of what is missing from now on; False if there is no other way."""
        from foldwise.data.typed_text import judged_again

        if self.pace.slow is None:
            self.pace.slow = judged_again(self)
            return self.pace.slow is not None
        if self.pace.slow.slower is not None:
            return self.pace.slow.slow_down()
        return True  # which reads nothing but text: the error is of a read that began before, in another thread

    def ask(self, query: Callable[[Any], T]) -> T:
        """`query(relation)`, once more if rows far down in a text file take another way; errors are those of DuckDB."""
        try:
            return query(self.relation())
        except duckdb_errors() as problem:
            if not self.fall_back(problem):
                raise
        return self.ask(query)  # there are two other ways, each of which is tried once

    def find_bad(self, chosen: list[Column], where: str | None) -> None:
        """Raise for the first bad value in the files; return if there is none or the table has no files."""
        if self.pace.slow is not None:
            self.pace.slow.find_bad(chosen, where)
            return
        words = dict(self.strays)
        if self.files is not None and self.reader is not None:
            for column in chosen:
                if column.sql in words:
                    file_errors.stray_word(self.files, self.reader, column, words[column.sql], self.database.query)
        if self.projection is None and self.files is not None and self.reader is not None:
            self.files.check_unchanged()
            file_errors.first_bad(self.files, self.reader, chosen, where, self.database.query)

    def explain(self, problem: Exception, chosen: list[Column], where: str | None) -> NoReturn:
        """Raise a DataError that explains an error from DuckDB."""
        if self.pace.slow is not None:
            self.pace.slow.explain(problem, chosen, where)
        misfit = _MISFIT.search(str(problem)) if self.projection is not None else None
        if misfit is not None:
            file_errors.misfit(self, misfit[1], misfit[2])
        if self.files is not None:
            try:
                self.find_bad(chosen, where)
            except duckdb.Error as other:
                problem = other
            file_errors.explain(self.files, problem)
        raise DataError(str(problem).strip(), where=self.where) from None


# What can be changed in a table with scratch files after it was opened.
_KEPT = ("columns", "named", "key", "n_rows", "notes", "layout", "projection", "slower", "strays", "reading", "mask")


def _reopened(reopen: Callable[[], DuckDBTable], kept: dict[str, Any]) -> DuckDBTable:
    return replace(reopen(), **kept)


def relation_of(frame: Any, database: Database) -> Any:
    """A data frame as a DuckDB relation; a relation is read through its own connection."""
    if hasattr(frame, "sql_query"):
        return frame
    cursor = database.cursor()
    return cursor.from_df(frame) if hasattr(frame, "iloc") else cursor.from_arrow(frame)
