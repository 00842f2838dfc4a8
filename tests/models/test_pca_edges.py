"""Numbers at the edges: large offsets, float32, dependent columns, weights that are shares, rows of unknown number."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import foldwise as fw
from foldwise.errors import DataError
from foldwise.models.pca.choose import cheapest, decisive_rows

SOLVERS = ("auto", "covariance_eigh", "krylov", "full", "power")


def variances(x: np.ndarray) -> np.ndarray:
    """Of rows from which the first was subtracted, which is exact where all have one exponent."""
    away = x.astype(np.float64) - x[0].astype(np.float64)
    return np.linalg.eigvalsh(np.cov(away, rowvar=False))[::-1]


@pytest.mark.parametrize("shape", [(300, 50), (40, 60)], ids=["tall", "wide"])
@pytest.mark.parametrize("solver", SOLVERS)
def test_a_large_offset_costs_nothing(solver: str, shape: tuple[int, int]) -> None:
    x = np.random.default_rng(0).normal(size=shape) * [8.0, 4.0, *[1.0] * (shape[1] - 2)] + 1e15
    pca = fw.PCA(2, svd_solver=solver).fit(x)
    np.testing.assert_allclose(pca.explained_variance_, variances(x)[:2], rtol=1e-10)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_true_variances_lie_within_the_residuals(solver: str, dtype: type) -> None:
    rng = np.random.default_rng(1)
    for x in (rng.normal(size=(500, 8)), np.sort(rng.lognormal(0, 2, (700, 6)), axis=0), rng.normal(size=(30, 40))):
        x = x.astype(dtype)
        pca = fw.PCA(4, svd_solver=solver).fit(x)
        exact = np.linalg.eigvalsh(np.cov(x.astype(np.longdouble).astype(np.float64), rowvar=False))[::-1][:4]
        assert (np.abs(pca.explained_variance_ - exact) <= pca.residuals_).all()
        assert (pca.residuals_ <= (1e-6 if dtype == np.float32 else 1e-9) * 2 * pca.column_variances_.sum()).all()


def test_rules_find_the_rank_in_float32_and_with_every_solver() -> None:
    rng = np.random.default_rng(0)
    noisy = rng.normal(size=(2000, 3)) @ rng.normal(size=(3, 50)) + 1e-3 * rng.normal(size=(2000, 50))
    exact = rng.normal(size=(500, 4)) @ rng.normal(size=(4, 30))
    for dtype in (np.float32, np.float64):
        for rule in ("mle", "gavish-donoho", "parallel"):
            assert fw.PCA(rule).fit(noisy.astype(dtype)).n_components_ == 3
        batches = fw.PCA("mle")
        for batch in np.array_split(noisy.astype(dtype), 3):
            batches.partial_fit(batch)
        assert batches.n_components_ == 3
        for solver in ("auto", "covariance_eigh", "full", "power"):
            for rule in ("mle", "gavish-donoho", "parallel"):
                assert fw.PCA(rule, svd_solver=solver).fit(exact.astype(dtype)).n_components_ == 4


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_dependent_column_is_neither_blown_up_nor_a_density(solver: str, dtype: type) -> None:
    rng = np.random.default_rng(0)
    x = rng.integers(-50, 50, size=(400, 4)).astype(dtype)
    x = np.column_stack([x, x[:, 0] + x[:, 1]])  # exactly, also in float32
    pca = fw.PCA(5, whiten=True, svd_solver=solver).fit(x)
    assert pca.transform(x).std(axis=0).max() < 1.01
    with pytest.raises(DataError, match="no density"):
        pca.score(x)
    assert np.isfinite(fw.PCA(2, svd_solver=solver).fit(x).score(x))


def test_weights_that_are_shares_are_refused() -> None:
    x = np.random.default_rng(0).normal(size=(500, 3))
    with pytest.raises(DataError, match="add up to the number of rows"):
        fw.PCA().fit(x, sample_weight=np.full(500, 1 / 500))


@pytest.mark.parametrize(("n", "d", "k"), [(30, 50, None), (30, 50, 3), (200, 90, 2), (90, 90, None), (2000, 300, 4)])
def test_the_choice_is_the_same_where_rows_are_yet_to_be_counted(tmp_path: Path, n: int, d: int, k: int | None) -> None:
    x = np.random.default_rng(0).normal(size=(n, d))
    path = tmp_path / "rows.csv"
    header = ",".join(f"x{j}" for j in range(d))
    np.savetxt(path, x, delimiter=",", fmt="%.17g", header=header, comments="")
    for solver in ("auto", "covariance_eigh"):
        memory, file = (fw.PCA(k, svd_solver=solver).fit(source) for source in (x, path))
        assert memory.manifest_.algorithm == file.manifest_.algorithm
        np.testing.assert_array_equal(memory.components_, file.components_)


def test_more_rows_than_are_asked_for_make_no_difference() -> None:
    for d in (1, 2, 10, 50, 300, 1000, 1999, 5000, 40_000):
        for k in (None, 1, 3, 10, 50, 400):
            rows = decisive_rows(d, k)
            if rows is not None and (k is None or k < d):
                chosen = {cheapest(int(rows * times), d, k, sparse=False) for times in (1, 1.01, 1.5, 2, 5, 100, 1e4)}
                assert len(chosen) == 1, (d, k)


def test_sparse_rows_fewer_than_columns_take_one_step() -> None:
    import scipy.sparse as sp

    rng = np.random.default_rng(0)
    x = sp.random(120, 3000, density=0.02, random_state=0, format="csr")
    w = rng.integers(0, 3, 120).astype(np.float64)
    for options in ({}, {"scale": True}):
        for weights in (None, w):
            found = fw.PCA(5, svd_solver="krylov", **options).fit(x, sample_weight=weights)
            dense = fw.PCA(5, svd_solver="full", **options).fit(x.toarray(), sample_weight=weights)
            np.testing.assert_allclose(found.explained_variance_, dense.explained_variance_, rtol=1e-10)
            np.testing.assert_allclose(found.components_, dense.components_, atol=1e-6)
            assert found.n_iter_ <= 3
    whole = fw.PCA(20, svd_solver="krylov").fit(x[:20])  # one of these has no variance
    assert whole.explained_variance_[19] <= whole.variance_floor_


def test_small_variances_of_float32_rows_are_whitened_and_have_a_density() -> None:
    """Far above rounding, though 1e-5 of the largest."""
    rng = np.random.default_rng(0)
    x = (rng.normal(size=(3000, 100)) * np.geomspace(1, 3e-3, 100)).astype(np.float32)
    pca = fw.PCA(whiten=True).fit(x)
    np.testing.assert_allclose(pca.transform(x).var(axis=0, ddof=1), 1.0, atol=0.02)
    assert np.isfinite(pca.score(x))
