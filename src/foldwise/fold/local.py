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
from numpy.typing import NDArray

from foldwise.data.cache import CachedSource
from foldwise.data.source import Piece, Source, block_rows
from foldwise.fold import blas, serial, threads
from foldwise.fold.tree import Tree
from foldwise.kernels import _core

_MANY_VALUES = 1_000_000  # rows asked for by number: fewer values are copied before a second thread is awake
_TAKEN = 512  # rows that a thread copies at a time


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
        self, task: Any, zero: Callable[[], Any], cuts: Cuts | None = None, progress: Any = None, into: Any = None
    ) -> Any:
        """The sum of all results; for exact sums, which may be formed in any order.

        The task adds its result itself: `task(block, state, total)`. Every thread has a total of its own, unless the task has
        the attribute `shares_total`. They are added up in the end, with the method `add`. If `into` is given, it is the total
        of the calling thread, and in the end that of all: large totals are then neither cleared nor added once more.

        Rows in memory are processed in the parts that `cuts` makes, since the result does not depend on where they are cut. A
        task with the attribute `takes_parts` is called as `task(block, state, total, parts)` with all rows, and takes what it
        does next from `parts` itself, as the other threads do; it may return before there are none. Such tasks add to the sums
        of `into` from all threads, with totals that its method `beside` makes.
        """
        shared = (zero() if into is None else into) if getattr(task, "shares_total", False) else None
        own: dict[int, Any] = {} if into is None else {get_ident(): into}

        def mine() -> Any:
            if shared is not None:
                return shared
            thread = get_ident()
            if thread not in own:
                own[thread] = into.beside() if shares_sums else zero()
            return own[thread]

        if cuts is not None and self._runs is None:
            self._runs = _runs_of(self.source, self._block_rows) if self.first == 0 and self.last is None else []
        shares_sums = into is not None and cuts is not None and bool(self._runs) and getattr(task, "takes_parts", False)
        if cuts is not None and self._runs:
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

    def take_into(self, out: NDArray[Any], numbers: NDArray[np.intp]) -> bool:
        """Copy rows, by number, to `out` if all are adjacent in memory; say if so. Block by block there are more calls."""
        run = self.only_run()
        rows = None if run is None else run.unchecked
        if rows is None or rows.dtype != out.dtype:
            return False

        def work(number: int, here: slice) -> None:
            np.take(rows, numbers[here], axis=0, out=out[here], mode="clip")  # with "raise" there would be a copy

        parts = [slice(first, first + _TAKEN) for first in range(0, len(numbers), _TAKEN)]
        alone = self.n_threads == 1 or len(parts) == 1 or out.size < _MANY_VALUES
        (serial.run if alone else threads.run)(parts, work, lambda number, found: None, self.n_threads)
        return True

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

    def _visit_parts(self, task: Any, mine: Callable[[], Any], cuts: Cuts, progress: Any) -> None:
        """The parts of runs of adjacent blocks; the arrays of their states are adjacent as well."""
        assert self._runs is not None
        for run in self._runs:
            run.drop_taken(self._state)
            task.prepare(run.state, run.block.n_rows)
            run.share_state(self._state)
        shared: list[tuple[_Run, Any]] = []
        for run in self._runs:
            shared.append((run, cuts.parts(run.block.n_rows, shared[0][1] if shared else None)))

        def pieces() -> Iterator[tuple[_Run, Any]]:
            for run, parts in shared:
                while parts.taken < run.block.n_rows:
                    yield run, parts

        def work(number: int, piece: tuple[_Run, Any]) -> None:
            run, parts = piece
            if getattr(task, "takes_parts", False):
                task(run.block, run.state, mine(), parts)
            elif (rows := parts.take()) is not None:
                here = slice(*rows)
                task(run.block.take(here), {name: array[here] for name, array in run.state.items()}, mine())

        jobs = pieces()
        if progress is not None:
            jobs = progress(jobs, _RowsTaken([parts for _, parts in shared]))
        n_threads = min(self.n_threads, sum(cuts.most_threads(run.block.n_rows) for run in self._runs))
        with blas.single_for(self.source.n_rows, self.source.n_columns):
            if n_threads == 1:
                serial.run(jobs, work, lambda number, found: None)
            elif getattr(task, "takes_parts", False) and threads.awake(n_threads - 1):
                for _, parts in shared:
                    parts.invite(n_threads - 1)
                serial.run(jobs, work, lambda number, found: None)
            else:  # kernels alone, and often short
                threads.run(jobs, work, lambda number, found: None, n_threads, apart=True)

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
class _RowsTaken:
    """The number of rows that have been taken up, whatever the number of the piece: the last may still be worked on."""

    parts: Sequence[Any]

    def __getitem__(self, number: int) -> int:
        return sum(each.taken for each in self.parts)


@dataclass(frozen=True)
class _Run:
    """Blocks that are adjacent in memory, as one, with the state of all; `blocks` are number, first row and end of each."""

    block: Any
    blocks: list[tuple[int, int, int]]
    state: dict[str, Any] = field(default_factory=dict)
    shared: dict[str, tuple[Any, list[tuple[dict[str, Any], Any]]]] = field(default_factory=dict)  # as they were left

    def share_state(self, state_of: Callable[[int], dict[str, Any]]) -> None:
        """Let the states of the blocks be parts of the state of all."""
        if all(self._is_shared(name, array) for name, array in self.state.items()):
            return
        for number, start, stop in self.blocks:
            kept = state_of(number)
            for name, array in self.state.items():
                before = kept.get(name)
                owner = array if array.base is None else array.base
                if before is not None and before.base is owner:
                    continue
                here = array[start:stop]
                if before is not None and before.shape == here.shape:  # from a pass over blocks
                    here[...] = before
                kept[name] = here
        kept_by = [state_of(number) for number, _, _ in self.blocks]
        for name, array in self.state.items():
            self.shared[name] = array, [(kept, kept[name]) for kept in kept_by]

    def drop_taken(self, state_of: Callable[[int], dict[str, Any]]) -> None:
        """Forget what a task has taken out of the states of the blocks: it may belong to the caller by now."""
        kept = state_of(self.blocks[0][0])
        for name in [name for name in self.state if name not in kept]:
            del self.state[name]
            self.shared.pop(name, None)

    def _is_shared(self, name: str, array: Any) -> bool:
        whole, parts = self.shared.get(name, (None, []))
        return whole is array and all(kept.get(name) is part for kept, part in parts)


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


@dataclass(frozen=True)
class Cuts:
    """Parts that get smaller and smaller, so that all threads are ready at about the same time.

    They have from `least` to `most` rows, up to whole `step`s, and all but the last end at multiples of `step`. Up to `alone`
    rows are done by one thread: to wake another takes longer.

    >>> parts = Cuts(shares=2, least=100, most=400, step=16).parts(1000)
    >>> list(iter(parts.take, None))
    [(0, 256), (256, 448), (448, 592), (592, 704), (704, 816), (816, 928), (928, 1000)]
    """

    shares: int
    least: int
    most: int
    step: int = 1
    alone: int = 0

    def parts(self, n_rows: int, sharing: Any = None) -> Any:
        """The parts of so many rows, which threads take one after the other (cpp/parts.h).

        Those that are added to the same sums must know of each other (`sharing`).
        """
        return _core.Parts(n_rows, self.shares, self.least, self.most, self.step, sharing)

    def most_threads(self, n_rows: int) -> int:
        """How many threads there is work for."""
        return 1 if n_rows <= self.alone else max(-(-n_rows // self.least), 1)


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
