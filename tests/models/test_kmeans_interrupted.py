"""Ctrl-C at moments where a fit is between two states: what it returns must fit together all the same."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import foldwise as fw
from foldwise.errors import NotFinishedWarning
from foldwise.models.kmeans import bounds, label_order, tasks

X = np.random.default_rng(5).standard_normal((9000, 20)).astype(np.float32)


def interrupt_once(monkeypatch: pytest.MonkeyPatch, owner: Any, name: str, call: int) -> list[int]:
    """Let Ctrl-C be pressed when a function is called for the `call`-th time."""
    plain, calls = getattr(owner, name), [0]

    def pressed(*args: Any, **given: Any) -> Any:
        calls[0] += 1
        if calls[0] == call:
            raise KeyboardInterrupt
        return plain(*args, **given)

    monkeypatch.setattr(owner, name, pressed)
    return calls


def fits_together(model: Any) -> None:
    with pytest.warns(NotFinishedWarning):
        model.fit(X)
    assert model.outcome_.reason.name == "INTERRUPTED"
    labels = model.predict(X)
    np.testing.assert_array_equal(model.labels_, labels)
    np.testing.assert_array_equal(model.cluster_weights_, np.bincount(labels, minlength=model.n_clusters))
    inertia = ((X - model.cluster_centers_.astype(np.float64)[labels]) ** 2).sum()
    assert np.isclose(model.inertia_, inertia, rtol=1e-6)


@pytest.mark.parametrize("max_iter", [2, 300])
def test_while_clusters_are_numbered(monkeypatch: pytest.MonkeyPatch, max_iter: int) -> None:
    calls = interrupt_once(monkeypatch, label_order, "by_size", 1)
    fits_together(fw.KMeans(6, n_init=2, init="random", max_iter=max_iter, n_threads=2))
    assert calls[0] > 1


@pytest.mark.parametrize("call", [1, 2, 5])
def test_while_bounds_are_prepared(monkeypatch: pytest.MonkeyPatch, call: int) -> None:
    calls = interrupt_once(monkeypatch, bounds, "BoundsInUse", call)
    fits_together(fw.KMeans(40, n_init=1, init="random", max_iter=10, algorithm="elkan", n_threads=2))
    assert calls[0] >= call


def test_bounds_of_which_one_is_missing() -> None:
    targets = SimpleNamespace(points=np.zeros((3, 2), np.float32))
    task = tasks.Assign(targets, *(None,) * 5, bounds=tasks.BoundsInUse(1, None, True))  # type: ignore[arg-type]
    state = {"labels": np.full(10, -1, np.int32), "upper": np.zeros(10, np.float32)}
    task.prepare(state, 10)
    assert len(state["lower"]) == len(state["upper"]) == 10
