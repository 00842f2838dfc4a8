"""Rows as a network sees them, float32 numbers of size 1, and back; and which rows are held out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from foldwise.data.block import Block, DenseBlock, Floats
from foldwise.data.mapped import MappedSource
from foldwise.data.source import Source, block_rows
from foldwise.errors import DataError
from foldwise.fold.passes import Passes
from foldwise.models.autoencoder.activations import Floats32
from foldwise.models.pca.normal_model import NormalModel

_HELD_OUT = 21  # tells the generator of the held-out rows from the others of a fit


@dataclass(frozen=True)
class Inputs:
    """(x - mean) / scale / unit, centred in float64, or the scores of (x - mean) / scale on `directions` divided by `unit`.

    The space of the fit is that of (x - mean) / scale, as for PCA. Inputs are float32. Rows with missing cells are completed
    first, by the conditional means of the normal distribution that `fill()` gives, as PCA does; it is called only if there are
    such rows.
    """

    mean: Floats
    scale: Floats
    unit: float
    directions: NDArray[Any] | None = None
    fill: Callable[[], NormalModel] | None = None

    @property
    def width(self) -> int:
        """The number of inputs."""
        return len(self.mean) if self.directions is None else len(self.directions)

    @property
    def factor(self) -> float:
        """What squares of inputs are multiplied by, to be those of the space of the fit."""
        return self.unit**2

    def completed(self, block: Block) -> tuple[Block, NDArray[np.bool_] | None]:
        """The block without gaps, and where they were; None if nowhere."""
        if self.fill is None or block.sparse:
            return block, None
        missing = np.isnan(block.dense())
        return (self._normal.completed(block), missing) if missing.any() else (block, None)

    @cached_property
    def _normal(self) -> NormalModel:
        assert self.fill is not None
        return self.fill()

    def of(self, block: Block) -> Floats32:
        """The inputs of the rows of a block without gaps."""
        with np.errstate(over="ignore", invalid="ignore"):  # raised below, with advice
            if self.directions is None:
                found = block.centred(self.mean, self.scale * self.unit).astype(np.float32, copy=False)  # type: ignore[union-attr]
            else:
                basis = np.asarray(self.directions, dtype=np.float64).T
                found = (block.times(basis, self.mean, self.scale) / self.unit).astype(np.float32)
        if np.isinf(found).any():
            raise DataError(
                "values are so far from those of the fit that they leave the range of float32",
                row=block.start + int(np.argmax(np.isinf(found).any(axis=1))),
                advice="Leave such rows out",
            )
        return found

    def rows(self, inputs: Floats32, dtype: Any) -> NDArray[Any]:
        """The rows of the data that have these inputs."""
        wide = inputs.astype(np.float64) * self.unit
        if self.directions is not None:
            wide = wide @ np.asarray(self.directions, dtype=np.float64)
        return np.asarray(wide * self.scale + self.mean).astype(dtype, copy=False)

    def outside(self, block: Block) -> Floats | None:
        """The squared length of what the directions leave out of each row; None without directions."""
        if self.directions is None:
            return None
        return block.residual_norms(np.asarray(self.directions, dtype=np.float64), self.mean, self.scale)

    def gaps(self, block: Block, missing: NDArray[np.bool_] | None) -> Gaps | None:
        """What the errors of rows with gaps, of a block that was completed, are worked out from; None if there are none."""
        if missing is None:
            return None
        which = np.flatnonzero(missing.any(axis=1))
        if self.directions is None:
            return Gaps(which, np.where(missing[which], np.float32(np.nan), np.float32(0)))
        basis = np.asarray(self.directions, dtype=np.float64)
        rows = block.take(which).times(np.eye(len(self.mean)), self.mean, self.scale)
        rest = (rows - (rows @ basis.T) @ basis) / self.unit
        return Gaps(which, np.where(missing[which], np.nan, rest).astype(np.float32), basis)

    def __call__(self, block: Block) -> Block:
        """The block in these inputs; where cells of them were missing is packed into columns behind."""
        whole, missing = self.completed(block)
        found = self.of(whole)
        if self.marks:
            packed = np.zeros((len(found), self.marks), np.uint8) if missing is None else np.packbits(missing, axis=1)
            found = np.concatenate([found, packed.astype(np.float32)], axis=1)
        return DenseBlock(found, block.start, block.weights)

    @property
    def marks(self) -> int:
        """How many columns behind the inputs say which of them were missing; scores are never."""
        return 0 if self.fill is None or self.directions is not None else -(-self.width // 8)

    def view(self, source: Source) -> Source:
        """The rows of a source in these inputs."""
        n_columns = self.width + self.marks
        about = {"n_columns": n_columns, "sparse": False, "names": None, "indicators": None, "fill": 1.0}
        kind = MappedSource if self.directions is None and self.fill is None else _Slow
        return kind(source, self, np.dtype(np.float32), **about)


class _Slow(MappedSource):
    """Scores and completed rows take so long to compute that they are worth a scratch file."""

    @property
    def slow(self) -> bool:
        """Always."""
        return True


@dataclass(frozen=True)
class Gaps:
    """Rows with gaps: which, by rising number, and what their errors are worked out from besides their inputs.

    `beside` has NaN in missing cells, elsewhere 0 or, if inputs are scores on `directions`, what these leave out of the row.
    """

    which: NDArray[np.intp]
    beside: Floats32
    directions: Floats | None = None

    def squares(self, away: NDArray[Any], some: slice = slice(None)) -> Floats:
        """The squared errors over observed cells of some of these rows, whose inputs are so far from the reconstructed ones."""
        wide = away.astype(np.float64)
        rest = (wide if self.directions is None else wide @ self.directions) - self.beside[some]
        return np.asarray(np.nansum(rest * rest, axis=1))

    def moved(self, first: int) -> Gaps:
        """The same rows, numbered from another one."""
        return replace(self, which=self.which + first)


@dataclass(frozen=True)
class Split:
    """Which rows are held out: a share of all with weight, chosen in each block by the seed and the block's number.

    `before` are the numbers of rows with weight before each block, by which the share is met however few of them a block has.
    """

    seed: int
    share: float
    block_rows: int
    before: tuple[int, ...]

    @property
    def rows(self) -> int:
        """The number of rows with weight."""
        return self.before[-1]

    @property
    def n_held_out(self) -> int:
        """How many of them are held out."""
        return round(self.share * self.rows)

    def held_out(self, block: Block) -> NDArray[np.bool_]:
        """Whether each row of a block is held out; never rows without weight."""
        out = np.zeros(block.n_rows, dtype=bool)
        counted = np.arange(block.n_rows) if block.weights is None else np.flatnonzero(block.weights > 0)
        number = block.start // self.block_rows
        start = self.before[number] if number + 1 < len(self.before) else self.rows
        some = round(self.share * (start + len(counted))) - round(self.share * start)
        if some:
            rng = np.random.default_rng([self.seed, _HELD_OUT, number])
            out[rng.choice(counted, some, replace=False)] = True
        return out

    def training(self, source: Source) -> Source:
        """The source in which held-out rows have no weight."""
        return source if self.share == 0.0 else MappedSource(source, _WithoutHeldOut(self))

    @classmethod
    def over(cls, passes: Passes, seed: int, share: float = 0.0) -> Split:
        """A split of the rows of passes, which are counted."""
        counts = passes.each(_rows_with_weight)
        return cls(seed, share, block_rows(passes.source), tuple(np.cumsum([0, *counts]).tolist()))


def _rows_with_weight(block: Block) -> int:
    return block.rows_with_weight


@dataclass(frozen=True)
class _WithoutHeldOut:
    split: Split

    def __call__(self, block: Block) -> Block:
        weights = np.ones(block.n_rows) if block.weights is None else block.weights
        weights = np.where(self.split.held_out(block), 0.0, weights)
        if isinstance(block, DenseBlock):
            return DenseBlock(block.values, block.start, weights, block.check)
        return type(block)(block.matrix, block.start, weights)


@dataclass(frozen=True)
class Part:
    """Rows in hand: inputs and, if they have any, weights and missing cells.

    `missing` says which inputs were missing, and is for training; `gaps` is what exact errors need.
    """

    inputs: Floats32
    weights: Floats | None
    missing: NDArray[np.bool_] | None = None
    gaps: Gaps | None = None

    @property
    def weight(self) -> float:
        """The total weight."""
        return float(len(self.inputs)) if self.weights is None else float(self.weights.sum())


@dataclass(frozen=True)
class TakeTraining:
    """The rows of a block, with weight, that are not held out: `width` inputs, and behind them which were missing."""

    split: Split
    width: int

    def __call__(self, block: Block, state: Any = None, request: Any = None) -> Part:
        """Inputs and weights of these rows."""
        which = ~self.split.held_out(block)
        if block.weights is not None:
            which &= block.weights > 0
        weights = None if block.weights is None else block.weights[which]
        found = block.unchecked[which]
        if found.shape[1] == self.width:
            return Part(found, weights)
        marks = np.unpackbits(found[:, self.width :].astype(np.uint8), axis=1, count=self.width)
        return Part(found[:, : self.width], weights, marks.astype(bool) if marks.any() else None)


def joined(parts: list[Part]) -> Part:
    """Several parts, to be judged by, as one."""
    weighted = any(part.weights is not None for part in parts)
    weights = [np.ones(len(part.inputs)) if part.weights is None else part.weights for part in parts]
    inputs = parts[0].inputs if len(parts) == 1 else np.concatenate([part.inputs for part in parts])
    firsts = np.cumsum([0, *(len(part.inputs) for part in parts)]).tolist()
    gaps = [part.gaps.moved(first) for part, first in zip(parts, firsts, strict=False) if part.gaps is not None]
    whole = None
    if gaps:
        which, beside = np.concatenate([one.which for one in gaps]), np.concatenate([one.beside for one in gaps])
        whole = Gaps(which, beside, gaps[0].directions)
    return Part(inputs, np.concatenate(weights) if weighted else None, gaps=whole)
