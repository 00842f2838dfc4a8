"""Passes over one source with one engine, and their count. Models access data only through this class."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from threading import Lock
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from foldwise import kernels
from foldwise.data.block import Block, dense_rows
from foldwise.data.cache import CachedSource
from foldwise.data.n_threads import count
from foldwise.data.source import Source, block_rows, count_rows
from foldwise.errors import DataError
from foldwise.fold import deadline, events
from foldwise.fold.deadline import Deadline
from foldwise.fold.engine import Blocks, Engine, Threads, current
from foldwise.fold.local import Cuts, LocalBlocks
from foldwise.fold.manifest import Manifest
from foldwise.fold.row_arrays import WithRowArray
from foldwise.fold.tree import Mergeable, Tree

S = TypeVar("S", bound=Mergeable)
T = TypeVar("T")


class Counter:
    """The number of passes of a fit and its starting time; shared by all `Passes` of the fit."""

    def __init__(self) -> None:
        self.passes = 0
        self.started = deadline.now()


class Passes:
    """Runs tasks on every block of a source: `task(block)`, or with block state (see `LocalBlocks`)."""

    def __init__(
        self,
        source: Source,
        *,
        n_threads: int | None = None,
        engine: Engine | None = None,
        counter: Counter | None = None,
        counted: bool = True,
    ) -> None:
        self.source, self.counted = source, counted
        self.engine = engine or current()
        self.n_threads = count(n_threads if n_threads is not None else self.engine.n_threads)
        self.counter = counter or Counter()
        self.block_rows = block_rows(source)
        self._blocks: Blocks | None = None
        self._deadline: Deadline | None = None

    def until(self, limit: Deadline) -> Passes:
        """The same passes, which on this machine raise OutOfTimeError between two blocks when the time is over."""
        same = copy.copy(self)
        same._deadline = limit
        return same

    @property
    def helpers(self) -> int:
        """How many threads may help the calling one."""
        return self.n_threads - 1

    def over(self, source: Source, *, here: bool = False) -> Passes:
        """Passes over other rows of the same fit, counted together.

        `here` is for rows in memory that are not the data themselves (a sample, strips of a matrix): they stay in this
        process, do not count as a pass, and report no progress.
        """
        engine = Threads() if here else self.engine
        return Passes(source, n_threads=self.n_threads, engine=engine, counter=self.counter, counted=not here)

    # ------------------------------------------------------------ passes over the data

    def fold(self, task: Callable[..., S], *, beside: NDArray[Any] | None = None) -> S:
        """Merge the results of all blocks, in the fixed order.

        `beside` is an array with one entry per row; the task is passed the block's slice: `task(block, part)`.
        """
        tree: Tree[S] = Tree(owner=True)
        task, blocks = _beside(task, beside), self._begin()
        if isinstance(blocks, LocalBlocks):
            blocks.visit(task, tree.add, self._progress())
        else:
            for level, number, value in blocks.nodes(task):
                tree.add(number, value, level)
        result = tree.result()
        if result is None:
            raise self._no_rows()
        return result

    def fold_each(self, tasks: Sequence[Callable[..., S]], *, besides: Sequence[NDArray[Any]] | None = None) -> list[S]:
        """Several folds in one pass; `besides` holds an array for each task. For rows in memory that make fewer blocks than
        there are threads: the tasks are shared out, too.
        """
        wrapped = [_beside(task, None if besides is None else besides[place]) for place, task in enumerate(tasks)]
        blocks = self._begin()
        trees: list[Tree[S]] = [Tree(owner=True) for _ in tasks]
        if isinstance(blocks, LocalBlocks):
            blocks.visit_each(wrapped, lambda place, number, found: trees[place].add(number, found), self._progress())
        else:
            for tree, task in zip(trees, wrapped, strict=True):
                for level, number, value in blocks.nodes(task):
                    tree.add(number, value, level)
        results = [tree.result() for tree in trees]
        if any(result is None for result in results):
            raise self._no_rows()
        return [result for result in results if result is not None]

    def total(self, task: Any, zero: Callable[[], T], *, cuts: Cuts | None = None, into: T | None = None) -> T:
        """The sum of what the task adds to its total (see `LocalBlocks.total`), in any order; for exact sums.

        All of it is added to `into`, if given; a pass that fails leaves that half done.
        """
        blocks = self._begin()
        if isinstance(blocks, LocalBlocks):
            return cast("T", blocks.total(task, zero, cuts, self._progress(), into))
        total: Any = blocks.total(task, zero, cuts, self._progress())
        if into is not None:
            cast("Any", into).add(total)
            total = into
        return cast("T", total)

    def each(self, task: Callable[..., T], *, beside: NDArray[Any] | None = None) -> list[T]:
        """The result of every block, in row order; `beside` as in `fold`."""
        task, blocks = _beside(task, beside), self._begin()
        if not isinstance(blocks, LocalBlocks):
            return blocks.each(task)
        found: dict[int, T] = {}
        blocks.visit(task, found.__setitem__, self._progress())
        return [found[number] for number in sorted(found)]

    def rows(self, task: Callable[..., NDArray[Any]]) -> NDArray[Any]:
        """The task's arrays, whose first axis runs over the rows of a block, stacked in row order."""
        blocks, n_rows = self._begin(), self.source.n_rows
        if n_rows is None or not isinstance(blocks, LocalBlocks):
            found: dict[int, NDArray[Any]] = {}
            if isinstance(blocks, LocalBlocks):
                blocks.visit(task, found.__setitem__, self._progress())
            else:
                found = dict(enumerate(blocks.each(task)))
            if not found:
                raise self._no_rows()
            return np.concatenate([found[number] for number in sorted(found)])
        out: list[NDArray[Any]] = []
        lock = Lock()

        def started(block: Block, *state: Any) -> tuple[int, NDArray[Any]]:
            return block.start, task(block, *state)

        def place(number: int, found: tuple[int, NDArray[Any]]) -> None:
            start, part = found
            if part.shape[0] == n_rows:
                out.append(part)  # the only block: no copy
                return
            if not out:
                with lock:
                    if not out:
                        out.append(np.empty((n_rows, *part.shape[1:]), part.dtype))
            out[0][start : start + part.shape[0]] = part

        started.keeps_state = getattr(task, "keeps_state", False)  # type: ignore[attr-defined]
        blocks.visit(started, place, self._progress())
        return out[0]

    def in_order(self, task: Callable[[Block], T], sink: Callable[[T], None]) -> None:
        """Pass the result of every block to `sink`, one at a time and in row order; for output larger than memory."""
        blocks = self._begin()
        if not isinstance(blocks, LocalBlocks):
            for start in range(0, self._n_blocks(), _WINDOW):
                window = range(start, min(start + _WINDOW, self._n_blocks()))
                found = blocks.ask(_Stateless(task), dict.fromkeys(window))
                for number in window:
                    sink(found[number])
            return
        waiting: dict[int, T] = {}
        due, lock = 0, Lock()

        def take(number: int, value: T) -> None:
            nonlocal due
            with lock:
                waiting[number] = value
                while due in waiting:
                    sink(waiting.pop(due))
                    due += 1

        blocks.visit(task, take, self._progress())

    def ask(self, task: Any, requests: Mapping[int, Any]) -> dict[int, Any]:
        """`task(block, state, request)` for some blocks, by block number; not counted as a pass, since only these are read."""
        return self._placed().ask(task, requests)

    def update(self, task: Callable[[dict[str, Any]], T], numbers: Sequence[int] | None = None) -> list[T]:
        """`task(state)` for all blocks (or some), without reading the blocks; results in row order."""
        return self._placed().update(task, numbers)

    def take(self, which: Sequence[int] | NDArray[np.intp]) -> NDArray[Any]:
        """Some rows, by number, as a dense array; only their blocks are read."""
        numbers = np.asarray(which, dtype=np.intp)
        out = np.empty((len(numbers), self.source.n_columns), dtype=self.source.dtype)
        blocks = self._placed()
        if isinstance(blocks, LocalBlocks) and not self.source.sparse and bool(np.all(numbers[1:] >= numbers[:-1])):
            if not blocks.take_into(out, numbers):
                self._ask_for(numbers, _TakeInto(out, numbers))  # each thread copies its rows to their place
            return out
        for here, rows in self.take_as_they_are(numbers):
            out[here] = dense_rows(rows)
        return out

    def whole(self) -> NDArray[Any]:
        """Every row, as a dense array that is not to be written to: no copy if the rows are adjacent in memory."""
        blocks = self._placed()
        run = blocks.only_run() if isinstance(blocks, LocalBlocks) else None
        if run is not None:
            return np.asarray(run.unchecked)
        return self.take(np.arange(count_rows(self.source)))

    def take_as_they_are(self, numbers: NDArray[np.intp]) -> list[tuple[NDArray[np.intp], Any]]:
        """For each block, which of the numbers it contains, and those rows, dense or sparse."""
        here, found = self._ask_for(numbers, _take_rows)
        return [(here[number], found[number]) for number in sorted(found)]

    def _ask_for(self, numbers: NDArray[np.intp], task: Any) -> tuple[dict[int, NDArray[np.intp]], dict[int, Any]]:
        """For each block, which of the numbers it contains, and what the task makes of these rows."""
        of_block = numbers // self.block_rows
        here = {int(number): np.flatnonzero(of_block == number) for number in np.unique(of_block)}
        inside = {number: numbers[places] - number * self.block_rows for number, places in here.items()}
        return here, self.ask(task, inside)

    # ------------------------------------------------------------ records

    @property
    def seconds(self) -> float:
        """How long the fit has taken so far."""
        return deadline.now() - self.counter.started

    def manifest(
        self,
        algorithm: str,
        *,
        rows: int,
        resumed_at: int = 0,
        repairs: tuple[str, ...] = (),
        notes: tuple[str, ...] = (),
    ) -> Manifest:
        """The manifest of the fit so far."""
        return Manifest(
            algorithm=algorithm,
            source=self.source.where,
            rows=rows,
            columns=self.source.n_columns,
            dtype=self.source.dtype.name,
            passes=self.counter.passes,
            threads=self.n_threads,
            seconds=self.seconds,
            instruction_set=kernels.instruction_set(),
            left_out=self.source.left_out,
            spooled_bytes=getattr(self.source, "spooled_bytes", 0),
            resumed_at=resumed_at,
            repairs=repairs,
            notes=notes,
        )

    def _begin(self) -> Blocks:
        self.counter.passes += self.counted
        return self._placed()

    def _placed(self) -> Blocks:
        if self._blocks is None:
            n_rows = self.source.n_rows
            small = n_rows is not None and n_rows <= self.block_rows
            source = self.source
            if small and self.engine.remote and source.slow:  # nobody else keeps what was computed
                source = CachedSource(source)
            place = LocalBlocks if small else self.engine.place
            self._blocks = place(source, self.n_threads)
        return self._blocks

    def _n_blocks(self) -> int:
        return -(-count_rows(self.source) // self.block_rows)

    def _no_rows(self) -> DataError:
        return DataError("Found array with 0 sample(s): there are no rows", where=self.source.where)

    def _progress(self) -> Callable[..., Iterator[Any]] | None:
        """A wrapper that checks the time before each piece and emits an event after it; None if there is nothing to do.

        Pieces are blocks, or end at the rows `ends`.
        """
        limit, tell = self._deadline, self.counted and events.heard()
        if limit is None and not tell:
            return None

        def telling(pieces: Iterator[Any], ends: Any = None) -> Iterator[Any]:
            total = self.source.n_rows
            for number, piece in enumerate(pieces):
                if limit is not None:
                    limit.check()
                yield piece
                done = (number + 1) * self.block_rows if ends is None else ends[number]
                if tell:
                    events.emit(
                        events.RowsRead(done if total is None else min(done, total), total, self.counter.passes)
                    )

        return telling


def _beside(task: Any, array: NDArray[Any] | None) -> Any:
    return task if array is None else WithRowArray(task, array)


_WINDOW = 8  # blocks of output fetched from other machines at a time


class _Stateless:
    """Adapts a task without state to `ask`, which passes one."""

    def __init__(self, task: Any) -> None:
        self.task = task

    def __call__(self, block: Block, state: Any, request: Any) -> Any:
        return self.task(block)


class _TakeInto:
    """Copies rows to where their rising numbers stand, as a task for `ask`."""

    def __init__(self, out: NDArray[Any], numbers: NDArray[np.intp]) -> None:
        self.out, self.numbers = out, numbers

    def __call__(self, block: Block, state: Any, inside: NDArray[np.intp]) -> None:
        first = int(np.searchsorted(self.numbers, block.start + inside[0]))
        to, rows = self.out[first : first + len(inside)], block.unchecked
        if rows.dtype == to.dtype:
            np.take(rows, inside, axis=0, out=to, mode="clip")  # with "raise" there would be another copy
        else:
            to[:] = rows[inside]


def _take_rows(block: Block, state: Any, inside: NDArray[np.intp]) -> Any:
    return block.unchecked[inside]
