"""One fit under way: the source, the engine, and a count of what was done with them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from threading import Lock
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from foldwise import kernels
from foldwise.data.block import Block
from foldwise.data.block_grid import rows_per_block
from foldwise.data.source import Piece, Source
from foldwise.errors import DataError
from foldwise.fold import blas, events, serial, threads
from foldwise.fold.manifest import Manifest
from foldwise.fold.tree import Mergeable, Tree

S = TypeVar("S", bound=Mergeable)
T = TypeVar("T")


class Engine(Protocol):
    """Calls `take(number, work(block))` for every piece, wherever and in whatever order it likes."""

    def __call__(
        self, pieces: Iterable[Piece], work: Callable[[Block], T], take: Callable[[int, T], None], n_threads: int
    ) -> None:
        """Run the work."""


class Passes:
    """Passes over one source with one engine; `fold` is the one way in which a model sees its data."""

    def __init__(self, source: Source, *, n_threads: int | None = None, engine: Engine | None = None) -> None:
        self.source = source
        self.n_threads = threads.count(n_threads)
        self.passes = 0
        self._engine = engine
        self._block_rows = rows_per_block(source.n_columns, source.dtype, sparse=source.sparse)
        self._lock = Lock()
        self._started = time.perf_counter()

    def fold(self, of: Callable[[Block], S]) -> S:
        """Merge `of(block)` over all blocks, in the fixed order."""
        self.passes += 1
        return self._merged(self._told(self.source.pieces()), of, self._one_block)

    def fold_pieces(self, pieces: Iterator[Piece], of: Callable[[Block], S]) -> S:
        """The same over pieces that somebody else cut."""
        return self._merged(pieces, of, False)

    def _merged(self, pieces: Iterator[Piece], of: Callable[[Block], S], one_block: bool) -> S:
        tree: Tree[S] = Tree()
        self._run(pieces, of, tree.add, one_block)
        result = tree.result()
        if result is None:
            raise self._no_rows()
        return result

    def visit(
        self, of: Callable[[Block], T], take: Callable[[int, T], None], pieces: Sequence[Piece] | None = None
    ) -> None:
        """Give the number and `of(block)` of every block to `take`, in any order and from several threads at once.

        For results whose sum does not depend on the order, and for what is kept beside each block. Only these may also be
        taken over other pieces than the fixed ones.
        """
        self.passes += 1
        if pieces is None:
            self._run(self._told(self.source.pieces()), of, take, self._one_block)
        else:
            self._run(self._told(iter(pieces), -(-(self.source.n_rows or 0) // len(pieces))), of, take, False)

    def rows(self, of: Callable[[Block], NDArray[Any]]) -> NDArray[Any]:
        """The arrays `of(block)`, whose first axis is the block's rows, one below the other."""
        self.passes += 1
        n_rows = self.source.n_rows
        if n_rows is None:
            parts: dict[int, NDArray[Any]] = {}
            self._run(self._told(self.source.pieces()), of, parts.__setitem__, False)
            if not parts:
                raise self._no_rows()
            return np.concatenate([parts[number] for number in sorted(parts)])
        out: list[NDArray[Any]] = []

        def place(block: Block) -> None:
            part = of(block)
            if part.shape[0] == n_rows:
                out.append(part)  # the only block: no copy
                return
            if not out:
                with self._lock:
                    if not out:
                        out.append(np.empty((n_rows, *part.shape[1:]), part.dtype))
            out[0][block.start : block.start + part.shape[0]] = part

        self._run(self._told(self.source.pieces()), place, lambda number, nothing: None, self._one_block)
        return out[0]

    def in_order(self, of: Callable[[Block], T], sink: Callable[[T], None]) -> None:
        """Give `of(block)` of every block to `sink`, one at a time and in row order: for output larger than memory."""
        self.passes += 1
        waiting: dict[int, T] = {}
        due = 0

        def take(number: int, value: T) -> None:
            nonlocal due
            with self._lock:
                waiting[number] = value
                while due in waiting:
                    sink(waiting.pop(due))
                    due += 1

        self._run(self._told(self.source.pieces()), of, take, self._one_block)

    def manifest(self, algorithm: str, *, rows: int, resumed_at: int = 0, repairs: tuple[str, ...] = ()) -> Manifest:
        """What was done so far."""
        return Manifest(
            algorithm=algorithm,
            source=self.source.where,
            rows=rows,
            columns=self.source.n_columns,
            dtype=self.source.dtype.name,
            passes=self.passes,
            threads=self.n_threads,
            seconds=time.perf_counter() - self._started,
            instruction_set=kernels.instruction_set(),
            left_out=self.source.left_out,
            spooled_bytes=getattr(self.source, "spooled_bytes", 0),
            resumed_at=resumed_at,
            repairs=repairs,
        )

    def _no_rows(self) -> DataError:
        return DataError("Found array with 0 sample(s): there is no row to work on", where=self.source.where)

    @property
    def _one_block(self) -> bool:
        return self.source.n_rows is not None and self.source.n_rows <= self._block_rows

    def _run(
        self, pieces: Iterator[Piece], work: Callable[[Block], T], take: Callable[[int, T], None], one_block: bool
    ) -> None:
        if one_block:  # no engine: small tables in a notebook must not pay for machinery
            with blas.single((self.source.n_rows or 0) * self.source.n_columns**2):
                serial.run(pieces, work, take)
            return
        engine: Engine = self._engine or (serial.run if self.n_threads == 1 else threads.run)
        with blas.single():
            engine(pieces, work, take, self.n_threads)

    def _told(self, pieces: Iterator[Piece], rows: int | None = None) -> Iterator[Piece]:
        """The pieces, with an event after each if anybody listens; `rows` are in each of them, about."""
        return self._telling(pieces, rows or self._block_rows) if events.heard() else pieces

    def _telling(self, pieces: Iterator[Piece], rows: int) -> Iterator[Piece]:
        total = self.source.n_rows
        for number, piece in enumerate(pieces):
            yield piece
            done = (number + 1) * rows
            events.emit(events.RowsRead(done if total is None else min(done, total), total, self.passes))
