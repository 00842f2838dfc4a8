"""Mixtures of so few rows that components cannot but be flat, and the quick test for flat ones."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import foldwise as fw
from foldwise.models.mixture import search
from foldwise.models.mixture.collapse import crowded, least_weight
from foldwise.models.mixture.covariance import COVARIANCE_TYPES
from foldwise.models.mixture.covariance.matrices import MatrixType, inverse_factors


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


def test_columns_that_hardly_vary_in_a_component_are_found_without_eigenvectors(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A constant column of a component shows that it is flat; its eigenvectors, which take far longer, agree."""
    rng = np.random.default_rng(5)
    x = rng.standard_normal((400, 6)) @ rng.standard_normal((6, 6))
    whole, ridge = np.cov(x.T), np.full(6, 1e-8)
    part = x[:200].copy()
    part[:, 2] = 1.0
    raw = np.cov(part.T, bias=True)
    assert by_eigenvalues(raw, ridge, whole)
    monkeypatch.setattr(np.linalg, "eigh", None)
    assert full(6).collapsed(raw[None], ridge, whole) == [True]


@pytest.mark.parametrize("seed", range(40))
def test_the_column_shortcut_never_disagrees_with_eigenvectors(seed: int) -> None:
    """Variances about the ridge, columns of very different spread, ones that are constant in the whole."""
    rng = np.random.default_rng(seed)
    d = int(rng.integers(2, 9))
    kind = full(d)
    for _ in range(25):
        ridge = 10.0 ** rng.uniform(-10, -6, d)
        x = rng.standard_normal((60, d)) @ rng.standard_normal((d, d)) * 10.0 ** rng.uniform(-5, 1, d)
        x[:, rng.random(d) < 0.2] = 0.0
        part = x[:30] * np.where(rng.random(d) < 0.4, 10.0 ** rng.uniform(-9, 0, d), 1.0)
        part[:, rng.random(d) < 0.2] = 0.0
        whole, raw = np.cov(x.T, bias=True), np.cov(part.T, bias=True)
        assert kind.collapsed(raw[None], ridge, whole) == [by_eigenvalues(raw, ridge, whole)]


@pytest.mark.parametrize(("k", "d"), [(1, 1), (7, 3), (5, 150), (2, 300)])
def test_factors_of_covariances_are_the_same_however_many_are_made_together(k: int, d: int) -> None:
    rng = np.random.default_rng(d)
    half = rng.standard_normal((k, d, d + 2))
    covariances = half @ np.swapaxes(half, 1, 2)
    found = inverse_factors(covariances)
    assert np.array_equal(found, np.concatenate([inverse_factors(covariances[j : j + 1]) for j in range(k)]))
    np.testing.assert_allclose(found @ np.swapaxes(found, 1, 2) @ covariances, np.stack([np.eye(d)] * k), atol=1e-5)
