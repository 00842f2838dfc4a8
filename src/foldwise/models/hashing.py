"""Numbers from the bits of rows, so that chance depends on what a row holds and not on where it stands."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_AT_ONCE = 1 << 20  # values that are widened at a time


def scrambled(x: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Numbers in which each bit depends on all bits of those given (the mixer of SplitMix64)."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(x ^ (x >> np.uint64(31)))


def row_hashes(rows: Any) -> NDArray[np.uint64]:
    """A number for each row of an array or a CSR matrix: the same for equal rows, dense or sparse, in float32 or float64.

    -0 counts as 0, and all NaN are alike. Sums are modulo 2^64, so they have no rounding that depends on the order; zeros add
    nothing to them.
    """
    factors = scrambled(np.arange(1, rows.shape[1] + 1, dtype=np.uint64) * _GOLDEN) | np.uint64(1)
    if not isinstance(rows, np.ndarray):
        parts = _words(rows.data) * factors[rows.indices]
        sums = np.concatenate([np.zeros(1, dtype=np.uint64), np.cumsum(parts, dtype=np.uint64)])
        return scrambled(sums[rows.indptr[1:]] - sums[rows.indptr[:-1]])
    out = np.empty(len(rows), dtype=np.uint64)
    step = max(_AT_ONCE // rows.shape[1], 1)
    for first in range(0, len(rows), step):
        out[first : first + step] = _words(rows[first : first + step]) @ factors
    return scrambled(out)


def _words(values: NDArray[Any]) -> NDArray[np.uint64]:
    """The bits of values in float64, with the upper half in the lower half, too: products only ever move bits up."""
    wide = values.astype(np.float64) + 0.0
    wide[np.isnan(wide)] = np.nan
    words = wide.view(np.uint64)
    return np.asarray(words ^ (words >> np.uint64(32)))
