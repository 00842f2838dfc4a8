"""Standardisation for columns in different units: (x - mean) / standard deviation, so that columns count equally."""

from __future__ import annotations

import numpy as np

from foldwise.data.block import Floats
from foldwise.data.source import Source, column_label
from foldwise.errors import DataError
from foldwise.fold.passes import Passes
from foldwise.stats.column_moments import ColumnMoments
from foldwise.stats.observed import ObservedColumns


def mean_and_deviation(passes: Passes) -> tuple[Floats, Floats]:
    """Mean and standard deviation (with divisor n) of each column; the scale of a constant column is 1."""
    found = passes.fold(ColumnMoments.of)
    return found.mean, deviation(found, passes.source)


def deviation(found: ColumnMoments | ObservedColumns, source: Source) -> Floats:
    """The standard deviation (with divisor n) of each column, of its observed cells; 1 for a constant column."""
    variances = found.squares / found.weight
    usable = np.isfinite(variances) & ((found.squares == 0.0) | (variances > 1e-290))
    if not usable.all():
        column = int(np.argmin(usable))
        raise DataError(
            "the variance of this column leaves the range of float64",
            where=source.where,
            column=column_label(source, column),
            advice="Multiply or divide the column by a constant, or use scale=False",
        )
    return np.where(found.squares == 0.0, 1.0, np.sqrt(variances))
