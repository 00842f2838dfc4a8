"""Blocks on this machine, loaded and processed by a few threads, with the state that tasks keep for each block."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from threading import Lock
from typing import Any

from foldwise.data.cache import CachedSource
from foldwise.data.source import Piece, Source, block_rows
from foldwise.fold import blas, serial, threads
from foldwise.fold.tree import Tree


class LocalBlocks:
    """Blocks `first` to `last` - 1 of a source. Block numbers always refer to the whole source.

    A task is a picklable function `task(block) -> result`. A task with the attribute `keeps_state` is called as
    `task(block, state)`: `state` is a dict of arrays that belongs to the block (labels, bounds) and stays with it.

    A task that also reads an array of the caller with one entry per row is wrapped in `WithRowArray`, which passes the
    block's slice as the last argument, here as a view. An engine that sends tasks to other machines must send
    `row_arrays.for_blocks(task, first, last, block_rows)` to the worker that holds blocks `first` to `last` - 1.
    """

    def __init__(self, source: Source, n_threads: int, first: int = 0, last: int | None = None) -> None:
        self.source, self.n_threads, self.first, self.last = source, n_threads, first, last
        self._states: dict[int, dict[str, Any]] = {}
        self._block_rows = block_rows(source)

    # ------------------------------------------------------------ the interface of engines

    def nodes(self, task: Any) -> list[tuple[int, int, Any]]:
        """The results merged as far as the fixed merge tree allows, as (level, number, value)."""
        tree: Tree[Any] = Tree()
        self.visit(task, tree.add)
        return tree.nodes()

    def each(self, task: Any) -> list[Any]:
        """The result of every block, in row order."""
        found: dict[int, Any] = {}
        self.visit(task, found.__setitem__)
        return [found[number] for number in sorted(found)]

    def total(self, task: Any, zero: Callable[[], Any], split: int = 0, progress: Any = None) -> Any:
        """All results added to `zero()` with its method `add`, in any order; for exact sums."""
        total, lock = zero(), Lock()

        def add(number: int, found: Any) -> None:
            with lock:
                total.add(found)

        if split and isinstance(self.source, CachedSource):
            self._visit_parts(task, add, split)
        else:
            self.visit(task, add, progress)
        return total

    def ask(self, task: Any, requests: Mapping[int, Any]) -> dict[int, Any]:
        """`task(block, state, request)` for some blocks, by block number."""
        found = {}
        with blas.single_for(self.source.n_rows, self.source.n_columns):
            for number, piece in self._some(sorted(requests)):
                found[number] = task(piece.load(), self._state(number), requests[number])
        return found

    def update(self, task: Any, numbers: Sequence[int] | None = None) -> list[Any]:
        """`task(state)` for every block that has a state, without reading the blocks."""
        return [task(self._states[number]) for number in sorted(self._states if numbers is None else numbers)]

    # ------------------------------------------------------------ implementation

    def visit(self, task: Any, take: Callable[[int, Any], None], progress: Any = None) -> None:
        """Call `take(number, result)` for every block, in any order and from several threads."""
        first, pieces = self.first, self.source.pieces(self.first, self.last)
        if getattr(task, "keeps_state", False):

            def work(number: int, piece: Piece) -> Any:
                return task(piece.load(), self._state(number + first))
        else:

            def work(number: int, piece: Piece) -> Any:
                return task(piece.load())

        numbered = take if first == 0 else lambda number, found: take(number + first, found)
        if progress is not None:
            pieces = progress(pieces)
        n_rows = self.source.n_rows
        if n_rows is not None and n_rows <= self._block_rows:  # avoids the overhead for small tables
            with blas.single_for(n_rows, self.source.n_columns):
                serial.run(pieces, work, numbered)
            return
        with blas.single():
            (serial.run if self.n_threads == 1 else threads.run)(pieces, work, numbered, self.n_threads)

    def visit_each(self, tasks: Sequence[Any], take: Callable[[int, int, Any], None]) -> None:
        """The same for several tasks in one pass, `take(place of the task, number, result)`; threads share out both."""

        def work(number: int, job: tuple[Piece, int]) -> Any:
            piece, place = job
            return tasks[place](piece.load())

        def taken(number: int, found: Any) -> None:
            take(number % len(tasks), self.first + number // len(tasks), found)

        jobs = ((piece, place) for piece in self.source.pieces(self.first, self.last) for place in range(len(tasks)))
        with blas.single():
            (serial.run if self.n_threads == 1 else threads.run)(jobs, work, taken, self.n_threads)

    def _state(self, number: int) -> dict[str, Any]:
        return self._states.setdefault(number, {})

    def _visit_parts(self, task: Any, take: Callable[[int, Any], None], rows: int) -> None:
        """The same over parts of blocks, so that every thread has work; arrays in states are split in the same way."""
        assert isinstance(self.source, CachedSource)
        for number, piece in enumerate(self.source.pieces()):
            task.prepare(self._state(number), piece.load().n_rows)

        def work(number: int, block: Any) -> Any:
            whole, inside = divmod(block.start, self._block_rows)
            here = slice(inside, inside + block.n_rows)
            return task(block, {name: array[here] for name, array in self._state(whole).items()})

        with blas.single():
            threads.run(self.source.split(rows), work, take, self.n_threads)

    def _some(self, numbers: list[int]) -> Iterator[tuple[int, Piece]]:
        if not numbers:
            return
        if self.source.slow:  # reading a block requires reading all those before it
            for number, piece in enumerate(self.source.pieces(numbers[0], numbers[-1] + 1), numbers[0]):
                if number in numbers:
                    yield number, piece
        else:
            for number in numbers:
                for piece in self.source.pieces(number, number + 1):
                    yield number, piece


@lru_cache(maxsize=1)
def keep_freed_memory() -> None:
    """Let the C library keep the memory of a block for the next one.

    Dask starts its workers with MALLOC_TRIM_THRESHOLD_ so low that every block of a file would be read into fresh pages, which
    takes several times as long as reading it. Elsewhere the default grows by itself.
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):  # another C library
        return
    trim_threshold, mmap_threshold = -1, -3  # as in malloc.h
    mallopt(trim_threshold, 64 << 20)
    mallopt(mmap_threshold, 32 << 20)
