"""Components merged into clusters by entropy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

import foldwise as fw
from foldwise.errors import ParameterError


def entropy(shares: np.ndarray) -> float:
    return float(-(shares * np.log(np.where(shares > 0, shares, 1.0))).sum())


@pytest.fixture(scope="module")
def bent() -> tuple[np.ndarray, np.ndarray]:
    """A cross of two long Gaussians, and a ball far away: three components, two clusters."""
    rng = np.random.default_rng(0)
    cross = rng.standard_normal((400, 2)) * np.where(np.arange(400)[:, None] % 2 == 0, [4.0, 0.3], [0.3, 4.0])
    return np.concatenate([cross, rng.standard_normal((200, 2)) + 15]), np.repeat([0, 1], [400, 200])


@pytest.fixture(scope="module")
def model(bent: Any) -> Any:
    return fw.GaussianMixture(3, n_init=5, tol=1e-8, max_iter=1000).fit(bent[0])


def test_a_cross_is_one_cluster(bent: Any, model: Any) -> None:
    x, parts = bent
    assert adjusted_rand_score(parts, model.predict(x)) < 0.8
    merged = model.merge(x)
    assert merged.merging_.chosen == 2
    assert adjusted_rand_score(parts, merged.predict(x)) == 1.0
    assert list(np.bincount(merged.predict(x))) == [400, 200]


def test_entropies_by_hand(bent: Any, model: Any) -> None:
    """Every pair is tried at every level, here from the table of probabilities."""
    x, _ = bent
    way = model.merge(x, 1).merging_
    shares = model.predict_proba(x)
    groups: list[tuple[int, ...]] = [(i,) for i in range(3)]
    for place, number in enumerate(way.numbers):
        assert number == len(groups)
        now = np.column_stack([shares[:, list(g)].sum(axis=1) for g in groups])
        assert way.entropies[place] == pytest.approx(entropy(now), rel=1e-9, abs=1e-9)
        if number == 1:
            break
        left = {}
        for i in range(number):
            for j in range(i + 1, number):
                both = np.column_stack([now[:, [i, j]].sum(axis=1), np.delete(now, [i, j], axis=1)])
                left[i, j] = entropy(both)
        i, j = min(left, key=left.__getitem__)
        assert way.pairs[place] == (groups[i], groups[j])
        both = tuple(sorted(groups[i] + groups[j]))
        groups = sorted([*(g for n, g in enumerate(groups) if n not in (i, j)), both])
    assert way.entropies == tuple(sorted(way.entropies, reverse=True))
    assert way.table["1", "entropy"] == way.entropies[-1]


def test_the_copy_speaks_of_clusters_and_the_model_is_left_alone(bent: Any, model: Any) -> None:
    x, _ = bent
    before = model.predict(x)
    merged = model.merge(x, 2)
    assert not hasattr(model, "clusters_")
    np.testing.assert_array_equal(model.predict(x), before)
    shares = merged.predict_proba(x)
    assert shares.shape == (600, 2)
    np.testing.assert_allclose(shares.sum(axis=1), 1.0, rtol=1e-12)
    np.testing.assert_array_equal(merged.score_samples(x), model.score_samples(x))
    assert merged.bic(x) == model.bic(x)
    assert merged.icl(x) < model.icl(x)
    again = merged.merge(x, 3)  # from the components, not from the clusters
    np.testing.assert_array_equal(again.clusters_, [0, 1, 2])
    merged.fit(x)
    assert not hasattr(merged, "clusters_")


def test_weights_are_repetition(bent: Any, model: Any) -> None:
    x, _ = bent
    w = np.random.default_rng(0).integers(0, 3, len(x)).astype(float)
    one, two = model.merge(x, sample_weight=w).merging_, model.merge(np.repeat(x, w.astype(int), axis=0)).merging_
    assert one.pairs == two.pairs
    np.testing.assert_allclose(one.entropies, two.entropies, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(one.merged_weight, two.merged_weight, rtol=1e-12)


def test_old_faithful_has_two_clusters(table: Callable[[str], np.ndarray]) -> None:
    """BIC wants three Gaussians (as mclust's does); two of them are one cluster, of 175 rows (mclust's 40 and 135)."""
    x = table("faithful")
    merged = fw.GaussianMixture(3, covariance_type="tied", tol=1e-9, max_iter=2000).fit(x).merge(x)
    assert merged.merging_.chosen == 2
    assert list(np.bincount(merged.predict(x))) == [175, 97]


def test_clear_components_stay(table: Callable[[str], np.ndarray]) -> None:
    rng = np.random.default_rng(0)
    x = np.concatenate([rng.standard_normal((50, 2)) + 30 * i for i in range(4)])
    way = fw.GaussianMixture(4).fit(x).merge(x).merging_
    assert way.chosen == 4
    assert way.rule == "hardly a row is in doubt"


def test_refusals(bent: Any, model: Any) -> None:
    with pytest.raises(ParameterError, match="can be merged into 1 to 3 clusters"):
        model.merge(bent[0], 4)
