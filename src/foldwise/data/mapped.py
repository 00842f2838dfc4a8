"""A source whose blocks are changed one by one as they are loaded."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from foldwise.data.block import Block, DenseBlock, SparseBlock
from foldwise.data.source import Piece, Source


class MappedSource:
    """The same rows, each block passed through `change`, which keeps their number and order."""

    def __init__(
        self, source: Source, change: Callable[[Block], Block], dtype: np.dtype[np.floating] | None = None
    ) -> None:
        self.source, self._change = source, change
        self.where, self.names, self.left_out = source.where, source.names, source.left_out
        self.n_columns, self.sparse = source.n_columns, source.sparse
        self.dtype = source.dtype if dtype is None else dtype

    @property
    def n_rows(self) -> int | None:
        """How many rows there are, if that is known."""
        return self.source.n_rows

    @property
    def slow(self) -> bool:
        """Whether decoding costs much more than reading."""
        return self.source.slow

    @property
    def spooled_bytes(self) -> int:
        """How much a scratch file behind holds."""
        return int(getattr(self.source, "spooled_bytes", 0))

    def pieces(self) -> Iterator[Piece]:
        """The changed blocks to load."""
        for piece in self.source.pieces():
            yield lambda piece=piece: self._change(piece())  # type: ignore[misc]

    def fingerprint(self) -> str:
        """That of the source behind."""
        return self.source.fingerprint()


def widened(source: Source, dtype: np.dtype[np.floating]) -> Source:
    """The source with its values in `dtype`, which must hold them exactly.

    The block grid stays that of the narrower dtype: good for what is worked out row by row.
    """
    if source.dtype == dtype:
        return source

    def change(block: Block) -> Block:
        if isinstance(block, SparseBlock):
            return SparseBlock(block.matrix.astype(dtype), block.start, block.weights)
        return DenseBlock(block.dense().astype(dtype), block.start, block.weights)

    return MappedSource(source, change, dtype)
