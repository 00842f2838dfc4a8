"""What a cell of a text file looks like: a number, nothing, a unit, a total."""

from __future__ import annotations

import re
from collections.abc import Sequence
from math import isnan

from foldwise.data.column_text import TOKENS

MISSING = frozenset(("", "nil", *(token.lower() for token in TOKENS)))
_NUMBER = re.compile(
    r"\(?[+\-\u2212]?\s?[$€£¥]?\s?[+\-]?(?:\d(?:[\d.,'\u00a0\u202f\u2009 ]*\d)?|[.,]\d+)[.,]?(?:[eE][+-]?\d+)?[\s\u00a0\u202f]?"
    r"(?:%|[$€£¥]|EUR|USD)?\)?|[+-]?(?:inf|infinity)",
    re.IGNORECASE,
)
_PLAIN = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?|[+-]?(?:inf|infinity|nan)", re.IGNORECASE)
_DAY = re.compile(r"\d{4}-\d\d-\d\d")
_MOMENT = re.compile(r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d(?::\d\d(?:\.\d+)?)?")
_DIGITS = re.compile(r"(?:(?<!\w)[+\-\u2212])?\d(?:[\d.,'\u00a0\u202f\u2009 ]*\d)?")
_MONTH = re.compile(r"\b(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\b", re.IGNORECASE)
_EXPONENT = re.compile(r"(?<=\d)[eE][+-]?\d+$")
_HALF_OF_DAY = re.compile(r"(?<=\d) ?[ap]\.?m\.?$", re.IGNORECASE)
_YES_OR_NO = frozenset(("yes", "no", "true", "false", "y", "n", "t", "f", "on", "off", "ja", "nein", "oui", "non"))
_MARKED = re.compile(r"#(?:N/A|NA|DIV/0!|VALUE!|REF!|NAME\?|NUM!|NULL!)(?![\w/])")
_TOTAL = re.compile(
    r"(?:grand |sub)?totals?|sum|overall|gesamt(?:summe)?|summe|insgesamt|somme|ensemble|totale|suma|totaal|yhteensä|totalt",
    re.IGNORECASE,
)
_UNIT = re.compile(
    r"[(\[{].{0,20}[)\]}]"  # anything in brackets
    r"|[µμumkcdMGTnph]?(?:m|g|s|l|L|A|V|W|Hz|Pa|J|N|K|mol|bar|cal|Wh|eV|B|bit|Bq|Sv|T|F|H|C|Ω|ohm)(?:\^?-?[1-3²³])?"
    r"|°[CFK]?|deg(?:rees?)?|[%‰]|ppm|ppb|hPa|mmHg|atm|psi|min|sec|hrs?|h|d|days?|weeks?|months?|yrs?|years?|a|ha|acres?"
    r"|UTC|GMT|local|in|inch(?:es)?|ft|feet|yd|mi|miles?|lbs?|oz|kn(?:ots)?|mph|kph|rpm|dB|pH|count|number|index|id|code|text|date|time"
    r"|-|n/a|none|unitless|dimensionless|[$€£¥]|EUR|USD|GBP|CHF|k[$€]|psu|NTU|FNU|dBZ|lx|cd|rad|sr|gal|kat",
)
_PARTS = re.compile(r"\s*[/*·]\s*|\s+per\s+|\s+")


def is_missing(cell: str) -> bool:
    """Whether the cell holds nothing, or a usual sign for nothing."""
    return cell.strip().lower() in MISSING


def is_number(cell: str) -> bool:
    """Whether people would read the cell as a number, in whatever notation."""
    try:
        if not isnan(float(cell)) and "_" not in cell:
            return True  # most cells are, and the pattern takes five times as long
    except ValueError:
        pass
    return _NUMBER.fullmatch(cell.strip()) is not None


def begins_with_error(line: str) -> bool:
    """Whether a line begins with a cell such as #N/A, which spreadsheets write."""
    return _MARKED.match(line) is not None


def is_word(cell: str) -> bool:
    """Whether the cell is neither a number nor missing."""
    return not is_missing(cell) and not is_number(cell)


def is_unit(cell: str) -> bool:
    """Whether the cell may be a unit of measurement: m/s, °C, %, (mm), UTC."""
    cell = cell.strip()
    if _UNIT.fullmatch(cell):
        return True
    parts = [part for part in _PARTS.split(cell) if part]
    return 1 < len(parts) <= 4 and all(_UNIT.fullmatch(part) or part == "1" for part in parts)


def is_total(cells: Sequence[str]) -> bool:
    """Whether a row is a line of totals: the first word says so, and there are numbers."""
    named = next((cell.strip() for cell in cells[:3] if cell.strip()), "")
    return _TOTAL.fullmatch(named.rstrip(":. ")) is not None and any(is_number(cell) for cell in cells)


def shape(cell: str) -> str:
    """The cell with each number as 9, and each name of a month as Jan: P001 and P734 have the same shape.

    >>> [shape(cell) for cell in ("P001", "12.5 kg", "26-Jul-76", "March 04, 2017", "06/16/1980 08:35 AM")]
    ['P9', '9 kg', '9-Jan-9', 'Jan 9', '9/9/9:9 am']
    """
    cell = _EXPONENT.sub("e9", _HALF_OF_DAY.sub(" am", cell.strip()))
    return _DIGITS.sub("9", _MONTH.sub("Jan", cell) if any(map(str.isdigit, cell)) else cell)


def is_yes_or_no(cell: str) -> bool:
    """Whether the cell is a word for yes or no."""
    return cell.strip().lower() in _YES_OR_NO


def numeric_columns(rows: Sequence[Sequence[str]], width: int) -> tuple[bool, ...]:
    """For each column whether at least four fifths of the cells that hold something are numbers."""
    found = []
    for j in range(width):
        cells = [row[j] for row in rows if len(row) > j and not is_missing(row[j])]
        found.append(bool(cells) and 5 * sum(map(is_number, cells)) >= 4 * len(cells))
    return tuple(found)


def fits(cells: Sequence[str], numeric: Sequence[bool]) -> bool:
    """Whether the cells that stand in columns of numbers are numbers or missing."""
    return all(not number or not is_word(cell) for cell, number in zip(cells, numeric, strict=False))


def sql_type(cells: Sequence[str]) -> str:
    """The type that DuckDB can read all these cells as."""
    there = [cell.strip() for cell in cells if cell.strip()]
    if not there:
        return "VARCHAR"
    for name, pattern in (("DOUBLE", _PLAIN), ("DATE", _DAY), ("TIMESTAMP", _MOMENT)):
        if all(pattern.fullmatch(cell) for cell in there):
            return name
    return "BOOLEAN" if all(cell.lower() in ("true", "false") for cell in there) else "VARCHAR"
