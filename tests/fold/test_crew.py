"""Helpers that are awake join compiled work by themselves: results stay the same, and nobody waits for what does not come."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from typing import Any

import numpy as np
import pytest

import foldwise as fw
from foldwise.fold import threads
from foldwise.kernels import _core
from foldwise.kernels.targets import CentreGroups, DenseTargets, Rescaling

_ASLEEP_AFTER = 0.1
pytestmark = pytest.mark.filterwarnings("ignore::foldwise.errors.NotFinishedWarning")


def wake(count: int) -> bool:
    """Have so many helpers awake; a busy machine may let them sleep again at once."""
    for _ in range(200):
        threads.run(range(count + 1), lambda number, piece: time.sleep(1e-5), lambda *found: None, count + 1, apart=True)
        if threads.awake(count):
            return True
    return False


def bits(model: Any) -> tuple[bytes, ...]:
    return tuple(np.asarray(each).tobytes() for each in (model.labels_, model.cluster_centers_, model.inertia_))


def rows(n: int, d: int) -> np.ndarray:
    rng = np.random.default_rng(n)
    return (rng.standard_normal((n, d)) + 2 * rng.standard_normal((40, d))[rng.integers(40, size=n)]).astype(np.float32)


def test_who_is_awake() -> None:
    assert wake(2)
    assert _core.announce_work() >= 2
    time.sleep(_ASLEEP_AFTER)
    assert _core.announce_work() == 0
    assert not threads.awake(1)


@pytest.mark.parametrize(("n", "d", "k", "steps"), [(12_000, 32, 20, 30), (9000, 100, 400, 8), (12_000, 16, 40, 30)])
def test_fits_have_the_same_bits_for_any_number_of_threads(n: int, d: int, k: int, steps: int) -> None:
    x = rows(n, d)
    given = {"init": x[:k], "n_init": 1, "tol": 0, "max_iter": steps, "algorithm": "auto"}
    alone = bits(fw.KMeans(k, n_threads=1, **given).fit(x))
    for n_threads in (2, 3, 2):
        assert bits(fw.KMeans(k, n_threads=n_threads, **given).fit(x)) == alone


def test_fits_at_the_same_time() -> None:
    x = rows(12_000, 32)
    given: dict[str, Any] = {"init": x[:20], "n_init": 1, "tol": 0, "max_iter": 20}
    expected, found = bits(fw.KMeans(20, n_threads=1, **given).fit(x)), []

    def fit() -> None:
        found.extend(bits(fw.KMeans(20, n_threads=2, **given).fit(x)) for _ in range(5))

    callers = [threading.Thread(target=fit) for _ in range(3)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join(60)
    assert found == [expected] * 15


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_preparing_a_pass_together(dtype: type) -> None:
    k, d = 701, 65
    rng = np.random.default_rng(0)
    old, now, x = (rng.standard_normal((n, d)).astype(dtype) / 8 for n in (k, k, 300))
    high, low, weights = rng.standard_normal((k, d)), rng.standard_normal((k, d)) * 1e-9, rng.integers(0, 3, k) * 1.0
    rescaling = Rescaling(np.full(d, 0.25), 0.5)
    groups = CentreGroups(rng.permutation(k).astype(np.int32), np.array([3, 300, k], np.int32))

    def prepared(helpers: int) -> list[bytes]:
        found = [np.empty(k), np.empty((4, k)), np.empty_like(old)]
        _core.distances_moved(old, now, 0.5, found[0], helpers)
        _core.update_centres(high, low, weights, rescaling.pivot, 0.5, old, found[2], False, found[1], helpers)
        for given in ({}, {"groups": groups}, {"observed": True}):
            targets = DenseTargets(now, rescaling, helpers=helpers, **given)  # type: ignore[arg-type]
            labels, near, after = np.full(len(x), -1, np.int32), np.empty(len(x), dtype), np.empty(len(x), dtype)
            if "groups" not in given:
                targets.nearest(x, labels, near, after)
            else:
                targets.nearest(x, labels)
            found += [labels, near if "groups" not in given else labels, targets.residuals(x, None, labels)]
        return [each.tobytes() for each in found]

    alone = prepared(0)
    for _ in range(20):
        assert wake(2)
        assert prepared(2) == alone


def test_interrupts_at_any_moment() -> None:
    """Ctrl-C between any two steps of a fit: the fit after it is as if nothing had happened."""
    code = """
import random, signal, sys, time, warnings
import numpy as np
import foldwise as fw
from foldwise.fold import threads
from foldwise.kernels import _core
warnings.simplefilter("ignore")
def interrupt(number, frame):
    raise KeyboardInterrupt
signal.signal(signal.SIGALRM, interrupt)
x = np.random.default_rng(0).standard_normal((12000, 32)).astype(np.float32)
def fit():
    model = fw.KMeans(30, init=x[:30], n_init=1, tol=0, max_iter=15, n_threads=3).fit(x)
    return model.labels_.tobytes() + model.cluster_centers_.tobytes(), model.outcome_.reason.name
expected, rng, interrupted = fit(), random.Random(1), 0
end = time.monotonic() + 4
while time.monotonic() < end:
    try:
        try:
            signal.setitimer(signal.ITIMER_REAL, rng.uniform(2e-4, 1e-2))
            interrupted += fit()[1] == "INTERRUPTED"
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
    except KeyboardInterrupt:
        interrupted += 1
    signal.setitimer(signal.ITIMER_REAL, 0)
    assert fit() == expected
time.sleep(0.1)
print(interrupted > 20, _core.announce_work(), *(helper.state.name for helper in threads._pool().helpers))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout.split() == ["True", "0", "ASLEEP", "ASLEEP"], done
    assert done.returncode == 0


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no forks here")
def test_a_child_of_a_fork_during_a_fit() -> None:
    """In the child nobody is at work, even if in its parent somebody was."""
    code = """
import os, threading, warnings
import numpy as np
import foldwise as fw
warnings.simplefilter("ignore")
x = np.random.default_rng(0).standard_normal((20000, 32)).astype(np.float32)
def fit():
    return fw.KMeans(12, init=x[:12], n_init=1, tol=0, max_iter=10, n_threads=2).fit(x).cluster_centers_.tobytes()
expected, going = fit(), True
def others():
    while going:
        fit()
other = threading.Thread(target=others)
other.start()
failed = 0
for _ in range(10):
    child = os.fork()
    if child == 0:
        os._exit(fit() != expected)
    failed += os.waitpid(child, 0)[1] != 0
going = False
other.join()
print(failed)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout.split() == ["0"], done
