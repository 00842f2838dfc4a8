"""Some blocks of a source as they travel to another machine: rows of this process go along, files are opened there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from foldwise.data.block import Block, DenseBlock
from foldwise.data.mapped import MappedSource
from foldwise.data.source import Derived, Loaded, Piece, like
from foldwise.data.spool import SpooledSource


class LoadedBlocks(Derived):
    """Blocks in memory, numbered as in the source that they come from."""

    slow = False
    in_memory = True

    def __init__(self, blocks: Sequence[Block], first: int, about: dict[str, Any], n_rows: int) -> None:
        self._pieces, self._first, self.n_rows = [Loaded(block) for block in blocks], first, n_rows
        super().__init__(about)

    def pieces(self, first: int = 0, last: int | None = None) -> Iterator[Piece]:
        """Those of the blocks that are asked for."""
        stop = len(self._pieces) if last is None else last - self._first
        return iter(self._pieces[max(first - self._first, 0) : stop])

    def fingerprint(self) -> str:
        """Known where they come from."""
        return "blocks"


@dataclass(frozen=True)
class Shard:
    """Blocks `first` to `last` - 1 of a source, and the changes through which they are seen, in order."""

    source: Any
    first: int
    last: int
    changes: tuple[Any, ...] = ()

    def open(self, chunks: Sequence[Any] = ()) -> Any:
        """The source, where the shard has arrived, with chunks of a collection if it needs any.

        What is slow to decode is kept in a scratch file there.
        """
        source = self.source
        if hasattr(source, "with_chunks"):
            source = source.with_chunks(chunks, self.first, self.last)
        elif source.slow and not source.sparse:
            source = SpooledSource(source, part=(self.first, self.last))
        for change, dtype, about in self.changes:
            source = MappedSource(source, change, dtype, **about)
        return source


def shard(source: Any, first: int, last: int, n_rows: int) -> tuple[Shard, list[Any]]:
    """Blocks of a source, ready to travel, and chunks of a collection that must come along, still to be computed."""
    changes: list[Any] = []
    while isinstance(source, (MappedSource, SpooledSource)) and not source.in_memory:
        if isinstance(source, MappedSource):
            changes.insert(0, (source.change, source.dtype, source.about))
        source = source.source
    if hasattr(source, "collection_shard"):
        chunks, source = source.collection_shard(first, last)
        return Shard(source, first, last, tuple(changes)), chunks
    if source.in_memory:
        blocks = [_checked(piece.load()) for piece in source.pieces(first, last)]
        source = LoadedBlocks(blocks, first, like(source), n_rows)
    return Shard(source, first, last, tuple(changes)), []


def _checked(block: Block) -> Block:
    """The block without its check, which is done: it may hold on to more than the block."""
    return DenseBlock(block.dense(), block.start, block.weights) if isinstance(block, DenseBlock) else block
