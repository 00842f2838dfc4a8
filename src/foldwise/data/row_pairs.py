"""Pairs of rows in hand, dense or sparse: their products and distances, and where to see rows from so that digits are kept.

Like `block.py`, it knows how rows are stored, so that whoever compares them need not.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from foldwise import kernels
from foldwise.data.block import Block, DenseBlock, Floats, SparseBlock, block_of
from foldwise.kernels.targets import Rescaling, rescaling_around, rescaling_within

_FAR = 4.0  # mean squared, in variances: then at most a fifth of a column can be zeros
_SMALL_PRODUCT, _ENOUGH, _TILES = 1e6, 1024, 48  # multiplications, columns that are enough for any product, and columns
_TABLE, _PAIRS = 2_000_000, 65_536  # distances in memory at a time; pairs of sparse rows that are subtracted at a time
_CANCELS = 1e-3  # of the squared lengths of two rows: below this, their squared distance has lost digits
_HARMLESS = 1e-12  # an absolute error of a scaled distance that changes nothing

# ---------------------------------------------------------------- where rows are seen from


def rescaling_of(block: Block) -> Rescaling:
    """A rescaling about the mean of some rows; sparse ones are shifted only as `shift_of_sparse` says."""
    if isinstance(block, DenseBlock):
        return rescaling_around(block.values)
    exponent = math.frexp(largest(block))[1]
    scale = 2.0 ** max(-1000, min(-exponent, 1000))  # squares of values as they are may leave float64
    scaled = block.times_number(scale, np.float64)
    weight, mean, squares, low, high = scaled.column_moments_and_extent()
    return rescaling_within(
        shift_of_sparse(mean[0], squares, weight) / scale, low / scale, high / scale, block.matrix.dtype
    )


def shift_of_sparse(mean: Floats, squares: Floats, weight: float) -> Floats:
    """The mean in columns where it is far from 0, else 0.

    A column whose mean is large beside its spread has few zeros, so that a shift fills in little; and only there would
    products of rows as they are lose digits.
    """
    return np.asarray(np.where(mean**2 * weight > _FAR * squares, mean, 0.0))


def rescaled(block: Block, rescaling: Rescaling) -> Block:
    """Rows as y = (x - pivot) * scale in float64; sparse ones have stored values in all shifted columns."""
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
    """The product of every row on the left with every row on the right."""
    if isinstance(left, DenseBlock):
        return _matmul(left.values, right.dense())
    return np.asarray((left.unchecked @ right.unchecked.T).toarray())


def _matmul(left: Floats, right: Floats) -> Floats:
    """left @ right.T, in which a value does not depend on how many others are computed beside it.

    BLAS takes other ways for small products and for the last few columns, which round differently (seen with OpenBLAS on
    AVX-512). So there are always enough columns for the usual way, and a multiple of all its tiles.
    """
    n, least = len(right), int(_SMALL_PRODUCT / max(1, left.shape[0] * left.shape[1])) + 1
    padded = -(-max(n, min(least, _ENOUGH)) // _TILES) * _TILES
    if padded == n:
        return np.asarray(left @ right.T)
    right = np.concatenate([right, np.zeros((padded - n, right.shape[1]))])
    return np.ascontiguousarray((left @ right.T)[:, :n])


def squared_distances(block: Block) -> Floats:
    """The squared distances of all rows to each other."""
    if isinstance(block, DenseBlock):
        from scipy.spatial.distance import cdist

        return np.asarray(cdist(block.values, block.values, "sqeuclidean"))
    own = squared_lengths(block)
    squares = own[:, None] + own - 2 * inner_products(block, block)
    np.fill_diagonal(squares, 0.0)
    return np.asarray(np.maximum(squares, 0.0))


def with_lengths(block: Block, factor: float) -> Block:
    """Rows as `scaled_distances` takes them: dense ones as [y, 1, -factor |y|^2], so that one product gives all distances."""
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
    found = _matmul(turned, y)
    # Where the terms nearly cancel, differences are taken first, if that can matter: with far rows or a large factor.
    greatest = -float(x[:, -1].min(initial=0.0) + y[:, -1].min(initial=0.0))
    if 4e-16 * greatest * (d + 2) >= _HARMLESS:
        row, column = np.nonzero(found > -1e-4 * (-x[:, -1][:, None] - y[:, -1]))
        for some in np.array_split(np.arange(len(row)), len(row) * d // 4_000_000 + 1):
            gap = x[row[some], :d] - y[column[some], :d]
            found[row[some], column[some]] = -factor * np.einsum("ij,ij->i", gap, gap)
    return np.asarray(found)


def distance_sums(points: Block, block: Block, labels: NDArray[np.int32], n_clusters: int, scale: float) -> Floats:
    """The weighted sum of the distances from each point to the rows of each cluster; both are multiplied by `scale`."""
    if isinstance(points, DenseBlock):
        scaled = np.ascontiguousarray(points.values.astype(np.float64) * scale)
        return kernels.distance_sums(scaled, block.rows, block.weights, labels, n_clusters, scale)
    import scipy.sparse as sp

    left, right = points.times_number(scale, np.float64), block.times_number(scale, np.float64)
    weights = np.ones(block.n_rows) if block.weights is None else block.weights
    members = sp.csr_array((weights, labels, np.arange(block.n_rows + 1)), shape=(block.n_rows, n_clusters))
    out, step = np.empty((points.n_rows, n_clusters)), max(1, _TABLE // max(1, block.n_rows))
    for at in range(0, points.n_rows, step):
        out[at : at + step] = np.sqrt(_sparse_squares(left.take(slice(at, at + step)), right)) @ members
    return out


def observed_distance_sums(
    points: Block, block: Block, labels: NDArray[np.int32], n_clusters: int, scale: float
) -> tuple[Floats, Floats]:
    """The same for dense rows with missing cells, over the cells in common, and the weights of the rows compared.

    Squares are multiplied by the number of columns over that of common cells; rows without any are not compared.
    """
    scaled = np.ascontiguousarray(points.dense().astype(np.float64) * scale)
    return kernels.observed_distance_sums(scaled, block.rows, block.weights, labels, n_clusters, scale)


def _sparse_squares(left: Block, right: Block) -> Floats:
    """Squared distances between sparse rows; where the terms nearly cancel, from differences."""
    both = squared_lengths(left)[:, None] + squared_lengths(right)
    found = both - 2 * inner_products(left, right)
    row, column = np.nonzero(found < _CANCELS * both)
    for some in np.array_split(np.arange(len(row)), len(row) // _PAIRS + 1):
        gap = left.unchecked[row[some]] - right.unchecked[column[some]]
        found[row[some], column[some]] = np.asarray(gap.multiply(gap).sum(axis=1)).ravel()
    return np.asarray(found)


# ---------------------------------------------------------------- rows that are kept


def to_arrays(block: Block) -> Any:
    """Rows as a file can keep them: an array, or the arrays of a CSR matrix and its shape."""
    if isinstance(block, DenseBlock):
        return block.values
    return block.matrix.data, block.matrix.indices, block.matrix.indptr, np.array(block.matrix.shape)


def from_arrays(arrays: Any) -> Block:
    """The rows that `to_arrays` took apart."""
    if isinstance(arrays, np.ndarray):
        return block_of(arrays)
    import scipy.sparse as sp

    data, indices, indptr, shape = arrays
    return block_of(sp.csr_array((data, indices, indptr), shape=tuple(shape)))


def stored_like(known: Block, block: Block) -> Block:
    """The rows of a block, dense or sparse as the known ones are."""
    if isinstance(known, DenseBlock):
        return block_of(block.dense(), block.start, block.weights)
    import scipy.sparse as sp

    return block_of(sp.csr_array(block.rows), block.start, block.weights)
