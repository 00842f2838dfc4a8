"""How often each level of some categories occurs, by the number of rows or by their weights."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from foldwise.data.duckdb_connection import duckdb_errors
from foldwise.data.duckdb_source import open_source
from foldwise.data.duckdb_sql import Column
from foldwise.data.duckdb_table import DuckDBTable
from foldwise.prepare.codes import code_sql
from foldwise.prepare.encode import Levels


def answer(table: DuckDBTable, condition: str | None, aggregates: str) -> tuple[Any, ...]:
    """The aggregates of the rows that meet a condition."""

    def asked(rows: Any) -> Any:
        kept = rows if condition is None else rows.filter(condition)
        return kept.aggregate(aggregates).fetchall()[0]

    try:
        return tuple(table.ask(asked))
    except duckdb_errors() as problem:
        table.explain(problem, list(table.columns), condition)


def count_levels(
    table: DuckDBTable, columns: Sequence[Column], words: Sequence[str], condition: str | None, weights: Any
) -> list[dict[str, float]]:
    """The levels of each column, `words` in SQL, with their counts; a row counts as often as its weight says.

    Weights take a second pass, which adds them up in the order of the rows. Levels that occur only with weight 0 do not occur.
    """
    found = answer(table, condition, ", ".join(f"histogram({word})" for word in words))
    counts = [{str(level): float(n) for level, n in (one or {}).items()} for one in found]
    if weights is None:
        return counts
    chosen = [j for j, one in enumerate(counts) if one]
    if not chosen:
        return counts
    every = {j: Levels(columns[j].name, tuple(counts[j]), tuple(counts[j].values())) for j in chosen}
    coded = {
        columns[j].name: replace(columns[j], type="DOUBLE", expression=code_sql(words[j], every[j])) for j in chosen
    }
    weighed = replace(table, columns=tuple(coded.get(column.name, column) for column in table.columns))
    source = open_source(weighed, columns_=list(coded), where=condition, weights=weights, dtype=None)
    sums = {j: np.zeros(len(every[j].levels)) for j in chosen}
    for piece in source.pieces():
        block = piece.load()
        for k, j in enumerate(chosen):
            codes = block.unchecked[:, k]
            known = ~np.isnan(codes)
            given = None if block.weights is None else block.weights[known]
            sums[j] += np.bincount(codes[known].astype(np.intp), given, minlength=len(sums[j]))
    for j in chosen:
        counts[j] = {level: float(n) for level, n in zip(every[j].levels, sums[j], strict=True) if n > 0}
    return counts
