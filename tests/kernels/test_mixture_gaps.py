"""Rows with missing cells: densities, expected sums and completed rows are those of the twin, which inverts S_oo row by row."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import multivariate_normal

from foldwise.kernels import reference
from foldwise.kernels.mixture_gaps import gap_order
from foldwise.models.mixture.covariance import COVARIANCE_TYPES


def model(name: str, k: int, d: int, rng: np.random.Generator) -> tuple[Any, Any, Any, Any, Any]:
    """Weights, means, covariances of the type, as matrices, and the type."""
    kind = COVARIANCE_TYPES[name].of_columns(d, 1 if name == "ppca" else None)
    factor = rng.standard_normal((k, d, d))
    matrices = factor @ factor.transpose(0, 2, 1) / d + 0.1 * np.eye(d)
    weights = rng.dirichlet(np.full(k, 5.0))
    covariances = kind.of_matrices(matrices, weights)
    return weights, 2 * rng.standard_normal((k, d)), covariances, np.array(kind.matrices(covariances, k)), kind


def gappy(n: int, d: int, share: float, rng: np.random.Generator) -> np.ndarray:
    x = 2 * rng.standard_normal((n, d))
    x[rng.random(x.shape) < share] = np.nan
    return x


@pytest.mark.parametrize("name", COVARIANCE_TYPES)
@given(seed=st.integers(0, 1000), k=st.integers(1, 3), d=st.integers(2, 19), share=st.sampled_from([0.05, 0.4, 0.8]))
def test_sums_are_those_of_the_twin(name: str, seed: int, k: int, d: int, share: float) -> None:
    rng = np.random.default_rng(seed)
    weights, means, covariances, matrices, kind = model(name, k, d, rng)
    x, w = gappy(60, d, share, rng), rng.integers(0, 3, 60).astype(np.float64)
    packed = kind.components(
        weights, means, kind.whiten(covariances), means[0].copy(), x.dtype, scatter=kind.scatter, gaps=True
    )
    likelihood, counts, shift, scatter = reference.mixture_gaps_step(x, w, weights, means, matrices, kind.scatter)
    sums = np.zeros(k), np.zeros((k, d)), np.zeros(scatter.shape)
    assert packed.step(x, w, *sums) == pytest.approx(likelihood, rel=1e-11)
    for found, told in zip(sums, (counts, shift, scatter), strict=True):
        np.testing.assert_allclose(found, told, rtol=0, atol=1e-11 * (1 + np.abs(told).max()))


@pytest.mark.parametrize("name", COVARIANCE_TYPES)
@pytest.mark.parametrize("share", [0.1, 0.6])
def test_densities_and_completed_rows(name: str, share: float) -> None:
    """Densities are SciPy's of the marginal distributions; completed rows have the moments of the mixture."""
    rng = np.random.default_rng(5)
    weights, means, covariances, matrices, kind = model(name, 3, 5, rng)
    x = gappy(80, 5, share, rng)
    packed = kind.components(weights, means, kind.whiten(covariances), np.zeros(5), x.dtype, gaps=True)
    packed = pickle.loads(pickle.dumps(packed))
    total, each = np.empty(80), np.empty((80, 3))
    packed.logs(x, total, each)
    completed, deviations = packed.completed(x)
    for i, row in enumerate(x):
        o = np.flatnonzero(~np.isnan(row))
        logs = np.log(weights)
        if len(o):
            logs = logs + [
                multivariate_normal(m[o], s[np.ix_(o, o)]).logpdf(row[o]) for m, s in zip(means, matrices, strict=True)
            ]
        assert total[i] == pytest.approx(np.logaddexp.reduce(logs), rel=1e-11, abs=1e-12)
        share_of = np.exp(logs - np.logaddexp.reduce(logs))
        np.testing.assert_allclose(np.exp(each[i]), share_of, atol=1e-12)
        found = [reference.mixture_gaps(row, m, s) for m, s in zip(means, matrices, strict=True)]
        mean = sum(p * one[1] for p, one in zip(share_of, found, strict=True))
        variance = sum(p * (np.diag(one[2]) + (one[1] - mean) ** 2) for p, one in zip(share_of, found, strict=True))
        np.testing.assert_allclose(completed[i], np.where(np.isnan(row), mean, row), rtol=1e-10, atol=1e-10)
        np.testing.assert_allclose(deviations[i], np.where(np.isnan(row), np.sqrt(variance), 0.0), atol=1e-9)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_at_a_large_offset_sums_are_those_without_it(dtype: Any) -> None:
    rng = np.random.default_rng(2)
    weights, means, covariances, _, kind = model("full", 2, 6, rng)
    # Multiples of 1/8 near 2^17 are exact in both dtypes.
    x = np.round(8 * gappy(200, 6, 0.3, rng)) / 8
    offset = 2.0**17
    sums = []
    for shift in (0.0, offset):
        packed = kind.components(
            weights, np.round(8 * means) / 8 + shift, kind.whiten(covariances), np.full(6, shift), np.dtype(dtype),
            scatter="full", gaps=True,
        )  # fmt: skip
        found = np.zeros(2), np.zeros((2, 6)), np.zeros((2, 6, 6))
        likelihood = packed.step((x + shift).astype(dtype), None, *found)
        sums.append([np.array(likelihood), *found])
    for a, b in zip(*sums, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6 if dtype == np.float32 else 1e-12, atol=1e-6)


def test_drawn_cells_have_the_conditional_distribution() -> None:
    """20,000 draws for one row: the mean and the covariance of what is missing, for few missing cells and for many."""
    rng = np.random.default_rng(0)
    _, means, covariances, matrices, kind = model("full", 1, 5, rng)
    packed = kind.components(np.ones(1), means, kind.whiten(covariances), np.zeros(5), np.dtype(float), gaps=True)
    for missing in ([1, 3], [0, 1, 2, 4]):
        row = rng.standard_normal(5)
        row[missing] = np.nan
        drawn = packed.drawn(np.tile(row, (20_000, 1)), rng.random(20_000), rng.standard_normal((20_000, 5)))
        _, expected, left = reference.mixture_gaps(row, means[0], matrices[0])
        scale = np.sqrt(np.diag(left)).max()
        np.testing.assert_allclose(drawn.mean(axis=0), expected, atol=0.04 * scale)
        np.testing.assert_allclose(np.cov(drawn.T, ddof=0), left, atol=0.06 * scale**2)


def test_rows_are_sorted_by_their_gaps() -> None:
    nan = np.nan
    x = np.array([[1.0, nan], [1.0, 2.0], [nan, 2.0], [3.0, nan], [4.0, 5.0], [nan, nan]])
    complete, others = gap_order(x)
    assert complete.tolist() == [1, 4]
    assert others.tolist() == [2, 0, 3, 5]
    wide = np.ones((3, 130))
    wide[0, 129] = wide[2, 129] = nan
    assert [part.tolist() for part in gap_order(wide)] == [[1], [0, 2]]


def test_wrong_shapes_are_refused() -> None:
    _, means, covariances, _, kind = model("diag", 2, 3, np.random.default_rng(0))
    packed = kind.components(
        np.full(2, 0.5), means, kind.whiten(covariances), np.zeros(3), np.dtype(float), scatter="diag", gaps=True
    )
    x = np.full((4, 3), np.nan)
    with pytest.raises(ValueError, match="scatter"):
        packed.step(x, None, np.zeros(2), np.zeros((2, 3)), np.zeros((2, 2)))
    with pytest.raises(ValueError, match="columns"):
        packed.logs(np.full((4, 2), np.nan), np.empty(4))
