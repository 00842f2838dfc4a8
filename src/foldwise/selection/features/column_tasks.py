"""What a selector does with blocks of rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from foldwise.data.block import Block, Floats, dense_rows


@dataclass(frozen=True)
class TakeDense:
    """The chosen columns, as a dense array."""

    columns: NDArray[np.intp]

    def __call__(self, block: Block) -> NDArray[Any]:
        """Of the rows of a block, which are checked."""
        return np.ascontiguousarray(dense_rows(block.rows[:, self.columns]))


@dataclass(frozen=True)
class Reconstruct:
    """All columns, as regression on the chosen ones predicts them."""

    columns: NDArray[np.intp]
    coefficients: Floats
    mean: Floats
    scale: Floats | None

    def __call__(self, block: Block) -> NDArray[Any]:
        """Of the rows of a block."""
        own = block.dense()
        found = self.predicted(self.standardised(block))
        found = (found if self.scale is None else found * self.scale) + self.mean
        chosen = own[:, self.columns]
        found[:, self.columns] = np.where(np.isnan(chosen), self.mean[self.columns], chosen)
        return found.astype(own.dtype, copy=False)

    def predicted(self, rows: Floats) -> Floats:
        """All columns of standardised rows; chosen cells that are missing count as the mean."""
        return np.asarray(np.nan_to_num(rows[:, self.columns]) @ self.coefficients)

    def standardised(self, block: Block) -> Floats:
        """The rows about their mean, in the space of the fit."""
        rows = block.dense().astype(np.float64) - self.mean
        return rows if self.scale is None else rows / self.scale


@dataclass(frozen=True)
class SquaredError:
    """The squared distance of rows from their reconstruction, in the space of the fit."""

    model: Reconstruct

    def __call__(self, block: Block) -> Floats:
        """Of the rows of a block; over the cells that there are."""
        rows = self.model.standardised(block)
        away = rows - self.model.predicted(rows)
        return np.asarray(np.nansum(away**2, axis=1))
