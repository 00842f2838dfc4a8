"""What every place that rows can live in has in common: a `Source` gives the same blocks, in order, as often as asked."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol, runtime_checkable

import numpy as np

from foldwise.data import block_grid, check
from foldwise.data.block import Block


class Piece(Protocol):
    """A block that is not loaded yet. Engines load pieces in several threads at once, so reading and decoding run in parallel.

    A block is valid until the task that was given it returns: a source may reuse its memory afterwards.
    """

    def load(self) -> Block:
        """The block."""


@runtime_checkable
class Source(Protocol):
    """Rows that can be passed over, block by block, any number of times."""

    @property
    def where(self) -> str:
        """What to call this source in messages: `array`, `data frame`, or a file's name."""

    @property
    def names(self) -> tuple[str, ...] | None:
        """The columns' names, or None if they have none."""

    @property
    def n_columns(self) -> int:
        """How many columns each block has."""

    @property
    def n_rows(self) -> int | None:
        """How many rows there are; None if that is known only after a whole pass."""

    @property
    def dtype(self) -> np.dtype[np.floating]:
        """The blocks' dtype: float32 if all the columns are, else float64."""

    @property
    def sparse(self) -> bool:
        """Whether blocks are sparse."""

    @property
    def slow(self) -> bool:
        """Whether decoding costs much more than reading, so that several passes are worth a scratch file."""

    @property
    def in_memory(self) -> bool:
        """Whether the rows are in this process: then blocks can be kept, and another machine must be sent them.

        Other sources can be pickled, and read what they describe wherever they are.
        """

    @property
    def left_out(self) -> tuple[str, ...]:
        """Columns that are not numbers and were not asked for."""

    def pieces(self, first: int = 0, last: int | None = None) -> Iterator[Piece]:
        """The blocks to load, cut by `foldwise.data.block_grid`, in row order: those numbered from `first` to `last` - 1."""

    def fingerprint(self) -> str:
        """A text that changes when the data do, cheap to make: it ties a checkpoint to its data."""


class RowRange:
    """The piece of a source that can load any range of rows: it remembers which."""

    __slots__ = ("source", "start", "stop")

    def __init__(self, source: Any, start: int, stop: int) -> None:
        self.source, self.start, self.stop = source, start, stop

    def load(self) -> Block:
        """Those rows."""
        block: Block = self.source.load(self.start, self.stop)
        return block


class Loaded:
    """The piece whose block is in hand."""

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
    """How many blocks there are, if that is known."""
    return None if source.n_rows is None else -(-source.n_rows // block_rows(source))


def block_rows(source: Source) -> int:
    """How many rows a full block of a source has: as the grid says, unless it is cut otherwise (`data/recut.py`)."""
    own: int | None = getattr(source, "block_rows", None)
    return own or block_grid.rows_per_block(source.n_columns, source.dtype, sparse=source.sparse)


def like(source: Source, **changes: Any) -> dict[str, Any]:
    """The attributes that a source over another one shares with it."""
    names = ("where", "names", "left_out", "n_columns", "dtype", "sparse")
    fill = getattr(source, "fill", 1.0)  # the share of values that is stored
    about = {name: getattr(source, name) for name in names}
    about["positions"] = getattr(source, "positions", None)
    about["indicators"] = getattr(source, "indicators", None)  # which columns stand for categories (prepare/encode.py)
    about["recipe"] = getattr(source, "recipe", None)  # what became of the columns of a table (prepare/recipe.py)
    if changes.get("n_columns", source.n_columns) == source.n_columns:
        about["image_shape"] = getattr(
            source, "image_shape", None
        )  # of rows that are images: height, width[, channels]
    return {**about, "fill": fill, "block_rows": block_rows(source), **changes}


class Derived:
    """What sources with the columns of another one have in common; `about` is what `like` gives."""

    where: str
    names: tuple[str, ...] | None
    left_out: tuple[str, ...]
    n_columns: int
    sparse: bool
    dtype: np.dtype[np.floating]
    block_rows: int  # that of the other source, even where a wider dtype would have another

    def __init__(self, about: dict[str, Any]) -> None:
        self.__dict__.update(about)


class View(Derived):
    """A source over the rows of another one, as many and in the same order."""

    def __init__(self, source: Source, **changes: Any) -> None:
        super().__init__(like(source, **changes))
        self.source = source

    @property
    def n_rows(self) -> int | None:
        """How many rows there are, if that is known."""
        return self.source.n_rows

    @property
    def in_memory(self) -> bool:
        """Whether the rows are in this process."""
        return self.source.in_memory

    @property
    def spooled_bytes(self) -> int:
        """How much a scratch file behind holds."""
        return int(getattr(self.source, "spooled_bytes", 0))

    @property
    def divisible(self) -> bool:
        """Whether any range of blocks can be read on its own."""
        return bool(getattr(self.source, "divisible", True))

    def count(self, most: int | None = None) -> int:
        """How many rows there are, by a pass if need be; `most` if there are at least so many."""
        return count_rows(self.source, most)

    def fingerprint(self) -> str:
        """That of the source behind."""
        return self.source.fingerprint()


def column_label(source: Any, column: int) -> str | int:
    """How messages refer to a column: by its name, or by its position in the data as given."""
    return check.label(column, source.names, getattr(source, "positions", None))


def count_rows(source: Any, most: int | None = None) -> int:
    """How many rows a source has; one that does not know counts them, and need not go on after `most`."""
    return int(source.count(most) if source.n_rows is None else source.n_rows)
