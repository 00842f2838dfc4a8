"""The engine of one machine: blocks are loaded and worked on by a few threads (kernels and readers release the GIL)."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import lru_cache
from threading import Lock
from typing import TypeVar

from foldwise.data.block import Block
from foldwise.data.source import Piece
from foldwise.errors import ParameterError

T = TypeVar("T")


def count(n_threads: int | None = None) -> int:
    """How many threads to use: the argument, else FOLDWISE_THREADS, else the cores this process may run on."""
    if n_threads is not None:
        chosen, origin = n_threads, "n_threads"
    elif text := os.environ.get("FOLDWISE_THREADS", ""):
        try:
            chosen, origin = int(text), "FOLDWISE_THREADS"
        except ValueError:
            raise ParameterError(f"FOLDWISE_THREADS={text!r} is not a whole number.") from None
    else:
        return _cores()
    if chosen < 1:
        raise ParameterError(f"{origin}={chosen} must be at least 1; leave it out to use all {_cores()} cores.")
    return chosen


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@lru_cache(maxsize=4)
def _pool(n_threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(n_threads, thread_name_prefix="foldwise")


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_pool.cache_clear)  # threads do not survive a fork


def run(pieces: Iterable[Piece], work: Callable[[Block], T], take: Callable[[int, T], None], n_threads: int) -> None:
    """Call `take(number, work(block))` for every piece, in `n_threads` threads at once and in no fixed order.

    Every thread, this one among them, takes the next piece when it is done with its last. So a slow block holds up nobody,
    no more blocks are in memory than threads, and no queue is kept in between.
    """
    numbered, turn = enumerate(pieces), Lock()
    stopped = False

    def loop() -> None:
        nonlocal stopped
        try:
            while True:
                with turn:
                    if stopped:
                        return
                    number, piece = next(numbered, (-1, None))
                if piece is None:
                    return
                take(number, work(piece()))
        except BaseException:
            stopped = True
            raise

    helpers = [_pool(n_threads - 1).submit(loop) for _ in range(n_threads - 1)] if n_threads > 1 else []
    try:
        loop()
    finally:
        # A block still being worked on must not outlive the data it reads.
        problems = [problem for helper in helpers if (problem := _outcome(helper)) is not None]
    if problems:
        raise problems[0]


def _outcome(helper: Future[None]) -> BaseException | None:
    return None if helper.cancel() else helper.exception()
