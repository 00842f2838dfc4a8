"""A range of blocks of a source, for another machine: in-memory rows are sent along, files are opened there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from foldwise.data.block import Block, DenseBlock
from foldwise.data.mapped import MappedSource
from foldwise.data.source import Loaded, Piece, like
from foldwise.data.spool import SpooledSource


class LoadedBlocks:
    """Blocks in memory, numbered as in the source they come from."""

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
        """The requested blocks."""
        stop = len(self._pieces) if last is None else last - self._first
        return iter(self._pieces[max(first - self._first, 0) : stop])

    def fingerprint(self) -> str:
        """Empty: the fingerprint of the original source is used."""
        return "blocks"


@dataclass(frozen=True)
class Shard:
    """Blocks `first` to `last` - 1 of a source, and the transformations to apply to them, in order."""

    source: Any
    first: int
    last: int
    changes: tuple[Any, ...] = ()

    def open(self, chunks: Sequence[Any] = ()) -> Any:
        """The source on the worker that received the shard, with chunks of a collection if it needs them.

        Data that are slow to decode are kept in a scratch file there.
        """
        source = self.source
        if hasattr(source, "with_chunks"):
            source = source.with_chunks(chunks, self.first, self.last)
        elif source.slow and not source.sparse:
            source = SpooledSource(source, part=(self.first, self.last))
        for change, dtype in self.changes:
            source = MappedSource(source, change, dtype)
        return source


def shard(source: Any, first: int, last: int, n_rows: int) -> tuple[Shard, list[Any]]:
    """A picklable range of blocks, and the chunks of a collection that must be sent with it, still to be computed."""
    changes: list[Any] = []
    while isinstance(source, MappedSource) and not source.in_memory:
        changes.insert(0, (source.change, source.dtype))
        source = source.source
    if hasattr(source, "collection_shard"):
        chunks, source = source.collection_shard(first, last)
        return Shard(source, first, last, tuple(changes)), chunks
    if source.in_memory:
        blocks = [_checked(piece.load()) for piece in source.pieces(first, last)]
        source = LoadedBlocks(blocks, first, like(source), n_rows)
    return Shard(source, first, last, tuple(changes)), []


def _checked(block: Block) -> Block:
    """The block, checked, and without its check, which might keep more than the block alive."""
    return DenseBlock(block.dense(), block.start, block.weights) if isinstance(block, DenseBlock) else block
