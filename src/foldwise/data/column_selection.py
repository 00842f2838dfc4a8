"""Column selection: by name, by position, or all numeric columns."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from typing import Any

import numpy as np

from foldwise.errors import DataError


def find(name: str, names: Sequence[str] | None, where: str) -> int:
    """The position of the column with this name."""
    if names is None:
        raise DataError(
            f"there is no column {name!r}: the columns have no names",
            where=where,
            advice="Use positions (0, 1, ...)",
        )
    if name in names:
        return names.index(name)
    close = difflib.get_close_matches(name, names, n=3, cutoff=0.5)
    if close:
        advice = "Close matches: " + ", ".join(repr(match) for match in close)
    else:
        shown = ", ".join(repr(other) for other in names[:10])
        advice = f"The columns are {shown}" + (", ..." if len(names) > 10 else "")
    raise DataError(f"there is no column {name!r}", where=where, advice=advice)


def all_numeric(columns: Any) -> bool:
    """Whether no columns are listed; an array of them must not be compared with a string."""
    return columns is None or (isinstance(columns, str) and columns == "numeric")


def _listed(columns: Any, where: str) -> list[Any]:
    if isinstance(columns, (str, int, np.integer)) or (isinstance(columns, np.ndarray) and columns.ndim == 0):
        return [columns.item() if isinstance(columns, np.ndarray) else columns]
    try:
        return list(columns if not isinstance(columns, bytes) else [columns])
    except TypeError:
        raise DataError(
            f"columns= takes names or positions, not {columns!r}", where=where, advice="For instance columns=[0, 2]"
        ) from None


def positions(columns: Any, names: Sequence[str] | None, n_columns: int, where: str) -> list[int]:
    """The positions of the columns listed by the caller."""
    found = []
    for column in _listed(columns, where):
        if isinstance(column, str) and names is None and column.isdecimal() and int(column) < n_columns:
            found.append(int(column))  # as `labels` has it
        elif isinstance(column, str):
            found.append(find(column, names, where))
        elif isinstance(column, (int, np.integer)) and not isinstance(column, bool):
            if not -n_columns <= column < n_columns:
                raise DataError(f"there is no column {column}: the data have {n_columns} columns", where=where)
            found.append(int(column) % n_columns)
        else:
            raise DataError(f"columns= takes names or positions, not {column!r}", where=where)
    if len(set(found)) < len(found):
        raise DataError("columns= names a column twice", where=where)
    if not found:
        raise DataError("columns= is empty: 0 feature(s), while a minimum of 1 is required", where=where)
    return found


def labels(chosen: Sequence[int], n_columns: int) -> tuple[str, ...] | None:
    """What to call some of the columns of data without names: their positions, by which the same can be found again."""
    return None if list(chosen) == list(range(n_columns)) else tuple(map(str, chosen))


def numeric(
    names: Sequence[str], is_number: Sequence[bool], without: int | None, where: str
) -> tuple[list[int], tuple[str, ...]]:
    """The positions of all numeric columns, and the names of the others."""
    kept = [j for j, ok in enumerate(is_number) if ok and j != without]
    left_out = tuple(names[j] for j, ok in enumerate(is_number) if not ok and j != without)
    if not kept:
        found = ", ".join(repr(name) for name in left_out[:10])
        raise DataError(
            f"no numeric column (columns found: {found or 'none'})",
            where=where,
            advice="Every row must have the same number of values, and the first line must be the header",
        )
    return kept, left_out
