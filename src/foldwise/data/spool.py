"""A scratch file for sources that are slow to decode: the first pass writes the blocks, later passes read them."""

from __future__ import annotations

import os
import tempfile
import threading
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from foldwise.data.block import Block, DenseBlock
from foldwise.data.environment import scratch_folder, spool_limit
from foldwise.data.mapped import MappedSource
from foldwise.data.npy import Descriptor
from foldwise.data.source import Derived, Piece, RowRange, Source, block_rows, count_rows, like
from foldwise.errors import DataError


@contextmanager
def spooled(source: Source, limit: int | None = None) -> Iterator[Source]:
    """The same source, decoded only once if it is slow.

    The scratch file is unlinked, so it disappears with the process, however that ends. It may take `limit` bytes
    (default: FOLDWISE_SPOOL_LIMIT, or half of the free disk space); if that is not enough, every pass decodes.
    """
    if not source.slow or source.sparse or isinstance(source, SpooledSource):  # a second spool would only copy
        yield source
        return
    if type(source) is MappedSource and source.n_columns > source.source.n_columns:
        with spooled(
            source.source, limit
        ) as narrow:  # indicators are quickly made again of codes, and need not be written
            yield source.over(narrow)
        return
    spool = SpooledSource(source, limit)
    try:
        yield spool
    finally:
        spool.close()


class SpooledSource(Derived):
    """A slow source with a scratch file behind it."""

    in_memory = False

    def __init__(self, source: Source, limit: int | None = None, *, part: tuple[int, int | None] = (0, None)) -> None:
        """`part` is the range of blocks that passes will read: the first and one past the last."""
        self.source, self._limit, self._part = source, spool_limit() if limit is None else limit, part
        self._spool: _Spool | None = None
        self._off = False
        # A query need not give the same rows twice; files that change are noticed by those who read them.
        self._seen = None if bool(getattr(source, "divisible", True)) else _Seen(source)
        super().__init__(like(source))

    def _complete(self) -> _Spool | None:
        return self._spool if self._spool is not None and self._spool.complete else None

    @property
    def n_rows(self) -> int | None:
        """The number of rows, known after the first pass at the latest."""
        spool = self._complete()
        return self.source.n_rows if spool is None else spool.rows

    @property
    def slow(self) -> bool:
        """Whether the next pass has to decode."""
        return self._complete() is None

    @property
    def spooled_bytes(self) -> int:
        """The size of the scratch file; 0 if it is not in use."""
        spool = self._complete()
        return 0 if spool is None else spool.bytes

    def fingerprint(self) -> str:
        """The fingerprint of the underlying source."""
        return self.source.fingerprint()

    @property
    def divisible(self) -> bool:
        """Whether any range of blocks can be read on its own."""
        return self._complete() is not None or bool(getattr(self.source, "divisible", True))

    def close(self) -> None:
        """Release the scratch file; later passes decode again."""
        self._spool, self._off = None, True

    def count(self, most: int | None = None) -> int:
        """The number of rows, counted by the underlying source."""
        return count_rows(self.source, most)

    def pieces(self, first: int = 0, last: int | None = None) -> Iterator[Piece]:
        """The blocks to load, from the scratch file once it is complete, otherwise from the source."""
        spool = self._complete()
        if spool is not None:
            yield from spool.pieces(first, last)
            return
        whole = (first, last) == self._part
        if self._off or not whole or (self._spool is not None and self._spool.full):
            if whole:
                self._off, self._spool = True, None
            count = 0
            for piece in self.source.pieces(first, last):
                count += 1
                yield piece if self._seen is None else _Compared(piece, self._seen)
            if whole and self._seen is not None:
                self._seen.end(count)
            return
        self._spool = spool = _Spool(self.source, self._limit)  # an unfinished pass is discarded
        for piece in self.source.pieces(first, last):
            spool.given += 1
            yield _Keeping(piece if self._seen is None else _Compared(piece, self._seen), spool)
        if self._seen is not None:
            self._seen.end(spool.given)
        spool.ended = True


class _Seen:
    """Checksums of the blocks that earlier passes read."""

    def __init__(self, source: Source) -> None:
        self._where, self._rows = source.where, block_rows(source)
        self._sums: dict[int, tuple[int, ...]] = {}
        self._blocks: int | None = None

    def check(self, block: Block) -> None:
        """Remember a block, or refuse it if it is not what an earlier pass read in its place."""
        sums = [zlib.crc32(np.ascontiguousarray(part).reshape(-1).view(np.uint8).data) for part in _parts(block)]
        found = block.n_rows, *sums
        if self._sums.setdefault(block.start, found) != found:
            self._refuse(block.start)

    def _refuse(self, row: int) -> NoReturn:
        raise DataError(
            f"rows from {row} on are not those of an earlier pass: the query gives other rows, or another order, each time",
            where=self._where,
            advice="Give it an ORDER BY that settles the order and take random() out, or write its result to a file first",
        )

    def end(self, blocks: int) -> None:
        """Remember how many blocks a whole pass has, or refuse another number."""
        if self._blocks is None:
            self._blocks = blocks
        elif self._blocks != blocks:
            self._refuse(min(self._blocks, blocks) * self._rows)


def _parts(block: Block) -> list[NDArray[Any]]:
    return [block.dense()] if block.weights is None else [block.dense(), block.weights]


class _Compared:
    """A piece whose block must be the same in every pass."""

    __slots__ = ("piece", "seen")

    def __init__(self, piece: Piece, seen: _Seen) -> None:
        self.piece, self.seen = piece, seen

    def load(self) -> Block:
        """The block, which was compared with what is known of it."""
        block = self.piece.load()
        self.seen.check(block)
        return block


class _Keeping:
    """A piece that also writes its block to the scratch file."""

    __slots__ = ("piece", "spool")

    def __init__(self, piece: Piece, spool: _Spool) -> None:
        self.piece, self.spool = piece, spool

    def load(self) -> Block:
        """The block, which is also written to the scratch file."""
        block = self.piece.load()
        self.spool.keep(block)
        return block


class _Spool:
    """The scratch file of one pass. Several threads write blocks in any order, each at its own offset."""

    def __init__(self, source: Source, limit: int) -> None:
        with tempfile.TemporaryFile(dir=scratch_folder()) as file:  # unlinked at once; the duplicate keeps it alive
            self._file = Descriptor(os.dup(file.fileno()))
        self._where, self._dtype, self._n_columns, self._limit = (
            source.where,
            source.dtype,
            source.n_columns,
            limit,
        )
        self._block_rows = block_rows(source)
        self._lock = threading.Lock()
        self.given = self._kept = 0
        self._weighted = False
        self.ended = self.full = False
        self.rows = self.bytes = 0

    @property
    def complete(self) -> bool:
        """Whether every block of the pass is in the file."""
        return self.ended and not self.full and self._kept == self.given

    def _place(self, start: int) -> int:
        # The weights, one float64 per row, follow the values of their block; space is always reserved for them.
        return start * (self._n_columns * self._dtype.itemsize + 8)

    def keep(self, block: Block) -> None:
        """Write a block at its offset."""
        assert isinstance(block, DenseBlock)
        parts = _parts(block)
        size = sum(part.nbytes for part in parts)
        with self._lock:
            if self.full or self.bytes + size > self._limit:
                self.full = True
                return
            self.bytes += size
        offset = self._place(block.start)
        try:
            for part in parts:
                left = np.ascontiguousarray(part).reshape(-1).view(np.uint8).data
                while left:
                    count = os.pwrite(self._file.number, left, offset)
                    left, offset = left[count:], offset + count
        except OSError:  # the disk is full: decode again instead
            with self._lock:
                self.full = True
            return
        with self._lock:
            self._kept += 1
            self._weighted = block.weights is not None
            self.rows = max(self.rows, block.start + block.n_rows)

    def pieces(self, first: int, last: int | None) -> Iterator[Piece]:
        """The blocks, read back."""
        stop = self.rows if last is None else min(last * self._block_rows, self.rows)
        for start in range(first * self._block_rows, stop, self._block_rows):
            yield RowRange(self, start, min(start + self._block_rows, self.rows))

    def load(self, start: int, stop: int) -> DenseBlock:
        """The block of rows from `start` to `stop` - 1."""
        values = np.empty((stop - start, self._n_columns), dtype=self._dtype)
        self._file.read_into(values, self._place(start), self._where)
        if not self._weighted:
            return DenseBlock(values, start)
        weights = np.empty(stop - start)
        self._file.read_into(weights, self._place(start) + values.nbytes, self._where)
        return DenseBlock(values, start, weights)
