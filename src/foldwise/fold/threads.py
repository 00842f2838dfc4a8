"""The threaded engine: blocks are loaded and processed by a few threads (kernels and readers release the GIL)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from functools import lru_cache
from threading import Lock
from typing import Any, TypeVar

from foldwise import forks

P = TypeVar("P")


@lru_cache(maxsize=4)
def _pool(n_threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(n_threads, thread_name_prefix="foldwise")


forks.in_child(_pool.cache_clear)  # threads do not survive a fork


def run(pieces: Iterable[P], work: Callable[[int, P], Any], take: Callable[[int, Any], None], n_threads: int) -> None:
    """Call `take(number, work(number, piece))` for every piece, in `n_threads` threads and in no fixed order.

    Every thread, including the calling one, takes the next piece when it has finished its last. A slow block therefore delays
    no other, no more blocks are in memory than there are threads, and no queue is needed.
    """
    numbered, turn = enumerate(pieces), Lock()
    problems: list[tuple[int, BaseException]] = []

    def loop() -> None:
        number = -1  # a source that fails between two pieces comes before any of them
        try:
            while True:
                with turn:
                    if problems:
                        return
                    number, piece = next(numbered, (-1, None))
                if piece is None:
                    return
                take(number, work(number, piece))
        except BaseException as problem:
            problems.append((number, problem))

    # Each helper has a copy of the caller's context: what is muted here is muted there.
    helpers = [_pool(n_threads - 1).submit(copy_context().run, loop) for _ in range(n_threads - 1)]
    try:
        loop()
    finally:
        for helper in helpers:  # a block still in use must not outlive the data it reads, whatever comes in between
            while not helper.done() and not helper.cancel():
                try:
                    helper.result()
                except KeyboardInterrupt as problem:
                    problems.append((-1, problem))
    if problems:
        # Of several bad blocks, report the first, whichever thread was faster.
        raise min(problems, key=lambda found: found[0])[1]
