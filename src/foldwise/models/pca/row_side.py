"""Krylov seen from the rows, for sparse data with fewer rows than columns.

Z Z' has the eigenvalues of Z'Z, and its vectors are as long as there are rows: where columns are words, a basis of such
vectors is several times smaller, and so is the work of keeping it orthonormal.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from foldwise.data.block import Block, Floats, SparseBlock
from foldwise.data.source import n_blocks
from foldwise.fold.passes import Passes
from foldwise.models.pca.lanczos import orthonormal
from foldwise.stats.scatter_product import ScatterProduct, StackedRows

_FEWER = 0.5  # rows per column, at most
_STRIP = 16  # columns of a product that are worth a thread


@dataclass(frozen=True)
class RowSide:
    """Products with Z Z', and from its vectors to directions; Z = (X - centre) * factor times the roots of the weights."""

    passes: Passes
    centre: Floats
    factor: Floats | None

    @staticmethod
    def worth_it(passes: Passes) -> bool:
        """Whether vectors are much shorter on this side."""
        n = passes.source.n_rows
        return bool(passes.source.sparse and n is not None and n <= _FEWER * passes.source.n_columns)

    @property
    def length(self) -> int:
        """Of a vector."""
        n = self.passes.source.n_rows
        assert n is not None
        return n

    def times(self, block: Floats) -> Floats:
        """Z Z' block."""
        tasks = [partial(_project, basis=each, centre=self.centre, factor=self.factor) for each in self._back(block)]
        return np.hstack([each.value for each in self.passes.fold_each(tasks)])

    def directions(self, vectors: Floats) -> Floats:
        """Z' vectors, as orthonormal columns."""
        return orthonormal(np.hstack(self._back(vectors)))

    def _back(self, block: Floats) -> list[Floats]:
        strips = shared_out(self.passes, block)
        task = partial(_back, centre=self.centre, factor=self.factor)
        return [each.value for each in self.passes.fold_each([task] * len(strips), besides=strips)]


def shared_out(passes: Passes, block: Floats) -> list[NDArray[np.float64]]:
    """The block, cut into strips of columns if there are too few blocks of rows for all threads.

    A column of a product does not depend on the columns beside it: how they are cut changes no bit.
    """
    blocks, threads = n_blocks(passes.source) or 1, passes.n_threads
    parts = 1 if blocks >= 2 * threads or not passes.source.in_memory else min(2 * threads, block.shape[1] // _STRIP)
    edges = np.arange(max(parts, 1) + 1) * block.shape[1] // max(parts, 1)
    return [np.ascontiguousarray(block[:, a:b]) for a, b in itertools.pairwise(edges)]


def _back(block: Block, codes: Floats, *, centre: Floats, factor: Floats | None) -> ScatterProduct:
    assert isinstance(block, SparseBlock)
    return ScatterProduct(block.projected_back(np.ascontiguousarray(codes), centre, factor))


def _project(block: Block, *, basis: Floats, centre: Floats, factor: Floats | None) -> StackedRows:
    assert isinstance(block, SparseBlock)
    return StackedRows(block.projected(basis, centre, factor))
