"""A recipe says what becomes of each column of a table: used as numbers, used for its categories, carried along, or left out.

It is found once, from the table that a model is fitted to (`prepare`), kept with the model, and applied to other tables.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from foldwise.data import column_selection
from foldwise.data.column_dates import DateFormat
from foldwise.data.column_text import BooleanFormat, Format, NumberFormat
from foldwise.data.duckdb_connection import duckdb_errors
from foldwise.data.duckdb_source import open_source
from foldwise.data.duckdb_sql import Column, quoted
from foldwise.data.duckdb_table import DuckDBTable
from foldwise.data.first_rows import FirstRows
from foldwise.data.notes import Note
from foldwise.data.reading import FOUND_OUT, Reading
from foldwise.data.source import Source
from foldwise.data.tables import open_table
from foldwise.data.text_columns import AnyFormat, read_text
from foldwise.data.typed_text import is_text, read_directly, with_text_cells
from foldwise.errors import DataError
from foldwise.prepare.codes import code_sql, held, part_sql, text_sql, value_sql, word_sql
from foldwise.prepare.decide import format_for
from foldwise.prepare.encode import Levels, expanded
from foldwise.prepare.prepared import Prepared
from foldwise.reportable import Reportable

# What is done with a column.
USED, DESCRIBING, IDENTIFIER, LABEL, WEIGHT, LEFT_OUT = (
    "used",
    "describing",
    "identifier",
    "label",
    "weight",
    "left out",
)


@dataclass(frozen=True)
class Ingredient:
    """A column in a recipe: what it is, what is done with it, and why.

    `format` tells how its cells are read if they are text; it is None if the fit had them typed. `levels` are those of a
    category that is used; `part` is what is used of a date ("number" is the days since 1970).
    """

    name: str
    kind: str
    role: str
    reason: str = ""
    format: Any = None
    levels: Levels | None = None
    part: str | None = None

    def sql(self, column: Column) -> str:
        """SQL for the value of a cell, typed."""
        return value_sql(column, self.format)[0]

    def number_sql(self, column: Column) -> str | None:
        """SQL of type DOUBLE, over the typed column, for what the model sees; None if that is the column itself."""
        cell, kind = quoted(column.sql), self.sql_type(column)
        if self.levels is not None:
            return code_sql(word_sql(cell, kind), self.levels, boolean=self.kind == "boolean")
        if self.part is not None:
            return part_sql(cell, self.part)
        return None if Column("", "", kind).is_number else f"CAST({cell} AS DOUBLE)"

    def sql_type(self, column: Column) -> str:
        """The type of what `sql` gives."""
        return value_sql(column, self.format)[1]


@dataclass(frozen=True)
class Recipe(Reportable):
    """What becomes of each column of a table; `open` applies it to the same table or another one.

    >>> import foldwise as fw, pandas as pd
    >>> fw.prepare(pd.DataFrame({"id": ["a", "b", "c"], "x": [1.0, 2.5, 4.0]})).recipe
    used: x
    identifiers: id
    """

    columns: tuple[Ingredient, ...]
    categories: str = "describe"
    notes: tuple[Note, ...] = ()
    reading: Reading = FOUND_OUT

    def __post_init__(self) -> None:
        if not any(column.role == USED for column in self.columns):
            raise DataError(_nothing_used(self), advice=_advice(self))

    def having(self, role: str) -> tuple[Ingredient, ...]:
        """The columns with a role."""
        return tuple(column for column in self.columns if column.role == role)

    def open(
        self, x: Any, *, where: str | None = None, weights: Any = None, reading: Reading | None = None
    ) -> Prepared:
        """The rows of a table, prepared; columns are found by their names."""
        table = x if isinstance(x, DuckDBTable) else open_table(x, self.reading if reading is None else reading)
        return self.rows_of(self.typed(with_text_cells(table), new=table is not x), where, weights)

    def only(self, names: Sequence[str] | None) -> Recipe:
        """The recipe with only these of the columns that are used; None: all."""
        if names is None:
            return self
        kept = set(names)
        columns = [
            replace(column, role=LEFT_OUT) if column.role == USED and column.name not in kept else column
            for column in self.columns
        ]
        return replace(self, columns=tuple(columns))

    def rows_of(self, typed: DuckDBTable, where: str | None, weights: Any) -> Prepared:
        """The rows of a table that has its types already."""
        used = self.having(USED)
        source: Source = open_source(
            typed, columns_=[column.name for column in used], where=where, weights=weights, dtype=None
        )
        levels = [column.levels for column in used]
        seen = expanded(source, levels) if any(one is not None for one in levels) else source
        return Prepared(seen, self, typed, where, weights)

    def typed(self, table: DuckDBTable, *, new: bool = False) -> DuckDBTable:
        """The table with every column of the recipe typed; those that are used can be selected as numbers.

        In a `new` text file, numbers may be written in another way than in that of the fit.
        """
        present = {column.name: column for column in table.columns}
        check_present([column.name for column in self.having(USED)], table)
        columns, select = [], []
        known = {column.name: column for column in self._formatted(table, new)}
        for name, column in present.items():
            own = known.get(name)
            if own is None:  # a column that the fit did not have
                select.append(quoted(column.sql))
                columns.append(column)
                continue
            kind, select_as = own.sql_type(column), own.number_sql(column) if own.role == USED else None
            select.append(f"{own.sql(column)} AS {quoted(column.sql)}")
            columns.append(Column(name, column.sql, kind if select_as is None else "DOUBLE", select_as))
        typed = table.selecting(select, tuple(columns))
        if not is_text(table):
            return typed
        formats = {column.sql: known[column.name].format if column.name in known else None for column in table.columns}
        return read_directly(typed, formats)

    def _formatted(self, table: DuckDBTable, new: bool) -> list[Ingredient]:
        """The columns, where those whose cells the fit's format does not read are judged by the cells of this table.

        That is where the table of the fit had types and this one is text, or has numbers that are written in another way.
        """
        own = {column.name: column for column in table.columns}
        text = [c for c in self.columns if c.kind != "nested" and c.name in own and held(own[c.name]) == "text"]
        numbers = [c for c in text if new and c.kind == "number" and isinstance(c.format, NumberFormat)]
        typeless = [c for c in text if c.format is None]
        if not typeless and not numbers:
            return list(self.columns)
        try:
            with FirstRows(table, most=_JUDGED) as first:
                misfits = [f"count(*) FILTER ({c.format.misfit(text_sql(own[c.name]))})" for c in numbers]
                counts = first.relation().aggregate(", ".join(misfits)).fetchall()[0] if misfits else ()
                typeless += [column for column, count in zip(numbers, counts, strict=True) if count]
                cells = [text_sql(own[column.name]) for column in typeless]
                found = read_text(first.relation(), cells, table.reading).columns if cells else ()
        except duckdb_errors() as problem:
            table.explain(problem, [], None)
        formats = {
            column.name: _as_fitted(column.kind, one.format)
            for column, one in zip(typeless, found, strict=True)
            if column.format is None or isinstance(one.format, NumberFormat)  # cells of a number that are none are told
        }
        return [replace(column, format=formats.get(column.name, column.format)) for column in self.columns]

    def without_levels(self) -> Recipe:
        """The same with categories as they are, before their levels are known."""
        return replace(self, columns=tuple(replace(column, levels=None) for column in self.columns))

    def lines(self) -> list[str]:
        """What was decided about the columns, in one line for each kind of use."""
        named = {
            "used": self.having(USED),
            "describing": self.having(DESCRIBING),
            "identifiers": self.having(IDENTIFIER),
            "labels": self.having(LABEL),
            "weights": self.having(WEIGHT),
        }
        lines = [f"{word}: {_listed([_shown(column) for column in some])}" for word, some in named.items() if some]
        out = [f"{column.name} ({column.reason or column.kind})" for column in self.having(LEFT_OUT)]
        return [*lines, *([f"left out: {_listed(out)}"] if out else [])]

    def __repr__(self) -> str:
        return "\n".join(self.lines())


_JUDGED = 20_480  # rows of a new table whose cells show how they are written
_WIDTH = 100  # characters of names in a line


def _as_fitted(kind: str, found: AnyFormat) -> Format:
    """How text is read as a column that had a type of its own in the fit; a word among numbers is an error then."""
    if isinstance(found, NumberFormat | DateFormat):
        found = replace(found, words=())
    if kind == "category" and isinstance(found, BooleanFormat):  # as the fit had true and false
        return found
    return format_for(kind, found)


def _listed(texts: Sequence[str]) -> str:
    """As many as fit into a line.

    >>> _listed(["a", "b"]), _listed(["x" * 60, "y" * 60, "z"])[-12:]
    ('a, b', 'x and 2 more')
    """
    shown = 1
    while shown < len(texts) and len(", ".join(texts[: shown + 1])) <= _WIDTH:
        shown += 1
    more = len(texts) - shown
    return ", ".join(texts[:shown]) + (f" and {more:,} more" if more > 0 else "")


def _shown(column: Ingredient) -> str:
    if column.levels is not None:
        return f"{column.name} ({len(column.levels.levels)} levels)"
    return column.name if column.part is None else f"{column.name} (as {column.part})"


def _nothing_used(recipe: Recipe) -> str:
    if recipe.columns and all(column.kind in ("constant", "empty") for column in recipe.columns):
        empty = all(column.kind == "empty" for column in recipe.columns)
        return "there are no rows with values" if empty else "every column is constant: there is one row, or all are equal"
    found = ", ".join(f"{column.name} ({column.kind})" for column in recipe.columns[:10])
    return f"no column of numbers is left to use (found: {found or 'no columns'})"


def _advice(recipe: Recipe) -> str:
    if recipe.having(DESCRIBING):
        return "categories='encode' uses categories; as_={'name': 'number'} takes a column for numbers"
    if recipe.columns and all(column.kind in ("constant", "empty") for column in recipe.columns):
        return "Give a table with rows that differ"
    return "as_={'name': 'number'} takes a column for numbers, if that is what it holds"


def check_present(names: Sequence[str], table: DuckDBTable) -> None:
    """Refuse a table that lacks a column."""
    for name in names:
        column_selection.find(name, tuple(column.name for column in table.columns), table.where)


__all__ = ["DESCRIBING", "IDENTIFIER", "LABEL", "LEFT_OUT", "USED", "WEIGHT", "Ingredient", "Recipe"]
