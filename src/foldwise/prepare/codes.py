"""SQL that turns cells into what models see: typed values, words, codes of levels, parts of dates."""

from __future__ import annotations

from typing import Literal

from foldwise.data.column_dates import DateFormat
from foldwise.data.column_text import Format, number_as_word
from foldwise.data.duckdb_connection import literal
from foldwise.data.duckdb_sql import Column, quoted
from foldwise.data.typed_text import type_of
from foldwise.prepare import days
from foldwise.prepare.encode import UNSEEN, Levels

# What can be used of a date.
PARTS = {
    "number": "epoch({}) / 86400",
    "year": "year({})",
    "month": "month({})",
    "day": "day({})",
    "weekday": "isodow({})",
    "hour": "hour({})",
}
ZONED = "TIMESTAMP WITH TIME ZONE"
_OF_BYTES = ("BLOB", "BIT", "GEOMETRY")
_BOTH = (("false", "0"), ("true", "1"))  # how the levels of a boolean are called, by the type that it has in a table


def held(column: Column) -> Literal["numbers", "booleans", "dates", "nested", "text"]:
    """What a column holds by its type; text is to be judged by its cells, also that of other types, such as ENUM."""
    if column.is_nested or column.type.startswith(_OF_BYTES):
        return "nested"
    if column.type == "BOOLEAN":
        return "booleans"
    if column.is_number:
        return "numbers"
    return "dates" if column.type.startswith("TIMESTAMP") or column.type == "DATE" else "text"


def text_sql(column: Column) -> str:
    """SQL for the cells of a column as text: that of a text column, or the digits of whole numbers that are days."""
    name = quoted(column.sql)
    if column.type == "VARCHAR":
        return name
    if column.is_number:
        return days.digits(column)
    return f"({name} ->> '$')" if column.type == "JSON" else f"CAST({name} AS VARCHAR)"


def value_sql(column: Column, form: Format | None) -> tuple[str, str]:
    """SQL for the value of a cell, and its type; `form` tells how text is read. Moments with a zone are given in UTC."""
    if held(column) == "text" or (column.is_number and isinstance(form, DateFormat)):
        cell = text_sql(column)
        return (cell, "VARCHAR") if form is None else (form.sql(cell), type_of(form))  # type: ignore[arg-type]
    if column.type == ZONED:  # a cast would give the time at this machine
        return f"make_timestamp(epoch_us({quoted(column.sql)}))", "TIMESTAMP"
    return quoted(column.sql), column.type


def word_sql(value: str, kind: str) -> str:
    """SQL for a value of a type as a word: whole numbers without a point."""
    if kind in ("DOUBLE", "FLOAT"):
        return number_as_word(value)
    return value if kind == "VARCHAR" else f"CAST({value} AS VARCHAR)"


def code_sql(word: str, levels: Levels, *, boolean: bool = False) -> str:
    """SQL of type DOUBLE for the code of a level: NULL where it is missing, -1 for a level that is not known.

    Levels of a `boolean` may be called true and false, or 1 and 0.
    """
    codes = dict(levels.codes)
    for names in _BOTH if boolean else ():
        codes |= {other: codes[name] for name in names if name in codes for other in names}
    listed = ", ".join(f"{literal(level)}: {code}" for level, code in codes.items())
    known = f"(MAP {{{listed}}})[{word}]"
    return f"CASE WHEN ({word}) IS NULL THEN NULL ELSE CAST(coalesce({known}, {UNSEEN}) AS DOUBLE) END"


def part_sql(value: str, part: str) -> str:
    """SQL of type DOUBLE for a part of a date."""
    return f"CAST({PARTS[part].format(f'CAST({value} AS TIMESTAMP)')} AS DOUBLE)"
