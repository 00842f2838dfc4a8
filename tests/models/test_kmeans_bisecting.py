"""K-means from the top, and the pass over sums and centres at the end of every step."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.cluster import BisectingKMeans
from sklearn.utils.estimator_checks import parametrize_with_checks

import foldwise as fw
from foldwise.data.scan import scan
from foldwise.fold.passes import Passes
from foldwise.kernels import reference
from foldwise.models.kmeans.assignment import Assignment
from foldwise.models.kmeans.fit_data import KMeansData
from foldwise.models.kmeans.geometry import unit_centres


def blobs(n: int, d: int, k: int, seed: int = 0) -> NDArray[np.float64]:
    rng = np.random.default_rng(seed)
    return rng.standard_normal((k, d))[rng.integers(k, size=n)] * 5 + rng.standard_normal((n, d))


@parametrize_with_checks([fw.BisectingKMeans(n_clusters=3, random_state=0)])
def test_manners_of_an_estimator(estimator: Any, check: Any) -> None:
    check(estimator)


@pytest.mark.parametrize("strategy", ["biggest_inertia", "largest_cluster"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_down_the_tree_by_hand(strategy: str, dtype: Any) -> None:
    x = blobs(900, 3, 7).astype(dtype)
    model = fw.BisectingKMeans(7, bisecting_strategy=strategy, tol=0).fit(x)
    node = np.zeros(900, dtype=int)
    for parent, pair in enumerate(model.tree_children_):
        here = np.flatnonzero(node == parent)
        if pair[0] >= 0:
            node[here] = pair[reference.nearest(x[here], model.tree_centers_[pair])]
            means = np.stack([x[node == child].astype(float).mean(axis=0) for child in pair])
            if (model.tree_children_[pair, 0] < 0).all():
                np.testing.assert_allclose(
                    model.tree_centers_[pair], means, rtol=1e-5 if dtype == np.float32 else 1e-12
                )
    assert np.array_equal(model.tree_labels_[node], model.labels_)
    assert np.array_equal(model.predict(x), model.labels_)
    assert np.array_equal(model.cluster_weights_, np.bincount(model.labels_))
    gap = x.astype(float) - model.cluster_centers_[model.labels_].astype(float)
    assert model.inertia_ == pytest.approx(float((gap**2).sum()), rel=1e-6 if dtype == np.float32 else 1e-12)
    assert model.score(x) == pytest.approx(-model.inertia_, rel=1e-9)


def test_as_good_as_scikit_learn() -> None:
    x = blobs(2000, 4, 10)
    ours = [fw.BisectingKMeans(10, random_state=seed).fit(x).inertia_ for seed in range(5)]
    theirs = [BisectingKMeans(10, init="k-means++", random_state=seed).fit(x).inertia_ for seed in range(5)]
    assert np.mean(ours) < 1.05 * np.mean(theirs)


@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
def test_memory_file_and_sparse_agree(metric: str, tmp_path: Path) -> None:
    x = blobs(3000, 5, 4)
    np.save(tmp_path / "x.npy", x)
    memory = fw.BisectingKMeans(5, metric=metric, tol=0).fit(x)
    for other in (tmp_path / "x.npy", sp.csr_array(x)):
        model = fw.BisectingKMeans(5, metric=metric, tol=0).fit(other)
        assert np.array_equal(model.predict(other), model.labels_)
        assert model.inertia_ == pytest.approx(memory.inertia_, rel=0.2)
    fw.save(memory, tmp_path / "m.fw")
    assert np.array_equal(fw.load(tmp_path / "m.fw").predict(x), memory.labels_)


@pytest.mark.parametrize("weighted", [False, True])
def test_a_file_has_the_same_bits(weighted: bool, tmp_path: Path) -> None:
    x = blobs(150_000, 8, 6).astype(np.float32)
    weights = np.random.default_rng(0).integers(0, 3, len(x)).astype(float) if weighted else None
    np.save(tmp_path / "x.npy", x)
    models = [fw.BisectingKMeans(5).fit(each, sample_weight=weights) for each in (x, tmp_path / "x.npy")]
    assert len({m.tree_centers_.tobytes() + m.labels_.tobytes() for m in models}) == 1
    assert models[0].inertia_ == models[1].inertia_


def test_bits_do_not_depend_on_threads() -> None:
    x = blobs(50_000, 16, 6).astype(np.float32)
    models = [fw.BisectingKMeans(5, n_threads=n).fit(x) for n in (1, 2, 7)]
    assert len({m.tree_centers_.tobytes() + m.labels_.tobytes() for m in models}) == 1


def test_fewer_distinct_rows_than_clusters() -> None:
    with pytest.warns(UserWarning, match="distinct clusters"):
        model = fw.BisectingKMeans(4).fit([[0.0]] * 5 + [[1.0]] * 3)
    assert model.inertia_ == 0.0
    assert model.cluster_centers_.shape == (4, 1)


# ---------------------------------------------------------------- the end of a step


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("offset", [0.0, 1e4])
@pytest.mark.parametrize("project", [None, unit_centres])
def test_one_pass_gives_what_means_and_inertias_give(dtype: Any, offset: float, project: Any) -> None:
    rng = np.random.default_rng(0)
    x = (blobs(500, 11, 4) + offset).astype(dtype)
    weights = rng.random(500)
    rows = Assignment(KMeansData(Passes(scan(x, weights=weights))))
    centres = np.concatenate([x[:5], x[:1] + dtype(1e6)])  # the last one is empty
    rows.assign(centres)
    new, after_e, after_m, shift = rows.update_centres(centres, project)
    truth = rows.means(centres) if project is None else project(rows.means(centres))
    assert np.array_equal(new, truth)
    np.testing.assert_allclose([after_e, after_m], [rows.inertia(centres), rows.inertia(truth)], rtol=1e-9)
    gap = (truth.astype(float) - centres.astype(float)) * rows.data.rescaling.scale
    assert shift == pytest.approx(float((gap**2).sum()), rel=1e-6 if dtype == np.float32 else 1e-9)


@pytest.mark.parametrize("in_file", [False, True])
def test_a_callable_start(tmp_path, in_file):
    """As scikit-learn's: called for each split with the rows of the cluster, and two centres to return. It was refused."""
    from sklearn.cluster import BisectingKMeans

    rng = np.random.default_rng(0)
    x = rng.normal(size=(300, 2)) + 8 * rng.integers(0, 3, (300, 1))
    seen = []

    def first_and_last(X, n_clusters, random_state):
        seen.append((len(X), n_clusters))
        assert hasattr(random_state, "choice")
        return np.array([X[0], X[-1]])

    np.save(tmp_path / "x.npy", x)
    model = fw.BisectingKMeans(4, init=first_and_last).fit(tmp_path / "x.npy" if in_file else x)
    ours, seen = seen, []
    assert model.inertia_ == pytest.approx(BisectingKMeans(4, init=first_and_last).fit(x).inertia_)
    assert ours == seen
    assert ours[0] == (300, 2)
    with pytest.raises(ValueError, match="initial centers"):
        fw.BisectingKMeans(4, init=lambda X, k, random_state: X[:3]).fit(x)
    with pytest.raises(ValueError, match="init"):
        fw.BisectingKMeans(2, init=x[:2]).fit(x)
