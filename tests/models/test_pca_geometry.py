"""What directions are for: projection, reconstruction, whitening, decorrelation (SPEC A5, A6, A10 to A12)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import foldwise as fw

TABLES = ["iris", "wine", "fgl_glass", "usarrests"]


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("ddof", [0, 1])
@pytest.mark.parametrize("scale", [False, True])
def test_a5_kept_variance_and_reconstruction_error_add_up(table: Any, name: str, ddof: int, scale: bool) -> None:
    x = table(name)
    whole = fw.PCA(ddof=ddof, scale=scale).fit(x)
    for k in range(1, x.shape[1]):
        pca = fw.PCA(k, ddof=ddof, scale=scale).fit(x)
        lost = pca.reconstruction_error(x).sum() / (len(x) - ddof)
        total = whole.explained_variance_.sum()
        assert lost == pytest.approx(whole.explained_variance_[k:].sum(), rel=1e-9, abs=1e-13 * total)
        kept = pca.scores(x).var(axis=0, ddof=ddof).sum()
        assert kept + lost == pytest.approx(total, rel=1e-12)


@pytest.mark.parametrize("name", TABLES)
def test_a5_reconstruction_error_is_the_distance_to_the_reconstruction(table: Any, name: str) -> None:
    x = table(name)
    pca = fw.PCA(2).fit(x)
    back = pca.inverse_transform(pca.transform(x))
    distances = ((x - back) ** 2).sum(axis=1)
    np.testing.assert_allclose(pca.reconstruction_error(x), distances, rtol=1e-9, atol=1e-12 * distances.max())


def test_a5_no_turned_plane_keeps_more_variance(table: Any) -> None:
    x = table("wine")
    pca, rng = fw.PCA(2).fit(x), np.random.default_rng(0)
    best = pca.explained_variance_.sum()
    for size in (1e-4, 1e-2, 1.0):
        for _ in range(20):
            plane, _ = np.linalg.qr(pca.components_.T + size * rng.standard_normal((x.shape[1], 2)))
            assert ((x - x.mean(axis=0)) @ plane).var(axis=0, ddof=1).sum() <= best * (1 + 1e-12)


@given(seed=st.integers(0, 10_000), n=st.integers(3, 30), d=st.integers(2, 8), k=st.integers(1, 7))
def test_a6_no_matrix_of_that_rank_is_nearer(seed: int, n: int, d: int, k: int) -> None:
    """Eckart and Young: of all matrices of rank k, the reconstruction is the nearest to the centred rows."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((n, d)) @ rng.standard_normal((d, d))
    k = min(k, n, d)
    pca = fw.PCA(k).fit(x)
    centred = x - x.mean(axis=0)
    best = ((pca.inverse_transform(pca.transform(x)) - x) ** 2).sum()
    for size in (1e-3, 0.1, 10.0):
        basis = pca.components_ + size * rng.standard_normal((k, d))
        codes = np.linalg.lstsq(basis.T, centred.T, rcond=None)[0].T  # the best codes for these directions
        rival = codes @ basis
        assert np.linalg.matrix_rank(rival) <= k
        assert ((rival - centred) ** 2).sum() >= best * (1 - 1e-9) - 1e-18 * (centred**2).sum()


def test_a6_scores_are_the_centred_rows_times_the_directions(table: Any) -> None:
    x = table("wine")
    pca = fw.PCA(4).fit(x)
    np.testing.assert_allclose(pca.transform(x), (x - x.mean(axis=0)) @ pca.components_.T, rtol=1e-9, atol=1e-10)
    np.testing.assert_array_equal(pca.transform(x), pca.scores(x))
    np.testing.assert_array_equal(fw.PCA(4).fit_transform(x), pca.transform(x))


def test_a6_all_components_give_the_rows_back(table: Any) -> None:
    for name in TABLES:
        x = table(name)
        pca = fw.PCA().fit(x)
        np.testing.assert_allclose(pca.inverse_transform(pca.transform(x)), x, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("solver", ["covariance_eigh", "full", "krylov", "power"])
def test_a10_scaling_equals_standardising_by_hand(table: Any, solver: str) -> None:
    x = table("wine")
    train, test = x[::2], x[1::2]
    mean, deviation = train.mean(axis=0), train.std(axis=0, ddof=1)
    scaled = fw.PCA(3, scale=True, svd_solver=solver).fit(train)
    by_hand = fw.PCA(3, svd_solver=solver).fit((train - mean) / deviation)
    np.testing.assert_allclose(scaled.scale_, deviation, rtol=1e-12)
    np.testing.assert_allclose(scaled.components_, by_hand.components_, atol=1e-8)
    np.testing.assert_allclose(scaled.transform(test), by_hand.transform((test - mean) / deviation), atol=1e-8)
    assert scaled.explained_variance_ratio_.sum() < 1
    np.testing.assert_allclose(
        scaled.explained_variance_.sum(), scaled.explained_variance_ratio_.sum() * 14, rtol=1e-12
    )


def test_a10_reconstruction_undoes_the_scaling(table: Any) -> None:
    x = table("usarrests")
    for whiten in (False, True):
        pca = fw.PCA(scale=True, whiten=whiten).fit(x)
        np.testing.assert_allclose(pca.inverse_transform(pca.transform(x)), x, rtol=1e-12)
    rank_one = fw.PCA(1, scale=True).fit(x)
    z = (x - x.mean(axis=0)) / x.std(axis=0, ddof=1)
    v = rank_one.components_[0]
    expected = np.outer(z @ v, v) * x.std(axis=0, ddof=1) + x.mean(axis=0)
    np.testing.assert_allclose(rank_one.inverse_transform(rank_one.transform(x)), expected, rtol=1e-12)


@pytest.mark.parametrize("solver", ["covariance_eigh", "full", "krylov", "power"])
@pytest.mark.parametrize("ddof", [0, 1])
@pytest.mark.parametrize("name", ["faithful", "iris", "fgl_glass"])
def test_a11_whitened_rows_have_the_identity_for_covariance(table: Any, name: str, solver: str, ddof: int) -> None:
    x = table(name)
    k = min(x.shape[1], 3)
    pca = fw.PCA(k, whiten=True, svd_solver=solver, ddof=ddof).fit(x)
    codes = pca.transform(x)
    np.testing.assert_allclose(codes.mean(axis=0), 0, atol=1e-10)
    np.testing.assert_allclose(np.cov(codes.T, ddof=ddof), np.eye(k), atol=1e-8)


def test_a11_whitening_of_new_rows_and_back(planted: Any) -> None:
    x = planted([30, 3, 0.3, 0.03], 40_000, offset=100)
    pca = fw.PCA(whiten=True).fit(x[:20_000])
    codes = pca.transform(x[20_000:])
    np.testing.assert_allclose(np.cov(codes.T), np.eye(4), atol=0.05)
    np.testing.assert_allclose(codes.mean(axis=0), 0, atol=0.05)
    np.testing.assert_allclose(pca.inverse_transform(codes), x[20_000:], rtol=1e-10)
    np.testing.assert_allclose(pca.scores(x[:50]), fw.PCA().fit(x[:20_000]).transform(x[:50]), rtol=1e-12)


@pytest.mark.parametrize("size", [1e-25, 1e-12, 1e12, 1e20])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a11_whitening_does_not_depend_on_units(planted: Any, dtype: type, size: float) -> None:
    x = (planted([3, 2, 1], 300) * size).astype(dtype)
    codes = fw.PCA(whiten=True).fit_transform(x)
    np.testing.assert_allclose(np.cov(codes.T), np.eye(3), atol=1e-4)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a12_codes_are_not_correlated(table: Any, dtype: type) -> None:
    for name in TABLES:
        x = table(name).astype(dtype)
        pca = fw.PCA().fit(x)
        covariance = np.cov(pca.transform(x).astype(np.float64).T)
        off = covariance - np.diag(covariance.diagonal())
        assert np.abs(off).max() < {np.float32: 1e-5, np.float64: 1e-12}[dtype] * covariance[0, 0]
        np.testing.assert_allclose(
            covariance.diagonal(), pca.explained_variance_, rtol=1e-4, atol=1e-6 * covariance[0, 0]
        )


def test_loadings_are_correlations_when_scaled(table: Any) -> None:
    x = table("usarrests")
    pca = fw.PCA(scale=True).fit(x)
    both = np.corrcoef(np.column_stack([x, pca.transform(x)]).T)[:4, 4:]
    np.testing.assert_allclose(np.asarray(pca.loadings_), both, atol=1e-12)
    np.testing.assert_allclose(np.asarray(pca.cos2()), both**2, atol=1e-12)
    np.testing.assert_allclose(np.asarray(pca.cos2()).sum(axis=1), 1, rtol=1e-12)


def test_contributions_and_cos2_of_rows(table: Any) -> None:
    x = table("iris")
    pca = fw.PCA(2).fit(x)
    np.testing.assert_allclose(np.asarray(pca.contributions()).sum(axis=0), 1, rtol=1e-12)
    np.testing.assert_allclose(pca.contributions(x).sum(axis=0), 1, rtol=1e-12)
    z = x - x.mean(axis=0)
    np.testing.assert_allclose(pca.cos2(x), pca.transform(x) ** 2 / (z**2).sum(axis=1)[:, None], rtol=1e-9, atol=1e-15)
    every = fw.PCA().fit(x)
    np.testing.assert_allclose(every.cos2(x).sum(axis=1), 1, rtol=1e-9)
    named = pca.loadings_
    assert (named.rows, named.columns) == (("x0", "x1", "x2", "x3"), ("pca0", "pca1"))
    assert named["x2", "pca0"] == pytest.approx(0.85667 * 2.05627, abs=1e-4)


def test_probability_model(table: Any) -> None:
    from scipy.stats import multivariate_normal

    x = table("iris")
    for scale in (False, True):
        pca = fw.PCA(2, scale=scale).fit(x)
        covariance = pca.get_covariance()
        np.testing.assert_allclose(covariance @ pca.get_precision(), np.eye(4), atol=1e-9)
        expected = multivariate_normal(x.mean(axis=0), covariance).logpdf(x)
        np.testing.assert_allclose(pca.score_samples(x), expected, rtol=1e-9)
    np.testing.assert_allclose(fw.PCA().fit(x).get_covariance(), np.cov(x.T), rtol=1e-12, atol=1e-14)
