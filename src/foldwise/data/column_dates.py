"""How the dates of a text column are written, and which formats a set of cells can have."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterable
from dataclasses import dataclass

from foldwise.data.column_text import BLANKS, TOKENS, MisfitError, is_missing, refusal, trimmed
from foldwise.data.duckdb_connection import literal

ISO = "ISO"
_ZONE = r"\s?(?:Z|[+-]\d\d(?::?\d\d)?)"
_CLOCK = r"[ T]\d{1,2}:\d\d(?::\d\d(?:[.,]\d{1,9})?)?"
_ISO_SHAPE = re.compile(rf"(\d{{4}}-\d{{1,2}}-\d{{1,2}})({_CLOCK})?({_ZONE})?", re.ASCII)
_SQL_ISO = r"\d{4}-\d{1,2}-\d{1,2}([ T]\d{1,2}:\d\d(:\d\d(\.\d{1,9})?)?)?"
_SQL_ZONED = r"\d{4}-\d{1,2}-\d{1,2}[ T]\d{1,2}:\d\d(:\d\d(\.\d{1,9})?)?\s?(Z|[+-]\d\d(:?\d\d)?)"
_MOST = 0.9  # of the cells have the shape; the others are looked at one by one
_TIMES = ("", " %H:%M", " %H:%M:%S", " %I:%M %p", " %I:%M:%S %p")
_TIME_SHAPES = (
    r"",
    r" \d{1,2}:\d\d",
    r" \d{1,2}:\d\d:\d\d",
    r" \d{1,2}:\d\d ?[AaPp][Mm]",
    r" \d{1,2}:\d\d:\d\d ?[AaPp][Mm]",
)


@dataclass(frozen=True)
class DateFormat:
    """How the dates of a column are written: in ISO form, with a zone or not, or by a pattern of `strptime`.

    Moments with a zone are given in UTC. `ambiguous`: day and month could also be the other way round.

    >>> DateFormat("%d.%m.%Y").parse("05.03.1989")
    datetime.datetime(1989, 3, 5, 0, 0)
    >>> DateFormat(zoned=True).parse("2024-03-31T07:16:13-05:00")
    datetime.datetime(2024, 3, 31, 12, 16, 13)
    """

    pattern: str = ISO
    zoned: bool = False
    ambiguous: bool = False
    missing: tuple[str, ...] = TOKENS
    words: tuple[str, ...] = ()

    @property
    def _absent(self) -> tuple[str, ...]:
        return (*self.missing, *self.words)

    @property
    def days_only(self) -> bool:
        """Whether the pattern has no time of day; of ISO dates only the cells can tell."""
        return self.pattern != ISO and "%H" not in self.pattern and "%I" not in self.pattern

    def _read(self, text: str, *, strict: bool) -> str:
        cast = "CAST" if strict else "TRY_CAST"
        if self.pattern != ISO:
            return f"{'' if strict else 'try_'}strptime({text}, {literal(self.pattern)})"
        if self.zoned:
            return f"make_timestamp(epoch_us({cast}({text} AS TIMESTAMPTZ)))"
        return f"{cast}({text} AS TIMESTAMP)"

    def _fits(self, text: str) -> str:
        """DuckDB's cast would pass over a zone or what follows it, so the shape is tested too."""
        read = f"{self._read(text, strict=False)} IS NOT NULL"
        shape = _SQL_ZONED if self.zoned else _SQL_ISO
        return read if self.pattern != ISO else f"regexp_full_match({text}, {literal(shape)}) AND {read}"

    def sql(self, cell: str) -> str:
        """SQL of type TIMESTAMP."""
        text = trimmed(cell)
        other = refusal(cell, "a date", "TIMESTAMP")
        read = f"CASE WHEN {self._fits(text)} THEN {self._read(text, strict=True)} ELSE {other} END"
        return f"CASE WHEN {is_missing(cell, self._absent)} THEN NULL ELSE {read} END"

    def misfit(self, cell: str) -> str:
        """SQL: the cell is there and is no date."""
        fits = f"coalesce({self._fits(trimmed(cell))}, false)"
        return f"CASE WHEN {is_missing(cell, self._absent)} THEN false ELSE NOT ({fits}) END"

    def parse(self, text: str | None) -> dt.datetime | None:
        """The moment in a cell, in UTC if it has a zone, None if it is missing; raises MisfitError."""
        cell = "" if text is None else text.strip(BLANKS)
        if cell in ("", *self._absent):
            return None
        try:
            return self._parsed(cell)
        except ValueError:
            raise MisfitError(cell) from None

    def _parsed(self, cell: str) -> dt.datetime:
        if self.pattern != ISO:
            return dt.datetime.strptime(cell, self.pattern)
        shape = re.fullmatch(_SQL_ZONED if self.zoned else _SQL_ISO, cell, re.ASCII)
        if shape is None:
            raise MisfitError(cell)
        year, month, day = (int(part) for part in cell[: re.match(r"[\d-]+", cell).end()].split("-")[:3])  # type: ignore[union-attr]
        moment = dt.datetime(year, month, day)
        clock = re.search(r"[ T](\d{1,2}):(\d\d)(?::(\d\d)(?:\.(\d{1,9}))?)?", cell, re.ASCII)
        if clock:
            hour, minute, second, part = clock.groups()
            micro = int((part or "0").ljust(6, "0")[:6])
            moment = moment.replace(hour=int(hour), minute=int(minute), second=int(second or 0), microsecond=micro)
        zone = re.search(r"([+-])(\d\d):?(\d\d)?$", cell, re.ASCII) if self.zoned else None
        if zone:
            ahead = dt.timedelta(hours=int(zone.group(2)), minutes=int(zone.group(3) or 0))
            moment = moment - ahead if zone.group(1) == "+" else moment + ahead
        return moment


def candidates(cells: Iterable[str]) -> list[DateFormat]:
    """The formats that these cells can have, as far as their shapes tell, the usual one first; none if they are no dates.

    >>> [form.pattern for form in candidates(["05/02/2023", "28/12/2023"])]
    ['%m/%d/%Y', '%d/%m/%Y']
    >>> candidates(["12.5", "7"])
    []
    """
    support: dict[DateFormat, int] = {}
    total = 0
    for cell in cells:
        total += 1
        for form in _formats_of(cell.strip(BLANKS)):
            support[form] = support.get(form, 0) + 1
    return [form for form, count in support.items() if count >= _MOST * total]


def _formats_of(cell: str) -> list[DateFormat]:
    iso = _ISO_SHAPE.fullmatch(cell)
    if iso:
        zoned = iso.group(3) is not None
        return [DateFormat(zoned=zoned)] if iso.group(2) or not zoned else []
    return [
        DateFormat(day + time)
        for shape, days in _SHAPES
        for time, time_shape in zip(_TIMES, _TIME_SHAPES, strict=True)
        if re.fullmatch(shape + time_shape, cell, re.ASCII)
        for day in days
    ]


def _numbered(mark: str, year: str, digits: str, *, american: bool) -> tuple[str, tuple[str, str]]:
    shape = rf"\d{{1,2}}{re.escape(mark)}\d{{1,2}}{re.escape(mark)}\d{{{digits}}}"
    month_first, day_first = f"%m{mark}%d{mark}{year}", f"%d{mark}%m{mark}{year}"
    return shape, (month_first, day_first) if american else (day_first, month_first)


_LETTERS = r"[A-Za-z]{3,9}"
_SHAPES: tuple[tuple[str, tuple[str, ...]], ...] = (
    (r"\d{4}/\d{1,2}/\d{1,2}", ("%Y/%m/%d",)),
    (r"\d{4}\.\d{1,2}\.\d{1,2}", ("%Y.%m.%d",)),
    (r"\d{4}-\d\d", ("%Y-%m",)),
    *(
        _numbered(mark, year, digits, american=mark == "/")
        for mark in "/.-"
        for year, digits in (("%Y", "4"), ("%y", "2"))
    ),
    (rf"\d{{1,2}} {_LETTERS} \d{{4}}", ("%d %b %Y", "%d %B %Y")),
    (rf"\d{{1,2}}-{_LETTERS}-\d{{4}}", ("%d-%b-%Y", "%d-%B-%Y")),
    (rf"\d{{1,2}}-{_LETTERS}-\d\d", ("%d-%b-%y",)),
    (rf"\d{{1,2}}\. {_LETTERS} \d{{4}}", ("%d. %b %Y", "%d. %B %Y")),
    (rf"{_LETTERS} \d{{1,2}}, \d{{4}}", ("%b %d, %Y", "%B %d, %Y")),
    (rf"{_LETTERS} \d{{1,2}} \d{{4}}", ("%b %d %Y", "%B %d %Y")),
    (rf"{_LETTERS} \d{{4}}", ("%b %Y", "%B %Y")),
    (rf"{_LETTERS}-\d\d", ("%b-%y",)),
)
