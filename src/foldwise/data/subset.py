"""Some of a source's rows as a source of their own."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

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
            block = piece.load()
            blocks.append(block.take(here - block.start))
    return _in_memory(blocks, source)


def concatenate(first: Source, second: Source) -> Source:
    """The rows of two sources that are alike, one below the other, in memory."""
    if first.sparse != second.sparse:
        raise DataError("a batch is sparse and another dense", advice="Give all batches in one form")
    return _in_memory([piece.load() for source in (first, second) for piece in source.pieces()], first)


def _in_memory(blocks: list[Block], like: Source) -> Source:
    block = join(blocks, 0)
    if like.sparse:
        return SparseSource(block.rows, block.weights, like.dtype)
    return ArraySource(block.dense(), weights=block.weights, dtype=like.dtype)


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


class BlockSubset(_Part):
    """Some blocks of a source, in its order: for data of which only a part shall be read."""

    def __init__(self, source: Source, numbers: NDArray[np.intp], n_rows: int) -> None:
        super().__init__(source, np.sort(numbers))
        self.slow = source.slow
        last = (n_rows - 1) // self._step
        short = (last + 1) * self._step - n_rows if last in self._which else 0
        self.n_rows = len(self._which) * self._step - short

    def pieces(self, first: int = 0, last: int | None = None) -> Iterator[Piece]:
        """The blocks to load; rows are counted anew."""
        for place, number in list(enumerate(self._which.tolist()))[first:last]:
            for piece in self._source.pieces(number, number + 1):
                yield _Renumbered(piece, place * self._step)

    def fingerprint(self) -> str:
        """That of the source, and which blocks."""
        return f"{self._source.fingerprint()} blocks {self._which.tolist()}"


class _Renumbered:
    __slots__ = ("piece", "start")

    def __init__(self, piece: Piece, start: int) -> None:
        self.piece, self.start = piece, start

    def load(self) -> Block:
        return replace(self.piece.load(), start=self.start)
