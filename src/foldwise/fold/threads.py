"""The threaded engine: blocks are loaded and processed by a few threads (kernels and readers release the GIL)."""

from __future__ import annotations

import atexit
import os
import time
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import suppress
from contextvars import copy_context
from functools import cache, partial
from threading import Lock, Thread
from typing import Any, TypeVar
from weakref import WeakSet

from foldwise import forks
from foldwise.kernels import _core

P = TypeVar("P")
Job = Callable[[], Any]

# So long a thread that has nothing to do stays awake, in seconds. Passes of a fit follow each other within a tenth of a
# millisecond, and on a virtual machine a thread takes as long to wake up.
_AWAKE = 3e-4


class _Pool:
    """Some helpers and the jobs that wait for them.

    Ctrl-C may end a caller between any two steps here. So what a caller does is one call at a time: a job that nobody was
    woken for is found by the next helper that looks, and a job does nothing once its caller has gone (`_Pass`).
    """

    def __init__(self, n_threads: int) -> None:
        self.jobs: deque[Job] = deque()
        self.calls = _core.Flag(0)  # changes with every job
        self.awake: deque[_Helper] = deque()  # those without a job,
        self.asleep: deque[_Helper] = deque()  # and those that must be woken for one
        self.helpers = [_Helper(self) for _ in range(n_threads)]

    def start(self, job: Job, apart: bool) -> None:
        """Have all helpers do this, each as soon as it can."""
        processor = _core.this_processor() if apart else -1
        for helper in self.helpers:
            helper.keep_off(processor)
        self.jobs.extend([job] * len(self.helpers))
        self.calls.add(1)
        missing = len(self.helpers) - len(self.awake)
        while missing > 0:
            try:
                self.asleep.popleft().wake()
            except IndexError:
                break  # the others are at work, and look for more afterwards
            missing -= 1


class _Helper:
    """A thread that does jobs of its pool. When there is none, it looks for one for a moment before it goes to sleep."""

    def __init__(self, pool: _Pool) -> None:
        self._pool, self._bell, self._processors = pool, Lock(), Lock()
        self._bell.acquire()
        self._stopped = False
        self._left, self._allowed = -1, set[int]()  # the processor that it keeps off, and those that it had before
        pool.asleep.append(self)
        self._thread = Thread(target=self._live, name="foldwise", daemon=True)
        self._thread.start()
        _all.add(self)

    def wake(self) -> None:
        """Wake it up; for whoever took it from the list of those that are asleep."""
        with suppress(RuntimeError):  # called twice
            self._bell.release()

    def stop(self) -> None:
        """Have the thread end, once it has nothing to do; wait for it, but not for ever."""
        self._stopped = True
        self.wake()
        self._thread.join(1.0)

    def _live(self) -> None:
        pool = self._pool
        while True:
            self._bell.acquire()
            while not self._stopped:
                calls = pool.calls.value()
                try:
                    job = pool.jobs.popleft()
                except IndexError:
                    pool.awake.append(self)
                    called = pool.calls.wait_while(calls, _AWAKE)
                    pool.awake.remove(self)
                    if called:
                        continue
                    self.keep_off(-1)
                    pool.asleep.append(self)
                    if not pool.jobs:  # or else it may have come before anybody saw this one asleep
                        break
                    with suppress(ValueError):
                        pool.asleep.remove(self)
                else:
                    job()
                    del job  # it holds the data
            if self._stopped:
                return

    def keep_off(self, processor: int) -> None:
        """Keep the thread off this processor, which its caller is on; -1: let it run anywhere again.

        Schedulers may wake it there even if others are idle, and leave both threads there for some hundredths of a second:
        longer than many fits take.
        """
        if processor == self._left or not hasattr(os, "sched_setaffinity"):
            return
        with self._processors, suppress(OSError):
            thread = self._thread.native_id or 0
            self._allowed = self._allowed or os.sched_getaffinity(thread)
            rest = self._allowed - {processor}
            os.sched_setaffinity(thread, rest or self._allowed)
            self._left = processor
            if processor == -1:
                self._allowed = set()


_all: WeakSet[_Helper] = WeakSet()


@cache
def _pool(n_threads: int) -> _Pool:
    return _Pool(n_threads)


def _renew() -> None:
    """Threads do not survive a fork."""
    _pool.cache_clear()
    _all.clear()


forks.in_child(_renew)


@atexit.register
def _stop_all() -> None:
    """Python must not end while a helper is in compiled code, to which it could not return."""
    _pool.cache_clear()
    for helper in list(_all):
        helper.stop()


class _Pass:
    """What the threads of one pass have in common."""

    def __init__(self, pieces: Iterable[Any], work: Callable[[int, Any], Any], take: Callable[[int, Any], None]) -> None:
        self._numbered, self._work, self._take = enumerate(pieces), work, take
        self._turn, self._ended = Lock(), False
        self._busy = _core.Flag(0)  # helpers at work
        self.problems: list[tuple[int, BaseException]] = []

    def help(self) -> None:
        """Take part, unless the pass has ended: whoever called for help may have been interrupted since."""
        with self._turn:
            if self._ended:
                return
            self._busy.add(1)
        try:
            self.loop()
        finally:
            self._busy.add(-1)

    def loop(self) -> None:
        """Take the next piece until there are none."""
        number = -1  # a source that fails between two pieces comes before any of them
        try:
            while True:
                with self._turn:
                    if self.problems or self._ended:
                        return
                    number, piece = next(self._numbered, (-1, None))
                if piece is None:
                    return
                self._take(number, self._work(number, piece))
        except BaseException as problem:
            self.problems.append((number, problem))

    def end(self) -> None:
        """Wait for the helpers: a block still in use must not outlive the data it reads, whatever comes in between."""
        while True:
            try:
                with self._turn:
                    self._ended = True
                if self._busy.wait_until(0, _AWAKE):
                    return
                while not self._busy.wait_until(0, 0.0):
                    time.sleep(_AWAKE)
            except KeyboardInterrupt as problem:
                self.problems.append((-1, problem))


def run(
    pieces: Iterable[P],
    work: Callable[[int, P], Any],
    take: Callable[[int, Any], None],
    n_threads: int,
    *,
    apart: bool = False,
) -> None:
    """Call `take(number, work(number, piece))` for every piece, in `n_threads` threads and in no fixed order.

    Every thread, including the calling one, takes the next piece when it has finished its last. A slow block therefore delays
    no other, no more blocks are in memory than there are threads, and no queue is needed. `apart` keeps the helpers off the
    processor of the caller; not for work that may start threads of its own, which would keep off it for good.
    """
    together = _Pass(pieces, work, take)
    try:
        # Each helper has a copy of the caller's context: what is muted here is muted there.
        _pool(n_threads - 1).start(partial(_with_context, copy_context(), together.help), apart)
        together.loop()
    finally:
        together.end()
    if together.problems:
        # Of several bad blocks, report the first, whichever thread was faster.
        raise min(together.problems, key=lambda found: found[0])[1]


def _with_context(context: Any, work: Callable[[], None]) -> None:
    context.copy().run(work)  # a context serves one thread at a time
