"""The one loop: how it ends, and that a fit which was stopped goes on to the same end."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import foldwise as fw
from foldwise.data.atomic import replacing
from foldwise.errors import NotFinishedWarning, StoreError
from foldwise.fold import events
from foldwise.fold.checkpoint import Checkpoint, Saved
from foldwise.fold.iterate import State, iterate
from foldwise.fold.outcome import Outcome, Reason


def start() -> State:
    return {"x": np.array([1.0, 2.0]), "n": np.array(0)}


def step(state: State) -> tuple[State, dict[str, float]]:
    x = np.cos(state["x"]) * 1.1
    return {"x": x, "n": state["n"] + 1}, {"size": float(x.sum())}


def until(n: int) -> Callable[[State], bool]:
    return lambda state: int(state["n"]) >= n


def stopping_at(n: int, error: type[BaseException] = KeyboardInterrupt) -> Callable[[State], Any]:
    def broken(state: State) -> Any:
        if int(state["n"]) == n:
            raise error
        return step(state)

    return broken


def test_converged() -> None:
    state, outcome, resumed_at = iterate(start, step, until(4), max_iter=10)
    assert (outcome.reason, outcome.steps, outcome.converged, resumed_at) == (Reason.CONVERGED, 4, True, 0)
    assert len(outcome.trace) == 4
    assert outcome.trace[-1]["size"] == float(state["x"].sum())


def test_done_at_the_start_takes_no_step() -> None:
    state, outcome, _ = iterate(start, step, until(0), max_iter=10)
    assert (outcome.reason, outcome.steps, outcome.trace) == (Reason.CONVERGED, 0, ())
    np.testing.assert_array_equal(state["x"], [1.0, 2.0])


def test_converged_at_the_last_allowed_step_is_converged() -> None:
    assert iterate(start, step, until(4), max_iter=4)[1].reason is Reason.CONVERGED


def test_capped() -> None:
    state, outcome, _ = iterate(start, step, until(100), max_iter=3)
    assert (outcome.reason, outcome.steps, int(state["n"])) == (Reason.CAPPED, 3, 3)


def test_out_of_time() -> None:
    state, outcome, _ = iterate(start, step, until(100), max_iter=1000, time_budget=0.0)
    assert (outcome.reason, outcome.steps, int(state["n"])) == (Reason.OUT_OF_TIME, 0, 0)


def test_time_counts_from_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter(range(1000))
    monkeypatch.setattr("foldwise.fold.deadline.now", lambda: float(next(clock)))
    _, outcome, _ = iterate(start, step, until(100), max_iter=1000, time_budget=5.0)
    assert outcome.reason is Reason.OUT_OF_TIME
    assert outcome.steps == 4  # one tick of the clock for each look at it


def test_interrupted_keeps_the_last_whole_state() -> None:
    state, outcome, _ = iterate(start, stopping_at(3), until(100), max_iter=1000)
    assert (outcome.reason, outcome.steps, int(state["n"]), len(outcome.trace)) == (
        Reason.INTERRUPTED,
        3,
        3,
        3,
    )


def test_other_errors_come_out() -> None:
    with pytest.raises(ZeroDivisionError):
        iterate(start, stopping_at(2, ZeroDivisionError), until(100), max_iter=1000)


def test_steps_are_told() -> None:
    heard: list[events.Event] = []
    with events.listening(heard.append):
        _, outcome, _ = iterate(start, step, until(3), max_iter=9)
    assert heard == [events.StepDone(i + 1, 9, figures) for i, figures in enumerate(outcome.trace)]


@pytest.mark.parametrize("stop", [0, 1, 5, 8])
@pytest.mark.parametrize("kill", [KeyboardInterrupt, SystemExit])
def test_resumed_ends_where_the_whole_run_ends(tmp_path: Path, stop: int, kill: type[BaseException]) -> None:
    whole, outcome, _ = iterate(start, step, until(9), max_iter=20)
    path = tmp_path / "fit.ckpt"

    def checkpoint() -> Checkpoint:
        return Checkpoint(path, "key", every=0.0)

    with contextlib.suppress(SystemExit):  # what a kill leaves behind: the last save, and nothing was tidied up
        iterate(start, stopping_at(stop, kill), until(9), max_iter=20, checkpoint=checkpoint())
    assert path.exists() or (kill is SystemExit and stop == 0)
    state, again, resumed_at = iterate(start, step, until(9), max_iter=20, checkpoint=checkpoint())
    assert resumed_at == stop
    assert state["x"].tobytes() == whole["x"].tobytes()
    assert (again.trace, again.steps, again.reason) == (outcome.trace, outcome.steps, outcome.reason)
    assert not path.exists()


def test_checkpoint_is_removed_when_done(tmp_path: Path) -> None:
    path = tmp_path / "c"
    heard = []
    with events.listening(lambda event: heard.append(path.exists())):
        iterate(start, step, until(3), max_iter=9, checkpoint=Checkpoint(path, "k", every=0.0))
    assert heard == [True, True, True]
    assert list(tmp_path.iterdir()) == []


def test_checkpoint_is_kept_when_out_of_time(tmp_path: Path) -> None:
    path = tmp_path / "c"
    iterate(start, step, until(3), max_iter=9, time_budget=0.0, checkpoint=Checkpoint(path, "k"))
    saved = Checkpoint(path, "k").load()
    assert saved is not None
    assert (saved.step, saved.seconds) == (0, 0.0)


def test_time_before_a_kill_counts(tmp_path: Path) -> None:
    path = tmp_path / "c"
    Checkpoint(path, "k").save(Saved(2, 50.0, start(), [{"size": 1.0}] * 2), now=True)
    _, outcome, resumed_at = iterate(
        start, step, until(9), max_iter=20, time_budget=40.0, checkpoint=Checkpoint(path, "k")
    )
    assert (outcome.reason, outcome.steps, resumed_at) == (Reason.OUT_OF_TIME, 2, 2)
    assert outcome.seconds >= 50


def test_saves_are_not_more_frequent_than_asked(tmp_path: Path) -> None:
    path = tmp_path / "c"
    checkpoint = Checkpoint(path, "k", every=3600.0)
    checkpoint.save(Saved(1, 0.0, start(), []))
    assert not path.exists()
    checkpoint.save(Saved(1, 0.0, start(), []), now=True)
    assert path.exists()


def test_foreign_checkpoint_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "c"
    Checkpoint(path, "mine").save(Saved(1, 0.0, start(), []), now=True)
    before = path.read_bytes()
    with pytest.raises(StoreError, match=r"other data or other parameters.*delete it"):
        iterate(start, step, until(9), max_iter=20, checkpoint=Checkpoint(path, "yours"))
    assert path.read_bytes() == before


@pytest.mark.parametrize("damage", ["empty", "garbage", "cut", "another format"])
def test_corrupt_checkpoint_is_refused(tmp_path: Path, damage: str) -> None:
    from safetensors.numpy import save

    path = tmp_path / "c"
    Checkpoint(path, "k").save(Saved(1, 0.0, start(), []), now=True)
    whole = path.read_bytes()
    path.write_bytes(
        {"empty": b"", "garbage": os.urandom(300), "cut": whole[:-9], "another format": save(start())}[damage]
    )
    with pytest.raises(StoreError, match="not a checkpoint of Foldwise"):
        iterate(start, step, until(9), max_iter=20, checkpoint=Checkpoint(path, "k"))


@pytest.mark.parametrize("call", ["os.replace", "os.fsync"])
def test_failed_write_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str) -> None:
    path = tmp_path / "c"
    Checkpoint(path, "k").save(Saved(1, 0.0, start(), []), now=True)
    before = path.read_bytes()

    def full(*arguments: Any) -> None:
        raise OSError("no space left")

    monkeypatch.setattr(call, full)
    with pytest.raises(OSError, match="no space left"):
        Checkpoint(path, "k").save(Saved(2, 0.0, start(), []), now=True)
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["c"]


def test_interrupted_write_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("old")

    def stopped() -> None:
        with replacing(path) as file:
            file.write(b"new and lo")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        stopped()
    assert path.read_text() == "old"
    assert len(list(tmp_path.iterdir())) == 1
    with replacing(path) as file:
        file.write(b"new")
    assert path.read_text() == "new"


@pytest.mark.parametrize("reason", list(Reason))
def test_outcomes_warn_once_and_say_what_to_do(reason: Reason, recwarn: pytest.WarningsRecorder) -> None:
    if reason is Reason.CONVERGED:
        Outcome(reason, 3, 0.1).warn("PCA")
    else:
        with pytest.warns(
            NotFinishedWarning, match=rf"PCA stopped before it converged \({reason} after 3 steps\): \w+"
        ):
            Outcome(reason, 3, 0.1).warn("PCA")
    assert not recwarn.list


@pytest.mark.parametrize("solver", ["krylov", "power"])
def test_a_stopped_pca_goes_on_to_the_same_bits(tmp_path: Path, planted: Any, solver: str) -> None:
    x = planted([5, 4.5, 4, 3.5, 3, 2.5, *np.linspace(2, 1, 34)], 400)
    make = {"n_components": 3, "svd_solver": solver}
    whole = fw.PCA(**make).fit(x)
    seen = 0

    def stop(event: events.Event) -> None:
        nonlocal seen
        seen += isinstance(event, events.StepDone)
        if seen == 2:
            raise KeyboardInterrupt

    path = tmp_path / "pca.ckpt"
    with events.listening(stop), pytest.warns(NotFinishedWarning, match="interrupted after 2 steps"):
        cut = fw.PCA(**make, checkpoint=path).fit(x)
    assert cut.outcome_.reason is Reason.INTERRUPTED
    assert cut.components_.shape == (3, 40)
    again = fw.PCA(**make, checkpoint=path).fit(x)
    assert again.manifest_.resumed_at == 2
    assert again.trace_ == whole.trace_
    assert again.components_.tobytes() == whole.components_.tobytes()
    assert again.explained_variance_.tobytes() == whole.explained_variance_.tobytes()
    assert not path.exists()


def test_a_checkpoint_of_another_fit_is_refused(tmp_path: Path, planted: Any) -> None:
    x, path = planted([3, 2, 1], 100), tmp_path / "c"
    with pytest.warns(NotFinishedWarning, match="out of time"):
        fw.PCA(1, svd_solver="power", time_budget=0.0, checkpoint=path).fit(x)
    with pytest.raises(StoreError, match="other data or other parameters"):
        fw.PCA(2, svd_solver="power", checkpoint=path).fit(x)
    with pytest.raises(StoreError, match="other data or other parameters"):
        fw.PCA(1, svd_solver="power", random_state=3, checkpoint=path).fit(x)
    with pytest.raises(StoreError, match="other data or other parameters"):
        fw.PCA(1, svd_solver="power", checkpoint=path).fit(x + 1)
    assert fw.PCA(1, svd_solver="power", checkpoint=path, n_threads=2).fit(x).outcome_.converged


@pytest.mark.parametrize("solver", ["krylov", "power"])
def test_no_time_at_all_still_gives_a_model_of_the_size_asked_for(planted: Any, solver: str) -> None:
    x = planted([3, 2, 1, 0.5], 100)
    with pytest.warns(NotFinishedWarning, match="out of time after 0 steps"):
        pca = fw.PCA(2, svd_solver=solver, time_budget=0.0).fit(x)
    assert pca.components_.shape == (2, 4)
    np.testing.assert_allclose(pca.components_ @ pca.components_.T, np.eye(2), atol=1e-12)
    assert pca.transform(x).shape == (100, 2)


def test_capped_pca_says_so_and_keeps_its_best(planted: Any) -> None:
    x = planted([3, 2.9, 2.8, 1, 0.5], 200)
    with pytest.warns(NotFinishedWarning, match="capped after 3 steps.*raise max_iter"):
        pca = fw.PCA(2, svd_solver="power", max_iter=3).fit(x)
    assert len(pca.trace_) == 3
    assert pca.components_.shape == (2, 5)
    assert (np.diff(pca.explained_variance_) <= 0).all()
