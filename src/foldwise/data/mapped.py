"""A source whose blocks are changed one by one as they are loaded."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from foldwise.data.block import Block, Floats
from foldwise.data.cache import cached
from foldwise.data.source import Piece, Source, View
from foldwise.errors import DataError


class MappedSource(View):
    """The same rows, each block passed through `change`, a picklable function that keeps their number and order.

    `about` holds what else is different: the columns (`n_columns`, `names`), or what they stand for (`indicators`).
    """

    def __init__(
        self,
        source: Source,
        change: Callable[[Block], Block],
        dtype: np.dtype[np.floating] | None = None,
        **about: Any,
    ) -> None:
        super().__init__(source, dtype=source.dtype if dtype is None else dtype, **about)
        self.change, self.about = change, about

    def over(self, source: Source) -> MappedSource:
        """The same change of other rows."""
        return MappedSource(source, self.change, self.dtype, **self.about)

    @property
    def slow(self) -> bool:
        """Whether decoding costs much more than reading."""
        return self.source.slow

    def pieces(self, first: int = 0, last: int | None = None) -> Iterator[Piece]:
        """The changed blocks to load."""
        for piece in self.source.pieces(first, last):
            yield _Changed(piece, self.change)


class _Changed:
    __slots__ = ("change", "piece")

    def __init__(self, piece: Piece, change: Callable[[Block], Block]) -> None:
        self.piece, self.change = piece, change

    def load(self) -> Block:
        return self.change(self.piece.load())


# ---------------------------------------------------------------- changes


@dataclass(frozen=True)
class Widen:
    """Values in a dtype that holds them exactly."""

    dtype: np.dtype[np.floating]

    def __call__(self, block: Block) -> Block:
        """The block in that dtype."""
        return block.astype(self.dtype)


@dataclass(frozen=True)
class Standardise:
    """Rows as (x - mean) / scale.

    Distances do not depend on the mean; taken away before the division, it keeps the digits of data with a large offset.
    Sparse rows would be filled in by it, and angles changed: for these it is None.
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
    """Rows divided by their lengths; a row of zeros has no direction and is refused, unless its weight is 0."""

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
                    "a row of zeros has no direction, so no cosine with anything",
                    where=self.where,
                    row=block.start + int(np.argmax(zero)),
                    advice="Leave such rows out (where=...), give them weight 0, or use metric='euclidean'",
                )
        return changed


@dataclass(frozen=True)
class TakeColumns:
    """Some columns of a block."""

    columns: NDArray[np.intp]

    def __call__(self, block: Block) -> Block:
        """The block with only these."""
        rows = block.unchecked[:, self.columns]
        return block.with_rows(rows if block.sparse else np.ascontiguousarray(rows))


def widened(source: Source, dtype: np.dtype[np.floating]) -> Source:
    """The source with its values in `dtype`, which must hold them exactly.

    The block grid stays that of the narrower dtype: good for what is worked out row by row.
    """
    return source if source.dtype == dtype else MappedSource(source, Widen(dtype), dtype)


def standardised(source: Source, mean: Floats | None, scale: Floats | None) -> Source:
    """The source with rows as (x - mean) / scale; as it is without a scale."""
    return source if scale is None else MappedSource(source, Standardise(mean, scale), indicators=None)


def multiplied(source: Source, factor: Floats) -> Source:
    """The source with each column times a power of two."""
    if (factor == 1.0).all():
        return source
    return MappedSource(source, Multiply(factor.astype(source.dtype)), indicators=None)


def only_columns(source: Source, columns: NDArray[np.intp] | None) -> Source:
    """The source with some of its columns."""
    if columns is None:
        return source
    about: dict[str, Any] = {
        "n_columns": len(columns),
        "names": None,
        "positions": columns.tolist(),
        "indicators": None,
        "image_shape": None,
    }
    return cached(MappedSource(source, TakeColumns(columns), **about, recipe=None))
