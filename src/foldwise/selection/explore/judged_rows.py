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
from foldwise.selection.explore.result import Outliers
from foldwise.selection.explore.sample import Sample, named

_FAR = 4.0  # times the limit for unusual rows: so far out, a single row would pass for a group
_MANY_COLUMNS = 200


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


def rows_to_judge(sample: Sample, found: Mapping[str, Any], settings: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """Rows of the sample, and the settings for them.

    They are sorted, so that the order of the rows in a file, on which what is drawn at random depends, does not matter. Of
    very many columns they are scores on the components that stand out, since noise in all others hides gaps.
    """
    rows = sample.source
    if rows.sparse:
        return rows, settings
    if rows.n_columns <= _MANY_COLUMNS:
        cells = np.concatenate([piece.load().unchecked for piece in rows.pieces()])
        order = in_order(cells)
        weights = None if sample.weights is None else sample.weights[order]
        return named(ArraySource(cells[order], weights=weights, dtype=rows.dtype), rows), settings
    agreed = 0 if found["components"] is None else found["components"].agreed or 0
    scores = np.asarray(found["pca"].scores(rows), dtype=np.float64)[:, : max(2, agreed)]
    order = in_order(scores)
    weights = None if sample.weights is None else sample.weights[order]
    made = scan(np.ascontiguousarray(scores[order]), weights=weights)
    return made, {name: settings[name] for name in ("random_state", "n_threads")}


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
