"""Out of bad optima: breathing and split-and-merge are never worse than their start, and leave what Lloyd cannot."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import foldwise as fw

Make = Callable[..., Any]
SEARCHES = ["breathing", "split-merge"]


@settings(deadline=None, max_examples=50)
@given(
    n=st.integers(10, 120),
    d=st.integers(1, 4),
    k=st.integers(1, 9),
    seed=st.integers(0, 10**6),
    search=st.sampled_from(SEARCHES),
    weighted=st.booleans(),
    single=st.booleans(),
)
def test_never_worse_than_without(
    blobs: Make, n: int, d: int, k: int, seed: int, search: str, weighted: bool, single: bool
) -> None:
    x = blobs(n, d, 4, spread=0.5, seed=seed, dtype=np.float32 if single else np.float64)
    w = np.random.default_rng(seed).random(n) + 0.1 if weighted else None
    start = x[np.random.default_rng(seed).permutation(n)[:k]]
    for init in (start, "k-means++"):
        plain = fw.KMeans(k, init=init, random_state=seed, search="none").fit(x, sample_weight=w)
        searched = fw.KMeans(k, init=init, random_state=seed, search=search).fit(x, sample_weight=w)
        assert searched.inertia_ <= plain.inertia_ * (1 + (1e-6 if single else 1e-12))


@pytest.mark.parametrize("search", SEARCHES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("offset", [0.0, 1e4])
def test_the_lectures_bad_start(search: str, dtype: Any, offset: float) -> None:
    """Three groups, two centres in one of them and one for the other two: Lloyd's algorithm stays there."""
    rng = np.random.default_rng(0)
    middles = np.array([[0.0, 0.0], [10.0, 0.0], [10.0, 4.0]]) + offset
    x = (np.repeat(middles, 100, axis=0) + 0.5 * rng.standard_normal((300, 2))).astype(dtype)
    bad = np.array([[-0.4, 0.0], [0.4, 0.0], [10.0, 2.0]]) + offset
    stuck = fw.KMeans(3, init=bad, tol=0).fit(x)
    assert stuck.inertia_ > 400
    left = fw.KMeans(3, init=bad, tol=0, search=search).fit(x)
    best = sum(((part - part.mean(axis=0, dtype=np.float64)) ** 2).sum() for part in np.split(x.astype(np.float64), 3))
    assert left.inertia_ == pytest.approx(best, rel=1e-4 if dtype == np.float32 else 1e-9)
    for part in np.split(left.labels_, 3):
        assert len(set(part)) == 1


@pytest.mark.parametrize("search", SEARCHES)
def test_many_groups_are_found_from_one_bad_start(search: str) -> None:
    """A grid of 25 groups, all centres in one corner."""
    rng = np.random.default_rng(1)
    grid = np.stack(np.meshgrid(np.arange(5), np.arange(5)), axis=-1).reshape(-1, 2) * 10.0
    x = np.repeat(grid, 20, axis=0) + 0.3 * rng.standard_normal((500, 2))
    bad = 0.3 * rng.standard_normal((25, 2))
    plain = fw.KMeans(25, init=bad, tol=0).fit(x)
    left = fw.KMeans(25, init=bad, tol=0, search=search).fit(x)
    best = 2 * 0.09 * 500
    assert plain.inertia_ > 10 * best
    assert left.inertia_ < (1.1 if search == "breathing" else 10) * best


@pytest.mark.parametrize("search", SEARCHES)
@pytest.mark.parametrize("name", ["iris", "wine", "digits"])
def test_real_data(search: str, name: str) -> None:
    from sklearn import datasets

    x = getattr(datasets, f"load_{name}")().data
    for k in (3, 10):
        starts = [fw.KMeans(k, random_state=seed, search="none").fit(x).inertia_ for seed in range(3)]
        found = [fw.KMeans(k, random_state=seed, search=search).fit(x).inertia_ for seed in range(3)]
        assert all(mine <= plain * (1 + 1e-12) for mine, plain in zip(found, starts, strict=True))


def test_breathing_beats_several_starts_on_average(shared_data: Any) -> None:
    x = np.loadtxt(shared_data / "benchmark2d" / "a1.data.gz")[::3]
    one = [fw.KMeans(20, random_state=seed, search="breathing").fit(x).inertia_ for seed in range(5)]
    ten = [fw.KMeans(20, random_state=seed, n_init=3).fit(x).inertia_ for seed in range(5)]
    assert np.mean(one) < np.mean(ten)


@pytest.mark.parametrize("search", SEARCHES)
def test_what_the_trace_tells(blobs: Make, as_if_large: None, search: str) -> None:
    x = blobs(300, 2, 8, spread=0.6)
    km = fw.KMeans(8, search=search, random_state=0, n_init=2).fit(x)
    runs = [int(figures["run"]) for figures in km.trace_]
    assert runs == sorted(runs)
    assert set(runs) == set(range(max(runs) + 1))
    assert max(runs) > 2
    sizes = {int(figures["clusters"]) for figures in km.trace_}
    assert sizes == (set(range(8, 14)) if search == "breathing" else {8})  # five more, then four, ... and none
    last = {}
    for figures in km.trace_:
        if figures["clusters"] == 8:
            last[figures["run"]] = figures["inertia"]
    assert km.inertia_ == pytest.approx(min(last.values()), rel=1e-6)


@pytest.mark.parametrize("search", SEARCHES)
@pytest.mark.parametrize("k", [1, 2])
def test_few_clusters(blobs: Make, search: str, k: int) -> None:
    x = blobs(100, 2, 3)
    km = fw.KMeans(k, search=search).fit(x)
    assert km.outcome_.converged
    if k == 1:
        np.testing.assert_allclose(km.cluster_centers_[0], x.mean(axis=0), rtol=1e-12)
    else:
        # All ways to part three groups in two.
        assert km.inertia_ <= min(fw.KMeans(2, random_state=seed).fit(x).inertia_ for seed in range(10)) * (1 + 1e-9)


@pytest.mark.parametrize("search", SEARCHES)
def test_sparse_and_capped(blobs: Make, as_if_large: None, search: str) -> None:
    """Runs that end at max_iter are compared all the same, and it ends."""
    from foldwise.errors import NotFinishedWarning

    x = blobs(300, 4, 6, spread=1.0)
    x[np.random.default_rng(0).random(x.shape) < 0.4] = 0
    plain = fw.KMeans(6, init=x[:6], tol=0).fit(sp.csr_array(x))
    searched = fw.KMeans(6, init=x[:6], tol=0, search=search).fit(sp.csr_array(x))
    assert searched.inertia_ <= plain.inertia_ * (1 + 1e-12)
    with pytest.warns(NotFinishedWarning, match="capped"):
        capped = fw.KMeans(6, init=x[:6], tol=0, search=search, max_iter=2).fit(x)
    with pytest.warns(NotFinishedWarning, match="capped"):
        start = fw.KMeans(6, init=x[:6], tol=0, max_iter=2).fit(x)
    assert capped.inertia_ <= start.inertia_
    np.testing.assert_array_equal(capped.predict(x), capped.labels_)


def test_a_far_row_does_not_blind_the_search() -> None:
    """The whole spread, 1e20, has no digits left for an inertia of 168: runs are then compared by differences."""
    rng = np.random.default_rng(0)
    centres = rng.standard_normal((12, 2)) * 8
    x = np.concatenate([centre + 0.3 * rng.standard_normal((80, 2)) for centre in centres])
    far = np.concatenate([x, np.full((1, 2), 1e10)])
    alone, beside = fw.KMeans(12, search="breathing").fit(x), fw.KMeans(13, search="breathing").fit(far)
    assert beside.inertia_ == pytest.approx(alone.inertia_, rel=1e-6)
    assert beside.trace_[-1]["inertia"] == pytest.approx(beside.inertia_, rel=0.05)
