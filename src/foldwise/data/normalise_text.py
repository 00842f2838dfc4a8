"""The rows of a text file that DuckDB cannot read as it stands, and a clean copy of them.

`Rows` streams over the records once: short rows are filled up, comments, repeated headers, totals and footnotes left out,
and all of it remembered, so that it can be told. A row that cannot be understood for certain is an error with its line.
"""

from __future__ import annotations

import csv
import itertools
import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from foldwise.data.notes import Note
from foldwise.data.text_bytes import lines_of
from foldwise.data.text_cells import fits, is_number, is_total, is_word
from foldwise.data.text_dialect import Record, Tokens
from foldwise.data.text_layout import Layout
from foldwise.errors import DataError

_SHOWN = 6  # lines named in a message
_FOOTNOTE = re.compile(r"\W*(?:source|note|notes|quelle|anmerkung|remark|footnote|see|data)\b|[*†‡(\[]", re.IGNORECASE)
_MOST_BELOW = 50  # records below the table that may turn out to be notes


@dataclass
class Lines:
    """Some lines of a file: how many, and the first of them."""

    count: int = 0
    first: list[int] = field(default_factory=list)

    def add(self, line: int) -> None:
        """One more."""
        self.count += 1
        if len(self.first) < _SHOWN:
            self.first.append(line)

    @property
    def shown(self) -> str:
        """As in a sentence: line 3; lines 3, 9 and 4 more."""
        more = self.count - len(self.first)
        listed = ", ".join(map(str, self.first))
        return f"line{'s' if self.count > 1 else ''} {listed}" + (f" and {more} more" if more else "")


class Rows:
    """The rows of a file, each with its line and as many cells as there are columns; what was done to get them."""

    def __init__(self, lines: Iterable[str], layout: Layout, where: str, *, cut: bool = False) -> None:
        """`lines` are all lines of the file; with `cut`, more follow that are not given."""
        self._layout, self._where, self._cut = layout, where, cut
        self._tokens = Tokens(
            itertools.islice(lines, layout.first - 1, None),
            layout.dialect,
            is_comment=layout.is_comment,
            first=layout.first,
            where=where,
            cut=cut,
        )
        self._totals = 0
        self.short, self.long, self.repeated, self.total, self.below = Lines(), Lines(), Lines(), Lines(), Lines()
        self.padded = 0  # rows that end in empty cells too many
        self.extra: list[str] = []
        self.n_rows = 0

    @property
    def comments(self) -> int:
        """The number of comments between the rows."""
        return self._tokens.n_comments

    @property
    def is_clean(self) -> bool:
        """Whether every line so far is a row as it should be."""
        dropped = self.short, self.long, self.repeated, self.total, self.below
        blank = self._tokens.blank if self._layout.width == 1 else 0  # which DuckDB would read as missing
        return not any(lines.count for lines in dropped) and not self.comments and not self.padded and not blank

    def __iter__(self) -> Iterator[Record]:
        header = list(self._layout.header or ())
        width, pending = self._layout.width, list[Record]()
        for line, cells in self._tokens:
            if len(cells) == width and not pending and not self._is_doubtful(cells):
                if header and cells[0].strip() == header[0] and [cell.strip() for cell in cells] == header:
                    self.repeated.add(line)
                    continue
                self.n_rows += 1
                yield line, cells
                continue
            if self._is_note(cells) or is_total(cells):
                pending.append((line, cells))
                if len(pending) <= _MOST_BELOW:
                    continue
            for record in pending:  # they stand between rows, so they are rows
                yield self._kept(*record)
            if not pending or pending[-1][1] is not cells:
                yield self._kept(line, cells)
            pending.clear()
        if self._cut:  # what stands here may not be the end
            for record in pending:
                yield self._kept(*record)
            return
        for line, cells in pending:
            if is_total(cells) and not self._totals:
                self._totals += 1
                self.total.add(line)
            elif self._is_note(cells):
                self.below.add(line)
            else:
                yield self._kept(line, cells)

    def _is_doubtful(self, cells: list[str]) -> bool:
        head = cells[0][:1]
        return (not head or head.isalpha()) and is_total(cells)

    def _is_note(self, cells: list[str]) -> bool:
        """Whether it may be a remark below the table."""
        return (
            len(cells) < self._layout.width > 2
            and is_word(cells[0])
            and not any(cell.strip() and is_number(cell) for cell in cells)
            and (self._tokens.after_blank or _FOOTNOTE.match(cells[0]) is not None)
        )

    def _kept(self, line: int, cells: list[str]) -> Record:
        """A row with the right number of cells."""
        if is_total(cells):
            self._totals += 1  # not the only one, so it is no line of totals
        width, found = self._layout.width, len(cells)
        while len(cells) > width and not cells[-1].strip():
            cells = cells[:-1]
        if len(cells) != found and not (self._layout.trailing and found == width + 1 and len(cells) == width):
            self.padded += 1
        self.n_rows += 1
        if len(cells) == width:
            return line, cells
        extra = [cell.strip() for cell in cells[width:]]
        if len(cells) < width:
            self.short.add(line)
        else:
            self.long.add(line)
            self.extra = (self.extra + extra)[:_SHOWN]
        unclear = self._layout.dialect.by_blanks or len(extra) > 2 or any(map(is_number, extra))
        if unclear or not fits(cells, self._layout.numeric):
            raise self._ragged(line, found)
        return line, cells[:width] + [""] * (width - len(cells))

    def _ragged(self, line: int, found: int) -> DataError:
        cells = "1 cell" if found == 1 else f"{found} cells"
        what = (
            f"a row has {cells} instead of {self._layout.width} (line {line}), and nobody can tell which belongs where"
        )
        advice = (
            "Write something for empty cells, such as NA"
            if self._layout.dialect.by_blanks
            else "Correct that row: put quotation marks around cells that contain the delimiter; or give delimiter= or header="
        )
        return DataError(what, where=self._where, advice=advice)


def notes(layout: Layout, rows: Rows | None) -> tuple[Note, ...]:
    """What is to be said about a file: how it was understood where it could be otherwise."""
    said: list[tuple[str, str]] = []
    if layout.encoding.guessed:
        said.append(
            ("encoding", f"the file does not say its encoding and is not UTF-8; read as {layout.encoding.shown}")
        )
    comments = len(layout.comments) + (rows.comments if rows is not None else 0)
    if comments:
        begin = "begins" if comments == 1 else "begin"
        said.append(("comment-lines", f"{_lines(comments)} that {begin} with {layout.comment} left out as comments"))
    if layout.titles:
        said.append(("title-rows", f"{_lines(len(layout.titles))} above the table left out as titles"))
    if layout.header_line is None:
        said.append(
            ("no-header", "the first line is data, so the columns have no names (header=True makes it the header)")
        )
    if layout.units_line is not None:
        said.append(("units-row", f"line {layout.units_line} holds units and is no row: {', '.join(layout.units)}"))
    if layout.row_names:
        said.append(("row-names", f"the header has no name for the first column; it is called {layout.names[0]}"))
    if layout.duplicates:
        listed = ", ".join(repr(name) for name in layout.duplicates)
        said.append(("duplicate-names", f"{listed} is the name of several columns; called {_listed(layout)}"))
    if layout.empty:
        said.append(("empty-names", f"columns without a name are called {', '.join(layout.empty[:_SHOWN])}"))
    if rows is not None:
        said.extend(_said_of_rows(rows))
    return tuple(Note(topic, text) for topic, text in said)


def _listed(layout: Layout) -> str:
    pairs = zip(layout.names[layout.row_names :], layout.header or (), strict=False)
    return ", ".join(name for name, cell in pairs if cell in layout.duplicates)


def _lines(count: int) -> str:
    return "1 line" if count == 1 else f"{count} lines"


def _said_of_rows(rows: Rows) -> Iterator[tuple[str, str]]:
    parts = []
    if rows.short.count:
        parts.append(f"{rows.short.shown} too few, filled up as missing")
    if rows.long.count:
        parts.append(f"{rows.long.shown} too many, left out: {', '.join(map(repr, rows.extra))}")
    if parts:
        yield "ragged-rows", "rows with another number of cells than columns: " + "; ".join(parts)
    if rows.repeated.count:
        yield "title-rows", f"the header stands again in {rows.repeated.shown}, left out"
    if rows.total.count:
        yield "total-row", f"{rows.total.shown} at the end holds totals and is no row"
    if rows.below.count:
        yield "comment-lines", f"{rows.below.shown} below the table left out as notes"


def write(raw: str, layout: Layout, where: str, target: str, limit: int) -> Rows:
    """Write the rows of the file `raw` to `target` as plain CSV, and return what was done to them."""
    with lines_of(raw, layout.encoding, where) as lines, open(target, "w", encoding="utf-8", newline="") as file:
        rows = Rows(_without_mark(lines), layout, where)
        some = csv.writer(file, lineterminator="\n")
        every = csv.writer(file, lineterminator="\n", quoting=csv.QUOTE_ALL)
        stream = (cells for _, cells in rows)
        while chunk := list(itertools.islice(stream, 10_000)):
            # The module does not put quotation marks around a cell for the sake of a carriage return.
            returns = any("\r" in cell for cells in chunk for cell in cells)
            (every if returns else some).writerows(chunk)
            within(file.tell(), limit, where)
    return rows


def within(size: int, limit: int, where: str) -> None:
    """Refuse a copy that needs more space than it may have."""
    if size > limit:
        raise DataError(
            f"reading this file needs a copy, which would take more than the {limit} bytes that scratch files may take",
            where=where,
            advice="Set FOLDWISE_SPOOL_LIMIT or FOLDWISE_SCRATCH, or save it as plain UTF-8 CSV with one header line",
        )


def _without_mark(lines: Iterator[str]) -> Iterator[str]:
    for line in lines:
        yield line.removeprefix("\ufeff")
        break
    for line in lines:
        if line.startswith("\x1a") and not line.strip("\x1a\r\n "):
            continue  # the mark at the end of files of old systems
        yield line


def line_of(raw: str, layout: Layout, where: str, row: int) -> int | None:
    """The line in which a row begins, counted from 1."""
    with lines_of(raw, layout.encoding, where) as lines:
        found: Any = next(itertools.islice(Rows(_without_mark(lines), layout, where), row, None), None)
    return None if found is None else int(found[0])


def removed(path: str, process: int) -> None:
    """Remove a copy, if this process made it."""
    if os.getpid() == process and os.path.exists(path):
        os.remove(path)
