"""Standardisation for columns in different units: (x - mean) / standard deviation, so that columns count equally.

Indicators of categories are divided by the square root of their share instead. That is the geometry of factor analysis of mixed
data (FAMD; of categories alone, of multiple correspondence analysis): a number has the variance 1, a category of m levels the
variance m - 1, at most 1 in any direction, and rare levels lie far out.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from foldwise.data.block import Floats
from foldwise.data.source import Source, column_label
from foldwise.errors import DataError
from foldwise.fold.passes import Passes
from foldwise.prepare.encode import IndicatorGroup
from foldwise.stats.column_moments import ColumnMoments
from foldwise.stats.observed import ObservedColumns


def standardises(model: Any, source: Any) -> bool:
    """Whether a fit of the model sees these rows standardised: as asked by `scale`, and always if they hold categories."""
    categories = getattr(source, "indicators", None) is not None
    if categories and not hasattr(model, "scale"):
        name = type(model).__name__
        raise DataError(
            f"{name} takes numbers only, and these rows have categories",
            advice=f"Make numbers of them first: fw.{name}().fit(fw.PCA(5).fit_transform(rows))",
        )
    return bool(getattr(model, "scale", False) or categories) and bool(getattr(model, "standardises", True))


def column_scales(
    mean: Floats, squares: Floats, weight: float | Floats, indicators: Sequence[IndicatorGroup] | None
) -> Floats:
    """What each column is divided by: its standard deviation (divisor n) or, for an indicator, the root of its share.

    `squares` are the centred sums of squares; a column that is the same in all rows is divided by 1.

    >>> pets = IndicatorGroup("pet", 1, ("cat", "dog"))
    >>> column_scales(np.array([5.0, 0.25, 0.75]), np.array([16.0, 0.75, 0.75]), 4.0, [pets])
    array([2.       , 0.5      , 0.8660254])
    """
    scales = np.where(squares == 0.0, 1.0, np.sqrt(squares / weight))
    for group in indicators or ():
        shares = mean[group.columns]
        scales[group.columns] = np.where(shares > 0.0, np.sqrt(np.maximum(shares, 0.0)), 1.0)
    return scales


def mean_and_deviation(passes: Passes) -> tuple[Floats, Floats]:
    """Mean of each column, and what it is divided by (`column_scales`)."""
    found = passes.fold(ColumnMoments.of)
    return found.mean, deviation(found, passes.source)


def deviation(found: ColumnMoments | ObservedColumns, source: Source) -> Floats:
    """What each column is divided by, from its observed cells; 1 for a constant column."""
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
    return column_scales(found.mean, found.squares, found.weight, getattr(source, "indicators", None))
