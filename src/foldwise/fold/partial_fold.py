"""An incremental fold: rows arrive in batches of any size and are still cut into the fixed blocks."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from typing import Any, Generic

import numpy as np
from numpy.typing import NDArray

from foldwise.data.block import Block, block_of, stack
from foldwise.data.block_grid import rows_per_block
from foldwise.data.source import Source
from foldwise.fold import blas
from foldwise.fold.tree import S, Tree


class PartialFold(Generic[S]):
    """The merged statistic of all rows pushed so far, bit-identical to a single fold over them."""

    def __init__(self, of: Callable[[Block], S], source: Source) -> None:
        """`source` is the first batch; later batches must have the same columns, dtype and kind."""
        self.dtype, self.sparse, self.n_columns = source.dtype, source.sparse, source.n_columns
        self._of = of
        self._block_rows = rows_per_block(source.n_columns, source.dtype, sparse=source.sparse)
        self._tree: Tree[S] = Tree()
        self._blocks = 0
        self._waiting: list[tuple[Any, NDArray[np.float64]]] = []
        self._weighted = False
        self.rows = 0

    def pushed(self, source: Source) -> PartialFold[S]:
        """The fold with one more batch; this one stays as it is, for an error or for copies that share it."""
        more = copy(self)
        more._tree, more._waiting = self._tree.copy(), list(self._waiting)
        more._push(source)
        return more

    def _push(self, source: Source) -> None:
        for piece in source.pieces():
            block = piece.load()
            self._weighted |= block.weights is not None
            weights = np.ones(block.n_rows) if block.weights is None else block.weights
            start = 0
            while start < block.n_rows:
                # The memory of the batch belongs to the caller, so rows that wait for the next batch are copied.
                take = min(block.n_rows - start, self._block_rows - self.rows % self._block_rows)
                rows = block.rows[start : start + take]
                self._waiting.append((rows.astype(self.dtype, copy=True), weights[start : start + take].copy()))
                start += take
                self.rows += take
                if self.rows % self._block_rows == 0:
                    with blas.single():
                        self._tree.add(self._blocks, self._of(self._pending()))
                    self._blocks += 1
                    self._waiting.clear()

    def value(self) -> S:
        """The statistic so far; more batches can be pushed afterwards."""
        tree = self._tree
        if self._waiting:
            tree, block = tree.copy(), self._pending()
            with blas.single_for(block.n_rows, block.n_columns):
                tree.add(self._blocks, self._of(block))
        value = tree.result()
        assert value is not None
        return value

    def _weights(self) -> NDArray[np.float64]:
        return np.concatenate([weights for _, weights in self._waiting])

    def _pending(self) -> Block:
        start = self._blocks * self._block_rows
        weights = self._weights() if self._weighted else None
        return block_of(stack([rows for rows, _ in self._waiting]), start, weights)
