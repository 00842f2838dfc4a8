"""The kernels for rows with missing cells against their NumPy form."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from foldwise.kernels import missing_cells, reference
from foldwise.kernels.missing_cells import Units


def setting(seed: int, n: int, d: int, dtype: Any = np.float64) -> tuple[Any, ...]:
    rng = np.random.default_rng(seed)
    x = (rng.standard_normal((n, d)) @ rng.standard_normal((d, d)) * 3 + 50).astype(dtype)
    x[rng.random(x.shape) < 0.3] = np.nan
    x[1] = np.nan
    half = rng.standard_normal((d, d + 3))
    covariance = half @ half.T / d
    units = Units(rng.standard_normal(d) + 50, rng.uniform(0.5, 2, d))
    return x, rng.integers(0, 4, n).astype(float), units, rng.standard_normal(d) * 0.1, covariance


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("d", [1, 2, 5, 9])
def test_completed_rows_are_those_of_the_reference(d: int, dtype: Any) -> None:
    x, weights, units, mean, covariance = setting(d, 40, d, dtype)
    if d > 1:
        units.inverse[-1] = 0.0  # a constant column
    precision = np.linalg.inv(covariance)
    rows, used, spread, total, logs = missing_cells.complete(x, weights, units, mean, precision)
    wanted, covariances, determinants = reference.complete_cells(x, *units, mean, precision)
    np.testing.assert_allclose(rows, wanted, rtol=1e-10, atol=1e-10)
    blank = np.isnan(x[:, units.inverse > 0]).all(axis=1)
    np.testing.assert_array_equal(used, np.where(blank, 0.0, weights))
    together = sum(w * c for w, c in zip(used, covariances, strict=True))
    np.testing.assert_allclose(spread, np.triu(together), rtol=1e-9, atol=1e-10)
    np.testing.assert_allclose([total, logs], [used.sum(), used @ determinants], rtol=1e-10)
    filled, deviations = missing_cells.fill(x, units, mean, precision)
    np.testing.assert_array_equal(filled, rows)
    wide = np.array([np.sqrt(np.diagonal(c)) for c in covariances]) / np.where(units.inverse > 0, units.inverse, 1.0)
    np.testing.assert_allclose(deviations, wide, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("removed", [0.0, 1.0, 2.0, 50.0])
@pytest.mark.parametrize("d", [2, 5, 9])
def test_errors_of_cells_left_out_are_those_of_regressions(d: int, removed: float) -> None:
    x, weights, units, mean, covariance = setting(d, 30, d)
    matrices = [covariance * 60, covariance * 60 + np.eye(d) * 9]
    inverses = np.stack([np.linalg.inv(one) for one in matrices])
    found = missing_cells.left_out(x, weights, units, mean, inverses, removed)
    wanted = [reference.left_out_cells(x, weights, *units, mean, one, removed) for one in matrices]
    np.testing.assert_allclose(found, [wanted[0][0], wanted[1][0], wanted[0][1]], rtol=1e-8)


def brute_force(
    x: np.ndarray, weights: np.ndarray, prior: np.ndarray, strength: float, steps: int
) -> tuple[np.ndarray, np.ndarray, list[float]]:
    """Plain EM, with the log-likelihood of the observed cells, and of the prior, before each step."""
    d = x.shape[1]
    mean, covariance, trace = np.zeros(d), np.diag(prior), []
    for _ in range(steps):
        rows, spread, value = np.zeros_like(x), np.zeros((d, d)), 0.0
        for i, row in enumerate(x):
            o, m = np.flatnonzero(~np.isnan(row)), np.flatnonzero(np.isnan(row))
            own = covariance[np.ix_(o, o)]
            away = np.linalg.solve(own, row[o] - mean[o])
            rows[i, o], rows[i, m] = row[o], mean[m] + covariance[np.ix_(m, o)] @ away
            rest = covariance[np.ix_(m, m)] - covariance[np.ix_(m, o)] @ np.linalg.solve(own, covariance[np.ix_(o, m)])
            spread[np.ix_(m, m)] += weights[i] * rest
            value -= weights[i] * (np.linalg.slogdet(own)[1] + (row[o] - mean[o]) @ away) / 2
        trace.append(
            value
            - strength * (np.linalg.slogdet(covariance)[1] + np.trace(np.linalg.solve(covariance, np.diag(prior)))) / 2
        )
        mean = np.average(rows, axis=0, weights=weights)
        scatter = (weights[:, None] * (rows - mean)).T @ (rows - mean) + spread
        covariance = (scatter + strength * np.diag(prior)) / (weights.sum() + strength)
    return mean, covariance, trace


@pytest.mark.parametrize("strength", [0.5, 8.0])
def test_em_ends_where_plain_em_ends(strength: float) -> None:
    rng = np.random.default_rng(3)
    x = rng.standard_normal((60, 5)) @ rng.standard_normal((5, 5))
    x[rng.random(x.shape) < 0.25] = np.nan
    x[5] = [1.0, np.nan, np.nan, np.nan, np.nan]
    weights, prior = rng.integers(1, 4, 60).astype(float), rng.uniform(0.5, 2, 5)
    mean, covariance, trace = brute_force(x, weights, prior, strength, 400)
    units = Units(np.zeros(5), np.ones(5))
    found = missing_cells.em_normal(
        x, weights, units, prior, strength, np.zeros(5), np.diag(prior), steps=2000, tol=1e-13
    )
    np.testing.assert_allclose(found[0], mean, rtol=1e-8, atol=1e-9)
    np.testing.assert_allclose(found[1], covariance, rtol=1e-8, atol=1e-9)
    assert found[4]
    assert found[3] < 1000  # the extrapolation helps
    np.testing.assert_allclose(found[5], trace[-1], rtol=1e-12)
    one = missing_cells.em_normal(x, weights, units, prior, strength, np.zeros(5), np.diag(prior), steps=1, tol=0.0)
    np.testing.assert_allclose(one[5], trace[0], rtol=1e-12)


def test_arrays_that_do_not_fit_are_refused() -> None:
    x, weights, units, mean, covariance = setting(0, 10, 4)
    with pytest.raises(ValueError, match="as wide as x"):
        missing_cells.complete(x, weights, units, mean, covariance[:3, :3].copy())
    with pytest.raises(ValueError, match="one entry per row"):
        missing_cells.complete(x, weights[:3], units, mean, covariance)
    with pytest.raises(TypeError):
        missing_cells.complete(np.asfortranarray(x), weights, units, mean, covariance)
