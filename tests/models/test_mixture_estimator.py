"""GaussianMixture as users meet it: hand-worked cases, parameters, errors, weights, order, files."""

from __future__ import annotations

import tracemalloc
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn.utils.estimator_checks import parametrize_with_checks

import foldwise as fw
from foldwise.errors import DataError, FoldwiseWarning, NotFinishedWarning, ParameterError, StoreError
from foldwise.models.mixture import CollapsedWarning
from foldwise.models.units import in_range

TYPES = ["full", "tied", "diag", "spherical", "ppca"]


def blobs(seed: int = 0, n: int = 300, d: int = 3, dtype: Any = np.float64) -> np.ndarray:
    rng = np.random.default_rng(seed)
    far = rng.standard_normal((n // 3, d)) * np.linspace(0.5, 2.0, d) + 6.0
    return np.concatenate([rng.standard_normal((n - n // 3, d)), far]).astype(dtype)


@parametrize_with_checks([fw.GaussianMixture(), fw.GaussianMixture(2, covariance_type="diag"), fw.SoftKMeans(3)])
def test_scikit_learns_checks(estimator: Any, check: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CollapsedWarning)  # some of their data are a few points, many times
        check(estimator)


# ------------------------------------------------------------------ worked by hand


def test_one_step_by_hand() -> None:
    """Rows 0, 1, 3 with unit variances at 0 and 3: the first is responsible by 1/(1+e^-4.5), 1/(1+e^-1.5), 1/(1+e^4.5)."""
    x = np.array([[0.0], [1.0], [3.0]])
    gm = fw.GaussianMixture(
        2,
        weights_init=[0.5, 0.5],
        means_init=[[0.0], [3.0]],
        precisions_init=[[[1.0]], [[1.0]]],
        reg_covar=0,
        max_iter=1,
    )
    with pytest.warns(NotFinishedWarning, match="Best performing initialization did not converge"):
        gm.fit(x)
    r = 1 / (1 + np.exp([-4.5, -1.5, 4.5]))
    mean = (r @ x[:, 0]) / r.sum()
    assert gm.weights_[0] == pytest.approx(r.sum() / 3, rel=1e-14)
    assert gm.means_[0, 0] == pytest.approx(mean, rel=1e-14)
    assert gm.covariances_[0, 0, 0] == pytest.approx((r @ (x[:, 0] - mean) ** 2) / r.sum(), rel=1e-13)
    density = 0.5 * (np.exp(-(x[:, 0] ** 2) / 2) + np.exp(-((x[:, 0] - 3) ** 2) / 2)) / np.sqrt(2 * np.pi)
    assert gm.lower_bound_ == pytest.approx(np.log(density).mean(), rel=1e-14)


@pytest.mark.parametrize("kind", TYPES)
def test_one_component_is_the_sample_covariance(kind: str) -> None:
    x = blobs()
    gm = fw.GaussianMixture(1, covariance_type=kind, reg_covar=0).fit(x)
    sample = np.cov(x.T, bias=True)
    np.testing.assert_allclose(gm.means_[0], x.mean(axis=0), rtol=1e-12)
    expected: Any = {"full": sample[None], "tied": sample, "diag": np.diag(sample)[None]}.get(kind)
    if kind == "spherical":
        expected = [np.diag(sample).mean()]
    if kind == "ppca":  # two variances kept, the third is the noise: with three columns nothing is lost
        expected = sample[None]
    np.testing.assert_allclose(gm.covariances_, expected, rtol=1e-10)
    assert gm.converged_
    assert gm.weights_ == [1.0]


def test_ppca_of_one_component_is_our_pca() -> None:
    """Tipping and Bishop's model: the same density as fw.PCA's, whose ddof must be that of maximum likelihood."""
    x = np.random.default_rng(1).standard_normal((200, 5)) @ np.diag([3.0, 2.0, 1.0, 0.5, 0.4])
    gm = fw.GaussianMixture(1, covariance_type="ppca", n_latent=2, reg_covar=0).fit(x)
    pca = fw.PCA(2, ddof=0).fit(x)
    np.testing.assert_allclose(gm.covariances_[0], pca.get_covariance(), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(gm.score_samples(x), pca.score_samples(x), rtol=1e-9)
    assert gm.n_parameters() == 5 + (5 * 2 - 1 + 1)


def test_criteria_by_their_formulas() -> None:
    x = blobs()
    gm = fw.GaussianMixture(2).fit(x)
    likelihood, p = gm.score_samples(x).sum(), 2 * 3 + 2 * 6 + 1
    assert gm.n_parameters() == p
    assert gm.score(x) == pytest.approx(likelihood / 300, rel=1e-13)
    assert gm.bic(x) == pytest.approx(-2 * likelihood + p * np.log(300), rel=1e-13)
    assert gm.aic(x) == pytest.approx(-2 * likelihood + 2 * p, rel=1e-13)
    surest = np.log(gm.predict_proba(x).max(axis=1)).sum()
    assert gm.icl(x) == pytest.approx(gm.bic(x) - 2 * surest, rel=1e-13)
    assert gm.criteria(x)["bic"] == gm.bic(x)


# ------------------------------------------------------------------ what is promised


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_attributes_fit_together(kind: str, dtype: Any) -> None:
    x = blobs(dtype=dtype)
    gm = fw.GaussianMixture(2, covariance_type=kind).fit(x)
    labels, shares = gm.predict(x), gm.predict_proba(x)
    np.testing.assert_array_equal(labels, fw.GaussianMixture(2, covariance_type=kind).fit_predict(x))
    np.testing.assert_array_equal(labels, shares.argmax(axis=1))
    np.testing.assert_allclose(shares.sum(axis=1), 1.0, rtol=1e-6 if dtype == np.float32 else 1e-12)
    assert gm.weights_.sum() == pytest.approx(1.0, rel=1e-12)
    assert list(gm.weights_) == sorted(gm.weights_, reverse=True)
    assert gm.means_.dtype == gm.covariances_.dtype == np.float64
    if kind in ("full", "ppca"):
        for covariance, precision in zip(gm.covariances_, gm.precisions_, strict=True):
            np.testing.assert_allclose(covariance @ precision, np.eye(3), atol=1e-9)
    elif kind == "tied":
        np.testing.assert_allclose(gm.covariances_ @ gm.precisions_, np.eye(3), atol=1e-9)
    else:
        np.testing.assert_allclose(gm.precisions_ * gm.covariances_, 1.0, rtol=1e-12)
    assert gm.n_iter_ == len(gm.lower_bounds_) == gm.outcome_.steps
    assert gm.lower_bound_ == gm.lower_bounds_[-1] == gm.trace_[-1]["lower_bound"]
    assert gm.lower_bound_ <= gm.score(x) + 1e-6
    assert gm.manifest_.algorithm == f"EM ({kind})"
    assert gm.manifest_.rows == 300
    rows, components = gm.sample(50)
    assert rows.shape == (50, 3)
    assert components.shape == (50,)


@pytest.mark.parametrize("kind", TYPES)
@given(seed=st.integers(0, 1000))
def test_the_bound_never_falls(kind: str, seed: int) -> None:
    """With any ridge, and without; a restart of a collapsed component begins a new run."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((int(rng.integers(20, 80)), 3)) * [1.0, 10.0, 0.1]
    for reg in ("auto", 0.0, 1e-6, 0.05):
        gm = fw.GaussianMixture(
            3, covariance_type=kind, reg_covar=reg, tol=0, max_iter=60, init_params="random_from_data"
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FoldwiseWarning)  # which of these fits end well is not the matter
            try:
                gm.fit(x)
            except DataError as error:  # rows as few as these can leave no density if there is no ridge
                assert reg == 0.0, error  # noqa: PT017
                continue
        for before, after in zip(gm.trace_, gm.trace_[1:], strict=False):
            if before["run"] == after["run"]:
                assert after["lower_bound"] >= before["lower_bound"] - 1e-12 * abs(before["lower_bound"])


@pytest.mark.parametrize("kind", TYPES)
def test_weights_are_repetition(kind: str) -> None:
    x = blobs()
    w = np.random.default_rng(1).integers(0, 4, len(x)).astype(float)
    repeated = np.repeat(x, w.astype(int), axis=0)
    one = fw.GaussianMixture(2, covariance_type=kind, tol=1e-10).fit(x, sample_weight=w)
    two = fw.GaussianMixture(2, covariance_type=kind, tol=1e-10).fit(repeated)
    np.testing.assert_allclose(one.means_, two.means_, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(one.covariances_, two.covariances_, rtol=1e-10, atol=1e-10)
    assert one.bic(x, w) == pytest.approx(two.bic(repeated), rel=1e-12)
    assert one.icl(x, w) == pytest.approx(two.icl(repeated), rel=1e-12)
    assert one.score(x, sample_weight=w) == pytest.approx(two.score(repeated), rel=1e-12)


@pytest.mark.parametrize("kind", ["full", "tied", "diag"])
def test_units_do_not_matter(kind: str) -> None:
    """Neither the start nor the ridge depends on the units of the columns."""
    x, factor = blobs(), np.array([1e-8, 1.0, 1e8])
    one = fw.GaussianMixture(2, covariance_type=kind, tol=1e-10).fit(x)
    two = fw.GaussianMixture(2, covariance_type=kind, tol=1e-10).fit(x * factor)
    np.testing.assert_array_equal(one.predict(x), two.predict(x * factor))
    np.testing.assert_allclose(one.means_ * factor, two.means_, rtol=1e-7)
    assert one.score(x) == pytest.approx(two.score(x * factor) + np.log(factor).sum(), abs=1e-7)


def test_order_of_rows_does_not_matter_and_components_are_ordered() -> None:
    x = blobs()
    one = fw.GaussianMixture(3, tol=1e-9, max_iter=1000).fit(x)
    two = fw.GaussianMixture(3, tol=1e-9, max_iter=1000).fit(x[np.random.default_rng(0).permutation(len(x))])
    np.testing.assert_allclose(one.means_, two.means_, atol=1e-6)
    given = fw.GaussianMixture(2, means_init=[[6.0] * 3, [0.0] * 3]).fit(x)
    assert given.means_[0, 0] > given.means_[1, 0]
    assert given.weights_[0] < given.weights_[1]


def test_scale_standardises_and_comes_back() -> None:
    x = blobs() * [1.0, 100.0, 1e4]
    gm = fw.GaussianMixture(2, covariance_type="spherical", scale=True).fit(x)
    z = (x - x.mean(axis=0)) / x.std(axis=0)
    plain = fw.GaussianMixture(2, covariance_type="spherical").fit(z)
    np.testing.assert_array_equal(gm.predict(x), plain.predict(z))
    np.testing.assert_allclose(
        gm.means_in_data_units().values, plain.means_ * x.std(axis=0) + x.mean(axis=0), rtol=1e-9
    )
    rows, _ = gm.sample(2000)
    np.testing.assert_allclose(rows.mean(axis=0), x.mean(axis=0), rtol=0.2)


def test_n_init_keeps_the_best_and_warm_start_goes_on() -> None:
    x = np.random.default_rng(0).standard_normal((200, 2))
    alone = [
        fw.GaussianMixture(4, random_state=i, init_params="random_from_data").fit(x).lower_bound_ for i in range(3)
    ]
    best = fw.GaussianMixture(4, n_init=6, init_params="random_from_data").fit(x)
    assert best.lower_bound_ >= fw.GaussianMixture(4, init_params="random_from_data").fit(x).lower_bound_
    assert len({step["start"] for step in best.trace_}) == 6
    assert len(set(alone)) > 1
    once = fw.GaussianMixture(3, max_iter=4, tol=1e-12)
    with pytest.warns(NotFinishedWarning):
        once.fit(x)
    twice = fw.GaussianMixture(3, max_iter=2, tol=1e-12, warm_start=True)
    for _ in range(2):
        with pytest.warns(NotFinishedWarning):
            twice.fit(x)
    # The ridge of a warm start is taken from where it goes on, which shows in the seventh digit.
    np.testing.assert_allclose(once.means_, twice.means_[np.argsort(-twice.weights_)], rtol=1e-6, atol=1e-6)
    with pytest.raises(ParameterError, match="warm_start=True goes on from 3 components in 2 columns"):
        twice.set_params(n_components=2).fit(x)


def test_no_step_gives_the_start() -> None:
    x = blobs()
    gm = fw.GaussianMixture(2, means_init=[[0.0] * 3, [6.0] * 3], max_iter=0).fit(x)
    np.testing.assert_array_equal(gm.means_, [[0.0] * 3, [6.0] * 3])
    assert not gm.converged_
    assert gm.lower_bounds_ == []


# ------------------------------------------------------------------ collapse


def test_a_collapsed_component_is_restarted_and_told() -> None:
    """One of three is started on two rows that are nearly equal; the third cluster has nobody."""
    rng = np.random.default_rng(0)
    x = np.concatenate([rng.standard_normal((100, 2)) + centre for centre in ([0, 0], [12, 0], [0, 12])])
    x[1] = x[0] + 1e-9
    gm = fw.GaussianMixture(
        3,
        weights_init=[0.5, 0.49, 0.01],
        means_init=[[0.0, 0.0], [12.0, 0.0], x[0]],
        precisions_init=[np.eye(2), np.eye(2), np.eye(2) * 1e14],
        max_iter=500,
        tol=1e-8,
    ).fit(x)
    assert gm.manifest_.repairs == ("1 times a collapsed component was started anew where densities were lowest",)
    assert gm.weights_.min() > 0.3
    assert gm.trace_[-1]["collapsed"] == 0
    np.testing.assert_allclose(np.sort(gm.means_.sum(axis=1)), [0, 12, 12], atol=0.5)


def test_what_cannot_be_repaired_is_told() -> None:
    x = np.concatenate([blobs(), [[500.0, 500.0, 500.0]]])
    with pytest.warns(CollapsedWarning, match="restarting them did not help"):
        gm = fw.GaussianMixture(3, means_init=[[0.0] * 3, [6.0] * 3, [500.0] * 3]).fit(x)
    assert len(gm.manifest_.repairs) == 2
    assert np.isfinite(gm.score(x))


def test_many_equal_rows_are_a_component_and_told() -> None:
    x = np.concatenate([blobs(), np.zeros((200, 3))])
    with pytest.warns(CollapsedWarning, match="many rows that are alike"):
        gm = fw.GaussianMixture(3, n_init=2).fit(x)
    sure = gm.predict_proba(np.zeros((1, 3))).max()
    assert sure > 0.999
    assert gm.weights_.max() == pytest.approx(0.4, abs=0.01)


def test_columns_without_variance_or_alike_change_nothing() -> None:
    x = blobs()
    wide = np.column_stack([x, np.full(300, 7.0), 2 * x[:, 0] + 1])
    plain = fw.GaussianMixture(2, tol=1e-10).fit(x)
    with pytest.warns(UserWarning, match="one value in all rows"):
        gm = fw.GaussianMixture(2, tol=1e-10).fit(wide)
    assert gm.manifest_.repairs == ()
    np.testing.assert_array_equal(gm.predict(wide), plain.predict(x))
    np.testing.assert_allclose(gm.means_[:, :3], plain.means_, atol=1e-4)


# ------------------------------------------------------------------ bad input


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"weights_init": [0.5, 0.6]}, "should be normalized"),
        ({"weights_init": [[0.5, 0.5]]}, "should have the shape of"),
        ({"means_init": [[0.0, 0.0]]}, "should have the shape of"),
        ({"means_init": [[np.nan] * 3, [0.0] * 3]}, "NaN"),
        ({"means_init": [["a"] * 3, [0.0] * 3]}, "should be numbers"),
        ({"precisions_init": -np.stack([np.eye(3)] * 2)}, "symmetric, positive-definite"),
        ({"covariance_type": "diag", "precisions_init": -np.ones((2, 3))}, "should be positive"),
        ({"covariance_type": "ppca", "n_latent": 3}, "needs more than that many columns"),
        ({"covariance_type": "round"}, "covariance_type"),
        ({"reg_covar": -1.0}, "reg_covar"),
        ({"n_components": 0}, "n_components"),
    ],
)
def test_bad_parameters_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        fw.GaussianMixture(**{"n_components": 2, **options}).fit(blobs())


def test_bad_data_are_refused_and_say_where() -> None:
    x = blobs()
    x[17, 2] = np.nan
    with pytest.raises(DataError, match=r"row 17 .*column 2.*Input contains NaN"):
        fw.GaussianMixture(2).fit(x)
    with pytest.raises(DataError, match=r"sparse data was passed.*fw.PCA"):
        fw.GaussianMixture(2).fit(sp.csr_array(blobs()))
    with pytest.raises(DataError, match="Expected n_samples >= n_components but got n_components = 9, n_samples = 5"):
        fw.GaussianMixture(9).fit(blobs()[:5])
    with pytest.raises(DataError, match="more than the 1 rows whose weight is not 0"):
        fw.GaussianMixture(2).fit(blobs()[:5], sample_weight=[0, 0, 3, 0, 0])
    with pytest.raises(DataError, match="ill-defined empirical covariance"):
        fw.GaussianMixture(2, reg_covar=0).fit([[0.0, 1.0], [0.0, 1.0], [2.0, 3.0], [2.0, 3.0]])
    gm = fw.GaussianMixture(2).fit(blobs())
    with pytest.raises(DataError, match="X has 2 features, but GaussianMixture is expecting 3"):
        gm.predict(blobs()[:, :2])
    with pytest.raises(ParameterError, match="Invalid value for 'n_samples'"):
        gm.sample(0)


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize(
    ("dtype", "factor"), [(np.float64, 1e150), (np.float64, 1e-150), (np.float32, 2.0**100), (np.float32, 2.0**-100)]
)
def test_tiny_and_huge_values(kind: str, dtype: Any, factor: float) -> None:
    x = blobs()
    plain = fw.GaussianMixture(2, covariance_type=kind).fit(x)
    large = fw.GaussianMixture(2, covariance_type=kind).fit((x * factor).astype(dtype))
    np.testing.assert_array_equal(plain.predict(x), large.predict((x * factor).astype(dtype)))
    np.testing.assert_allclose(large.means_ / factor, plain.means_, rtol=1e-4, atol=1e-5)
    assert large.score((x * factor).astype(dtype)) + 3 * np.log(factor) == pytest.approx(plain.score(x), abs=1e-5)


def test_beyond_the_range_is_an_error() -> None:
    for factor in (1e160, 1e-165):
        with pytest.raises(DataError, match="leave the range of float64"):
            fw.GaussianMixture(2).fit(blobs() * factor)


# ------------------------------------------------------------------ files


@pytest.mark.parametrize("kind", TYPES)
def test_saved_and_loaded(kind: str, tmp_path: Path) -> None:
    x = blobs()
    gm = fw.GaussianMixture(3, covariance_type=kind).fit(x).merge(x, 2)
    fw.save(gm, tmp_path / "m.fw")
    again = fw.load(tmp_path / "m.fw")
    np.testing.assert_array_equal(again.predict_proba(x), gm.predict_proba(x))
    np.testing.assert_array_equal(again.score_samples(x), gm.score_samples(x))
    assert again.merging_ == gm.merging_
    assert again.outcome_ == gm.outcome_
    assert again.manifest_ == gm.manifest_
    with pytest.raises(StoreError, match="not fitted"):
        fw.save(fw.GaussianMixture(), tmp_path / "n.fw")


def test_a_frame_keeps_its_names(tmp_path: Path) -> None:
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(blobs(), columns=["a", "b", "c"])
    gm = fw.GaussianMixture(2).fit(frame)
    assert list(gm.feature_names_in_) == ["a", "b", "c"]
    frame["more"] = 1.0
    frame.to_csv(tmp_path / "x.csv", index=False)
    np.testing.assert_array_equal(gm.predict(tmp_path / "x.csv"), gm.predict(frame[["a", "b", "c"]]))
    assert gm.means_in_data_units()["0", "a"] == gm.means_[0, 0]


# ------------------------------------------------------------------ the automatic ridge


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("gap", [1e3, 2e4, 1e6])
@pytest.mark.parametrize("kind", TYPES)
def test_clusters_far_apart_are_not_widened(kind: str, gap: float, dtype: Any) -> None:
    rows = np.random.default_rng(0).standard_normal((2000, 3))
    rows[1000:] += gap
    rows = rows.astype(dtype)
    gm = fw.GaussianMixture(2, covariance_type=kind).fit(rows)
    halves = [np.cov(half.astype(np.float64).T, bias=True) for half in (rows[:1000], rows[1000:])]
    if gm.means_[0, 0] > gm.means_[1, 0]:
        halves.reverse()
    found = gm.covariance_matrices()
    truth = gm.covariance.matrices(gm.covariance.of_matrices(np.array(halves), np.ones(2)), 2)
    np.testing.assert_allclose(found, truth, atol=1e-4 if dtype == np.float32 else 1e-7)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("init", ["kmeans", "k-means++"])
@pytest.mark.parametrize("kind", ["full", "diag", "spherical"])
def test_a_row_far_away_does_not_widen_the_others(kind: str, init: str, dtype: Any) -> None:
    rng = np.random.default_rng(0)
    near = np.concatenate([rng.standard_normal((300, 2)), [8.0, 1.0] + 0.5 * rng.standard_normal((200, 2))])
    rows = np.concatenate([near, [[1e7, 1e7]]]).astype(dtype)
    without = fw.GaussianMixture(2, covariance_type=kind, tol=1e-9).fit(near.astype(dtype))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CollapsedWarning)
        gm = fw.GaussianMixture(3, covariance_type=kind, init_params=init, n_init=3, tol=1e-9, max_iter=500).fit(rows)
    np.testing.assert_allclose(gm.covariances_[:2], without.covariances_, atol=1e-3)
    np.testing.assert_allclose(gm.means_[:2], without.means_, atol=1e-3)


def test_a_wide_start_narrows_and_the_ridge_with_it() -> None:
    rows = np.random.default_rng(0).standard_normal((2000, 2))
    rows[1000:] += 1e5
    gm = fw.GaussianMixture(
        2, means_init=[[4e4, 4e4], [6e4, 6e4]], weights_init=[0.5, 0.5], precisions_init=[np.eye(2) * 1e-9] * 2
    )
    gm.fit(rows)
    np.testing.assert_allclose(gm.covariances_[0], np.cov(rows[:1000].T, bias=True), rtol=1e-7, atol=1e-7)
    assert gm.ridge_.max() < 1e-8
    assert (np.diff(gm.lower_bounds_) >= -1e-12).all()


# ------------------------------------------------------------------ going on from the last fit


def test_warm_start_with_other_rows_goes_all_the_way() -> None:
    """Rows ten times as wide have a lower bound: that is no reason to stop."""
    rows = blobs(1)
    other = 10.0 * blobs(2) + 3.0
    gm = fw.GaussianMixture(2, warm_start=True, tol=1e-9, max_iter=1000).fit(rows)
    fresh = fw.GaussianMixture(2, tol=1e-9, max_iter=1000).fit(other)
    gm.fit(other)
    assert gm.n_iter_ > 2
    np.testing.assert_allclose(gm.lower_bound_, fresh.lower_bound_, atol=1e-6)


@pytest.mark.parametrize("factor", [1.0, 1e-100])  # the latter is computed in other units
def test_warm_start_with_the_same_rows_has_nothing_left_to_do(factor: float) -> None:
    rows = blobs(1) * factor
    gm = fw.GaussianMixture(2, warm_start=True, covariance_type="spherical").fit(rows)
    gm.fit(rows)
    assert gm.n_iter_ == 1
    assert gm.converged_


def test_warm_start_of_scaled_rows_converts_units() -> None:
    rows = blobs(1)
    gm = fw.GaussianMixture(2, warm_start=True, scale=True, max_iter=0).fit(rows)
    before = gm.means_in_data_units().values
    gm.fit(rows * 100.0 + 7.0)
    np.testing.assert_allclose(gm.means_in_data_units().values, before, rtol=1e-9)


@pytest.mark.parametrize("change", [{"covariance_type": "diag"}, {"scale": True}, {"covariance_type": "ppca"}])
def test_warm_start_from_another_kind_is_refused(change: dict[str, Any]) -> None:
    gm = fw.GaussianMixture(3, warm_start=True).fit(blobs(1))
    with pytest.raises(ParameterError, match=r"warm_start=True goes on from .* Set warm_start=False"):
        gm.set_params(**change).fit(blobs(1))


def test_a_flat_tied_covariance_is_told() -> None:
    rng = np.random.default_rng(0)
    rows = np.column_stack([rng.standard_normal((500, 2)), rng.integers(0, 2, 500)])
    with pytest.warns(CollapsedWarning, match="rows that are alike"):
        fw.GaussianMixture(2, covariance_type="tied", means_init=[[0, 0, 0], [0, 0, 1]]).fit(rows)
    with warnings.catch_warnings():
        warnings.simplefilter("error", CollapsedWarning)
        fw.GaussianMixture(1, covariance_type="tied").fit(rows)


def test_bounds_after_a_repair_are_those_of_the_last_run() -> None:
    rows = np.concatenate([blobs(3), np.full((2, 3), 40.0)])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FoldwiseWarning)
        gm = fw.GaussianMixture(3, tol=1e-8, max_iter=300, search="none").fit(rows)
    assert gm.manifest_.repairs
    assert len({step["run"] for step in gm.trace_}) > 1
    assert (np.diff(gm.lower_bounds_) >= -1e-8).all()  # a component on two equal rows is as narrow as rounding allows
    assert gm.lower_bounds_[-1] == gm.lower_bound_


# ------------------------------------------------------------------ weights of any size


@pytest.mark.parametrize("factor", [1e-60, 1e-44, 1e-38, 1e30, 1e45, 1e100])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kind", TYPES)
def test_the_unit_of_weights_does_not_matter(kind: str, dtype: Any, factor: float) -> None:
    rows, w = blobs(5, dtype=dtype), np.random.default_rng(0).uniform(0.5, 2.0, 300)
    one = fw.GaussianMixture(2, covariance_type=kind, max_iter=50).fit(rows, sample_weight=w)
    other = fw.GaussianMixture(2, covariance_type=kind, max_iter=50).fit(rows, sample_weight=w * factor)
    np.testing.assert_allclose(other.means_, one.means_, rtol=1e-5)
    np.testing.assert_allclose(other.covariances_, one.covariances_, rtol=1e-4, atol=1e-5)


# ------------------------------------------------------------------ smaller things


def test_rows_that_can_be_read_once_are_enough() -> None:
    rows, w = blobs(5), np.random.default_rng(0).uniform(0.5, 2.0, 300)
    labels = fw.GaussianMixture(2).fit_predict(rows)
    np.testing.assert_array_equal(fw.GaussianMixture(2).fit_predict(_once(rows)), labels)
    gm = fw.GaussianMixture(3).fit(_once(rows))
    frame = _once(rows).read_all()
    assert gm.merge(_once(rows), 2).merging_ == gm.merge(frame, 2).merging_
    assert gm.merge(_once(rows), 2, sample_weight=w).merging_ == gm.merge(frame, 2, sample_weight=w).merging_


def _once(rows: np.ndarray) -> Any:
    pa = pytest.importorskip("pyarrow")
    table = pa.table({f"x{j}": rows[:, j] for j in range(rows.shape[1])})
    return pa.RecordBatchReader.from_batches(table.schema, table.to_batches())


def test_sums_of_huge_parameters_do_not_overflow() -> None:
    assert in_range(np.full(10, 1e308), "means").shape == (10,)
    with pytest.raises(DataError, match="leave the range"):
        in_range(np.zeros(3), "covariances")


@pytest.mark.parametrize("kind", ["diag", "spherical"])
def test_drawing_from_many_columns_needs_no_matrices(kind: str) -> None:
    d, k = 3000, 20
    gm = fw.GaussianMixture(k, covariance_type=kind, random_state=0)
    gm.weights_, gm.means_ = np.full(k, 1 / k), np.arange(k)[:, None] * np.ones(d)
    gm.covariances_ = np.full((k, d) if kind == "diag" else k, 4.0)
    tracemalloc.start()
    try:
        rows, labels = gm.sample(200)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 60e6  # a matrix has 72 MB
    np.testing.assert_allclose((rows - labels[:, None]).std(), 2.0, rtol=0.01)


def test_float32_rows_and_means_beyond_float32() -> None:
    rows = blobs(1) * 1e60
    gm = fw.GaussianMixture(2).fit(rows)
    narrow = np.zeros((3, 3), dtype=np.float32)
    np.testing.assert_array_equal(gm.predict(narrow), gm.predict(narrow.astype(float)))
    np.testing.assert_allclose(gm.score_samples(narrow), gm.score_samples(narrow.astype(float)))
    assert np.isfinite(gm.predict_proba(narrow)).all()


@pytest.mark.parametrize("number", [2.5, True, "2"])
def test_numbers_that_are_not_whole_are_refused(number: Any) -> None:
    gm = fw.GaussianMixture(3).fit(blobs())
    with pytest.raises(ParameterError, match="a whole number"):
        gm.merge(blobs(), number)
    with pytest.raises(ParameterError, match="a whole number"):
        gm.sample(number)
