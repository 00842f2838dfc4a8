"""The interface of all data sources: a `Source` yields the same blocks, in order, in every pass."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol, runtime_checkable

import numpy as np

from foldwise.data import block_grid
from foldwise.data.block import Block


class Piece(Protocol):
    """A block that is not yet loaded. Engines load pieces in several threads at once, so reading and decoding run in parallel.

    A block is valid until the task that receives it returns; the source may reuse its memory afterwards.
    """

    def load(self) -> Block:
        """The block."""


@runtime_checkable
class Source(Protocol):
    """Rows that can be read block by block, any number of times."""

    @property
    def where(self) -> str:
        """How messages refer to this source: `array`, `data frame`, or a file name."""

    @property
    def names(self) -> tuple[str, ...] | None:
        """The column names, or None if the columns have no names."""

    @property
    def n_columns(self) -> int:
        """The number of columns."""

    @property
    def n_rows(self) -> int | None:
        """The number of rows; None if it is known only after a complete pass."""

    @property
    def dtype(self) -> np.dtype[np.floating]:
        """The blocks' dtype: float32 if all columns are float32, otherwise float64."""

    @property
    def sparse(self) -> bool:
        """Whether blocks are sparse."""

    @property
    def slow(self) -> bool:
        """Whether decoding is much slower than reading, so that a scratch file pays off over several passes."""

    @property
    def in_memory(self) -> bool:
        """Whether the rows are in this process, so that blocks can be kept and other machines must be sent the rows.

        Other sources can be pickled, and read their data on whichever machine they are unpickled.
        """

    @property
    def left_out(self) -> tuple[str, ...]:
        """Non-numeric columns that were left out."""

    def pieces(self, first: int = 0, last: int | None = None) -> Iterator[Piece]:
        """The blocks to load, on the grid of `foldwise.data.block_grid`, in row order: numbers `first` to `last` - 1."""

    def fingerprint(self) -> str:
        """A string, cheap to compute, that changes when the data do; it ties a checkpoint to its data."""


class RowRange:
    """A piece of a source that can load any range of rows."""

    __slots__ = ("source", "start", "stop")

    def __init__(self, source: Any, start: int, stop: int) -> None:
        self.source, self.start, self.stop = source, start, stop

    def load(self) -> Block:
        """Those rows."""
        block: Block = self.source.load(self.start, self.stop)
        return block


class Loaded:
    """A piece whose block is already loaded."""

    __slots__ = ("block",)

    def __init__(self, block: Block) -> None:
        self.block = block

    def load(self) -> Block:
        """That block."""
        return self.block


def row_ranges(source: Any, first: int, last: int | None) -> Iterator[Piece]:
    """The pieces of a source with a known number of rows and a method `load(start, stop)`."""
    rows = block_rows(source)
    stop = source.n_rows if last is None else min(last * rows, source.n_rows)
    for start in range(first * rows, stop, rows):
        yield RowRange(source, start, min(start + rows, source.n_rows))


def n_blocks(source: Source) -> int | None:
    """The number of blocks, if known."""
    return None if source.n_rows is None else -(-source.n_rows // block_rows(source))


def block_rows(source: Source) -> int:
    """The number of rows in a full block of a source: that of the grid, unless recut (`data/recut.py`)."""
    own: int | None = getattr(source, "block_rows", None)
    return own or block_grid.rows_per_block(source.n_columns, source.dtype, sparse=source.sparse)


def like(source: Source, **changes: Any) -> dict[str, Any]:
    """The attributes that a source shares with the source it wraps, for its `__dict__`."""
    names = ("where", "names", "left_out", "n_columns", "dtype", "sparse")
    fill = getattr(source, "fill", 1.0)  # the fraction of values stored
    return {**{name: getattr(source, name) for name in names}, "fill": fill, **changes}
