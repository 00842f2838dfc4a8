"""Text files with columns of the types that their cells have: numbers however they are written, yes and no, dates, words.

The first rows decide. Where they hold nothing but plain numbers and words, DuckDB reads the file with these types, strictly and fast, and
`judged_again` takes over if a missing cell (NA, ?) turns up further down.
"""

from __future__ import annotations

from dataclasses import replace

from foldwise.data.column_text import BooleanFormat, NumberFormat, WordFormat
from foldwise.data.duckdb_source import DuckDBTable
from foldwise.data.duckdb_sql import Column, quoted
from foldwise.data.first_rows import FirstRows
from foldwise.data.reading import FOUND_OUT, Reading
from foldwise.data.text_columns import AnyFormat, TextColumn, read_text

_JUDGED = 20_480  # rows, which cost little to look at twice


def is_text(table: DuckDBTable) -> bool:
    """Whether the table comes from text files, whose cells have no types of their own."""
    return table.reader is not None and table.reader.text_files is not None


def with_text_cells(table: DuckDBTable) -> DuckDBTable:
    """The same table with the cells of text files as text, so that they can be judged."""
    if table.reader is None or not is_text(table):
        return table
    columns = tuple(replace(column, type="VARCHAR") for column in table.columns)
    return replace(table, columns=columns, reader=replace(table.reader, columns=columns))


def typed_text(table: DuckDBTable, reading: Reading = FOUND_OUT) -> DuckDBTable:
    """The table with types, judged by its first rows; other tables have their types already."""
    if not is_text(table):
        return table
    text = with_text_cells(table)
    with FirstRows(text, most=_JUDGED) as first:
        found = read_text(first.relation(), [quoted(column.sql) for column in text.columns], reading).columns
    if all(_read_as_it_is(column, one) for column, one in zip(table.columns, found, strict=True)):
        return table
    return _typed(text, found)


def judged_again(table: DuckDBTable, reading: Reading = FOUND_OUT) -> DuckDBTable | None:
    """The table with types that all its rows fit, after a row far down did not; None if its numbers are no plain ones after all.

    Rows that were read before keep their values: only that more cells are missing can have changed.
    """
    if not is_text(table) or table.projection is not None:
        return None
    text = with_text_cells(table)
    found = text.ask(lambda rows: read_text(rows, [quoted(column.sql) for column in text.columns], reading)).columns
    for column, one in zip(table.columns, found, strict=True):
        if column.type == "DOUBLE" and not (isinstance(one.format, NumberFormat) and one.format.plain and not one.words):
            return None
    return _typed(text, found)


def _read_as_it_is(column: Column, one: TextColumn) -> bool:
    """Whether DuckDB reads the cells as they are meant by the type that the column has."""
    form = one.format
    if isinstance(form, NumberFormat):
        return form.plain and not form.seen and not form.words and column.type == "DOUBLE"
    return isinstance(form, WordFormat) and column.type not in ("DOUBLE", "BOOLEAN")


def _typed(text: DuckDBTable, found: tuple[TextColumn, ...]) -> DuckDBTable:
    columns, select, strays = [], [], []
    for column, one in zip(text.columns, found, strict=True):
        form: AnyFormat = one.format
        if isinstance(form, NumberFormat) and form.words:
            # A stray word among numbers is an error here, which names it (`fw.prepare` takes it for a missing cell, and says so).
            strays.append((column.sql, form.words[0]))
            form = WordFormat()
        select.append(f"{form.sql(quoted(column.sql))} AS {quoted(column.sql)}")
        columns.append(replace(column, type=type_of(form)))
    return replace(text.selecting(select, tuple(columns)), strays=tuple(strays))


def type_of(form: AnyFormat) -> str:
    """The SQL type of what a format reads."""
    return {NumberFormat: "DOUBLE", BooleanFormat: "BOOLEAN", WordFormat: "VARCHAR"}.get(type(form), "TIMESTAMP")
