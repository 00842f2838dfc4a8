"""What the text columns of a table hold: numbers however they are written, dates, yes and no, or words.

Judged by the first rows (`FirstRows`), inside DuckDB. A column of plain numbers costs a cast of its cells; of the others, a
bounded number of different cells comes to Python, which guesses a format, and another query tests the guess.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from foldwise.data.column_dates import DateFormat, candidates
from foldwise.data.column_guess import (
    FEW,
    FEW_SHARE,
    NO_UNIT,
    Guess,
    file_decimal,
    guess_boolean,
    guess_number,
    with_words,
)
from foldwise.data.column_text import (
    BLANKS,
    TOKENS,
    WORD_TOKENS,
    BooleanFormat,
    NumberFormat,
    WordFormat,
    is_missing,
    is_number_word,
    is_one_of,
    trimmed,
)
from foldwise.data.first_rows import Cells, counts_of, text_aggregates
from foldwise.data.reading import FOUND_OUT, Reading

AnyFormat = NumberFormat | DateFormat | BooleanFormat | WordFormat

_MOST_CELLS = 400  # different cells that come to Python
_MOST_LEVELS = 100  # different cells that are counted for many columns in one query
_MOST_QUERIES = 50
_PLAIN = "TRY_CAST({x} AS DOUBLE)"
_DIGITS = 15  # that a double tells apart
_THREES = r"[+-]?[1-9][0-9]{0,2}(\.[0-9]{3})+"


@dataclass(frozen=True)
class TextColumn:
    """How one text column is read, and what was met in it: cells read as missing, words among numbers, units that differ."""

    format: AnyFormat
    tokens: dict[str, int] = field(default_factory=dict)
    words: dict[str, int] = field(default_factory=dict)
    units: tuple[str, ...] = ()
    leading_zeros: int = 0
    long_digits: int = 0  # cells with more digits than a double has
    ambiguous: str = ""  # a cell whose mark may be the decimal one or stand between thousands


@dataclass(frozen=True)
class TextTable:
    """How the text columns of a table are read, and the decimal mark of the file."""

    columns: tuple[TextColumn, ...]
    decimal: str = "."


@dataclass(eq=False)
class _Seen:
    """What is known of a column while it is being judged."""

    cell: str
    present: int = 0
    plain: int = 0
    nan: bool = False
    zeros: int = 0
    long: int = 0
    levels: int = 0
    odd: list[tuple[str, int]] = field(default_factory=list)  # cells that are no plain numbers, with counts
    guess: Guess | None = None
    made: TextColumn | None = None

    def split(self, missing: Sequence[str]) -> tuple[dict[str, int], list[tuple[str, int]]]:
        """The odd cells that are missing, and the others."""
        tokens = {cell: n for cell, n in self.odd if cell.strip(BLANKS) in ("", *missing)}
        return tokens, [(cell, n) for cell, n in self.odd if cell not in tokens]

    def is_code(self) -> bool:
        """Whether its digits have zeros in front, or are more than a double can tell apart."""
        return bool(self.zeros) or 2 * self.long > self.plain


def read_text(
    relation: Any, cells: Sequence[str], reading: Reading = FOUND_OUT, *, decimal: str | None = None
) -> TextTable:
    """How the columns with these cells (SQL) are read, judged by all rows of a relation.

    `decimal` is the mark of the file if it is known: it decides where the cells of a column prove nothing, while
    `reading.decimal`, which the user says, decides in any case.
    """
    seen = _first_look(relation, cells)
    missing = (*TOKENS, *(reading.missing_values or ()))
    _fetch_odd_cells(relation, [one for one in seen if one.plain < one.present or one.nan], missing)
    _fetch_missing_numbers(relation, seen, reading.missing_values or ())
    for one in seen:
        _without_query(one, missing)
    for one in seen:
        if one.made is None and one.guess is None:
            one.made = _date(relation, one, missing)
    for one in seen:
        if one.made is None:
            _, others = one.split(missing)
            one.guess = guess_number(others, one.plain)
    _find_lacking_units(relation, seen, missing)
    given = reading.decimal is not None
    mark = reading.decimal or decimal or file_decimal(one.guess for one in seen if one.guess is not None)
    for one in seen:
        if one.made is None:
            one.made = _number_or_words(relation, one, mark, missing, given=given)
    if mark == ",":
        _points_between_thousands(relation, seen, given=given)
    if not given and decimal is None:
        _ambiguous(relation, seen)
    return TextTable(tuple(one.made or TextColumn(WordFormat()) for one in seen), mark)


def _first_look(relation: Any, cells: Sequence[str]) -> list[_Seen]:
    wanted = (
        "count({x})",
        f"count({_PLAIN})",
        f"coalesce(isnan(max({_PLAIN})), false)",  # NaN is above all other numbers
        "count(*) FILTER ({x} >= '00' AND {x} < '0:')",
        # CASE asks the expensive question of few cells only, which AND does not.
        f"count(*) FILTER (CASE WHEN length({{x}}) > {_DIGITS} AND NOT contains({{x}}, '.') "
        f"THEN regexp_full_match(trim({{x}}), '[+-]?[0-9]{{{_DIGITS + 1},}}') ELSE false END)",
        "approx_count_distinct({x})",
    )
    found = text_aggregates(relation, [Cells(cell) for cell in cells], wanted)
    return [
        _Seen(cell, int(present), int(plain), bool(nan), int(zeros), int(long), int(levels))
        for cell, (present, plain, nan, zeros, long, levels) in zip(cells, found, strict=True)
    ]


def _fetch_odd_cells(relation: Any, suspects: Sequence[_Seen], missing: tuple[str, ...]) -> None:
    """The cells that are no plain numbers. Those of columns with few of them, as numbers beside NA are, in one query.

    Of other columns they are asked for one by one; if that would be too many queries, the first ones have to do.
    """
    odd = f"({_PLAIN} IS NULL OR isnan({_PLAIN}))"
    left = f"count(*) FILTER ({NumberFormat(missing=missing).misfit('{x}')})"
    words = text_aggregates(relation, [Cells(one.cell) for one in suspects], [left])
    few = [one for one, (n,) in zip(suspects, words, strict=True) if n == 0 or one.levels <= _MOST_LEVELS]
    many = [one for one in suspects if one not in few]
    counted = text_aggregates(relation, [Cells(one.cell) for one in few], [f"histogram(left({{x}}, 200)) FILTER ({odd})"])
    for one, (levels,) in zip(few, counted, strict=True):
        one.odd = _sorted({cell: n for cell, n in (levels or {}).items() if cell is not None})
    if len(many) > _MOST_QUERIES:
        listed = f"list(left({{x}}, 200)) FILTER ({{x}} IS NOT NULL AND {odd})"
        for one, (cells,) in zip(
            many, text_aggregates(relation.limit(_MOST_CELLS), [Cells(o.cell) for o in many], [listed]), strict=True
        ):
            one.odd = _sorted(Counter(cells or ()))
        return
    for one in many:
        condition = f"{one.cell} IS NOT NULL AND {odd.replace('{x}', one.cell)}"
        one.odd = counts_of(relation, one.cell, condition, _MOST_CELLS)


def _fetch_missing_numbers(relation: Any, seen: Sequence[_Seen], values: Sequence[str]) -> None:
    """Put numbers that stand for missing, NaN and those which the user gave, with the other cells that are missing."""
    for one in seen:
        one.plain -= sum(n for cell, n in one.odd if cell.strip(BLANKS).lower() == "nan")
    numbers = [value for value in values if is_number_word(value)]
    if not numbers:
        return
    given = is_one_of(trimmed("{x}"), numbers)
    found = text_aggregates(relation, [Cells(one.cell) for one in seen], [f"histogram({{x}}) FILTER ({given})"])
    for one, (counts,) in zip(seen, found, strict=True):
        there = {cell: n for cell, n in (counts or {}).items() if cell is not None}
        one.odd = [*one.odd, *_sorted(there)]
        one.plain -= sum(there.values())


def _sorted(counts: Mapping[str, int]) -> list[tuple[str, int]]:
    return sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))


def _without_query(one: _Seen, missing: tuple[str, ...]) -> None:
    """Settle the columns about which nothing is left to ask."""
    tokens, others = one.split(missing)
    told = _told(tokens)
    plain = NumberFormat(missing=missing, seen=tuple(tokens))
    if one.present == 0 or (not others and one.plain == 0 and not one.nan):
        one.made = TextColumn(WordFormat(words_missing(missing)), told)
    elif not others:
        form = WordFormat(words_missing(missing)) if one.is_code() else plain
        one.made = TextColumn(form, told, leading_zeros=one.zeros, long_digits=one.long if one.is_code() else 0)
    elif one.plain == 0 and (pair := guess_boolean([cell for cell, _ in one.odd], missing)) is not None:
        one.made = TextColumn(pair, told)


def _told(tokens: Mapping[str, int]) -> dict[str, int]:
    """Missing cells as they are told, without the blanks around them."""
    told: Counter[str] = Counter()
    for cell, n in tokens.items():
        told[cell.strip(BLANKS)] += n
    return {cell: n for cell, n in told.items() if cell}


def words_missing(missing: tuple[str, ...]) -> tuple[str, ...]:
    """The tokens in a column of words, where "none" is one of them, unless the user says that it is missing."""
    return (*WORD_TOKENS, *missing[len(TOKENS) :])


def _find_lacking_units(relation: Any, seen: Sequence[_Seen], missing: tuple[str, ...]) -> None:
    """Numbers with a unit beside plain ones, which may be anything (0.1 and 11%), unless these are zero."""
    suspects = [one for one in seen if one.guess is not None and one.guess.unit and not one.guess.units and one.plain]
    bare = f"{_PLAIN} <> 0 AND NOT isnan({_PLAIN}) AND NOT {is_missing('{x}', missing)}"
    counts = text_aggregates(relation, [Cells(one.cell) for one in suspects], [f"count(*) FILTER ({bare})"])
    for one, (count,) in zip(suspects, counts, strict=True):
        tokens, others = one.split(missing)
        few = len(others) <= FEW and sum(n for _, n in others) <= FEW_SHARE * (one.present - sum(tokens.values()))
        if count and few:  # strays, like words among numbers
            one.guess = None
        elif count and one.guess is not None:
            one.guess = replace(one.guess, units=(one.guess.suffix, NO_UNIT))


def _date(relation: Any, one: _Seen, missing: tuple[str, ...]) -> TextColumn | None:
    tokens, others = one.split(missing)
    if one.plain > FEW_SHARE * one.present:
        return None
    forms = [replace(form, missing=missing) for form in candidates(cell for cell, _ in others)]
    found: list[tuple[int, int, DateFormat, dict[str, int]]] = []
    for form in forms[:6]:
        words = _misfits(relation, one, form)
        if words is not None:
            found.append((sum(words.values()), len(found), form, words))
    if not found:
        return None
    count, _, form, words = min(found, key=lambda each: each[:2])
    rivals = [other for other_count, _, other, _ in found if other_count == count and _other_order(form, other)]
    form = replace(form, ambiguous=bool(rivals), words=tuple(word.strip(BLANKS) for word in words))
    told = _told(tokens)
    return TextColumn(form, told, words)


def _other_order(form: DateFormat, other: DateFormat) -> bool:
    return form != other and sorted(form.pattern) == sorted(other.pattern)


def _misfits(relation: Any, one: _Seen, form: NumberFormat | DateFormat) -> dict[str, int] | None:
    """The cells that do not fit, if they are few."""
    words = counts_of(relation, one.cell, form.misfit(one.cell), FEW + 1)
    bad = sum(n for _, n in words)
    return dict(words) if len(words) <= FEW and bad <= FEW_SHARE * one.present else None


def _number_or_words(relation: Any, one: _Seen, decimal: str, missing: tuple[str, ...], *, given: bool) -> TextColumn:
    tokens, _ = one.split(missing)
    digits = one.plain >= (1 - FEW_SHARE) * (one.present - sum(tokens.values()))
    told = _told(tokens)
    units = one.guess.units if one.guess is not None else ()
    if not one.is_code() and not units and (one.guess is not None or digits):
        form = NumberFormat(missing=missing)
        if one.guess is not None:
            form = one.guess.format(decimal, missing, given=given)
        words = _misfits(relation, one, form)
        if words is not None and sum(words.values()) < one.present - sum(tokens.values()):
            seen = tuple(tokens)
            return TextColumn(replace(with_words(form, words), seen=seen), told, words)
    kept = WordFormat(words_missing(missing))
    told = {cell: n for cell, n in told.items() if cell in kept.missing}
    # Among other words, zeros in front or many digits say nothing.
    return TextColumn(kept, told, units=units, leading_zeros=one.zeros * digits, long_digits=one.long * digits)


def _points(relation: Any, seen: Sequence[_Seen]) -> list[tuple[_Seen, NumberFormat, int, int, str]]:
    """The columns of plain numbers with points: how many cells have one, before three digits, and the first such cell."""
    plain = [
        (one, one.made.format)
        for one in seen
        if one.made is not None and isinstance(one.made.format, NumberFormat) and one.made.format.plain and one.plain
    ]
    threes = f"FILTER (regexp_full_match(trim({{x}}), '{_THREES}'))"
    wanted = (
        f"count(*) FILTER (contains({{x}}, '.') AND {_PLAIN} IS NOT NULL)",
        f"count(*) {threes}",
        f"min({{x}}) {threes}",
    )
    found = text_aggregates(relation, [Cells(one.cell) for one, _ in plain], wanted)
    return [(*both, *counts) for both, counts in zip(plain, found, strict=True) if counts[0]]


def _points_between_thousands(relation: Any, seen: Sequence[_Seen], *, given: bool) -> None:
    """Plain numbers of a file with decimal commas whose points all stand before groups of three digits.

    If the user gave the comma, other points make words of their cells.
    """
    for one, form, points, threes, _ in _points(relation, seen):
        assert one.made is not None
        grouped = replace(form, decimal=",", thousands=".")
        if points == threes:
            one.made = replace(one.made, format=grouped)
        elif given:
            words = _misfits(relation, one, grouped)
            read = WordFormat(words_missing(form.missing)) if words is None else with_words(grouped, words)
            one.made = replace(one.made, format=read, words=words or {})


def _ambiguous(relation: Any, seen: Sequence[_Seen]) -> None:
    """Remember a cell of each column of numbers such as 1,234, if nothing in the file proves what its mark is."""
    open_ = [
        (one, one.made, mark)
        for one in seen
        if one.guess is not None and one.made is not None and isinstance(one.made.format, NumberFormat)
        for mark in ",."
        if (one.guess.commas if mark == "," else one.guess.points)
    ]
    if not open_ or any(one.guess is not None and one.guess.decimal is not None for one in seen):
        return
    points = _points(relation, seen)
    if any(count > threes for _, _, count, threes, _ in points):
        return
    for one, made, mark in open_:
        cell = next((cell for cell, _ in one.odd if mark in cell and re.search(r"[0-9][,.][0-9]{3}", cell)), "")
        one.made = replace(made, ambiguous=cell.strip(BLANKS))
    for one, _, _, _, cell in points:
        assert one.made is not None
        one.made = replace(one.made, ambiguous=cell.strip(BLANKS))
