"""Rows in blocks of another height than the grid's: for work that grows faster than the rows of a block, or wider rows."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence

import numpy as np

from foldwise.data.block import Block, join
from foldwise.data.source import Loaded, Piece, Source, View, block_rows


class RecutSource(View):
    """The rows of another source in blocks of `height` rows, put together here, one after the other."""

    slow = True  # every block is found by reading those before it

    def __init__(self, source: Source, height: int) -> None:
        super().__init__(source)
        self.block_rows = height

    def pieces(self, first: int = 0, last: int | None = None) -> Iterator[Piece]:
        """The blocks; rows are checked on the way."""
        start, step = first * self.block_rows, block_rows(self.source)
        stop = None if last is None else last * self.block_rows
        waiting: list[Block] = []
        for piece in self.source.pieces(start // step, None if stop is None else -(-stop // step)):
            block = piece.load()
            block.rows  # noqa: B018  (refuses what is not finite)
            at = max(start - block.start, 0) if not waiting else 0
            end = block.n_rows if stop is None else min(block.n_rows, stop - block.start)
            while at < end:
                height = min(self.block_rows - sum(part.n_rows for part in waiting), end - at)
                waiting.append(self._own(block.take(slice(at, at + height))))
                at += height
                if sum(part.n_rows for part in waiting) == self.block_rows:
                    yield Loaded(join(waiting, start))
                    waiting, start = [], start + self.block_rows
        if waiting:
            yield Loaded(join(waiting, start))

    def _own(self, part: Block) -> Block:
        """Rows that stay: the memory of a block that was read may be used again for the next one."""
        return part if self.in_memory else part.take(np.arange(part.n_rows))


def cut_every(source: Source, height: int) -> Source:
    """The same rows in blocks of `height` rows, cut by the source itself where it can (`cut_anywhere`)."""
    if block_rows(source) == height:
        return source
    if not isinstance(source, View) and not getattr(source, "cut_anywhere", False):
        return RecutSource(source, height)
    same = copy.copy(source)
    if isinstance(same, View):
        same.source = cut_every(same.source, height)
    same.block_rows = height  # type: ignore[attr-defined]  # which `block_rows` looks for
    return same


class BlockList:
    """Blocks in hand, all of one height but the last, as a source."""

    where = "array"
    names: tuple[str, ...] | None = None
    left_out: tuple[str, ...] = ()
    sparse = slow = False
    in_memory = True
    dtype: np.dtype[np.floating] = np.dtype(np.float64)

    def __init__(self, blocks: Sequence[Block], height: int) -> None:
        self.blocks, self.block_rows = blocks, height
        self.n_rows, self.n_columns = sum(block.n_rows for block in blocks), blocks[0].n_columns

    def pieces(self, first: int = 0, last: int | None = None) -> Iterator[Piece]:
        """The blocks."""
        return map(Loaded, self.blocks[first:last])

    def fingerprint(self) -> str:
        """Rows in hand have none: what is found from them is tied to the source that they come from."""
        return ""


def cut(block: Block, height: int) -> list[Block]:
    """A block as several of at most `height` rows."""
    return [block.take(slice(at, at + height)) for at in range(0, block.n_rows, height)]
