"""Children forked while other threads of the parent fit: they finish, and find what the parent finds."""

from __future__ import annotations

import multiprocessing as mp
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import Any

import numpy as np
import pytest
from threadpoolctl import threadpool_info

import foldwise as fw
from foldwise.data.duckdb_connection import Database
from foldwise.fold import blas

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks here"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),  # Python warns of forks while there are threads
]
ROWS = np.random.default_rng(0).normal(size=(3000, 40)) * np.arange(1, 41)
SECONDS = 20  # a child that takes longer hangs


def figures() -> list[bytes]:
    small = ROWS[:, :3]
    kmeans = fw.KMeans(3, random_state=0).fit(ROWS)
    mixture = fw.GaussianMixture(2, random_state=0, max_iter=3, tol=1.0).fit(small)
    found = fw.PCA(2).fit(ROWS).components_, kmeans.cluster_centers_, kmeans.predict(ROWS), mixture.means_
    return [one.tobytes() for one in found]


def of_child(work: Callable[[], Any]) -> Any:
    """What `work` returns in a forked child."""
    context = mp.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    child = context.Process(target=lambda: sender.send(work()))
    child.start()
    try:
        assert receiver.poll(SECONDS), "the child hangs"
        return receiver.recv()
    finally:
        child.kill()
        child.join()


def blas_threads() -> list[int]:
    return [one["num_threads"] for one in threadpool_info() if one["user_api"] == "blas"]


@contextmanager
def a_thread(work: Callable[[], Any]) -> Iterator[None]:
    """A thread that works all the time."""
    ended = threading.Event()

    def loop() -> None:
        while not ended.is_set():
            work()

    thread = threading.Thread(target=loop, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def test_a_child_fits_while_a_thread_fits() -> None:
    expected = figures()
    with a_thread(lambda: fw.PCA(2).fit(ROWS)):
        assert [of_child(figures) for _ in range(3)] == [expected] * 3


def test_a_fork_while_the_limit_of_blas_is_being_set(monkeypatch: pytest.MonkeyPatch) -> None:
    """The moment at which a child used to hang: the parent's thread held our lock."""
    expected = fw.PCA(2).fit(ROWS).components_
    setting, real, parent = threading.Event(), blas._set, os.getpid()

    def slowly(library: Any, n_threads: int) -> None:
        if os.getpid() == parent:
            setting.set()
            time.sleep(0.1)
        real(library, n_threads)

    with monkeypatch.context() as patched:
        patched.setattr(blas, "_set", slowly)
        thread = threading.Thread(target=lambda: fw.PCA(2).fit(ROWS))
        thread.start()
        assert setting.wait(SECONDS)
        found = of_child(lambda: fw.PCA(2).fit(ROWS).components_)
        thread.join()
    np.testing.assert_array_equal(found, expected)


def test_the_limit_of_a_fit_in_the_parent_does_not_stay_in_the_child() -> None:
    fw.PCA(2).fit(ROWS)
    before, inside, ended = blas_threads(), threading.Event(), threading.Event()

    def fit() -> None:
        with blas.single():
            inside.set()
            ended.wait(SECONDS)

    thread = threading.Thread(target=fit)
    thread.start()
    try:
        assert inside.wait(SECONDS)
        assert set(blas_threads()) == {1}
        assert of_child(blas_threads) == before
        assert of_child(lambda: (fw.PCA(2).fit(ROWS), blas_threads())[1]) == before
    finally:
        ended.set()
        thread.join()
    assert blas_threads() == before


def test_a_fork_inside_a_fit_keeps_its_own_limit() -> None:
    before = blas_threads()
    with blas.single():
        assert set(of_child(blas_threads)) == {1}
    assert blas_threads() == before


FIRST = """
import os, signal, sys, threading, time
import foldwise as fw
rows = [[0.0, 1.0], [2.0, 5.0], [4.0, 9.0], [7.0, 9.0]]
begun = threading.Event()
threading.Thread(target=lambda: (begun.set(), fw.KMeans(2).fit(rows)), daemon=True).start()
begun.wait()
time.sleep(0.02)
child = os.fork()
if child == 0:
    signal.alarm(20)
    fw.KMeans(2).fit(rows)
    os._exit(0)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


def test_a_fork_while_a_thread_imports_the_models() -> None:
    """Python's lock of a module that is being imported stays locked in a child."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", FIRST], env=environment, capture_output=True, text=True, timeout=60)
    assert (done.stdout.strip(), done.stderr) == ("0", "")


def test_a_child_opens_a_database_of_its_own() -> None:
    """A connection has threads, which a child has not."""
    database = Database()
    database.query("CREATE TABLE here AS SELECT 1")
    tables = "SELECT count(*) FROM duckdb_tables()"
    assert of_child(lambda: database.query(tables)) == [(0,)]
    assert database.query(tables) == [(1,)]


@pytest.mark.parametrize("backend", ["loky", "multiprocessing", "threading"])
def test_joblib(backend: str) -> None:
    from joblib import Parallel, delayed

    with a_thread(lambda: fw.PCA(2).fit(ROWS)), Parallel(2, backend=backend, timeout=SECONDS) as run:
        models = run(delayed(fw.PCA(2).fit)(ROWS) for _ in range(3))
    expected = fw.PCA(2).fit(ROWS).components_
    for model in models:
        np.testing.assert_array_equal(model.components_, expected)


class Slow:
    """Stands for what a fit keeps once it is known."""

    @cached_property
    def figure(self) -> int:
        time.sleep(0.5)
        return 7


def test_a_child_reads_what_another_thread_of_the_parent_was_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before Python 3.12 a cached property is locked for all objects while one of them finds it."""
    monkeypatch.setattr(fw.forks, "Slow", Slow, raising=False)  # among the classes of the package
    other = threading.Thread(target=lambda: Slow().figure)
    other.start()
    time.sleep(0.1)
    try:
        assert of_child(lambda: Slow().figure) == 7
    finally:
        other.join()
