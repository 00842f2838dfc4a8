"""The normal distribution behind a PCA with missing cells: completed rows, and how sure each filled cell is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from foldwise.data.block import Block, Floats
from foldwise.kernels import missing_cells
from foldwise.kernels.missing_cells import Units


@dataclass(frozen=True)
class NormalModel:
    """Rows are normal about `mean`; `precision` is that of (x - mean) / scale. A column of scale 0 is constant."""

    mean: Floats
    scale: Floats
    precision: Floats

    @property
    def units(self) -> Units:
        """In which the kernels see rows."""
        return Units(self.mean, inverse_of(self.scale))

    def completed(self, block: Block) -> Block:
        """The block with each missing cell at its conditional mean given the row's other cells; as it is if complete."""
        rows = block.dense()
        if not np.isnan(rows).any():
            return block
        return block.with_rows(self.fill(rows)[0])

    def fill(self, rows: NDArray[Any]) -> tuple[NDArray[Any], Floats]:
        """Rows with missing cells filled, observed ones as they are, and the deviation of each filled cell (0 elsewhere)."""
        missing = np.isnan(rows)
        if not missing.any():
            return rows, np.zeros(rows.shape)
        which = missing.any(axis=1)
        away, spread = missing_cells.fill(
            np.ascontiguousarray(rows[which]), self.units, np.zeros(len(self.mean)), self.precision
        )
        filled, deviations = rows.copy(), np.zeros(rows.shape)
        filled[which] = np.where(missing[which], away * self.scale + self.mean, rows[which])
        deviations[which] = spread
        return filled, deviations


def inverse_of(scale: Floats) -> Floats:
    """1 / scale; 0 for a column without variance."""
    return np.asarray(np.where(scale > 0, 1.0 / np.where(scale > 0, scale, 1.0), 0.0))
