"""Text files as a table of text: read by DuckDB in place if they are clean, otherwise from a clean copy in the scratch folder.

`text_table` looks at the beginning and the end of each file. If DuckDB can read the file strictly by the layout found
there, it does so, in parallel and without a copy. If a row further down does not fit after all, DuckDB says so, and
`TextFiles.fall_back` makes the copy, by the same rules: no row is dropped or shifted without a word.

What it costs to read missing tokens, on 10 million rows of 5 numbers, tokens in three of them (324 MB, DuckDB 2.0, two
threads; processor seconds for the sums of all columns):

    typed DOUBLE, without tokens                                            1.5
    typed DOUBLE, `nulls` with 4 tokens                                     1.6
    typed DOUBLE, `nulls` with 13 tokens                                    2.0
    text, TRY_CAST(nullif(c, 'NA') AS DOUBLE)                               2.2
    text, CASE WHEN c IN (13 tokens) THEN NULL ELSE CAST(c AS DOUBLE) END   3.1
    the same with trim(c)                                                   4.4

So columns of plain numbers should be read typed, with `nulls` the tokens that were seen and no others.
"""

from __future__ import annotations

import io
import os
import re
import tempfile
import threading
import weakref
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from foldwise.data import normalise_text, scratch, text_bytes, text_layout
from foldwise.data.atomic import explained
from foldwise.data.duckdb_connection import Database, duckdb_errors, literal
from foldwise.data.duckdb_sql import Column, Reader, differ, same_names
from foldwise.data.environment import spool_limit
from foldwise.data.files import Files
from foldwise.data.notes import Note
from foldwise.data.reading import Reading
from foldwise.data.text_cells import is_total
from foldwise.data.text_dialect import Dialect, Tokens
from foldwise.data.text_edges import STRETCH, rows_fit
from foldwise.data.text_layout import Layout
from foldwise.data.unpack_text import is_compressed, unpack
from foldwise.errors import DataError, ReadingWarning, warn

_COMPARED = 100  # rows of which DuckDB must give the same cells as the rules do
_LONG = 500_000  # bytes of a line, above which DuckDB is told to expect long ones
_CLEAN = (
    "auto_detect=false, delim=',', quote='\"', escape='\"', header=false, skip=0, new_line='\\n', "
    f"buffer_size={STRETCH}"
)
_OF_COPIES = Dialect(",", '"', '"')


@dataclass(frozen=True)
class TextTable:
    """Text files, as a table of which every column is text."""

    reader: Reader
    notes: tuple[Note, ...]
    layout: Layout  # of the first file

    def typed(self) -> Reader:
        """The reader with the types that DuckDB can read the columns as, judged by the first rows of each file.

        A column that is not alike in all files is text, until its cells are looked at.
        """
        text = self.reader.text_files
        assert text is not None
        unlike = text.unlike()
        columns = zip(self.reader.columns, text.layouts[0].types, strict=True)
        typed = tuple(Column(c.name, c.sql, "VARCHAR" if j in unlike else kind) for j, (c, kind) in enumerate(columns))
        return replace(self.reader, columns=typed)


def text_table(files: Files, reading: Reading, database: Database) -> TextTable:
    """Find out how text files are laid out. `database` must not be sealed yet."""
    text = TextFiles(files, reading, database)
    layout = text.layouts[0]
    taken: set[str] = set()
    columns = tuple(Column(name, _sql_name(name, taken), "VARCHAR") for name in layout.names)
    reader = Reader(columns, layout.header is not None, "", "", "read_csv", text)
    text.settle(columns)
    return TextTable(reader, text.notes, layout)


def _sql_name(name: str, taken: set[str]) -> str:
    """A name for DuckDB, which does not distinguish upper and lower case."""
    found, number = name, 1
    while found.lower() in taken:
        found, number = f"{name}_{number}", number + 1
    taken.add(found.lower())
    return found


class TextFiles:
    """Text files and the copies that are read instead of them, if any; a pickled one makes its own when it needs them."""

    def __init__(self, files: Files, reading: Reading, database: Database) -> None:
        self.files, self.reading, self._database = files, reading, database
        self._normalise = False
        self._reset()
        self.layouts: tuple[Layout, ...] = ()
        self._heads: list[normalise_text.Rows] = []
        self._first_rows: list[list[list[str]]] = []
        self._options = ""
        for path in files.paths:
            self._look(path)
        self._same_layout()
        self.notes = self._notes(self._heads)

    def _reset(self) -> None:
        self._unpacked: dict[str, str] = {}
        self._copies: dict[str, str] = {}
        self._process = os.getpid()
        self._lock = threading.RLock()

    def __getstate__(self) -> dict[str, Any]:
        made = ("_unpacked", "_copies", "_lock", "_process")
        return {key: value for key, value in vars(self).items() if key not in made}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._reset()

    # Finding out

    def _shown(self, path: str) -> str:
        """What to call a file; what came from standard input has no name of its own."""
        return self.files.where if len(self.files.paths) == 1 else path

    def _look(self, path: str) -> None:
        shown = self._shown(path)
        ends = text_bytes.ends(self._raw(path), shown, self.reading.encoding)
        if not ends.head.strip():
            raise DataError("the file is empty: 0 sample(s)", where=shown)
        layout = text_layout.find(ends, self.reading, shown)
        rows = normalise_text.Rows(io.StringIO(ends.head, newline=""), layout, shown, cut=not ends.whole)
        first: list[list[str]] = []
        for _, cells in rows:
            if len(first) < _COMPARED:
                first.append(cells)
        self.layouts += (layout,)
        self._heads.append(rows)
        self._first_rows.append(first)
        options = _options(layout, ends.head)
        if not rows.is_clean or options is None or not _ends_well(ends.tail, layout):
            self._normalise = True
        elif self._options and self._options != options:
            self._normalise = True  # such as titles of different length
        else:
            self._options = options

    def _same_layout(self) -> None:
        first, path = self.layouts[0], self.files.paths[0]
        for other, place in zip(self.layouts[1:], self.files.paths[1:], strict=True):
            if other.header is None and first.header is None and other.width == first.width:
                continue
            same_names(path, first.names, place, other.names)
            for a, b in zip(first.names, other.names, strict=True):
                if a != b:
                    raise differ(path, place, b, "its position differs from that in")
            if (other.header is None) != (first.header is None) or other.dialect != first.dialect:
                raise DataError(f"the separator, quote character or header differs from {path}", where=place)

    def unlike(self) -> dict[int, DataError]:
        """Columns that have other types in some files, as far as first rows tell, with an error that says so."""
        first, path = self.layouts[0], self.files.paths[0]
        found: dict[int, DataError] = {}
        for other, place in zip(self.layouts[1:], self.files.paths[1:], strict=True):
            for j, (name, a, b) in enumerate(zip(first.names, first.types, other.types, strict=True)):
                if a != b and j not in found:
                    found[j] = differ(path, place, name, f"it is {b} here but {a} in")
        return found

    def settle(self, columns: Sequence[Column]) -> None:
        """Decide whether DuckDB can read the files in place: it must give the same first rows."""
        if not self._normalise:
            for path, rows in zip(self.files.paths, self._first_rows, strict=True):
                self._normalise = self._normalise or not self._agrees(path, rows, columns)
        self._first_rows = []
        if self._normalise:
            self._make_copies()

        if not self._normalise and not self.fit_at_edges(["VARCHAR"] * len(columns)):
            self._normalise = True
            self._make_copies()

    def _agrees(self, path: str, rows: list[list[str]], columns: Sequence[Column]) -> bool:
        query = f"FROM {self.clause([path], dict.fromkeys((c.sql for c in columns), 'VARCHAR'))} LIMIT {_COMPARED}"
        try:
            found = self._database.query(query)
        except duckdb_errors():
            return False
        seen = [[(cell or "").strip() for cell in row] for row in found]
        return seen[: len(rows)] == [[cell.strip() for cell in row] for row in rows] and (len(seen) == len(rows))

    # Reading

    def clause(self, paths: Sequence[str], types: dict[str, str], nulls: Sequence[str] = ()) -> str:
        """The FROM clause for some of the files."""
        places = self._places(paths)
        listed = ", ".join(literal(place) for place in places)
        columns = ", ".join(f"{literal(name)}: {literal(kind)}" for name, kind in types.items())
        options = _CLEAN if self._normalise else self._options
        missing = f", nullstr=[{', '.join(map(literal, dict.fromkeys(('', *nulls))))}]" if nulls else ""
        return f"read_csv([{listed}], {options}{missing}, columns={{{columns}}}, hive_partitioning=false)"

    def fit_at_edges(self, kinds: Sequence[str], nulls: Sequence[str] = ()) -> bool:
        """Whether rows that DuckDB might pass over in silence can be read as these types."""
        for path, place in zip(self.files.paths, self._places(self.files.paths), strict=True):
            layout = self.layouts[self.files.paths.index(path)]
            if not rows_fit(place, _OF_COPIES if self._normalise else layout.dialect, kinds, nulls):
                return False
        return True

    def _places(self, paths: Sequence[str]) -> list[str]:
        with self._lock:
            if self._process != os.getpid():  # forked: the copies are those of the parent, which may end before us
                self._reset()
            if self._normalise:
                if not self._copies:
                    self._make_copies()
                return [self._copies[path] for path in paths]
            return [self._raw(path) for path in paths]

    def _raw(self, path: str) -> str:
        """The file itself, or its decompressed copy."""
        if not is_compressed(path):
            return path
        if path not in self._unpacked:
            target = self._new()
            unpack(path, target, spool_limit(), self._database)
            self._database.allow(target)
            self._unpacked[path] = target
        return self._unpacked[path]

    def _new(self) -> str:
        folder = scratch.folder()
        with explained(folder):
            number, path = tempfile.mkstemp(suffix=".csv", dir=folder)
            os.close(number)
        weakref.finalize(self, normalise_text.removed, path, os.getpid())
        return path

    def _make_copies(self) -> None:
        self.files.check_unchanged()
        made: dict[str, str] = {}
        seen = []
        for k, path in enumerate(self.files.paths):
            target = self._new()
            with explained(target):
                seen.append(self._write(k, path, target))
            made[path] = target
        self.files.check_unchanged()
        for path in self._unpacked.values():
            normalise_text.removed(path, self._process)
        self._unpacked = {}
        for target in made.values():
            self._database.allow(target)
        self._copies = made
        self.notes = self._notes(seen)

    def _write(self, k: int, path: str, target: str) -> normalise_text.Rows:
        raw, layout, shown = self._raw(path), self.layouts[k], self._shown(path)
        try:
            return normalise_text.write(raw, layout, shown, target, spool_limit())
        except DataError as problem:
            told = self.reading.encoding is not None
            if (
                told
                or "text (line" not in problem.what
                or not layout.encoding.is_utf8
                or not text_bytes.is_other_encoding(raw)
            ):
                raise
        # UTF-8 as far as the beginning goes, but in truth another encoding
        layout = replace(layout, encoding=text_bytes.Encoding("cp1252", guessed=True))
        self.layouts = (*self.layouts[:k], layout, *self.layouts[k + 1 :])
        return normalise_text.write(raw, layout, shown, target, spool_limit())

    def fall_back(self, problem: Exception) -> bool:
        """After an error of DuckDB: whether clean copies were made, so that reading again may succeed.

        Raises an error with the line if the files cannot be understood.
        """
        with self._lock:
            if self._normalise or not self._is_layout(str(problem)):
                return False
            before = self.notes
            self._normalise = True
            try:
                self._make_copies()
            except BaseException as other:
                self._normalise = False
                raise other from None  # it explains the problem better
        for note in self.notes:
            if note not in before:
                warn(f"{self.files.where}: {note.text}", ReadingWarning)
        return True

    def _is_layout(self, problem: str) -> bool:
        """Whether an error of DuckDB is about the layout rather than about a cell of a row."""
        if "converting column" not in problem:
            return "CSV" in problem or "unicode" in problem.lower()
        line = re.search(r"Original Line: ?(.*)", problem)
        layout = self.layouts[0]
        if line is None:
            return False
        return layout.is_comment(line[1]) or [cell.strip() for cell in layout.dialect.cut(line[1])] == list(
            layout.header or ()
        )

    # Telling

    def _notes(self, seen: Sequence[normalise_text.Rows]) -> tuple[Note, ...]:
        found: list[Note] = []
        for path, layout, rows in zip(self.files.paths, self.layouts, seen, strict=True):
            for note in normalise_text.notes(layout, rows):
                own = Note(note.topic, f"{Path(path).name}: {note.text}") if len(self.files.paths) > 1 else note
                if own not in found:
                    found.append(own)
        return tuple(found)

    def line(self, path: str, row: int) -> int | None:
        """The line of the file in which a row begins, counted from 1."""
        try:
            return normalise_text.line_of(self._raw(path), self.layouts[self.files.paths.index(path)], path, row)
        except (DataError, OSError):
            return None


def _options(layout: Layout, head: str) -> str | None:
    """The options by which DuckDB reads a file of this layout in place; None if it cannot."""
    dialect = layout.dialect
    if not layout.encoding.is_utf8 or dialect.by_blanks:
        return None
    options = {
        "delim": dialect.delimiter,
        "quote": dialect.quote,
        "escape": dialect.escape,
    }
    listed = ", ".join(f"{key}={literal(value)}" for key, value in options.items())
    longest = max(map(len, head.splitlines()), default=0)
    size = f", max_line_size={4 * longest}" if longest > _LONG else f", buffer_size={STRETCH}"
    return f"auto_detect=false, {listed}, header=false, skip={layout.first - 1}, strict_mode=true{size}"


def _ends_well(tail: str, layout: Layout) -> bool:
    """Whether the last lines of a file are rows like the others, as far as that can be told."""
    if not tail:
        return True
    lines = list(io.StringIO(tail, newline=""))[-20:]
    return any(_are_rows([start + lines[0], *lines[1:]], layout) for start in ("", layout.dialect.quote))


def _are_rows(lines: Sequence[str], layout: Layout) -> bool:
    tokens = Tokens(lines, layout.dialect, is_comment=layout.is_comment)
    wide = (layout.width, layout.width + 1) if layout.trailing else (layout.width,)
    try:
        records = [cells for _, cells in tokens]
    except DataError:
        return False
    return (
        all(len(cells) in wide for cells in records)
        and not tokens.n_comments
        and not (records and is_total(records[-1]))
    )
