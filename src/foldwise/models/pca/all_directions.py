"""All eigenvectors of a symmetric matrix, the last of three steps by all threads."""

from __future__ import annotations

import itertools

import numpy as np

from foldwise.data.block import Floats
from foldwise.fold import serial, threads

_MANY = 512  # columns from which steps of our own pay on two threads (on one they take a tenth more time)
_TOGETHER = 64  # reflections applied at a time
_MOST_ROWS = 128  # vectors turned at a time


def all_directions(upper: Floats, n_threads: int = 1) -> tuple[Floats, Floats]:
    """The eigenvalues, rising, and their vectors as rows. The upper triangle is read, and the matrix destroyed."""
    from scipy.linalg import lapack

    if len(upper) >= _MANY and hasattr(lapack, "dstevd"):  # since SciPy 1.16
        return _in_steps(upper, n_threads)

    # The upper triangle in C order is the lower one in Fortran's: no copy, no mirror.
    values, vectors, failed = lapack.dsyevd(upper.T, lower=1, overwrite_a=1)
    return _unless(failed, values), vectors.T


def _in_steps(upper: Floats, n_threads: int) -> tuple[Floats, Floats]:
    """The steps of LAPACK's dsyevd, for at least two columns.

    The last one, which turns the vectors of the tridiagonal matrix into those of the matrix, takes a fraction of the vectors at
    a time, the same for any number of threads, and so has the same bits.
    """
    from scipy.linalg.lapack import dstevd, dsytrd

    factor = _into_range(upper)
    reflections, diagonal, beside, sizes, _ = dsytrd(upper.T, lower=1, lwork=_TOGETHER * len(upper), overwrite_a=1)
    values, vectors, failed = dstevd(diagonal, beside)
    values = _unless(failed, values) / factor
    run, rows = serial.run if n_threads == 1 else threads.run, vectors.T
    starts = range(0, len(sizes), _TOGETHER)
    steps: dict[int, tuple[Floats, Floats]] = {}
    run(starts, lambda number, start: _joined(reflections, sizes, start), steps.__setitem__, n_threads)

    def turn(number: int, here: slice) -> None:
        for step in reversed(range(len(steps))):
            part, (corners, inner) = rows[here, starts[step] + 1 :], steps[step]
            part -= part @ corners @ inner @ corners.T

    run(even_parts(len(rows)), turn, lambda *_: None, n_threads)
    return values, rows


def _unless(failed: int, values: Floats) -> Floats:
    if failed:
        raise np.linalg.LinAlgError("Eigenvalues did not converge")
    return values


def _into_range(upper: Floats) -> float:
    """Multiply a matrix whose squares would leave the range of float64 by a power of two, and tell which."""
    size = float(np.abs(upper.diagonal()).max(initial=0.0))
    if size == 0.0 or 1e-120 < size < 1e120:
        return 1.0
    factor = 2.0 ** min(-int(np.frexp(size)[1]), 1000)
    upper *= factor
    return factor


def _joined(reflections: Floats, sizes: Floats, first: int) -> tuple[Floats, Floats]:
    """The reflections I - t v v' from this one on, as Z -> Z - Z V T' V' on the columns beyond: V and T' (Puglisi 1992).

    V is made where LAPACK left it: ones and zeros take the place of the tridiagonal matrix and of what it did not need.
    """
    taus = sizes[first : first + _TOGETHER]
    width, none = len(taus), taus == 0.0  # no reflection
    corners = reflections[first + 1 :, first : first + width]
    corners[:width] = np.tril(corners[:width], -1)
    np.fill_diagonal(corners, 1.0)
    corners[:, none] = 0.0
    inverse = np.triu(corners.T @ corners, 1)
    np.fill_diagonal(inverse, 1.0 / np.where(none, 1.0, taus))
    return corners, np.asarray(np.linalg.inv(inverse).T, dtype=np.float64)


def even_parts(count: int) -> list[slice]:
    """Equal parts of so many vectors, as large as is quick, and an even number of them."""
    number = 2 * -(-max(count, 1) // (2 * _MOST_ROWS))
    ends = [count * i // number for i in range(number + 1)]
    return [slice(*pair) for pair in itertools.pairwise(ends)]
