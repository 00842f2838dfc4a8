"""Time budgets and Ctrl-C in every part of KernelKMeans: clock and interruption are faked, so that nothing depends on speed."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import foldwise as fw
from foldwise.errors import NotFinishedWarning
from foldwise.fold import deadline
from foldwise.fold.deadline import Deadline, OutOfTimeError
from foldwise.fold.outcome import Reason
from foldwise.fold.passes import Passes
from foldwise.models.kernel import approximate, choose, functions, kernel_matrix, spectral

X = np.random.default_rng(0).standard_normal((1500, 3))
MEMORY = {"kept": 2**29, "tiles": 2**20}


class Clock:
    """Stands still until the work has called `tick` so many times; then the time is over."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, after: float) -> None:
        self.left, self.over, self._read = after, 0, False
        monkeypatch.setattr(deadline, "now", self.now)

    def now(self) -> float:
        began, self._read = not self._read, True  # the fit begins at 0 in any case
        return 0.0 if self.left > 0 or began else 1000.0

    def tick(self) -> None:
        self.over += self.left <= 0
        self.left -= 1

    def counting(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*given: Any, **named: Any) -> Any:
            self.tick()
            return function(*given, **named)

        return counted


def late(options: dict[str, Any], x: np.ndarray = X) -> Any:
    with pytest.warns(NotFinishedWarning, match="out of time"):
        model = fw.KernelKMeans(4, time_budget=20, n_threads=1, **options).fit(x)
    assert model.outcome_.reason is Reason.OUT_OF_TIME
    np.testing.assert_array_equal(model.predict(x), model.labels_)
    assert len(np.unique(model.labels_)) == 4
    return model


# ---------------------------------------------------------------- budgets


@pytest.mark.parametrize("memory", MEMORY)
@pytest.mark.parametrize("after", [0, 1, 7, 20])
def test_a_budget_ends_a_pass_over_the_matrix(monkeypatch: pytest.MonkeyPatch, memory: str, after: int) -> None:
    """It was looked at between two steps alone, and not at all before the first: a pass takes six stripes of two tiles here.

    After the time is over, the stripe in hand is finished, and each row is compared with the sample's clusters.
    """
    clock = Clock(monkeypatch, after)
    for name in ("_stripe", "kernel_sums", "matrix_sums"):
        monkeypatch.setattr(kernel_matrix, name, clock.counting(getattr(kernel_matrix, name)))
    model = late({"init": "k-means++", "memory_budget": MEMORY[memory], "gamma": 0.3})
    assert clock.over <= 6  # stripes of 256 rows: one pass with the 1000 rows of the sample
    if after <= 1:
        assert "means are those of 1,000 rows" in model.manifest_.notes[0]


@pytest.mark.parametrize("options", [{}, {"approximation": "nystroem", "n_features": 30}], ids=str)
@pytest.mark.parametrize("init", ["auto", "spectral"])
@pytest.mark.parametrize("after", [0, 1, 4])
def test_a_budget_ends_the_spectral_start(
    monkeypatch: pytest.MonkeyPatch, options: dict[str, Any], init: str, after: int
) -> None:
    """Six graphs are cut, one after the other: none of them after the time is over."""
    clock = Clock(monkeypatch, after)
    monkeypatch.setattr(spectral, "_spectral_clusters", clock.counting(spectral._spectral_clusters))
    late({"init": init, **options})
    assert clock.over == 0
    assert clock.left == 0


@pytest.mark.parametrize("after", [1, 2, 3])
def test_a_budget_ends_the_choice(monkeypatch: pytest.MonkeyPatch, after: int) -> None:
    clock = Clock(monkeypatch, after)
    monkeypatch.setattr(choose, "_descended", clock.counting(choose._descended))
    late({})
    assert clock.over == 0


@pytest.mark.parametrize("normalize", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_what_is_left_when_there_was_no_time_at_all(normalize: bool, weighted: bool) -> None:
    weights = np.arange(len(X)) % 3 + 0.0 if weighted else None
    model = fw.KernelKMeans(4, time_budget=0, normalize=normalize)
    with pytest.warns(NotFinishedWarning, match="out of time"):
        model.fit(X, sample_weight=weights)
    np.testing.assert_array_equal(model.predict(X), model.labels_)
    assert model.cluster_weights_.sum() == (len(X) if weights is None else weights.sum())
    nearest = model.transform(X)[np.arange(len(X)), model.labels_]
    if not normalize:
        assert model.inertia_ == pytest.approx(float(nearest**2 @ (np.ones(len(X)) if weights is None else weights)))


def test_a_budget_of_a_precomputed_matrix_and_of_given_clusters(monkeypatch: pytest.MonkeyPatch) -> None:
    matrix = np.exp(-((X[:, None] - X) ** 2).sum(axis=2))
    clock = Clock(monkeypatch, 0)
    monkeypatch.setattr(kernel_matrix, "matrix_sums", clock.counting(kernel_matrix.matrix_sums))
    late({"kernel": "precomputed"}, matrix)
    Clock(monkeypatch, 0)
    late({"init": np.arange(len(X)) % 4})


def test_the_best_start_so_far_is_kept_without_another_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    """With ten starts, the best is seldom the last one: its sums are kept."""
    whole = fw.KernelKMeans(4, init="k-means++", n_init=3, gamma=0.3).fit(X)
    clock = Clock(monkeypatch, 250)
    monkeypatch.setattr(kernel_matrix, "matrix_sums", clock.counting(kernel_matrix.matrix_sums))
    model = late({"init": "k-means++", "n_init": 50, "gamma": 0.3})
    assert clock.over <= 1
    assert len({figures["start"] for figures in model.trace_}) > 1
    assert model.inertia_ == pytest.approx(whole.inertia_, rel=0.05)


def test_a_deadline_by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = itertools.count()
    monkeypatch.setattr(deadline, "now", lambda: float(next(clock)))
    limit = Deadline(3.0)  # begins at 0
    limit.check()  # 1
    assert limit.left == 1.0  # 2
    with pytest.raises(OutOfTimeError):
        limit.check()  # 3
    assert limit.left == 0.0
    limit.lift()
    limit.check()
    assert limit.left is None
    assert Deadline().left is None


@pytest.mark.parametrize("n_threads", [1, 2])
def test_passes_end_between_two_blocks(n_threads: int) -> None:
    source = fw.scan(np.zeros((100_000, 16)))
    passes = Passes(source, n_threads=n_threads)
    with pytest.raises(OutOfTimeError):
        passes.until(Deadline(0.0)).each(len)
    assert passes.until(Deadline()).each(rows_of) == passes.each(rows_of)


def rows_of(block: Any) -> int:
    return int(block.n_rows)


# ---------------------------------------------------------------- Ctrl-C

PARTS: dict[str, tuple[Any, str]] = {
    "the kernel": (functions.Gaussian, "matrix"),
    "stripes": (kernel_matrix, "_stripe"),
    "neighbours": (spectral, "NearestRows"),
    "graphs": (spectral, "_graph"),
    "eigenvectors": (spectral, "_spectral_clusters"),
    "their clusters": (spectral, "cluster"),
    "cuts": (spectral, "_normalised_cut"),
    "the choice": (choose, "_descent"),
    "k-means": (choose, "cluster"),
    "landmarks": (approximate, "_landmarks"),
    "clusters of landmarks": (approximate, "cluster"),
    "features": (approximate.Nystroem, "__call__"),
    "gammas": (functions, "gammas_of_distances"),
}


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("approximation", [None, "nystroem"])
@pytest.mark.parametrize("call", [1, 3])
def test_ctrl_c_is_never_swallowed(
    monkeypatch: pytest.MonkeyPatch, part: str, approximation: str | None, call: int
) -> None:
    """It ends the fit with KeyboardInterrupt, or with the best so far and a warning."""
    owner, name = PARTS[part]
    function, calls = getattr(owner, name), itertools.count(1)

    def interrupted(*given: Any, **named: Any) -> Any:
        if next(calls) == call:
            raise KeyboardInterrupt
        return function(*given, **named)

    monkeypatch.setattr(owner, name, interrupted)
    model = fw.KernelKMeans(3, approximation=approximation, n_features=20, n_threads=1)
    try:
        with pytest.warns(NotFinishedWarning, match="interrupted"):
            model.fit(X[:300])
    except KeyboardInterrupt:
        return
    except pytest.fail.Exception:
        assert next(calls) <= call + 1, "it was swallowed"  # else that part is not used so often
        return
    assert model.outcome_.reason is Reason.INTERRUPTED
