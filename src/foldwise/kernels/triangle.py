"""Upper triangles of scatter matrices, packed: their rows one after the other, half the memory of a square.

The numbers are those of `kernels.scatter` and `kernels.merge_moments`, bit for bit.
"""

from __future__ import annotations

import mmap
from contextlib import suppress
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from foldwise.kernels import _core


class Spare:
    """Memory of matrices that nobody uses any more, for the next ones: fresh pages have to be cleared first, and given back.

    `kept` is for small ones, which the C library should keep for the next fit. It is worth nothing on another machine: moments
    that come from one have none.
    """

    def __init__(self, *, kept: bool = False) -> None:
        self._kept, self._free = kept, list[NDArray[np.float64]]()

    def take(self, size: int) -> NDArray[np.float64]:
        """So many numbers: zeros, or those of a matrix of the same kind that was given."""
        with suppress(IndexError):
            found = self._free.pop()
            if found.size == size:
                return found
        return np.zeros(size) if self._kept else _zeros(size, huge=True)

    def give(self, matrix: NDArray[np.float64]) -> None:
        """Take over a matrix that is not used any more. What came from another process may be read-only, and is of no use."""
        if matrix.flags.writeable:
            self._free.append(matrix)

    def clear(self) -> None:
        """Give all of it back to the system."""
        self._free.clear()

    def __reduce__(self) -> tuple[partial[Spare], tuple[()]]:
        return partial(Spare, kept=self._kept), ()  # of a task; that of moments is left out


def scatter(
    x: NDArray[Any], weights: NDArray[np.float64] | None, spare: Spare | None = None
) -> tuple[float, NDArray[np.float64], NDArray[np.float64]]:
    """Total weight, mean in two parts and the packed scatter of the rows, in spare memory if there is some."""
    d = x.shape[1]
    mean, out = np.empty((2, d)), (spare or Spare()).take(d * (d + 1) // 2)
    return _core.scatter_packed(x, weights, mean, out), mean, out


def merge_into(
    left: NDArray[np.float64],
    left_scatter: NDArray[np.float64],
    left_weight: float,
    right: NDArray[np.float64],
    right_scatter: NDArray[np.float64],
    right_weight: float,
) -> NDArray[np.float64]:
    """The centre of two sets of rows together; their scatter takes the place of the left one."""
    centre = np.empty_like(left)
    _core.merge_packed(left, left_scatter, left_weight, right, right_scatter, right_weight, centre)
    return centre


def scatter_square(
    x: NDArray[Any], weights: NDArray[np.float64] | None, spare: Spare
) -> tuple[float, NDArray[np.float64], NDArray[np.float64]]:
    """The same with the triangle in a square matrix, of whose spare ones all have zeros below the diagonal."""
    d = x.shape[1]
    mean, out = np.empty((2, d)), spare.take(d * d).reshape(d, d)
    return _core.scatter(x, weights, mean, out), mean, out


def square(packed: NDArray[np.float64], d: int) -> NDArray[np.float64]:
    """The triangle in a d x d matrix, with zeros below.

    Small pages that hold nothing but zeros take no memory, whereas NumPy asks for huge ones.
    """
    out, start = _zeros(d * d, huge=False).reshape(d, d), 0
    for i in range(d):
        out[i, i:] = packed[start : start + d - i]
        start += d - i
    return out


def _zeros(size: int, *, huge: bool) -> NDArray[np.float64]:
    """Numbers in memory that goes back to the system as soon as nobody uses it; the C library would keep some of it."""
    memory = mmap.mmap(-1, max(8 * size, 1))
    if huge and hasattr(mmap, "MADV_HUGEPAGE"):
        with suppress(OSError):  # a system without any
            memory.madvise(mmap.MADV_HUGEPAGE)
    return np.frombuffer(memory, dtype=np.float64, count=size)
