"""Cosine similarity as distance on the sphere: for rows and centres of length 1, |x - c|^2 = 2 - 2 cos."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from foldwise import kernels
from foldwise.data.block import Block, DenseBlock, SparseBlock
from foldwise.data.mapped import MappedSource
from foldwise.data.source import Source
from foldwise.errors import DataError
from foldwise.kernels import sparse


def on_the_sphere(source: Source) -> Source:
    """The source with every row divided by its length; a row of zeros has no direction and is refused."""

    def change(block: Block) -> Block:
        if isinstance(block, SparseBlock):
            matrix, without = sparse.unit_rows(block.matrix)
            changed: Block = SparseBlock(matrix, block.start, block.weights)
        else:
            rows, without = kernels.unit_rows(block.dense())
            changed = DenseBlock(rows, block.start, block.weights)
        if without:
            _refuse_zero(block, source.where)
        return changed

    return MappedSource(source, change)


def _refuse_zero(block: Block, where: str) -> None:
    """Say which row is zero, unless all of them have weight 0."""
    rows = abs(block.rows).max(axis=1)
    zero = np.asarray(rows.todense() if isinstance(block, SparseBlock) else rows).ravel() == 0.0
    if block.weights is not None:
        zero &= block.weights > 0
    if zero.any():
        raise DataError(
            "a row of zeros has no direction, so no cosine with anything",
            where=where,
            row=block.start + int(np.argmax(zero)),
            advice="Leave such rows out (where=...), give them weight 0, or use metric='euclidean'",
        )


def project(centres: NDArray[Any]) -> NDArray[Any]:
    """Centres at length 1; one of length 0 stays."""
    wide = centres.astype(np.float64)
    lengths = np.sqrt(np.einsum("ij,ij->i", wide, wide))
    lengths[lengths == 0.0] = 1.0
    return np.asarray((wide / lengths[:, None]).astype(centres.dtype))
