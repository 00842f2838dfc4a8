"""Cosine similarity as distance on the sphere: for rows and centres of length 1, |x - c|^2 = 2 - 2 cos."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from foldwise.data.block import Block, DenseBlock, Floats, SparseBlock
from foldwise.data.mapped import MappedSource
from foldwise.data.source import Source
from foldwise.errors import DataError


def on_the_sphere(source: Source) -> Source:
    """The source with every row divided by its length; a row of zeros has no direction and is refused."""

    def change(block: Block) -> Block:
        if isinstance(block, SparseBlock):
            return _sparse(block, source.where)
        rows = block.dense().astype(np.float64)
        # Divided by the largest value first: squares of very large or small ones would leave float64.
        largest = np.abs(rows).max(axis=1)
        _refuse_zero(largest, block, source.where)
        rows /= largest[:, None]
        rows /= np.sqrt(np.einsum("ij,ij->i", rows, rows))[:, None]
        return DenseBlock(rows.astype(block.values.dtype), block.start, block.weights)

    return MappedSource(source, change)


def _sparse(block: SparseBlock, where: str) -> SparseBlock:
    matrix = block.matrix.astype(np.float64)
    largest = np.asarray(abs(matrix).max(axis=1).todense()).ravel()
    _refuse_zero(largest, block, where)
    per_value = np.repeat(largest, np.diff(matrix.indptr))
    matrix.data = matrix.data / per_value
    lengths = np.sqrt(np.asarray(matrix.multiply(matrix).sum(axis=1)).ravel())
    matrix.data /= np.repeat(lengths, np.diff(matrix.indptr))
    return SparseBlock(matrix.astype(block.matrix.dtype), block.start, block.weights)


def _refuse_zero(largest: Floats, block: Block, where: str) -> None:
    zero = largest == 0.0
    if block.weights is not None:
        zero &= block.weights > 0
    if zero.any():
        raise DataError(
            "a row of zeros has no direction, so no cosine with anything",
            where=where,
            row=block.start + int(np.argmax(zero)),
            advice="Leave such rows out (where=...), give them weight 0, or use metric='euclidean'",
        )
    largest[largest == 0.0] = 1.0


def project(centres: NDArray[Any]) -> NDArray[Any]:
    """Centres at length 1; one of length 0 stays."""
    wide = centres.astype(np.float64)
    lengths = np.sqrt(np.einsum("ij,ij->i", wide, wide))
    lengths[lengths == 0.0] = 1.0
    return np.asarray((wide / lengths[:, None]).astype(centres.dtype))
