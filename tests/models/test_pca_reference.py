"""PCA against a hand computation, NumPy, scikit-learn and R (SPEC A1, A2, A3), in both float widths."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import foldwise as fw

SOLVERS = ["covariance_eigh", "full", "krylov", "power"]


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize(("ddof", "first", "second"), [(0, 9.0, 1.0), (1, 12.0, 4 / 3)])
def test_a1_hand_computation(solver: str, ddof: int, first: float, second: float) -> None:
    """Four points about (1, 2): +-3 root 2 along (1, 1) / root 2, and +-root 2 along (1, -1) / root 2.

    The sums of squares along the two are 36 and 4: divided by N = 4 it is 9 and 1, by N - 1 it is 12 and 4/3.
    """
    x = np.array([[3.0, 3.0], [-3.0, -3.0], [1.0, -1.0], [-1.0, 1.0]]) + np.array([1.0, 2.0])
    pca = fw.PCA(svd_solver=solver, ddof=ddof).fit(x)
    half = np.sqrt(0.5)
    np.testing.assert_allclose(pca.mean_, [1.0, 2.0], rtol=1e-15)
    np.testing.assert_allclose(pca.explained_variance_, [first, second], rtol=1e-12)
    np.testing.assert_allclose(pca.explained_variance_ratio_, [0.9, 0.1], rtol=1e-12)
    np.testing.assert_allclose(pca.singular_values_, [6.0, 2.0], rtol=1e-12)
    np.testing.assert_allclose(pca.components_, [[half, half], [half, -half]], rtol=1e-11)
    np.testing.assert_allclose(np.abs(pca.transform(x)[:2, 0]), [3 * np.sqrt(2)] * 2, rtol=1e-11)


@pytest.mark.parametrize("ddof", [0, 1])
def test_a1_covariance_of_two_by_two_numbers(ddof: int) -> None:
    """(1, 2) and (3, 6) have mean (2, 4) and scatter [[2, 4], [4, 8]], so 10 / (2 - ddof) along (1, 2)."""
    pca = fw.PCA(ddof=ddof).fit([[1.0, 2.0], [3.0, 6.0]])
    np.testing.assert_allclose(pca.explained_variance_, [10 / (2 - ddof), 0.0], atol=1e-14)
    np.testing.assert_allclose(pca.components_[0], np.array([1, 2]) / np.sqrt(5), rtol=1e-14)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", ["iris", "wine", "fgl_glass", "swiss"])
def test_a2_eigenvectors_of_the_covariance(table: Any, name: str, solver: str, dtype: type) -> None:
    x = table(name).astype(dtype)
    pca = fw.PCA(svd_solver=solver).fit(x)
    S = np.cov(x.astype(np.float64).T)
    left, right = S @ pca.components_.T, pca.components_.T * pca.explained_variance_
    np.testing.assert_allclose(left, right, atol={np.float32: 1e-5, np.float64: 1e-9}[dtype] * np.trace(S))
    assert pca.components_.dtype == dtype
    assert pca.transform(x).dtype == dtype


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("name", ["iris", "wine", "fgl_glass", "usarrests"])
def test_a3_variances_are_squared_singular_values(table: Any, name: str, solver: str) -> None:
    x = table(name)
    singular = np.linalg.svd(x - x.mean(axis=0), compute_uv=False)
    pca = fw.PCA(svd_solver=solver).fit(x)
    top = singular[0]
    np.testing.assert_allclose(pca.singular_values_**2, singular**2, rtol=1e-10, atol=1e-13 * top**2)
    np.testing.assert_allclose(pca.explained_variance_, singular**2 / (len(x) - 1), rtol=1e-10, atol=1e-13 * top**2)
    by_n = fw.PCA(svd_solver=solver, ddof=0).fit(x)
    np.testing.assert_allclose(by_n.explained_variance_, singular**2 / len(x), rtol=1e-10, atol=1e-13 * top**2)


def test_a3_full_keeps_the_digits_of_small_variances(planted: Any) -> None:
    x = planted([1.0, 1e-6, 1e-10], 300)
    singular = np.linalg.svd(x - x.mean(axis=0), compute_uv=False)
    full = fw.PCA(svd_solver="full").fit(x)
    np.testing.assert_allclose(full.singular_values_, singular, rtol=1e-5)


@pytest.mark.parametrize("whiten", [False, True])
@pytest.mark.parametrize("name", ["iris", "wine", "fgl_glass", "banknote"])
def test_scikit_learns_full_svd_says_the_same(table: Any, name: str, whiten: bool) -> None:
    from sklearn.decomposition import PCA

    x = table(name)
    theirs = PCA(3, svd_solver="full", whiten=whiten).fit(x)
    ours = fw.PCA(3, whiten=whiten).fit(x)
    for attribute in ("mean_", "explained_variance_", "explained_variance_ratio_", "singular_values_"):
        np.testing.assert_allclose(getattr(ours, attribute), getattr(theirs, attribute), rtol=1e-9)
    assert ours.noise_variance_ == pytest.approx(theirs.noise_variance_, rel=1e-9)
    signs = np.sign((ours.components_ * theirs.components_).sum(axis=1))  # theirs has its own convention
    np.testing.assert_allclose(ours.components_, signs[:, None] * theirs.components_, atol=1e-9)
    np.testing.assert_allclose(ours.transform(x), theirs.transform(x) * signs, atol=1e-7)
    if whiten:  # scikit-learn's probability model of a whitened PCA counts variances twice; ours is that of the data
        theirs, ours = PCA(3, svd_solver="full").fit(x), fw.PCA(3, whiten=True).fit(x)
    np.testing.assert_allclose(ours.get_covariance(), theirs.get_covariance(), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(ours.get_precision(), theirs.get_precision(), rtol=1e-7, atol=1e-7)
    np.testing.assert_allclose(ours.score_samples(x), theirs.score_samples(x), rtol=1e-8)
    assert ours.score(x) == pytest.approx(theirs.score(x), rel=1e-10)


@pytest.mark.parametrize("solver", SOLVERS)
def test_r_prcomp_of_usarrests(table: Any, solver: str) -> None:
    """prcomp(USArrests, scale. = TRUE), as printed by R."""
    pca = fw.PCA(scale=True, svd_solver=solver).fit(table("usarrests"))
    np.testing.assert_allclose(
        np.sqrt(pca.explained_variance_), [1.5748783, 0.9948694, 0.5971291, 0.4164494], atol=5e-7
    )
    np.testing.assert_allclose(np.abs(pca.components_[0]), [0.5358995, 0.5831836, 0.2781909, 0.5434321], atol=5e-7)
    np.testing.assert_allclose(pca.explained_variance_ratio_, [0.62006, 0.24744, 0.0891, 0.04336], atol=5e-5)
    np.testing.assert_allclose(pca.scale_, [4.355510, 83.337661, 14.474763, 9.366385], atol=5e-6)


@pytest.mark.parametrize("solver", SOLVERS)
def test_r_prcomp_of_iris(table: Any, solver: str) -> None:
    """prcomp(iris[1:4]), as printed by R."""
    pca = fw.PCA(svd_solver=solver).fit(table("iris"))
    np.testing.assert_allclose(
        np.sqrt(pca.explained_variance_), [2.0562689, 0.4926162, 0.2796596, 0.1543862], atol=5e-7
    )
    first = [0.36138659, -0.08452251, 0.85667061, 0.35828920]
    np.testing.assert_allclose(pca.components_[0], first, atol=5e-7)


def test_a8_glass_proportions(table: Any) -> None:
    """The glass data, scaled: proportions as R's prcomp(fgl[1:9], scale. = TRUE) has them."""
    x = table("fgl_glass")
    expected = np.linalg.eigvalsh(np.corrcoef(x.T))[::-1] / 9
    pca = fw.PCA(scale=True).fit(x)
    np.testing.assert_allclose(pca.explained_variance_ratio_, expected, rtol=1e-10)
    np.testing.assert_allclose(pca.explained_variance_ratio_[:4], [0.279, 0.228, 0.156, 0.129], atol=6e-4)
    assert np.cumsum(pca.explained_variance_ratio_)[4] > 0.89
    assert pca.explained_variance_ratio_.sum() == pytest.approx(1, rel=1e-12)


def test_a8_two_directions_explain_a_donut() -> None:
    """A ring of points in a tilted plane of three-dimensional space, thin in the third direction."""
    rng = np.random.default_rng(0)
    angle, radius = rng.uniform(0, 2 * np.pi, 2000), rng.normal(3, 0.3, 2000)
    flat = np.column_stack([radius * np.cos(angle), radius * np.sin(angle), rng.normal(0, 0.3, 2000)])
    turn, _ = np.linalg.qr(rng.standard_normal((3, 3)))
    pca = fw.PCA().fit(flat @ turn + 5)
    ratios = pca.explained_variance_ratio_
    assert ratios[:2].sum() > 0.97
    assert ratios[0] < 0.55  # and neither does so alone
    assert abs(pca.components_[2] @ turn[2]) > 0.99  # what is dropped is the thin direction
    assert fw.PCA(0.95).fit(flat @ turn).n_components_ == 2
