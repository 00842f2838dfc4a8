"""Spreadsheets (.xlsx, .xlsm, .xlsb, .xls, .ods), read by python-calamine: a sheet is chosen, and the table found in it."""

from __future__ import annotations

import re
import zipfile
from functools import partial
from typing import Any

from foldwise.data import cells
from foldwise.data.duckdb_table import DuckDBTable
from foldwise.data.files import Files
from foldwise.data.notes import Note
from foldwise.data.reading import Reading
from foldwise.data.scratch_table import ScratchTable, chosen_name, named, rows_per_batch
from foldwise.data.sheet_layout import Grid, Layout, Merged, layout
from foldwise.errors import DataError, MissingDependencyError

_DENSE = 50_000_000  # cells that a sheet may have however few of them are filled
_CELL = re.compile(rb'<(?:\w+:)?c\b[^>]*?\br="([A-Z]{1,3})([0-9]{1,7})"')
_LONGEST_TAG = 256  # bytes, that may be cut by the end of a chunk


def open_table(files: Files, reading: Reading) -> DuckDBTable:
    """The table in a sheet of a spreadsheet."""
    path = files.paths[0]
    _check_archive(path, files.where)
    book = _Book(path, files.where)
    names = book.names()
    if not names:
        raise DataError("there is no sheet with cells", where=files.where)
    if reading.sheet is not None:
        asked = chosen_name(str(reading.sheet), names, "sheet", files.where)
        grid, merged = book.sheet(asked)
    else:
        asked, grid, merged = _largest(book, names)
    notes = []
    if reading.sheet is None and len(names) > 1:
        shown = ", ".join(names[:20]) + (", ..." if len(names) > 20 else "")
        notes.append(Note("several-sheets", f"{len(names)} sheets ({shown}); read: {asked}"))
    found = layout(grid, merged, reading) if grid else Layout([], [], [], ())
    if not found.rows:
        raise DataError(f"the sheet {asked!r} holds no rows: 0 sample(s)", where=files.where)
    return _table(files, reading, asked, grid, found, notes)


def _table(files: Files, reading: Reading, sheet: str, grid: Grid, found: Layout, notes: list[Note]) -> DuckDBTable:
    given = found.names if found.names is not None else [f"column{j}" for j in range(len(found.columns))]
    names, made_up = named(given, files.where)
    tokens = cells.MISSING | {token.strip().lower() for token in reading.missing_values or ()}
    seen = [cells.Census(tokens) for _ in names]
    for census, j in zip(seen, found.columns, strict=True):
        census.update(grid[i][j] for i in found.rows)
    types = [census.type for census in seen]
    written = ScratchTable(names, types)
    step = rows_per_batch(len(names))
    for at in range(0, len(found.rows), step):
        rows = [grid[i] for i in found.rows[at : at + step]]
        written.add(
            [cells.column([row[j] for row in rows], kind) for j, kind in zip(found.columns, types, strict=True)]
        )
    notes = [*notes, *found.notes, *made_up, *cell_notes(names, seen)]
    return written.finished(
        files,
        partial(open_table, files, reading),
        named=found.names is not None,
        notes=tuple(notes),
        key=f"sheet={sheet!r}",
    )


def cell_notes(names: list[str], seen: list[cells.Census]) -> list[Note]:
    """What is to be said about numbers stored as text, words among numbers, and signs of missing values."""
    notes = []
    for name, census in zip(names, seen, strict=True):
        if census.type == "VARCHAR":
            others = census.integers + census.reals + census.days + census.moments + census.truths
            if others:
                text = f"{name}: {others} of {census.present} cells are numbers, dates or truth values, the others text"
                notes.append(Note("mixed-types", text))
            continue
        if census.numbers_as_text:
            text = f"{name}: {census.numbers_as_text} number(s) stored as text ({census.example!r}) read as numbers"
            notes.append(Note("mixed-types", text))
        if census.tokens:
            shown = ", ".join(map(repr, census.seen_tokens))
            notes.append(Note("missing-tokens", f"{name}: {census.tokens} cell(s) read as missing: {shown}"))
    return notes


def _largest(book: _Book, names: list[str]) -> tuple[str, Grid, Merged]:
    """The sheet with the most cells, the first of several."""
    best: tuple[int, str, Grid, Merged] | None = None
    for name in names:
        grid, merged = book.sheet(name)
        filled = sum(cell != "" for row in grid for cell in row)
        if best is None or filled > best[0]:
            best = filled, name, grid, merged
    assert best is not None
    return best[1:]


class _Book:
    """A workbook; whatever goes wrong in reading it is told as a DataError."""

    def __init__(self, path: str, where: str) -> None:
        try:
            import python_calamine
        except ImportError:
            raise MissingDependencyError(
                "spreadsheets are read by python-calamine. Install it: pip install 'foldwise[excel]'"
            ) from None
        self._where = where
        self._book = self._tried(lambda: python_calamine.CalamineWorkbook.from_path(path))

    def names(self) -> list[str]:
        """The sheets with cells, visible ones only if there are any."""
        sheets = [one for one in self._book.sheets_metadata if "WorkSheet" in str(one.typ)]
        visible = [one.name for one in sheets if str(one.visible).endswith(".Visible")]
        return visible or [one.name for one in sheets]

    def sheet(self, name: str) -> tuple[Grid, Merged]:
        """The cells of a sheet, from its first row and column, and the ranges that are merged."""
        found = self._tried(lambda: self._book.get_sheet_by_name(name))
        grid: Grid = self._tried(lambda: found.to_python(skip_empty_area=False))
        try:
            merged: Merged = found.merged_cell_ranges or []
        except Exception:  # not every format records them
            merged = []
        return grid, merged

    def _tried(self, run: Any) -> Any:
        try:
            return run()
        except BaseException as problem:
            # A panic of the library is no Exception.
            if not isinstance(problem, Exception) and type(problem).__name__ != "PanicException":
                raise
            if type(problem).__name__ == "PasswordError":
                advice = "Save it without a password"
                raise DataError("the file is protected by a password", where=self._where, advice=advice) from None
            raise DataError(
                f"not a spreadsheet, or damaged ({str(problem).strip() or type(problem).__name__})",
                where=self._where,
                advice="Open it in a spreadsheet program and save it again, or export the sheet as CSV",
            ) from None


def _check_archive(path: str, where: str) -> None:
    """Refuse a damaged .xlsx, and one with a cell so far away from the others that the library would run out of memory."""
    try:
        archive = zipfile.ZipFile(path)
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError):
        return  # .xls, or not readable at all, which is told by the library
    try:
        with archive:
            for info in archive.infolist():
                if re.search(r"worksheets/[^/]*\.xml$", info.filename):
                    with archive.open(info) as file:
                        _check_spread(file, info.filename, where)
    except DataError:
        raise
    except Exception as problem:  # zipfile and zlib raise many kinds for damaged files
        raise DataError(
            f"the file is damaged ({problem})",
            where=where,
            advice="Open it in a spreadsheet program and save it again, or copy it again",
        ) from None


def _check_spread(file: Any, sheet: str, where: str) -> None:
    rows = columns = count = 0
    farthest, tail = "", b""
    while chunk := file.read(1 << 20):
        text = tail + chunk
        for letters, digits in _CELL.findall(text):
            count += 1
            row, column = int(digits), 0
            for letter in letters:
                column = 26 * column + letter - 64
            if row > rows or column > columns:
                rows, columns, farthest = max(row, rows), max(column, columns), (letters + digits).decode()
        tail = text[text.rfind(b"<", len(text) - _LONGEST_TAG) :] if b"<" in text[-_LONGEST_TAG:] else b""
        if tail and b">" in tail:
            tail = b""
    if rows * columns > max(_DENSE, 50 * count):
        raise DataError(
            f"the sheet spans {rows} rows and {columns} columns, but only {count} cells of it are in use",
            where=f"{where} ({sheet})",
            advice=f"Delete the cells far away from the table, such as {farthest}",
        )
