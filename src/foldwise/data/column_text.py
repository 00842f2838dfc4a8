"""How the cells of a text column are written: numbers, words, yes and no. Each format reads a cell in SQL and in Python alike.

A format is strict: a cell that it does not fit is an error of the query (`sql`) or can be counted (`misfit`), never a silent
NULL. Dates are in `column_dates`; `column_guess` finds the format of a column.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol, TypeAlias

from foldwise.data.duckdb_connection import literal

# What stands for a missing cell, written exactly so; "none" is a level where other words stand beside it.
TOKENS = (
    *("NA", "N/A", "n/a", "na", "N.A.", "n.a.", "NaN", "nan", "NAN", "null", "NULL", "Null", "None", "none", "NONE"),
    *("#N/A", "#NA", "<NA>", "NaT", "-", "--", "?", ".", "..", "\u2013", "\u2014", "\\N", "(null)"),
    *("#DIV/0!", "#VALUE!", "#REF!", "#NAME?", "#NUM!", "#NULL!"),
)
WORD_TOKENS = tuple(token for token in TOKENS if token.lower() != "none")

_WIDE_BLANKS = "\u00a0\u202f\u2007\u2009"  # hard, narrow, figure and thin space
BLANKS = " \t\r\n" + _WIDE_BLANKS
_MINUS = "\u2212\u2013-"  # in a class of characters the plain one has to be last
_BLANK = f"[ \\t{_WIDE_BLANKS}]*"
THOUSANDS = {",": ",", ".": ".", " ": f" {_WIDE_BLANKS}", "'": "'\u2019"}  # marks that are taken for one another

SYMBOLS = "$€£¥₹₽₩₪₺₴฿"
CURRENCIES = (
    *SYMBOLS,
    *(
        "USD",
        "EUR",
        "GBP",
        "JPY",
        "CHF",
        "CAD",
        "AUD",
        "NZD",
        "SEK",
        "NOK",
        "DKK",
        "PLN",
        "CZK",
        "HUF",
        "INR",
        "CNY",
        "BRL",
    ),
    *("MXN", "ZAR", "kr", "Kr", "Fr.", "Rs", "Rs."),
)

Cell: TypeAlias = float | bool | str | None


class MisfitError(ValueError):
    """A cell that its format does not fit."""


class Format(Protocol):
    """How the cells of a column are read."""

    @property
    def missing(self) -> tuple[str, ...]:
        """The cells, trimmed, that are missing besides empty ones."""

    def sql(self, cell: str) -> str:
        """An SQL expression for the value of a cell, NULL if it is missing; a misfit is an error of the query."""

    def misfit(self, cell: str) -> str:
        """An SQL condition: the cell is there and does not fit."""


MISFIT = "cannot be cast to"  # in the message of the query's error for a cell that does not fit


def refusal(cell: str, what: str, sql_type: str) -> str:
    """SQL that ends the query with an error which names the cell."""
    return f"CAST(error({literal(f'a cell {MISFIT} {what}: ')} || {cell}) AS {sql_type})"


def trimmed(cell: str) -> str:
    """SQL for a cell without blanks around it, also those that DuckDB's `trim` leaves."""
    return f"trim({cell}, {literal(BLANKS)})"


def is_one_of(text: str, words: Sequence[str]) -> str:
    """SQL: a text is one of these words.

    Not by IN or list_contains: of many words DuckDB would make a join, after which rows come in another order each time.
    """
    return f"(coalesce(list_position([{', '.join(literal(word) for word in dict.fromkeys(words))}], {text}), 0) > 0)"


def is_missing(cell: str, tokens: Sequence[str]) -> str:
    """SQL: the cell is NULL, empty, blank or one of the tokens."""
    return f"({cell} IS NULL OR {is_one_of(trimmed(cell), ('', *tokens))})"


@dataclass(frozen=True)
class NumberFormat:
    """How the numbers of a column are written.

    `thousands` is the mark between groups of three digits; a space stands for all kinds of spaces, an apostrophe for both.
    `prefix` and `suffix` (a currency sign, a unit, a percent sign) come off. A currency may be lacking; a unit may not, but for
    zero, since a number without it may mean something else. Percent keeps the printed figure. `words` are cells that hold no
    number, are known, and count as missing. `seen` are missing cells as they stand in the file; a query that knows them is
    faster. NaN is missing; in SQL one that was not seen stays NaN, which blocks of rows take for missing as well.

    >>> price = NumberFormat(thousands=",", prefix="$", parentheses=True)
    >>> price.parse("$1,234.50"), price.parse("(12)"), price.parse("-$5"), price.parse("NA")
    (1234.5, -12.0, -5.0, None)
    >>> NumberFormat(decimal=",", thousands=".", suffix="EUR").parse("1.234,50 EUR")
    1234.5
    """

    decimal: str = "."
    thousands: str = ""
    prefix: str = ""
    suffix: str = ""
    parentheses: bool = False
    missing: tuple[str, ...] = TOKENS
    words: tuple[str, ...] = ()
    seen: tuple[str, ...] = ()

    @property
    def plain(self) -> bool:
        """Whether DuckDB's own cast reads the numbers."""
        return self == NumberFormat(missing=self.missing, words=self.words, seen=self.seen)

    @property
    def _quick(self) -> bool:
        """Whether whatever DuckDB's cast reads is right."""
        return self.decimal == "." and self.thousands != "." and self._may_lack_suffix

    @property
    def _may_lack_suffix(self) -> bool:
        return not self.suffix or self.suffix in CURRENCIES

    @property
    def masks_numbers(self) -> bool:
        """Whether some of what is missing looks like a number, such as -9."""
        return any(is_number_word(word) for word in self._absent)

    @property
    def _number(self) -> str:
        """A pattern, the same in Python and RE2, of the digits with their marks."""
        whole = r"[0-9]+(?:_[0-9]+)*"
        if self.thousands:
            mark = f"[{THOUSANDS[self.thousands]}]"
            whole = f"(?:[0-9]{{1,3}}(?:{mark}[0-9]{{2,3}})*{mark}[0-9]{{3}}|{whole})"
        point = re.escape(self.decimal)
        return f"(?:{whole}(?:{point}[0-9]*)?|{point}[0-9]+)(?:[eE][+-]?[0-9]+)?"

    @cached_property
    def pattern(self) -> str:
        """A pattern of a whole cell, the same in Python and RE2."""
        sign, prefix, suffix = f"[+{_MINUS}]?{_BLANK}", re.escape(self.prefix), re.escape(self.suffix)
        before = f"(?:{sign}{prefix}{_BLANK}|{prefix}{_BLANK}{sign}|{sign})" if prefix else sign
        after = f"(?:{_BLANK}{suffix})?" if suffix else ""
        cell = f"{before}{self._number}{after}"
        if not self._may_lack_suffix:
            cell = f"(?:{before}{self._number}{_BLANK}{suffix}|{before}0+(?:{re.escape(self.decimal)}0*)?)"
        return f"(?:{cell}|[(]{_BLANK}{cell}{_BLANK}[)])" if self.parentheses else cell

    @property
    def _negative(self) -> str:
        return f"^[^0-9]*[({_MINUS}]" if self.parentheses else f"^[^0-9]*[{_MINUS}]"

    def _magnitude(self, cell: str) -> str:
        text = f"regexp_extract({cell}, {literal(self._number)})"
        if self.thousands:
            text = f"translate({text}, {literal(THOUSANDS[self.thousands])}, '')"
        return text if self.decimal == "." else f"replace({text}, {literal(self.decimal)}, '.')"

    @property
    def _absent(self) -> tuple[str, ...]:
        return (*self.missing, *self.words)

    def sql(self, cell: str) -> str:
        """SQL of type DOUBLE: DuckDB's cast where it will do, and a closer look at the cells that it refuses."""
        text, absent = trimmed(cell), is_missing(cell, self._absent)
        if self.plain:
            read = f"TRY_CAST({_tidy(text)} AS DOUBLE)"
            slow = f"nullif(coalesce({read}, {refusal(cell, 'a number', 'DOUBLE')}), 'NaN')"
        else:
            magnitude = f"CAST({self._magnitude(text)} AS DOUBLE)"
            signed = (
                f"CASE WHEN regexp_matches({text}, {literal(self._negative)}) THEN -{magnitude} ELSE {magnitude} END"
            )
            fits = f"regexp_full_match({text}, {literal(self.pattern)})"
            slow = f"CASE WHEN {fits} THEN {signed} ELSE {refusal(cell, 'a number', 'DOUBLE')} END"
        known = [token for token in self.seen if token.strip(BLANKS).lower() != "nan"]
        first = f"WHEN {is_one_of(cell, known)} THEN NULL " if known else ""
        slow = f"CASE {first}WHEN {absent} THEN NULL ELSE {slow} END"
        if not self._quick:
            return slow
        quick = f"TRY_CAST({cell} AS DOUBLE)"
        if len(known) < len(self.seen):  # to DuckDB, NaN is a number above all others
            quick = f"nullif({quick}, 'NaN')"
        found = f"coalesce({quick}, {slow})"
        return f"CASE WHEN {absent} THEN NULL ELSE {found} END" if self.masks_numbers else found

    def misfit(self, cell: str) -> str:
        """SQL: the cell is there and is no number."""
        text = trimmed(cell)
        if self.plain:
            read = f"TRY_CAST({_tidy(text)} AS DOUBLE) IS NOT NULL"
        else:
            read = f"regexp_full_match({text}, {literal(self.pattern)})"
        # In this order, and by CASE, which goes on only with the cells that are left: the first settles most of them.
        first = f"TRY_CAST({cell} AS DOUBLE) IS NOT NULL" if self._quick else f"{cell} IS NULL"
        known = f"WHEN {is_one_of(cell, self.seen)} THEN false " if self.seen else ""
        return (
            f"CASE WHEN {first} THEN false {known}WHEN {is_missing(cell, self._absent)} THEN false ELSE NOT {read} END"
        )

    def parse(self, text: str | None) -> float | None:
        """The number in a cell, None if it is missing; raises MisfitError."""
        if text is None or text.strip(BLANKS) in ("", *self._absent):
            return None
        text = text.strip(BLANKS)
        if self._quick:
            found = _as_duckdb(text.replace("\u2212", "-") if self.plain else text)
            if found is not None:
                return None if math.isnan(found) else found
        if self.plain or re.fullmatch(self.pattern, text) is None:
            raise MisfitError(text)
        digits = re.search(self._number, text)
        assert digits is not None
        kept = digits.group()
        for mark in THOUSANDS[self.thousands] if self.thousands else "":
            kept = kept.replace(mark, "")
        size = float(kept.replace(self.decimal, ".").replace("_", ""))
        return -size if re.match(self._negative, text) else size


_DUCKDB = re.compile(
    r"[+-]?(?:(?:[0-9]+(?:_[0-9]+)*(?:\.[0-9]*(?:_[0-9]+)*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|inf(?:inity)?|nan)",
    re.IGNORECASE,
)


def _as_duckdb(text: str) -> float | None:
    """What DuckDB's cast to DOUBLE makes of a text, None if it refuses."""
    return float(text.replace("_", "")) if _DUCKDB.fullmatch(text) else None


def is_number_word(word: str) -> bool:
    """Whether DuckDB would take a word, such as one for missing cells, for a number.

    >>> is_number_word("-9"), is_number_word("NA"), is_number_word("nan")
    (True, False, False)
    """
    value = _as_duckdb(word.strip(BLANKS))
    return value is not None and not math.isnan(value)


def _tidy(text: str) -> str:
    """SQL for a text with an ordinary minus sign."""
    return f"replace({text}, '\u2212', '-')"


@dataclass(frozen=True)
class BooleanFormat:
    """Words, in small letters, for yes and no.

    >>> BooleanFormat("y", "n").parse("Y"), BooleanFormat("y", "n").parse("?")
    (True, None)
    """

    yes: str
    no: str
    missing: tuple[str, ...] = TOKENS

    def sql(self, cell: str) -> str:
        """SQL of type BOOLEAN."""
        low = f"lower({trimmed(cell)})"
        yes, no = f"{low} = {literal(self.yes)}", f"{low} = {literal(self.no)}"
        other = refusal(cell, f"{self.yes} or {self.no}", "BOOLEAN")
        absent = is_missing(cell, self.missing)
        return f"CASE WHEN {yes} THEN true WHEN {no} THEN false WHEN {absent} THEN NULL ELSE {other} END"

    def misfit(self, cell: str) -> str:
        """SQL: the cell is there and is neither."""
        either = is_one_of(f"lower({trimmed(cell)})", (self.yes, self.no))
        return f"CASE WHEN {either} THEN false ELSE NOT {is_missing(cell, self.missing)} END"

    def parse(self, text: str | None) -> bool | None:
        """Yes or no, None if it is missing; raises MisfitError."""
        word = "" if text is None else text.strip(BLANKS)
        if word.lower() in (self.yes, self.no):
            return word.lower() == self.yes
        if word in ("", *self.missing):
            return None
        raise MisfitError(word)


def number_as_word(value: str) -> str:
    """SQL for a number of type DOUBLE or FLOAT as a word: whole numbers without a point; NULL if it is NaN."""
    whole = f"{value} = floor({value}) AND abs({value}) < 1e18"
    words = f"WHEN {whole} THEN CAST(CAST({value} AS BIGINT) AS VARCHAR) ELSE CAST({value} AS VARCHAR)"
    return f"CASE WHEN isnan({value}) THEN NULL {words} END"


_DIGITS = "-?[1-9][0-9]*|0"  # as a column of whole numbers would have them


@dataclass(frozen=True)
class WordFormat:
    """Words as they stand, without blanks around them; with `numbers`, those that are numbers as a typed column has them.

    >>> WordFormat().parse(" none "), WordFormat().parse("N/A")
    ('none', None)
    >>> WordFormat().parse("1.0"), WordFormat(numbers=True).parse("1.0")
    ('1.0', '1')
    """

    missing: tuple[str, ...] = WORD_TOKENS
    numbers: bool = False

    def sql(self, cell: str) -> str:
        """SQL of type VARCHAR."""
        word = trimmed(cell)
        if self.numbers:
            digits = f"regexp_full_match({word}, {literal(_DIGITS)})"  # of which a number might not hold all
            word = f"CASE WHEN {digits} THEN {word} ELSE coalesce({number_as_word(f'TRY_CAST({word} AS DOUBLE)')}, {word}) END"
        return f"CASE WHEN {is_missing(cell, self.missing)} THEN NULL ELSE {word} END"

    def misfit(self, cell: str) -> str:
        """Every cell fits."""
        return "false"

    def parse(self, text: str | None) -> str | None:
        """The word, None if it is missing."""
        word = "" if text is None else text.strip(BLANKS)
        if word in ("", *self.missing):
            return None
        value = _as_duckdb(word) if self.numbers and not re.fullmatch(_DIGITS, word) else None
        if value is None or math.isnan(value):
            return word
        return str(int(value)) if abs(value) < 1e18 and value.is_integer() else repr(value)
