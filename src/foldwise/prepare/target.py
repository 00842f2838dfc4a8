"""A column that is to be predicted: its values, in the order of the rows that models see."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from foldwise.data.duckdb_source import open_source
from foldwise.data.duckdb_sql import quoted
from foldwise.errors import DataError
from foldwise.prepare.codes import code_sql, word_sql
from foldwise.prepare.count_levels import count_levels
from foldwise.prepare.encode import find_levels
from foldwise.prepare.prepared import Prepared


@dataclass(frozen=True)
class Target:
    """The values of a column: numbers, or the words of a category; of the rows in which they are known, which are `rows`."""

    name: str
    values: NDArray[Any]
    is_category: bool
    missing: int  # rows without a value
    rows: Prepared


def target_of(prepared: Prepared, name: str) -> Target:
    """The target among the labels of a prepared table, which takes two passes over its column.

    >>> import foldwise as fw, pandas as pd
    >>> table = pd.DataFrame({"x": [1.5, 2.0, 8.0, 9.25], "pet": ["cat", "dog", None, "dog"]})
    >>> found = target_of(fw.prepare(table, labels="pet"), "pet")
    >>> found.values, found.is_category, found.missing
    (array(['cat', 'dog', 'dog'], dtype=object), True, 1)
    """
    own = next(column for column in prepared.recipe.columns if column.name == name)
    if own.kind not in ("number", "category", "boolean"):
        raise DataError(
            f"the target must be a number or a category, but this is: {own.kind}"
            + (f" ({own.reason})" if own.reason and own.reason != "as asked" else ""),
            where=prepared.where,
            column=name,
            advice=f"Choose another column, or say what it is: as_={{{name!r}: 'category'}}",
        )
    cell = next(column for column in prepared.table.columns if column.name == name)
    levels, table = None, prepared.table
    if own.kind != "number":
        word = word_sql(quoted(cell.sql), cell.type)
        counts = count_levels(table, [cell], [word], prepared.condition, None)[0]
        levels = find_levels(name, counts, rare=0.0, fewest=0)
        coded = replace(cell, type="DOUBLE", expression=code_sql(word, levels))
        table = replace(table, columns=tuple(coded if one is cell else one for one in table.columns))
    source = open_source(table, columns_=[name], where=prepared.condition, weights=None, dtype=None)
    numbers = np.concatenate([piece.load().unchecked[:, 0] for piece in source.pieces()], dtype=np.float64)
    known = ~np.isnan(numbers)
    if not known.any():
        raise DataError("the target has no value in any row", where=prepared.where, column=name)
    values = numbers[known]
    if levels is not None:
        values = np.array(levels.levels, dtype=object)[values.astype(np.intp)]
    elif not np.isfinite(values).all():
        raise DataError("the target has an infinite value", where=prepared.where, column=name)
    if len(set(values.tolist())) < 2:
        raise DataError(
            f"the target is {values[0]} in all rows, so that there is nothing to predict",
            where=prepared.where,
            column=name,
        )
    missing = int(np.count_nonzero(~known))
    rows = prepared.only(f"{quoted(cell.sql)} IS NOT NULL") if missing else prepared
    return Target(name, values, levels is not None, missing, rows)
