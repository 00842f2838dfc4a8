"""A source whose blocks are transformed one by one as they are loaded."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from foldwise.data.block import Block, Floats
from foldwise.data.source import Piece, Source, like
from foldwise.errors import DataError


class MappedSource:
    """The same rows, each block passed through `change`, a picklable function that preserves their number and order."""

    where: str
    names: tuple[str, ...] | None
    left_out: tuple[str, ...]
    n_columns: int
    sparse: bool
    dtype: np.dtype[np.floating]

    def __init__(
        self, source: Source, change: Callable[[Block], Block], dtype: np.dtype[np.floating] | None = None
    ) -> None:
        self.source, self.change = source, change
        self.__dict__.update(like(source, dtype=source.dtype if dtype is None else dtype))

    @property
    def n_rows(self) -> int | None:
        """The number of rows, if known."""
        return self.source.n_rows

    @property
    def slow(self) -> bool:
        """Whether decoding is much slower than reading."""
        return self.source.slow

    @property
    def in_memory(self) -> bool:
        """Whether the rows are in this process."""
        return self.source.in_memory

    @property
    def spooled_bytes(self) -> int:
        """The size of the underlying scratch file, if any."""
        return int(getattr(self.source, "spooled_bytes", 0))

    def count(self) -> int:
        """The number of rows, counted in a pass if necessary."""
        return count_rows(self.source)

    def pieces(self, first: int = 0, last: int | None = None) -> Iterator[Piece]:
        """The transformed blocks to load."""
        for piece in self.source.pieces(first, last):
            yield _Changed(piece, self.change)

    def fingerprint(self) -> str:
        """The fingerprint of the underlying source."""
        return self.source.fingerprint()


class _Changed:
    __slots__ = ("change", "piece")

    def __init__(self, piece: Piece, change: Callable[[Block], Block]) -> None:
        self.piece, self.change = piece, change

    def load(self) -> Block:
        return self.change(self.piece.load())


def count_rows(source: Any) -> int:
    """The number of rows of a source, counted if not known."""
    return int(source.count() if source.n_rows is None else source.n_rows)


# ---------------------------------------------------------------- transformations


@dataclass(frozen=True)
class Widen:
    """Values converted to a dtype that represents them exactly."""

    dtype: np.dtype[np.floating]

    def __call__(self, block: Block) -> Block:
        """The block in the wider dtype."""
        return block.astype(self.dtype)


@dataclass(frozen=True)
class Standardise:
    """Rows as (x - mean) / scale.

    Distances do not depend on the mean, but subtracting it before the division keeps the digits of data with a large offset.
    It would make sparse rows dense and change angles; for these it is None.
    """

    mean: Floats | None
    scale: Floats

    def __call__(self, block: Block) -> Block:
        """The block, standardised."""
        return block.standardised(self.mean, self.scale)


@dataclass(frozen=True)
class Multiply:
    """Columns times powers of two."""

    factor: NDArray[Any]

    def __call__(self, block: Block) -> Block:
        """The block, multiplied."""
        with np.errstate(over="ignore"):
            return block.times_number(self.factor)


@dataclass(frozen=True)
class UnitRows:
    """Rows divided by their lengths; a row of zeros has no direction and raises, unless its weight is 0."""

    where: str

    def __call__(self, block: Block) -> Block:
        """The block with rows of length 1."""
        changed, zeros = block.unit_rows()
        if zeros:
            zero = block.zero_rows()
            if block.weights is not None:
                zero &= block.weights > 0
            if zero.any():
                raise DataError(
                    "a row of zeros has no direction, so its cosine with other rows is undefined",
                    where=self.where,
                    row=block.start + int(np.argmax(zero)),
                    advice="Leave such rows out (where=...), give them weight 0, or use metric='euclidean'",
                )
        return changed


def widened(source: Source, dtype: np.dtype[np.floating]) -> Source:
    """The source with its values in `dtype`, which must represent them exactly.

    The block grid remains that of the narrower dtype, so use it only for results computed row by row.
    """
    return source if source.dtype == dtype else MappedSource(source, Widen(dtype), dtype)


def standardised(source: Source, mean: Floats | None, scale: Floats | None) -> Source:
    """The source with rows as (x - mean) / scale, or the source itself if `scale` is None."""
    return source if scale is None else MappedSource(source, Standardise(mean, scale))


def multiplied(source: Source, factor: Floats) -> Source:
    """The source with each column multiplied by a power of two."""
    if (factor == 1.0).all():
        return source
    return MappedSource(source, Multiply(factor.astype(source.dtype)))
