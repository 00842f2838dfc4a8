"""Rows as a network sees them, float32 numbers of size 1, and back; and which rows are held out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from foldwise.data.block import Block, DenseBlock, Floats
from foldwise.data.mapped import MappedSource
from foldwise.data.source import Source, block_rows
from foldwise.errors import DataError
from foldwise.models.autoencoder.activations import Floats32

_HELD_OUT = 21  # tells the generator of the held-out rows from the others of a fit


@dataclass(frozen=True)
class Inputs:
    """(x - mean) / scale / unit, centred in float64, or the scores of (x - mean) / scale on `directions` divided by `unit`.

    The space of the fit is that of (x - mean) / scale, as for PCA. Inputs are float32. NaN stays NaN, and counts as the mean
    wherever a network is applied.
    """

    mean: Floats
    scale: Floats
    unit: float
    directions: NDArray[Any] | None = None

    @property
    def width(self) -> int:
        """The number of inputs."""
        return len(self.mean) if self.directions is None else len(self.directions)

    @property
    def factor(self) -> float:
        """What squares of inputs are multiplied by, to be those of the space of the fit."""
        return self.unit**2

    def of(self, block: Block) -> Floats32:
        """The inputs of the rows of a block."""
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

    def __call__(self, block: Block) -> Block:
        """The block in these inputs."""
        return DenseBlock(self.of(block), block.start, block.weights)

    def view(self, source: Source) -> Source:
        """The rows of a source in these inputs."""
        about = {"n_columns": self.width, "sparse": False, "names": None, "indicators": None, "fill": 1.0}
        kind = MappedSource if self.directions is None else _Scores
        return kind(source, self, np.dtype(np.float32), **about)


class _Scores(MappedSource):
    """Scores take so long to compute that they are worth a scratch file."""

    @property
    def slow(self) -> bool:
        """Always."""
        return True


@dataclass(frozen=True)
class Split:
    """Which rows are held out: a share of each block, by the seed and the block's number."""

    seed: int
    share: float
    block_rows: int

    def held_out(self, block: Block) -> NDArray[np.bool_]:
        """Whether each row of a block is held out; never rows without weight."""
        out = np.zeros(block.n_rows, dtype=bool)
        counted = np.arange(block.n_rows) if block.weights is None else np.flatnonzero(block.weights > 0)
        some = round(self.share * len(counted))
        if some:
            rng = np.random.default_rng([self.seed, _HELD_OUT, block.start // self.block_rows])
            out[rng.choice(counted, some, replace=False)] = True
        return out

    def training(self, source: Source) -> Source:
        """The source in which held-out rows have no weight."""
        return source if self.share == 0.0 else MappedSource(source, _WithoutHeldOut(self))

    @classmethod
    def over(cls, source: Source, seed: int, share: float) -> Split:
        """A split of the rows of a source."""
        return cls(seed, share, block_rows(source))


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
    """Rows in hand: inputs and, if they have any, weights."""

    inputs: Floats32
    weights: Floats | None

    @property
    def weight(self) -> float:
        """The total weight."""
        return float(len(self.inputs)) if self.weights is None else float(self.weights.sum())


@dataclass(frozen=True)
class TakeTraining:
    """The rows of a block, with weight, that are not held out."""

    split: Split

    def __call__(self, block: Block, state: Any = None, request: Any = None) -> Part:
        """Inputs and weights of these rows."""
        which = ~self.split.held_out(block)
        if block.weights is not None:
            which &= block.weights > 0
        return Part(block.unchecked[which], None if block.weights is None else block.weights[which])


def joined(parts: list[Part]) -> Part:
    """Several parts as one."""
    weighted = any(part.weights is not None for part in parts)
    weights = [np.ones(len(part.inputs)) if part.weights is None else part.weights for part in parts]
    inputs = parts[0].inputs if len(parts) == 1 else np.concatenate([part.inputs for part in parts])
    return Part(inputs, np.concatenate(weights) if weighted else None)
