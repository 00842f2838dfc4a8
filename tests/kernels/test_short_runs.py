"""Runs of many steps in memory, against NumPy and scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import softmax
from scipy.stats import multivariate_normal
from sklearn.cluster import KMeans
from sklearn.mixture import GaussianMixture

from foldwise.kernels.short_runs import COLLAPSED, SETTLED, em_run, kmeans_labels, label_moments

SCATTER = {"full": "full", "tied": "tied", "diag": "diag", "spherical": "diag"}


def start(kind: str, d: int = 3, k: int = 3) -> tuple[np.ndarray, tuple[np.ndarray, np.ndarray, np.ndarray]]:
    rng = np.random.default_rng(0)
    x = rng.standard_normal((300, d)) + 2 * rng.integers(0, 3, 300)[:, None]
    x -= x.mean(axis=0)
    one = np.eye(d)
    covariances = {"full": np.stack([one] * k), "tied": one, "diag": np.ones((k, d)), "spherical": np.ones(k)}[kind]
    return x, (np.full(k, 1 / k), x[:k].copy(), covariances)


@pytest.mark.parametrize("kind", SCATTER)
def test_two_steps_are_scikit_learns(kind: str) -> None:
    """A jump comes after the second step at the earliest."""
    x, model = start(kind)
    _, after, done, _ = em_run(kind, SCATTER[kind], x, None, np.zeros(3), model, steps=2, tol=0, least=0, limit=1)
    precisions = np.linalg.inv(model[2]) if kind in ("full", "tied") else 1 / model[2]
    options = {"weights_init": model[0], "means_init": model[1], "precisions_init": precisions}
    theirs = GaussianMixture(3, covariance_type=kind, reg_covar=0, tol=0, max_iter=2, **options)
    with pytest.warns(UserWarning, match="did not converge"):
        theirs.fit(x)
    assert done == 2
    for ours, expected in zip(after, (theirs.weights_, theirs.means_, theirs.covariances_), strict=True):
        np.testing.assert_allclose(ours, expected, atol=1e-10)


@pytest.mark.parametrize("kind", SCATTER)
@pytest.mark.parametrize("weighted", [False, True])
def test_bounds_rise_and_end_in_a_fixed_point(kind: str, weighted: bool) -> None:
    x, model = start(kind)
    weights = np.random.default_rng(1).integers(1, 4, len(x)).astype(float) if weighted else None
    options = {"tol": 1e-12, "least": 0, "limit": 1}
    bounds = []
    for steps in (1, 2, 3, 5, 8, 20, 60):
        bound, *_ = em_run(kind, SCATTER[kind], x, weights, np.full(3, 1e-9), model, steps=steps, **options)
        bounds.append(bound)
    assert (np.diff(bounds) >= -1e-12).all()
    _, end, _, status = em_run(kind, SCATTER[kind], x, weights, np.full(3, 1e-9), model, steps=5000, **options)
    _, again, _, _ = em_run(kind, SCATTER[kind], x, weights, np.full(3, 1e-9), end, steps=1, **options)
    assert status == SETTLED
    np.testing.assert_allclose(again[1], end[1], atol=1e-3)
    if weights is not None:
        repeated = np.repeat(x, weights.astype(int), axis=0)
        bound, *_ = em_run(kind, SCATTER[kind], repeated, None, np.full(3, 1e-9), model, steps=8, **options)
        assert bound == pytest.approx(bounds[4], abs=1e-9)


@pytest.mark.parametrize("kind", SCATTER)
def test_a_step_with_a_power_shares_rows_by_that_power(kind: str) -> None:
    x, model = start(kind)
    matrices = {"full": model[2], "tied": [np.eye(3)] * 3, "diag": [np.eye(3)] * 3, "spherical": [np.eye(3)] * 3}[kind]
    logs = [multivariate_normal(mean, matrix).logpdf(x) for mean, matrix in zip(model[1], matrices, strict=True)]
    shares = softmax(0.2 * (np.log(1 / 3) + np.transpose(logs)), axis=1)
    _, after, done, _ = em_run(
        kind, SCATTER[kind], x, None, np.zeros(3), model, steps=1, tol=1e9, least=0, limit=1, power=0.2
    )
    assert done == 1
    np.testing.assert_allclose(after[0], shares.mean(axis=0), atol=1e-12)
    np.testing.assert_allclose(after[1], shares.T @ x / shares.sum(axis=0)[:, None], atol=1e-12)
    _, _, done, _ = em_run(
        kind, SCATTER[kind], x, None, np.zeros(3), model, steps=7, tol=1e9, least=0, limit=1, power=0.2
    )
    assert done == 7  # neither settled nor with jumps


def test_a_component_without_rows_has_collapsed() -> None:
    x, (weights, means, covariances) = start("full")
    means[0] = 1e3
    *_, status = em_run(
        "full", "full", x, None, np.zeros(3), (weights, means, covariances), steps=9, tol=0, least=4, limit=1
    )
    assert status == COLLAPSED


def test_a_flat_component_has_collapsed_unless_it_has_many_rows() -> None:
    x, model = start("full")
    x = x.copy()
    x[:, 1] = 2.0 * x[:, 0]
    total = float(len(x)) / len(model[0])  # even shares
    found = []
    for many in (np.inf, 0.01 * total):
        *_, status = em_run(
            "full", "full", x, None, np.full(3, 1e-9), model, steps=9, tol=0, least=0, limit=0.5, many=many
        )
        found.append(status)
    assert found[0] == COLLAPSED
    assert found[1] != COLLAPSED


def test_kmeans_with_swaps_is_as_good_as_ten_starts() -> None:
    rng = np.random.default_rng(0)
    x = rng.uniform(0, 20, (25, 2))[rng.integers(25, size=1000)] + rng.normal(0, 0.3, (1000, 2))
    labels = kmeans_labels(np.ascontiguousarray(x.T), None, 25, np.random.default_rng(0), trials=5, steps=10, swaps=3)
    counts, means, scatter = label_moments(x, None, labels, 25)
    inertia = float(np.trace(scatter, axis1=1, axis2=2).sum())
    assert inertia <= KMeans(25, n_init=10, random_state=0).fit(x).inertia_ * (1 + 1e-6)
    for j in (0, 24):
        mine = x[labels == j]
        assert counts[j] == len(mine)
        np.testing.assert_allclose(means[j], mine.mean(axis=0))
        np.testing.assert_allclose(scatter[j] / counts[j], np.cov(mine.T, bias=True), atol=1e-12)
