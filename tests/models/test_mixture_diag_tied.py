"""Covariance type diag-tied: one variance for each column, shared by all components."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import multivariate_normal

import foldwise as fw
from foldwise.cli import main
from foldwise.errors import ParameterError


def rows(n: int = 600, dtype: Any = np.float64) -> np.ndarray:
    rng = np.random.default_rng(0)
    means = np.array([[0.0, 0.0, 0.0], [5.0, 0.0, 30.0], [0.0, 6.0, -30.0]])
    return (means[rng.integers(3, size=n)] + rng.standard_normal((n, 3)) * [1.0, 0.5, 8.0]).astype(dtype)


def fitted(x: np.ndarray, k: int = 3, **options: Any) -> fw.GaussianMixture:
    return fw.GaussianMixture(k, covariance_type="diag-tied", random_state=0, **options).fit(x)


def test_a_case_worked_by_hand() -> None:
    """Groups so far apart that responsibilities are 0 and 1: (2 + 2 + 8) / 5 and (0.5 + 0.5 + 2) / 5 are the variances."""
    x = np.array([[-1.0, 10.0], [1.0, 11.0], [998.0, 9.0], [1000.0, 10.0], [1002.0, 11.0]])
    gm = fitted(x, 2, reg_covar=0)
    np.testing.assert_allclose(gm.weights_, [0.6, 0.4])
    np.testing.assert_allclose(gm.means_, [[1000.0, 10.0], [0.0, 10.5]], atol=1e-12)
    np.testing.assert_allclose(gm.covariances_, [10 / 5, 2.5 / 5])
    np.testing.assert_allclose(gm.precisions_, [0.5, 2.0])
    assert gm.predict(x).tolist() == [1, 1, 0, 0, 0]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_densities_are_scipys_and_one_step_is_that_of_em(dtype: Any) -> None:
    x = rows(dtype=dtype)
    gm = fitted(x, max_iter=200, tol=1e-12 if dtype == np.float64 else 1e-6)
    each = np.stack([multivariate_normal(m, np.diag(gm.covariances_)).logpdf(x) for m in gm.means_], axis=1)
    joint = each + np.log(gm.weights_)
    np.testing.assert_allclose(gm.score_samples(x), np.logaddexp.reduce(joint, axis=1), rtol=1e-5)
    shares = np.exp(joint - np.logaddexp.reduce(joint, axis=1)[:, None])
    means = shares.T @ x.astype(np.float64) / shares.sum(axis=0)[:, None]
    pooled = sum(shares[:, j] @ (x.astype(np.float64) - means[j]) ** 2 for j in range(3)) / len(x)
    np.testing.assert_allclose(gm.means_, means, rtol=1e-4, atol=1e-4)  # a fixed point of EM
    np.testing.assert_allclose(gm.covariances_, pooled, rtol=1e-4)


def test_it_is_tied_where_columns_are_independent_in_groups() -> None:
    x = rows(5000)
    gm, tied = fitted(x), fw.GaussianMixture(3, covariance_type="tied", random_state=0).fit(x)
    np.testing.assert_allclose(gm.covariances_, np.diagonal(tied.covariances_), rtol=0.02)
    assert gm.lower_bound_ <= tied.lower_bound_ + 1e-6


@pytest.mark.parametrize("options", [{}, {"reg_covar": 0.1}, {"init_params": "random"}, {"scale": True}])
def test_the_bound_never_falls(options: dict[str, Any]) -> None:
    gm = fitted(rows(), 4, tol=1e-6, max_iter=1000, **options)
    assert gm.outcome_.steps > 5
    for run in {step["run"] for step in gm.trace_}:
        bounds = [step["lower_bound"] for step in gm.trace_ if step["run"] == run]
        assert (np.diff(bounds) >= -1e-12 * abs(gm.lower_bound_)).all()


def test_it_has_few_parameters_and_takes_precisions() -> None:
    x = rows()
    gm = fitted(x)
    assert gm.n_parameters() == 2 + 9 + 3
    assert gm.covariances_.shape == gm.precisions_cholesky_.shape == (3,)
    again = fitted(x, weights_init=gm.weights_, means_init=gm.means_, precisions_init=gm.precisions_)
    np.testing.assert_allclose(again.means_, gm.means_, rtol=1e-3, atol=1e-3)
    with pytest.raises(ParameterError, match="'diag-tied precision' should be positive"):
        fitted(x, precisions_init=[1.0, -1.0, 1.0])
    with pytest.raises(ParameterError, match="should have the shape of"):
        fitted(x, precisions_init=np.ones((3, 3)))


def test_what_is_drawn_has_its_shape() -> None:
    gm = fitted(rows())
    drawn, labels = gm.sample(60_000)
    spread = sum(((drawn[labels == j] - gm.means_[j]) ** 2).sum(axis=0) for j in range(3)) / len(drawn)
    np.testing.assert_allclose(spread, gm.covariances_, rtol=0.03)


@pytest.mark.parametrize("factor", [1e-140, 1e140, [1e-150, 1.0, 1e150]])
def test_units_do_not_matter(factor: Any) -> None:
    x = rows()
    gm, other = fitted(x), fitted(x * factor)
    np.testing.assert_allclose(other.means_ / factor, gm.means_, rtol=1e-8, atol=1e-8)
    np.testing.assert_array_equal(other.predict(x * factor), gm.predict(x))


def test_a_flat_covariance_is_nobodys_own_and_says_so() -> None:
    x = np.column_stack([rows()[:, 0], np.repeat([0.0, 1.0], 300)])
    with pytest.warns(UserWarning, match="alike in some direction"):
        gm = fitted(x, 2)
    assert gm.collapsed_


def test_weights_threads_merging_warm_start_and_files(tmp_path: Path) -> None:
    x, w = rows(), np.random.default_rng(1).integers(0, 3, 600).astype(float)
    one = fitted(x, 4, n_threads=1)
    np.testing.assert_array_equal(fitted(x, 4, n_threads=3).covariances_, one.covariances_)
    weighted = fw.GaussianMixture(3, covariance_type="diag-tied").fit(x, sample_weight=w)
    repeated = fw.GaussianMixture(3, covariance_type="diag-tied").fit(np.repeat(x, w.astype(int), axis=0))
    np.testing.assert_allclose(weighted.covariances_, repeated.covariances_, rtol=1e-4)
    merged = one.merge(x, 3)
    assert merged.n_clusters_ == 3
    fw.save(merged, tmp_path / "gm.fw")
    again = fw.load(tmp_path / "gm.fw")
    np.testing.assert_array_equal(again.predict_proba(x), merged.predict_proba(x))
    np.testing.assert_array_equal(again.covariance_matrices()[2], np.diag(one.covariances_))
    warm = fw.GaussianMixture(3, covariance_type="diag-tied", warm_start=True).fit(x)
    bound = warm.lower_bound_
    assert warm.fit(x).lower_bound_ >= bound - 1e-12


def test_it_is_chosen_where_it_is_true(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    x = rows()
    kinds = ("full", "tied", "diag", "spherical", "diag-tied")
    found = fw.choose_mixture(x, range(1, 5), kinds)
    assert (found.best.covariance_type, found.best.n_components) == ("diag-tied", 3)
    assert found.best.parameters == 14
    for richer in ("diag", "tied"):  # which start from its result, too
        for k in (2, 3, 4):
            grid = found.grid("log_likelihood")
            assert grid[richer][k - 1] >= grid["diag-tied"][k - 1] - 1e-3
    np.save(tmp_path / "x.npy", x)
    assert main(["mixture", str(tmp_path / "x.npy"), "-k", "3", "--type", "diag-tied"]) == 0
    assert "all ellipsoids alike, along the columns" in " ".join(capsys.readouterr().out.split())
