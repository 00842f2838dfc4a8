"""Results are values: they can be saved, loaded, pickled and copied, and their types are public."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

import foldwise as fw
from foldwise.errors import ParameterError

RNG = np.random.default_rng(0)
X = np.concatenate([RNG.standard_normal((40, 3)), RNG.standard_normal((40, 3)) + 5])
Y = np.repeat([0, 1], 40)
VALUES = RNG.gamma(2.0, 3.0, 80)

RESULTS: dict[str, Callable[[], Any]] = {
    "InertiaCurve": lambda: fw.inertia_curve(X, [1, 2, 3], scale=True),
    "Silhouette": lambda: fw.silhouette(X, Y, values=True),
    "ComponentChoice": lambda: fw.choose_components(X, Y, estimator=LogisticRegression()),
    "TaskScores": lambda: fw.choose_components(X, Y, rules=[], estimator=LogisticRegression()).task,
    "Vote": lambda: fw.choose_components(X, rules="held-out").votes[0],
    "RankChoice": lambda: fw.PCA("parallel").fit(X).rank_,
    "LabelledMatrix": lambda: fw.PCA(2).fit(X).loadings_,
    "FittedDistribution": lambda: fw.fit_distribution(VALUES, "weibull"),
    "Comparison": lambda: fw.fit_distribution(VALUES, ["gamma", "laplace", "poisson"]),
    "Goodness": lambda: fw.fit_distribution(VALUES, "gamma").goodness_of_fit(resamples=9),
    "MixtureChoice": lambda: fw.choose_mixture(X, [1, 2], ("diag",)),
}


def same(one: Any, other: Any) -> bool:
    """Whether two values are alike, all the way down."""
    assert type(one) is type(other)
    if dataclasses.is_dataclass(one):
        return all(same(getattr(one, f.name), getattr(other, f.name)) for f in dataclasses.fields(one))
    if isinstance(one, (list, tuple)):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, dict):
        return list(one) == list(other) and all(same(one[key], other[key]) for key in one)
    if isinstance(one, np.ndarray):
        return one.dtype == other.dtype and np.array_equal(one, other, equal_nan=one.dtype.kind == "f")
    if hasattr(one, "get_params"):
        fitted = [name for name in vars(one) if name.endswith("_")]
        return bool(one.get_params() == other.get_params()) and all(same(vars(one)[n], vars(other)[n]) for n in fitted)
    return bool(one == other) or (one != one and other != other)


@pytest.mark.parametrize("kind", RESULTS)
def test_round_trips(kind: str, tmp_path: Path) -> None:
    result = RESULTS[kind]()
    assert type(result) is getattr(fw, kind)
    assert getattr(fw, kind).__doc__
    fw.save(result, tmp_path / "r.fw")
    assert same(fw.load(tmp_path / "r.fw"), result)
    assert same(pickle.loads(pickle.dumps(result)), result)
    assert same(copy.deepcopy(result), result)
    assert repr(fw.load(tmp_path / "r.fw")) == repr(result)


def test_a_pickled_fit_has_no_data() -> None:
    fit = fw.fit_distribution(np.random.default_rng(1).gamma(2.0, 3.0, 100_000), "weibull")
    data = pickle.dumps(fit)
    assert len(data) < 20_000
    again = pickle.loads(data)
    assert fit.source is not None
    assert again.source is None
    assert again.quantile(0.5) == fit.quantile(0.5)
    with pytest.raises(ParameterError, match="needs the data"):
        again.log_likelihood(shape=2.0)
    with pytest.raises(ParameterError, match="needs the data"):
        again.goodness_of_fit()


def test_records_of_fits_are_public() -> None:
    pca = fw.PCA(1).fit(X)
    assert isinstance(pca.outcome_, fw.Outcome)
    assert isinstance(pca.manifest_, fw.Manifest)


def test_a_partial_fit_goes_on_after_pickling() -> None:
    first = pickle.loads(pickle.dumps(fw.PCA(1).partial_fit(X[:20])))
    assert same(first.partial_fit(X[20:]).components_, fw.PCA(1).fit(X).components_)
