"""The helpers of the threaded engine: each job is done once, whoever else is at work, and nothing is left behind."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from foldwise.fold import threads
from foldwise.kernels import _core

_AWAKE_FOR = 0.2  # seconds after which every helper sleeps


def squares(count: int, n_threads: int = 3, pause: float = 0.0) -> list[int]:
    found: dict[int, int] = {}

    def work(number: int, piece: int) -> int:
        time.sleep(pause)
        return piece * piece

    threads.run(range(1, count + 1), work, found.__setitem__, n_threads)
    return [found[number] for number in range(count)]


@pytest.mark.parametrize("pause", [0.0, 1e-3])
@pytest.mark.parametrize("between", [0.0, 2e-4, 5e-4, 5e-3])
def test_passes_after_each_other(pause: float, between: float) -> None:
    """Helpers are called while they are awake, while they fall asleep, and while they sleep."""
    for count in range(1, 40):
        assert squares(count, pause=pause if count < 8 else 0.0) == [i * i for i in range(1, count + 1)]
        time.sleep(between)


def test_several_callers_and_passes_within_passes() -> None:
    found: list[Any] = []

    def call() -> None:
        found.extend(squares(20) for _ in range(30))

    def outer(number: int, piece: int) -> list[int]:
        return squares(piece)

    callers = [threading.Thread(target=call) for _ in range(6)]
    for caller in callers:
        caller.start()
    nested: dict[int, Any] = {}
    for _ in range(20):
        threads.run([5] * 9, outer, nested.__setitem__, 3)
        assert list(nested.values()) == [[1, 4, 9, 16, 25]] * 9
    for caller in callers:
        caller.join(60)
        assert not caller.is_alive()
    assert found == [[i * i for i in range(1, 21)]] * 180


def test_an_error_reaches_the_caller_and_the_next_pass_works() -> None:
    def work(number: int, piece: int) -> int:
        if piece in (4, 7):
            raise ValueError(f"piece {piece}")
        return piece

    for _ in range(50):
        with pytest.raises(ValueError, match="piece"):
            threads.run(range(10), work, lambda number, found: None, 2)
        assert squares(4, 2) == [1, 4, 9, 16]


def test_helpers_have_the_context_of_their_caller() -> None:
    variable: ContextVar[int] = ContextVar("variable", default=0)
    for value in (1, 2, 3):
        variable.set(value)
        found: dict[int, int] = {}
        threads.run(range(8), lambda number, piece: (time.sleep(1e-3), variable.get())[1], found.__setitem__, 3)
        assert set(found.values()) == {value}


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="processors of threads cannot be asked for here")
def test_processors_of_helpers_are_given_back() -> None:
    squares(50, 2, pause=1e-3)
    time.sleep(_AWAKE_FOR)
    before = {task.name: os.sched_getaffinity(int(task.name)) for task in Path("/proc/self/task").iterdir()}
    for _ in range(20):
        squares(4, 2, pause=1e-3)
    time.sleep(_AWAKE_FOR)
    after = {name: os.sched_getaffinity(int(name)) for name in before if Path("/proc/self/task", name).exists()}
    assert after == {name: before[name] for name in after}


def test_no_more_threads_than_were_asked_for_at_a_time() -> None:
    """In a process of its own: threads that other libraries start or end would be counted, too."""
    script = """
import threading
from pathlib import Path
from foldwise.fold import threads

def squares(n_threads):
    threads.run(range(20), lambda number, piece: piece * piece, {}.__setitem__, n_threads)

for n_threads in range(2, 9):
    callers = [threading.Thread(target=squares, args=(n_threads,)) for _ in range(4)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join(60)
assert len(threads._pool().helpers) == 7
tasks = Path("/proc/self/task")
before = set(tasks.iterdir()) if tasks.exists() else set()
for n_threads in range(2, 9):
    squares(n_threads)
new = set(tasks.iterdir()) - before if before else set()
assert not new, new
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr


def test_no_processor_is_busy_when_nothing_is_to_be_done() -> None:
    squares(50, 3)
    time.sleep(_AWAKE_FOR)
    began = time.process_time()
    time.sleep(0.2)
    assert time.process_time() - began < 0.1


def test_flags() -> None:
    flag = _core.Flag(1)
    flag.add(1)
    assert flag.value() == 2
    assert flag.wait_while(1, 10.0)
    assert flag.wait_until(2, 10.0)
    began = time.perf_counter()
    assert not flag.wait_while(2, 0.01)
    assert time.perf_counter() - began >= 0.01
    threading.Timer(0.01, flag.add, [-2]).start()
    assert flag.wait_until(0, 30.0)


def test_interrupts_at_any_moment_leave_helpers_alone() -> None:
    """Ctrl-C between any two steps of a pass: no helper goes on for it, none is lost, and the next pass works."""
    code = """
import random, signal, sys, time
from foldwise.fold import threads
def interrupt(number, frame):
    raise KeyboardInterrupt
signal.signal(signal.SIGALRM, interrupt)
rng, interrupted = random.Random(int(sys.argv[1])), 0
end = time.monotonic() + 3
while time.monotonic() < end:
    try:
        try:
            signal.setitimer(signal.ITIMER_REAL, rng.uniform(2e-5, 1.5e-3))
            for _ in range(10):
                threads.run(range(6), lambda number, piece: sum(range(100)), lambda number, found: None, 3, apart=True)
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
    except KeyboardInterrupt:
        interrupted += 1
    signal.setitimer(signal.ITIMER_REAL, 0)
    found = {}
    threads.run(range(5), lambda number, piece: piece, found.__setitem__, 3)
    assert found == {i: i for i in range(5)}, found
time.sleep(0.1)
busy = time.process_time()
time.sleep(0.3)
busy = time.process_time() - busy
states = [helper.state.name for helper in threads._pool().helpers]
print(interrupted > 100, busy < 0.1, *states, len(threads._pool().jobs))
"""
    for seed in ("1", "2"):
        command = [sys.executable, "-c", code, seed]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        assert done.stdout.split() == ["True", "True", "ASLEEP", "ASLEEP", "0"], done
        assert done.returncode == 0
        assert not done.stderr


def test_results_do_not_depend_on_helpers() -> None:
    x = np.random.default_rng(0).standard_normal(1000)
    found: dict[int, float] = {}
    for n_threads in (1, 2, 5):
        threads.run(np.array_split(x, 17), lambda number, piece: float(piece.sum()), found.__setitem__, max(n_threads, 2))
        assert [found[i] for i in range(17)] == [float(part.sum()) for part in np.array_split(x, 17)]
