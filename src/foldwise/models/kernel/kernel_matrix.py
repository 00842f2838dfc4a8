"""The kernel matrix of a fit, of which only products are ever asked: all rows with some columns, times coefficients.

It is cut in stripes of rows, which threads take in turn, and tiles of columns, which are added up from left to right: sums have
the same bits for any number of threads, and whether the matrix is kept or computed anew for each pass.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from foldwise.data.block import Block, Floats
from foldwise.fold import blas, events, threads
from foldwise.fold.passes import Passes
from foldwise.models.kernel.functions import Function

_STRIPE, _TILE = 256, 1024  # a tile of float64 stays in the second-level cache, or nearly


class KernelMatrix(Protocol):
    """The kernel matrix K of n rows."""

    n: int
    diagonal: Floats

    def times(self, coefficients: Floats, which: NDArray[np.intp] | None = None) -> Floats:
        """K[:, which] @ coefficients."""

    def columns(self, which: NDArray[np.intp]) -> Floats:
        """K[:, which]."""

    def among(self, which: NDArray[np.intp]) -> Floats:
        """K[which][:, which]."""


class ComputedMatrix:
    """The matrix of a kernel function; kept if it fits `budget` bytes, else computed again for each pass."""

    def __init__(self, function: Function, rows: Any, n_threads: int, budget: float) -> None:
        self._function, self._rows, self._threads = function, function.seen(rows), n_threads
        self.n = int(self._rows.shape[0])
        self.diagonal = function.diagonal(self._rows)
        self.passes = 0
        self.kept: Floats | None = None
        if 8.0 * self.n * self.n <= budget:
            kept = np.empty((self.n, self.n))

            def fill(start: int, stop: int) -> None:
                for first, last in _tiles(self.n):
                    kept[start:stop, first:last] = function.between(self._rows[start:stop], self._rows[first:last])

            self._each(fill)
            self.kept = kept

    def times(self, coefficients: Floats, which: NDArray[np.intp] | None = None) -> Floats:
        """K[:, which] @ coefficients."""
        out = np.empty((self.n, coefficients.shape[1]))
        if which is None:
            self.passes += 1
        others = self._rows if which is None or self.kept is not None else self._rows[which]

        def work(start: int, stop: int) -> None:
            out[start:stop] = self._sums(self._rows[start:stop], slice(start, stop), others, coefficients, which)

        self._each(work)
        return out

    def columns(self, which: NDArray[np.intp]) -> Floats:
        """K[:, which]."""
        if self.kept is not None:
            return np.ascontiguousarray(self.kept[:, which])
        out, others = np.empty((self.n, len(which))), self._rows[which]

        def work(start: int, stop: int) -> None:
            out[start:stop] = self._function.between(self._rows[start:stop], others)

        self._each(work)
        return out

    def among(self, which: NDArray[np.intp]) -> Floats:
        """K[which][:, which]."""
        some = self._rows[which]
        with blas.single():
            return self._function.between(some, some)

    def _sums(
        self, mine: Any, place: slice, others: Any, coefficients: Floats, which: NDArray[np.intp] | None
    ) -> Floats:
        total = np.zeros((mine.shape[0], coefficients.shape[1]))
        for first, last in _tiles(len(coefficients)):
            if self.kept is None:
                tile = self._function.between(mine, others[first:last])
            elif which is None:
                tile = np.ascontiguousarray(self.kept[place, first:last])
            else:
                tile = self.kept[place][:, which[first:last]]
            total += tile @ coefficients[first:last]
        return total

    def _each(self, work: Callable[[int, int], None]) -> None:
        """Give every stripe to `work`, in several threads."""
        stripes(self.n, work, self._threads, self.passes)


class NewRows:
    """New rows beside those of a fit, for which only sums are asked."""

    def __init__(self, function: Function, rows: Any, n_threads: int) -> None:
        self._function, self._rows, self._threads = function, function.seen(rows), n_threads

    def times(self, rows: Any, coefficients: Floats) -> tuple[Floats, Floats]:
        """The kernel of the new rows with the old ones, times coefficients; and the new rows' diagonal."""
        n = rows.shape[0]
        out, diagonal = np.empty((n, coefficients.shape[1])), np.empty(n)

        def work(start: int, stop: int) -> None:
            mine = self._function.seen(rows[start:stop])
            total = np.zeros((stop - start, coefficients.shape[1]))
            for first, last in _tiles(len(coefficients)):
                total += self._function.between(mine, self._rows[first:last]) @ coefficients[first:last]
            out[start:stop], diagonal[start:stop] = total, self._function.diagonal(mine)

        stripes(n, work, self._threads, 0)
        return out, diagonal


class PrecomputedMatrix:
    """A matrix that somebody else has computed: in memory, or in a file that is read once for each pass."""

    def __init__(self, run: Passes, n: int, diagonal: Floats) -> None:
        self._run, self.n, self.diagonal = run, n, diagonal

    @property
    def passes(self) -> int:
        """How often the matrix was read."""
        return self._run.passes

    def times(self, coefficients: Floats, which: NDArray[np.intp] | None = None) -> Floats:
        """K[:, which] @ coefficients."""
        return self._run.rows(lambda block: tiled(block, coefficients, which))

    def columns(self, which: NDArray[np.intp]) -> Floats:
        """K[:, which]."""
        return self._run.rows(lambda block: np.asarray(block.unchecked[:, which], dtype=np.float64))

    def among(self, which: NDArray[np.intp]) -> Floats:
        """K[which][:, which]."""

        def of(block: Block) -> Floats:
            here = which[(which >= block.start) & (which < block.start + block.n_rows)] - block.start
            return np.asarray(block.unchecked[here][:, which], dtype=np.float64)

        parts: dict[int, Floats] = {}
        self._run.visit(of, parts.__setitem__)
        return np.concatenate([parts[number] for number in sorted(parts)])


def tiled(block: Block, coefficients: Floats, which: NDArray[np.intp] | None = None) -> Floats:
    """The block's rows times coefficients, in float64, tile by tile."""
    total = np.zeros((block.n_rows, coefficients.shape[1]))
    for first, last in _tiles(len(coefficients)):
        columns: Any = slice(first, last) if which is None else which[first:last]
        total += np.asarray(block.unchecked[:, columns], dtype=np.float64) @ coefficients[first:last]
    return total


def stripes(n: int, work: Callable[[int, int], None], n_threads: int, number_of_pass: int) -> None:
    """Call `work(start, stop)` for stripes of n rows, in several threads."""

    def pieces() -> Iterator[Any]:
        for start in range(0, n, _STRIPE):
            stop = min(start + _STRIPE, n)
            yield lambda start=start, stop=stop: (start, stop)
            if events.heard():
                events.emit(events.RowsRead(stop, n, number_of_pass))

    with blas.single(1e9 if n > 128 else 0.0):
        threads.run(pieces(), lambda number, place: work(*place()), lambda number, nothing: None, n_threads)


def _tiles(n: int) -> Iterator[tuple[int, int]]:
    for first in range(0, n, _TILE):
        yield first, min(first + _TILE, n)
