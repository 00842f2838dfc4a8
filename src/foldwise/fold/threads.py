"""The threaded engine: blocks are loaded and processed by a few threads (kernels and readers release the GIL)."""

from __future__ import annotations

import atexit
import os
import time
from _thread import start_new_thread
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import suppress
from contextvars import copy_context
from enum import Enum
from functools import partial
from threading import Lock, RLock, get_native_id
from typing import Any, TypeVar

from foldwise import forks
from foldwise.kernels import _core

P = TypeVar("P")
Job = Callable[[], Any]

# So long a thread that has nothing to do stays awake, in seconds. Passes of a fit follow each other within a tenth of a
# millisecond, or half of one if there are many large clusters, and on a virtual machine a thread takes as long to wake up.
_AWAKE = 1e-3
_NEARLY_DONE = 3e-4  # so long a caller waits for others before it looks from time to time only


class _Pool:
    """Helpers, as many as were ever asked for at a time, and the jobs that wait for them.

    Ctrl-C may end a caller between any two steps here. So what a caller does is one call at a time: a job that nobody was
    woken for is found by the next helper that looks, and a job does nothing once its caller has gone (`_Pass`).
    """

    def __init__(self) -> None:
        self.jobs: deque[Job] = deque()
        self.calls = _core.Flag(0)  # changes with every job
        self.helpers: list[_Helper] = []
        self._growing = RLock()  # as the next ones: a signal handler may fit as well, in the midst of this

    def start(self, job: Job, count: int, apart: bool) -> None:
        """Have so many helpers do this, each as soon as it can."""
        if len(self.helpers) < count:
            with self._growing:
                while len(self.helpers) < count:
                    self.helpers.append(_Helper(self))
        processor = _core.this_processor() if apart else -1
        idle = [helper for helper in self.helpers if helper.state is not _State.BUSY]
        for helper in idle:
            helper.keep_off(processor)
        self.jobs.extend([job] * count)
        self.calls.add(1)
        missing = count - sum(helper.state is _State.AWAKE for helper in idle)
        for helper in self.helpers:  # those that are busy look for more afterwards
            if missing <= 0:
                break
            if helper.state is _State.ASLEEP:
                helper.wake()
                missing -= 1

    def stop(self) -> None:
        """End all helpers that have nothing to do; wait for them, but not for ever."""
        end = time.monotonic() + 1.0
        for helper in self.helpers:
            helper.stop()
        for helper in self.helpers:
            helper.join(max(end - time.monotonic(), 0.0))
        self.helpers.clear()
        self.jobs.clear()


class _State(Enum):
    """What a helper does: waits to be woken, looks for a job, or works."""

    ASLEEP, AWAKE, BUSY = range(3)


class _Helper:
    """A thread that does jobs of its pool. When there is none, it looks for one for a moment before it goes to sleep.

    While it looks, it joins compiled work as well (cpp/crew.h), without a job.
    """

    def __init__(self, pool: _Pool) -> None:
        self.state = _State.ASLEEP
        self._pool, self._bell, self._moving, self._stopped = pool, Lock(), RLock(), False
        self._bell.acquire()
        self.left = -1  # the processor that it keeps off
        self._before, self._now = set[int](), set[int]()  # those that it had before, and those that it has instead
        self._made, self._ended, self._number = Lock(), Lock(), 0  # of the thread; its number once it runs

    def wake(self) -> None:
        """Wake it up. It is started here, and not when it is made: a thread that is in no list would never end."""
        with suppress(RuntimeError):  # called twice
            self._bell.release()
        if self._made.acquire(blocking=False):
            with suppress(RuntimeError):  # there are too many threads: the caller does its work alone
                start_new_thread(self._live, ())  # one step, unlike Thread.start, which an interrupt may leave half done

    def stop(self) -> None:
        """Have the thread end once it has nothing to do."""
        self._stopped = True
        with suppress(RuntimeError):
            self._bell.release()

    def join(self, seconds: float) -> None:
        """Wait for its end."""
        if self._number and self._ended.acquire(timeout=seconds):
            self._ended.release()

    def _live(self) -> None:
        with self._ended:
            self._number = get_native_id()
            self._work()

    def _work(self) -> None:
        pool = self._pool
        while not self._stopped:
            self._bell.acquire()
            while not self._stopped:
                calls = pool.calls.value()
                try:
                    job = pool.jobs.popleft()
                except IndexError:
                    self.state = _State.AWAKE
                    if pool.calls.join_while(calls, _AWAKE):
                        continue
                    self.keep_off(-1)
                    self.state = _State.ASLEEP
                    if not pool.jobs:  # or else a caller may have looked before this one was asleep
                        break
                else:
                    self.state = _State.BUSY
                    job()
                    del job  # it holds the data

    def keep_off(self, processor: int) -> None:
        """Keep the thread off this processor, which its caller is on; -1: let it run anywhere again.

        Schedulers may wake it there even if others are idle, and leave both threads there for some hundredths of a second:
        longer than many fits take.
        """
        if processor == self.left or not self._number or not hasattr(os, "sched_setaffinity"):
            return
        with self._moving, suppress(OSError):
            has = os.sched_getaffinity(self._number)
            if not self._now or has != self._now:  # they are its own, or somebody else's choice since
                self._before = has
            self._now = self._before - {processor} or self._before
            os.sched_setaffinity(self._number, self._now)
            self.left = processor
            if processor == -1:
                self._now = set()


_pools: list[_Pool] = []  # the one of this process, once it is needed
_making = RLock()


def _pool() -> _Pool:
    if not _pools:
        with _making:
            if not _pools:
                _pools.append(_Pool())
    return _pools[0]


def _renew() -> None:
    """Threads do not survive a fork."""
    global _making
    _making = RLock()
    _pools.clear()
    _core.renew_crew()


forks.in_child(_renew)


@atexit.register
def _stop() -> None:
    """Python must not end while a helper is in compiled code, to which it could not return."""
    while _pools:
        _pools.pop().stop()


def awake(count: int) -> bool:
    """Whether so many helpers are awake and off the processor of the caller: these join compiled work by themselves.

    Jobs need Python's lock, which takes some hundredths of a millisecond whenever two threads want it at a time.
    """
    processor = _core.this_processor()
    helpers = _pools[0].helpers if _pools else []
    # Only compiled code knows who is awake: to say that it falls asleep a helper needs Python's lock, which the caller holds.
    return sum(helper.left == processor for helper in helpers) >= count and _core.announce_work() >= count


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
                if self._busy.wait_until(0, _NEARLY_DONE):
                    return
                while not self._busy.wait_until(0, 0.0):
                    time.sleep(5e-5)  # no lock: Ctrl-C may come at any step
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
        _pool().start(partial(_with_context, copy_context(), together.help), n_threads - 1, apart)
        together.loop()
    finally:
        together.end()
    if together.problems:
        # Of several bad blocks, report the first, whichever thread was faster.
        raise min(together.problems, key=lambda found: found[0])[1]


def _with_context(context: Any, work: Callable[[], None]) -> None:
    context.copy().run(work)  # a context serves one thread at a time
