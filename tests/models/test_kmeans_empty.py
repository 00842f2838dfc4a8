"""Empty clusters: what is put into them, and that it depends on nothing but the rows."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import foldwise as fw


def lumps(seed: int, places: int = 40, d: int = 3) -> np.ndarray:
    """A few distinct rows, each many times, in a random order."""
    rng = np.random.default_rng(seed)
    return rng.permutation(np.repeat(rng.standard_normal((places, d)), rng.integers(1, 30, places), axis=0))


def fitted(x: np.ndarray, k: int, **options: object) -> fw.KMeans:
    """A fit whose centres are all the first row to begin with."""
    weights = options.pop("sample_weight", None)
    return fw.KMeans(k, init=np.repeat(x[:1], k, axis=0), n_init=1, **options).fit(x, sample_weight=weights)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("scale", [1.0, 1e-9, 1e15])
def test_every_distinct_row_gets_a_cluster_if_there_are_enough(dtype: type, scale: float) -> None:
    x = (lumps(0) * scale).astype(dtype)
    km = fitted(x, 40)
    assert len(np.unique(km.labels_)) == 40
    assert km.inertia_ <= 1e-10 * scale**2


def test_rows_that_lie_close_together_far_away_are_told_apart() -> None:
    """Their distances are below what products of these numbers can resolve."""
    near = 1e-9 * np.arange(12.0)[:, None]
    x = np.concatenate([near, near + 1.0, near - 1.0])
    km = fitted(np.repeat(x, 3, axis=0), 36)
    assert len(np.unique(km.labels_)) == 36


def test_outliers_do_not_take_all_clusters() -> None:
    """Six groups and six outliers, all starts in one place: most of the inertia is within the groups."""
    rng = np.random.default_rng(1)
    centres = 10 * np.eye(6)
    x = np.concatenate([*(rng.standard_normal((500, 6)) + c for c in centres), 25 * np.eye(6)])
    found = fitted(x, 6).inertia_
    best = fw.KMeans(6, search="breathing").fit(x).inertia_
    assert found <= 1.001 * best


@pytest.mark.filterwarnings("ignore:KMeans .*stopped before it converged")
def test_one_empty_cluster_takes_the_farthest_row() -> None:
    x = np.array([[0.0], [1.0], [2.0], [9.0], [30.0]])
    km = fw.KMeans(2, init=[[0.0], [0.0]], n_init=1, max_iter=1, tol=0).fit(x)
    assert km.trace_[0]["filled"] == 1
    np.testing.assert_array_equal(np.sort(km.cluster_centers_, axis=0), [[3.0], [30.0]])


def test_more_empty_clusters_than_one_step_fills() -> None:
    x = np.random.default_rng(0).standard_normal((4000, 2))
    km = fitted(x, 700)
    assert len(np.unique(km.labels_)) == 700
    assert km.inertia_ < 1.1 * fw.KMeans(700, search="none").fit(x).inertia_


def test_more_empty_clusters_than_are_compared() -> None:
    x = np.random.default_rng(0).standard_normal((4000, 2))
    assert len(np.unique(fitted(x, 2500).labels_)) == 2500


def test_neither_threads_nor_files_matter(tmp_path: Path) -> None:
    x = np.round(np.random.default_rng(0).standard_normal((300_000, 4)), 1)
    np.save(tmp_path / "x.npy", x)
    one = fitted(x, 30, n_threads=1)
    assert one.manifest_.repairs
    for threads in (2, 7):
        np.testing.assert_array_equal(fitted(x, 30, n_threads=threads).cluster_centers_, one.cluster_centers_)
    start = np.repeat(x[:1], 30, axis=0)
    file = fw.KMeans(30, init=start, n_init=1).fit(tmp_path / "x.npy")
    np.testing.assert_array_equal(file.cluster_centers_, one.cluster_centers_)
    np.testing.assert_array_equal(file.labels_, one.labels_)


def test_neither_order_nor_repetition_matters() -> None:
    rng = np.random.default_rng(3)
    x, w = rng.standard_normal((400, 3)), rng.integers(1, 4, 400)
    start = np.repeat(x[:1], 12, axis=0)
    weighted = fw.KMeans(12, init=start, n_init=1).fit(x, sample_weight=w)
    order = rng.permutation(int(w.sum()))
    repeated = fw.KMeans(12, init=start, n_init=1).fit(np.repeat(x, w, axis=0)[order])
    np.testing.assert_allclose(weighted.cluster_centers_, repeated.cluster_centers_, atol=1e-12)


@pytest.mark.filterwarnings("ignore:KMeans .*stopped before it converged")
def test_equal_centres_leave_their_rows_to_the_first() -> None:
    """As comparing all of them would: ties go to the lowest number."""
    x = np.random.default_rng(0).standard_normal((50, 2))
    start = np.array([[5.0, 5.0], [0.0, 0.0], [5.0, 5.0], [0.0, 0.0], [-5.0, 0.0]])
    nearest = np.square(x[:, None] - start).sum(axis=2).argmin(axis=1)
    km = fw.KMeans(5, init=start, n_init=1, max_iter=1, tol=0).fit(x)
    filled = int(km.trace_[0]["filled"])
    assert filled == int((np.bincount(nearest, minlength=5) == 0).sum())
    assert km.trace_[0]["moved"] == 50
    assert km.outcome_.steps == 1
