"""Numbers that the user says stand for missing cells, in columns that have a type: -9 in Parquet, JSON, a spreadsheet, a frame.

In text files, such numbers are words like others (`column_text`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from foldwise.data.column_text import BLANKS, is_number_word
from foldwise.data.duckdb_connection import literal
from foldwise.data.duckdb_sql import Column, quoted
from foldwise.data.duckdb_table import DuckDBTable
from foldwise.data.reading import Reading

_LARGEST = 2**127  # of DuckDB's integers


def as_said(table: DuckDBTable, reading: Reading) -> DuckDBTable:
    """A table of typed columns, read as the user says."""
    words = [word.strip(BLANKS) for word in reading.missing_values or () if is_number_word(word)]
    masked = {column: sql for column in table.columns if (sql := masked_sql(column, words)) is not None}
    if not masked:
        return replace(table, reading=reading)
    listed = ", ".join(f"{sql} AS {quoted(column.sql)}" for column, sql in masked.items())
    return replace(table, reading=reading, mask=f"* REPLACE ({listed})")


def masked_sql(column: Column, words: Sequence[str]) -> str | None:
    """SQL for the cells of a column of numbers, of its type, NULL where they are one of these; None if they cannot be.

    >>> masked_sql(Column("x", "x", "INTEGER"), ["-9", "0.5"])
    '(CASE WHEN "x" = -9 THEN NULL ELSE "x" END)'
    """
    if not column.is_number or column.type == "BOOLEAN":
        return None
    cell = quoted(column.sql)
    compared = [value for word in words if (value := _value(word, column.type)) is not None]
    if column.type.startswith("DECIMAL"):
        conditions = [f"CAST({cell} AS DOUBLE) = {value}" for value in compared]
    else:
        conditions = [f"{cell} = {value}" for value in compared]
    return f"(CASE WHEN {' OR '.join(conditions)} THEN NULL ELSE {cell} END)" if conditions else None


def _value(word: str, kind: str) -> str | None:
    """A number as SQL that can be compared with cells of a type; None if no cell can be equal to it."""
    if kind in ("FLOAT", "DOUBLE") or kind.startswith("DECIMAL"):
        return f"CAST({literal(word)} AS {'FLOAT' if kind == 'FLOAT' else 'DOUBLE'})"
    plain = word.replace("_", "")
    value = int(plain) if plain.lstrip("+-").isdigit() else float(plain)
    return str(int(value)) if abs(value) < _LARGEST and value == int(value) else None
