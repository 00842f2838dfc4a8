"""Empty clusters: what is put into them, and that it depends on nothing but the values of the rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.cluster import KMeans as Theirs

import foldwise as fw
from foldwise.models.hashing import row_hashes


def lumps(seed: int, places: int = 40, d: int = 3) -> np.ndarray:
    """A few distinct rows, each many times, in a random order."""
    rng = np.random.default_rng(seed)
    return rng.permutation(np.repeat(rng.standard_normal((places, d)), rng.integers(1, 30, places), axis=0))


def one_hot(places: int = 60, n: int = 500) -> np.ndarray:
    """Indicators of categories: all distances between different rows are equal."""
    rng = np.random.default_rng(2)
    return np.eye(places)[np.concatenate([np.arange(places), rng.integers(places, size=n - places)])]


def fitted(x: Any, k: int, first: np.ndarray | None = None, **options: Any) -> fw.KMeans:
    """A fit whose centres are all one row to begin with."""
    weights = options.pop("sample_weight", None)
    start = np.repeat(x[:1] if first is None else first, k, axis=0)
    return fw.KMeans(k, init=start, n_init=1, **options).fit(x, sample_weight=weights)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("scale", [1.0, 1e-9, 1e15])
@pytest.mark.parametrize("offset", [0.0, 1e3])
def test_every_distinct_row_gets_a_cluster_if_there_are_enough(dtype: type, scale: float, offset: float) -> None:
    x = ((lumps(0) + offset) * scale).astype(dtype)
    distinct = len(np.unique(x, axis=0))
    km = fitted(x, distinct)
    assert len(np.unique(km.labels_)) == distinct
    assert km.inertia_ <= 1e-10 * scale**2


def test_rows_that_lie_close_together_far_away_are_told_apart() -> None:
    """Their distances are below what products of these numbers can resolve."""
    near = 1e-9 * np.arange(12.0)[:, None]
    x = np.concatenate([near, near + 1.0, near - 1.0])
    km = fitted(np.repeat(x, 3, axis=0), 36)
    assert len(np.unique(km.labels_)) == 36


@pytest.mark.parametrize("k", [2, 17, 40, 60])
@pytest.mark.parametrize("sparse", [False, True])
def test_indicators_fill_all_clusters(k: int, sparse: bool) -> None:
    x = one_hot()
    km = fitted(sp.csr_array(x) if sparse else x, k, x[:1])
    assert len(np.unique(km.labels_)) == k
    np.testing.assert_array_equal(km.labels_, km.predict(x))


def test_sparse_rows_fill_all_clusters() -> None:
    x = sp.random_array((800, 3000), density=0.002, rng=np.random.default_rng(0), format="csr")
    distinct = len(np.unique(row_hashes(x)))
    assert distinct > 500  # some rows are all zeros
    km = fitted(x, 400, x[[0]].toarray())
    assert len(np.unique(km.labels_)) == 400


def test_sparse_and_dense_rows_are_filled_alike() -> None:
    x = np.round(np.random.default_rng(1).standard_normal((300, 5))) * 1.0
    dense, sparse = fitted(x, 20), fitted(sp.csr_array(x), 20, x[:1])
    np.testing.assert_array_equal(dense.labels_, sparse.labels_)


def test_fewer_distinct_rows_than_clusters() -> None:
    x = lumps(0, 10)
    with pytest.warns(Warning, match="distinct"):
        km = fitted(x, 15)
    assert len(np.unique(km.labels_)) == 10
    assert km.inertia_ < 1e-20


def test_rows_alone_in_their_clusters_do_not_hide_others() -> None:
    """Hundreds of clusters with one row far from its centre each, and one with two rows close together."""
    far = 1e3 * np.stack([np.arange(400.0), np.arange(400.0) % 7], axis=1)
    x = np.concatenate([far, [[-500.0, 0.0], [-500.0, 0.1]]])
    start = np.concatenate([far + 40.0, [[-500.0, 0.0], [-500.0, 0.0]]])
    km = fw.KMeans(402, init=start, n_init=1).fit(x)
    assert len(np.unique(km.labels_)) == 402
    assert km.inertia_ < 1e-20


def test_outliers_do_not_take_all_clusters() -> None:
    """Six groups and six outliers, all starts in one place: most of the inertia is within the groups."""
    rng = np.random.default_rng(1)
    x = np.concatenate([*(rng.standard_normal((500, 6)) + c for c in 10 * np.eye(6)), 25 * np.eye(6)])
    assert fitted(x, 6).inertia_ <= 1.001 * fw.KMeans(6, search="breathing").fit(x).inertia_


@pytest.mark.parametrize("k", [8, 24])
@pytest.mark.parametrize("seed", range(4))
def test_never_worse_than_scikit_learn_on_few_distinct_rows(k: int, seed: int) -> None:
    """Rows drawn with repetition as starts: many are equal (the clue partitions ended up to half again as bad before)."""
    rng = np.random.default_rng(seed)
    x = rng.integers(1, 4, (44, 50))[np.sort(rng.integers(44, size=1000) * rng.random(1000)).astype(int)].astype(float)
    start = x[rng.choice(1000, k)]
    theirs = Theirs(k, init=start, n_init=1).fit(x).inertia_
    assert fw.KMeans(k, init=start, n_init=1).fit(x).inertia_ <= theirs * (1 + 1e-9)


@pytest.mark.filterwarnings("ignore:KMeans .*stopped before it converged")
def test_one_empty_cluster_takes_the_farthest_row() -> None:
    x = np.array([[0.0], [1.0], [2.0], [9.0], [30.0]])
    km = fw.KMeans(2, init=[[0.0], [0.0]], n_init=1, max_iter=1, tol=0).fit(x)
    assert km.trace_[0]["filled"] == 1
    np.testing.assert_array_equal(np.sort(km.cluster_centers_, axis=0), [[3.0], [30.0]])


@pytest.mark.filterwarnings("ignore:KMeans .*stopped before it converged")
def test_rows_beside_a_filled_cluster_join_it_at_once() -> None:
    """Rows 8 and 9 are nearer to 10, the farthest row, than to 0; J at the centres 0 and 10 is 0 + 1 + 4 + 1 = 6."""
    x = np.array([[0.0], [1.0], [8.0], [9.0], [10.0]])
    km = fw.KMeans(2, init=[[0.0], [0.0]], n_init=1, max_iter=1, tol=0).fit(x)
    np.testing.assert_array_equal(km.cluster_centers_, [[0.5], [9.0]])
    assert km.trace_[0]["inertia_after_e"] == pytest.approx(6)
    assert km.trace_[0]["inertia"] == pytest.approx(2.5)


def test_more_empty_clusters_than_are_drawn_at_once() -> None:
    x = np.random.default_rng(0).standard_normal((4000, 2))
    km = fitted(x, 2500)
    assert len(np.unique(km.labels_)) == 2500
    assert fitted(x, 700).inertia_ < 1.1 * fw.KMeans(700, search="none").fit(x).inertia_


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_neither_threads_nor_files_matter(tmp_path: Path, dtype: type) -> None:
    x = np.round(np.random.default_rng(0).standard_normal((300_000, 4)), 1).astype(dtype)
    np.save(tmp_path / "x.npy", x)
    one = fitted(x, 30, n_threads=1)
    assert one.manifest_.repairs
    for threads in (2, 7):
        np.testing.assert_array_equal(fitted(x, 30, n_threads=threads).cluster_centers_, one.cluster_centers_)
    file = fw.KMeans(30, init=np.repeat(x[:1], 30, axis=0), n_init=1).fit(tmp_path / "x.npy")
    np.testing.assert_array_equal(file.cluster_centers_, one.cluster_centers_)
    np.testing.assert_array_equal(file.labels_, one.labels_)


@pytest.mark.filterwarnings("ignore:KMeans .*stopped before it converged")
@settings(deadline=None, max_examples=60)
@given(seed=st.integers(0, 2**32 - 1), k=st.integers(2, 24), kind=st.sampled_from(["normal", "whole", "indicators"]))
def test_neither_order_nor_repetition_matters(seed: int, k: int, kind: str) -> None:
    """After one step: later, whole numbers have exact ties, which the rounding of means settles."""
    rng = np.random.default_rng(seed)
    x = {
        "normal": lambda: rng.standard_normal((60, 3)),
        "whole": lambda: rng.integers(0, 4, (60, 3)).astype(float),
        "indicators": lambda: np.eye(30)[rng.permutation(60) % 30],
    }[kind]()
    w = rng.integers(1, 4, 60)
    options: dict[str, Any] = {"max_iter": 1, "tol": 0}
    weighted = fitted(x, k, x[:1], sample_weight=w, **options)
    repeated = np.repeat(np.arange(60), w)[rng.permutation(int(w.sum()))]
    again = fitted(x[repeated], k, x[:1], **options)
    assert weighted.trace_[0]["filled"] == again.trace_[0]["filled"] == k - 1
    np.testing.assert_allclose(again.cluster_centers_, weighted.cluster_centers_, atol=1e-12)


def test_rows_of_weight_zero_are_never_taken() -> None:
    rng = np.random.default_rng(0)
    x, far = rng.standard_normal((200, 3)), 1e3 * rng.standard_normal((300, 3))
    w = np.r_[np.ones(200), np.zeros(300)]
    with_far = fitted(np.concatenate([x, far]), 12, x[:1], sample_weight=w)
    without = fitted(x, 12, sample_weight=w[:200])
    np.testing.assert_array_equal(with_far.labels_[:200], without.labels_)
    np.testing.assert_allclose(with_far.cluster_centers_, without.cluster_centers_, atol=1e-14)


def test_missing_cells() -> None:
    rng = np.random.default_rng(0)
    x = np.round(rng.standard_normal((400, 4)), 1)
    x[rng.random(x.shape) < 0.2] = np.nan
    start = np.zeros((25, 4))
    km = fw.KMeans(25, init=start, n_init=1, missing="model").fit(x)
    assert len(np.unique(km.labels_[km.labels_ >= 0])) == 25
    order = rng.permutation(400)
    again = fw.KMeans(25, init=start, n_init=1, missing="model").fit(x[order])
    np.testing.assert_array_equal(again.labels_, km.labels_[order])


@pytest.mark.filterwarnings("ignore:KMeans .*stopped before it converged")
def test_equal_centres_leave_their_rows_to_the_first() -> None:
    """As comparing all of them would: ties go to the lowest number."""
    x = np.random.default_rng(0).standard_normal((50, 2))
    start = np.array([[5.0, 5.0], [0.0, 0.0], [5.0, 5.0], [0.0, 0.0], [-5.0, 0.0]])
    nearest = np.square(x[:, None] - start).sum(axis=2).argmin(axis=1)
    km = fw.KMeans(5, init=start, n_init=1, max_iter=1, tol=0).fit(x)
    assert int(km.trace_[0]["filled"]) == int((np.bincount(nearest, minlength=5) == 0).sum())
    assert km.trace_[0]["moved"] == 50


def test_hashes_are_of_values_alone() -> None:
    rng = np.random.default_rng(0)
    x = rng.integers(-3, 4, (5000, 6)).astype(float)
    x[x == 0] = rng.choice([0.0, -0.0], size=(x == 0).sum())
    found = row_hashes(x)
    for same in (x.astype(np.float32), x + 0.0, sp.csr_array(x), np.asfortranarray(x)):
        np.testing.assert_array_equal(row_hashes(same), found)
    assert len(np.unique(found)) == len(np.unique(x + 0.0, axis=0))
    assert len(np.unique(row_hashes(np.eye(3000)))) == 3000
    blank = np.full((2, 6), np.nan)
    blank[1].view(np.uint64)[:] |= np.uint64(1)  # another NaN
    assert len(np.unique(row_hashes(blank))) == 1
