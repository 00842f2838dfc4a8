"""Where Krylov starts for many rows: the leading directions of a few thousand of them, spread over the table.

Steps on a sample cost next to nothing, and with the directions that they give the first passes over all rows are not spent on
finding out what any few rows show. It is only a start: what the sample lacks, the steps find.

The sample is about its own mean, since that of all rows is not known yet. So the pass that finds it can multiply with the
start as well: by how far the means are apart, the product is corrected afterwards.

Some more rows show whether these directions mean anything: if the rows vary along the later ones no more than along any
direction, as those of noise do, the variances there are so alike that no few steps would tell them apart.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from foldwise.data.arrays import ArraySource
from foldwise.data.block import Floats
from foldwise.data.recut import cut_every
from foldwise.errors import DataError
from foldwise.fold import blas
from foldwise.fold.passes import Passes
from foldwise.models.pca import tall
from foldwise.models.pca.lanczos import Ritz, empty, enlarged, orthonormal, random_block
from foldwise.models.pca.solver import SolverOptions
from foldwise.models.pca.units import in_range, units
from foldwise.stats.column_moments import ColumnMoments
from foldwise.stats.scatter_product import ProductAndColumns, ScatterProduct

_ROWS, _FEWER_ROWS = 4096, 1024
_WORTH = 8  # times as many rows as the sample, or its steps would cost as much as they save
_FEWER_VALUES = 8_000_000  # of a sample with fewer than 4096 rows, or more: copies of longer ones take more time than they save
_BLOCK = 1024  # rows: the usual blocks are so large that there is one for all threads
_STEPS, _MORE_STEPS = 4, 6  # the more if directions share columns of the block
_RANDOM = 2  # vectors of the block that do not come from the sample: a guard against what it lacks
_JUDGES = 4  # one row besides the sample for so many of it
_ALIKE = 0.25  # to one over it: factors from the sample may differ by so much from the right ones
_STANDS_OUT = 1.25  # times the variance along an average direction: more than so few rows show of noise


def worth_it(passes: Passes, ddof: float) -> bool:
    """Whether rows are dense, many, and without weights: a sample by number would not do justice to these."""
    n = passes.source.n_rows
    if passes.source.sparse or n is None or n <= ddof or _size(n, passes.source.n_columns) == 0:
        return False
    first = next(iter(passes.source.pieces(0, 1)), None)
    return first is not None and first.load().weights is None


def _size(n: int, d: int) -> int:
    """How many rows the sample has; 0 if it is not worth it."""
    if n >= 2 * _WORTH * 2 * _ROWS and 2 * _ROWS * d <= _FEWER_VALUES:
        return 2 * _ROWS
    rows = min(_ROWS, n // _WORTH)
    return rows if rows == _ROWS or (rows >= _FEWER_ROWS and rows * d <= _FEWER_VALUES) else 0


@dataclass(frozen=True)
class FirstStep:
    """An orthonormal block, and the scatter matrix times it."""

    block: Floats
    product: Floats


@dataclass(frozen=True)
class Start:
    """Orthonormal columns, leading directions of the sample and a few random ones; and whether the k-th means nothing.

    The sample was centred, multiplied with the factors, and perhaps multiplied in float64 (`wide`).
    """

    block: Floats
    flat: bool
    centre: Floats
    factor: Floats | None
    wide: bool

    def opened(self, passes: Passes) -> tuple[ColumnMoments, Floats]:
        """The moments of the columns, and the product with the rows as they were taken here: one pass."""
        task = partial(ProductAndColumns.of, basis=self.block, centre=self.centre, factor=self.factor, wide=self.wide)
        found = passes.fold(task)
        return found.columns, found.value

    def first_step(self, columns: ColumnMoments, factor: Floats | None, product: Floats) -> FirstStep | None:
        """The first step, from the product with the rows as they were taken here; None if it would lose digits.

        With z the rows as they should be, and ratio z + gap those that were multiplied: another block than the one here goes
        with the same product.
        """
        ones = np.ones(len(columns.squares))
        own, right = (ones if each is None else each for each in (self.factor, factor))
        ratio = right / own
        gap = ((columns.centre[0] - self.centre[0]) + (columns.centre[1] - self.centre[1])) * own
        size = float((columns.squares * own**2).sum())
        if not (ratio.min() >= _ALIKE and ratio.max() <= 1 / _ALIKE and columns.weight * float(gap @ gap) <= size):
            return None
        product = (product - columns.weight * np.outer(gap, gap @ self.block)) * ratio[:, None]
        block = self.block / ratio[:, None]
        with blas.single():
            turn = np.linalg.inv(np.linalg.cholesky(tall.transposed_times(block, block))).T
            return FirstStep(tall.times(block, turn), tall.times(product, turn))


def found(passes: Passes, options: SolverOptions, k: int, width: int, *, judge: bool) -> Start | None:
    """The start that a sample of the rows gives to a search for k directions; None if it has values that are no numbers."""
    n, d, seed = passes.source.n_rows, passes.source.n_columns, options.seed
    assert n is not None
    size = _size(n, d)
    numbers = _spread(n, size, seed)
    sample, judges = (
        passes.over(cut_every(ArraySource(passes.take(which)), _BLOCK), here=True)
        for which in (numbers[:size], numbers[size:])
    )
    try:
        columns = sample.fold(ColumnMoments.of)
    except DataError:
        return None  # the pass over all rows finds out which
    columns = replace(columns, weight=float(n), squares=columns.squares * (n / size))  # it stands for all
    if not np.isfinite(columns.squares).all():
        return None
    unit, factor = units(columns, options.deviations(columns), options.ddof)
    wide = not (options.arithmetic(passes.source) == np.float32 and in_range(columns, factor, unit))
    product = partial(ScatterProduct.of, centre=columns.centre, factor=factor, wide=wide)

    def times(block: Floats) -> Floats:
        return sample.fold(partial(product, basis=np.ascontiguousarray(block))).value / size

    with blas.single():
        state = empty(random_block(d, width, seed))
        own = width - _RANDOM
        shares = (
            2 if k > own else 1
        )  # a column of the block can stand for two directions: the second step tells them apart
        steps = _STEPS if shares == 1 else _MORE_STEPS
        for step in range(1, steps + 1):
            state = enlarged(state, times, passes.n_threads, raw=step == steps)
            if not state["block"].shape[1]:
                break
        leading = tall.times(state["basis"], Ritz.of(state).vectors[:, : max(shares * own, k)], passes.n_threads)
        first = leading[:, :own]
        if shares == 2:
            second = leading[:, own : 2 * own]
            first = np.hstack([first[:, : second.shape[1]] + second, first[:, second.shape[1] :]])
        guard = np.random.default_rng((seed, 1)).standard_normal((d, width - first.shape[1]))
        block = orthonormal(np.hstack([first, guard]))
        flat = judge and _flat(judges, columns, factor, leading[:, k // 2 : k], wide=wide)
        return Start(block, flat, columns.centre, factor, wide)


def _flat(judges: Passes, columns: ColumnMoments, factor: Floats | None, directions: Floats, *, wide: bool) -> bool:
    """Whether rows that had no part in these directions vary along them no more than along any."""
    if not directions.size:
        return False
    directions = np.ascontiguousarray(directions)
    product = partial(ScatterProduct.of, basis=directions, centre=columns.centre, factor=factor, wide=wide)
    along = float(np.sum(directions * judges.fold(product).value)) / (judges.source.n_rows or 1) / directions.shape[1]
    squares = columns.squares if factor is None else columns.squares * factor**2
    return bool(along < _STANDS_OUT * float(squares.sum()) / columns.weight / len(squares))


def _spread(n: int, size: int, seed: int) -> NDArray[np.intp]:
    """One row of each of as many equal stretches, at random: every tenth or so would show one kind where kinds alternate.

    Then the rows that judge them: of some of the stretches, others.
    """
    edges, rng = np.arange(size + 1) * n // size, np.random.default_rng((seed, 2))
    lengths = np.diff(edges)
    places = (rng.random(size) * lengths).astype(np.intp)
    others = (places + 1 + (rng.random(size) * (lengths - 1)).astype(np.intp)) % lengths
    return np.concatenate([edges[:-1] + places, (edges[:-1] + others)[::_JUDGES]])
