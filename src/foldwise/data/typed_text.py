"""Text files with columns of the types that their cells have: numbers however they are written, yes and no, dates, words.

The first rows decide. Where they hold nothing but plain numbers and words, DuckDB reads the file with these types, strictly and
fast, and `judged_again` takes over if a missing cell (NA, ?) turns up further down.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from foldwise.data.column_text import BLANKS, BooleanFormat, Format, NumberFormat, WordFormat
from foldwise.data.duckdb_sql import Column, quoted
from foldwise.data.duckdb_table import DuckDBTable, Pace
from foldwise.data.first_rows import FirstRows
from foldwise.data.text_columns import AnyFormat, TextColumn, read_text
from foldwise.data.text_table import TextFiles

_JUDGED = 20_480  # rows, which cost little to look at twice,
_LEAST_JUDGED, _JUDGED_CELLS = 2_048, 409_600  # or fewer of many columns, if all are plain numbers


def is_text(table: DuckDBTable) -> bool:
    """Whether the table comes from text files, whose cells have no types of their own."""
    return table.reader is not None and table.reader.text_files is not None


def with_text_cells(table: DuckDBTable) -> DuckDBTable:
    """The same table with the cells of text files as text, so that they can be judged."""
    if table.reader is None or not is_text(table):
        return table
    columns = tuple(replace(column, type="VARCHAR") for column in table.columns)
    return replace(table, columns=columns, reader=replace(table.reader, columns=columns), pace=Pace())


def typed_text(table: DuckDBTable) -> DuckDBTable:
    """The table with types, judged by its first rows; other tables have their types already."""
    if not is_text(table):
        return table
    text = with_text_cells(table)
    cells = [quoted(column.sql) for column in text.columns]
    files = table.reader.text_files if table.reader is not None else None
    unlike = {} if files is None else files.unlike()
    if unlike:  # the files differ, perhaps only in what is missing or in signs, so that the first rows would not do
        found = text.ask(lambda rows: read_text(rows, cells, table.reading)).columns
    else:
        fewer = max(_LEAST_JUDGED, _JUDGED_CELLS // max(len(cells), 1))
        for most in (fewer, _JUDGED) if fewer < _JUDGED else (_JUDGED,):
            with FirstRows(text, most=most) as first:
                found = read_text(first.relation(), cells, table.reading).columns
            # Plain numbers, for DuckDB too, which looks at as many rows; a column without any may have numbers later.
            if _as_they_are(table, found) and all(isinstance(one.format, NumberFormat) for one in found):
                break
    for j, problem in unlike.items():
        if isinstance(found[j].format, WordFormat) and "DOUBLE" in _types(files, j):
            raise problem
    return _checked(table) if _as_they_are(table, found) else _typed(text, found)


def _as_they_are(table: DuckDBTable, found: Sequence[TextColumn]) -> bool:
    """Whether all columns have the types that DuckDB gave them, and nothing else needs to be done with their cells."""
    return all(_read_as_it_is(column, one) for column, one in zip(table.columns, found, strict=True))


def _checked(table: DuckDBTable) -> DuckDBTable:
    """The table, which is read more slowly if rows that DuckDB might pass over do not have the types of the others."""
    files = None if table.reader is None else table.reader.text_files
    if files is None or table.reader is None:
        return table
    kinds = [column.type for column in table.reader.columns]
    if not files.fit_at_edges(kinds, table.reader.nulls) and not table.slow_down():
        table.find_bad(list(table.columns), None)
    return table


def _types(files: TextFiles | None, j: int) -> list[str]:
    return [] if files is None else [layout.types[j] for layout in files.layouts]


def judged_again(table: DuckDBTable) -> DuckDBTable | None:
    """The table with types that all its rows fit, after a row far down did not; None if its numbers are not plain after all.

    Rows that were read before keep their values: only that more cells are missing can have changed.
    """
    if table.slower is not None:
        return table.slower
    if not is_text(table) or table.projection is not None or all(column.type == "VARCHAR" for column in table.columns):
        return None
    text = with_text_cells(table)
    cells = [quoted(column.sql) for column in text.columns]
    found = text.ask(lambda rows: read_text(rows, cells, table.reading)).columns
    for column, one in zip(table.columns, found, strict=True):
        if column.type == "BOOLEAN" and not isinstance(one.format, BooleanFormat):
            return None
        if column.type == "DOUBLE" and not (isinstance(one.format, NumberFormat) and one.format.plain):
            return None
        if column.type == "DOUBLE" and one.words:
            replace(text, strays=((column.sql, next(iter(one.words))),)).find_bad([column], None)
    return _typed(text, found)


def read_directly(slow: DuckDBTable, formats: Mapping[str, Format | None]) -> DuckDBTable:
    """A table of a text file whose plain numbers DuckDB types while it reads, twice as fast as by SQL over text.

    `slow` has them by SQL, and is what to go back to if a cell further down is missing in a way that was not seen before.
    `formats` are those of all columns, by their SQL names.
    """
    plain = {name: form for name, form in formats.items() if isinstance(form, NumberFormat) and _is_typed(form)}
    nulls = tuple(dict.fromkeys(token for form in plain.values() for token in form.seen))
    if slow.reader is None or slow.projection is None or not plain or any(_is_a_level(one, formats) for one in nulls):
        return slow
    columns = tuple(replace(c, type="DOUBLE") if c.sql in plain else c for c in slow.reader.columns)
    reader = replace(slow.reader, columns=columns, nulls=nulls)
    select = [
        quoted(c.sql) if c.sql in plain else f"{_cell(c, formats.get(c.sql))} AS {quoted(c.sql)}" for c in slow.columns
    ]
    return _checked(replace(slow, reader=reader, projection=", ".join(select), slower=slow, pace=Pace()))


def _is_typed(form: NumberFormat) -> bool:
    """Whether DuckDB gives the numbers that are meant when it reads the file with types."""
    return form.plain and not form.words and not form.masks_numbers


def _is_a_level(token: str, formats: Mapping[str, Format | None]) -> bool:
    """Whether a word that is missing among numbers may be a word of its own in another column."""
    others = [form for form in formats.values() if not (isinstance(form, NumberFormat) and form.plain)]
    return any(form is None or token.strip(BLANKS) not in ("", *form.missing) for form in others)


def _cell(column: Column, form: Format | None) -> str:
    return quoted(column.sql) if form is None else form.sql(quoted(column.sql))


def _read_as_it_is(column: Column, one: TextColumn) -> bool:
    """Whether DuckDB reads the cells as they are meant by the type that the column has."""
    form = one.format
    if isinstance(form, NumberFormat):
        return _is_typed(form) and not form.seen and column.type == "DOUBLE"
    return isinstance(form, WordFormat) and column.type not in ("DOUBLE", "BOOLEAN")


def _typed(text: DuckDBTable, found: tuple[TextColumn, ...]) -> DuckDBTable:
    columns, select, strays, forms = [], [], [], []
    for column, one in zip(text.columns, found, strict=True):
        form: AnyFormat = one.format
        if isinstance(form, NumberFormat) and form.words:
            # A stray word among numbers is an error here, which names it (for `fw.prepare` it is missing, which it says).
            strays.append((column.sql, form.words[0]))
            form = WordFormat()
        forms.append(form)
        select.append(f"{form.sql(quoted(column.sql))} AS {quoted(column.sql)}")
        columns.append(replace(column, type=type_of(form)))
    table = replace(text.selecting(select, tuple(columns)), strays=tuple(strays))
    return read_directly(table, {column.sql: form for column, form in zip(columns, forms, strict=True)})


def type_of(form: AnyFormat) -> str:
    """The SQL type of what a format reads."""
    return {NumberFormat: "DOUBLE", BooleanFormat: "BOOLEAN", WordFormat: "VARCHAR"}.get(type(form), "TIMESTAMP")
