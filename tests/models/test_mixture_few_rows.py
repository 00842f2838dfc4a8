"""Mixtures of so few rows that components cannot but be flat, and the quick test for flat ones."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import foldwise as fw
from foldwise.models.mixture import search
from foldwise.models.mixture.collapse import crowded, least_weight
from foldwise.models.mixture.covariance import COVARIANCE_TYPES
from foldwise.models.mixture.covariance.matrices import MatrixType


def full(d: int) -> MatrixType:
    kind = COVARIANCE_TYPES["full"].of_columns(d, None)
    assert isinstance(kind, MatrixType)
    return kind


def test_crowded_is_less_than_twice_the_rows_that_determine_a_covariance() -> None:
    assert crowded(full(9), weight=59.0, k=3)
    assert not crowded(full(9), weight=60.0, k=3)
    assert not crowded(COVARIANCE_TYPES["tied"].of_columns(9, None), weight=4.0, k=3)


def test_the_least_weight_to_start_from() -> None:
    assert least_weight(full(9), np.array([40.0, 40.0, 40.0])) == 10
    assert least_weight(full(9), np.array([30.0, 10.0, 5.0])) == pytest.approx(0.1 * 45 / 3)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_components_of_few_rows_are_left_as_k_means_found_them(dtype: type, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of four distant groups has fewer rows than columns: restarts would only take a group apart."""

    def searched(*given: object) -> None:
        raise AssertionError("no run can succeed on these rows")

    monkeypatch.setattr(search, "MixtureSearch", searched)
    rng = np.random.default_rng(0)
    groups = np.repeat(np.arange(4), [12, 14, 16, 18])
    x = (rng.normal(size=(60, 20)) + 50 * rng.normal(size=(4, 20))[groups]).astype(dtype)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = fw.GaussianMixture(4).fit(x)
    assert not any(step["restarted"] for step in model.outcome_.trace)
    assert model.collapsed_
    assert sorted(np.bincount(model.predict(x))) == [12, 14, 16, 18]
    assert len({(int(a), int(b)) for a, b in zip(groups, model.predict(x), strict=True)}) == 4


def by_eigenvalues(raw: np.ndarray, ridge: np.ndarray, whole: np.ndarray) -> bool:
    """Whether some direction in which all rows vary has a variance below the ridge."""
    size = np.sqrt(ridge)
    values, vectors = np.linalg.eigh(raw / size / size[:, None])
    spread = np.array([v @ (whole / size / size[:, None]) @ v for v in vectors.T])
    return bool(((values < 1) & (spread > 4)).any())


@pytest.mark.parametrize("constant", [False, True])
def test_flat_components_are_found_as_by_eigenvalues(constant: bool) -> None:
    rng, d, found = np.random.default_rng(1), 6, []
    for number in range(60):
        x = rng.normal(size=(20, d)) @ rng.normal(size=(d, d))
        if number % 2:
            x[:, 2] = x[:, 0] - x[:, 1] + 10.0 ** rng.uniform(-7, -3) * rng.normal(size=20)
        whole = np.cov((rng.normal(size=(200, d)) @ rng.normal(size=(d, d))).T) + np.eye(d)
        raw, ridge = np.cov(x.T), np.full(d, 1e-10)
        if constant:
            raw[3] = raw[:, 3] = whole[3] = whole[:, 3] = 0.0
        expected = by_eigenvalues(raw, ridge, whole)
        assert full(d).collapsed(raw[None], ridge, whole) == [expected]
        found.append(expected)
    assert any(found)
    assert not all(found)
