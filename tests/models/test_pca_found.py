"""Wrong answers that a reviewer found once; each stays found."""

import threading

import numpy as np
import pytest
import scipy.sparse as sp

import foldwise as fw
from foldwise import errors
from foldwise.errors import DataError, StoreError

rng = np.random.default_rng(0)


@pytest.mark.parametrize("solver", ["auto", "full", "covariance_eigh"])
def test_small_variances_keep_their_directions(solver):
    z = rng.standard_normal((200_000, 3))
    x = np.column_stack([1e6 * z[:, 0], z[:, 1] + z[:, 2], z[:, 1] - 0.5 * z[:, 2]])
    pca = fw.PCA(svd_solver=solver).fit(x)
    small = np.linalg.svd(x[:, 1:] - x[:, 1:].mean(axis=0), full_matrices=False)[2]
    assert abs(abs(pca.components_[1, 1:] @ small[0]) - 1) < 1e-4
    np.testing.assert_allclose(pca.transform(x).var(axis=0, ddof=1), pca.explained_variance_, rtol=1e-3)


def test_krylov_converges_for_every_component_to_its_own_scale():
    x = rng.standard_normal((5000, 200))
    x[:, :3] *= [1e6, 3, 2]
    found, true = fw.PCA(4, svd_solver="krylov").fit(x), fw.PCA(4, svd_solver="full").fit(x)
    np.testing.assert_allclose(found.explained_variance_, true.explained_variance_, rtol=1e-4)


@pytest.mark.parametrize("solver", ["krylov", "power"])
def test_a_checkpoint_does_not_go_on_with_other_rows(solver, tmp_path):
    x = rng.standard_normal((40_000, 60))
    args = {"svd_solver": solver, "checkpoint": tmp_path / "ck", "max_iter": 1}
    with pytest.warns(errors.NotFinishedWarning):
        fw.PCA(2, **args).fit(x)
    x[20_000] *= 50  # neither in the first block nor in the last
    with pytest.raises(StoreError, match="other data"):
        fw.PCA(2, **args).fit(x)


def test_fits_at_the_same_time_have_the_bits_of_one_alone():
    x = rng.standard_normal((6000, 120))
    alone = fw.PCA(svd_solver="full").fit(x).components_.tobytes()
    seen = []
    threads = [
        threading.Thread(target=lambda: seen.append(fw.PCA(svd_solver="full").fit(x).components_.tobytes()))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(seen) == {alone}
    assert fw.PCA(svd_solver="full").fit(x).components_.tobytes() == alone


def test_cos2_of_columns_is_a_share_of_their_own_variance():
    x = rng.standard_normal((300, 4)) @ rng.standard_normal((4, 4))
    pca = fw.PCA(1).fit(x)
    scores = pca.transform(x)[:, 0]
    expected = [np.corrcoef(column, scores)[0, 1] ** 2 for column in x.T]
    np.testing.assert_allclose(np.asarray(pca.cos2())[:, 0], expected, rtol=1e-9)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize("solver", ["covariance_eigh", "krylov", "power"])
def test_rows_of_weight_zero_do_not_make_a_constant_column_vary(form, solver):
    x = rng.standard_normal((500, 3))
    x[:, 1] = 0.1
    x[7, 1] = 0.0
    weights = np.ones(500)
    weights[7] = 0
    pca = fw.PCA(2, scale=True, svd_solver=solver).fit(form(x), sample_weight=weights)
    assert pca.scale_[1] == 1
    np.testing.assert_allclose(pca.explained_variance_.sum(), 2, rtol=1e-9)


def test_float32_at_both_ends_of_its_range():
    x = np.full((300, 2), 3e38, dtype=np.float32)
    x[:3] = -3e38
    x[5:9, 0] = 1e38
    found, true = fw.PCA(2, svd_solver="krylov").fit(x), fw.PCA(2, svd_solver="full").fit(x.astype(np.float64))
    np.testing.assert_allclose(found.explained_variance_, true.explained_variance_, rtol=1e-6)
    with pytest.raises(DataError, match="leave the range of float32"):
        found.transform(x)


def test_whitening_a_component_without_variance_in_float32():
    x = np.column_stack([rng.standard_normal((50, 2)), np.zeros(50)]).astype(np.float32) * np.float32(1e-30)
    assert np.isfinite(fw.PCA(whiten=True).fit_transform(x)).all()


@pytest.mark.parametrize("weight", [1e80, 1e-60])
def test_wide_float32_rows_with_extreme_weights(weight):
    x = rng.standard_normal((10, 40)).astype(np.float32)
    pca = fw.PCA(3, ddof=0).fit(x, sample_weight=np.full(10, weight))
    np.testing.assert_allclose(pca.explained_variance_, fw.PCA(3, ddof=0).fit(x).explained_variance_, rtol=1e-5)


@pytest.mark.parametrize("solver", ["full", "covariance_eigh"])
def test_noise_is_not_lost_beside_a_large_variance(solver):
    x = rng.standard_normal((500, 4)) * [1e3, 1e-3, 1e-3, 1e-3]
    pca = fw.PCA(1, svd_solver=solver).fit(x)
    np.testing.assert_allclose(pca.noise_variance_, 1e-6, rtol=0.2)


def test_the_first_bad_value_is_named_whichever_thread_is_faster():
    x = rng.standard_normal((300_000, 5))
    x[11_000, 2] = x[150_000, 3] = x[290_000, 1] = np.nan
    for _ in range(10):
        with pytest.raises(DataError) as caught:
            fw.PCA(n_threads=4).fit(x)
        assert (caught.value.row, caught.value.column) == (11_000, 2)


def test_a_slow_component_does_not_keep_the_others_waiting(monkeypatch):
    monkeypatch.setattr("foldwise.models.pca.power._STEPS_PER_COMPONENT", 2000)
    basis = np.linalg.qr(rng.standard_normal((400, 6)))[0] * np.sqrt([1, 0.99999, 0.99998, 0.5, 0.4, 0.3]) * 20
    basis -= basis.mean(axis=0)
    with pytest.warns(errors.NotFinishedWarning, match="capped"):
        pca = fw.PCA(6, svd_solver="power").fit(basis)
    np.testing.assert_allclose(pca.explained_variance_[3:], fw.PCA().fit(basis).explained_variance_[3:], rtol=1e-3)


@pytest.mark.parametrize("solver", ["covariance_eigh", "krylov"])
def test_a_nan_is_refused_also_in_a_block_of_weight_zero(solver):
    x = rng.standard_normal((20_000, 60))
    x[-10, 3] = np.nan
    weights = np.ones(20_000)
    weights[15_000:] = 0
    with pytest.raises(DataError, match="NaN"):
        fw.PCA(2, svd_solver=solver).fit(x, sample_weight=weights)


def test_the_advice_of_the_report_counts_weights():
    from foldwise.report.pca import number_of_components

    x = rng.standard_normal((60, 5)) @ np.diag([2.0, 1, 1, 1, 1])
    pca = fw.PCA().fit(x, sample_weight=np.full(60, 100.0))
    table, note = number_of_components(pca, fw.scan(x, weights=np.full(60, 100.0)))
    kept = dict(zip(table.columns[0].values, table.columns[1].values, strict=True))
    assert "votes" in note.text or "out from noise" in note.text
    for rule in ("parallel", "held-out", "gavish-donoho", "broken-stick", "mle"):
        assert kept[rule] == fw.PCA(rule).fit(x, sample_weight=np.full(60, 100.0)).n_components_
