"""A mixture that was killed, interrupted or out of time goes on from its checkpoint and ends with the same bits."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import foldwise as fw
from foldwise.errors import FoldwiseWarning, NotFinishedWarning, StoreError
from foldwise.fold import events
from foldwise.fold.outcome import Reason

# Every step waits, so that the parent has time to kill in the middle of the fit.
CHILD = """
import sys, time
import foldwise as fw
from foldwise.fold import events
path, checkpoint, what = sys.argv[1:]
model = {
    "mixture": lambda: fw.GaussianMixture(4, n_init=2, tol=1e-5, max_iter=500, search="none", checkpoint=checkpoint),
    "soft": lambda: fw.SoftKMeans(4, checkpoint=checkpoint),
}[what]()
with events.listening(lambda event: time.sleep(0.12) if isinstance(event, events.StepDone) else None):
    model.fit(path)
print("finished")
"""


def make(what: str, **options: Any) -> Any:
    if what == "soft":
        return fw.SoftKMeans(4, **options)
    return fw.GaussianMixture(4, n_init=2, tol=1e-5, max_iter=500, search="none", **options)


def assert_same(a: Any, b: Any) -> None:
    for name, value in vars(b).items():
        if name.endswith("_") and isinstance(value, np.ndarray):
            np.testing.assert_array_equal(getattr(a, name), value, err_msg=name)
    assert a.trace_ == b.trace_
    assert a.outcome_.reason is b.outcome_.reason
    assert a.n_iter_ == b.n_iter_
    assert a.manifest_.repairs == b.manifest_.repairs


@pytest.fixture(scope="module")
def rows() -> np.ndarray:
    """No clear groups, so that there are many steps."""
    return np.random.default_rng(0).standard_normal((600, 3)) + 100


@pytest.mark.parametrize("what", ["mixture", "soft"])
def test_killed_and_resumed(rows: np.ndarray, what: str, tmp_path: Path) -> None:
    path, checkpoint = tmp_path / "rows.npy", tmp_path / "fit.checkpoint"
    np.save(path, rows)
    undisturbed = make(what).fit(path)
    assert undisturbed.outcome_.steps > 30
    with subprocess.Popen(
        [sys.executable, "-c", CHILD, str(path), str(checkpoint), what], stdout=subprocess.PIPE, text=True
    ) as child:
        deadline = time.monotonic() + 60
        while not checkpoint.exists() and child.poll() is None and time.monotonic() < deadline:
            time.sleep(0.01)
        os.kill(child.pid, signal.SIGKILL)
        assert "finished" not in (child.communicate()[0] or "")
    assert checkpoint.exists()
    resumed = make(what, checkpoint=checkpoint).fit(path)
    assert 0 < resumed.manifest_.resumed_at < undisturbed.outcome_.steps
    assert_same(resumed, undisturbed)
    assert not checkpoint.exists()


class StopAt:
    """A listener that behaves like Ctrl-C at one step."""

    def __init__(self, number: int) -> None:
        self.left = number

    def __call__(self, event: Any) -> None:
        if isinstance(event, events.StepDone):
            self.left -= 1
            if self.left == 0:
                raise KeyboardInterrupt


@pytest.mark.parametrize("what", ["mixture", "soft"])
def test_interrupted_again_and_again(rows: np.ndarray, what: str, tmp_path: Path) -> None:
    checkpoint = tmp_path / "fit.checkpoint"
    undisturbed = make(what).fit(rows)
    stops = 0
    for after in (1, 2, 9, 17, 25, 40):
        model = make(what, checkpoint=checkpoint)
        try:
            with events.listening(StopAt(after)), warnings.catch_warnings():
                warnings.simplefilter("ignore", NotFinishedWarning)
                model.fit(rows)
        except KeyboardInterrupt:
            assert what == "mixture"  # in the k-means that finds the first start: there is no model then
            continue
        if model.outcome_.reason is Reason.INTERRUPTED:
            stops += 1
            assert checkpoint.exists()
            assert model.predict(rows).shape == (600,)
        else:
            assert_same(model, undisturbed)
    assert stops > 2
    assert_same(make(what, checkpoint=checkpoint).fit(rows), undisturbed)
    assert not checkpoint.exists()


def slow_step(event: Any) -> None:
    if isinstance(event, events.StepDone) and "lower_bound" in event.figures:  # not those of the start, by k-means
        time.sleep(0.1)


def test_out_of_time_and_a_higher_cap(rows: np.ndarray, tmp_path: Path) -> None:
    options = {"tol": 1e-5, "search": "none", "checkpoint": tmp_path / "c"}  # a searched start would need too few steps
    undisturbed = fw.GaussianMixture(4, tol=1e-5, search="none", max_iter=500).fit(rows)
    with (
        events.listening(slow_step),
        pytest.warns(NotFinishedWarning, match="out of time"),
    ):
        slow = fw.GaussianMixture(4, time_budget=0.5, max_iter=500, **options).fit(rows)
    assert 0 < slow.outcome_.steps < undisturbed.outcome_.steps
    cap = slow.outcome_.steps + 2
    with pytest.warns(NotFinishedWarning, match="capped"):
        capped = fw.GaussianMixture(4, max_iter=cap, **options).fit(rows)
    assert capped.outcome_.steps == cap
    resumed = fw.GaussianMixture(4, max_iter=500, **options).fit(rows)
    assert resumed.manifest_.resumed_at == cap
    assert_same(resumed, undisturbed)


@pytest.mark.parametrize("change", ["data", "weights", "k", "seed", "means"])
def test_a_checkpoint_of_something_else_is_refused(rows: np.ndarray, change: str, tmp_path: Path) -> None:
    options: dict[str, Any] = {"n_components": 3, "tol": 1e-12, "means_init": rows[:3], "random_state": 1}
    with events.listening(StopAt(3)), pytest.warns(NotFinishedWarning, match="interrupted"):
        fw.GaussianMixture(**options, checkpoint=tmp_path / "c").fit(rows)
    x, w = rows.copy(), None
    if change == "data":
        x[300, 1] += 1e-9
    elif change == "weights":
        w = np.ones(len(rows))
        w[5] = 2
    elif change == "k":
        options |= {"n_components": 4, "means_init": rows[:4]}
    elif change == "seed":
        options["random_state"] = 2
    else:
        options["means_init"] = rows[:3] + np.where(np.arange(3) == 2, 1e-9, 0)[:, None]
    with pytest.raises(StoreError, match="other data or other parameters"):
        fw.GaussianMixture(**options, checkpoint=tmp_path / "c").fit(x, sample_weight=w)


@pytest.mark.parametrize("steps", range(1, 10))
def test_a_ridge_that_was_lowered_is_that_of_the_checkpoint(steps: int, tmp_path: Path) -> None:
    x = np.random.default_rng(0).standard_normal((2000, 2))
    x[1000:] += 1e5
    start = {
        "means_init": [[4e4, 4e4], [6e4, 6e4]],
        "weights_init": [0.5, 0.5],
        "precisions_init": [np.eye(2) * 1e-9] * 2,
    }
    whole = fw.GaussianMixture(2, **start).fit(x)
    assert len({step["run"] for step in whole.trace_}) > 1
    place = tmp_path / "state"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FoldwiseWarning)
        fw.GaussianMixture(2, max_iter=steps, checkpoint=place, **start).fit(x)
    again = fw.GaussianMixture(2, checkpoint=place, **start).fit(x)
    assert again.covariances_.tobytes() == whole.covariances_.tobytes()
    assert again.ridge_.tobytes() == whole.ridge_.tobytes()
