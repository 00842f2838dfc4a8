"""The first rows of a table, in DuckDB's memory where that is possible, so that many questions take one reading of the file."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import duckdb

from foldwise.data.duckdb_sql import quoted
from foldwise.data.duckdb_table import DuckDBTable

MOST_ROWS = 1_000_000
_MOST_CELLS = 24_000_000
_FEWEST_ROWS = 2_000
FEW_COLUMNS = 60  # whose aggregates are asked for side by side
_FEW_TEXTS = 10  # the same for columns of text, which can be stacked without being converted
_MOST_STACKED = 2000  # columns in one query
_numbers = itertools.count()


class FirstRows:
    """The first rows of a table: as many as `MOST_ROWS`, fewer of a wide table.

    Use it in a `with` statement. `complete` tells whether these are all rows.
    """

    def __init__(self, table: DuckDBTable, most: int | None = None) -> None:
        self.table = table
        wanted = min(MOST_ROWS, max(_FEWEST_ROWS, _MOST_CELLS // max(len(table.columns), 1)))
        self.most = wanted if most is None else min(wanted, most)
        self._cursor: Any = None
        self._name = f"foldwise_first_rows_{next(_numbers)}"
        self.rows = 0
        self.complete = False

    def __enter__(self) -> FirstRows:
        own = self.table.sql is not None or not hasattr(self.table.object, "sql_query")
        while own:  # a relation of the user has a connection of its own, in which nothing is created
            try:
                self.table.ask(lambda relation: relation.limit(self.most).create(self._name))
                self._cursor = self.table.database.cursor()
                break
            except duckdb.OutOfMemoryException:  # long texts: fewer rows will do
                if self.most <= _FEWEST_ROWS:
                    break
                self.most = max(self.most // 10, _FEWEST_ROWS)
        self.rows = int(self.relation().aggregate("count(*)").fetchall()[0][0])
        self.complete = self.rows < self.most
        return self

    def __exit__(self, *_: object) -> None:
        if self._cursor is not None:
            self._cursor.execute(f"DROP TABLE {quoted(self._name)}")

    def relation(self) -> Any:
        """These rows as a relation."""
        if self._cursor is None:
            return self.table.relation().limit(self.most)
        return self.table.database.cursor().sql(f"FROM {quoted(self._name)}")


@dataclass(frozen=True)
class Cells:
    """The cells of one column and what is made of each: `value` is SQL in which {x} stands for the cell."""

    cell: str
    value: str = "{x}"


def aggregates(relation: Any, columns: Sequence[Cells], wanted: Sequence[str]) -> list[tuple[Any, ...]]:
    """The same aggregates of each column; in those `wanted`, {x} stands for the value of a cell."""
    return own_aggregates(relation, columns, [tuple(wanted)] * len(columns))


def text_aggregates(relation: Any, columns: Sequence[Cells], wanted: Sequence[str]) -> list[tuple[Any, ...]]:
    """The same for columns of text.

    From ten of them on it takes less time to stack them: of 60, half as long with 400,000 rows and a fifth with 6,000.
    """
    return own_aggregates(relation, columns, [tuple(wanted)] * len(columns), few=_FEW_TEXTS)


def own_aggregates(
    relation: Any, columns: Sequence[Cells], wanted: Sequence[tuple[str, ...]], *, few: int = FEW_COLUMNS
) -> list[tuple[Any, ...]]:
    """The aggregates that are wanted of each column, in one query.

    Of many columns, planning such a query would take far longer than the work, so columns with equal values and aggregates are
    stacked and grouped by their number.
    """
    if len(columns) <= few:
        return _side_by_side(relation, columns, wanted)
    found: dict[int, tuple[Any, ...]] = {}
    for value, aggregated in dict.fromkeys(zip((column.value for column in columns), wanted, strict=True)):
        alike = [j for j, column in enumerate(columns) if column.value == value and wanted[j] == aggregated]
        for start in range(0, len(alike), _MOST_STACKED):
            some = alike[start : start + _MOST_STACKED]
            found |= _stacked(relation, [(j, columns[j].cell) for j in some], value, aggregated)
    return [found.get(j, ()) for j in range(len(columns))]


def _side_by_side(relation: Any, columns: Sequence[Cells], wanted: Sequence[tuple[str, ...]]) -> list[tuple[Any, ...]]:
    every = [one.replace("{x}", f"x{j}") for j, some in enumerate(wanted) for one in some]
    if not every:
        return [() for _ in columns]
    inner = ", ".join(f"{column.value.replace('{x}', column.cell)} AS x{j}" for j, column in enumerate(columns))
    row = iter(relation.project(inner).aggregate(", ".join(every)).fetchall()[0])
    return [tuple(next(row) for _ in some) for some in wanted]


def _stacked(
    relation: Any, cells: Sequence[tuple[int, str]], value: str, wanted: tuple[str, ...]
) -> dict[int, tuple[Any, ...]]:
    if not wanted:
        return {}
    side_by_side = relation.project(", ".join(f"{cell} AS x{j}" for j, cell in cells))
    listed = ", ".join(one.replace("{x}", "x") for one in wanted)
    # A view of this name is seen only by the cursor of this relation.
    rows = side_by_side.query(
        "foldwise_wide",
        f"SELECT name, {listed} FROM (SELECT name, {value.replace('{x}', 'v')} AS x FROM "
        "foldwise_wide UNPIVOT INCLUDE NULLS (v FOR name IN (COLUMNS(*)))) GROUP BY name",
    ).fetchall()
    return {int(row[0][1:]): tuple(row[1:]) for row in rows}


def counts_of(relation: Any, cell: str, condition: str, most: int) -> list[tuple[str, int]]:
    """The most frequent different cells that meet a condition, with their counts; those of equal counts by the alphabet."""
    some = relation.filter(condition).project(f"left({cell}, 200) AS cell")
    return list(some.aggregate("cell, count(*) AS n", "cell").order("n DESC, cell").limit(most).fetchall())
