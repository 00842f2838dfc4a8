"""Some of a source's rows as a source of their own."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from foldwise.data.arrays import ArraySource
from foldwise.data.cut import rows_per_block
from foldwise.data.source import Piece, Source
from foldwise.data.sparse import SparseSource
from foldwise.errors import DataError


def gathered(source: Source, which: NDArray[np.intp] | None = None) -> Source:
    """The rows of those numbers (rising), or all of them, copied to memory; dense or sparse as they are."""
    rows: list[Any] = []
    weights: list[NDArray[np.float64]] = []
    step = rows_per_block(source.n_columns, source.dtype, sparse=source.sparse)
    for number, piece in enumerate(source.pieces()):
        if which is not None:
            here = which[np.searchsorted(which, number * step) : np.searchsorted(which, (number + 1) * step)]
            if not len(here):
                continue
        block = piece()
        inside = slice(None) if which is None else here - block.start
        rows.append(block.rows[inside])
        if block.weights is not None:
            weights.append(block.weights[inside])
    return _in_memory(rows, weights, source)


def joined(first: Source, second: Source) -> Source:
    """The rows of two sources that are alike, one below the other, in memory."""
    if first.sparse != second.sparse:
        raise DataError("a batch is sparse and another dense", advice="Give all batches in one form")
    blocks = [piece() for source in (first, second) for piece in source.pieces()]
    weighted = any(block.weights is not None for block in blocks)
    weights = [np.ones(b.n_rows) if b.weights is None else b.weights for b in blocks] if weighted else []
    return _in_memory([block.rows for block in blocks], weights, first)


def _in_memory(rows: list[Any], weights: list[NDArray[np.float64]], like: Source) -> Source:
    mass = np.concatenate(weights) if weights else None
    if like.sparse:
        import scipy.sparse as sp

        return SparseSource(sp.vstack(rows, format="csr"), mass, like.dtype)
    return ArraySource(np.concatenate(rows), weights=mass, dtype=like.dtype)


class SomeBlocks:
    """Some blocks of a source, in its order: for data of which only a part shall be read."""

    def __init__(self, source: Source, numbers: NDArray[np.intp], n_rows: int) -> None:
        self._source, self._numbers = source, np.sort(numbers)
        self._step = rows_per_block(source.n_columns, source.dtype, sparse=source.sparse)
        self.where, self.names, self.left_out = source.where, source.names, source.left_out
        self.n_columns, self.dtype, self.sparse, self.slow = (
            source.n_columns,
            source.dtype,
            source.sparse,
            source.slow,
        )
        last = (n_rows - 1) // self._step
        short = (last + 1) * self._step - n_rows if last in self._numbers else 0
        self.n_rows = len(self._numbers) * self._step - short

    def pieces(self) -> Iterator[Piece]:
        """The blocks to load; rows are counted anew."""
        wanted = {int(number): place for place, number in enumerate(self._numbers)}
        for number, piece in enumerate(self._source.pieces()):
            if number in wanted:
                start = wanted[number] * self._step
                yield lambda piece=piece, start=start: replace(piece(), start=start)  # type: ignore[misc]
                if len(wanted) == wanted[number] + 1:
                    return

    def fingerprint(self) -> str:
        """That of the source, and which blocks."""
        return f"{self._source.fingerprint()} blocks {self._numbers.tolist()}"
