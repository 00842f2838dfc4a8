"""A training that was killed, interrupted or out of time goes on from its checkpoint and ends with the same bits."""

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
from foldwise.errors import NotFinishedWarning, StoreError
from foldwise.fold import events
from foldwise.fold.outcome import Reason

pytest.importorskip("torch")

OPTIONS: dict[str, Any] = {"encoder": [12], "max_iter": 12, "noise": 0.05, "dropout": 0.1, "random_state": 4}

# Small blocks and rounds, so that an epoch has several; every round waits, so that the parent has time to kill.
CHILD = """
import sys, time
import foldwise as fw
from foldwise.data import block_grid
from foldwise.fold import events
from foldwise.models.autoencoder import training
block_grid._BYTES, block_grid._WIDE_ROWS, training.ROOM = 10_000, 128, 10_000
path, checkpoint = sys.argv[1:]
with events.listening(lambda event: time.sleep(0.1) if isinstance(event, events.StepDone) else None):
    fw.Autoencoder(2, encoder=[12], max_iter=12, noise=0.05, dropout=0.1, random_state=4, checkpoint=checkpoint).fit(path)
print("finished")
"""


@pytest.fixture(autouse=True)
def small_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("foldwise.data.block_grid._BYTES", 10_000)
    monkeypatch.setattr("foldwise.data.block_grid._WIDE_ROWS", 128)
    monkeypatch.setattr("foldwise.models.autoencoder.training.ROOM", 10_000)


@pytest.fixture(scope="module")
def rows() -> np.ndarray:
    rng = np.random.default_rng(0)
    t = rng.uniform(-2, 2, 700)
    bent = np.column_stack([t, t**2, np.cos(3 * t), t**3, np.ones(700)])
    return bent + 0.1 * rng.standard_normal((700, 5))


def make(**options: Any) -> fw.Autoencoder:
    return fw.Autoencoder(2, **{**OPTIONS, **options})


def assert_same(a: Any, b: Any) -> None:
    for mine, other in ((a.encoder_, b.encoder_), (a.decoder_, b.decoder_)):
        for layer, twin in zip(mine.layers, other.layers, strict=True):
            np.testing.assert_array_equal(layer.weights, twin.weights)
            np.testing.assert_array_equal(layer.bias, twin.bias)
    assert (a.best_epoch_, a.n_iter_, a.held_out_error_) == (b.best_epoch_, b.n_iter_, b.held_out_error_)
    assert a.trace_ == b.trace_
    assert a.outcome_.reason is b.outcome_.reason


def test_killed_and_resumed(rows: np.ndarray, tmp_path: Path) -> None:
    path, checkpoint = tmp_path / "rows.npy", tmp_path / "fit.checkpoint"
    np.save(path, rows)
    undisturbed = make().fit(path)
    assert undisturbed.outcome_.steps >= 2 * undisturbed.n_iter_  # several rounds make an epoch
    with subprocess.Popen(
        [sys.executable, "-c", CHILD, str(path), str(checkpoint)], stdout=subprocess.PIPE, text=True
    ) as child:
        deadline = time.monotonic() + 60
        while not checkpoint.exists() and child.poll() is None and time.monotonic() < deadline:
            time.sleep(0.01)
        os.kill(child.pid, signal.SIGKILL)
        assert "finished" not in (child.communicate()[0] or "")
    assert checkpoint.exists()
    resumed = make(checkpoint=checkpoint).fit(path)
    assert 0 < resumed.manifest_.resumed_at < undisturbed.outcome_.steps
    assert_same(resumed, undisturbed)
    assert not checkpoint.exists()


class StopAt:
    """A listener that behaves like Ctrl-C after some rounds of training."""

    def __init__(self, number: int) -> None:
        self.left = number

    def __call__(self, event: Any) -> None:
        if isinstance(event, events.StepDone) and "training_error" in event.figures:
            self.left -= 1
            if self.left == 0:
                raise KeyboardInterrupt


@pytest.mark.parametrize("missing", ["error", "model"])
def test_interrupted_again_and_again(rows: np.ndarray, missing: str, tmp_path: Path) -> None:
    """Ctrl-C after one round, after two, ...: the model so far can be used, and the last call ends with the same bits."""
    x, checkpoint = rows.copy(), tmp_path / "c"
    if missing == "model":
        x[::7, 2] = np.nan
    undisturbed = make(missing=missing).fit(x)
    stops = 0
    for after in (1, 1, 2, 5, 3):
        ae = make(missing=missing, checkpoint=checkpoint, n_threads=1 + stops % 2)
        with events.listening(StopAt(after)), warnings.catch_warnings():
            warnings.simplefilter("ignore", NotFinishedWarning)
            ae.fit(x)
        if ae.outcome_.reason is Reason.INTERRUPTED:
            stops += 1
            assert checkpoint.exists()
            assert ae.transform(x).shape == (700, 2)
    assert stops > 0
    assert_same(make(missing=missing, checkpoint=checkpoint).fit(x), undisturbed)


def test_interrupted_before_training(rows: np.ndarray) -> None:
    """In the steps of PCA with missing cells: there is no model yet."""
    x = rows.copy()
    x[::7, 2] = np.nan

    def stop(event: Any) -> None:
        if isinstance(event, events.StepDone):
            raise KeyboardInterrupt

    ae = make(missing="model")
    with events.listening(stop), pytest.raises(KeyboardInterrupt), pytest.warns(NotFinishedWarning):
        ae.fit(x)
    assert not hasattr(ae, "encoder_")


def test_interrupted_inside_a_round(rows: np.ndarray, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A round that Ctrl-C cuts short is done again as a whole: nothing of it is left in the state."""
    from foldwise.models.autoencoder.torch_network import TorchNetwork

    undisturbed = make().fit(rows)
    plain, calls = TorchNetwork.step, []

    def stopping(self: Any, *arguments: Any) -> float:
        calls.append(1)
        if len(calls) == 15:
            raise KeyboardInterrupt
        return plain(self, *arguments)

    monkeypatch.setattr(TorchNetwork, "step", stopping)
    with pytest.warns(NotFinishedWarning, match="interrupted"):
        make(checkpoint=tmp_path / "c").fit(rows)
    monkeypatch.setattr(TorchNetwork, "step", plain)
    assert_same(make(checkpoint=tmp_path / "c").fit(rows), undisturbed)


def test_out_of_time_and_resumed(rows: np.ndarray, tmp_path: Path) -> None:
    undisturbed = make().fit(rows)
    slow = make(checkpoint=tmp_path / "c", time_budget=0.3)
    with (
        events.listening(lambda event: time.sleep(0.06) if isinstance(event, events.StepDone) else None),
        pytest.warns(NotFinishedWarning, match="out of time"),
    ):
        slow.fit(rows)
    assert slow.outcome_.steps < undisturbed.outcome_.steps
    assert_same(make(checkpoint=tmp_path / "c").fit(rows), undisturbed)


@pytest.mark.parametrize("change", ["data", "weights", "widths", "seed", "max_iter"])
def test_a_checkpoint_of_something_else_is_refused(rows: np.ndarray, change: str, tmp_path: Path) -> None:
    with events.listening(StopAt(3)), pytest.warns(NotFinishedWarning, match="interrupted"):
        make(checkpoint=tmp_path / "c").fit(rows)
    x, w, options = rows.copy(), None, {}
    if change == "data":
        x[300, 1] += 1e-6
    elif change == "weights":
        w = np.ones(len(rows))
        w[5] = 2
    else:
        options = {"widths": {"encoder": [13]}, "seed": {"random_state": 2}, "max_iter": {"max_iter": 13}}[change]
    with pytest.raises(StoreError, match="other data or other parameters"):
        make(checkpoint=tmp_path / "c", **options).fit(x, sample_weight=w)
