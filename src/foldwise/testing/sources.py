"""The requirements on every source."""

from __future__ import annotations

from typing import Any

import numpy as np

from foldwise.data.block_grid import rows_per_block
from foldwise.data.source import Source


def check_source(source: Source, expected: Any, weights: Any = None) -> None:
    """Raise AssertionError unless the source yields exactly the rows of `expected`, on the block grid, in every pass.

    >>> import foldwise as fw
    >>> check_source(fw.scan([[1, 2], [3, 4]]), [[1.0, 2.0], [3.0, 4.0]])
    """
    rows = np.asarray(expected, dtype=source.dtype)
    assert isinstance(source, Source), "a source must have every member of foldwise.data.source.Source"
    assert source.n_columns == rows.shape[1], f"{source.n_columns} columns instead of {rows.shape[1]}"
    assert source.n_rows in (None, len(rows)), f"{source.n_rows} rows instead of {len(rows)}"
    assert source.names is None or len(source.names) == source.n_columns, "there must be one name per column"
    size = rows_per_block(source.n_columns, source.dtype, sparse=source.sparse)
    for number_of_pass in range(2):
        start = 0
        for number, piece in enumerate(source.pieces()):
            block = piece.load()
            where = f"pass {number_of_pass}, block {number}"
            assert block.start == number * size == start, f"{where}: starts at {block.start} instead of {start}"
            assert block.n_rows == min(size, len(rows) - start), f"{where}: {block.n_rows} rows"
            np.testing.assert_array_equal(block.dense(), rows[start : start + block.n_rows], err_msg=where)
            if weights is not None:
                given = np.asarray(weights, dtype=np.float64)[start : start + block.n_rows]
                np.testing.assert_array_equal(block.weights, given, err_msg=where)
            start += block.n_rows
        assert start == len(rows), f"pass {number_of_pass}: {start} rows instead of {len(rows)}"
