"""Self-consistency after every fit, whatever stopped it: labels, inertia, centres and trace belong together."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import foldwise as fw
from foldwise.errors import NotFinishedWarning
from foldwise.fold import events
from foldwise.fold.outcome import Reason

ALGORITHMS = ["lloyd", "bounded", "elkan", "auto"]
Check = Callable[..., None]
Make = Callable[..., Any]


@pytest.fixture(params=[np.float32, np.float64], ids=["float32", "float64"])
def dtype(request: pytest.FixtureRequest) -> Any:
    return request.param


def hidden(x: np.ndarray, kind: str) -> Any:
    """The rows as they are, or as a sparse matrix (with holes, or there would be nothing to it)."""
    if kind == "dense":
        return x
    return sp.csr_array(np.where(np.random.default_rng(9).random(x.shape) < 0.4, x, 0))


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_converged(
    check_consistent: Check, check_means: Check, blobs: Make, dtype: Any, kind: str, algorithm: str, weighted: bool
) -> None:
    x = hidden(blobs(500, 4, 8, spread=1.0, dtype=dtype), kind)
    w = np.random.default_rng(1).random(500) * (np.arange(500) % 7 > 0) if weighted else None
    km = fw.KMeans(9, algorithm=algorithm, tol=0, random_state=3).fit(x, sample_weight=w)
    assert km.outcome_.reason is Reason.CONVERGED
    check_consistent(km, x, w)
    check_means(km, x, w)
    assert km.trace_[-1]["shift"] == 0
    assert km.trace_[-1]["inertia"] == pytest.approx(km.inertia_, rel=1e-9)
    assert km.n_iter_ == len(km.trace_)


@pytest.mark.parametrize("max_iter", [1, 2, 3])
@pytest.mark.parametrize("algorithm", ["lloyd", "bounded"])
@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_capped(check_consistent: Check, blobs: Make, dtype: Any, kind: str, algorithm: str, max_iter: int) -> None:
    x = hidden(blobs(500, 2, 3, spread=2.0, dtype=dtype), kind)
    km = fw.KMeans(12, init="random", n_init=1, algorithm=algorithm, max_iter=max_iter, tol=0)
    with pytest.warns(NotFinishedWarning, match="capped"):
        km.fit(x)
    assert km.outcome_.reason is Reason.CAPPED
    assert km.n_iter_ == len(km.trace_) == max_iter
    check_consistent(km, x)


@pytest.mark.parametrize("n_init", [1, 3])
@pytest.mark.parametrize("search", ["none", "breathing", "split-merge"])
def test_out_of_time_before_it_began(
    check_consistent: Check, blobs: Make, dtype: Any, search: str, n_init: int
) -> None:
    x = blobs(300, 3, 4, spread=1.0, dtype=dtype)
    km = fw.KMeans(6, time_budget=0, search=search, n_init=n_init)
    with pytest.warns(NotFinishedWarning, match="out of time after 0 steps"):
        km.fit(x)
    assert km.outcome_.reason is Reason.OUT_OF_TIME
    assert len(km.trace_) == 0
    check_consistent(km, x)


class StopAt:
    """A listener that behaves like Ctrl-C at one event."""

    def __init__(self, kind: type, number: int) -> None:
        self.kind, self.left = kind, number

    def __call__(self, event: Any) -> None:
        if isinstance(event, self.kind):
            self.left -= 1
            if self.left == 0:
                raise KeyboardInterrupt


@pytest.mark.parametrize("at", [1, 2, 5, 9, 23, 47])
@pytest.mark.parametrize("search", ["none", "breathing", "split-merge"])
@pytest.mark.parametrize("algorithm", ["lloyd", "bounded"])
def test_interrupted_after_a_step(check_consistent: Check, blobs: Make, algorithm: str, search: str, at: int) -> None:
    x = blobs(300, 2, 10, spread=1.0)
    km = fw.KMeans(9, init="random", n_init=2, algorithm=algorithm, search=search, tol=0)
    with events.listening(StopAt(events.StepDone, at)), warnings.catch_warnings():
        warnings.simplefilter("ignore", NotFinishedWarning)
        km.fit(x)
    if km.outcome_.reason is Reason.INTERRUPTED:
        assert km.outcome_.steps == at
    else:
        assert km.outcome_.steps < at
    check_consistent(km, x)


@pytest.mark.parametrize("at", [9, 13, 22, 31, 44])
@pytest.mark.parametrize("algorithm", ["lloyd", "bounded"])
def test_interrupted_inside_a_pass(check_consistent: Check, blobs: Make, algorithm: str, at: int) -> None:
    """Several blocks, of which some have new labels and others not when the signal comes."""
    x = blobs(9000, 130, 6, spread=4.0, dtype=np.float32)
    km = fw.KMeans(12, init=x[:12], algorithm=algorithm, tol=0, n_threads=2)
    with events.listening(StopAt(events.RowsRead, at)), warnings.catch_warnings():
        warnings.simplefilter("ignore", NotFinishedWarning)
        km.fit(x)
    assert km.outcome_.reason is Reason.INTERRUPTED
    check_consistent(km, x, brute=False)


def test_the_interrupt_is_told(blobs: Make) -> None:
    with (
        events.listening(StopAt(events.StepDone, 2)),
        pytest.warns(NotFinishedWarning, match="interrupted after 2 steps"),
    ):
        fw.KMeans(8, tol=0).fit(blobs(300, 2, 3, spread=2.0))


@pytest.mark.parametrize("max_iter", [2, 300])
@pytest.mark.parametrize("offset", [0.0, 1e8])
def test_exact_ties_go_to_the_lowest_number_that_is_shown(
    check_consistent: Check, check_means: Check, offset: float, max_iter: int
) -> None:
    """Clusters are renumbered by size when all is done: rows between two centres must follow."""
    for seed in range(12):
        rng = np.random.default_rng(seed)
        x = (rng.integers(-3, 4, (250, 3)) * 8 + offset).astype(np.float32)
        km = fw.KMeans(24, tol=0, max_iter=max_iter, random_state=seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", NotFinishedWarning)
            km.fit(x)
        check_consistent(km, x)
        if km.outcome_.converged:
            check_means(km, x)


@settings(deadline=None, max_examples=60)
@given(
    n=st.integers(2, 60),
    d=st.integers(1, 5),
    k=st.integers(1, 8),
    seed=st.integers(0, 10**6),
    kind=st.sampled_from(["random", "lattice", "duplicated"]),
    search=st.sampled_from(["none", "breathing", "split-merge"]),
    single=st.booleans(),
    weighted=st.booleans(),
    offset=st.sampled_from([0.0, 1e4, 1e8]),
)
def test_any_small_data(
    check_consistent: Check,
    check_means: Check,
    n: int,
    d: int,
    k: int,
    seed: int,
    kind: str,
    search: str,
    single: bool,
    weighted: bool,
    offset: float,
) -> None:
    rng = np.random.default_rng(seed)
    k = min(k, n)
    x = rng.standard_normal((n, d))
    if kind == "lattice":
        x = rng.integers(-2, 3, (n, d)).astype(np.float64)
    elif kind == "duplicated":
        x = x[rng.integers(min(n, 4), size=n)]
    x = (x + offset).astype(np.float32 if single else np.float64)
    w = rng.integers(0, 3, n).astype(np.float64) if weighted else None
    if w is not None:
        w[:k] = np.maximum(w[:k], 1.0)  # fewer rows that count than clusters are refused
    km = fw.KMeans(k, search=search, tol=0, random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        km.fit(x, sample_weight=w)
    assert km.outcome_.converged
    check_consistent(km, x, w)
    check_means(km, x, w)
    counted = np.unique(x if w is None else x[w > 0], axis=0)
    if len(counted) >= k:  # then no cluster may be empty
        assert (km.cluster_weights_ > 0).all()
