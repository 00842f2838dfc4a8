"""Rows as a recipe gives them, with the columns that are carried along."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from foldwise.data.arrays import ArraySource
from foldwise.data.duckdb_source import open_source
from foldwise.data.duckdb_sql import quoted
from foldwise.data.duckdb_table import DuckDBTable
from foldwise.data.row_names import LABEL, row_names_of
from foldwise.data.source import Piece, Source, View
from foldwise.data.typed_text import is_text
from foldwise.prepare.codes import code_sql, word_sql
from foldwise.prepare.count_levels import answer, count_levels
from foldwise.prepare.encode import UNSEEN, Levels, find_levels

if TYPE_CHECKING:
    from foldwise.prepare.recipe import Recipe

_CARRIED = "carried by foldwise "  # and a number: no column of a file is called so
ROW = "row"  # the column with the number of the row in the data as given, counted from 0


class Prepared(View):
    """A source of prepared rows: `recipe` says what became of the columns."""

    def __init__(
        self, source: Source, recipe: Recipe, table: DuckDBTable, condition: str | None, weights: Any = None
    ) -> None:
        super().__init__(source, recipe=recipe, left_out=tuple(c.name for c in recipe.having("left out")))
        self.recipe, self.table, self.condition, self.weights = recipe, table, condition, weights

    def __repr__(self) -> str:
        return f"{self.where}\n{self.recipe!r}"

    @property
    def slow(self) -> bool:
        """Whether decoding costs much more than reading."""
        return self.source.slow

    def pieces(self, first: int = 0, last: int | None = None) -> Iterator[Piece]:
        """The blocks to load."""
        return self.source.pieces(first, last)

    def only(self, condition: str) -> Prepared:
        """The rows of which a further condition holds."""
        both = condition if self.condition is None else f"({self.condition}) AND {condition}"
        return self.recipe.rows_of(self.table, both, self.weights)

    def unseen(self) -> list[tuple[str, list[str], int]]:
        """Categories with levels that the recipe does not know: the name, some of the levels, and the number of cells."""
        used = [column for column in self.recipe.having("used") if column.levels is not None]
        if not used:
            return []
        own = {column.name: column for column in self.table.columns}
        parts = []
        for column in used:
            cell = own[column.name]
            new = f"FILTER (({cell.expression}) = {UNSEEN})"
            parts += [f"list(DISTINCT CAST({quoted(cell.sql)} AS VARCHAR)) {new}", f"count(*) {new}"]
        found = answer(self.table, self.condition, ", ".join(parts))
        pairs = zip(used, found[0::2], found[1::2], strict=True)
        return [(column.name, sorted(levels or []), int(count)) for column, levels, count in pairs if count]


@dataclass(frozen=True)
class Carried:
    """Columns of a table, in the order of the rows that were used, to be written beside what a model says of each row.

    The first is the number of the row in the data as given. Of a text file, cells are written as they stand there, so that they
    can be joined to it, unless they are to have types.
    """

    table: DuckDBTable
    columns: tuple[str, ...]
    condition: str | None
    typed: tuple[str, ...] = ()

    @property
    def names(self) -> Sequence[str]:
        """The names of the columns."""
        from foldwise.data.write import unused

        return [unused(ROW, self.columns), *self.columns]

    def relation(self) -> Any:
        """The columns, named c0, c1, ..."""
        table = self.table.slower or self.table  # which has the cells of text files as text
        own = {column.name: column.sql for column in table.columns}
        plain = is_text(table) and table.projection is not None
        carried = {name: quoted(f"{_CARRIED}{j + 1}") for j, name in enumerate(self.columns)}
        cells = [f"{quoted(own[name])} AS {carried[name]}" for name in self.columns if plain and name not in self.typed]
        select = [
            f"row_number() OVER () - 1 AS {quoted(_CARRIED + '0')}",
            *cells,
            (table.projection or "*") if plain else "*",
        ]
        rows = (table.as_given() if plain else table.relation()).project(", ".join(select))
        kept = rows if self.condition is None else rows.filter(self.condition)
        taken = [carried[name] if plain and name not in self.typed else quoted(own[name]) for name in self.columns]
        chosen = [f"{one} AS c{j + 1}" for j, one in enumerate(taken)]
        return kept.project(", ".join([f"{quoted(_CARRIED + '0')} AS c0", *chosen]))

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        """The columns as an Arrow stream."""
        return self.relation().__arrow_c_stream__()

    def fall_back(self, problem: Exception) -> bool:
        """After an error while the columns were read: whether they can be read from the start once more."""
        return self.table.fall_back(problem)


def prepared_of(source: Any) -> Prepared | None:
    """The prepared table behind a source, if there is one."""
    while source is not None and not isinstance(source, Prepared):
        source = getattr(source, "source", None)
    return source


_MOST_DESCRIBING = 24  # categories
_MOST_LEVELS = 12  # of each; the others are pooled


def describing(source: Any) -> tuple[Source, list[tuple[Levels, bool]]] | None:
    """The codes of the categories that describe a table, with their levels and whether they are labels; None if there are none.

    Rows and weights are those of the source.
    """
    prepared = prepared_of(source)
    if prepared is None:
        return _labels_of_rows(source)
    recipe = prepared.recipe
    chosen = [*recipe.having("label"), *recipe.having("describing")]
    own = {column.name: column for column in prepared.table.columns}
    chosen = [column for column in chosen if column.name in own][:_MOST_DESCRIBING]
    if not chosen:
        return None
    cells = [own[column.name] for column in chosen]
    words = [word_sql(quoted(cell.sql), cell.type) for cell in cells]
    counts = count_levels(prepared.table, cells, words, prepared.condition, prepared.weights)
    levels, columns, labels = [], [], []
    for column, cell, word, count in zip(chosen, cells, words, counts, strict=True):
        if not count:
            continue
        numbers = sorted(count.values(), reverse=True)
        rare = 0.0 if len(numbers) <= _MOST_LEVELS else (numbers[_MOST_LEVELS - 2] - 0.5) / sum(numbers)
        known = find_levels(column.name, count, order="frequency", rare=rare, fewest=0)
        levels.append(known)
        labels.append(column.role == "label")
        columns.append(replace(cell, type="DOUBLE", expression=code_sql(word, known)))
    if not columns:
        return None
    by_name = {column.name: column for column in columns}
    table = replace(prepared.table, columns=tuple(by_name.get(one.name, one) for one in prepared.table.columns))
    codes = open_source(
        table,
        columns_=[column.name for column in columns],
        where=prepared.condition,
        weights=prepared.weights,
        dtype=None,
    )
    return codes, list(zip(levels, labels, strict=True))


def _labels_of_rows(source: Any) -> tuple[Source, list[tuple[Levels, bool]]] | None:
    """The same for rows that are no table but have labels, as images in subfolders do."""
    found = row_names_of(source)
    if found is None or LABEL not in found.columns:
        return None
    cells = found.columns[LABEL]
    weights = np.ones(len(cells)) if found.weights is None else found.weights
    count: dict[str, float] = {}
    for cell, weight in zip(cells.tolist(), weights.tolist(), strict=True):
        count[cell] = count.get(cell, 0.0) + weight
    known = find_levels(LABEL, count, order="frequency", rare=0.0, fewest=0)
    return ArraySource(known.code(cells)[:, None], weights=found.weights), [(known, True)]


def carried_columns(source: Any, keep: str, *, typed: bool = False) -> Carried:
    """The identifiers and labels of a prepared table, or with keep="all" all its columns, as they are in the table.

    With `typed`, cells of a text file that are neither identifiers nor labels have their types.
    """
    prepared = prepared_of(source)
    assert prepared is not None
    recipe = prepared.recipe
    own = {column.name: column for column in recipe.columns}
    names = [column.name for column in prepared.table.columns if not column.is_nested]
    named = [name for name in names if name in own and own[name].role in ("identifier", "label")]
    if keep == "ids":
        return Carried(prepared.table, tuple(named), prepared.condition)
    as_values = tuple(name for name in names if typed and name not in named)
    return Carried(prepared.table, tuple(names), prepared.condition, as_values)


def names_of_rows(source: Any, which: Sequence[int]) -> tuple[list[str], list[tuple[Any, ...]]]:
    """The identifiers and labels of some rows of a prepared table, by their places among its rows, with their own names.

    The first is the number of the row in the data as given. Of images, their files and labels; nothing for an array.
    """
    if prepared_of(source) is None or not which:
        known = row_names_of(source)
        if known is None or not which:
            return [], []
        return list(known.names), list(zip(*known.cells(np.asarray(which)).values(), strict=True))
    carried = carried_columns(source, "ids")
    wanted = ", ".join(str(int(place)) for place in which)
    numbered = carried.relation().project("row_number() OVER () - 1 AS place, *")
    found = {row[0]: row[1:] for row in numbered.filter(f"place IN ({wanted})").fetchall()}
    return list(carried.names), [found[int(place)] for place in which]
