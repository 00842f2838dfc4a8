"""Columns that say the same twice: copies, other units of one quantity, two names of one category.

Looked for among some of the first rows, and tested on all of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from foldwise.data.block import Floats

LIMIT = 0.9999  # correlation above which one column is taken for a copy of another
_MOST_COLUMNS = 500
_MOST_CELLS = 500_000
_MOST_WORDS = 400_000
_MOST_PAIRS = 30
_FEWEST = 8  # rows in which both are there
_FEWEST_OTHER = 5  # rows that do not have the most frequent level


@dataclass(frozen=True)
class Pair:
    """Two columns, by their numbers, of which the second repeats the first; `how` says in what way."""

    first: int
    second: int
    how: str


def of_numbers(relation: Any, values: dict[int, str]) -> list[Pair]:
    """Pairs of number columns (by number: the SQL of their values) whose correlation is beyond `LIMIT`."""
    columns = list(values)[:_MOST_COLUMNS]
    if len(columns) < 2:
        return []
    table = _fetched(relation, [values[j] for j in columns], _MOST_CELLS // len(columns))
    pairs = [(columns[a], columns[b]) for a, b in correlated(table)][:_MOST_PAIRS]
    if not pairs:
        return []
    asked = ", ".join(f"corr({values[a]}, {values[b]})" for a, b in pairs)
    found = relation.aggregate(asked).fetchall()[0]
    exact = relation.aggregate(", ".join(f"bool_and({values[a]} = {values[b]})" for a, b in pairs)).fetchall()[0]
    return [
        Pair(a, b, "equal" if same else f"correlation {r:.6f}" if abs(r) < 1 - 5e-7 else "one follows from the other")
        for (a, b), r, same in zip(pairs, found, exact, strict=True)
        if r is not None and abs(r) > LIMIT
    ]


def _fetched(relation: Any, values: Sequence[str], rows: int) -> Floats:
    listed = ", ".join(f"{value} AS c{k}" for k, value in enumerate(values))
    found = relation.limit(max(rows, 100)).project(listed).fetchnumpy()
    columns = [np.ma.filled(np.ma.asarray(found[f"c{k}"], dtype=np.float64), np.nan) for k in range(len(values))]
    return np.column_stack(columns)


def correlated(table: Floats) -> list[tuple[int, int]]:
    """Pairs of columns whose correlation, over the rows where both are there, is beyond `LIMIT`; each column follows one other.

    >>> x = np.arange(10.0) ** 2
    >>> correlated(np.column_stack([x, 24 - x, np.sin(x)]))
    [(0, 1)]
    """
    there = np.isfinite(table)
    count = there.sum(axis=0)
    filled = np.where(there, table, 0.0)
    mean = filled.sum(axis=0) / np.maximum(count, 1)
    centred = np.where(there, filled - mean, 0.0)
    scale = np.abs(centred).max(axis=0, initial=0.0)
    centred /= np.where(scale > 0, scale, 1.0)
    mask = there.astype(np.float64)
    n = mask.T @ mask
    sums, squares = centred.T @ mask, (centred**2).T @ mask  # of one column over the rows where the other is there
    with np.errstate(invalid="ignore", divide="ignore"):
        own = squares - sums**2 / n
        r = (centred.T @ centred - sums * sums.T / n) / np.sqrt(own * own.T)
    r[(n < _FEWEST) | (own <= 1e-9) | (own.T <= 1e-9) | ~np.isfinite(r)] = 0.0
    found: list[tuple[int, int]] = []
    for b in range(1, len(r)):
        before = np.flatnonzero(np.abs(r[:b, b]) > LIMIT)
        if len(before):
            found.append((int(before[0]), b))
    return found


def of_words(relation: Any, values: dict[int, str]) -> list[Pair]:
    """Pairs of columns (by number: the SQL of their values) of which each level of one goes with one of the other."""
    columns = list(values)[:_MOST_COLUMNS]
    if len(columns) < 2:
        return []
    rows = max(_MOST_WORDS // len(columns), 50)
    listed = ", ".join(f"CAST({values[j]} AS VARCHAR)" for j in columns)
    table = relation.limit(rows).project(listed).fetchall()
    coded = [codes(column) for column in zip(*table, strict=True)] if table else []
    groups: dict[bytes, int] = {}
    pairs: list[tuple[int, int]] = []
    for j, code in zip(columns, coded, strict=False):
        other = np.bincount(code[code >= 0]) if (code >= 0).any() else np.zeros(1, dtype=np.intp)
        if int(other.sum() - other.max()) < _FEWEST_OTHER:
            continue
        key = code.tobytes()
        if key in groups:
            pairs.append((groups[key], j))
        groups.setdefault(key, j)
    pairs = pairs[:_MOST_PAIRS]
    found = []
    for a, b in pairs:
        one, two = values[a], values[b]
        counts = relation.aggregate(
            f"count(DISTINCT {one}), count(DISTINCT {two}), count(DISTINCT ({one}, {two})), bool_and({one} = {two})"
        ).fetchall()[0]
        if counts[0] == counts[1] and counts[2] <= counts[0] + 1:  # a pair of NULLs counts as one
            found.append(Pair(a, b, "equal" if counts[3] else "one to one"))
    return found


def codes(cells: Sequence[Any]) -> NDArray[np.int64]:
    """Levels by the order in which they come: equal for two columns whose levels go together one to one; missing is -1.

    >>> codes(["b", None, "a", "b"]).tolist()
    [0, -1, 1, 0]
    """
    seen: dict[Any, int] = {}
    return np.array([-1 if cell is None else seen.setdefault(cell, len(seen)) for cell in cells], dtype=np.int64)
