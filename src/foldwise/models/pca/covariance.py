"""Solver `covariance_eigh`: fold the centred moments in one pass, then diagonalise a d x d matrix."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from foldwise.data.block import Floats
from foldwise.fold import blas, serial, threads
from foldwise.fold.passes import Passes
from foldwise.kernels.triangle import Spare
from foldwise.models.pca.all_directions import all_directions, even_parts
from foldwise.models.pca.solver import Solver, SolverOptions, floor_of_products, lengths, rounding_of
from foldwise.models.pca.spectrum import Spectrum
from foldwise.stats.moments import Moments
from foldwise.stats.packed_moments import PackedMoments

_WIDE = 1024  # columns from which the memory of the matrices matters; below, memory that is used again is quicker,
_NARROW = 64  # and here there is too little of it to matter
_TOGETHER = 128  # so few vectors have their residuals formed at a time, and so many columns are mirrored


class CovarianceEigh(Solver):
    """One pass, any number of rows."""

    name = "covariance_eigh"
    names = ("covariance_eigh",)

    def solve(self, passes: Passes, options: SolverOptions) -> Spectrum:
        """Fold the moments and diagonalise the covariance.

        Where variances are asked for that are lost in the rounding of float32 products, another pass forms these in float64.
        """
        dtype = options.arithmetic(passes.source)
        found = from_moments(folded(passes, options), options, dtype, passes.n_threads)
        if dtype == np.float64 or not _lost_in_rounding(found):
            return found
        wide = replace(options, wide=True)
        return from_moments(folded(passes, wide), wide, wide.arithmetic(passes.source), passes.n_threads)


def _lost_in_rounding(found: Spectrum) -> bool:
    """Whether directions in which the rows may well vary are not told from rounding; columns that are constant give none."""
    varying = int(np.count_nonzero(found.column_variances)) - len(found.indicators or ())
    return bool((found.variances[: max(min(varying, found.rows - 1), 0)] <= found.floor).any())


def folded(passes: Passes, options: SolverOptions) -> Moments:
    """The moments of all rows, in the arithmetic that the options ask for."""
    as_it_is = options.arithmetic(passes.source) == passes.source.dtype
    d, square = passes.source.n_columns, Moments.of if as_it_is else Moments.of_wide
    if passes.source.sparse or d < _NARROW:
        return passes.fold(square)
    spare = Spare(kept=d < _WIDE)
    if d < _WIDE:
        moments = passes.fold(partial(square, spare=spare))
        spare.clear()
        return moments
    packed = passes.fold(partial(PackedMoments.of if as_it_is else PackedMoments.of_wide, spare=spare))
    spare.clear()  # before the square needs memory
    return packed.unpacked()


def from_moments(moments: Moments, options: SolverOptions, dtype: Any, n_threads: int = 1) -> Spectrum:
    """The directions of largest variance of rows with these moments, which were formed in this arithmetic."""
    scale, k = options.resolve(moments)
    matrix = moments.covariance(options.ddof)
    if scale is not None:
        matrix /= np.outer(scale, scale)
    d, trace = len(matrix), float(np.trace(matrix))
    with blas.single(d**3):
        if d > 64 and k > d // 2:  # nearly all: the matrix itself becomes the vectors
            values, vectors, dropped = _most(matrix, k, n_threads)
            matrix = moments.scatter
            residuals = _residuals(matrix, vectors, values, 1 / (moments.weight - options.ddof), scale, n_threads)
        else:
            values, vectors, dropped = leading(matrix, k)
            residuals = _residuals(matrix, vectors, values)
    return Spectrum.of(
        moments,
        options,
        variances=values,
        directions=vectors.T,
        residuals=residuals,
        rounding=rounding_of(dtype) * trace,
        floor=floor_of_products(dtype, d, float(values.max(initial=0.0))),
        dropped=dropped,
    )


def leading(upper: Floats, k: int) -> tuple[Floats, Floats, float | None]:
    """The k largest eigenvalues, falling, none below zero, their vectors as columns, and the sum of the others if known.

    Only the upper triangle is read.
    """
    d = len(upper)
    if k == 0:
        return np.zeros(0), np.zeros((d, 0)), None
    if d > 64 and k <= d // 2:
        from scipy.linalg import eigh

        values, vectors = eigh(upper, lower=False, subset_by_index=[d - k, d - 1], check_finite=False)
    else:
        values, vectors = np.linalg.eigh(upper, UPLO="U")
    values, vectors = np.maximum(values[::-1], 0.0), vectors[:, ::-1][:, :k]
    return values[:k], vectors, float(values[k:].sum()) if len(values) == d else None


def _most(upper: Floats, k: int, n_threads: int) -> tuple[Floats, Floats, float | None]:
    """The same for most or all of the eigenvalues; the matrix is destroyed."""
    values, directions = all_directions(upper, n_threads)
    values = np.maximum(values[::-1], 0.0)
    return values[:k], directions[::-1][:k].T, float(values[k:].sum())


def _residuals(
    upper: Floats,
    vectors: Floats,
    values: Floats,
    factor: float = 1.0,
    scale: Floats | None = None,
    n_threads: int = 1,
) -> Floats:
    """The norms of S v - l v, a few vectors at a time, for the matrix S = factor * upper, its columns and rows over `scale`."""
    whole = _mirrored(upper) if len(values) > _TOGETHER and len(upper) < _WIDE else None
    found = np.zeros(len(values))

    def work(number: int, here: slice) -> None:
        each = vectors[:, here] if scale is None else vectors[:, here] / scale[:, None]
        # Both are stored vector by vector, as their lengths are formed.
        product = _symmetric_times(upper, each, factor) if whole is None else np.matmul(each.T, whole).T
        if whole is not None:
            product *= factor
        if scale is not None:
            product /= scale[:, None]
        product -= values[here] * vectors[:, here]
        found[here] = lengths(product)

    # SciPy's product of a triangle would hold the other threads up, and a mirrored one takes memory.
    run = serial.run if whole is None or n_threads == 1 else threads.run
    pieces = even_parts(len(values)) if len(values) > _TOGETHER else [slice(None)] * (len(values) > 0)
    run(pieces, work, lambda *_: None, n_threads)
    return found


def _mirrored(upper: Floats) -> Floats:
    whole = np.triu(upper)
    for start in range(0, len(whole), _TOGETHER):  # all at once, it would be read in columns from memory
        end = start + _TOGETHER
        whole[end:, start:end] = whole[start:end, end:].T
        square = whole[start:end, start:end]
        square += np.triu(square, 1).T
    return whole


@lru_cache(maxsize=64)
def _in_upper(d: int) -> NDArray[np.bool_]:
    """Which cells of a small matrix belong to the upper triangle."""
    return np.triu(np.ones((d, d), dtype=np.bool_))


def _symmetric_times(upper: Floats, vectors: Floats, factor: float) -> Floats:
    d, k = vectors.shape
    if not k or d <= 64:
        return np.asarray(np.where(_in_upper(d), upper, upper.T) @ vectors * factor)
    from scipy.linalg.blas import dsymm

    return np.asarray(dsymm(factor, upper.T, np.asfortranarray(vectors), lower=1))
