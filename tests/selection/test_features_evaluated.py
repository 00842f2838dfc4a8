"""FeatureSelector with criteria that fit a model to each subset: clusters, a final task, a function; stopping and resuming."""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from sklearn.cluster import AgglomerativeClustering
from sklearn.cluster import KMeans as SklearnKMeans
from sklearn.datasets import load_wine
from sklearn.ensemble import RandomForestClassifier
from sklearn.feature_selection import SequentialFeatureSelector
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.metrics import silhouette_score
from sklearn.model_selection import KFold, cross_val_score
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.tree import DecisionTreeRegressor

import foldwise as fw
from foldwise.errors import DataError, FoldwiseWarning, NotFinishedWarning, ParameterError, StoreError
from foldwise.fold import events
from foldwise.fold.outcome import Reason


@pytest.fixture(scope="module")
def wine() -> tuple[np.ndarray, np.ndarray]:
    X, y = load_wine(return_X_y=True)
    return (X - X.mean(axis=0)) / X.std(axis=0), y


def spread(rows: np.ndarray) -> float:
    """A criterion that is not monotone: the mean absolute correlation is to be low."""
    if rows.shape[1] < 2:
        return 0.0
    matrix = np.abs(np.corrcoef(rows.T))
    return float(rows.shape[1] - matrix.sum())


# ---------------------------------------------------------------- a final task


@pytest.mark.parametrize("direction", ["forward", "backward"])
def test_scikit_learn_chooses_the_same(direction, wine):
    X, y = wine[0][:, :7], wine[1]
    estimator = GaussianNB()
    ours = fw.FeatureSelector(3, search=direction, criterion="wrapper", estimator=estimator, cv=3).fit(X, y)
    theirs = SequentialFeatureSelector(estimator, n_features_to_select=3, direction=direction, cv=3).fit(X, y)
    np.testing.assert_array_equal(ours.support_, theirs.get_support())
    assert ours.score_ == pytest.approx(cross_val_score(estimator, X[:, ours.support_], y, cv=3).mean(), rel=1e-12)


def test_regression_coincides_with_variance_explained():
    """Predicting all columns from the chosen ones, with all rows for training and test, is the closed form."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((80, 3)) @ rng.standard_normal((3, 6)) + 0.5 * rng.standard_normal((80, 6))
    X -= X.mean(axis=0)
    everything = [(np.arange(80), np.arange(80))]

    def explained(model, rows, target):
        return 1 - ((target - model.predict(rows)) ** 2).sum() / (target**2).sum()

    wrapper = fw.FeatureSelector(
        3, criterion="wrapper", estimator=LinearRegression(), cv=everything, scoring=explained
    ).fit(X, X)
    direct = fw.FeatureSelector(3).fit(X)
    assert [step.added for step in wrapper.path_.steps] == [step.added for step in direct.path_.steps]
    np.testing.assert_allclose(wrapper.path_.scores, direct.path_.scores, rtol=1e-9)


def test_scores_errors_and_auto(wine):
    X, y = wine
    cv = KFold(5, shuffle=True, random_state=0)
    found = fw.FeatureSelector(criterion="wrapper", estimator=KNeighborsClassifier(), cv=cv).fit(X[:, :6], y)
    assert len(found.path_.steps) == 6
    folds = cross_val_score(KNeighborsClassifier(), X[:, :6], y, cv=cv)
    last = found.path_.steps[-1]
    assert last.score == pytest.approx(folds.mean())
    assert last.error == pytest.approx(folds.std(ddof=1) / np.sqrt(5))
    best = max(found.path_.steps, key=lambda step: step.score)
    near = [step.size for step in found.path_.steps if step.score >= best.score - best.error]
    assert (found.n_features_, found.choice_.low, found.choice_.high) == (min(near), min(near), max(near))


def test_a_task_without_a_target(wine):
    X = wine[0][:, :5]
    found = fw.FeatureSelector(2, criterion="wrapper", estimator=fw.PCA(1), cv=3).fit(X)  # PCA.score: log-likelihood
    pairs = {two: cross_val_score(fw.PCA(1), X[:, two], cv=3).mean() for two in itertools.combinations(range(5), 2)}
    first = max(range(5), key=lambda j: cross_val_score(fw.PCA(1), X[:, [j]], cv=3).mean())
    assert found.score_ == pytest.approx(max(score for two, score in pairs.items() if first in two))


def test_weights_of_a_task():
    rng = np.random.default_rng(1)
    X = rng.standard_normal((40, 4))
    y = X[:, 1] + 0.1 * rng.standard_normal(40)
    y[20:] = X[20:, 2]
    weights = np.repeat([1.0, 0.0], 20)
    split = [(np.arange(20), np.arange(20))]  # of the rows that count
    found = fw.FeatureSelector(1, criterion="wrapper", estimator=Ridge(), cv=split).fit(X, y, sample_weight=weights)
    np.testing.assert_array_equal(found.selected_, [1])
    with pytest.raises(ParameterError, match="KNeighborsClassifier takes no weights"):
        fw.FeatureSelector(1, criterion="wrapper", estimator=KNeighborsClassifier()).fit(
            X, y > 0, sample_weight=weights + 1
        )


def test_scaling_happens_before_the_task(wine):
    X, y = load_wine(return_X_y=True)
    raw = fw.FeatureSelector(2, criterion="wrapper", estimator=KNeighborsClassifier(), cv=3, scale=True).fit(X, y)
    scaled = fw.FeatureSelector(2, criterion="wrapper", estimator=KNeighborsClassifier(), cv=3).fit(wine[0], y)
    assert raw.score_ == pytest.approx(scaled.score_)
    np.testing.assert_array_equal(raw.transform(X), X[:, raw.support_])  # as they are


def test_cells_that_the_estimator_takes_care_of(wine):
    X, y = wine[0][:, :4].copy(), wine[1]
    X[np.random.default_rng(0).random(X.shape) < 0.1] = np.nan
    tree = DecisionTreeRegressor(max_depth=3, random_state=0)
    found = fw.FeatureSelector(2, criterion="wrapper", estimator=tree, cv=3, missing="model").fit(X, y)
    assert found.score_ == pytest.approx(cross_val_score(tree, X[:, found.support_], y, cv=3).mean())
    dropped = fw.FeatureSelector(2, criterion="wrapper", estimator=tree, cv=3, missing="drop").fit(X, y)
    whole = ~np.isnan(X).any(axis=1)
    chosen = dropped.support_
    assert dropped.score_ == pytest.approx(cross_val_score(tree, X[whole][:, chosen], y[whole], cv=3).mean())


# ---------------------------------------------------------------- clusters


def test_clusters_by_the_variance_between_them(wine):
    X = wine[0]
    found = fw.FeatureSelector(2, criterion="cluster", n_clusters=3).fit(X)
    labels = fw.KMeans(3).fit(X[:, np.sort(found.selected_)]).labels_
    within = sum(((X[labels == c] - X[labels == c].mean(axis=0)) ** 2).sum() for c in range(3))
    assert found.score_ == pytest.approx(1 - within / ((X - X.mean(axis=0)) ** 2).sum(), rel=1e-9)


def test_clusters_by_their_silhouette(wine):
    X = wine[0][:, :5]
    found = fw.FeatureSelector(2, criterion="cluster", scoring="silhouette", n_clusters=3).fit(X)
    chosen = X[:, np.sort(found.selected_)]
    assert found.score_ == pytest.approx(silhouette_score(chosen, fw.KMeans(3).fit_predict(chosen)), rel=1e-9)


def test_columns_that_carry_groups_are_found_among_noise():
    rng = np.random.default_rng(0)
    group = rng.integers(3, size=240)
    centres = np.array([[0, 0, 0], [6, 0, 6], [0, 6, 6]])
    X = np.concatenate([rng.standard_normal((240, 4)), centres[group] + rng.standard_normal((240, 3))], axis=1)
    for scoring in ("between-variance", "silhouette"):
        found = fw.FeatureSelector(2, criterion="cluster", n_clusters=3, scoring=scoring, search="swap").fit(X)
        assert set(found.selected_) < {4, 5, 6}


def test_another_clustering(wine):
    X = wine[0][:, :4]
    linkage = AgglomerativeClustering(3)
    found = fw.FeatureSelector(2, criterion="cluster", estimator=linkage, scoring="silhouette").fit(X)
    chosen = X[:, found.support_]
    assert found.score_ == pytest.approx(silhouette_score(chosen, linkage.fit_predict(chosen)), rel=1e-9)


def test_clusters_of_weighted_rows():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 4)) + np.repeat([[0], [4]], 30, axis=0) * [1, 0, 1, 0]
    weights = rng.integers(1, 4, 60)
    weighted = fw.FeatureSelector(2, criterion="cluster", n_clusters=2).fit(X, sample_weight=weights)
    repeated = fw.FeatureSelector(2, criterion="cluster", n_clusters=2).fit(np.repeat(X, weights, axis=0))
    np.testing.assert_array_equal(weighted.support_, repeated.support_)
    assert weighted.score_ == pytest.approx(repeated.score_, rel=1e-9)


def test_clusters_where_cells_are_missing(wine):
    X = wine[0][:, :5].copy()
    X[np.random.default_rng(0).random(X.shape) < 0.1] = np.nan
    found = fw.FeatureSelector(2, criterion="cluster", n_clusters=3, missing="model").fit(X)
    assert 0 < found.score_ < 1


def test_clusters_from_a_file(wine, tmp_path):
    np.save(tmp_path / "wine.npy", wine[0])
    memory = fw.FeatureSelector(2, criterion="cluster", n_clusters=3).fit(wine[0])
    file = fw.FeatureSelector(2, criterion="cluster", n_clusters=3).fit(tmp_path / "wine.npy")
    assert (memory.score_, memory.support_.tolist()) == (file.score_, file.support_.tolist())


# ---------------------------------------------------------------- a function


@pytest.mark.parametrize("search", ["forward", "backward", "floating", "swap", "exhaustive"])
def test_a_function(search, wine):
    X = wine[0][:, :6]
    found = fw.FeatureSelector(3, search=search, criterion=spread).fit(X)
    assert found.score_ == pytest.approx(spread(X[:, found.support_]))
    best = max(spread(X[:, list(three)]) for three in itertools.combinations(range(6), 3))
    assert found.score_ <= best + 1e-12
    if search == "exhaustive":
        assert found.score_ == pytest.approx(best)
        assert found.n_compared_ == 20
    assert found.manifest_.algorithm == f"{search} search, spread"


def test_a_function_must_give_a_number(wine):
    with pytest.raises(ParameterError, match="it must give one number"):
        fw.FeatureSelector(1, criterion=lambda rows: "good").fit(wine[0])
    with pytest.raises(DataError, match=r"the score of the columns \[0\].*is nan"):
        fw.FeatureSelector(1, criterion=lambda rows: float("nan"), n_threads=1).fit(wine[0])


def test_the_number_of_threads_does_not_matter(wine):
    found = [
        fw.FeatureSelector(3, criterion="cluster", n_clusters=3, search="floating", n_threads=threads).fit(wine[0])
        for threads in (1, 2, 5)
    ]
    assert len({str(one.path_) for one in found}) == 1
    assert len({one.score_ for one in found}) == 1


def test_too_many_fits_are_refused_with_the_time_they_would_take(wine):
    X = np.tile(wine[0], 3)
    with pytest.raises(ParameterError, match=r"348,330,136 subsets, each with a fit of its own: about .* hours"):
        fw.FeatureSelector(10, search="exhaustive", criterion=spread).fit(X[:, :37])


# ---------------------------------------------------------------- stopping and resuming


def test_ctrl_c_keeps_the_columns_so_far(wine):
    def stop(event: events.Event) -> None:
        if isinstance(event, events.StepDone) and event.figures.get("subsets", 0) > 30:
            raise KeyboardInterrupt

    selector = fw.FeatureSelector(6, criterion="cluster", n_clusters=3, n_threads=1)
    with events.listening(stop), pytest.warns(NotFinishedWarning, match="interrupted"):
        selector.fit(wine[0])
    whole = fw.FeatureSelector(6, criterion="cluster", n_clusters=3).fit(wine[0])
    assert 1 <= selector.n_features_ < 6
    assert selector.outcome_.reason is Reason.INTERRUPTED
    many = selector.n_features_
    assert [step.added for step in selector.path_.steps] == [step.added for step in whole.path_.steps[:many]]


def test_no_time_at_all_still_gives_a_model(wine):
    with pytest.warns(NotFinishedWarning, match="out of time"):
        found = fw.FeatureSelector(3, criterion=spread, time_budget=0).fit(wine[0])
    assert found.transform(wine[0]).shape[1] == found.n_features_


# Every step waits, so that the parent has time to kill in the middle of the search.
CHILD = """
import sys, time
import foldwise as fw
from foldwise.fold import events
from foldwise.selection.features import branch_and_bound, evaluated
branch_and_bound._NODES, evaluated._QUICK = 2, 0.0
path, checkpoint, options = sys.argv[1:]
with events.listening(lambda event: time.sleep(0.12) if isinstance(event, events.StepDone) else None):
    fw.FeatureSelector(checkpoint=checkpoint, n_threads=1, **eval(options)).fit(path)
print("finished")
"""


@pytest.mark.parametrize(
    "options",
    [
        {"n_features": 4, "criterion": "cluster", "n_clusters": 3, "search": "floating"},
        {"n_features": 6, "search": "exhaustive", "scale": True},
    ],
)
def test_killed_and_resumed(options, wine, tmp_path: Path, monkeypatch):
    path, checkpoint = tmp_path / "rows.npy", tmp_path / "fit.checkpoint"
    rng = np.random.default_rng(0)
    rows = wine[0] if "criterion" in options else rng.standard_normal((100, 14))
    np.save(path, rows)
    monkeypatch.setattr("foldwise.selection.features.evaluated._QUICK", 0.0)  # rounds stay small
    monkeypatch.setattr("foldwise.selection.features.branch_and_bound._NODES", 2)
    undisturbed = fw.FeatureSelector(n_threads=1, **options).fit(path)
    assert undisturbed.outcome_.steps > 12
    command = [sys.executable, "-c", CHILD, str(path), str(checkpoint), repr(options)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
        deadline = time.monotonic() + 60
        while not checkpoint.exists() and child.poll() is None and time.monotonic() < deadline:
            time.sleep(0.01)
        os.kill(child.pid, signal.SIGKILL)
        assert "finished" not in (child.communicate()[0] or "")
    assert checkpoint.exists()
    resumed = fw.FeatureSelector(checkpoint=checkpoint, n_threads=1, **options).fit(path)
    assert 0 < resumed.manifest_.resumed_at < undisturbed.outcome_.steps
    assert str(resumed.path_) == str(undisturbed.path_)
    assert (resumed.score_, resumed.n_compared_) == (undisturbed.score_, undisturbed.n_compared_)
    assert not checkpoint.exists()


def test_a_checkpoint_of_another_target_is_refused(wine, tmp_path):
    X, y = wine
    options = {"criterion": "wrapper", "estimator": GaussianNB(), "cv": 3, "checkpoint": tmp_path / "c"}
    with pytest.warns(NotFinishedWarning):
        fw.FeatureSelector(3, time_budget=0, **options).fit(X, y)
    with pytest.raises(StoreError, match="other data or other parameters"):
        fw.FeatureSelector(3, **options).fit(X, 1 - y)


def test_a_model_with_an_estimator_is_saved_without_it(wine, tmp_path):
    X, y = wine
    found = fw.FeatureSelector(2, criterion="wrapper", estimator=GaussianNB(), cv=KFold(3)).fit(X, y)
    with pytest.warns(FoldwiseWarning, match="estimator, cv of this FeatureSelector are objects and not saved"):
        fw.save(found, tmp_path / "s.fw")
    loaded = fw.load(tmp_path / "s.fw")
    np.testing.assert_array_equal(loaded.transform(X), found.transform(X))
    assert loaded.estimator is None
    with pytest.raises(ParameterError, match="give the estimator"):
        loaded.fit(X, y)


def test_a_checkpoint_of_other_folds_is_refused(wine, tmp_path):
    """Folds that are drawn anew would mix scores of two splits."""
    X, y = wine
    options = {"criterion": "wrapper", "estimator": GaussianNB(), "checkpoint": tmp_path / "c"}
    with pytest.warns(NotFinishedWarning):
        fw.FeatureSelector(3, time_budget=0, cv=KFold(3, shuffle=True, random_state=0), **options).fit(X, y)
    with pytest.raises(StoreError, match="other data or other parameters"):
        fw.FeatureSelector(3, cv=KFold(3, shuffle=True, random_state=1), **options).fit(X, y)


def test_estimators_without_a_seed_get_that_of_the_selector(wine):
    X, y = wine
    trees = RandomForestClassifier(5)
    one, other = (
        fw.FeatureSelector(2, criterion="wrapper", estimator=trees, cv=3, random_state=1, n_threads=n).fit(X[:, :5], y)
        for n in (1, 3)
    )
    assert str(one.path_) == str(other.path_)


@pytest.mark.parametrize("scoring", ["between-variance", "silhouette"])
def test_rows_without_weight_do_not_reach_another_clustering(scoring):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((90, 3)) + np.repeat([[0.0], [5.0], [0.0]], 30, axis=0) * [1, 0, 0]
    X[60:, 1] = 1e3 * rng.standard_normal(30)
    weights = np.repeat([1.0, 1.0, 0.0], 30)
    options = {"criterion": "cluster", "estimator": SklearnKMeans(2, n_init=2, random_state=0), "scoring": scoring}
    weighted = fw.FeatureSelector(1, **options).fit(X, sample_weight=weights)
    without = fw.FeatureSelector(1, **options).fit(X[:60])
    np.testing.assert_array_equal(weighted.selected_, without.selected_)
    assert weighted.score_ == pytest.approx(without.score_, rel=1e-9)
    with pytest.raises(ParameterError, match="AgglomerativeClustering takes no weights"):
        fw.FeatureSelector(1, criterion="cluster", estimator=AgglomerativeClustering(2)).fit(
            X, sample_weight=weights + 1
        )
    with pytest.raises(ParameterError, match="a function of rows sees no weights"):
        fw.FeatureSelector(1, criterion=spread).fit(X, sample_weight=weights + 1)


def test_a_task_that_cannot_be_is_told(wine):
    X, y = wine
    with pytest.raises(ParameterError, match="GaussianNB needs a target"):
        fw.FeatureSelector(1, criterion="wrapper", estimator=GaussianNB()).fit(X)
    with pytest.raises(ParameterError, match="cv=1000: "):
        fw.FeatureSelector(1, criterion="wrapper", estimator=GaussianNB(), cv=1000).fit(X, y)
