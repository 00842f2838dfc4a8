"""Some of a source's rows as a source of their own."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from foldwise.data.arrays import ArraySource
from foldwise.data.block_grid import rows_per_block
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


class SomeRows:
    """The rows of those numbers (rising), cut into blocks as if there were no others; read again at every pass."""

    slow = True

    def __init__(self, source: Source, which: NDArray[np.intp]) -> None:
        self._source, self._which = source, which
        self._step = rows_per_block(source.n_columns, source.dtype, sparse=source.sparse)
        self.where, self.names, self.left_out = source.where, source.names, source.left_out
        self.n_columns, self.dtype, self.sparse = source.n_columns, source.dtype, source.sparse
        self.n_rows = len(which)

    def pieces(self) -> Iterator[Piece]:
        """The blocks, which are put together here, one after the other."""
        waiting: list[Source] = []
        start = kept = 0
        for number, piece in enumerate(self._source.pieces()):
            first, last = np.searchsorted(self._which, (number * self._step, (number + 1) * self._step))
            while first < last:
                here = self._which[first : min(last, first + self._step - kept)]
                waiting.append(_taken(piece, here, self))
                first, kept = first + len(here), kept + len(here)
                if kept == self._step:
                    yield _one_block(waiting, start)
                    start, kept, waiting = start + kept, 0, []
        if waiting:
            yield _one_block(waiting, start)

    def fingerprint(self) -> str:
        """That of the source, and which rows."""
        return f"{self._source.fingerprint()} rows {self._which.tolist()}"


def _taken(piece: Piece, which: NDArray[np.intp], like: Source) -> Source:
    block = piece()
    inside = which - block.start
    return _in_memory([block.rows[inside]], [] if block.weights is None else [block.weights[inside]], like)


def _one_block(parts: list[Source], start: int) -> Piece:
    whole = parts[0]
    for part in parts[1:]:
        whole = joined(whole, part)
    (piece,) = whole.pieces()
    return lambda: replace(piece(), start=start)


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
