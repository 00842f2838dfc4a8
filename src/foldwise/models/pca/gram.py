"""Wide data, more columns than rows: diagonalise the n x n Gram matrix of the rows instead of the d x d covariance.

The centred rows are kept in memory (there are fewer of them than columns) and walked over in strips of columns, which fold
like blocks of rows do.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from foldwise.data.block import Block, DenseBlock, Floats
from foldwise.data.source import Piece, RowRange
from foldwise.fold import blas
from foldwise.fold.passes import Passes
from foldwise.models.pca.covariance import leading
from foldwise.models.pca.solver import Solver, SolverOptions, floor_of_products, floor_of_rows, lengths, rounding_of
from foldwise.models.pca.spectrum import Spectrum
from foldwise.stats.column_moments import ColumnMoments
from foldwise.stats.scatter_product import ScatterProduct

_STRIP_BYTES = 8 << 20


class Gram(Solver):
    """Two passes over the rows, which must be dense; chosen by "auto", and in the place of "covariance_eigh"."""

    name = "gram"

    def reads_again(self, *, checkpoint: bool) -> bool:
        """For the means, then for the rows."""
        return True

    def solve(self, passes: Passes, options: SolverOptions) -> Spectrum:
        """Fold over strips of columns: the Gram matrix, the directions, and how good they are."""
        columns = passes.fold(ColumnMoments.of)
        scale, k = options.resolve(columns)
        # Weights are brought to one on average, so that their roots stay in the range of float32.
        average = columns.weight / columns.rows
        rows = passes.rows(partial(_centred, centre=columns.centre, scale=scale, average=average, wide=options.wide))
        strips = passes.over(ColumnStrips(rows), here=True)
        n, d = rows.shape
        divisor = (columns.weight - options.ddof) / average

        gram = strips.fold(_outer_product).value
        with blas.single(n**3):
            _, codes, _ = leading(gram, min(k, n))
        raw = strips.fold(partial(_transposed_times, codes=codes)).value
        with blas.single(d * k * k):
            # Householder's QR makes directions orthonormal even where a variance is nothing but rounding.
            # Weights can stand for more rows than there are: any further directions have no variance.
            beyond = np.random.default_rng(options.seed).standard_normal((d, k - raw.shape[1]))
            directions, _ = np.linalg.qr(np.hstack([raw, beyond]))
        images = strips.fold(partial(_times, directions=directions)).value
        applied = strips.fold(partial(_transposed_times, codes=images)).value / divisor
        variances = np.einsum("ij,ij->j", images, images) / divisor
        order = np.argsort(-variances, kind="stable")
        directions, applied, variances = directions[:, order], applied[:, order], variances[order]
        largest = float(variances.max(initial=0.0))
        return Spectrum.of(
            columns,
            options,
            variances=variances,
            directions=directions.T,
            residuals=lengths(applied - directions * variances),
            rounding=rounding_of(rows.dtype, d) * options.total_variance(columns),
            floor=max(floor_of_products(np.float64, n, largest), floor_of_rows(rows.dtype, n, largest)),
        )


class ColumnStrips:
    """The columns of a matrix in memory as a source: its blocks are strips of them in float64, `start` the first column."""

    where = "strips of columns"
    names: tuple[str, ...] | None = None
    left_out: tuple[str, ...] = ()
    sparse = slow = False
    in_memory = True
    n_rows: int | None = None  # strips do not follow the grid of rows, by which small tables are recognised
    dtype: np.dtype[np.floating] = np.dtype(np.float64)

    def __init__(self, rows: NDArray[Any]) -> None:
        self._rows, self.n_columns = rows, rows.shape[1]
        self._width = max(1, _STRIP_BYTES // (8 * len(rows)))

    def pieces(self, first: int = 0, last: int | None = None) -> Iterator[Piece]:
        """The strips to load."""
        for start in range(0, self.n_columns, self._width)[first:last]:
            yield RowRange(self, start, start + self._width)

    def load(self, start: int, stop: int) -> Block:
        """The strip of columns from `start` to `stop` - 1."""
        return DenseBlock(self._rows[:, start:stop].astype(np.float64), start)

    def fingerprint(self) -> str:
        """No checkpoint is tied to strips."""
        raise NotImplementedError


@dataclass(frozen=True)
class _Stack:
    """Strips of a tall matrix, one below the other."""

    value: Floats

    def merge(self, other: _Stack) -> _Stack:
        return _Stack(np.vstack([self.value, other.value]))


def _centred(block: Block, *, centre: Floats, scale: Floats | None, average: float, wide: bool) -> NDArray[Any]:
    assert isinstance(block, DenseBlock)
    block = block.astype(np.float64) if wide and block.values.dtype == np.float32 else block
    rows = block.centred(centre, scale)
    if block.weights is not None:
        rows *= np.sqrt(block.weights / average)[:, None].astype(rows.dtype)
    return rows


def _outer_product(strip: Block) -> ScatterProduct:
    return ScatterProduct(strip.dense() @ strip.dense().T)


def _times(strip: Block, *, directions: Floats) -> ScatterProduct:
    return ScatterProduct(strip.dense() @ directions[strip.start : strip.start + strip.n_columns])


def _transposed_times(strip: Block, *, codes: Floats) -> _Stack:
    return _Stack(strip.dense().T @ codes)
