"""Pairs of rows in memory, dense or sparse: inner products, distances, and a shift and scale that preserve accuracy.

Like `block.py`, this module knows how rows are stored, so that its callers need not.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from foldwise.data.block import Block, DenseBlock, Floats, SparseBlock, block_of
from foldwise.kernels.targets import Rescaling, rescaling_around, rescaling_within

_FAR = 4.0  # squared mean in units of the variance: at most a fifth of such a column can be zeros
_HARMLESS = 1e-12  # a negligible absolute error of a scaled distance

# ---------------------------------------------------------------- shift and scale


def rescaling_of(block: Block) -> Rescaling:
    """A rescaling about the mean of the rows of a block; sparse rows are shifted only as in `shift_of_sparse`."""
    if isinstance(block, DenseBlock):
        return rescaling_around(block.values)
    exponent = math.frexp(largest(block))[1]
    scale = 2.0 ** max(-1000, min(-exponent, 1000))  # squares of unscaled values may overflow or underflow float64
    scaled = block.times_number(scale, np.float64)
    weight, mean, squares = scaled.column_moments()
    low, high = scaled.extent()
    return rescaling_within(
        shift_of_sparse(mean[0], squares, weight) / scale, low / scale, high / scale, block.matrix.dtype
    )


def shift_of_sparse(mean: Floats, squares: Floats, weight: float) -> Floats:
    """The mean in columns where it is far from 0, and 0 elsewhere.

    A column whose mean is large relative to its standard deviation has few zeros, so a shift fills in little; and only in
    such columns would products of unshifted rows lose digits.
    """
    return np.asarray(np.where(mean**2 * weight > _FAR * squares, mean, 0.0))


def rescaled(block: Block, rescaling: Rescaling) -> Block:
    """Rows as y = (x - pivot) * scale in float64; sparse rows store a value in every shifted column."""
    if isinstance(block, DenseBlock):
        return block_of(rescaling.apply(block.dense()), block.start)
    import scipy.sparse as sp

    y = sp.csr_array(block.matrix.astype(np.float64) * rescaling.scale)
    columns, n = np.flatnonzero(rescaling.pivot), block.n_rows
    if len(columns):
        shift = np.tile(-rescaling.pivot[columns] * rescaling.scale, n)
        y = sp.csr_array(y + sp.csr_array((shift, np.tile(columns, n), np.arange(n + 1) * len(columns)), shape=y.shape))
    return SparseBlock(y, block.start)


# ---------------------------------------------------------------- products and distances


def largest(block: Block) -> float:
    """The largest absolute value."""
    values = block.values if isinstance(block, DenseBlock) else block.matrix.data
    return float(np.abs(values).max(initial=0.0))


def squared_lengths(block: Block) -> Floats:
    """The squared length of each row."""
    if isinstance(block, DenseBlock):
        return np.asarray(np.einsum("ij,ij->i", block.values, block.values))
    return np.asarray(block.matrix.multiply(block.matrix).sum(axis=1)).ravel()


def inner_products(left: Block, right: Block) -> Floats:
    """The inner product of each row of `left` with each row of `right`."""
    product = left.unchecked @ right.unchecked.T
    return np.asarray(product if isinstance(left, DenseBlock) else product.toarray())


def squared_distances(block: Block) -> Floats:
    """The squared distances between all pairs of rows."""
    if isinstance(block, DenseBlock):
        from scipy.spatial.distance import cdist

        return np.asarray(cdist(block.values, block.values, "sqeuclidean"))
    own = squared_lengths(block)
    squares = own[:, None] + own - 2 * inner_products(block, block)
    np.fill_diagonal(squares, 0.0)
    return np.asarray(np.maximum(squares, 0.0))


def with_lengths(block: Block, factor: float) -> Block:
    """Rows prepared for `scaled_distances`: dense ones as [y, 1, -factor |y|^2], so that one product gives all distances."""
    if isinstance(block, SparseBlock):
        return block
    ones = np.ones((block.n_rows, 1))
    return block_of(
        np.concatenate([block.values, ones, -factor * squared_lengths(block)[:, None]], axis=1), block.start
    )


def scaled_distances(left: Block, right: Block, factor: float) -> Floats:
    """-factor |x - y|^2 for every pair of rows prepared by `with_lengths` with the same factor; a new array."""
    if isinstance(left, SparseBlock):
        found = 2 * factor * inner_products(left, right)
        found -= factor * squared_lengths(left)[:, None]
        found -= factor * squared_lengths(right)
        return np.asarray(found)
    x, y, d = left.values, right.dense(), left.n_columns - 2
    turned = np.concatenate([x[:, :d] * (2 * factor), x[:, d + 1 :], x[:, d : d + 1]], axis=1)
    found = turned @ y.T
    # Where the terms nearly cancel, subtract first, if it can matter: with distant rows or a large factor.
    greatest = -float(x[:, -1].min(initial=0.0) + y[:, -1].min(initial=0.0))
    if 4e-16 * greatest * (d + 2) >= _HARMLESS:
        row, column = np.nonzero(found > -1e-4 * (-x[:, -1][:, None] - y[:, -1]))
        for some in np.array_split(np.arange(len(row)), len(row) * d // 4_000_000 + 1):
            gap = x[row[some], :d] - y[column[some], :d]
            found[row[some], column[some]] = -factor * np.einsum("ij,ij->i", gap, gap)
    return np.asarray(found)


# ---------------------------------------------------------------- storage


def to_arrays(block: Block) -> Any:
    """Rows in a form that can be stored: an array, or the arrays and shape of a CSR matrix."""
    if isinstance(block, DenseBlock):
        return block.values
    return block.matrix.data, block.matrix.indices, block.matrix.indptr, np.array(block.matrix.shape)


def from_arrays(arrays: Any) -> Block:
    """The rows from the result of `to_arrays`."""
    if isinstance(arrays, np.ndarray):
        return block_of(arrays)
    import scipy.sparse as sp

    data, indices, indptr, shape = arrays
    return block_of(sp.csr_array((data, indices, indptr), shape=tuple(shape)))


def stored_like(known: Block, block: Block) -> Block:
    """The rows of a block, converted to dense or sparse to match `known`."""
    if isinstance(known, DenseBlock):
        return block_of(block.dense(), block.start, block.weights)
    import scipy.sparse as sp

    return block_of(sp.csr_array(block.rows), block.start, block.weights)
