"""What every place that rows can live in has in common: a `Source` gives the same blocks, in order, as often as asked."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Protocol, TypeAlias, runtime_checkable

import numpy as np

from foldwise.data.block import Block

# A piece is a block not yet loaded. The source hands pieces out in row order; the engine calls them, possibly in several
# threads at once, so that reading, decoding and transposing run in parallel too. A block is valid until the statistic
# that was given it returns: a source may reuse its memory afterwards.
Piece: TypeAlias = Callable[[], Block]


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
    def left_out(self) -> tuple[str, ...]:
        """Columns that are not numbers and were not asked for."""

    def pieces(self) -> Iterator[Piece]:
        """The blocks to load, cut by `foldwise.data.block_grid`, in row order."""

    def fingerprint(self) -> str:
        """A text that changes when the data do, cheap to make: it ties a checkpoint to its data."""
