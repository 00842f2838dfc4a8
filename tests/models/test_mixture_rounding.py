"""Mixtures in which a component has a direction without width that rounding alone tells from zero."""

from __future__ import annotations

import numpy as np
import pytest

import foldwise as fw
from foldwise.models.mixture.covariance import COVARIANCE_TYPES


def least_correlations(model: fw.GaussianMixture) -> list[float]:
    """The least eigenvalue of each component's correlations."""
    size = np.sqrt(np.diagonal(model.covariances_, axis1=1, axis2=2))
    return [float(np.linalg.eigvalsh(one)[0]) for one in model.covariances_ / size[:, :, None] / size[:, None, :]]


@pytest.mark.parametrize("seed", range(8))
def test_no_covariance_is_left_to_rounding(seed: int) -> None:
    """The ridge belongs to the narrow groups; beside the wide one, whose columns add up, it is below rounding.

    Before, some of these covariances passed as positive definite here and failed elsewhere, as with NumPy's Cholesky.
    """
    rng = np.random.default_rng(seed)
    group = np.repeat([0, 1, 2], [500, 400, 100])
    x = np.where(group[:, None] == 2, 1.0, 1e-6) * rng.normal(size=(1000, 3)) + 10 * group[:, None]
    x[group == 2, 2] = x[group == 2, :2].sum(axis=1)
    model = fw.GaussianMixture(3).fit(x)
    np.testing.assert_array_equal(np.bincount(model.predict(x)), [500, 400, 100])
    assert least_correlations(model)[2] > 1e-15
    assert min(least_correlations(model)[:2]) > 0.5
    for one in model.covariances_:
        np.linalg.cholesky(one)  # which refuses what is not positive definite
    again = fw.GaussianMixture(3, n_threads=3).fit(x)
    np.testing.assert_array_equal(again.covariances_, model.covariances_)


def test_small_eigenvalues_of_many_columns_are_not_rounding() -> None:
    """200 columns of which 195 are nearly sums of others: far above rounding, though the trace of the inverse is large."""
    rng = np.random.default_rng(0)
    kind, d = COVARIANCE_TYPES["full"].of_columns(200, None), 200
    axes = np.linalg.qr(rng.normal(size=(d, d)))[0]
    for least, expected in ((1e-10, False), (1e-11, False), (1e-14, True)):
        covariances = ((axes * np.concatenate([np.full(5, 40.0), np.full(195, least)])) @ axes.T)[None]
        assert (kind.sound(covariances, np.full(d, 1e-20), 1e-10) is covariances) is not expected


def test_a_ridge_that_is_given_stays_the_callers() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(200, 2)) @ [[1.0, 1.0], [0.0, 1e-6]]
    model = fw.GaussianMixture(1, reg_covar=0.0).fit(x)
    np.testing.assert_allclose(model.covariances_[0], np.cov(x.T, bias=True), rtol=1e-12)


def test_what_is_rounding() -> None:
    kind = COVARIANCE_TYPES["full"].of_columns(2, None)

    def correlated(left: float, units: float = 1.0) -> np.ndarray:
        size = np.array([1.0, units])
        return np.array([np.eye(2), [[1.0, 1.0 - left], [1.0 - left, 1.0]]]) * size * size[:, None]

    for units in (1.0, 1e9):
        for left, expected in ((1e-3, False), (1e-12, False), (7e-15, False), (3e-16, True)):
            covariances = correlated(left, units)
            assert kind.is_rounding(covariances, kind.whiten(covariances)) is expected
    mended = kind.sound(correlated(3e-16), np.full(2, 1e-20), 1e-10)
    np.testing.assert_array_equal(mended[0], np.eye(2))
    assert np.linalg.eigvalsh(mended[1])[0] == pytest.approx(8 * np.finfo(np.float64).eps, rel=0.2)  # no further than needed
    singular = kind.sound(correlated(0.0), np.full(2, 1e-20), 1e-10)
    assert np.linalg.eigvalsh(singular[1])[0] == pytest.approx(1e-10, rel=1e-4)
    diagonal = COVARIANCE_TYPES["diag"].of_columns(2, None)
    assert not diagonal.is_rounding(np.full((1, 2), 1e-300), np.full((1, 2), 1e150))
