"""The manners of a scikit-learn estimator: parameters, attributes, names, weights, files, bad input."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.estimator_checks import parametrize_with_checks

import foldwise as fw
from foldwise.errors import ParameterError

Make = Callable[..., Any]
ATTRIBUTES = (
    "cluster_centers_",
    "labels_",
    "inertia_",
    "n_iter_",
    "n_features_in_",
    "cluster_weights_",
    "cluster_inertias_",
    "trace_",
    "outcome_",
    "manifest_",
)


CHECKED = [
    fw.KMeans(),
    fw.KMeans(2, n_init=2, max_iter=5),
    fw.KMeans(3, search="breathing", algorithm="bounded"),
    fw.KMeans(2, search="split-merge", algorithm="lloyd"),
    fw.KMeans(3, init="random", algorithm="elkan"),
    fw.KMeans(3, init="k-means||"),
]


@pytest.mark.filterwarnings("ignore:Number of distinct clusters")
@pytest.mark.filterwarnings("ignore:.*stopped before it converged")
@parametrize_with_checks(CHECKED)
def test_scikit_learns_own_checks(estimator: Any, check: Any) -> None:
    check(estimator)


def same(a: fw.KMeans, b: fw.KMeans) -> bool:
    return (
        a.cluster_centers_.tobytes() == b.cluster_centers_.tobytes()
        and a.labels_.tobytes() == b.labels_.tobytes()
        and a.inertia_ == b.inertia_
    )


# ---------------------------------------------------------------- what a fit leaves


def test_attributes(blobs: Make) -> None:
    x = blobs(200, 3, 4)
    km = fw.KMeans(4, random_state=0).fit(x)
    for name in ATTRIBUTES:
        assert hasattr(km, name), name
    assert km.cluster_centers_.shape == (4, 3)
    assert km.labels_.shape == (200,)
    assert isinstance(km.inertia_, float)
    assert isinstance(km.n_iter_, int)
    assert km.n_features_in_ == 3
    assert km.cluster_weights_.sum() == 200
    assert km.cluster_inertias_.sum() == pytest.approx(km.inertia_, rel=1e-12)
    assert km.manifest_.rows == 200
    assert "k-means" in km.manifest_.algorithm
    assert not hasattr(km, "feature_names_in_")


def test_methods_agree(blobs: Make) -> None:
    x = blobs(200, 3, 4)
    km = fw.KMeans(5, random_state=1)
    np.testing.assert_array_equal(clone(km).fit_predict(x), km.fit(x).labels_)
    np.testing.assert_array_equal(clone(km).fit_transform(x), km.transform(x))
    np.testing.assert_array_equal(km.transform(x).argmin(axis=1), km.labels_)
    assert -km.score(x) == pytest.approx(km.inertia_, rel=1e-13)
    w = np.random.default_rng(0).random(200)
    assert -km.score(x, sample_weight=w) == pytest.approx((km.transform(x).min(axis=1) ** 2) @ w, rel=1e-10)
    new = np.random.default_rng(1).standard_normal((7, 3))
    apart = np.linalg.norm(new[:, None] - km.cluster_centers_, axis=2)
    np.testing.assert_allclose(km.transform(new), apart, rtol=1e-12)
    np.testing.assert_array_equal(km.predict(new), apart.argmin(axis=1))


def test_refitting_forgets_everything(blobs: Make) -> None:
    km = fw.KMeans(3).fit(blobs(100, 5, 3, seed=1), sample_weight=np.random.default_rng(0).random(100))
    assert same(km.fit(blobs(80, 2, 3)), fw.KMeans(3).fit(blobs(80, 2, 3)))
    assert km.n_features_in_ == 2


@pytest.mark.parametrize("seed", [None, 0, 7])
def test_equal_calls_give_equal_bits(blobs: Make, seed: int | None) -> None:
    x = blobs(300, 4, 6, spread=1.0)
    assert same(fw.KMeans(6, random_state=seed).fit(x), fw.KMeans(6, random_state=seed).fit(x))


def test_random_state_of_every_kind(blobs: Make) -> None:
    x = blobs(300, 4, 6, spread=2.0)
    assert len({fw.KMeans(9, search="none", random_state=seed).fit(x).inertia_ for seed in range(8)}) > 1
    for state in (np.random.RandomState(3), np.int64(3)):
        assert fw.KMeans(3, random_state=state).fit(x).inertia_ > 0
    assert same(fw.KMeans(9, random_state=np.int64(3)).fit(x), fw.KMeans(9, random_state=3).fit(x))


def test_dtypes(blobs: Make) -> None:
    x = blobs(100, 3, 4)
    narrow = fw.KMeans(4, tol=0).fit(x.astype(np.float32))
    assert narrow.cluster_centers_.dtype == np.float32
    assert narrow.transform(x.astype(np.float32)).dtype == np.float32
    wide = fw.KMeans(4, tol=0).fit(x)
    assert wide.cluster_centers_.dtype == np.float64
    assert wide.labels_.dtype == narrow.labels_.dtype == np.int32
    # Rows of another width are compared as they are.
    np.testing.assert_array_equal(narrow.predict(x), wide.labels_)
    np.testing.assert_array_equal(wide.predict(x.astype(np.float32)), wide.labels_)
    assert narrow.transform(x).dtype == np.float64
    np.testing.assert_array_equal(narrow.predict(np.round(x).astype(int)), narrow.predict(np.round(x)))


def test_pickle_clone_and_repr(blobs: Make) -> None:
    x = blobs(100, 3, 4)
    km = fw.KMeans(4, search="breathing").fit(x)
    again = pickle.loads(pickle.dumps(km))
    assert same(again, km)
    np.testing.assert_array_equal(again.predict(x), km.labels_)
    fresh = clone(km)
    assert fresh.get_params() == km.get_params()
    assert not hasattr(fresh, "labels_")
    assert repr(fresh) == "KMeans(n_clusters=4, search='breathing')"


def test_saved_and_loaded(blobs: Make, tmp_path: Path) -> None:
    pd = pytest.importorskip("pandas")
    x = pd.DataFrame(blobs(100, 2, 3), columns=["length", "width"])
    for km in (fw.KMeans(3).fit(x), fw.KMeans(3, init=x.to_numpy()[:3]).fit(x)):
        fw.save(km, tmp_path / "km.fw")
        again = fw.load(tmp_path / "km.fw")
        assert same(again, km)
        assert again.trace_ == km.trace_
        assert again.outcome_ == km.outcome_
        assert again.manifest_ == km.manifest_
        assert list(again.feature_names_in_) == ["length", "width"]
        assert list(again.get_feature_names_out()) == list(km.get_feature_names_out())
        np.testing.assert_array_equal(again.predict(x), km.labels_)
        np.testing.assert_array_equal(again.transform(x), km.transform(x))
        assert clone(again).fit(x).inertia_ == km.inertia_


def test_errors_when_not_fitted() -> None:
    for call in ("predict", "transform", "score"):
        with pytest.raises(NotFittedError):
            getattr(fw.KMeans(), call)([[1.0, 2.0]])
    with pytest.raises(NotFittedError):
        fw.KMeans().get_feature_names_out()


# ---------------------------------------------------------------- the order of clusters


def test_own_starts_number_clusters_by_size_then_by_centre() -> None:
    middles = np.array([0.0, 10.0, 40.0, 30.0, 20.0])
    which = np.array([3, 1, 1, 0, 0, 0, 2, 4, 4, 1, 0, 2])  # sizes 4, 3, 2, 1, 2; the last is at 20, the third at 40
    x = middles[which][:, None] + np.linspace(0, 0.1, len(which))[:, None]
    expected = np.array([4, 1, 1, 0, 0, 0, 3, 2, 2, 1, 0, 3])
    for seed in range(5):
        for init in ("k-means++", "random", "k-means||"):
            order = np.random.default_rng(seed).permutation(len(x))
            km = fw.KMeans(5, init=init, n_init=10, random_state=seed, search="breathing").fit(x[order])
            np.testing.assert_array_equal(km.labels_, expected[order])
            assert list(km.cluster_weights_) == [4, 3, 2, 2, 1]
            np.testing.assert_allclose(km.cluster_centers_[:, 0], middles[[0, 1, 4, 2, 3]], atol=0.2)


def test_size_means_weight() -> None:
    x = np.array([[0.0], [0.1], [0.2], [9.0]])
    assert list(fw.KMeans(2).fit(x, sample_weight=[1, 1, 1, 10]).labels_) == [1, 1, 1, 0]


def test_given_centres_keep_their_order(blobs: Make) -> None:
    x = blobs(300, 2, 4)
    start = fw.KMeans(4).fit(x).cluster_centers_[[2, 0, 3, 1]]
    for init in (start, start.tolist(), lambda X, k, random_state: start, start[:, ::-1][:, ::-1]):
        km = fw.KMeans(4, init=init, n_init=1).fit(x)
        np.testing.assert_allclose(km.cluster_centers_, start, atol=1e-3)
        assert not np.all(np.diff(km.cluster_weights_) <= 0)


# ---------------------------------------------------------------- starts


def test_several_starts_with_given_centres_are_one(blobs: Make) -> None:
    x = blobs(100, 2, 3)
    with pytest.warns(RuntimeWarning, match="Explicit initial center position passed: performing only one init"):
        km = fw.KMeans(3, init=x[:3], n_init=5).fit(x)
    assert same(km, fw.KMeans(3, init=x[:3]).fit(x))


def test_callable_start(blobs: Make) -> None:
    x = blobs(100, 2, 3)
    calls = []

    def init(X: Any, n_clusters: int, random_state: Any) -> Any:
        calls.append((X is x, n_clusters, random_state.randint(1000)))
        return X[random_state.permutation(len(X))[:n_clusters]]

    fw.KMeans(3, init=init, n_init=4).fit(x)
    assert [call[:2] for call in calls] == [(True, 3)] * 4
    assert len({call[2] for call in calls}) == 4


def test_best_of_several_starts_is_kept(blobs: Make) -> None:
    x = blobs(400, 2, 12, spread=0.5)
    for init in ("random", "k-means++"):
        km = fw.KMeans(12, init=init, n_init=6, tol=0, random_state=5).fit(x)
        runs: dict[float, float] = {}
        for figures in km.trace_:
            runs[figures["run"]] = figures["inertia"]
        assert len(runs) == 6
        assert km.inertia_ == pytest.approx(min(runs.values()), rel=1e-9)
        assert km.n_iter_ <= len(km.trace_)


@pytest.mark.parametrize(("init", "runs"), [("k-means++", 1), ("k-means||", 1), ("random", 10), ("array", 1)])
def test_automatic_number_of_starts(blobs: Make, init: Any, runs: int) -> None:
    x = blobs(100, 2, 3)
    km = fw.KMeans(3, init=x[:3] if init == "array" else init).fit(x)
    assert len({figures["run"] for figures in km.trace_}) == runs


def test_bad_starting_centres(blobs: Make) -> None:
    x = blobs(100, 2, 3)
    with pytest.raises(ParameterError, match=r"initial centers \(2, 2\) does not match the number of clusters 3"):
        fw.KMeans(3, init=x[:2]).fit(x)
    with pytest.raises(
        ParameterError, match=r"initial centers \(3, 1\) does not match the number of features of the data 2"
    ):
        fw.KMeans(3, init=x[:3, :1]).fit(x)
    with pytest.raises(ValueError, match="initial centers"):
        fw.KMeans(3, init=x[0]).fit(x)
    with pytest.raises(ParameterError, match="NaN or infinity"):
        fw.KMeans(3, init=np.full((3, 2), np.nan)).fit(x)
    with pytest.raises(ParameterError, match="does not match the number of clusters"):
        fw.KMeans(3, init=lambda X, k, random_state: X[:1]).fit(x)


@pytest.mark.parametrize(
    "bad",
    [
        {"n_clusters": 0},
        {"n_clusters": 2.5},
        {"init": "kmeans++"},
        {"n_init": 0},
        {"n_init": "many"},
        {"max_iter": 0},
        {"tol": -1e-3},
        {"random_state": "x"},
        {"algorithm": "full"},
        {"search": "breathe"},
        {"metric": "manhattan"},
        {"time_budget": -1.0},
        {"checkpoint": 3},
        {"n_threads": 0},
        {"verbose": "loud"},
        {"copy_x": "yes"},
    ],
)
def test_bad_parameters(bad: dict[str, Any]) -> None:
    (name,) = bad
    with pytest.raises(ValueError, match=f"'{name}' parameter of KMeans must be"):
        fw.KMeans(**bad).fit(np.eye(9))
