"""The rows by which the number of groups is judged, and rows as k-means compares them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from foldwise.data.arrays import ArraySource
from foldwise.data.block import Floats
from foldwise.data.scan import scan
from foldwise.models.kmeans import KMeans
from foldwise.models.kmeans.geometry import GEOMETRIES
from foldwise.models.pca import PCA
from foldwise.selection.explore.result import Outliers
from foldwise.selection.explore.sample import Sample, named

_FAR = 4.0  # times the limit for unusual rows: so far out, a single row would pass for a group
_MANY_COLUMNS, _MOST_COMPONENTS = 200, 20


def without_far_rows(
    sample: Sample, outliers: Outliers | None, distances: NDArray[np.float32] | None
) -> tuple[NDArray[np.intp] | None, int]:
    """Places in the sample without a few rows that lie so far out that each would pass for a group (None: all); how many."""
    if outliers is None or distances is None:
        return None, 0
    found = distances[sample.rows]
    far = found[:, 0] > _FAR * outliers.t2_limit
    if outliers.residual_limit > 0:
        far |= found[:, 1] > _FAR * outliers.residual_limit
    many = int(np.count_nonzero(far))
    if not 0 < many <= max(3, len(far) // 100):
        return None, 0
    return np.flatnonzero(~far), many


def rows_to_judge(
    sample: Sample, found: Mapping[str, Any], settings: dict[str, Any], metric: str
) -> tuple[Any, dict[str, Any], str]:
    """Rows of the sample, the settings for them, and a note on what they are, if they are something else.

    They are sorted, so that the order of the rows in a file, on which what is drawn at random depends, does not matter. Of
    very many columns they are scores on the components that stand out, 20 at most: noise in all others hides gaps.
    """
    rows = sample.source
    if rows.n_columns <= _MANY_COLUMNS and not rows.sparse:
        cells = np.concatenate([piece.load().unchecked for piece in rows.pieces()])
        order = in_order(cells)
        weights = None if sample.weights is None else sample.weights[order]
        made = named(ArraySource(cells[order], weights=weights, dtype=rows.dtype), rows)
        return made, {**settings, "metric": metric}, ""
    agreed = 0 if found["components"] is None else found["components"].agreed or 0
    most = min(max(2, agreed), _MOST_COMPONENTS, rows.n_columns - 1, len(sample.rows) - 1)
    view = GEOMETRIES[metric].view
    pca = found["pca"] if view is None else PCA(most, random_state=settings["random_state"]).fit(view(rows))
    scores = np.asarray(pca.scores(rows if view is None else view(rows)), dtype=np.float64)[:, :most]
    order = in_order(scores)
    weights = None if sample.weights is None else sample.weights[order]
    made = scan(np.ascontiguousarray(scores[order]), weights=weights)
    note = f"judged by the first {most} principal components of {rows.n_columns:,} columns"
    return made, {name: settings[name] for name in ("random_state", "n_threads")}, note


def in_order(rows: NDArray[Any]) -> NDArray[np.intp]:
    """The places of rows in an order that depends on what they hold only; equal rows may change places."""
    return np.lexsort(rows.T[::-1])


def as_compared(rows: Floats, model: KMeans) -> Floats:
    """Rows as k-means compares them."""
    if model.scale_ is None:
        return rows
    scale = np.asarray(model.scale_, dtype=np.float64)
    mean = 0.0 if model.mean_ is None else np.asarray(model.mean_, dtype=np.float64)
    return np.asarray((rows - mean) / np.where(scale > 0, scale, 1.0))
