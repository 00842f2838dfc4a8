"""The rows that take part in what takes long, and whose cells are shown: all of them, or a random sample."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from foldwise.data.arrays import ArraySource
from foldwise.data.block import Floats, dense_rows
from foldwise.data.image_shape import names_of_columns
from foldwise.data.row_names import row_names_of
from foldwise.data.source import Source, block_rows, count_rows
from foldwise.data.subset import gather
from foldwise.fold.passes import Passes
from foldwise.prepare.prepared import carried_columns, prepared_of

_MOST_CELLS = 20_000_000
_MOST_CARRIED = 500  # columns of a table whose cells are fetched as they are
_LEVELS_SHOWN = 24  # of a category; others are "(other)"
OTHER = "(other)"


@dataclass(frozen=True)
class Sample:
    """Some rows of a source: their places among all of them (rising), and the same rows in memory.

    `cells` has columns of a table as given, numbers with NaN and everything else as text with None where cells are missing.
    """

    rows: NDArray[np.int64]
    total: int
    source: Source
    weights: Floats | None
    cells: Mapping[str, NDArray[Any]]

    @property
    def complete(self) -> bool:
        """Whether these are all rows."""
        return len(self.rows) == self.total

    def values(self, names: Sequence[str]) -> Floats:
        """Cells of columns of numbers, in units of the data; NaN where they are missing."""
        if all(name in self.cells for name in names):
            return np.column_stack([np.asarray(self.cells[name], dtype=np.float64) for name in names])
        place = {name: j for j, name in enumerate(names_of_columns(self.source))}
        return self.dense([place[name] for name in names])

    def dense(self, columns: Sequence[int] | None = None) -> Floats:
        """The rows as a model sees them (not standardised), or some of their columns."""
        blocks = [piece.load() for piece in self.source.pieces()]
        which = slice(None) if columns is None else list(columns)
        return np.concatenate([dense_rows(block.unchecked[:, which]) for block in blocks]).astype(np.float64)

    def only(self, most: int, seed: int) -> tuple[Source, NDArray[np.intp]]:
        """At most so many of these rows, at random, and their places among these."""
        if len(self.rows) <= most:
            return self.source, np.arange(len(self.rows))
        which = np.sort(np.random.default_rng([seed, 11]).choice(len(self.rows), most, replace=False)).astype(np.intp)
        return self.take(which), which

    def without(self, kept: NDArray[np.intp] | None) -> Sample:
        """Only those of these rows, by their places among these (rising); None: all."""
        if kept is None:
            return self
        weights = None if self.weights is None else self.weights[kept]
        return Sample(self.rows[kept], self.total, self.take(kept), weights, {})

    def take(self, which: NDArray[np.intp]) -> Source:
        """Some of these rows, by their places among these (rising)."""
        if self.source.sparse:
            return named(gather(self.source, which), self.source)  # type: ignore[no-any-return]
        rows = np.concatenate([piece.load().unchecked for piece in self.source.pieces()])[which]
        weights = None if self.weights is None else self.weights[which]
        made = ArraySource(rows, weights=weights, dtype=self.source.dtype)
        return named(made, self.source)  # type: ignore[no-any-return]


def named(made: Any, like: Any) -> Any:
    """Rows in memory with the names and the recipe of those they came from."""
    made.names = like.names
    for name in ("recipe", "indicators", "image_shape"):
        if getattr(like, name, None) is not None:
            setattr(made, name, getattr(like, name))
    return made


def draw_sample(passes: Passes, most: int, seed: int) -> Sample:
    """All rows, or `most` of them (fewer if there are very many columns), each as likely as any other."""
    source = passes.source
    total = count_rows(source)
    per_row = 100 if source.sparse else max(1, source.n_columns)
    most = max(1000, min(most, _MOST_CELLS // per_row))
    if total > most:
        rows = np.sort(np.random.default_rng([seed, 10]).choice(total, most, replace=False)).astype(np.int64)
    else:
        rows = np.arange(total, dtype=np.int64)
    kept, weights = _in_memory(passes, rows)
    return Sample(rows, total, named(kept, source), weights, _cells(source, rows, total))


def _in_memory(passes: Passes, rows: NDArray[np.int64]) -> tuple[Any, Floats | None]:
    """The rows with those numbers, missing cells as they are; infinities are refused."""
    source = passes.source
    if source.sparse:
        found = gather(source, rows.astype(np.intp))
        blocks = [piece.load() for piece in found.pieces()]
        return found, None if blocks[0].weights is None else np.concatenate([one.weights for one in blocks])
    step = block_rows(source)
    inside = {int(number): rows[(rows // step) == number] - number * step for number in np.unique(rows // step)}
    parts = passes.ask(_take, inside)
    cells = np.concatenate([parts[number][0] for number in sorted(parts)])
    heavy = [parts[number][1] for number in sorted(parts)]
    weights = None if heavy[0] is None else np.concatenate(heavy)
    return ArraySource(np.ascontiguousarray(cells), weights=weights, dtype=source.dtype), weights


def _take(block: Any, state: Any, inside: NDArray[np.int64]) -> tuple[NDArray[Any], Floats | None]:
    return block.rows[inside], None if block.weights is None else block.weights[inside]


def _cells(source: Any, rows: NDArray[np.int64], total: int) -> dict[str, NDArray[Any]]:
    """The columns of a table as given, or files and labels of images, for these rows; nothing of an array."""
    prepared = prepared_of(source)
    if prepared is None:
        known = row_names_of(source)
        return {} if known is None else known.cells(rows)
    carried = carried_columns(source, "all" if len(prepared.recipe.columns) <= _MOST_CARRIED else "ids", typed=True)
    relation = carried.relation()
    if len(rows) < total:
        listed = ", ".join(map(str, rows.tolist()))
        relation = relation.project("row_number() OVER () - 1 AS place, *").filter(f"place IN ({listed})")
    got = relation.fetchnumpy()
    if "place" in got:
        order = np.argsort(np.asarray(got["place"]), kind="stable")
        got = {name: column[order] for name, column in got.items()}
    number = {column.name for column in prepared.recipe.columns if column.kind == "number"}
    found = {}
    for j, name in enumerate(carried.names):
        cells = got[f"c{j}"]
        found[name] = cells if j == 0 else _numbers(cells) if name in number else _texts(cells)
    return found


def _numbers(cells: Any) -> Floats:
    try:
        return np.ma.filled(np.ma.asarray(cells).astype(np.float64), np.nan)
    except (TypeError, ValueError):  # decimals and the like
        mask = np.ma.getmaskarray(cells)
        return np.array([np.nan if gone else float(cell) for cell, gone in zip(cells.data, mask, strict=True)])


def _texts(cells: Any) -> NDArray[Any]:
    mask = np.ma.getmaskarray(np.ma.asarray(cells))
    plain = np.ma.getdata(cells)
    return np.array(
        [None if gone or cell is None or cell != cell else _text(cell) for cell, gone in zip(plain, mask, strict=True)],
        dtype=object,
    )


def _text(cell: Any) -> str:
    if isinstance(cell, float | np.floating) and float(cell).is_integer():
        return str(int(cell))
    return str(cell)


def coded(cells: NDArray[Any]) -> tuple[tuple[str, ...], NDArray[np.int32]]:
    """The levels of a category, the most frequent first, and each cell's code; -1 if it is missing.

    >>> coded(np.array(["b", "a", "b", None], dtype=object))
    (('b', 'a'), array([ 0,  1,  0, -1], dtype=int32))
    """
    known = np.array([cell is not None for cell in cells], dtype=bool)
    texts, inverse, counts = np.unique(cells[known].astype(str), return_inverse=True, return_counts=True)
    order = np.lexsort((texts, -counts))
    shown = order if len(order) <= _LEVELS_SHOWN else order[: _LEVELS_SHOWN - 1]
    code = np.full(len(texts), len(shown), dtype=np.int32)
    code[shown] = np.arange(len(shown), dtype=np.int32)
    out = np.full(len(cells), -1, dtype=np.int32)
    out[known] = code[inverse]
    levels = tuple(str(texts[j]) for j in shown)
    return (levels if len(shown) == len(order) else (*levels, OTHER)), out
