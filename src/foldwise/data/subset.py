"""Some of a source's rows as a source of their own."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from foldwise.data.arrays import ArraySource
from foldwise.data.block import Block, join
from foldwise.data.source import Derived, Loaded, Piece, Source, block_rows, like
from foldwise.data.sparse import SparseSource
from foldwise.errors import DataError


def gather(source: Source, which: NDArray[np.intp] | None = None) -> Source:
    """The rows of those numbers (rising), or all of them, copied to memory; dense or sparse as they are."""
    if which is None:
        return _in_memory([piece.load() for piece in source.pieces()], source)
    step = block_rows(source)
    blocks = []
    for number, piece in enumerate(source.pieces()):
        here = which[np.searchsorted(which, number * step) : np.searchsorted(which, (number + 1) * step)]
        if len(here):
            blocks.append(TakeRows(here)(piece.load()))
    return _in_memory(blocks, source)


@dataclass(frozen=True)
class TakeRows:
    """Some rows of a block, by their numbers in the data (rising)."""

    which: NDArray[np.intp]

    def __call__(self, block: Block) -> Block:
        """Those that are in the block, of which none may be NaN or infinite."""
        block.rows  # noqa: B018  (refuses what is not finite, with its place in the data)
        first, last = np.searchsorted(self.which, (block.start, block.start + block.n_rows))
        return block.take(self.which[first:last] - block.start)


def collect(blocks: list[Block], like: Source) -> Source:
    """Rows in hand, such as every block's part of a sample, as a source in memory."""
    return _in_memory(blocks, like)


def concatenate(first: Source, second: Source) -> Source:
    """The rows of two sources that are alike, one below the other, in memory."""
    if first.sparse != second.sparse:
        raise DataError("a batch is sparse and another dense", advice="Give all batches in one form")
    return _in_memory([piece.load() for source in (first, second) for piece in source.pieces()], first)


def _in_memory(blocks: list[Block], like: Source) -> Source:
    block = join(blocks, 0)
    if like.sparse:
        return SparseSource(block.rows, block.weights, like.dtype)
    found = ArraySource(block.dense(), weights=block.weights, dtype=like.dtype)
    found.indicators = getattr(like, "indicators", None)
    return found


class _Part(Derived):
    """What sources over a part of another have in common."""

    in_memory = False

    def __init__(self, source: Source, which: NDArray[np.intp]) -> None:
        self._source, self._which = source, which
        self._step = block_rows(source)
        super().__init__(like(source))


class RowSubset(_Part):
    """The rows of those numbers (rising), cut into blocks as if there were no others; read again at every pass."""

    slow = True

    def __init__(self, source: Source, which: NDArray[np.intp]) -> None:
        super().__init__(source, which)
        self.n_rows = len(which)

    def pieces(self, first: int = 0, last: int | None = None) -> Iterator[Piece]:
        """The blocks, which are put together here, one after the other."""
        waiting: list[Block] = []
        made = kept = 0
        for number, piece in enumerate(self._source.pieces()):
            at, end = np.searchsorted(self._which, (number * self._step, (number + 1) * self._step))
            while at < end:
                here = self._which[at : min(end, at + self._step - kept)]
                block = piece.load()
                waiting.append(block.take(here - block.start))
                at, kept = at + len(here), kept + len(here)
                if kept == self._step:
                    if made >= first and (last is None or made < last):
                        yield Loaded(join(waiting, made * self._step))
                    made, kept, waiting = made + 1, 0, []
        if waiting and made >= first and (last is None or made < last):
            yield Loaded(join(waiting, made * self._step))

    def fingerprint(self) -> str:
        """That of the source, and which rows."""
        return f"{self._source.fingerprint()} rows {self._which.tolist()}"
