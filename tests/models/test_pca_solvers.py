"""All solvers give the same answer, signs included (SPEC A4, A7): dense, sparse, weighted, wide rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

import foldwise as fw
from foldwise.errors import ParameterError

SOLVERS = ["covariance_eigh", "full", "krylov", "power"]
ATTRIBUTES = ("mean_", "components_", "explained_variance_", "explained_variance_ratio_", "singular_values_")


def assert_alike(a: fw.PCA, b: fw.PCA, rtol: float = 1e-8) -> None:
    assert a.n_components_ == b.n_components_
    for name in ATTRIBUTES:
        first, second = getattr(a, name), getattr(b, name)
        np.testing.assert_allclose(first, second, rtol=rtol, atol=rtol * np.abs(second).max(initial=0), err_msg=name)
    assert a.noise_variance_ == pytest.approx(b.noise_variance_, rel=rtol * 100, abs=rtol)


@pytest.mark.parametrize("solver", SOLVERS[1:])
@pytest.mark.parametrize("scale", [False, True])
@pytest.mark.parametrize(("dtype", "rtol"), [(np.float32, 1e-5), (np.float64, 1e-8)])
@pytest.mark.parametrize("name", ["iris", "wine", "usarrests", "decathlon"])
def test_a7_solvers_agree_without_sign_fixing(
    table: Any, name: str, solver: str, scale: bool, dtype: type, rtol: float
) -> None:
    x = table(name).astype(dtype)
    make = {"n_components": 3, "scale": scale}
    assert_alike(fw.PCA(**make, svd_solver=solver).fit(x), fw.PCA(**make, svd_solver="covariance_eigh").fit(x), rtol)


@given(seed=st.integers(0, 10_000), n=st.integers(8, 60), d=st.integers(2, 7), k=st.integers(1, 7))
def test_a7_solvers_agree_on_random_data(seed: int, n: int, d: int, k: int) -> None:
    rng = np.random.default_rng(seed)
    turn, _ = np.linalg.qr(rng.standard_normal((d, d)))
    # Exact spreads, clearly apart, so that directions are well determined and the power method is quick.
    codes, _ = np.linalg.qr(rng.standard_normal((n, d + 1)) - 0)
    codes = codes[:, :d] - codes[:, :d].mean(axis=0)
    x = codes * 2.0 ** -np.arange(d) @ turn + rng.standard_normal(d)
    k = min(k, d)
    want = fw.PCA(k, svd_solver="covariance_eigh").fit(x)
    gaps = np.diff(-np.linalg.eigvalsh(np.cov(x.T))[::-1]) / want.explained_variance_[0]
    if gaps.size and gaps.min() < 1e-4:
        return  # directions that hardly differ in variance are not determined
    for solver in ("full", "krylov"):
        assert_alike(fw.PCA(k, svd_solver=solver).fit(x), want, 1e-7)


@pytest.mark.parametrize("solver", SOLVERS)
def test_a7_largest_loading_is_positive(table: Any, solver: str) -> None:
    components = fw.PCA(svd_solver=solver).fit(table("wine")).components_
    assert (components[np.arange(len(components)), np.abs(components).argmax(axis=1)] > 0).all()


@pytest.mark.parametrize("solver", SOLVERS)
def test_a7_a_tie_between_loadings_goes_to_the_first(solver: str) -> None:
    pca = fw.PCA(svd_solver=solver).fit([[1.0, -1.0], [-1.0, 1.0], [0.1, 0.1], [-0.1, -0.1]])
    np.testing.assert_allclose(pca.components_, np.array([[1, -1], [1, 1]]) * np.sqrt(0.5), rtol=1e-10)


def test_a4_power_error_shrinks_by_the_ratio_of_variances(planted: Any) -> None:
    x = planted([3.0, 2.4, 1.0, 0.5], 2000)
    pca = fw.PCA(1, svd_solver="power").fit(x)
    values = np.linalg.eigvalsh(np.cov(x.T))[::-1]
    changes = np.array([figures["change"] for figures in pca.trace_])
    rates = changes[11:30] / changes[10:29]
    np.testing.assert_allclose(rates, values[1] / values[0], rtol=0.01)
    variances = np.array([figures["variance"] for figures in pca.trace_])
    errors = values[0] - variances[5:15]  # the error of a variance is squared, and so is its rate
    np.testing.assert_allclose(errors[1:] / errors[:-1], (values[1] / values[0]) ** 2, rtol=0.05)


def test_a4_power_deflates_for_one_component_after_the_other(table: Any) -> None:
    x = table("wine")
    pca = fw.PCA(5, svd_solver="power").fit(x)
    np.testing.assert_allclose(pca.explained_variance_, np.linalg.eigvalsh(np.cov(x.T))[::-1][:5], rtol=1e-9)
    np.testing.assert_allclose(pca.components_ @ pca.components_.T, np.eye(5), atol=1e-11)
    order = [figures["component"] for figures in pca.trace_]
    assert order == sorted(order)
    assert set(order) == {0.0, 1.0, 2.0, 3.0, 4.0}
    assert pca.outcome_.converged


@pytest.mark.parametrize("solver", ["covariance_eigh", "krylov", "power"])
@pytest.mark.parametrize("scale", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_sparse_equals_dense(solver: str, scale: bool, weighted: bool) -> None:
    rng = np.random.default_rng(2)
    x = rng.standard_normal((200, 12)) * np.linspace(4, 1, 12) * (rng.random((200, 12)) < 0.3)
    x[:, 3] += 1000  # a column without zeros may stand far from zero
    w = rng.integers(0, 4, 200).astype(float) if weighted else None
    make = {"n_components": 3, "svd_solver": solver, "scale": scale}
    dense = fw.PCA(**make).fit(x, sample_weight=w)
    for kind in (sp.csr_array, sp.csc_matrix, sp.coo_array):
        sparse = fw.PCA(**make).fit(kind(x), sample_weight=w)
        assert_alike(sparse, dense, 1e-7)
        np.testing.assert_allclose(sparse.transform(kind(x)), dense.transform(x), atol=1e-7)
        np.testing.assert_allclose(
            sparse.reconstruction_error(kind(x)), dense.reconstruction_error(x), rtol=1e-6, atol=1e-6
        )
        np.testing.assert_allclose(sparse.cos2(kind(x)), dense.cos2(x), atol=1e-7)


def test_sparse_is_not_made_dense_in_silence() -> None:
    with pytest.raises(ParameterError, match="would make sparse data dense"):
        fw.PCA(svd_solver="full").fit(sp.csr_array(np.eye(4)))


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("scale", [False, True])
@pytest.mark.parametrize("ddof", [0, 1])
def test_weights_are_repetition(table: Any, solver: str, scale: bool, ddof: int) -> None:
    x = table("usarrests")
    w = np.random.default_rng(0).integers(0, 4, len(x))
    make = {"n_components": 2, "svd_solver": solver, "scale": scale, "ddof": ddof}
    weighted = fw.PCA(**make).fit(x, sample_weight=w)
    repeated = fw.PCA(**make).fit(np.repeat(x, w, axis=0))
    assert_alike(weighted, repeated)
    np.testing.assert_allclose(weighted.get_covariance(), repeated.get_covariance(), rtol=1e-8)


@pytest.mark.parametrize("rule", [0.8, "mle", "parallel", "gavish-donoho"])
def test_weights_are_repetition_for_rules(planted: Any, rule: Any) -> None:
    x = planted([2.0, 1.5, *[1.0] * 10], 40, seed=3)
    w = np.full(40, 50)
    weighted, repeated = fw.PCA(rule).fit(x, sample_weight=w), fw.PCA(rule).fit(np.repeat(x, w, axis=0))
    assert weighted.n_components_ == repeated.n_components_
    assert (weighted.rank_.low, weighted.rank_.high) == (repeated.rank_.low, repeated.rank_.high)


@pytest.mark.parametrize("solver", ["covariance_eigh", "full", "krylov", "power"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("scale", [False, True])
def test_wide_data(solver: str, weighted: bool, scale: bool) -> None:
    rng = np.random.default_rng(1)
    x = rng.standard_normal((12, 3)) * [9, 5, 3] @ rng.standard_normal((3, 150)) + rng.standard_normal((12, 150)) + 7
    w = rng.integers(1, 4, 12).astype(float) if weighted else np.ones(12)
    total, mean = w.sum(), w @ x / w.sum()
    z = (x - mean) * np.sqrt(w)[:, None]
    if scale:
        z = z / np.sqrt((z**2).sum(axis=0) / (total - 1))
    _, singular, vt = np.linalg.svd(z, full_matrices=False)
    pca = fw.PCA(3, svd_solver=solver, scale=scale).fit(x, sample_weight=w if weighted else None)
    np.testing.assert_allclose(pca.explained_variance_, singular[:3] ** 2 / (total - 1), rtol=1e-9)
    np.testing.assert_allclose(np.abs((pca.components_ * vt[:3]).sum(axis=1)), 1, rtol=1e-9)
    assert pca.manifest_.algorithm == ("gram" if solver == "covariance_eigh" else solver)
    assert_alike(pca, fw.PCA(3, scale=scale, svd_solver="full").fit(x, sample_weight=w if weighted else None), 1e-7)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("asked", [None, 8])
def test_weights_of_wide_data_are_repetition(solver: str, asked: int | None) -> None:
    """Five rows that stand for eleven have eleven components, as those would: seven without variance."""
    x, w = np.random.default_rng(2).standard_normal((5, 30)), np.array([1, 3, 2, 1, 4])
    weighted = fw.PCA(asked, svd_solver=solver).fit(x, sample_weight=w)
    repeated = fw.PCA(asked, svd_solver=solver).fit(np.repeat(x, w, axis=0))
    assert weighted.n_components_ == repeated.n_components_ == (asked or 11)
    np.testing.assert_allclose(weighted.explained_variance_, repeated.explained_variance_, atol=1e-12)
    np.testing.assert_allclose(weighted.components_[:4], repeated.components_[:4], atol=1e-8)
    np.testing.assert_allclose(weighted.components_ @ weighted.components_.T, np.eye(asked or 11), atol=1e-10)


def test_wide_data_all_components_stay_orthonormal() -> None:
    x = np.random.default_rng(0).standard_normal((10, 60))
    pca = fw.PCA().fit(x)
    assert pca.components_.shape == (10, 60)  # the last has no variance: centring took one dimension
    np.testing.assert_allclose(pca.components_ @ pca.components_.T, np.eye(10), atol=1e-12)
    assert pca.explained_variance_[-1] <= pca.variance_floor_
    np.testing.assert_allclose(pca.inverse_transform(pca.transform(x)), x, atol=1e-12)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("name", ["iris", "wine", "fgl_glass"])
def test_residual_certificate_bounds_the_true_error(table: Any, name: str, solver: str) -> None:
    x = table(name)
    pca = fw.PCA(3, svd_solver=solver).fit(x)
    truth = np.linalg.svd(x - x.mean(axis=0), compute_uv=False) ** 2 / (len(x) - 1)
    rounding = 1e-13 * truth[0]
    for variance, residual in zip(pca.explained_variance_, pca.residuals_, strict=True):
        assert np.abs(truth - variance).min() <= residual + rounding
    assert (pca.residuals_ <= 1e-9 * truth[0]).all()


def test_residual_certificate_of_a_fit_cut_short_is_honest(planted: Any) -> None:
    from foldwise.errors import NotFinishedWarning

    x = planted([3, 2.9, 2.8, 2.7, *np.linspace(2.5, 1, 40)], 300)
    truth = np.linalg.eigvalsh(np.cov(x.T))
    for solver, steps in (("krylov", 1), ("power", 4)):
        with pytest.warns(NotFinishedWarning, match="capped"):
            pca = fw.PCA(2, svd_solver=solver, max_iter=steps).fit(x)
        assert (pca.residuals_ > 1e-3).all()
        for variance, residual in zip(pca.explained_variance_, pca.residuals_, strict=True):
            assert np.abs(truth - variance).min() <= residual


@pytest.mark.parametrize("solver", ["krylov", "power"])
def test_equal_calls_give_equal_bits(table: Any, solver: str) -> None:
    x = table("wine")
    fits = [fw.PCA(2, svd_solver=solver, random_state=s).fit(x) for s in (None, None, 0, 7, 7)]
    bits = [pca.components_.tobytes() for pca in fits]
    assert bits[0] == bits[1] == bits[2]
    assert bits[3] == bits[4]
    np.testing.assert_allclose(fits[3].components_, fits[0].components_, atol=1e-9)


@pytest.mark.parametrize("asked", ["randomized", "arpack"])
def test_scikit_learns_names_of_solvers(table: Any, asked: str) -> None:
    pca = fw.PCA(2, svd_solver=asked, random_state=0).fit(table("wine"))
    assert pca.manifest_.algorithm == "krylov"
    assert_alike(pca, fw.PCA(2, svd_solver="full").fit(table("wine")))


def test_manifest_says_what_ran(table: Any) -> None:
    manifest = fw.PCA(n_threads=2).fit(table("iris")).manifest_
    assert (manifest.algorithm, manifest.rows, manifest.columns, manifest.dtype) == (
        "covariance_eigh",
        150,
        4,
        "float64",
    )
    assert (manifest.passes, manifest.threads, manifest.resumed_at, manifest.left_out) == (1, 2, 0, ())
    assert manifest.as_dict()["seconds"] > 0
