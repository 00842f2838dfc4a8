"""The fixed block grid: where rows are cut depends on the number of columns and the dtype, and on nothing else.

Threads, memory, chunks of a file or of a cluster never move a cut. That is half of the promise of equal bits everywhere
(the other half is the fixed merge tree in `foldwise.fold.tree`).
"""

from __future__ import annotations

import numpy as np

# A block should be large enough that a call from Python (some 20 microseconds) does not show, and small enough to stay in
# the last-level cache while several kernels look at it. For wide rows the merge of two d x d matrices must stay cheap
# beside the d x d work of each row, hence a least number of rows, itself capped in bytes.
_BYTES = 2 << 20
_WIDE_ROWS = 4096
_WIDE_BYTES = 16 << 20
_SPARSE_ROWS = 16384
_STEP = 128  # a multiple of the kernels' row tile, so that only the last block has a ragged tile


def rows_per_block(n_columns: int, dtype: np.dtype[np.floating], *, sparse: bool = False) -> int:
    """How many rows a full block has.

    >>> rows_per_block(50, np.dtype(np.float32)), rows_per_block(784, np.dtype(np.float32))
    (10368, 4096)
    """
    if sparse:
        return _SPARSE_ROWS
    row_bytes = max(1, n_columns) * dtype.itemsize
    rows = max(_BYTES // row_bytes, min(_WIDE_ROWS, _WIDE_BYTES // row_bytes), 1)
    return rows - rows % _STEP if rows > _STEP else rows
