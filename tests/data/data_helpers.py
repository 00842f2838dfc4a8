from __future__ import annotations

import numpy as np

from foldwise.data import scan
from foldwise.data.block_grid import rows_per_block


def rows(source):
    """All rows of a source, after checking that its blocks lie on the grid."""
    blocks = [piece.load() for piece in source.pieces()]
    step = rows_per_block(source.n_columns, source.dtype, sparse=source.sparse)
    assert [block.start for block in blocks] == [step * k for k in range(len(blocks))]
    assert all(block.n_rows == step for block in blocks[:-1])
    values = [block.dense() for block in blocks]
    for value in values:
        assert value.dtype == source.dtype
        assert source.sparse or (value.flags.c_contiguous and value.flags.aligned)
    return np.vstack(values)


def weights(source):
    return np.concatenate([piece.load().weights for piece in source.pieces()])


def read(x, **options):
    return rows(scan(x, **options))
