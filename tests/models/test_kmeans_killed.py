"""A fit that was killed, interrupted or out of time goes on from its checkpoint and ends with the same bits."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import foldwise as fw
from foldwise.errors import NotFinishedWarning, StoreError
from foldwise.fold import events
from foldwise.fold.outcome import Reason

Make = Callable[..., Any]

# Every step waits, so that the parent has time to kill in the middle of the fit.
CHILD = """
import sys, time
import foldwise as fw
from foldwise.fold import events
from foldwise.models.kmeans import small_table
small_table.EFFORTS.clear()  # as if the table were large
path, checkpoint, search = sys.argv[1:]
with events.listening(lambda event: time.sleep(0.12) if isinstance(event, events.StepDone) else None):
    fw.KMeans(9, n_init=3, tol=0, search=search, algorithm="bounded", checkpoint=checkpoint).fit(path)
print("finished")
"""


def assert_same(a: Any, b: Any) -> None:
    for name in ("cluster_centers_", "labels_", "cluster_weights_", "cluster_inertias_"):
        np.testing.assert_array_equal(getattr(a, name), getattr(b, name), err_msg=name)
    assert a.inertia_ == b.inertia_
    assert a.n_iter_ == b.n_iter_
    assert a.outcome_.reason is b.outcome_.reason
    assert a.manifest_.repairs == b.manifest_.repairs
    for mine, other in zip(a.trace_, b.trace_, strict=True):
        for name in ("run", "clusters", "inertia", "inertia_after_e", "moved", "shift"):  # not what was pruned
            assert mine[name] == other[name], name


pytestmark = pytest.mark.usefixtures("as_if_large")  # a small table is searched before the first step


@pytest.fixture(scope="module")
def rows() -> np.ndarray:
    """No clear groups, so that there are many steps."""
    return np.random.default_rng(0).standard_normal((600, 3)) + 100


@pytest.mark.parametrize("search", ["none", "breathing"])
def test_killed_and_resumed(rows: np.ndarray, search: str, tmp_path: Path) -> None:
    path, checkpoint = tmp_path / "rows.npy", tmp_path / "fit.checkpoint"
    np.save(path, rows)
    undisturbed = fw.KMeans(9, n_init=3, tol=0, search=search).fit(path)
    assert undisturbed.outcome_.steps > 30
    with subprocess.Popen(
        [sys.executable, "-c", CHILD, str(path), str(checkpoint), search], stdout=subprocess.PIPE, text=True
    ) as child:
        deadline = time.monotonic() + 60
        while not checkpoint.exists() and child.poll() is None and time.monotonic() < deadline:
            time.sleep(0.01)
        os.kill(child.pid, signal.SIGKILL)
        assert "finished" not in (child.communicate()[0] or "")
    assert checkpoint.exists()
    resumed = fw.KMeans(9, n_init=3, tol=0, search=search, checkpoint=checkpoint).fit(path)
    assert 0 < resumed.manifest_.resumed_at < undisturbed.outcome_.steps
    assert_same(resumed, undisturbed)
    assert not checkpoint.exists()


class StopAt:
    """A listener that behaves like Ctrl-C at one event."""

    def __init__(self, kind: type, number: int) -> None:
        self.kind, self.left = kind, number

    def __call__(self, event: Any) -> None:
        if isinstance(event, self.kind):
            self.left -= 1
            if self.left == 0:
                raise KeyboardInterrupt


OPTIONS = [
    {"search": "none", "n_init": 3},
    {"search": "breathing"},
    {"search": "breathing", "n_init": 3, "algorithm": "bounded"},
    {"search": "split-merge"},
    {"init": "random", "algorithm": "bounded"},
    {"init": "k-means||", "tol": 1e-3},
]


def names(options: dict[str, Any]) -> str:
    return "-".join(map(str, options.values()))


@pytest.mark.parametrize("options", OPTIONS, ids=names)
@pytest.mark.parametrize("kind", [events.StepDone, events.RowsRead])
def test_interrupted_again_and_again(rows: np.ndarray, options: dict[str, Any], kind: type, tmp_path: Path) -> None:
    """Ctrl-C after a few steps, or in the middle of passes; each call goes on, until one is left alone."""
    options = {"tol": 0, **options}
    checkpoint = tmp_path / "fit.checkpoint"
    undisturbed = fw.KMeans(7, **options).fit(rows)
    stops = 0
    for after in (1, 2, 9, 17, 25, 33, 40):
        km = fw.KMeans(7, **options, checkpoint=checkpoint)
        try:
            with events.listening(StopAt(kind, after)), warnings.catch_warnings():
                warnings.simplefilter("ignore", NotFinishedWarning)
                km.fit(rows)
        except KeyboardInterrupt:
            assert (
                kind is events.RowsRead
            )  # in the first pass, while seeding, or in the last pass: there is no model then
            continue
        if km.outcome_.reason is Reason.INTERRUPTED:
            stops += 1
            assert checkpoint.exists()
            np.testing.assert_array_equal(km.predict(rows), km.labels_)
        else:
            assert_same(km, undisturbed)
    assert stops > 0
    assert_same(fw.KMeans(7, **options, checkpoint=checkpoint).fit(rows), undisturbed)
    assert not checkpoint.exists()


@pytest.mark.parametrize("options", OPTIONS[:4], ids=names)
def test_out_of_time_and_resumed(rows: np.ndarray, options: dict[str, Any], tmp_path: Path) -> None:
    options = {"tol": 0, **options}
    checkpoint = tmp_path / "fit.checkpoint"
    undisturbed = fw.KMeans(7, **options).fit(rows)
    slow = fw.KMeans(7, **options, checkpoint=checkpoint, time_budget=0.3)
    with (
        events.listening(lambda event: time.sleep(0.06) if isinstance(event, events.StepDone) else None),
        pytest.warns(NotFinishedWarning, match="out of time"),
    ):
        slow.fit(rows)
    assert 0 < slow.outcome_.steps < undisturbed.outcome_.steps
    resumed = fw.KMeans(7, **options, checkpoint=checkpoint).fit(rows)
    assert resumed.manifest_.resumed_at == slow.outcome_.steps
    assert_same(resumed, undisturbed)


def test_weights_and_repairs_survive(rows: np.ndarray, tmp_path: Path) -> None:
    w = np.random.default_rng(1).random(len(rows))
    start = rows[:6].copy()
    start[3] = 1e4  # empty at first
    undisturbed = fw.KMeans(6, init=start, tol=0).fit(rows, sample_weight=w)
    assert undisturbed.manifest_.repairs
    km = fw.KMeans(6, init=start, tol=0, checkpoint=tmp_path / "c")
    with events.listening(StopAt(events.StepDone, 4)), pytest.warns(NotFinishedWarning, match="interrupted"):
        km.fit(rows, sample_weight=w)
    assert_same(km.fit(rows, sample_weight=w), undisturbed)


def test_a_higher_cap_goes_on_where_the_lower_one_stopped(rows: np.ndarray, tmp_path: Path) -> None:
    undisturbed = fw.KMeans(7, tol=0).fit(rows)
    for max_iter in (3, 5):
        with pytest.warns(NotFinishedWarning, match="capped"):
            km = fw.KMeans(7, tol=0, max_iter=max_iter, checkpoint=tmp_path / "c").fit(rows)
        assert km.outcome_.steps == max_iter
        np.testing.assert_array_equal(km.predict(rows), km.labels_)
    resumed = fw.KMeans(7, tol=0, checkpoint=tmp_path / "c").fit(rows)
    assert resumed.manifest_.resumed_at == 5
    assert_same(resumed, undisturbed)


@pytest.mark.parametrize("change", ["data", "weights", "k", "seed", "init"])
def test_a_checkpoint_of_something_else_is_refused(rows: np.ndarray, change: str, tmp_path: Path) -> None:
    options: dict[str, Any] = {"n_clusters": 7, "tol": 0, "init": rows[:7], "random_state": 1}
    km = fw.KMeans(**options, checkpoint=tmp_path / "c")
    with events.listening(StopAt(events.StepDone, 3)), pytest.warns(NotFinishedWarning, match="interrupted"):
        km.fit(rows)
    x, w = rows.copy(), None
    if change == "data":
        x[300, 1] += 1e-9
    elif change == "weights":
        w = np.ones(len(rows))
        w[5] = 2
    elif change == "k":
        options |= {"n_clusters": 8, "init": rows[:8]}
    elif change == "seed":
        options["random_state"] = 2
    else:
        options["init"] = rows[:7] + np.where(np.arange(7) == 3, 1e-9, 0)[:, None]
    with pytest.raises(StoreError, match="other data or other parameters"):
        fw.KMeans(**options, checkpoint=tmp_path / "c").fit(x, sample_weight=w)


def first_rows(X: Any, n_clusters: int, random_state: Any) -> Any:
    return X[random_state.permutation(len(X))[:n_clusters]]


def test_a_callable_start_and_a_generator_can_be_taken_up(rows: np.ndarray, tmp_path: Path) -> None:
    """Functions and generators are other objects in another process: what they mean is compared."""
    made = [lambda: fw.KMeans(7, tol=0, init=eval("lambda X, k, random_state: X[:k]"), n_init=1)]
    made.append(lambda: fw.KMeans(7, tol=0, init=first_rows, n_init=3, random_state=np.random.RandomState(4)))
    made.append(lambda: fw.KMeans(7, tol=0, random_state=np.random.RandomState(4)))
    for number, make in enumerate(made):
        undisturbed = make().fit(rows)
        km = make().set_params(checkpoint=tmp_path / f"c{number}")
        with events.listening(StopAt(events.StepDone, 3)), pytest.warns(NotFinishedWarning, match="interrupted"):
            km.fit(rows)
        again = make().set_params(checkpoint=tmp_path / f"c{number}").fit(rows)
        assert again.manifest_.resumed_at == 3
        assert_same(again, undisturbed)


def test_threads_and_algorithm_may_change_on_the_way(rows: np.ndarray, tmp_path: Path) -> None:
    undisturbed = fw.KMeans(9, tol=0, n_threads=1, algorithm="lloyd").fit(rows)
    km = fw.KMeans(9, tol=0, n_threads=1, algorithm="lloyd", checkpoint=tmp_path / "c")
    with events.listening(StopAt(events.StepDone, 3)), pytest.warns(NotFinishedWarning, match="interrupted"):
        km.fit(rows)
    assert_same(fw.KMeans(9, tol=0, n_threads=2, algorithm="bounded", checkpoint=tmp_path / "c").fit(rows), undisturbed)
