"""Krylov seen from the rows, for sparse data with fewer rows than columns.

Z Z' has the eigenvalues of Z'Z, and its vectors are as long as there are rows: where columns are words, a basis of such
vectors is several times smaller, and so is the work of keeping it orthonormal. What counts more: a copy of the data is turned
around, so that a product goes through the columns one by one, and what it gathers and adds to, vectors of rows, stays in the
cache, while vectors of columns do not.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from foldwise.data.block import Block, Floats, SparseBlock
from foldwise.data.source import Loaded, Piece, n_blocks
from foldwise.fold.passes import Passes
from foldwise.models.pca.lanczos import orthonormal
from foldwise.stats.scatter_product import ScatterProduct

_FEWER = 0.5  # rows per column, at most
_STRIP = 16  # columns of a product that are worth a thread
_STRIPS = 8  # of columns of the data, with about as many stored values each


@dataclass(frozen=True)
class RowSide:
    """Products with Z Z' and Z'Z; Z = (X - centre) * factor times the roots of the weights.

    Z' is `turned` less `middle` `roots`'.
    """

    turned: Passes
    middle: Floats  # one entry per column
    roots: Floats  # of the weights, one entry per row
    along: Floats  # turned' middle

    WIDTH: ClassVar[int] = 16  # vectors of a block: two lines of the cache for a row, whatever the number of components

    @staticmethod
    def worth_it(passes: Passes) -> bool:
        """Whether vectors are much shorter on this side."""
        n = passes.source.n_rows
        return bool(passes.source.sparse and n is not None and n <= _FEWER * passes.source.n_columns)

    @classmethod
    def of(cls, passes: Passes, centre: Floats, factor: Floats | None) -> RowSide:
        """Turns the rows around, in one pass."""
        pieces = passes.each(_as_it_is)
        weights = np.concatenate([np.ones(b.n_rows) if b.weights is None else b.weights for b in pieces])
        roots, factor = np.sqrt(weights), np.ones(passes.source.n_columns) if factor is None else factor
        source, pivot = _turned([block.matrix for block in pieces], roots, factor)
        middle = ((centre[0] - pivot) + centre[1]) * factor
        turned = passes.over(source, here=True)
        along = turned.fold(_back, beside=middle[:, None]).value[:, 0]
        return cls(turned, middle, roots, along)

    @property
    def length(self) -> int:
        """Of a vector."""
        return len(self.roots)

    def times(self, block: Floats) -> Floats:
        """Z Z' block."""
        block = np.ascontiguousarray(block)
        found = self.turned.fold(partial(_product, basis=block)).value
        sums = self.roots @ block
        found -= np.outer(self.along, sums)
        found += np.outer(self.roots, float(self.middle @ self.middle) * sums - self.along @ block)
        return found

    def directions(self, vectors: Floats) -> Floats:
        """Z' vectors, as orthonormal columns."""
        return orthonormal(self._to_columns(vectors), self.turned.n_threads)

    def over_columns(self, block: Floats) -> Floats:
        """Z'Z block."""
        codes = self.turned.fold(_back, beside=np.ascontiguousarray(block)).value
        codes -= np.outer(self.roots, self.middle @ block)
        return self._to_columns(codes)

    def _to_columns(self, vectors: Floats) -> Floats:
        found: Floats = self.turned.rows(partial(_project, basis=np.ascontiguousarray(vectors)))
        found -= self.middle[:, None] * (self.roots @ vectors)
        return found


class _Turned:
    """The columns of a sparse matrix as the rows of a source, in a few strips."""

    where = "columns of a sparse matrix"
    names: tuple[str, ...] | None = None
    left_out: tuple[str, ...] = ()
    slow = False
    sparse = in_memory = True
    n_rows: int | None = None  # strips do not follow the grid of rows, by which small tables are recognised
    dtype: np.dtype[np.floating] = np.dtype(np.float64)

    def __init__(self, columns: Any) -> None:
        self.n_columns = int(columns.shape[1])
        shares = np.arange(1, _STRIPS) * (columns.nnz + columns.shape[0]) / _STRIPS
        inner = np.searchsorted(columns.indptr[1:] + np.arange(columns.shape[0]), shares)
        edges = np.unique([0, *inner, columns.shape[0]])
        self._strips = [SparseBlock(columns[a:b], int(a)) for a, b in itertools.pairwise(edges)]

    def pieces(self, first: int = 0, last: int | None = None) -> Iterator[Piece]:
        """The strips."""
        return (Loaded(strip) for strip in self._strips[first:last])

    def fingerprint(self) -> str:
        """No checkpoint is tied to strips."""
        raise NotImplementedError


def _turned(rows: Sequence[Any], roots: Floats, factor: Floats) -> tuple[_Turned, Floats]:
    """The columns of these rows less a pivot, times their factors and the roots of the weights; and the pivot.

    Only a column that is stored in every row has a pivot other than zero: elsewhere it would fill the column, and the zeros
    keep the mean near the spread, unless a row that is not stored weighs next to nothing. `variance_errors_` cover that.
    """
    import scipy.sparse as sp

    columns = sp.csr_array(sp.vstack(rows, format="csr").astype(np.float64).tocsc().T)
    d, lengths = columns.shape[0], np.diff(columns.indptr)
    owner = np.repeat(np.arange(d, dtype=columns.indices.dtype), lengths)
    held = lengths if roots.all() else np.bincount(owner[roots[columns.indices] > 0], minlength=d)
    full = np.flatnonzero(held == max(int(np.count_nonzero(roots)), 1))
    pivot = np.zeros(d)
    pivot[full] = columns[full, [int(np.argmax(roots > 0))]] if len(full) else 0.0
    if pivot.any():
        columns.data -= pivot[owner]
    columns.data *= factor[owner] * roots[columns.indices]
    return _Turned(columns), pivot


def _as_it_is(block: Block) -> SparseBlock:
    assert isinstance(block, SparseBlock)
    return block


def _product(block: Block, *, basis: Floats) -> ScatterProduct:
    return ScatterProduct.of(block, basis=basis, centre=np.zeros((2, len(basis))))


def _back(block: Block, codes: Floats) -> ScatterProduct:
    assert isinstance(block, SparseBlock)
    return ScatterProduct(block.projected_back(codes, np.zeros((2, block.n_columns)), None))


def _project(block: Block, *, basis: Floats) -> Floats:
    assert isinstance(block, SparseBlock)
    return block.projected(basis, np.zeros((2, len(basis))), None)


def shared_out(passes: Passes, block: Floats) -> list[NDArray[np.float64]]:
    """The block, cut into strips of columns if there are too few blocks of rows for all threads.

    A column of a product does not depend on the columns beside it: how they are cut changes no bit.
    """
    blocks, threads = n_blocks(passes.source) or 1, passes.n_threads
    parts = 1 if blocks >= 2 * threads or not passes.source.in_memory else min(2 * threads, block.shape[1] // _STRIP)
    edges = np.arange(max(parts, 1) + 1) * block.shape[1] // max(parts, 1)
    return [np.ascontiguousarray(block[:, a:b]) for a, b in itertools.pairwise(edges)]
