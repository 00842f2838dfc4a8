"""The extent of data with missing cells: moments and range of each column's observed cells."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from foldwise.data.block import Block
from foldwise.stats.extent import Extent
from foldwise.stats.observed import ObservedColumns


@dataclass(frozen=True)
class ObservedExtent(Extent):
    """As `Extent`, over observed cells of rows with weight > 0; a column without any ranges from inf to -inf."""

    columns: ObservedColumns  # type: ignore[assignment]

    @classmethod
    def empty(cls, n_columns: int) -> ObservedExtent:
        """The identity of `merge`."""
        low = np.full(n_columns, np.inf)
        return cls(ObservedColumns.empty(n_columns), 0, low, -low, 0.0, np.inf)

    @classmethod
    def of(cls, block: Block, *, moments: bool = True) -> ObservedExtent:
        """The extent of a block's observed cells; unless `moments`, those of the columns are left out."""
        columns = ObservedColumns.of(block) if moments else ObservedColumns.empty(block.n_columns)
        rows, weights = block.dense(), block.weights
        heaviest = lightest = 1.0
        if weights is not None:
            rows = rows if weights.all() else rows[weights > 0]
            heaviest = float(weights.max(initial=0.0))
            lightest = float(weights.min(initial=np.inf, where=weights > 0))
        low = np.fmin.reduce(rows, axis=0, initial=np.inf).astype(np.float64)
        high = np.fmax.reduce(rows, axis=0, initial=-np.inf).astype(np.float64)
        return cls(columns, block.n_rows, low, high, heaviest, lightest)
