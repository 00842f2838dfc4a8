"""ClusterEnsemble as an estimator: rows, files, threads, weights, prediction, saving, stopping and resuming."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.cluster import DBSCAN, AgglomerativeClustering
from sklearn.cluster import KMeans as TheirKMeans
from sklearn.metrics import adjusted_rand_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import foldwise as fw
from foldwise.data.arrays import ArraySource
from foldwise.errors import DataError, FoldwiseWarning, NotFinishedWarning, ParameterError
from foldwise.fold import events
from foldwise.fold.passes import Passes
from foldwise.models.ensemble import choose
from foldwise.models.ensemble.choose import choose_number

CONSENSUS = ("spectral", "kmeans", "average")
DIVERSITY = ("k-range", "restarts", "subsample", "features")


def blobs(n: int = 60, *, seed: int = 0, d: int = 3, dtype: Any = np.float64) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    truth = np.repeat([0, 1, 2], n)
    return (rng.standard_normal((3 * n, d)) + 9.0 * np.eye(3, d)[truth]).astype(dtype), truth


def rings(n: int = 200) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    truth = np.repeat([0, 1], n)
    turn = rng.uniform(0, 2 * np.pi, 2 * n)
    return (1.0 + 3.0 * truth + rng.normal(0, 0.1, 2 * n))[:, None] * np.column_stack(
        [np.cos(turn), np.sin(turn)]
    ), truth


def same(a: fw.ClusterEnsemble, b: fw.ClusterEnsemble) -> bool:
    names = (
        "labels_",
        "item_consensus_",
        "confidence_",
        "cluster_consensus_",
        "table_",
        "base_labels_",
        "consensus_cdf_",
    )
    return all(getattr(a, name).tobytes() == getattr(b, name).tobytes() for name in names)


# A subsample takes a row with all its weight or not at all: there, weights are not repetition.
CHECKED = [fw.ClusterEnsemble(2, n_base=10), fw.ClusterEnsemble(2, n_base=3, consensus="average", diversity="restarts")]


@pytest.mark.filterwarnings("ignore:Number of distinct clusters")
@parametrize_with_checks(CHECKED)
def test_scikit_learns_own_checks(estimator: Any, check: Any) -> None:
    check(estimator)


@pytest.mark.parametrize("consensus", CONSENSUS)
@pytest.mark.parametrize("diversity", DIVERSITY)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_it_finds_the_groups_and_predicts_its_own_labels(consensus, diversity, dtype):
    x, truth = blobs(dtype=dtype)
    x = x + dtype(1e4 if dtype == np.float32 else 1e8)
    found = fw.ClusterEnsemble(3, consensus=consensus, diversity=diversity, n_base=8).fit(x)
    assert adjusted_rand_score(found.labels_, truth) > 0.98
    np.testing.assert_array_equal(found.predict(x), found.labels_)
    assert found.predict_consensus(x).shape == (180, 3)
    np.testing.assert_allclose(found.predict_confidence(x), found.confidence_, rtol=1e-12)
    assert len(found.estimators_) == len(found.base_sizes_) == 8
    assert found.outcome_.converged


def test_groups_that_no_centre_describes():
    x, truth = rings()
    assert adjusted_rand_score(fw.ClusterEnsemble(2).fit(x).labels_, truth) == 1.0
    assert adjusted_rand_score(fw.KMeans(2).fit(x).labels_, truth) < 0.5


@pytest.mark.parametrize("diversity", DIVERSITY)
def test_the_same_bits_from_threads_files_and_cuts(tmp_path, diversity):
    rng = np.random.default_rng(1)
    x = rng.standard_normal((30_000, 40)).astype(np.float32)  # several blocks
    np.save(tmp_path / "x.npy", x)
    settings: dict[str, Any] = {"n_base": 2, "diversity": diversity, "random_state": 3}
    if diversity == "k-range":
        settings["base"] = fw.KMeans(max_iter=2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotFinishedWarning)
        fits = [fw.ClusterEnsemble(3, n_threads=threads, **settings).fit(x) for threads in (1, 3)]
        fits.append(fw.ClusterEnsemble(3, **settings).fit(tmp_path / "x.npy"))
    assert same(fits[0], fits[1])
    assert same(fits[0], fits[2])
    np.testing.assert_array_equal(fits[2].predict(tmp_path / "x.npy"), fits[0].labels_)


def test_the_bits_of_label_passes_do_not_depend_on_threads():
    labels = np.random.default_rng(0).integers(0, 3, (60_000, 12))  # several blocks of label rows
    for consensus in ("spectral", "kmeans"):
        a, b = (fw.ClusterEnsemble(3, consensus=consensus, n_threads=n).fit_labels(labels) for n in (1, 4))
        assert same(a, b)


def test_weights_count_as_repetition():
    x, _ = blobs(30)
    times = np.random.default_rng(0).integers(1, 4, len(x))
    one = fw.ClusterEnsemble(3, diversity="restarts").fit(x, sample_weight=times)
    many = fw.ClusterEnsemble(3, diversity="restarts").fit(np.repeat(x, times, axis=0))
    np.testing.assert_array_equal(np.repeat(one.labels_, times), many.labels_)
    np.testing.assert_allclose(one.cluster_weights_, many.cluster_weights_)
    np.testing.assert_allclose(one.cluster_consensus_, many.cluster_consensus_)
    nothing = np.ones(len(x))
    nothing[:5] = 0.0
    left_out = fw.ClusterEnsemble(3, diversity="restarts").fit(x, sample_weight=nothing)
    assert left_out.cluster_weights_.sum() == len(x) - 5
    np.testing.assert_array_equal(left_out.predict(x), left_out.labels_)


def test_sparse_rows_and_scaled_columns():
    x, truth = blobs()
    sparse = sp.csr_matrix(np.where(np.abs(x) < 0.5, 0.0, x))
    found = fw.ClusterEnsemble(3, n_base=6).fit(sparse)
    assert adjusted_rand_score(found.labels_, truth) > 0.95
    np.testing.assert_array_equal(found.predict(sparse), found.labels_)
    wide = x * [1.0, 1e6, 1e-6]
    scaled = fw.ClusterEnsemble(3, scale=True, n_base=6).fit(wide)
    assert adjusted_rand_score(scaled.labels_, truth) > 0.95
    np.testing.assert_array_equal(scaled.predict(wide), scaled.labels_)


@pytest.mark.parametrize("missing", ["model", "mean", "drop"])
def test_missing_cells(missing):
    x, truth = blobs()
    x[::7, 1] = np.nan
    x[5] = np.nan
    with pytest.raises(DataError, match="NaN"):
        fw.ClusterEnsemble(3).fit(x)
    found = fw.ClusterEnsemble(3, missing=missing).fit(x)
    complete = ~np.isnan(x).any(axis=1)
    assert adjusted_rand_score(found.labels_[complete], truth[complete]) > 0.9
    np.testing.assert_array_equal(found.predict(x), found.labels_)
    if missing == "model":
        assert found.labels_[5] == -1
    assert "missing cells" in found.manifest_.notes[-1]


def test_other_estimators_and_functions():
    x, truth = blobs()
    mixed = fw.ClusterEnsemble(
        3, diversity=[AgglomerativeClustering(3), TheirKMeans(4, n_init=1), DBSCAN(2.0), fw.GaussianMixture(3)]
    ).fit(x)
    assert adjusted_rand_score(mixed.labels_, truth) > 0.9
    with pytest.raises(ParameterError, match="AgglomerativeClustering has no predict"):
        mixed.predict(x)
    for base in (fw.GaussianMixture(2), fw.KMeans(2, scale=True), TheirKMeans(2, n_init=1)):
        found = fw.ClusterEnsemble(3, base=base, n_base=4, diversity="subsample").fit(x)
        assert adjusted_rand_score(found.labels_, truth) > 0.9
        np.testing.assert_array_equal(found.predict(x), found.labels_)

    def complete(m, k, weights):
        return AgglomerativeClustering(k, metric="precomputed", linkage="average").fit_predict(1 - m.toarray())

    found = fw.ClusterEnsemble(3, consensus=complete, n_base=5).fit(x)
    assert adjusted_rand_score(found.labels_, truth) > 0.9
    np.testing.assert_array_equal(found.predict(x), found.labels_)


def test_estimators_inside_others_are_seeded():
    x = np.random.default_rng(0).uniform(size=(120, 2))
    base = make_pipeline(StandardScaler(), TheirKMeans(6, init="random", n_init=1))
    for settings in ({"base": base, "n_base": 4}, {"diversity": [base] * 4}):
        first, second = (fw.ClusterEnsemble(3, random_state=5, **settings).fit(x) for _ in range(2))
        np.testing.assert_array_equal(first.base_labels_, second.base_labels_)
        assert len(np.unique(first.base_labels_, axis=1).T) > 1
        assert len({one.steps[-1][1].random_state for one in first.estimators_}) == 4
    assert base.steps[-1][1].random_state is None
    fixed = make_pipeline(TheirKMeans(6, n_init=1, random_state=1))
    found = fw.ClusterEnsemble(3, diversity=[fixed] * 2).fit(x)
    assert {one.steps[-1][1].random_state for one in found.estimators_} == {1}


def test_new_combinations_of_labels_go_to_the_nearest_cluster():
    x, truth = blobs()
    for consensus in CONSENSUS:
        found = fw.ClusterEnsemble(3, consensus=consensus).fit(x[::2])
        assert adjusted_rand_score(found.predict(x[1::2]), truth[1::2]) > 0.95


def test_the_number_of_clusters_is_chosen_and_may_be_one():
    x, truth = blobs(50)
    found = fw.ClusterEnsemble(n_base=5).fit(x)
    assert found.n_clusters_ == 3
    assert found.choice_.found
    assert adjusted_rand_score(found.labels_, truth) > 0.98
    assert found.choice_.cdfs.shape == (len(found.choice_.numbers), 101)
    noise = fw.ClusterEnsemble(n_base=5).fit(np.random.default_rng(3).standard_normal((150, 3)))
    assert noise.n_clusters_ == 1
    assert not noise.choice_.found
    assert (noise.labels_ == 0).all()
    assert noise.manifest_.notes[0].startswith("no clusters found")
    assert fw.ClusterEnsemble().fit([[1.0], [2.0], [3.0]]).n_clusters_ == 1


def grid(across: int, down: int, n: int) -> np.ndarray:
    centres = 10.0 * np.array([(i, j) for i in range(across) for j in range(down)])
    return np.repeat(centres, n, axis=0) + np.random.default_rng(0).standard_normal((across * down * n, 2))


def test_the_choice_goes_on_beyond_fifteen(monkeypatch):
    monkeypatch.setattr(choose, "_NULLS", 3)
    found = choose_number(Passes(ArraySource(grid(4, 5, 25))), 0)
    assert (found.n_clusters, found.found, found.rows) == (20, True, 500)
    assert found.numbers == tuple(range(2, 31))
    assert found.cdfs.shape == (29, 101)


def test_the_largest_number_tried_is_never_called_none(monkeypatch):
    monkeypatch.setattr(choose, "_NULLS", 3)
    monkeypatch.setattr(choose, "_RANGES", ((15, 400),))
    found = choose_number(Passes(ArraySource(grid(5, 5, 40))), 0)
    assert (found.n_clusters, found.found) == (1, False)
    assert found.reason.startswith("undecided: the largest number tried is the best")
    monkeypatch.setattr(choose, "_RANGES", ((3, 400),))
    found = choose_number(Passes(ArraySource(grid(1, 3, 130))), 0)
    assert found.reason.startswith("3 clusters, the largest number tried, so there may be more")


def test_large_weights_take_no_memory(monkeypatch):
    monkeypatch.setattr(choose, "_NULLS", 2)
    x, truth = blobs(100)
    for weight in (1e10, 1e30):
        found = fw.ClusterEnsemble().fit(x, sample_weight=np.full(300, weight))
        assert found.n_clusters_ == 3
        assert adjusted_rand_score(found.labels_, truth) > 0.98


def test_the_choice_counts_weights_as_repetition():
    x, _ = blobs(40)
    times = np.random.default_rng(0).integers(0, 3, len(x))
    for rows, weights in ((x, times), (np.tile(x, (4, 1)), np.tile(times, 4))):  # all rows, and a sample of them
        one = fw.ClusterEnsemble(n_base=2).fit(rows, sample_weight=weights).choice_
        many = fw.ClusterEnsemble(n_base=2).fit(np.repeat(rows, weights, axis=0)).choice_
        np.testing.assert_array_equal(one.pac, many.pac)
        assert one.n_clusters == many.n_clusters == 3


def test_ctrl_c_in_the_consensus_does_not_lose_the_clusterings(monkeypatch):
    from foldwise.models.ensemble import estimator

    x, _ = blobs()
    strategy, calls = estimator.CONSENSUS["kmeans"], []

    def interrupted_once(*given):
        calls.append(1)
        if len(calls) == 1:
            raise KeyboardInterrupt
        return strategy(*given)

    monkeypatch.setitem(estimator.CONSENSUS, "kmeans", interrupted_once)
    with pytest.warns(NotFinishedWarning, match="interrupted"):
        found = fw.ClusterEnsemble(3, consensus="kmeans").fit(x)
    assert len(found.base_sizes_) == 20
    np.testing.assert_array_equal(found.predict(x), found.labels_)


def test_saved_and_cloned(tmp_path):
    x, _ = blobs()
    for consensus in CONSENSUS:
        for diversity in ("k-range", "features"):
            found = fw.ClusterEnsemble(3, consensus=consensus, diversity=diversity, n_base=4, scale=True).fit(x)
            fw.save(found, tmp_path / "m.fw")
            again = fw.load(tmp_path / "m.fw")
            assert same(found, again)
            np.testing.assert_array_equal(again.predict(x), found.labels_)
            assert again.coassociation_[0, 1] == found.coassociation_[0, 1]
            assert same(found, clone(found).fit(x))
    chosen = fw.ClusterEnsemble(n_base=2).fit(x[::3])
    fw.save(chosen, tmp_path / "m.fw")
    assert fw.load(tmp_path / "m.fw").choice_.reason == chosen.choice_.reason
    of_labels = fw.ClusterEnsemble(2).fit_labels([[0, 1], [0, 1], [1, 0]])
    fw.save(of_labels, tmp_path / "m.fw")
    np.testing.assert_array_equal(fw.load(tmp_path / "m.fw").labels_, of_labels.labels_)


# ---------------------------------------------------------------- stopping


CHILD = """
import sys, time
import foldwise as fw
from foldwise.fold import events
def wait(event):
    if isinstance(event, events.StepDone) and "base" in event.figures:
        time.sleep(0.3)
with events.listening(wait):
    fw.ClusterEnsemble(3, n_base=30, diversity="subsample", checkpoint=sys.argv[2]).fit(sys.argv[1])
"""


def test_a_killed_fit_resumes_with_the_same_bits(tmp_path):
    x, _ = blobs()
    np.save(tmp_path / "x.npy", x)
    place = tmp_path / "checkpoint"
    child = subprocess.Popen([sys.executable, "-c", CHILD, str(tmp_path / "x.npy"), str(place)])
    until = time.monotonic() + 60
    while not place.exists() and time.monotonic() < until:
        time.sleep(0.02)
    child.send_signal(signal.SIGKILL)
    child.wait()
    assert place.exists()
    resumed = fw.ClusterEnsemble(3, n_base=30, diversity="subsample", checkpoint=place).fit(tmp_path / "x.npy")
    assert 1 <= resumed.manifest_.resumed_at < 30
    assert not place.exists()
    assert same(resumed, fw.ClusterEnsemble(3, n_base=30, diversity="subsample").fit(x))
    np.testing.assert_array_equal(resumed.predict(x), resumed.labels_)


def stop_after(number: int) -> Any:
    def listen(event: Any) -> None:
        if isinstance(event, events.StepDone) and event.figures.get("base") == number:
            signal.raise_signal(signal.SIGINT)  # to this thread, now: a later one could be lost in a callback

    return events.listening(listen)


def test_ctrl_c_keeps_the_clusterings_so_far():
    x, truth = blobs()
    with stop_after(4), pytest.warns(NotFinishedWarning, match="5 of 20 base clusterings"):
        found = fw.ClusterEnsemble(3).fit(x)
    assert found.outcome_.reason == "interrupted"
    assert len(found.base_sizes_) == 5
    assert adjusted_rand_score(found.labels_, truth) > 0.9
    np.testing.assert_array_equal(found.predict(x), found.labels_)
    assert same(found, fw.ClusterEnsemble(3, n_base=5).fit(x))


def test_a_time_budget_keeps_at_least_one():
    x, _ = blobs()
    with pytest.warns(NotFinishedWarning, match="out of time"):
        found = fw.ClusterEnsemble(3, time_budget=0.0).fit(x)
    assert len(found.base_sizes_) == 1
    np.testing.assert_array_equal(found.predict(x), found.labels_)


def test_weights_that_are_shares_are_told():
    x, truth = blobs(20)
    shares = np.full(60, 1 / 60)
    with pytest.raises(DataError, match=r"weights of 60 rows add up to 1, .*Weights mean repetition"):
        fw.ClusterEnsemble(3).fit(x, sample_weight=shares)
    with pytest.raises(DataError, match=r"weights of 60 rows add up to 1, "):
        fw.ClusterEnsemble(3).fit_labels(truth, sample_weight=shares)
    with pytest.warns(FoldwiseWarning, match="add up to 3 for 60 rows"):
        fw.ClusterEnsemble(3, n_base=2, diversity="restarts").fit(x, sample_weight=3 * shares)
    with pytest.warns(FoldwiseWarning, match="add up to 3 for 60 rows"):
        fw.ClusterEnsemble(3).fit_labels(truth, sample_weight=3 * shares)
    one = np.zeros(60)
    one[7] = 1.0  # one row, once
    assert fw.ClusterEnsemble(1).fit_labels(truth, sample_weight=one).cluster_weights_ == [1.0]


def test_bad_parameters(tmp_path):
    x, _ = blobs()
    for settings in ({"n_clusters": 0}, {"diversity": "noise"}, {"n_base": 0}, {"base": "kmeans"}, {"consensus": 3}):
        with pytest.raises(ParameterError):
            fw.ClusterEnsemble(**settings).fit(x)
    with pytest.raises(ParameterError, match="checkpoint"):
        fw.ClusterEnsemble(3, base=fw.KMeans(), checkpoint=tmp_path / "c").fit(x)
    with pytest.raises(DataError, match="n_clusters=9"):
        fw.ClusterEnsemble(9).fit(x[:4])
    with pytest.raises(ParameterError, match="takes no weights"):
        fw.ClusterEnsemble(3, base=AgglomerativeClustering()).fit(x, sample_weight=np.ones(len(x)))
    with pytest.raises(ParameterError, match="no predict"):
        fw.ClusterEnsemble(3, base=AgglomerativeClustering(), diversity="subsample").fit(x)


def test_what_it_is_fitted_to(shared_data: Path):
    found = fw.ClusterEnsemble(3, scale=True, prepare="auto", missing="model").fit(shared_data / "tables" / "wine.csv")
    assert "alcohol" in found.feature_names_in_
    assert found.manifest_.rows == 178
