"""Cluster profiles: sizes, means in the units of the data, and distinguishing columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from foldwise.data.block import Floats
from foldwise.data.missing import allow_missing, drop_incomplete
from foldwise.data.source import Source
from foldwise.models.base import n_clusters_of, with_missing
from foldwise.models.session import open_passes
from foldwise.selection.cluster_moments import grouped, has_gaps
from foldwise.selection.silhouette import silhouette_of
from foldwise.selection.silhouette_result import geometry_of
from foldwise.stats.two_part_mean import distance


@dataclass(frozen=True)
class Profile:
    """Figures of k clusters in d columns. Figures of empty clusters are NaN.

    `means`, `mean` and `deviation` are in the units of the data; `spreads` (root mean square distance to the centre),
    `silhouettes` and `between` (the between-cluster share of the variance) refer to the space in which the model compares
    rows. `differences` is (cluster mean - overall mean) / overall deviation, and `separation` the between-cluster share of
    each column's variance.
    """

    rows: NDArray[np.int64]
    weights: Floats
    spreads: Floats
    silhouettes: Floats
    silhouette: float | None
    silhouette_error: float  # its standard error, or 0 if it was computed from all rows
    silhouette_rows: int | None  # the size of the sample, if there was one
    between: float
    means: Floats
    mean: Floats
    deviation: Floats
    differences: Floats
    separation: Floats


def profile(model: Any, source: Source, *, engine: Any = None) -> Profile:
    """Profile a fitted KMeans; `source` has the rows it was fitted to. Takes two passes, or three if rows are scaled.

    With missing="model", all figures are of observed cells, and `spreads` are scaled to all columns as distances are.

    >>> import foldwise as fw
    >>> source = fw.scan([[1.0, 5.0], [3.0, 5.0], [11.0, 6.0], [13.0, 6.0]])
    >>> found = profile(fw.KMeans(2).fit(source), source)
    >>> found.means, found.differences.round(2)
    (array([[ 2.,  5.],
           [12.,  6.]]), array([[-0.98, -1.  ],
           [ 0.98,  1.  ]]))
    """
    labels, k = model.labels_, n_clusters_of(model)
    with open_passes(as_fitted(model, source), engine=engine, n_threads=model.n_threads) as passes:
        observed = getattr(model, "missing", "error") == "model" and has_gaps(passes)
        raw, scale = known = grouped(passes, labels, k, observed=observed)
        compared = model.as_compared(passes.source)
        if compared is not passes.source:
            passes = passes.over(compared)
            known = grouped(passes, labels, k, observed=observed)
        some = raw.weight > 0
        several = np.count_nonzero(some) > 1
        judgement = None
        if several:
            names, geometry = tuple(range(k)), geometry_of(model)
            judgement = silhouette_of(passes, labels, names, geometry=geometry, known=known, observed=observed)
    whole, seen, total = raw.whole(), known[0].squares.sum(axis=1), float(known[0].whole().squares.sum())
    deviation = np.sqrt(whole.squares / whole.weight)
    gaps = distance(whole.centre[:, None, :], raw.centre)
    differences = np.divide(gaps, deviation, out=np.zeros_like(gaps), where=deviation > 0)
    weights = np.where(some, raw.weight, np.nan)
    # The inertia has a term for each observed cell: what is missing counts as much, on average, as what is there.
    shares = weights if raw.cells is None else np.where(some, raw.cells.sum(axis=1), np.nan) / source.n_columns
    spreads = np.sqrt(model.cluster_inertias_ / shares)
    if not np.isfinite(model.inertia_):  # compute it about the means, which are close to the centres
        spreads = np.sqrt(seen / shares) / known[1]
    within = np.divide(raw.squares.sum(axis=0), whole.squares, out=np.ones_like(deviation), where=whole.squares > 0)
    known_cells = some[:, None] if raw.cells is None else raw.cells > 0
    return Profile(
        rows=raw.rows,
        weights=raw.weight,
        spreads=spreads,
        silhouettes=np.full(k, np.nan) if judgement is None else judgement.cluster_means,
        silhouette=None if judgement is None else judgement.mean,
        silhouette_error=0.0 if judgement is None else judgement.standard_error,
        silhouette_rows=None if judgement is None or judgement.rows is None else len(judgement.rows),
        between=1.0 - float(seen.sum()) / total if total > 0 else 0.0,
        means=np.where(known_cells, raw.mean / scale, np.nan),
        mean=whole.mean / scale,
        deviation=deviation / scale,
        differences=np.where(known_cells, differences, np.nan),
        separation=1.0 - within,
    )


def as_fitted(model: Any, source: Source) -> Source:
    """The rows with their missing cells as in the fit: left to the model, filled, or in rows that do not count."""
    if getattr(model, "missing", "error") == "drop" and hasattr(model, "fill_values_"):
        return drop_incomplete(allow_missing(source), model.fill_values_)
    return with_missing(model, source)
