"""How a text file is laid out: titles, comments, header, units, and what kind of cells its columns have.

The rules, in the order in which they are applied (each can be overruled by `Reading`):

- a first line such as sep=; names the delimiter, for Excel;
- lines that begin with # are comments, unless they are rows (a colour, #N/A);
- the delimiter is the one by which the lines are cut most evenly;
- lines of one cell above the table are titles;
- the first line is a header if a cell of it is neither a number nor missing, unless its words come again below in the same
  columns, or cells of the same form do (P001, P002; dates; 12.5 kg), and these are not outvoted by words above mere numbers;
- a line of units below the header is no row;
- a header that is one cell shorter than the rows has no cell for the names of the rows.
"""

from __future__ import annotations

import io
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from foldwise.data import text_cells as cell_kinds
from foldwise.data.reading import Reading
from foldwise.data.text_bytes import Encoding, Ends
from foldwise.data.text_cells import is_missing, is_number, is_unit, is_word
from foldwise.data.text_dialect import NONE, Dialect, Record, Tokens, choose, named
from foldwise.errors import DataError

_ROWS = 400  # rows by which header and kinds are judged
_MOST_COLUMNS = 20_000  # DuckDB takes minutes for many more
_TITLES = 20
_ROW_NAMES = "row_name"
_EXCEL_DELIMITER = re.compile(r'"?sep=([^\w\s"]|\t)"?', re.IGNORECASE)


@dataclass(frozen=True)
class Layout:
    """How a text file is laid out."""

    encoding: Encoding
    dialect: Dialect
    comment: str  # how comments begin; "" if there are none
    first: int  # the line of the first row
    header: tuple[str, ...] | None  # its cells as they are in the file
    header_line: int | None
    names: tuple[str, ...]  # one for each column, unique; made up where the file has none
    numeric: tuple[bool, ...]  # whether the cells of a column are numbers, as far as was seen
    types: tuple[str, ...]  # that DuckDB can read the columns as, as far as was seen
    row_names: bool = False
    trailing: bool = False  # whether rows end in a delimiter
    titles: tuple[int, ...] = ()  # lines
    comments: tuple[int, ...] = ()  # lines before the first row
    units: tuple[str, ...] = ()
    units_line: int | None = None
    duplicates: tuple[str, ...] = ()
    empty: tuple[str, ...] = ()  # names made up for columns without one

    @property
    def width(self) -> int:
        """The number of columns."""
        return len(self.names)

    @property
    def sentence(self) -> str:
        """The layout in a few words, for people."""
        header = "no header" if self.header_line is None else f"header in line {self.header_line}"
        return f"{self.dialect.shown}, {header}, {self.encoding.shown}"

    def is_comment(self, line: str) -> bool:
        """Whether a line is a comment rather than a row."""
        return is_comment(line, self.comment, self._is_row)

    def _is_row(self, line: str) -> bool:
        cells = self.dialect.cut(line)
        return len(cells) == self.width and cell_kinds.fits(cells, self.numeric)


def is_comment(line: str, sign: str, is_row: Callable[[str], bool]) -> bool:
    """Whether a line is a comment; with #, a line such as #ff0000,red,3 may be a row."""
    if not sign or not line.startswith(sign) or (sign == "#" and cell_kinds.begins_with_error(line)):
        return False
    if sign != "#":
        return True
    rest = line[1:2]
    return not rest.strip() or rest in "#!" or not is_row(line)


def find(ends: Ends, reading: Reading, where: str) -> Layout:
    """The layout of a file of which the beginning is known."""
    lines = list(io.StringIO(ends.head, newline=""))
    skipped = reading.skip or 0
    if skipped < 0:
        raise DataError(f"skip={skipped} is negative", where=where, advice="Give the number of lines before the table")
    lines = lines[skipped:]
    told = _EXCEL_DELIMITER.fullmatch(lines[0].rstrip("\r\n")) if lines and not skipped else None
    if told is not None and len(lines) > 1:
        return find(ends, replace(reading, delimiter=reading.delimiter or told[1], skip=1), where)
    sign = "#" if reading.comment is None else reading.comment

    def always(line: str) -> bool:
        return is_comment(line, sign, lambda _: False)

    delimiter = None if reading.delimiter is None else named(reading.delimiter, where)
    dialect = choose(lines, always, delimiter, cut=not ends.whole)
    if reading.comment is None and not _are_comments(lines, dialect, always):
        sign = ""
        dialect = choose(lines, always, delimiter, cut=not ends.whole)
    tokens = Tokens(lines, dialect, is_comment=always, first=skipped + 1, where=where, cut=not ends.whole)
    records = []
    for record in tokens:
        records.append(record)
        if len(records) == _ROWS:
            break
        if len(record[1]) > _MOST_COLUMNS:
            raise DataError(
                f"{len(record[1]):,} columns are more than can be told apart in a text file (at most {_MOST_COLUMNS:,})",
                where=where,
                advice="Save the numbers as .npy (numpy.save), or swap rows and columns if each line is one measurement",
            )
    if not records:
        raise DataError(
            "there is no row in this file, only blank lines and comments: 0 sample(s)",
            where=where,
            advice="Is it complete?",
        )
    if dialect.delimiter == "," and delimiter is None and _is_decimal_column(records):
        return find(ends, replace(reading, delimiter=NONE), where)
    layout = _arranged(records, reading.header, Layout(ends.encoding, dialect, sign, 1, None, None, (), (), ()), where)
    if layout.header_line is not None:  # a row below it may begin with #
        below = [line for line in tokens.comments if layout.header_line < line < layout.first]
        rows = [line for line in below if not layout.is_comment(lines[line - 1 - skipped])]
        layout = replace(layout, first=min((layout.first, *rows)))
    before = tuple(line for line in tokens.comments if line < layout.first)
    layout = replace(layout, comments=before)
    if sign == "#" and reading.comment is None and layout.header is None and before:
        layout = _header_in_comment(lines[before[-1] - 1 - skipped], before[-1], layout)
    return layout


def _are_comments(lines: Sequence[str], dialect: Dialect, always: Callable[[str], bool]) -> bool:
    """Whether lines that begin with # are comments; a whole column may begin so."""
    marked = sum(1 for line in lines if always(line))
    return 2 * marked < sum(1 for line in lines if line.strip()) or all(
        line[1:2].isspace() for line in lines if always(line)
    )


def _is_decimal_column(records: Sequence[Record]) -> bool:
    """Whether commas are the decimal marks of a single column: a name, then digits on both sides of the comma."""
    (_, first), rows = records[0], records[1:]
    return (
        len(first) == 1 and len(rows) > 0 and all(len(r) in (1, 2) and all(_is_digits(c) for c in r) for _, r in rows)
    )


def _is_digits(cell: str) -> bool:
    return cell == cell.strip() and cell.lstrip("-").isdigit()


def _arranged(records: list[Record], asked: bool | None, layout: Layout, where: str) -> Layout:
    width = _width(records)
    titles = 0 if asked is False else _n_titles(records, width)
    title_lines = tuple(line for line, _ in records[:titles])
    records = records[titles:]
    line, top = records[0]
    below = [cells for _, cells in records[1:]]
    is_header = _is_header(top, below, width) if asked is None else asked
    layout = replace(layout, titles=title_lines, first=line)
    if not is_header:
        rows = [top, *below]
        width, trailing = _without_trailing(rows, width)
        names = tuple(f"column{j:0{len(str(width - 1))}}" for j in range(width))
        return _with_kinds(replace(layout, names=names, trailing=trailing), rows)
    width, trailing = _without_trailing(below, width, len(top))
    cells = [cell.strip() for cell in top]
    while len(cells) > width and not cells[-1]:
        cells.pop()
    row_names = len(cells) == width - 1
    if len(cells) != width and not row_names and below:
        raise DataError(
            f"the header in line {line} has {len(cells)} names, but most rows have {width} cells",
            where=where,
            advice="Correct the header; or give skip= (lines before it), delimiter= or header=",
        )
    if not below:
        width = len(cells)
    names, duplicates, empty = _unique([_ROW_NAMES, *cells] if row_names else cells)
    units = _units(below, width) if asked is None or asked else None
    layout = replace(
        layout,
        header=tuple(cells),
        header_line=line,
        names=names,
        row_names=row_names,
        trailing=trailing,
        duplicates=duplicates,
        empty=empty,
    )
    if units is not None:
        layout = replace(layout, units=units, units_line=records[1][0])
        records, below = records[1:], below[1:]
    layout = replace(layout, first=records[1][0] if len(records) > 1 else line + 1)
    return _with_kinds(layout, [row for row in below if [cell.strip() for cell in row] != cells])


def _with_kinds(layout: Layout, rows: Sequence[Sequence[str]]) -> Layout:
    width = layout.width
    types = tuple(cell_kinds.sql_type([row[j] for row in rows if len(row) > j]) for j in range(width))
    return replace(layout, numeric=cell_kinds.numeric_columns(rows, width), types=types)


def _width(records: Sequence[Record]) -> int:
    """The number of cells that most records have."""
    counts = Counter(len(cells) for _, cells in records)
    return max(counts, key=lambda width: (counts[width], width))


def _n_titles(records: Sequence[Record], width: int) -> int:
    """How many records above the table are titles."""
    for k, (_, cells) in enumerate(records[:_TITLES]):
        if len(cells) >= width and (sum(1 for cell in cells if cell.strip()) > 1 or width < 3):
            return k
        if not any(is_word(cell) for cell in cells):
            return k  # numbers: a short row
        rest = records[k + 1 :]
        if not rest:
            return k
        header = any(_names_numbers(rest[j:], width) for j in range(min(len(rest), 5)))
        if len(cells) == width - 1 and not header:
            return k  # a header without a cell for the names of rows
        if sum(1 for cell in cells if cell.strip()) > 1 and not header:
            return k  # a header that is too short, which is an error
    return 0


def _names_numbers(records: Sequence[Record], width: int) -> bool:
    """Whether the first of these is a header beyond doubt: words above numbers, or other words above nothing but words."""
    top, below = records[0][1], [cells for _, cells in records[1:]]
    if len(top) not in (width, width - 1) or not below:
        return False
    numeric = cell_kinds.numeric_columns(below, width)
    over = [cell for cell, number in zip(top, numeric, strict=False) if number]
    return any(map(is_word, over)) if any(numeric) else all(map(is_word, top)) and not _recurs(top, below)


def _recurs(top: Sequence[str], below: Sequence[Sequence[str]]) -> bool:
    return any(
        is_word(cell) and any(len(row) > j and row[j].strip() == cell.strip() for row in below)
        for j, cell in enumerate(top)
    )


def _is_header(top: Sequence[str], below: Sequence[Sequence[str]], width: int) -> bool:
    words = [j for j, cell in enumerate(top) if is_word(cell)]
    if not words:
        return False
    if len(top) == width - 1:
        return True
    same = [cell.strip() for cell in top]
    others = [row for row in below if [cell.strip() for cell in row] != same]  # a header may stand there again
    numeric = cell_kinds.numeric_columns(others, width)
    if len(others) < len(below) and not any(numeric[j] for j in words if j < width):
        return False  # a row like others
    columns = [
        (cell, [row[j] for row in others if len(row) > j and not is_missing(row[j])]) for j, cell in enumerate(top)
    ]
    names = sum(is_word(cell) and bool(below) and all(map(is_number, below)) for cell, below in columns)
    again = sum(is_word(cell) and cell.strip() in map(str.strip, below) for cell, below in columns)
    alike = sum(_has_shape(cell, below) for cell, below in columns)
    # A name may happen to be a value as well; a cell that is written like those below is hardly a name.
    return names > again + alike if alike else names >= again if names else not again


def _has_shape(cell: str, below: Sequence[str]) -> bool:
    """Whether a cell with digits, such as P001, a date or a number with a unit, looks like most of those below."""
    own = cell_kinds.shape(cell)
    if cell_kinds.is_yes_or_no(cell):
        return bool(below) and all(map(cell_kinds.is_yes_or_no, below))
    if "9" not in own or own == "9":
        return False
    # Of a name such as c0, cells that do not begin with a letter cannot have the shape.
    able = [text for text in below if text.lstrip()[:1].isalpha()] if own[0].isalpha() else below
    return 5 * sum(cell_kinds.shape(text) == own for text in able) >= 4 * max(len(below), 1)


def _without_trailing(rows: Sequence[Sequence[str]], width: int, header: int | None = None) -> tuple[int, bool]:
    """The width without a last cell that is empty because rows end in a delimiter."""
    if width < 2 or (header is not None and header >= width) or not rows:
        return width, False
    full = [row for row in rows if len(row) >= width]
    empty = sum(1 for row in full if not row[width - 1].strip())
    # With a header one shorter, a single cell there is a mistake in its row; otherwise it is a column with few values.
    ends = 5 * empty >= 4 * len(full) if header == width - 1 else empty == len(full)
    return (width - 1, True) if full and ends else (width, False)


def _units(below: Sequence[Sequence[str]], width: int) -> tuple[str, ...] | None:
    """The cells of a line of units below the header, if there is one."""
    if len(below) < 2:
        return None
    top, rest = below[0], below[1:]
    there = [cell.strip() for cell in top if cell.strip()]
    if not there or any(is_number(cell) for cell in there) or len(top) > width:
        return None
    numeric = cell_kinds.numeric_columns(rest, width)
    over = [cell for cell, number in zip(top, numeric, strict=False) if number and cell.strip()]
    if not any(is_word(cell) for cell in over) or not all(is_unit(cell) for cell in over):
        return None
    return tuple(there) if 2 * sum(map(is_unit, there)) >= len(there) else None


def _unique(cells: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
    """Names that differ and are not empty; those that occurred twice; those that were made up."""
    taken = set(cells)
    seen: set[str] = set()
    names, duplicates, empty = [], [], []

    def free(base: str, number: int, join: str = "_") -> str:
        while f"{base}{join}{number}" in taken:
            number += 1
        taken.add(f"{base}{join}{number}")
        return f"{base}{join}{number}"

    for j, cell in enumerate(cells):
        name = cell
        if not cell:
            name = free("column", j + 1)
            empty.append(name)
        elif cell in seen:
            name = free(cell, 2)
            if cell not in duplicates:
                duplicates.append(cell)
        seen.add(cell)
        names.append(name)
    return tuple(names), tuple(duplicates), tuple(empty)


def _header_in_comment(line: str, number: int, layout: Layout) -> Layout:
    """The last comment above rows without a header may be their header: #x,y,z."""
    cells = [cell.strip() for cell in layout.dialect.cut(re.sub(r"^#+\s*", "", line).rstrip("\r\n"))]
    if layout.width < 2 or len(cells) != layout.width or not all(cells) or any(map(is_number, cells)):
        return layout
    names, duplicates, empty = _unique(cells)
    return replace(layout, header=tuple(cells), header_line=number, names=names, duplicates=duplicates, empty=empty)
