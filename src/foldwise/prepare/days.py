"""Whole numbers that are days: 20240131."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from foldwise.data.column_dates import DateFormat
from foldwise.data.column_text import NumberFormat, is_missing
from foldwise.data.duckdb_sql import Column, quoted
from foldwise.data.first_rows import Cells, aggregates
from foldwise.data.text_columns import TextColumn
from foldwise.prepare import column_names

PATTERN = "%Y%m%d"
_FIRST, _LAST = 1900, 2100
_LOOK = 1000  # rows by which most columns are passed over


def digits(column: Column) -> str:
    """SQL for the cells of a column of numbers as text, whole ones without a point."""
    name = quoted(column.sql)
    if column.type not in ("DOUBLE", "FLOAT"):
        return f"CAST({name} AS VARCHAR)"
    whole = f"CAST(TRY_CAST({name} AS BIGINT) AS VARCHAR)"
    return f"CASE WHEN {name} = floor({name}) THEN {whole} ELSE CAST({name} AS VARCHAR) END"


def find(
    rows: Any, columns: Sequence[Column], texts: Mapping[Column, TextColumn], asked: Mapping[str, str]
) -> dict[Column, TextColumn]:
    """How columns of whole numbers that are days are read.

    All cells must be days from 1900 to 2100, and not all in one month, unless the name of the column says what it is, or the
    user does.
    """
    likely = []
    for column in columns:
        text = texts.get(column)
        if text is None:
            if column.is_number:
                likely.append((column, TextColumn(DateFormat(PATTERN)), digits(column)))
        elif (
            isinstance(text.format, NumberFormat) and text.format.plain and not text.words and column.type == "VARCHAR"
        ):
            likely.append((column, _as_days(text), quoted(column.sql)))
    for relation in (rows.limit(_LOOK), rows):
        likely = _all_days(relation, likely, asked)
    return {column: text for column, text, _ in likely}


def _as_days(text: TextColumn) -> TextColumn:
    return replace(text, format=DateFormat(PATTERN, missing=text.format.missing), ambiguous="")


def _all_days(
    relation: Any, likely: list[tuple[Column, TextColumn, str]], asked: Mapping[str, str]
) -> list[tuple[Column, TextColumn, str]]:
    left = []
    for missing in dict.fromkeys(text.format.missing for _, text, _ in likely):
        alike = [one for one in likely if one[1].format.missing == missing]
        day = f"try_strptime({{x}}, '{PATTERN}')"
        wanted = (
            f"count(*) FILTER (NOT {is_missing('{x}', missing)})",
            f"count(*) FILTER (length({{x}}) = 8 AND year({day}) BETWEEN {_FIRST} AND {_LAST})",
            f"count(DISTINCT date_trunc('month', {day}))",
        )
        found = aggregates(relation, [Cells(f"trim({cell})") for *_, cell in alike], wanted)
        for one, (present, days, months) in zip(alike, found, strict=True):
            said = column_names.says_day(one[0].name) or asked.get(one[0].name) == "date"
            if present and days == present and (months > 1 or said):
                left.append(one)
    return left
