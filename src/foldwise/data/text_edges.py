"""Rows of a text file where DuckDB begins to read in the middle.

DuckDB cuts a file into stretches that threads read at once. Each begins with the first row that fits the types; whether that
is where the stretch before it ended is not checked for the last one (DuckDB 2.0). If the first row there has a word among
numbers, or a cell too few, that row and all that follow would be left out without a word. So these rows are looked at here.
"""

from __future__ import annotations

import io
import os
from collections.abc import Iterator, Sequence
from itertools import islice

from foldwise.data.text_cells import is_number, sql_type
from foldwise.data.text_dialect import Dialect, Tokens
from foldwise.errors import DataError

# Bytes that DuckDB is told to read at a time. A dozen such buffers are in memory at once: with 16 MB a PCA of 64 columns took
# 488 MB, with 8 MB 420, now 356 to 388; with 1 to 3 MB no less, and more time.
STRETCH = 4_000_000
_ROWS = 3  # after an edge: the first, or the second if a row ends there
_WINDOW = 1 << 14  # bytes, at first


def rows_fit(path: str, dialect: Dialect, kinds: Sequence[str], nulls: Sequence[str] = ()) -> bool:
    """Whether the rows after all edges of a file have as many cells as there are types, which DuckDB can read as these."""
    for text in _after_edges(path):
        starts = ("", dialect.quote) if dialect.quote and dialect.quote in text else ("",)  # perhaps within quotes
        if not any(_fit(start + text, dialect, kinds, nulls) for start in starts):
            return False
    return True


def _after_edges(path: str) -> Iterator[str]:
    """The text from the last byte before each edge on, as far as whole lines go."""
    size = os.path.getsize(path)
    if size <= STRETCH:
        return
    with open(path, "rb") as file:
        for edge in range(STRETCH, size, STRETCH):
            window = _WINDOW
            while True:
                file.seek(edge - 1)
                data = file.read(window)
                if data.count(b"\n") > _ROWS + 1 or edge - 1 + len(data) >= size or window > STRETCH:
                    break
                window *= 8
            whole = data if edge - 1 + len(data) >= size else data[: data.rfind(b"\n") + 1]
            yield whole.decode("utf-8", errors="replace")


def _fit(text: str, dialect: Dialect, kinds: Sequence[str], nulls: Sequence[str]) -> bool:
    partial = 0 if text[:1] in ("\r", "\n") else 1  # what is left of the row before; it may end right at the edge
    try:
        records = [cells for _, cells in islice(Tokens(io.StringIO(text, newline=""), dialect, cut=True), _ROWS + partial)]
    except DataError:
        return False
    return all(
        len(cells) == len(kinds) and all(_fits(cell, kind, nulls) for cell, kind in zip(cells, kinds, strict=True))
        for cells in records[partial:]
    )


def _fits(cell: str, kind: str, nulls: Sequence[str]) -> bool:
    if kind == "VARCHAR" or not cell.strip() or cell in nulls:
        return True
    return (kind == "DOUBLE" and is_number(cell) and _is_float(cell)) or sql_type([cell]) == kind


def _is_float(cell: str) -> bool:
    """Whether a number is written plainly; quicker than the pattern by which the types of columns are found."""
    try:
        float(cell)
    except ValueError:
        return False
    return True
