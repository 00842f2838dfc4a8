"""K-means against a hand computation, scikit-learn and published values (SPEC C1, C2), in both float widths."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn import datasets

import foldwise as fw
from foldwise.errors import NotFinishedWarning

ALGORITHMS = ["lloyd", "bounded", "auto"]


def data(name: str) -> np.ndarray:
    return np.ascontiguousarray(getattr(datasets, f"load_{name}")().data)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("kind", [np.float32, np.float64, "sparse"])
def test_c1_hand_computation(algorithm: str, kind: Any) -> None:
    """Points 0, 1, 2, 9, 10 and 14 on a line, centres at 0 and 1.

    E: 0 belongs to the first, all others to the second: J = 0 + 0 + 1 + 64 + 81 + 169 = 315.
    M: centres 0 and (1 + 2 + 9 + 10 + 14) / 5 = 7.2; J = 0 + 38.44 + 27.04 + 3.24 + 7.84 + 46.24 = 122.8.
    E: 0, 1, 2 | 9, 10, 14 (2 is 2 from 0 and 5.2 from 7.2): J = 0 + 1 + 4 + 3.24 + 7.84 + 46.24 = 62.32.
    M: centres 1 and 11; J = 1 + 0 + 1 + 4 + 1 + 9 = 16.
    E: nothing moves, and J stays; M: nothing moves, the end.
    """
    x = np.array([[0.0], [1.0], [2.0], [9.0], [10.0], [14.0]])
    given = sp.csr_array(x) if kind == "sparse" else x.astype(kind)
    km = fw.KMeans(2, init=[[0.0], [1.0]], algorithm=algorithm, tol=0).fit(given)
    digits = 1e-6 if kind == np.float32 else 1e-13
    after_e = [figures["inertia_after_e"] for figures in km.trace_]
    after_m = [figures["inertia"] for figures in km.trace_]
    np.testing.assert_allclose(after_e, [315, 62.32, 16], rtol=digits)
    np.testing.assert_allclose(after_m, [122.8, 16, 16], rtol=digits)
    assert [figures["moved"] for figures in km.trace_] == [6, 2, 0]
    np.testing.assert_allclose([figures["shift"] for figures in km.trace_], [6.2, np.hypot(1, 3.8), 0], rtol=digits)
    assert list(km.labels_) == [0, 0, 0, 1, 1, 1]
    np.testing.assert_array_equal(km.cluster_centers_, [[1.0], [11.0]])
    assert km.inertia_ == 16
    assert list(km.cluster_inertias_) == [2, 14]
    assert km.n_iter_ == 3
    np.testing.assert_allclose(km.transform(x[:2]), [[1, 11], [0, 10]], atol=1e-12)
    assert list(km.predict([[6.0], [6.1], [-100.0]])) == [0, 1, 0]  # 6 is as far from 1 as from 11: the first wins


def test_c1_weighted_hand_computation() -> None:
    """Points 0, 4 and 10 with weights 3, 1 and 2 and centres 0 and 10: {0, 4} has its mean at 1, J = 3 * 1 + 1 * 9 = 12."""
    km = fw.KMeans(2, init=[[0.0], [10.0]], tol=0).fit([[0.0], [4.0], [10.0]], sample_weight=[3, 1, 2])
    np.testing.assert_array_equal(km.cluster_centers_, [[1.0], [10.0]])
    assert km.inertia_ == pytest.approx(12, rel=1e-15)
    assert list(km.cluster_weights_) == [4, 2]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize(("name", "k"), [("iris", 3), ("iris", 8), ("wine", 5), ("digits", 10), ("digits", 40)])
def test_scikit_learn_says_the_same(name: str, k: int, algorithm: str, dtype: Any) -> None:
    from sklearn.cluster import KMeans

    x = data(name).astype(dtype)
    rng = np.random.default_rng(k)
    # Off the rows: digits are whole numbers, with exact ties that scikit-learn settles by its rounding.
    start = x[rng.permutation(len(x))[:k]] + rng.random((k, x.shape[1]), dtype=np.float32) / 10
    theirs = KMeans(k, init=start, n_init=1, tol=0, algorithm="lloyd").fit(x)
    ours = fw.KMeans(k, init=start, tol=0, algorithm=algorithm).fit(x)
    np.testing.assert_array_equal(ours.labels_, theirs.labels_)
    size = np.abs(x).max()
    np.testing.assert_allclose(ours.cluster_centers_, theirs.cluster_centers_, rtol=0, atol=1e-6 * size)
    assert ours.inertia_ == pytest.approx(theirs.inertia_, rel=1e-5 if dtype == np.float32 else 1e-10)
    if dtype == np.float64:
        assert ours.n_iter_ == theirs.n_iter_
    rows = x[::7]
    np.testing.assert_array_equal(ours.predict(rows), theirs.predict(rows))
    np.testing.assert_allclose(ours.transform(rows), theirs.transform(rows), rtol=1e-4, atol=1e-5 * size)
    assert ours.score(rows) == pytest.approx(theirs.score(rows), rel=1e-4)


@pytest.mark.parametrize("max_iter", [1, 2, 4])
def test_scikit_learn_says_the_same_after_few_steps(max_iter: int) -> None:
    import warnings

    from sklearn.cluster import KMeans

    x = data("digits")
    theirs = KMeans(10, init=x[:10], n_init=1, tol=0, max_iter=max_iter)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs.fit(x)
    with pytest.warns(NotFinishedWarning):
        ours = fw.KMeans(10, init=x[:10], tol=0, max_iter=max_iter).fit(x)
    np.testing.assert_array_equal(ours.labels_, theirs.labels_)
    np.testing.assert_allclose(ours.cluster_centers_, theirs.cluster_centers_, atol=1e-10)


def test_scikit_learn_says_the_same_of_weights() -> None:
    from sklearn.cluster import KMeans

    x, rng = data("wine"), np.random.default_rng(0)
    w = rng.random(len(x))
    theirs = KMeans(4, init=x[:4], n_init=1, tol=0).fit(x, sample_weight=w)
    ours = fw.KMeans(4, init=x[:4], tol=0).fit(x, sample_weight=w)
    np.testing.assert_array_equal(ours.labels_, theirs.labels_)
    np.testing.assert_allclose(ours.cluster_centers_, theirs.cluster_centers_, rtol=1e-10)
    assert ours.inertia_ == pytest.approx(theirs.inertia_, rel=1e-12)
    assert ours.score(x, sample_weight=w) == pytest.approx(theirs.score(x, sample_weight=w), rel=1e-12)


@pytest.mark.parametrize("tol", [1e-1, 1e-2, 1e-4])
def test_tol_means_what_it_means_to_scikit_learn(tol: float) -> None:
    from sklearn.cluster import KMeans

    x = data("digits")
    theirs = KMeans(10, init=x[:10], n_init=1, tol=tol).fit(x)
    ours = fw.KMeans(10, init=x[:10], tol=tol).fit(x)
    assert ours.n_iter_ == theirs.n_iter_
    np.testing.assert_array_equal(ours.labels_, theirs.labels_)


# ---------------------------------------------------------------- published values


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_iris_in_three(dtype: Any) -> None:
    """The within-cluster sum of squares of iris in three clusters is widely printed as 78.85144, with sizes 62, 50 and 38.

    It is the optimum, and also what R's kmeans is known for with the flowers 1, 51 and 101 as starting centres.
    """
    x = data("iris").astype(dtype)
    for km in (fw.KMeans(3, search="breathing").fit(x), fw.KMeans(3, init=x[[0, 50, 100]], tol=0).fit(x)):
        assert km.inertia_ == pytest.approx(78.85144, abs=5e-6 if dtype == np.float64 else 1e-4)
        assert sorted(km.cluster_weights_) == [38, 50, 62]
    np.testing.assert_allclose(np.sort(km.cluster_inertias_), [15.15100, 23.87947, 39.82097], atol=1e-4)
    setosa = km.labels_[:50]
    assert len(set(setosa)) == 1
    np.testing.assert_allclose(km.cluster_centers_[setosa[0]], [5.006, 3.428, 1.462, 0.246], atol=1e-5)


@pytest.mark.parametrize(
    ("k", "best"), [(1, 681.3706), (2, 152.34795), (3, 78.851441), (4, 57.228473), (5, 46.446182), (6, 39.039987)]
)
def test_iris_in_up_to_six(k: int, best: float) -> None:
    """The best known sums of squares of iris for each number of clusters; 200 starts of scikit-learn's find no better."""
    found = [fw.KMeans(k, search="breathing", random_state=seed, tol=0).fit(data("iris")).inertia_ for seed in range(6)]
    assert min(found) == pytest.approx(best, rel=1e-7)
    assert np.mean(found) < 1.005 * best


def test_groups_far_apart_are_found() -> None:
    """Well parted groups are found whole, and the inertia is what is left within them."""
    rng = np.random.default_rng(0)
    middles = np.array([[0.0, 0.0], [30.0, 0.0], [0.0, 30.0], [30.0, 30.0]])
    which = rng.integers(4, size=200)
    x = middles[which] + rng.standard_normal((200, 2))
    km = fw.KMeans(4).fit(x)
    for group in range(4):
        assert len(set(km.labels_[which == group])) == 1
    left = sum(((x[which == g] - x[which == g].mean(axis=0)) ** 2).sum() for g in range(4))
    assert km.inertia_ == pytest.approx(left, rel=1e-12)
