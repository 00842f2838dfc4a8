"""From where rows are seen: dense ones from their mean, sparse ones from it in those columns where it is far from 0.

A column whose mean is far beside its spread has few zeros, so that a shift fills in little; and only there would products of
rows as they are lose digits.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from foldwise.data.block import Floats, SparseBlock
from foldwise.kernels.targets import Rescaling, rescaling_around, rescaling_within
from foldwise.models.kmeans.assignment import Assignment
from foldwise.stats.extent import Extent

_FAR = 4.0  # mean squared, in variances: then at most a fifth of a column can be zeros


def frame_of(rows: Any) -> Rescaling:
    """A frame around some rows."""
    if isinstance(rows, np.ndarray):
        return rescaling_around(rows)
    exponent = math.frexp(float(np.abs(rows.data).max(initial=0.0)))[1]
    scale = 2.0 ** max(-1000, min(-exponent, 1000))  # squares of values as they are may leave float64
    extent = Extent.of(SparseBlock(rows.astype(np.float64) * scale))
    columns = extent.columns
    middle = _middle(columns.mean, columns.squares, columns.weight)
    return rescaling_within(middle / scale, extent.low / scale, extent.high / scale, rows.dtype)


def frame_for(rows: Assignment) -> Rescaling:
    """The same for the rows of a fit, that need not be in memory."""
    if not rows.source.sparse:
        return rows.frame
    columns, scale = rows.extent.columns, rows.frame.scale
    middle = _middle(columns.mean * scale, rows.squares, columns.weight) / scale
    return rescaling_within(middle, rows.extent.low, rows.extent.high, rows.dtype)


def _middle(mean: Floats, squares: Floats, weight: float) -> Floats:
    return np.asarray(np.where(mean**2 * weight > _FAR * squares, mean, 0.0))


def seen(rows: Any, frame: Rescaling) -> Any:
    """Rows as y = (x - pivot) * scale: an array, or a CSR matrix that has stored values in all shifted columns."""
    if isinstance(rows, np.ndarray):
        return frame.seen(rows)
    import scipy.sparse as sp

    y = sp.csr_array(rows.astype(np.float64) * frame.scale)
    columns, n = np.flatnonzero(frame.pivot), y.shape[0]
    if not len(columns):
        return y
    parts = np.tile(-frame.pivot[columns] * frame.scale, n), np.tile(columns, n), np.arange(n + 1) * len(columns)
    return sp.csr_array(y + sp.csr_array(parts, shape=y.shape))
