"""Rows of weight 0 do not matter: never a centre at the start, never a row for an empty cluster, never a reason to split."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import foldwise as fw
from foldwise.errors import DataError

MODELS = pytest.mark.parametrize("kind", [fw.KMeans, fw.MiniBatchKMeans, fw.BisectingKMeans])
STARTS = pytest.mark.parametrize("init", ["k-means++", "k-means||", "random"])


@MODELS
@STARTS
@pytest.mark.parametrize("n", [40, 3_000])
def test_no_centre_sits_on_a_row_of_weight_zero(kind: Any, init: str, n: int) -> None:
    """With fewer distinct rows than clusters, copies were drawn from all rows."""
    rng = np.random.default_rng(0)
    x = np.vstack([np.repeat(rng.normal(size=(3, 2)), n // 4, axis=0), rng.normal(size=(n // 4, 2)) + 100])
    weights = np.append(np.ones(3 * (n // 4)), np.zeros(n // 4))
    for seed in range(4):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = kind(5, init=init, random_state=seed).fit(x, sample_weight=weights)
        assert model.cluster_centers_.max() < 50
        assert model.inertia_ < 1e-20


@MODELS
def test_no_fewer_rows_with_weight_than_clusters(kind: Any) -> None:
    x = np.arange(20.0).reshape(10, 2)
    with pytest.raises(DataError, match="3 rows whose weight is not 0"):
        kind(4).fit(x, sample_weight=np.arange(10) < 3)


def test_a_tree_does_not_split_rows_of_weight_zero() -> None:
    """One heavy row among many of weight 0 was the largest cluster, and was split into itself and nothing."""
    x = np.array([[0.0], [0.1], [0.2], [0.3], [10.0], [11.0], [20.0]])
    weights = np.array([50.0, 0, 0, 0, 1, 1, 1])
    model = fw.BisectingKMeans(4, bisecting_strategy="largest_cluster").fit(x, sample_weight=weights)
    assert sorted(model.cluster_centers_.ravel()) == [0.0, 10.0, 11.0, 20.0]


@pytest.mark.parametrize("kind", [fw.KMeans, fw.BisectingKMeans])
@pytest.mark.parametrize("magnitude", [1e200, 4e307])
def test_values_at_the_end_of_the_range(kind: Any, magnitude: float) -> None:
    """Sums overflowed: centres and inertia were NaN, and all rows in one cluster."""
    rng = np.random.default_rng(0)
    x = rng.random((60, 2)) * 0.1 + np.repeat([[1.0], [0.5], [0.0]], 20, axis=0)
    with pytest.warns(UserWarning, match="leaves the range of float64"):
        model = kind(3).fit(x * magnitude)
    assert model.inertia_ == np.inf
    plain = kind(3).fit(x)
    assert np.array_equal(model.labels_, plain.labels_)
    np.testing.assert_allclose(model.cluster_centers_ / magnitude, plain.cluster_centers_, rtol=1e-12)


@MODELS
def test_values_that_are_too_far_apart(kind: Any) -> None:
    x = np.random.default_rng(0).random((5_000, 3))
    x[4_321, 1], x[7, 1] = 1.7e308, -1e308
    with pytest.raises(DataError, match=r"row 4321 .*column 1: the value 1.7e\+308 is too far from the mean") as told:
        kind(3).fit(x)
    assert (told.value.row, told.value.column) == (4321, 1)
    assert "Divide" in str(told.value)


@pytest.mark.parametrize("kind", [fw.KMeans, fw.MiniBatchKMeans])
def test_a_changed_number_of_clusters_between_batches(kind: Any) -> None:
    """It was ignored."""
    x = np.random.default_rng(0).normal(size=(50, 2))
    model = kind(3).partial_fit(x)
    model.set_params(n_clusters=5)
    with pytest.raises(ValueError, match=r"n_clusters=5, but the earlier batches were put into 3 clusters.*clone"):
        model.partial_fit(x)
    assert len(model.set_params(n_clusters=3).partial_fit(x).cluster_centers_) == 3
    waiting = kind(30).partial_fit(x[:20])  # nothing is decided yet
    assert len(waiting.set_params(n_clusters=4).partial_fit(x[20:]).cluster_centers_) == 4
