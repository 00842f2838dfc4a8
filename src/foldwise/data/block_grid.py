"""The fixed block grid: block boundaries depend on the number of columns and the dtype, and on nothing else.

Neither threads nor memory nor the chunks of a file or collection move a boundary. That is one half of what makes results
bit-identical everywhere (the other half is the fixed merge tree in `foldwise.fold.tree`).
"""

from __future__ import annotations

import numpy as np

# A block should be large enough that the overhead of a Python call (some 20 microseconds) is negligible, and small enough
# to stay in the last-level cache while several kernels use it. For wide rows, merging two d x d matrices must be cheap
# compared with the O(d^2) work per row, hence a minimum number of rows, itself capped in bytes.
_BYTES = 2 << 20
_WIDE_ROWS = 4096
_WIDE_BYTES = 16 << 20
_SPARSE_ROWS = 16384
_STEP = 128  # a multiple of the kernels' row tile, so that only the last block has a ragged tile


def rows_per_block(n_columns: int, dtype: np.dtype[np.floating], *, sparse: bool = False) -> int:
    """The number of rows in a full block.

    >>> rows_per_block(50, np.dtype(np.float32)), rows_per_block(784, np.dtype(np.float32))
    (10368, 4096)
    """
    if sparse:
        return _SPARSE_ROWS
    row_bytes = max(1, n_columns) * dtype.itemsize
    rows = max(_BYTES // row_bytes, min(_WIDE_ROWS, _WIDE_BYTES // row_bytes), 1)
    return rows - rows % _STEP if rows > _STEP else rows
