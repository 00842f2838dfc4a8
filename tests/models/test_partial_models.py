"""Models in the middle of a stream of batches: pickles, copies, names of columns, and `hasattr` at any time."""

from __future__ import annotations

import copy
import pickle
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

import foldwise as fw
from foldwise.errors import DataError

RNG = np.random.default_rng(0)
BATCHES = [RNG.normal(size=(n, 5)) * [1, 2, 3, 4, 5] for n in (40, 1, 700, 3, 260)]
STREAMS: dict[str, Callable[[], Any]] = {
    "PCA": lambda: fw.PCA(2),
    "PCA, scaled": lambda: fw.PCA(2, scale=True),
    "KMeans": lambda: fw.KMeans(3, random_state=0),
    "KMeans that waits": lambda: fw.KMeans(100, random_state=0),
    "MiniBatchKMeans": lambda: fw.MiniBatchKMeans(3, random_state=0),
}
streams = pytest.mark.parametrize("make", STREAMS.values(), ids=STREAMS.keys())
FIGURES = ("components_", "explained_variance_", "cluster_centers_", "cluster_weights_", "inertia_", "n_samples_seen_")


def bits(model: Any) -> dict[str, bytes]:
    return {name: np.asarray(getattr(model, name)).tobytes() for name in FIGURES if hasattr(model, name)}


def fed(model: Any, batches: list[Any]) -> Any:
    for batch in batches:
        model.partial_fit(batch)
    return model


@streams
def test_a_pickle_in_the_middle_goes_on(make: Callable[[], Any]) -> None:
    whole, stored = fed(make(), BATCHES), make()
    for batch in BATCHES:
        stored = pickle.loads(pickle.dumps(stored.partial_fit(batch)))
    assert bits(stored) == bits(whole) != {}


@streams
@pytest.mark.parametrize("way", [copy.copy, copy.deepcopy])
def test_a_copy_is_independent(make: Callable[[], Any], way: Callable[[Any], Any]) -> None:
    whole = bits(fed(make(), BATCHES))
    for goes_on, stays in ((0, 1), (1, 0)):
        model = fed(make(), BATCHES[:2])
        pair = model, way(model)
        fed(pair[goes_on], BATCHES[2:])
        assert bits(pair[goes_on]) == whole
        assert bits(fed(pair[stays], BATCHES[2:])) == whole


@streams
def test_a_batch_without_names_keeps_the_names(make: Callable[[], Any]) -> None:
    names = list("abcde")
    model = make().partial_fit(pd.DataFrame(BATCHES[0], columns=names))
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        model.partial_fit(BATCHES[2])
    assert list(model.feature_names_in_) == names
    with pytest.raises(DataError, match="feature names should match"):
        model.partial_fit(pd.DataFrame(BATCHES[2], columns=list("abcdf")))


@streams
def test_a_batch_with_names_after_one_without(make: Callable[[], Any]) -> None:
    model = make().partial_fit(BATCHES[0])
    with pytest.warns(UserWarning, match="X has feature names, but"):
        model.partial_fit(pd.DataFrame(BATCHES[2], columns=list("abcde")))
    assert not hasattr(model, "feature_names_in_")


def test_a_first_batch_that_fails_leaves_nothing() -> None:
    model = fw.PCA(2)
    with pytest.raises(DataError):
        model.partial_fit(pd.DataFrame({"a": [1.0, np.nan], "b": [1.0, 2.0]}))
    assert not hasattr(model, "feature_names_in_")


def test_too_few_rows_say_so() -> None:
    model = fw.PCA(2).partial_fit(BATCHES[1])
    assert not hasattr(model, "components_")
    assert not hasattr(model, "loadings_")
    for name in ("components_", "loadings_"):
        with pytest.raises(DataError, match="a minimum of 2"):
            getattr(model, name)
    with pytest.raises(DataError, match="a minimum of 2"):
        model.transform(BATCHES[0])
    assert model.partial_fit(BATCHES[0]).loadings_.values.shape == (5, 2)


def things() -> list[Any]:
    """Estimators, unfitted, fitted and in the middle of a stream, and results."""
    rows = BATCHES[2][:80]
    made: list[Any] = []
    for kind in (
        fw.PCA,
        fw.KMeans,
        fw.MiniBatchKMeans,
        fw.BisectingKMeans,
        fw.KernelKMeans,
        fw.GaussianMixture,
        fw.SoftKMeans,
    ):
        made += [kind(2), kind(2).fit(rows)]
        if hasattr(kind, "partial_fit"):
            made += [fed(kind(2), [rows[:1]]), fed(kind(2), [rows])]
    made += [fed(fw.PCA(9), [rows[:4]]), fed(fw.PCA("mle"), [rows[:2]]), fw.PCA("mle").fit(rows).rank_]
    made += [made[1].manifest_, made[1].outcome_, made[1].loadings_]
    compared = fw.fit_distribution(np.abs(rows[:, 0]))
    made += [compared, compared.best, pickle.loads(pickle.dumps(compared.best))]
    made += [fw.inertia_curve(rows, range(1, 4)), fw.silhouette(rows, made[5].fit(rows).labels_)]
    return [*made, fw.choose_mixture(rows[:, :2], range(1, 3)), fw.scan(rows)]


def test_hasattr_never_raises() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made = things()
        names = {name for one in made for name in dir(one)} | {
            "labels_",
            "feature_names_in_",
            "no_such_name",
            "__len__",
        }
        for one in made:
            for name in names:
                assert hasattr(one, name) in (True, False)
