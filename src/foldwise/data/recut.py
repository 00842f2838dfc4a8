"""Rows in blocks of a height other than the grid's, for work that grows faster than the number of rows in a block."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from foldwise.data.block import Block, join
from foldwise.data.source import Loaded, Piece, Source, block_rows, like


class RecutSource:
    """The rows of another source in blocks of `height` rows, assembled sequentially in the calling thread."""

    slow = True  # a block is found only by reading those before it
    where: str
    names: tuple[str, ...] | None
    left_out: tuple[str, ...]
    n_columns: int
    sparse: bool
    dtype: np.dtype[np.floating]

    def __init__(self, source: Source, height: int) -> None:
        self.source, self.block_rows = source, height
        self.__dict__.update(like(source))

    @property
    def n_rows(self) -> int | None:
        """The number of rows, if known."""
        return self.source.n_rows

    @property
    def in_memory(self) -> bool:
        """Whether the rows are in this process."""
        return self.source.in_memory

    @property
    def spooled_bytes(self) -> int:
        """The size of the underlying scratch file, if any."""
        return int(getattr(self.source, "spooled_bytes", 0))

    def pieces(self, first: int = 0, last: int | None = None) -> Iterator[Piece]:
        """The blocks; their rows are checked as they are read."""
        start, step = first * self.block_rows, block_rows(self.source)
        stop = None if last is None else last * self.block_rows
        waiting: list[Block] = []
        for piece in self.source.pieces(start // step, None if stop is None else -(-stop // step)):
            block = piece.load()
            block.rows  # noqa: B018  (raises for values that are not finite)
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
        """A copy of the rows: the source may reuse the memory of a block for the next one."""
        return part if self.in_memory else part.take(np.arange(part.n_rows))

    def fingerprint(self) -> str:
        """The fingerprint of the underlying source."""
        return self.source.fingerprint()


class BlockList:
    """Blocks in memory as a source; all but the last have the same height."""

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
        """Empty: results are tied to the fingerprint of the source that the rows come from."""
        return ""


def cut(block: Block, height: int) -> list[Block]:
    """A block cut into blocks of at most `height` rows."""
    return [block.take(slice(at, at + height)) for at in range(0, block.n_rows, height)]
