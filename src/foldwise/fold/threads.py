"""The engine of one machine: blocks are loaded and worked on by a few threads (kernels and readers release the GIL)."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import lru_cache
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
    """Call `take(number, work(block))` for every piece, in up to `n_threads` threads at once and in no fixed order."""

    def one(number: int, piece: Piece) -> None:
        take(number, work(piece()))

    # Two pieces per thread are in hand: enough that no thread waits, few enough to bound memory.
    pool, under_way = _pool(n_threads), deque[Future[None]]()
    try:
        for number, piece in enumerate(pieces):
            if len(under_way) == 2 * n_threads:
                under_way.popleft().result()
            under_way.append(pool.submit(one, number, piece))
        while under_way:
            under_way.popleft().result()
    except BaseException:
        for future in under_way:
            future.cancel()
        for future in under_way:  # a block still being worked on must not outlive the data it reads
            if not future.cancelled():
                future.exception()
        raise
