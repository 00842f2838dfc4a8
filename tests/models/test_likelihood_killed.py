"""A fit that was killed, interrupted or out of time goes on from its checkpoint and ends with the same bits."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import foldwise as fw
from foldwise.errors import NotFinishedWarning, StoreError
from foldwise.fold import events
from foldwise.fold.outcome import Reason

FAMILIES = ["weibull", "logistic", "gamma", "cauchy"]

CHILD = """
import sys, time
import foldwise as fw
from foldwise.fold import events
path, checkpoint = sys.argv[1:]
with events.listening(lambda event: time.sleep(0.15) if isinstance(event, events.StepDone) else None):
    fw.fit_distribution(path, ["weibull", "logistic", "gamma", "cauchy"], method="gradient", checkpoint=checkpoint)
print("finished")
"""


def assert_same(a: Any, b: Any) -> None:
    assert [fit.family for fit in a] == [fit.family for fit in b]
    for mine, other in zip(a, b, strict=True):
        assert mine.parameters == other.parameters
        assert mine.standard_errors == other.standard_errors
        assert mine.max_log_likelihood == other.max_log_likelihood
        assert mine.trace == other.trace
        assert mine.outcome.reason is other.outcome.reason


@pytest.fixture(scope="module")
def values() -> np.ndarray:
    return np.random.default_rng(0).weibull(0.7, 2000) * 30


def test_killed_and_resumed(values: np.ndarray, tmp_path: Path) -> None:
    path, checkpoint = tmp_path / "x.npy", tmp_path / "fit.checkpoint"
    np.save(path, values)
    undisturbed = fw.fit_distribution(path, FAMILIES, method="gradient")
    longest = max(len(fit.trace) for fit in undisturbed)
    assert longest > 9
    with subprocess.Popen(
        [sys.executable, "-c", CHILD, str(path), str(checkpoint)], stdout=subprocess.PIPE, text=True
    ) as child:
        deadline = time.monotonic() + 60
        while not checkpoint.exists() and child.poll() is None and time.monotonic() < deadline:
            time.sleep(0.01)
        os.kill(child.pid, signal.SIGKILL)
        assert "finished" not in (child.communicate()[0] or "")
    assert checkpoint.exists()
    resumed = fw.fit_distribution(path, FAMILIES, method="gradient", checkpoint=checkpoint)
    assert resumed["weibull"].manifest.resumed_at > 0
    assert_same(resumed, undisturbed)
    assert not checkpoint.exists()


def stop_at(number: int) -> Any:
    left = [number]

    def listener(event: Any) -> None:
        if isinstance(event, events.StepDone):
            left[0] -= 1
            if left[0] == 0:
                raise KeyboardInterrupt

    return listener


def test_interrupted_again_and_again(values: np.ndarray, tmp_path: Path) -> None:
    undisturbed = fw.fit_distribution(values, ["weibull", "logistic"])
    for after in (1, 2):
        with events.listening(stop_at(after)), pytest.warns(NotFinishedWarning, match="interrupted"):
            some = fw.fit_distribution(values, ["weibull", "logistic"], checkpoint=tmp_path / "c")
        assert some["weibull"].outcome.reason is Reason.INTERRUPTED
        assert np.isfinite(list(some["weibull"].parameters.values())).all()
    resumed = fw.fit_distribution(values, ["weibull", "logistic"], checkpoint=tmp_path / "c")
    assert resumed["weibull"].manifest.resumed_at == 3
    assert_same(resumed, undisturbed)


def test_out_of_time(values: np.ndarray, tmp_path: Path) -> None:
    undisturbed = fw.fit_distribution(values, "weibull")
    with pytest.warns(NotFinishedWarning, match=r"weibull.*out of time"):
        none = fw.fit_distribution(values, "weibull", time_budget=0.0, checkpoint=tmp_path / "c")
    assert none.trace == ()
    again = fw.fit_distribution(values, "weibull", checkpoint=tmp_path / "c")
    assert again.parameters == undisturbed.parameters
    with pytest.warns(NotFinishedWarning, match="capped after 2 steps"):
        fw.fit_distribution(values, "weibull", max_iter=2)


@pytest.mark.parametrize("change", ["data", "family", "fixed", "method"])
def test_a_checkpoint_of_something_else_is_refused(values: np.ndarray, change: str, tmp_path: Path) -> None:
    with events.listening(stop_at(2)), pytest.warns(NotFinishedWarning, match="interrupted"):
        fw.fit_distribution(values, "weibull", checkpoint=tmp_path / "c")
    x, family, options = values.copy(), "weibull", {}
    if change == "data":
        x[1000] *= 1 + 1e-9
    elif change == "family":
        family = "logistic"
    elif change == "fixed":
        options = {"fixed": {"scale": 30.0}}
    else:
        options = {"method": "gradient"}
    with pytest.raises(StoreError, match="other data or other parameters"):
        fw.fit_distribution(x, family, checkpoint=tmp_path / "c", **options)
