"""Blocks of data in memory, kept between passes: views, so that nothing is loaded, converted or checked twice."""

from __future__ import annotations

from collections.abc import Iterator

from foldwise.data.block import Block, DenseBlock
from foldwise.data.source import Derived, Piece, Source, like


class CachedSource(Derived):
    """A source whose blocks are kept once they were loaded."""

    slow = False
    in_memory = True

    def __init__(self, source: Source) -> None:
        self._source = source
        self._pieces: list[Piece] | None = None
        self.n_rows = source.n_rows
        super().__init__(like(source))

    def pieces(self, first: int = 0, last: int | None = None) -> Iterator[Piece]:
        """The blocks to load, or those at hand."""
        if self._pieces is None:
            self._pieces = [_Kept(piece) for piece in self._source.pieces()]
        return iter(self._pieces if first == 0 and last is None else self._pieces[first:last])

    def count(self, most: int | None = None) -> int:
        """How many rows there are; a source that does not know is read for it, and stays in memory."""
        if self.n_rows is None:
            self.n_rows = sum(piece.load().n_rows for piece in self.pieces())
        return self.n_rows

    def joined(self) -> list[DenseBlock]:
        """Runs of dense blocks that are adjacent in memory, each as one block."""
        runs: list[list[DenseBlock]] = []
        for piece in self.pieces():
            block = piece.load()
            assert isinstance(block, DenseBlock)
            if runs and runs[-1][-1].is_followed_by(block):
                runs[-1].append(block)
            else:
                runs.append([block])
        return [run[0].longer(sum(block.n_rows for block in run)) for run in runs]

    def fingerprint(self) -> str:
        """That of the source behind."""
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
    """The source, with blocks kept if they are in memory anyway."""
    return CachedSource(source) if source.in_memory and not isinstance(source, CachedSource) else source
