"""Blocks of data in memory, kept between passes: views, so that nothing is loaded, converted or checked twice."""

from __future__ import annotations

from collections.abc import Iterator

from foldwise.data.arrays import ArraySource
from foldwise.data.block import Block, DenseBlock, SparseBlock
from foldwise.data.frames import FrameSource
from foldwise.data.mapped import MappedSource
from foldwise.data.source import Piece, Source
from foldwise.data.sparse import SparseSource


class CachedSource:
    """A source whose blocks are kept once they were loaded."""

    slow = False

    def __init__(self, source: Source) -> None:
        self._source = source
        self._blocks: dict[int, Block] = {}
        self._all: list[Piece] | None = None
        self._parts: tuple[int, list[Piece]] | None = None
        self.where, self.names, self.left_out = source.where, source.names, source.left_out
        self.n_columns, self.n_rows, self.dtype, self.sparse = (
            source.n_columns,
            source.n_rows,
            source.dtype,
            source.sparse,
        )

    def pieces(self) -> Iterator[Piece]:
        """The blocks to load, or those at hand."""
        if self._all is None:
            self._all = [
                lambda number=number, piece=piece: self._load(number, piece)  # type: ignore[misc]
                for number, piece in enumerate(self._source.pieces())
            ]
        return iter(self._all)

    def _load(self, number: int, piece: Piece) -> Block:
        block = self._blocks.get(number)
        if block is None:
            block = self._blocks[number] = piece()
        return block

    def parts(self, rows: int) -> list[Piece]:
        """The blocks cut smaller, for work that may be cut anywhere; kept, like the blocks."""
        if self._parts is None or self._parts[0] != rows:
            cut = [part for piece in self.pieces() for part in _slices(piece(), rows)]
            self._parts = rows, [lambda part=part: part for part in cut]  # type: ignore[misc]
        return self._parts[1]

    def fingerprint(self) -> str:
        """That of the source behind."""
        return self._source.fingerprint()


def _slices(block: Block, rows: int) -> Iterator[Block]:
    for first in range(0, block.n_rows, rows):
        some = slice(first, first + rows)
        weights = None if block.weights is None else block.weights[some]
        if isinstance(block, SparseBlock):
            yield SparseBlock(block.matrix[some], block.start + first, weights)
        else:
            yield DenseBlock(block.values[some], block.start + first, weights)


def cached(source: Source) -> Source:
    """The source, with blocks kept if they are in memory anyway."""
    inner = source
    while isinstance(inner, MappedSource):
        inner = inner.source
    return CachedSource(source) if isinstance(inner, (ArraySource, SparseSource, FrameSource)) else source
