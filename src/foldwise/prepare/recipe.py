"""A recipe says what becomes of each column of a table: used as numbers, used for its categories, carried along, or left out.

It is found once, from the table that a model is fitted to (`prepare`), kept with the model, and applied to other tables.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from foldwise.data import column_selection
from foldwise.data.column_dates import DateFormat
from foldwise.data.duckdb_source import DuckDBTable, open_source
from foldwise.data.duckdb_sql import TEXT, Column, quoted
from foldwise.data.notes import Note
from foldwise.data.reading import FOUND_OUT, Reading
from foldwise.data.source import Source
from foldwise.data.tables import open_table
from foldwise.data.typed_text import is_text, read_directly, type_of, with_text_cells
from foldwise.errors import DataError
from foldwise.prepare.codes import code_sql, part_sql, word_sql
from foldwise.prepare.days import digits
from foldwise.prepare.encode import Levels, expanded
from foldwise.prepare.prepared import Prepared

# What is done with a column.
USED, DESCRIBING, IDENTIFIER, LABEL, WEIGHT, LEFT_OUT = "used", "describing", "identifier", "label", "weight", "left out"


@dataclass(frozen=True)
class Ingredient:
    """A column in a recipe: what it is, what is done with it, and why.

    `format` tells how its cells are read if they are text. `levels` are those of a category that is used; `part` is what is
    used of a date ("number" is the days since 1970).
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
        cell = f"({quoted(column.sql)} ->> '$')" if column.type == "JSON" else quoted(column.sql)
        if self.format is None or not self._reads(column):
            return cell
        return str(self.format.sql(digits(column) if column.is_number else cell))

    def _reads(self, column: Column) -> bool:
        """Whether the format is for such a column: text, or whole numbers that are days."""
        return column.type in TEXT or (column.is_number and isinstance(self.format, DateFormat))

    def number_sql(self, column: Column) -> str | None:
        """SQL of type DOUBLE, over the typed column, for what the model sees; None if that is the column itself."""
        cell, kind = quoted(column.sql), self.sql_type(column)
        if self.levels is not None:
            return code_sql(word_sql(cell, kind), self.levels)
        if self.part is not None:
            return part_sql(cell, self.part)
        return None if Column("", "", kind).is_number else f"CAST({cell} AS DOUBLE)"

    def sql_type(self, column: Column) -> str:
        """The type of what `sql` gives, as far as it is known."""
        if self.format is None or not self._reads(column):
            return column.type
        return type_of(self.format)


@dataclass(frozen=True)
class Recipe:
    """What becomes of each column of a table; `open` applies it to the same table or another one.

    >>> import foldwise as fw
    >>> fw.prepare({"id": ["a", "b", "c"], "x": [1.0, 2.5, 4.0]}).recipe
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

    def open(self, x: Any, *, where: str | None = None, weights: Any = None, reading: Reading | None = None) -> Prepared:
        """The rows of a table, prepared; columns are found by their names."""
        table = x if isinstance(x, DuckDBTable) else open_table(x, self.reading if reading is None else reading)
        table = with_text_cells(table)
        typed = self.typed(table)
        used = self.having(USED)
        source: Source = open_source(
            typed, columns_=[column.name for column in used], where=where, weights=weights, dtype=None
        )
        levels = [column.levels for column in used]
        seen = expanded(source, levels) if any(one is not None for one in levels) else source
        return Prepared(seen, self, typed, where, weights)

    def typed(self, table: DuckDBTable) -> DuckDBTable:
        """The table with every column of the recipe typed; those that are used can be selected as numbers."""
        present = {column.name: column for column in table.columns}
        check_present([column.name for column in self.having(USED)], table)
        columns, select = [], []
        known = {column.name: column for column in self.columns}
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


_WIDTH = 100  # characters of names in a line


def _listed(texts: Sequence[str]) -> str:
    """As many as fit into a line.

    >>> _listed(["a", "b"]), _listed(["x" * 60, "y" * 60, "z"])[-13:]
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
    found = ", ".join(f"{column.name} ({column.kind})" for column in recipe.columns[:10])
    return f"no column of numbers is left to use (found: {found or 'no columns'})"


def _advice(recipe: Recipe) -> str:
    if recipe.having(DESCRIBING):
        return "categories='encode' uses categories; as_={'name': 'number'} takes a column for numbers"
    return "as_={'name': 'number'} takes a column for numbers, if that is what it holds"


def check_present(names: Sequence[str], table: DuckDBTable) -> None:
    """Refuse a table that lacks a column."""
    for name in names:
        column_selection.find(name, tuple(column.name for column in table.columns), table.where)


__all__ = ["DESCRIBING", "IDENTIFIER", "LABEL", "LEFT_OUT", "USED", "WEIGHT", "Ingredient", "Recipe"]
