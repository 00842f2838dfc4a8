"""Products of matrices with many rows and few columns, on several threads and with the same bits for any number of them.

BLAS itself would split the work by the number of its threads. Here stretches of rows are fixed by the number of rows alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from foldwise.data.block import Floats
from foldwise.fold import blas, serial, threads

_STRETCH = 2048  # rows
_WORTH = 4e6  # multiplications: below, waking a thread takes longer


def transposed_times(left: Floats, right: Floats, n_threads: int = 1) -> Floats:
    """left' right, both with as many rows."""
    parts: dict[int, Floats] = {}

    def work(number: int, rows: slice) -> Floats:
        return np.asarray(left[rows].T @ right[rows])

    _run(len(left), left.shape[1] * right.size, n_threads, work, parts.__setitem__)
    total = np.zeros((left.shape[1], right.shape[1]))
    for number in sorted(parts):
        total += parts[number]
    return total


def times(left: Floats, small: Floats, n_threads: int = 1) -> Floats:
    """left small."""
    return _each(left, small, n_threads, lambda rows, out: np.matmul(left[rows], small, out=out))


def less(from_: Floats, left: Floats, small: Floats, n_threads: int = 1) -> Floats:
    """from_ - left small."""

    def work(rows: slice, out: Floats) -> None:
        np.matmul(left[rows], small, out=out)
        np.subtract(from_[rows], out, out=out)

    return _each(left, small, n_threads, work)


def _each(left: Floats, small: Floats, n_threads: int, work: Callable[[slice, Floats], Any]) -> Floats:
    out = np.empty((len(left), small.shape[1]))
    _run(len(left), left.size * small.shape[1], n_threads, lambda _, rows: work(rows, out[rows]), lambda *_: None)
    return out


def _run(
    n: int, size: int, n_threads: int, work: Callable[[int, slice], Any], take: Callable[[int, Any], None]
) -> None:
    with blas.single():
        alone = n_threads == 1 or size < _WORTH or n <= _STRETCH
        (serial.run if alone else threads.run)(_stretches(n), work, take, n_threads)


def _stretches(n: int) -> Iterator[slice]:
    for start in range(0, n, _STRETCH):
        yield slice(start, min(start + _STRETCH, n))
