"""Columns in different units: rows as (x - mean) / standard deviation, so that each column counts alike in a distance."""

from __future__ import annotations

import numpy as np

from foldwise import kernels
from foldwise.data.block import Block, DenseBlock, Floats, SparseBlock
from foldwise.data.mapped import MappedSource
from foldwise.data.source import Source
from foldwise.errors import DataError
from foldwise.fold.passes import Passes
from foldwise.stats.column_moments import ColumnMoments


def mean_and_deviation(run: Passes) -> tuple[Floats, Floats]:
    """Mean and standard deviation (sums divided by n) of each column; a column that does not vary is divided by 1."""
    found = run.fold(ColumnMoments.of)
    variances = found.squares / found.weight
    usable = np.isfinite(variances) & ((found.squares == 0.0) | (variances > 1e-290))
    if not usable.all():
        column = int(np.argmin(usable))
        raise DataError(
            "the variance of this column leaves the range of float64",
            where=run.source.where,
            column=column if run.source.names is None else run.source.names[column],
            advice="Multiply or divide the column by a constant, or use scale=False",
        )
    return found.mean, np.where(found.squares == 0.0, 1.0, np.sqrt(variances))


def standardised(source: Source, mean: Floats | None, scale: Floats) -> Source:
    """The source with every row as (x - mean) / scale.

    Distances do not depend on the mean; taken away before the division, it keeps the digits of data with a large offset.
    Sparse rows would be filled in by it, and angles changed: for these it is None.
    """
    centre = np.zeros(source.n_columns) if mean is None else mean

    def change(block: Block) -> Block:
        if isinstance(block, SparseBlock):
            matrix = block.matrix.copy()
            matrix.data = (matrix.data / scale[matrix.indices]).astype(matrix.dtype)
            return SparseBlock(matrix, block.start, block.weights)
        return DenseBlock(kernels.centred(block.dense(), centre, scale), block.start, block.weights)

    return MappedSource(source, change)
