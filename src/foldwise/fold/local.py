"""Blocks on this machine, loaded and processed by a few threads, with the state that tasks keep for each block."""

from __future__ import annotations

import ctypes
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from threading import get_ident
from typing import Any

import numpy as np

from foldwise.data.cache import CachedSource
from foldwise.data.source import Piece, Source, block_rows
from foldwise.fold import blas, serial, threads
from foldwise.fold.tree import Tree

_MANY_VALUES = 1_000_000  # rows asked for by number: fewer values are copied before a second thread is awake


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
        self._runs: list[_Run] | None = None

    # ------------------------------------------------------------ the interface of engines

    def nodes(self, task: Any) -> list[tuple[int, int, Any]]:
        """The results merged as far as the fixed merge tree allows, as (level, number, value)."""
        tree: Tree[Any] = Tree(owner=True)
        self.visit(task, tree.add)
        return tree.nodes()

    def each(self, task: Any) -> list[Any]:
        """The result of every block, in row order."""
        found: dict[int, Any] = {}
        self.visit(task, found.__setitem__)
        return [found[number] for number in sorted(found)]

    def total(
        self, task: Any, zero: Callable[[], Any], cuts: Sequence[int] = (), progress: Any = None, into: Any = None
    ) -> Any:
        """The sum of all results; for exact sums, which may be formed in any order.

        The task adds its result itself: `task(block, state, total)`. Every thread has a total of its own, unless the task has
        the attribute `shares_total`. They are added up in the end, with the method `add`. Rows in memory are processed in the
        parts that end at `cuts`, since the result does not depend on where they are cut. If `into` is given, it is the total
        of the calling thread, and in the end that of all: large totals are then neither cleared nor added once more.
        """
        shared = (zero() if into is None else into) if getattr(task, "shares_total", False) else None
        own: dict[int, Any] = {} if into is None else {get_ident(): into}

        def mine() -> Any:
            if shared is not None:
                return shared
            thread = get_ident()
            if thread not in own:
                own[thread] = zero()
            return own[thread]

        if cuts and self._runs is None:
            self._runs = _runs_of(self.source, self._block_rows) if self.first == 0 and self.last is None else []
        if cuts and self._runs:
            self._visit_parts(task, mine, cuts, progress)
        else:

            def adding(block: Any, state: dict[str, Any]) -> None:
                task(block, state, mine())

            adding.keeps_state = True  # type: ignore[attr-defined]
            self.visit(adding, lambda number, found: None, progress)
        parts = list(own.values())
        total = shared if shared is not None else parts.pop(0) if parts else zero()
        for part in parts if shared is None else ():
            total.add(part)
        return total

    def only_run(self) -> Any:
        """All rows as one block, if they are dense and adjacent in memory, or None."""
        if self._runs is None:
            self._runs = _runs_of(self.source, self._block_rows) if self.first == 0 and self.last is None else []
        return self._runs[0].block if len(self._runs) == 1 else None

    def ask(self, task: Any, requests: Mapping[int, Any]) -> dict[int, Any]:
        """`task(block, state, request)` for some blocks, by block number."""
        found: dict[int, Any] = {}

        def work(place: int, which: tuple[int, Piece]) -> tuple[int, Any]:
            number, piece = which
            return number, task(piece.load(), self._state(number), requests[number])

        def take(place: int, answer: tuple[int, Any]) -> None:
            found[answer[0]] = answer[1]

        values = self.source.n_columns * sum(np.size(request) for request in requests.values())
        alone = self.n_threads == 1 or len(requests) == 1 or values < _MANY_VALUES
        with blas.single_for(self.source.n_rows, self.source.n_columns):
            (serial.run if alone else threads.run)(self._some(sorted(requests)), work, take, self.n_threads)
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

    def visit_each(self, tasks: Sequence[Any], take: Callable[[int, int, Any], None], progress: Any = None) -> None:
        """The same for several tasks in one pass, `take(place of the task, number, result)`; threads share out both."""

        def work(number: int, job: tuple[Piece, int]) -> Any:
            piece, place = job
            return tasks[place](piece.load())

        def taken(number: int, found: Any) -> None:
            take(number % len(tasks), self.first + number // len(tasks), found)

        pieces = self.source.pieces(self.first, self.last)
        jobs: Iterator[Any] = ((piece, place) for piece in pieces for place in range(len(tasks)))
        if progress is not None:
            jobs = progress(jobs, _RowsDone(len(tasks), self._block_rows))
        with blas.single():
            (serial.run if self.n_threads == 1 else threads.run)(jobs, work, taken, self.n_threads)

    def _state(self, number: int) -> dict[str, Any]:
        return self._states.setdefault(number, {})

    def _visit_parts(self, task: Any, mine: Callable[[], Any], cuts: Sequence[int], progress: Any) -> None:
        """The parts of runs of adjacent blocks; the arrays of their states are adjacent as well."""
        assert self._runs is not None
        parts: list[tuple[_Run, int, int]] = []
        for run in self._runs:
            task.prepare(run.state, run.block.n_rows)
            for number, start, stop in run.blocks:
                kept = self._state(number)
                for name, array in run.state.items():
                    before = kept.get(name)
                    owner = array if array.base is None else array.base
                    if before is not None and before.base is owner:
                        continue
                    here = array[start:stop]
                    if before is not None and before.shape == here.shape:  # from a pass over blocks
                        here[...] = before
                    kept[name] = here
            first, last = run.block.start, run.block.start + run.block.n_rows
            ends = [first, *(cut for cut in cuts if first < cut < last), last]
            parts += [(run, start - first, stop - first) for start, stop in itertools.pairwise(ends)]

        def work(number: int, part: tuple[_Run, int, int]) -> None:
            run, start, stop = part
            here = slice(start, stop)
            task(run.block.take(here), {name: array[here] for name, array in run.state.items()}, mine())

        pieces: Iterator[Any] = iter(parts)
        if progress is not None:
            pieces = progress(pieces, [run.block.start + stop for run, _, stop in parts])
        n_threads = min(self.n_threads, len(parts))  # to wake a thread takes longer than a small table
        with blas.single_for(self.source.n_rows, self.source.n_columns):
            if n_threads == 1:
                serial.run(pieces, work, lambda number, found: None)
            else:  # kernels alone, and often short
                threads.run(pieces, work, lambda number, found: None, n_threads, apart=True)

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


@dataclass(frozen=True)
class _RowsDone:
    """The number of rows that all tasks are done with after so many jobs of one task and one block."""

    n_tasks: int
    block_rows: int

    def __getitem__(self, number: int) -> int:
        return (number + 1) // self.n_tasks * self.block_rows


@dataclass(frozen=True)
class _Run:
    """Blocks that are adjacent in memory, as one, with the state of all; `blocks` are number, first row and end of each."""

    block: Any
    blocks: list[tuple[int, int, int]]
    state: dict[str, Any] = field(default_factory=dict)


def _runs_of(source: Source, block_rows: int) -> list[_Run]:
    """Runs of adjacent blocks, for dense rows in memory; none for others."""
    if not isinstance(source, CachedSource) or source.sparse:
        return []
    runs = []
    for block in source.joined():
        first = block.start // block_rows
        ends = [*range(0, block.n_rows, block_rows), block.n_rows]
        runs.append(_Run(block, [(first + i, *pair) for i, pair in enumerate(itertools.pairwise(ends))]))
    return runs


def falling_cuts(n_rows: int, n_threads: int, least: int, most: int, step: int = 1) -> list[int]:
    """Where parts end that get smaller and smaller, so that all threads are ready at about the same time.

    All but the last end at multiples of `step`.

    >>> falling_cuts(1000, 2, 100, 400)
    [250, 438, 579, 685, 785, 885, 985, 1000]
    >>> falling_cuts(1000, 2, 100, 400, step=16)
    [256, 448, 592, 704, 816, 928, 1000]
    """
    cuts, done = [], 0
    while done < n_rows:
        part = max(min(-(-(n_rows - done) // (2 * n_threads)), most), least)
        done = min(done + -(-part // step) * step, n_rows)
        cuts.append(done)
    return cuts


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
