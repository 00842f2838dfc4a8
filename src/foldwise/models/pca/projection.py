"""What a fitted PCA says of rows, block by block: picklable, and no larger than it must be."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from foldwise.data.block import Block, Floats


@dataclass(frozen=True)
class Projection:
    """Unit directions in rows of (x - mean) / scale; with `deviations`, scores are divided by them (whitened)."""

    directions: NDArray[Any]
    mean: Floats
    scale: Floats | None
    deviations: Floats | None = None

    def scores(self, block: Block) -> NDArray[Any]:
        """The coordinates of the rows."""
        codes = block.codes(self.directions, self.mean, self.scale)
        if self.deviations is None:
            return codes
        return np.asarray(codes / self.deviations).astype(codes.dtype)  # in float64: a tiny deviation must not become 0

    def rows(self, block: Block) -> NDArray[Any]:
        """The rows that have these scores, in the dtype of the scores."""
        codes = block.dense()
        rows = (codes if self.deviations is None else codes * self.deviations) @ self._wide
        if self.scale is not None:
            rows = rows * self.scale
        return np.asarray(rows + self.mean).astype(codes.dtype, copy=False)

    def residual_norms(self, block: Block) -> Floats:
        """The squared distance of each row from the plane of the directions."""
        return block.residual_norms(self._wide, self.mean, self.scale)

    def cos2(self, block: Block) -> Floats:
        """The share of each row's squared length that lies along each direction."""
        squares = block.times(self._wide.T, self.mean, self.scale) ** 2
        lengths = block.squared_norms(self.mean, self.scale)
        return np.asarray(squares / np.where(lengths > 0, lengths, 1.0)[:, None])

    @property
    def _wide(self) -> Floats:
        return np.asarray(self.directions, dtype=np.float64)
