"""Wide data, more columns than rows: diagonalise the n x n Gram matrix of the rows instead of the d x d covariance.

The centred rows are held in memory (there are fewer of them than columns) and walked over in strips of columns, which fold
like blocks of rows do.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from foldwise.data.block import Block, DenseBlock, Floats
from foldwise.data.source import Piece
from foldwise.fold import blas
from foldwise.fold.passes import Passes
from foldwise.models.pca.covariance import leading
from foldwise.models.pca.spectrum import EPS, Plan, Spectrum, check, components, lengths, spread
from foldwise.stats.column_moments import ColumnMoments
from foldwise.stats.scatter_product import ScatterProduct

_STRIP_BYTES = 8 << 20


def solve(run: Passes, plan: Plan) -> Spectrum:
    """Two passes over the rows; sparse rows are not for this solver."""
    columns = run.fold(ColumnMoments.of)
    check(columns.weight, columns.rows, columns.squares, plan)
    scale = spread(columns.weight, columns.squares, plan)
    # Weights are brought to one on average, so that their roots stay in the range of float32.
    average = columns.weight / columns.rows
    rows = run.rows(partial(_centred, centre=columns.mean, scale=scale, average=average))
    n, d = rows.shape
    k = components(plan, columns.rows, columns.weight, d)
    divisor = (columns.weight - plan.ddof) / average

    gram = run.fold_pieces(_strips(rows), lambda strip: ScatterProduct(_values(strip) @ _values(strip).T)).value
    with blas.single(n**3):
        _, codes, _ = leading(gram, min(k, n))
    raw = run.fold_pieces(_strips(rows), lambda strip: _Stack(_values(strip).T @ codes)).value
    with blas.single(d * k * k):
        # Householder's QR makes directions orthonormal even where a variance is nothing but rounding.
        # Weights can stand for more rows than there are: what is then asked for beyond them has no variance.
        beyond = np.random.default_rng(plan.seed).standard_normal((d, k - raw.shape[1]))
        directions, _ = np.linalg.qr(np.hstack([raw, beyond]))
    images = run.fold_pieces(
        _strips(rows), lambda strip: ScatterProduct(_values(strip) @ directions[_columns(strip)])
    ).value
    applied = run.fold_pieces(_strips(rows), lambda strip: _Stack(_values(strip).T @ images)).value / divisor
    variances = np.einsum("ij,ij->j", images, images) / divisor
    order = np.argsort(-variances, kind="stable")
    directions, applied, variances = directions[:, order], applied[:, order], variances[order]
    return Spectrum.of(
        columns,
        plan,
        variances=variances,
        directions=directions.T,
        residuals=lengths(applied - directions * variances),
        floor=n * EPS * float(variances.max(initial=0.0)),
    )


class _Stack:
    """Strips of a tall matrix, one below the other."""

    def __init__(self, value: Floats) -> None:
        self.value = value

    def merge(self, other: _Stack) -> _Stack:
        return _Stack(np.vstack([self.value, other.value]))


def _centred(block: Block, *, centre: Floats, scale: Floats | None, average: float) -> NDArray[Any]:
    assert isinstance(block, DenseBlock)
    rows = block.centred(centre, scale)
    if block.weights is not None:
        rows *= np.sqrt(block.weights / average)[:, None].astype(rows.dtype)
    return rows


def _strips(rows: NDArray[Any]) -> Iterator[Piece]:
    """Strips of columns as blocks, in float64; `start` is the first column."""
    n, d = rows.shape
    width = max(1, _STRIP_BYTES // (8 * n))
    for start in range(0, d, width):
        yield partial(_strip, rows, start, start + width)


def _strip(rows: NDArray[Any], start: int, stop: int) -> Block:
    return DenseBlock(rows[:, start:stop].astype(np.float64), start)


def _values(strip: Block) -> Floats:
    return strip.dense()


def _columns(strip: Block) -> slice:
    return slice(strip.start, strip.start + strip.n_columns)
