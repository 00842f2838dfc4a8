"""Krylov where the data have fewer directions than are asked for, or hide one from a sample."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import sparse

import foldwise as fw


@pytest.mark.parametrize("solver", ["krylov", "arpack", "randomized"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("k", [3, 12, 19])
def test_a_rank_below_k(solver: str, dtype: Any, k: int) -> None:
    x = np.outer(np.arange(40.0), np.ones(20)).astype(dtype)
    found = fw.PCA(k, svd_solver=solver).fit(x)
    variance = np.var(x.astype(float), axis=0, ddof=1).sum()
    np.testing.assert_allclose(found.explained_variance_[0], variance, rtol=1e-6)
    np.testing.assert_allclose(found.explained_variance_[1:], 0.0, atol=1e-6 * variance)
    components = found.components_.astype(float)
    np.testing.assert_allclose(components @ components.T, np.eye(k), atol=1e-5)


def test_a_rank_far_below_k_by_auto() -> None:
    x = np.zeros((20_000, 700), np.float32)
    x[:, :3] = np.random.default_rng(0).integers(0, 5, (20_000, 3))
    found = fw.PCA(40).fit(x)
    expected = np.linalg.eigvalsh(np.cov(x[:, :3].T.astype(float)))[::-1]
    np.testing.assert_allclose(found.explained_variance_[:3], expected, rtol=1e-5)
    np.testing.assert_allclose(found.explained_variance_[3:], 0.0, atol=1e-5)


def test_kinds_of_rows_that_alternate() -> None:
    """Every eighth row, as a sample with a fixed step takes them, would show one kind only."""
    rng = np.random.default_rng(0)
    n, d = 32_768, 640
    x = rng.standard_normal((n, d)).astype(np.float32)
    hidden = rng.standard_normal(d)
    hidden /= np.linalg.norm(hidden)
    odd = np.arange(n) % 8 == 3
    x[odd] += (3.0 * rng.standard_normal((odd.sum(), 1)) * hidden).astype(np.float32)
    found = fw.PCA(5, svd_solver="auto").fit(x)
    centred = x - x.mean(axis=0, dtype=np.float64)
    expected = np.linalg.eigvalsh(centred.T @ centred / (n - 1))[::-1][:5]
    np.testing.assert_allclose(found.explained_variance_, expected, rtol=1e-5)


def test_sparse_rows_without_any_value() -> None:
    pca = fw.PCA(3).fit(sparse.csr_array((400, 5000)))
    assert not pca.explained_variance_.any()


def test_few_sparse_rows_of_many_columns_need_no_square_matrix() -> None:
    x = sparse.random_array((12, 5000), density=0.01, random_state=0, format="csr")
    pca = fw.PCA(11).fit(x)
    assert pca.manifest_.algorithm == "krylov"
    values = np.linalg.svd(x.toarray() - x.toarray().mean(axis=0), compute_uv=False)[:11] ** 2 / 11
    np.testing.assert_allclose(pca.explained_variance_, values, rtol=1e-6)
