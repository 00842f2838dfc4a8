"""How lines are cut into cells: delimiter, quotation marks, and which delimiter a file has."""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from foldwise.data.text_cells import is_missing, is_number
from foldwise.errors import DataError

ALIGNED, BLANKS, NONE = "aligned", "blanks", "\x1f"  # two or more blanks; any blanks; one column
_NAMES = {
    ",": "commas",
    ";": "semicolons",
    "\t": "tabs",
    "|": "vertical bars",
    " ": "single blanks",
    ALIGNED: "columns aligned by blanks",
    BLANKS: "blanks",
    NONE: "one column",
}
_SPOKEN = {
    "tab": "\t",
    "\\t": "\t",
    "comma": ",",
    "semicolon": ";",
    "pipe": "|",
    "bar": "|",
    " ": BLANKS,
    "space": BLANKS,
    "blank": BLANKS,
    "spaces": BLANKS,
    "whitespace": BLANKS,
    "\\s+": BLANKS,
}
_CANDIDATES = ("\t", ";", "|", ",", ALIGNED, " ", BLANKS)  # the earlier, where nothing else decides
_SAMPLE = 200  # records by which delimiters are compared
_FEWER = 50  # of which the cells are looked at
_TWO_BLANKS = re.compile(r"[ \u00a0]{2,}")
_PIECE = re.compile(r'"((?:[^"]|"")*)"(?=\s|$)|(\S+)')

Record = tuple[int, list[str]]  # the line in which it begins, counted from 1, and its cells
_OTHER_DELIMITER = "Give delimiter= if the file has another one"


@dataclass(frozen=True)
class Dialect:
    """How a line is cut into cells."""

    delimiter: str
    quote: str = '"'  # "" if there is none
    escape: str = '"'  # before a quotation mark within quotation marks

    @property
    def by_blanks(self) -> bool:
        """Whether the number of blanks between cells varies, so that no cell can be empty."""
        return self.delimiter in (ALIGNED, BLANKS)

    @property
    def is_blank(self) -> bool:
        """Whether a single blank separates cells."""
        return self.delimiter in (" ", BLANKS)

    @property
    def shown(self) -> str:
        """What people call it."""
        return _NAMES.get(self.delimiter, f"delimiter {self.delimiter!r}")

    def cut(self, line: str) -> list[str]:
        """The cells of a single line."""
        return next((cells for _, cells in Tokens([line], self, cut=True)), [])


class Tokens:
    """The records of lines. Blank lines and comments are left out, and comments remembered."""

    def __init__(
        self,
        lines: Iterable[str],
        dialect: Dialect,
        *,
        is_comment: Callable[[str], bool] | None = None,
        first: int = 1,
        where: str | None = None,
        cut: bool = False,
    ) -> None:
        """`first` is the number of the first line. With `cut`, the last record may be incomplete, and is left out then."""
        self._lines, self._dialect, self._is_comment = iter(lines), dialect, is_comment
        self._number, self._start = first - 1, first
        self._where, self._cut = where, cut
        self._fresh, self._ended = True, False
        self.comments: list[int] = []
        self.n_comments = 0
        self.blank = 0
        self.after_blank = False  # whether a blank line stands before the record that was given last
        self._pending_blank = False

    def __iter__(self) -> Iterator[Record]:
        if self._dialect.by_blanks:
            split = _by_two if self._dialect.delimiter == ALIGNED else _by_any
            for line in self._next_lines():
                self._fresh = True
                yield self._start, split(line)
            return
        quoted = bool(self._dialect.quote)
        doubled = self._dialect.escape != "\\"
        reader = csv.reader(
            self._next_lines(),
            delimiter=self._dialect.delimiter,
            quotechar=self._dialect.quote if quoted else None,
            quoting=csv.QUOTE_MINIMAL if quoted else csv.QUOTE_NONE,
            doublequote=doubled,
            escapechar=None if doubled else "\\",
            skipinitialspace=self._dialect.delimiter not in (" ", "\t"),
            strict=True,
        )
        try:
            for cells in reader:
                self._fresh = True
                yield self._start, cells
        except csv.Error as problem:
            if self._cut and self._ended:
                return
            raise self._explained(problem) from None

    def _next_lines(self) -> Iterator[str]:
        for line in self._lines:
            self._number += 1
            if self._fresh:
                if not line.strip() and (
                    self._dialect.delimiter != "\t" or "\t" not in line
                ):  # tabs: a row without values
                    self.blank += 1
                    self._pending_blank = True
                    continue
                if self._is_comment is not None and self._is_comment(line):
                    self.n_comments += 1
                    if len(self.comments) < 20:
                        self.comments.append(self._number)
                    continue
                self._start, self._fresh = self._number, False
                self.after_blank, self._pending_blank = self._pending_blank, False
            yield line
        self._ended = not self._fresh

    def _explained(self, problem: csv.Error) -> DataError:
        if "unexpected end" in str(problem):
            what = f"the quotation mark that opens in line {self._start} is never closed"
        elif "limit" in str(problem):
            most = csv.field_size_limit()
            what = f"a cell in line {self._start} has more than {most} characters; a quotation mark may be missing"
        elif "expected after" in str(problem):
            what = f"there is text after a closing quotation mark in line {self._number}"
            if self._number > self._start:
                what += f" (the cell begins in line {self._start})"
        else:
            what = f"line {self._number} cannot be read: {problem}"
        advice = "Correct that line: a quotation mark within quotation marks is written twice"
        return DataError(what, where=self._where, advice=advice)


def _by_two(line: str) -> list[str]:
    return _TWO_BLANKS.split(line.strip())


def _by_any(line: str) -> list[str]:
    if '"' not in line:
        return line.split()
    return [m[1].replace('""', '"') if m[1] is not None else m[2] for m in _PIECE.finditer(line.strip())]


def named(delimiter: str, where: str) -> str:
    """A delimiter that a user gave, by itself or by its name."""
    found = _SPOKEN.get(delimiter.lower(), delimiter)
    if found not in _NAMES and (len(found) != 1 or found in '"\r\n\x00' or found.isalnum()):
        raise DataError(
            f"delimiter={delimiter!r} is not one", where=where, advice="Give one character, or tab, space, spaces"
        )
    return found


@dataclass(frozen=True)
class _Tried:
    dialect: Dialect
    share: float  # of records that have the most frequent number of cells
    numbers: float  # share of cells that are numbers or missing
    first: bool  # whether the first record has that number of cells
    rank: int
    failed: bool  # whether quotation marks are not as they should be
    width: int  # the number of cells

    @property
    def even(self) -> bool:
        """Whether all records, from the first one, have the same number of cells."""
        return self.share == 1 and self.first and not self.failed


def choose(
    lines: Sequence[str], is_comment: Callable[[str], bool] | None, delimiter: str | None, *, cut: bool
) -> Dialect:
    """The dialect by which these lines, the first of a file, are cut most evenly; with `cut`, more lines follow."""
    tried = []
    candidates = {None: _CANDIDATES, BLANKS: (" ", BLANKS)}.get(delimiter, (delimiter or "",))
    for rank, candidate in enumerate(candidates):
        ways = [
            _try(lines, Dialect(candidate, quote, escape), is_comment, rank, cut)
            for quote, escape in _quotes(lines, candidate)
        ]
        found = [way for way in ways if way is not None]
        if found:
            tried.append(next((way for way in found if not way.failed), found[0]))
    if not tried:
        return Dialect(delimiter or NONE)
    tried = _without_weaker(tried)
    best = max(one.share for one in tried)
    tried = [one for one in tried if one.share >= best - 0.05]
    tried = [one for one in tried if one.first] or tried
    most = max(one.numbers for one in tried)
    return min((one for one in tried if one.numbers >= most - 0.05), key=lambda one: one.rank).dialect


def _without_weaker(tried: list[_Tried]) -> list[_Tried]:
    """Without commas and blanks that may be part of cells, where others cut all lines evenly.

    Commas stand in numbers and dates, blanks in anything. A semicolon in each line may be part of a text, if commas make more
    cells, and of these more are numbers.
    """
    strong = [one for one in tried if one.even and one.dialect.delimiter in ("\t", ";", "|")]
    commas = [one for one in tried if one.even and one.dialect.delimiter == ","]
    if not strong:
        return [one for one in tried if not one.dialect.is_blank] if commas else tried
    semicolons = commas and all(one.dialect.delimiter == ";" for one in strong)
    in_cells = semicolons and commas[0].width > strong[0].width and commas[0].numbers > strong[0].numbers
    return commas if in_cells else strong


def _quotes(lines: Sequence[str], delimiter: str) -> list[tuple[str, str]]:
    """The quotation marks to try, the likeliest first."""
    text = "".join(lines[:_SAMPLE])
    found = [('"', '"')]
    if delimiter in (ALIGNED, BLANKS):
        return found
    d = re.escape(delimiter)
    if '\\"' in text:
        found.insert(0, ('"', "\\"))
    if '"' not in text and len(re.findall(rf"(?m)(?:^|{d})'[^'\r\n]*'(?=$|\r|{d})", text)) > 1:
        found.insert(0, ("'", "'"))
    if '"' in text and not re.search(rf'(?m)(?:^|{d}) ?"[^"]*"(?=$|\r|{d})', text):
        found.append(("", ""))  # marks that stand for inches, or for themselves
    return found


def _try(
    lines: Sequence[str], dialect: Dialect, is_comment: Callable[[str], bool] | None, rank: int, cut: bool
) -> _Tried | None:
    records: list[list[str]] = []
    failed = False
    try:
        for _, cells in Tokens(lines, dialect, is_comment=is_comment, cut=cut):
            records.append(cells)
            if len(records) == _SAMPLE:
                break
    except DataError:
        failed = True
    if not records:
        return None
    first = len(records[0])
    records = _without_title(records)
    width, count = Counter(map(len, records)).most_common(1)[0]
    share = count / len(records)
    there = [cell for record in records[:_FEWER] for cell in record if cell.strip()]
    numbers = sum(is_number(cell) or is_missing(cell) for cell in there) / max(len(there), 1)
    blanks = dialect.by_blanks or dialect.is_blank
    if width < 2 or share < (0.9 if blanks else 0.6) or (blanks and numbers < 0.3):
        return None
    return _Tried(dialect, share, numbers, first == width, rank, failed, width)


def _without_title(records: list[list[str]]) -> list[list[str]]:
    """Without the first lines of one cell, if there are enough others."""
    titles = next((k for k, record in enumerate(records) if len(record) > 1), 0)
    return records[titles:] if titles <= 10 and len(records) - titles >= 2 else records
