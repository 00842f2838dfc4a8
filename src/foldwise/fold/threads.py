"""The threaded engine: blocks are loaded and processed by a few threads (kernels and readers release the GIL)."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from contextvars import copy_context
from functools import lru_cache
from itertools import cycle
from threading import Lock, get_native_id
from typing import Any, TypeVar

from foldwise import forks
from foldwise.kernels import _core

P = TypeVar("P")

_WAITING, _RUNNING, _DONE = range(3)
# So long a thread that has nothing to do stays awake, in seconds. Passes of a fit follow each other within a tenth of a
# millisecond, and on a virtual machine a thread takes as long to wake up.
_AWAKE = 3e-4


class _Job:
    """What a helper does in one pass."""

    def __init__(self, work: Callable[[], None]) -> None:
        self._work, self._context = work, copy_context()  # what is muted in the caller's context is muted in the helper
        self._state, self._finished = _core.Flag(_WAITING), Lock()
        self._finished.acquire()

    def run(self) -> None:
        """Do it, unless it was dropped."""
        if self._state.exchange(_WAITING, _RUNNING):
            try:
                self._context.run(self._work)
            finally:
                self._state.set(_DONE)
                self._finished.release()

    def end(self) -> None:
        """Drop it if it has not begun; otherwise wait for its end."""
        if self._state.exchange(_WAITING, _DONE) or self._state.wait_while(_RUNNING, _AWAKE):
            return
        with self._finished:
            pass


class _Helper:
    """A thread. When it has done a job, it waits for the next one for a moment before it goes to sleep."""

    def __init__(self, pool: _Pool) -> None:
        self._pool, self._thread = pool, ThreadPoolExecutor(1, thread_name_prefix="foldwise")
        self._called = _core.Flag(0)
        self._job: _Job | None = None
        self._number = 0  # of the thread, once it has been started
        self._left, self._allowed = -1, set[int]()  # the processor that it keeps off, and those that it had before

    def call(self, job: _Job) -> None:
        """Give the next job to a helper that is awake."""
        self._leave(_core.this_processor())
        self._job = job
        self._called.set(1)

    def wake(self, job: _Job) -> None:
        """Give the next job to a helper that sleeps."""
        self._leave(_core.this_processor())
        self._thread.submit(self._work, job)

    def queue(self, job: _Job) -> None:
        """Give a job to a helper that is busy, for afterwards."""
        self._thread.submit(job.run)

    def _work(self, job: _Job) -> None:
        """Do this job, and those that follow soon."""
        self._number, awake = get_native_id(), self._pool.awake
        while True:
            job.run()
            self._called.set(0)
            awake.append(self)
            if not self._called.wait_while(0, _AWAKE):
                try:
                    awake.remove(self)
                except ValueError:  # taken just now: the call comes at once
                    while not self._called.wait_while(0, 1.0):
                        pass
                else:
                    self._return()
                    self._pool.asleep.append(self)
                    return
            assert self._job is not None
            job, self._job = self._job, None

    def _leave(self, processor: int) -> None:
        """Keep the thread off the processor of its caller until it goes to sleep.

        Schedulers may wake it there even if others are idle, and leave both threads there for some hundredths of a second:
        longer than many fits take.
        """
        if processor == self._left or not self._number or not hasattr(os, "sched_setaffinity"):
            return
        with suppress(OSError):
            allowed = self._allowed or os.sched_getaffinity(self._number)
            if processor in allowed and len(allowed) > 1:
                os.sched_setaffinity(self._number, allowed - {processor})
                self._left, self._allowed = processor, allowed

    def _return(self) -> None:
        """Let the thread run anywhere again."""
        allowed, self._allowed, self._left = self._allowed, set(), -1
        if allowed:
            with suppress(OSError):
                os.sched_setaffinity(0, allowed)


class _Pool:
    """Some helpers: those that are awake and idle, those that sleep, and others, which are busy."""

    def __init__(self, n_threads: int) -> None:
        helpers = [_Helper(self) for _ in range(n_threads)]
        self.awake: deque[_Helper] = deque()
        self.asleep: deque[_Helper] = deque(helpers)
        self._next = cycle(helpers)

    def start(self, work: Callable[[], None]) -> _Job:
        """Have a helper do this, as soon as it can."""
        job = _Job(work)
        for idle, begin in ((self.awake, _Helper.call), (self.asleep, _Helper.wake)):
            try:
                helper = idle.pop()
            except IndexError:
                continue
            begin(helper, job)
            return job
        next(self._next).queue(job)
        return job


@lru_cache(maxsize=4)
def _pool(n_threads: int) -> _Pool:
    return _Pool(n_threads)


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

    jobs = [_pool(n_threads - 1).start(loop) for _ in range(n_threads - 1)]
    try:
        loop()
    finally:
        while jobs:  # a block still in use must not outlive the data it reads, whatever comes in between
            try:
                jobs[-1].end()
                jobs.pop()
            except KeyboardInterrupt as problem:
                problems.append((-1, problem))
    if problems:
        # Of several bad blocks, report the first, whichever thread was faster.
        raise min(problems, key=lambda found: found[0])[1]
