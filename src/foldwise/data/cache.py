"""Blocks of in-memory data, kept between passes so that nothing is converted or checked twice."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from foldwise.data.block import Block
from foldwise.data.source import Piece, Source, like


class CachedSource:
    """A source whose blocks are kept once loaded."""

    slow = False
    in_memory = True
    where: str
    names: tuple[str, ...] | None
    left_out: tuple[str, ...]
    n_columns: int
    sparse: bool
    dtype: np.dtype[np.floating]

    def __init__(self, source: Source) -> None:
        self._source = source
        self._pieces: list[Piece] | None = None
        self._split: tuple[int, list[Block]] | None = None
        self.n_rows = source.n_rows
        self.__dict__.update(like(source))

    def pieces(self, first: int = 0, last: int | None = None) -> Iterator[Piece]:
        """The blocks to load, or those already kept."""
        if self._pieces is None:
            self._pieces = [_Kept(piece) for piece in self._source.pieces()]
        return iter(self._pieces if first == 0 and last is None else self._pieces[first:last])

    def split(self, rows: int) -> list[Block]:
        """The blocks cut into smaller ones, for work that does not depend on the grid; kept like the blocks."""
        if self._split is None or self._split[0] != rows:
            blocks = [piece.load() for piece in self.pieces()]
            small = [block.take(slice(at, at + rows)) for block in blocks for at in range(0, block.n_rows, rows)]
            self._split = rows, small
        return self._split[1]

    def fingerprint(self) -> str:
        """The fingerprint of the underlying source."""
        return self._source.fingerprint()


class _Kept:
    __slots__ = ("_block", "_piece")

    def __init__(self, piece: Piece) -> None:
        self._piece: Piece | None = piece
        self._block: Block | None = None

    def load(self) -> Block:
        if self._block is None:
            assert self._piece is not None
            self._block = self._piece.load()
        return self._block


def cached(source: Source) -> Source:
    """The source, with its blocks kept if they are in memory anyway."""
    return CachedSource(source) if source.in_memory and not isinstance(source, CachedSource) else source
