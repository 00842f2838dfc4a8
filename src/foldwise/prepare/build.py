"""`prepare`: find out what each column of a table is, decide what to do with it, and open the rows accordingly."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from foldwise.data import column_selection
from foldwise.data.duckdb_source import try_condition
from foldwise.data.duckdb_sql import quoted
from foldwise.data.duckdb_table import DuckDBTable
from foldwise.data.reading import Reading, reading_options
from foldwise.data.tables import open_table
from foldwise.errors import DataError, ParameterError
from foldwise.prepare.codes import PARTS, word_sql
from foldwise.prepare.count_levels import count_levels
from foldwise.prepare.decide import decide
from foldwise.prepare.encode import Levels, find_levels
from foldwise.prepare.kinds import Decision
from foldwise.prepare.prepared import Prepared
from foldwise.prepare.recipe import DESCRIBING, IDENTIFIER, LABEL, LEFT_OUT, USED, WEIGHT, Ingredient, Recipe

_MOST_LEVELS = 1000
_FEW_LEVELS = 12
_JUDGED = 100_000  # rows, which cost little beside reading a large file


def prepare(
    x: Any,
    *,
    columns: Sequence[str | int] | str | None = None,
    exclude: Sequence[str] | str = (),
    ids: Sequence[str] | str = (),
    labels: Sequence[str] | str = (),
    as_: Mapping[str, str] | None = None,
    categories: str = "describe",
    rare: float = 0.01,
    whole: bool = False,
    where: str | None = None,
    weights: Any = None,
    reading: Reading | None = None,
    **options: Any,
) -> Prepared:
    """A table as people have it, ready for a model: `fw.KMeans(3, missing="model").fit(fw.prepare("penguins.csv"))`.

    Finds out what each column is (`fw.look` shows it) and uses those that are numbers. Categories describe the result, or, with
    categories="encode", are used as well, in the geometry of factor analysis of mixed data. Identifiers, dates, texts and
    constants are left out of the mathematics. The recipe is kept by the model, which applies it to new rows and saves it.

    Parameters
    ----------
    x : path, pattern, SQL text, DuckDB relation, or data frame.
    columns : use these only. exclude : do not use these. ids, labels : columns that name rows, or their known groups.
    as_ : what columns are, as in {"zip": "category"}: number, category, boolean, identifier, date, text; or, for a date, what
        of it is used: "number" (days), "year", "month", "day", "weekday", "hour".
    rare : levels with a smaller share of the rows are pooled, with categories="encode".
    whole : columns are judged by all rows, and not by the first 100,000.
    where, weights : as for `fw.scan`.
    reading, or its fields as options : how a file is to be read: header, delimiter, decimal, encoding, missing_values, sheet,
        table, skip, comment.

    >>> import foldwise as fw, pandas as pd
    >>> pets = ["cat", "dog", "cat", "dog"]
    >>> table = pd.DataFrame({"code": ["k1", "k2", "k3", "k4"], "x": [1.5, 2.0, 8.0, 9.25], "pet": pets})
    >>> prepared = fw.prepare(table)
    >>> prepared.recipe
    used: x
    describing: pet
    identifiers: code
    >>> fw.KMeans(2).fit(prepared).predict(table)
    array([0, 0, 1, 1], dtype=int32)
    """
    if categories not in ("describe", "encode"):
        raise ParameterError(f"categories={categories!r}: must be 'describe' or 'encode'.")
    unknown = [name for name in options if name not in Reading.__dataclass_fields__]
    if unknown:
        known = [
            "columns",
            "exclude",
            "ids",
            "labels",
            "as_",
            "categories",
            "rare",
            "whole",
            "where",
            "weights",
            "reading",
        ]
        known += Reading.__dataclass_fields__
        raise ParameterError(f"{unknown[0]}: fw.prepare has no such option. It has {', '.join(known)}.")
    how = reading_options(reading, options)
    table = open_table(x, how)
    given = {"exclude": _names(exclude), "ids": _names(ids), "labels": _names(labels), "as_": list(as_ or {})}
    own = tuple(column.name for column in table.columns)
    for names in given.values():
        for name in names:
            column_selection.find(name, own, table.where)
    chosen = None if columns is None else _chosen(columns, table)
    weight = weights if isinstance(weights, str) else None
    asked = _kinds(as_ or {})
    kinds = {name: "date" if kind in PARTS and kind != "number" else kind for name, kind in asked.items()}
    if weight in own:
        kinds.setdefault(weight, "number")  # also if by itself it would be a running number, or constant
    found = decide(table, how, as_=kinds, whole=whole, rows=None if whole else _JUDGED)
    ingredients = tuple(
        _ingredient(one, given, asked.get(one.name), chosen, weight, categories, table.where) for one in found.columns
    )
    try:
        recipe = Recipe(ingredients, categories, found.notes, how)
    except DataError as problem:  # a recipe does not know what it is for
        raise DataError(problem.what, where=table.where, advice=problem.advice) from None
    table = replace(found.table, n_rows=found.rows)
    if categories == "encode":
        recipe = _with_levels(recipe, table, where, weights, rare)
    return recipe.open(table, where=where, weights=weights)


def _names(given: Sequence[str] | str) -> list[str]:
    return [given] if isinstance(given, str) else list(given)


def _chosen(columns: Any, table: DuckDBTable) -> list[str]:
    own = [column.name for column in table.columns]
    if not table.named and all(isinstance(one, str) and one.isdecimal() for one in _names(columns)):
        columns = [int(one) for one in _names(columns)]  # as the command line gives positions
    return [own[j] for j in column_selection.positions(columns, tuple(own), len(own), table.where)]


def _kinds(asked: Mapping[str, str]) -> dict[str, str]:
    allowed = [
        "number",
        "category",
        "boolean",
        "identifier",
        "date",
        "text",
        *(part for part in PARTS if part != "number"),
    ]
    for name, kind in asked.items():
        if kind not in allowed:
            raise ParameterError(f"as_={{{name!r}: {kind!r}}}: a column can be {', '.join(allowed)}.")
    return dict(asked)


def _ingredient(
    one: Decision,
    given: Mapping[str, list[str]],
    asked: str | None,
    chosen: Sequence[str] | None,
    weight: str | None,
    categories: str,
    where: str,
) -> Ingredient:
    """What is done with a column."""
    role, reason, part = _usual(one.kind, categories), one.reason, None
    if role in (USED, DESCRIBING) and one.kind == "category" and not one.asked and _hardly_repeats(one):
        role = LEFT_OUT  # a level for nearly every row describes nothing
    if one.kind == "date" and asked in PARTS:
        role, part = USED, asked
    for name, wanted in (("exclude", LEFT_OUT), ("ids", IDENTIFIER), ("labels", LABEL)):
        if one.name in given[name]:
            role, reason = wanted, "as asked"
    if one.name == weight:
        role, reason = WEIGHT, "as asked"
    if chosen is not None and role == USED and one.name not in chosen:
        role, reason = LEFT_OUT, "not asked for"
    if chosen is not None and one.name in chosen and role not in (USED, LABEL, IDENTIFIER, WEIGHT):
        raise _not_usable(one, role, where)
    if chosen is not None and one.name in chosen and role == IDENTIFIER and one.name not in given["ids"]:
        role, reason = (USED, "as asked") if one.is_number else (role, reason)
        if role != USED:
            raise _not_usable(one, role, where)
    return Ingredient(one.name, one.kind, role, reason, one.format, None, part)


def _hardly_repeats(one: Decision) -> bool:
    return one.profile.distinct > _FEW_LEVELS and one.profile.distinct > one.profile.present / 2


def _usual(kind: str, categories: str) -> str:
    if kind in ("category", "boolean"):
        return USED if categories == "encode" else DESCRIBING
    return {"number": USED, "identifier": IDENTIFIER}.get(kind, LEFT_OUT)


def _not_usable(one: Decision, role: str, where: str) -> DataError:
    advice = "Leave it out of columns"
    if role == DESCRIBING:
        advice = f"categories='encode' uses categories; as_={{{one.name!r}: 'number'}} takes it for numbers, if it holds some"
    elif one.kind == "date":
        advice = f"as_={{{one.name!r}: 'number'}} uses the days since 1970; 'month', 'weekday', ... use a part"
    what = f"columns= names a column that is not a number ({one.kind}: {one.reason})"
    return DataError(what, where=where, column=one.name, advice=advice)


def _with_levels(recipe: Recipe, table: DuckDBTable, where: str | None, weights: Any, rare: float) -> Recipe:
    """The recipe with the levels of all categories that are used, which takes one query, and with weights a pass."""
    typed = recipe.without_levels().typed(table)
    own = {column.name: column for column in table.columns}
    used = [column for column in recipe.having(USED) if column.kind in ("category", "boolean")]
    if not used:
        return recipe
    words = [word_sql(quoted(own[column.name].sql), column.sql_type(own[column.name])) for column in used]
    try_condition(typed, where)
    counts = count_levels(typed, [own[column.name] for column in used], words, where, weights)
    levels = {
        column.name: _levels(column, count, rare, table.where) for column, count in zip(used, counts, strict=True)
    }
    told = tuple(one.note for one in levels.values() if one.note is not None)
    columns = tuple(replace(column, levels=levels.get(column.name)) for column in recipe.columns)
    return replace(recipe, columns=columns, notes=recipe.notes + told)


def _levels(column: Ingredient, counts: dict[str, float], rare: float, where: str) -> Levels:
    if not counts:
        raise DataError("this category has no level: all its cells are missing", where=where, column=column.name)
    if column.kind == "boolean" and len(counts) > 2:
        what = f"this column holds more than two values: {', '.join(sorted(counts)[:5])}"
        raise DataError(what, where=where, column=column.name, advice=f"as_={{{column.name!r}: 'category'}}")
    found = find_levels(column.name, counts, rare=rare, fewest=2 if rare else 0)
    if len(found.levels) > _MOST_LEVELS:
        raise DataError(
            f"{len(found.levels)} levels are too many for a category",
            where=where,
            column=column.name,
            advice=f"Pool rare levels with rare=0.01, or leave the column out: exclude=[{column.name!r}]",
        )
    return found
