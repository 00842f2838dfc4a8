"""Missing cells: NaN in dense blocks, allowed where a model deals with them, or filled."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from foldwise.data.block import Block, DenseBlock, Floats
from foldwise.data.mapped import MappedSource
from foldwise.data.source import Source


@dataclass(frozen=True)
class NoInfinity:
    """A check of finite values that lets missing ones pass."""

    check: Callable[[NDArray[Any], int], None]

    def __call__(self, values: NDArray[Any], start: int) -> None:
        """Check the values of a block whose first row is row `start` of the data."""
        missing = np.isnan(values)
        self.check(np.where(missing, values.dtype.type(0), values) if missing.any() else values, start)


@dataclass(frozen=True)
class AllowMissing:
    """Blocks in which NaN stands for a missing cell. What a sparse matrix stores must be finite."""

    def __call__(self, block: Block) -> Block:
        """The block, whose check lets NaN pass."""
        if not isinstance(block, DenseBlock) or block.check is None:
            return block
        return DenseBlock(block.values, block.start, block.weights, NoInfinity(block.check))


@dataclass(frozen=True)
class FillMissing:
    """Missing cells filled with one value per column."""

    values: Floats

    def __call__(self, block: Block) -> Block:
        """The block, filled."""
        rows = block.dense()
        missing = np.isnan(rows)
        if not missing.any():
            return block
        return block.with_rows(np.where(missing, self.values.astype(rows.dtype), rows))


@dataclass(frozen=True)
class DropIncomplete:
    """Rows with a missing cell get weight 0, which means that they are not there; their cells are filled."""

    values: Floats

    def __call__(self, block: Block) -> Block:
        """The block with all its rows, of which only the complete ones count."""
        incomplete = incomplete_rows(block)
        if not incomplete.any():
            return block
        weights = np.ones(block.n_rows) if block.weights is None else block.weights
        filled = FillMissing(self.values)(block).dense()
        return DenseBlock(filled, block.start, np.where(incomplete, 0.0, weights))


@dataclass(frozen=True)
class UnknownIfBlank:
    """A task that gives a number for each row, or NaN for a row of which nothing is observed."""

    task: Callable[[Block], Floats]

    def __call__(self, block: Block) -> Floats:
        """The numbers of the rows of a block."""
        found = self.task(block)
        if block.sparse:
            return found
        blank = np.isnan(block.dense()).all(axis=1)
        return np.where(blank, np.nan, found) if blank.any() else found


def incomplete_rows(block: Block) -> NDArray[np.bool_]:
    """Which rows of a block have a missing cell."""
    return np.zeros(block.n_rows, dtype=bool) if block.sparse else np.asarray(np.isnan(block.dense()).any(axis=1))


def allow_missing(source: Source) -> Source:
    """The source with blocks in which NaN stands for a missing cell; infinities are still refused."""
    if source.sparse:
        return source
    if isinstance(source, MappedSource) and source.n_columns != source.source.n_columns:
        return source.over(
            allow_missing(source.source)
        )  # allowed before columns are added, as whoever keeps rows needs it
    return MappedSource(source, AllowMissing())


def fill_missing(source: Source, values: Floats) -> Source:
    """The source with missing cells filled with one value per column."""
    return source if source.sparse else MappedSource(source, FillMissing(values))


def drop_incomplete(source: Source, values: Floats) -> Source:
    """The source in which rows with a missing cell count as absent."""
    return source if source.sparse else MappedSource(source, DropIncomplete(values))


def refuse_missing(source: Source) -> Source:
    """The source as it was before missing cells were allowed, which refuses them."""
    return source.source if isinstance(source, MappedSource) and isinstance(source.change, AllowMissing) else source
