"""Where Krylov starts for many rows: the leading directions of a few thousand of them, spread over the table.

Steps on a sample cost next to nothing, and with the directions that they give the first passes over all rows are not spent on
finding out what any few rows show. It is only a start: what the sample lacks, the steps find.

Some more rows show whether these directions mean anything: if the rows vary along the later ones no more than along any
direction, as those of noise do, the variances there are so alike that no few steps would tell them apart.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

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
_RANDOM = 2  # vectors of the block that do not come from the sample: a guard against what it lacks
_JUDGES = 4  # one row besides the sample for so many of it
_STANDS_OUT = 1.25  # times the variance along an average direction: more than so few rows show of noise


def worth_it(passes: Passes, columns: ColumnMoments) -> bool:
    """Whether rows are dense, many, and of weight one: a sample by number would not do justice to weights."""
    n = passes.source.n_rows
    return bool(
        not passes.source.sparse and n is not None and n >= _WORTH * _ROWS and columns.weight == n == columns.rows
    )


@dataclass(frozen=True)
class Start:
    """Orthonormal columns, leading directions of the sample and a few random ones; and whether the k-th means nothing."""

    block: Floats
    flat: bool


def found(
    passes: Passes, columns: ColumnMoments, factor: Floats | None, k: int, width: int, seed: int, *, wide: bool
) -> Start:
    """The start that a sample of the rows gives to a search for k directions."""
    n, d = passes.source.n_rows, passes.source.n_columns
    assert n is not None
    rows = passes.take(_spread(n, seed))
    sample = passes.over(ArraySource(rows[:_ROWS]), here=True)
    product = partial(ScatterProduct.of, centre=columns.centre, factor=factor, wide=wide)

    def times(block: Floats) -> Floats:
        return sample.fold(partial(product, basis=np.ascontiguousarray(block))).value / _ROWS

    with blas.single():
        state = empty(random_block(d, width, seed))
        for _ in range(_STEPS):
            state = enlarged(state, times, passes.n_threads)
            if not state["block"].shape[1]:
                break
        leading = state["basis"] @ Ritz.of(state).vectors[:, : max(width, k)]
        guard = np.random.default_rng((seed, 1)).standard_normal((d, max(_RANDOM, width - leading.shape[1])))
        block = orthonormal(np.hstack([leading[:, : width - guard.shape[1]], guard]))
        return Start(block, _flat(rows[_ROWS:], columns, factor, leading[:, k // 2 : k]))


def _flat(rows: NDArray[Any], columns: ColumnMoments, factor: Floats | None, directions: Floats) -> bool:
    """Whether rows that had no part in these directions vary along them no more than along any."""
    factors = np.ones(len(columns.mean)) if factor is None else factor
    codes = ((rows.astype(np.float64) - columns.centre[0]) * factors) @ directions
    average = float(columns.squares @ factors**2) / columns.weight / len(factors)
    return bool(codes.size and (codes * codes).mean() < _STANDS_OUT * average)


def _spread(n: int, seed: int) -> NDArray[np.intp]:
    """One row of each of as many equal stretches, at random: every tenth or so would show one kind where kinds alternate.

    Then the rows that judge them: of some of the stretches, others.
    """
    edges, rng = np.arange(_ROWS + 1) * n // _ROWS, np.random.default_rng((seed, 2))
    lengths = np.diff(edges)
    places = (rng.random(_ROWS) * lengths).astype(np.intp)
    others = (places + 1 + (rng.random(_ROWS) * (lengths - 1)).astype(np.intp)) % lengths
    return np.concatenate([edges[:-1] + places, (edges[:-1] + others)[::_JUDGES]])
