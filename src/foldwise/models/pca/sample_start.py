"""Where Krylov starts for many rows: the leading directions of a few thousand of them, spread over the table.

Steps on a sample cost next to nothing, and with the directions that they give the first passes over all rows are not spent on
finding out what any few rows show. It is only a start: what the sample lacks, the steps find.
"""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import NDArray

from foldwise.data.arrays import ArraySource
from foldwise.data.block import Floats
from foldwise.fold import blas
from foldwise.fold.passes import Passes
from foldwise.models.pca.lanczos import Ritz, empty, enlarged, orthonormal, random_block
from foldwise.stats.column_moments import ColumnMoments
from foldwise.stats.scatter_product import ScatterProduct

_ROWS = 4096
_WORTH = 8  # times as many rows as the sample, or its steps would cost as much as they save
_STEPS = 4
_RANDOM = 4  # vectors of the block that do not come from the sample: a guard against what it lacks


def worth_it(passes: Passes, columns: ColumnMoments) -> bool:
    """Whether rows are dense, many, and of weight one: a sample by number would not do justice to weights."""
    n = passes.source.n_rows
    return bool(
        not passes.source.sparse and n is not None and n >= _WORTH * _ROWS and columns.weight == n == columns.rows
    )


def directions(
    passes: Passes, columns: ColumnMoments, factor: Floats | None, width: int, seed: int, *, wide: bool
) -> Floats:
    """Orthonormal columns: leading directions of the sample, and a few random ones."""
    n = passes.source.n_rows
    assert n is not None
    rows = passes.take(_spread(n, seed))
    sample = passes.over(ArraySource(rows), here=True)
    product = partial(ScatterProduct.of, centre=columns.centre, factor=factor, wide=wide)

    def times(block: Floats) -> Floats:
        return sample.fold(partial(product, basis=np.ascontiguousarray(block))).value / _ROWS

    d = passes.source.n_columns
    with blas.single():
        state = empty(random_block(d, width, seed))
        for _ in range(_STEPS):
            state = enlarged(state, times)
            if not state["block"].shape[1]:
                break
        found = state["basis"] @ Ritz.of(state).vectors[:, : width - _RANDOM]
        guard = np.random.default_rng((seed, 1)).standard_normal((d, width - found.shape[1]))
        return orthonormal(np.hstack([found, guard]))


def _spread(n: int, seed: int) -> NDArray[np.intp]:
    """One row of each of as many equal stretches, at random: every tenth or so would show one kind where kinds alternate."""
    edges = np.arange(_ROWS + 1) * n // _ROWS
    places = np.random.default_rng((seed, 2)).random(_ROWS)
    return np.asarray(edges[:-1] + (places * np.diff(edges)).astype(np.intp))
