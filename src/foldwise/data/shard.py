"""Some blocks of a source as they travel to another machine: rows of this process go along, files are opened there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from foldwise.data.block import Block, DenseBlock
from foldwise.data.mapped import MappedSource
from foldwise.data.source import Loaded, Piece, Source, like
from foldwise.data.spool import SpooledSource


class LoadedBlocks:
    """Blocks in memory, numbered as in the source that they come from."""

    slow = False
    in_memory = True
    where: str
    names: tuple[str, ...] | None
    left_out: tuple[str, ...]
    n_columns: int
    sparse: bool
    dtype: np.dtype[np.floating]

    def __init__(self, blocks: Sequence[Block], first: int, about: dict[str, Any], n_rows: int) -> None:
        self._pieces, self._first, self.n_rows = [Loaded(block) for block in blocks], first, n_rows
        self.__dict__.update(about)

    def pieces(self, first: int = 0, last: int | None = None) -> Iterator[Piece]:
        """Those of the blocks that are asked for."""
        stop = len(self._pieces) if last is None else last - self._first
        return iter(self._pieces[max(first - self._first, 0) : stop])

    def fingerprint(self) -> str:
        """Known where they come from."""
        return "blocks"


@dataclass(frozen=True)
class Shard:
    """Blocks `first` to `last` - 1 of a source of that many rows."""

    source: Any
    first: int
    last: int
    n_rows: int

    def open(self) -> Any:
        """The source, where the shard has arrived; what is slow to decode is kept in a scratch file there."""
        source = self.source
        if source.slow and not source.sparse:
            return SpooledSource(source, part=(self.first, self.last))
        return source


def shard(source: Source, first: int, last: int, n_rows: int) -> Shard:
    """Blocks of a source, ready to travel."""
    if isinstance(source, MappedSource) and not source.in_memory:
        inner = shard(source.source, first, last, n_rows)
        return Shard(MappedSource(inner.source, source.change, source.dtype), first, last, n_rows)
    if not source.in_memory:
        return Shard(source, first, last, n_rows)
    blocks = [_checked(piece.load()) for piece in source.pieces(first, last)]
    return Shard(LoadedBlocks(blocks, first, like(source), n_rows), first, last, n_rows)


def _checked(block: Block) -> Block:
    """The block without its check, which is done: it may hold on to more than the block."""
    return DenseBlock(block.dense(), block.start, block.weights) if isinstance(block, DenseBlock) else block
