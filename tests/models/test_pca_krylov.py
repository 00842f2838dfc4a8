"""Krylov as "auto" takes it: float32 steps, then a pass in float64 that certifies the variances."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import foldwise as fw
from foldwise.errors import NotFinishedWarning, StoreError
from foldwise.fold import events
from foldwise.fold.tensor_file import read_tensors, write_tensors
from foldwise.models.pca import costs, krylov, sample_start
from foldwise.models.pca.lanczos import Ritz, empty, enlarged, random_block


@pytest.fixture
def always(monkeypatch: pytest.MonkeyPatch) -> None:
    """ "auto" takes Krylov, whatever it costs, and does not give up."""
    monkeypatch.setattr("foldwise.models.pca.choose.cheapest", lambda *args, **options: "krylov")
    monkeypatch.setattr(krylov, "_patience", lambda *args, **options: np.inf)


def factors(n: int, d: int, dtype: Any = np.float32, seed: int = 0) -> Any:
    rng = np.random.default_rng(seed)
    turn = np.linalg.qr(rng.standard_normal((d, 12)))[0].T
    return (rng.standard_normal((n, 12)) * 6 / np.sqrt(np.arange(1, 13)) @ turn + rng.standard_normal((n, d))).astype(
        dtype
    )


def true_variances(x: Any, k: int, weights: Any = None) -> Any:
    x = x.toarray() if sp.issparse(x) else x
    return np.linalg.eigvalsh(np.cov(x.astype(np.float64).T, fweights=weights))[::-1][:k]


@pytest.mark.usefixtures("always")
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("offset", [0.0, 1e6])
@pytest.mark.parametrize("scale", [1e-30, 1.0, 1e30])
def test_variances_are_right_at_any_offset_and_scale(dtype: Any, offset: float, scale: float) -> None:
    x = ((factors(3000, 300).astype(np.float64) + (offset if dtype == np.float64 else offset / 100)) * scale).astype(
        dtype
    )
    pca = fw.PCA(5).fit(x)
    truth = true_variances(x.astype(np.float64) / scale, 5) * scale**2
    assert pca.manifest_.algorithm == "krylov"
    np.testing.assert_allclose(pca.explained_variance_, truth, rtol=1e-6)
    assert (np.abs(pca.explained_variance_ - truth) <= pca.variance_errors_ + 1e-12 * truth).all()
    assert (pca.variance_errors_ <= 1e-6 * pca.explained_variance_).all()
    np.testing.assert_allclose(pca.components_ @ pca.components_.T, np.eye(5), atol=1e-6)


@pytest.mark.usefixtures("always")
def test_residuals_are_those_of_the_matrix() -> None:
    x = factors(3000, 300)
    pca = fw.PCA(5).fit(x)
    S = np.cov(x.astype(np.float64).T)
    V = pca.components_.astype(np.float64)
    found = np.linalg.norm(V @ S - pca.explained_variance_[:, None] * V, axis=1)
    np.testing.assert_allclose(found, pca.residuals_, atol=3e-6 * np.trace(S))  # components_ are rounded to float32
    assert not np.array_equal(pca.variance_errors_, pca.residuals_)


@pytest.mark.usefixtures("always")
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_weights_are_repetition(dtype: Any) -> None:
    x = factors(2000, 270, dtype)
    weights = np.random.default_rng(1).integers(0, 4, 2000)
    weighted, repeated = fw.PCA(4).fit(x, sample_weight=weights), fw.PCA(4).fit(np.repeat(x, weights, axis=0))
    np.testing.assert_allclose(weighted.explained_variance_, repeated.explained_variance_, rtol=1e-6)
    np.testing.assert_allclose(weighted.explained_variance_, true_variances(x, 4, weights), rtol=1e-6)


@pytest.mark.usefixtures("always")
@pytest.mark.parametrize("shape", [(4000, 300), (400, 3000)], ids=["tall", "wide"])
@pytest.mark.parametrize("options", [{}, {"scale": True}])
@pytest.mark.parametrize("weighted", [False, True])
def test_sparse_is_dense(monkeypatch: pytest.MonkeyPatch, shape: Any, options: Any, weighted: bool) -> None:
    monkeypatch.setattr("foldwise.models.pca.sparse_start._MOST_ROWS", 0)  # the wide one is seen from its rows
    rng = np.random.default_rng(0)
    x = sp.random_array(shape, density=0.05, rng=rng, format="csr")
    x = sp.csr_array(x @ sp.diags_array(1 / np.sqrt(np.arange(1, shape[1] + 1))))
    weights = rng.integers(1, 3, shape[0]) if weighted else None
    sparse = fw.PCA(6, **options).fit(x, sample_weight=weights)
    dense = fw.PCA(6, svd_solver="full", **options).fit(x.toarray(), sample_weight=weights)
    np.testing.assert_allclose(sparse.explained_variance_, dense.explained_variance_, rtol=1e-6)
    assert (sparse.variance_errors_ <= 1e-6 * sparse.explained_variance_).all()
    tight = fw.PCA(6, svd_solver="krylov", **options).fit(x, sample_weight=weights)
    np.testing.assert_allclose(tight.explained_variance_, dense.explained_variance_, rtol=1e-11)


def bits(pca: Any) -> bytes:
    return b"".join(
        part.tobytes() for part in (pca.components_, pca.explained_variance_, pca.residuals_, pca.variance_errors_)
    )


@pytest.mark.usefixtures("always")
@pytest.mark.parametrize("kind", ["dense", "sample", "float64", "sparse", "wide sparse"])
def test_the_same_bits_for_any_number_of_threads(monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    x = factors(20_000, 260, np.float64 if kind == "float64" else np.float32)
    if kind == "sample":
        monkeypatch.setattr(sample_start, "_ROWS", 1000)
    if "sparse" in kind:
        x = sp.random_array((40_000, 300) if kind == "sparse" else (4000, 9000), density=0.01, format="csr", rng=0)
    models = [fw.PCA(20 if kind == "wide sparse" else 4, n_threads=n).fit(x) for n in (1, 2, 3)]
    assert models[0].manifest_.algorithm == "krylov"
    assert len({bits(pca) for pca in models}) == 1


@pytest.mark.usefixtures("always")
def test_the_same_bits_on_dask(monkeypatch: pytest.MonkeyPatch) -> None:
    distributed = pytest.importorskip("distributed")
    x = factors(20_000, 260)
    wide = sp.random_array((40_000, 90_000), density=1e-4, format="csr", rng=0)
    with (
        distributed.LocalCluster(n_workers=1, threads_per_worker=2, processes=False, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
    ):
        for rows, k in ((x, 4), (wide, 3)):
            assert bits(fw.PCA(k).fit(rows, engine=client)) == bits(fw.PCA(k).fit(rows))


@pytest.mark.parametrize("sampled", [False, True])
def test_a_flat_spectrum_is_left_to_the_covariance(sampled: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(costs, "_DIGITS", 0.0)
    if not sampled:  # a sample of the rows shows it before the first step
        monkeypatch.setattr(sample_start, "worth_it", lambda passes, ddof: False)
    x = np.random.default_rng(0).standard_normal((12_000, 1000), dtype=np.float32)
    assert costs.cheapest(12_000, 1000, 5, sparse=False) == "krylov"  # it is tried,
    pca = fw.PCA(5).fit(x)
    assert pca.manifest_.algorithm == "covariance_eigh"
    lost = (pca.manifest_.passes - (1 if sampled else 2)) * 12_000 * costs.step_cost(1000, 5, wide=False)
    if sampled:
        assert lost == 0
    else:
        assert 0 < lost < 0.3 * costs.covariance(12_000, 1000, 5)  # and not for long
    assert bits(pca) == bits(fw.PCA(5, svd_solver="covariance_eigh").fit(x))


@pytest.mark.usefixtures("always")
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    ("n", "d", "k"), [(2, 70, 1), (5, 70, 3), (300, 70, 60), (300, 70, 70), (90, 300, 40), (70, 70, 1)]
)
def test_tiny_tables_and_nearly_all_components(n: int, d: int, k: int, dtype: Any) -> None:
    x = factors(n, d, dtype)
    pca, true = fw.PCA(k).fit(x), true_variances(x, k)
    np.testing.assert_allclose(pca.explained_variance_, true, rtol=1e-6, atol=1e-6 * true[0])


@pytest.mark.usefixtures("always")
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_data_of_lower_rank_than_asked_for(dtype: Any) -> None:
    rng = np.random.default_rng(0)
    x = (rng.standard_normal((3000, 4)) @ rng.standard_normal((4, 300))).astype(dtype)
    pca = fw.PCA(8).fit(x)
    np.testing.assert_allclose(pca.explained_variance_[:4], true_variances(x, 4), rtol=1e-6)
    assert (pca.explained_variance_[4:] <= pca.variance_floor_).all()
    assert pca.outcome_.converged


@pytest.mark.usefixtures("always")
@pytest.mark.parametrize("k", [2, 3, 4, 5])
def test_equal_variances_even_across_the_last_component(k: int) -> None:
    """No single direction is determined, their variances are."""
    rng = np.random.default_rng(0)
    codes = np.linalg.qr(rng.standard_normal((2000, 300)) - 0.0)[0]
    codes -= codes.mean(axis=0)
    codes = np.linalg.qr(codes)[0]
    x = (codes * np.sqrt([9.0, 4, 4, 4, 4, *np.geomspace(1, 0.1, 295)]) * 100).astype(np.float32)
    pca = fw.PCA(k).fit(x)
    np.testing.assert_allclose(pca.explained_variance_, true_variances(x, k), rtol=1e-6)
    assert (pca.variance_errors_ <= 1e-6 * pca.explained_variance_).all()


@pytest.mark.usefixtures("always")
def test_a_direction_that_the_sample_lacks_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sample_start, "_ROWS", 1000)
    x = factors(8000, 300)
    x[1::8, 7] += np.float32(40)  # no row of the sample, which takes every eighth from the first
    pca = fw.PCA(3).fit(x)
    np.testing.assert_allclose(pca.explained_variance_, true_variances(x, 3), rtol=1e-6)


@pytest.mark.usefixtures("always")
@pytest.mark.parametrize("kind", ["dense", "wide sparse"])
def test_a_stopped_fit_goes_on_to_the_same_bits(tmp_path: Any, kind: str) -> None:
    x = factors(3000, 300) if kind == "dense" else sp.random_array((4000, 9000), density=0.01, format="csr", rng=0)
    whole, seen = fw.PCA(3).fit(x), 0

    def stop(event: events.Event) -> None:
        nonlocal seen
        step = isinstance(event, events.StepDone)
        seen += step
        if step and seen == 2:
            raise KeyboardInterrupt

    path = tmp_path / "pca.ckpt"
    with events.listening(stop), pytest.warns(NotFinishedWarning, match="interrupted after 2 steps"):
        cut = fw.PCA(3, checkpoint=path).fit(x)
    assert cut.components_.shape == (3, x.shape[1])
    truth = true_variances(x, x.shape[1]) if kind == "dense" else None
    if truth is not None:
        for variance, residual in zip(cut.explained_variance_, cut.residuals_, strict=True):
            assert np.abs(truth - variance).min() <= residual
    again = fw.PCA(3, checkpoint=path).fit(x)
    assert again.manifest_.resumed_at == 2
    assert bits(again) == bits(whole)


def test_a_checkpoint_of_an_older_version_is_refused_in_one_line(tmp_path: Any) -> None:
    path, x = tmp_path / "pca.ckpt", factors(3000, 300)
    with pytest.warns(NotFinishedWarning):
        fw.PCA(3, svd_solver="krylov", max_iter=1, checkpoint=path).fit(x)
    content = read_tensors(path)
    old = {name: array for name, array in content.arrays.items() if name not in ("raw", "guess", "ahead")}
    write_tensors(path, old, content.header)
    with pytest.raises(
        StoreError, match=r"written by an older version of Foldwise.*delete it to start again"
    ) as caught:
        fw.PCA(3, svd_solver="krylov", max_iter=9, checkpoint=path).fit(x)
    assert "\n" not in str(caught.value)


@pytest.mark.usefixtures("always")
def test_small_variances_beside_a_huge_one() -> None:
    """They are below what float32 products can tell from rounding, and were accepted with an error of 30 %."""
    x = np.random.default_rng(0).normal(size=(300, 400))
    x[:, 0] *= 1e4
    x = x.astype(np.float32)
    np.testing.assert_allclose(fw.PCA(5).fit(x).explained_variance_, true_variances(x, 5), rtol=1e-6)


def test_sparse_rows_in_several_blocks() -> None:
    """From 182 columns on, their scatter matrices came in Fortran order, which could not be merged."""
    x = sp.random(32_000, 182, 0.003, format="csr", random_state=0)
    found = fw.PCA(5, svd_solver="covariance_eigh").fit(x)
    assert found.manifest_.algorithm == "covariance_eigh"
    np.testing.assert_allclose(found.explained_variance_, true_variances(x, 5), rtol=1e-9)


def test_error_bounds_hold_for_a_matrix_with_known_eigenvalues() -> None:
    """Against the truth, in every step and for every cut."""
    truth = np.concatenate([[10, 6, 6, 6, 5.9, 5], np.linspace(3, 0, 94)])
    rng = np.random.default_rng(0)
    turn = np.linalg.qr(rng.standard_normal((100, 100)))[0]
    S = (turn * truth) @ turn.T
    state, tightest = empty(random_block(100, 8, 0)), np.inf
    for _ in range(8):
        state = enlarged(state, lambda block: S @ block)
        np.testing.assert_allclose(state["basis"].T @ state["basis"], np.eye(state["basis"].shape[1]), atol=1e-12)
        ritz = Ritz.of(state)
        found = S @ state["basis"] @ ritz.vectors - state["basis"] @ ritz.vectors * ritz.values
        np.testing.assert_allclose(np.linalg.norm(found, axis=0), ritz.residuals, atol=1e-11)
        bounds = ritz.errors(6)
        if len(state["basis"].T) >= 24:  # until all clusters are met, the gap is not what it seems
            assert (np.abs(ritz.values[:6] - truth[:6]) <= bounds[-1] + 1e-12).all()
            tightest = float(bounds[-1].max())
    assert tightest < 1e-6


def test_what_users_asked_for_by_name_is_kept() -> None:
    x = factors(3000, 300)
    pca = fw.PCA(4, svd_solver="krylov").fit(x)
    np.testing.assert_allclose(pca.explained_variance_, true_variances(x, 4), rtol=1e-12)
    loose = fw.PCA(4, svd_solver="krylov", tol=1e-2).fit(x)
    assert loose.n_iter_ < pca.n_iter_
