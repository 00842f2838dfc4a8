"""Collinear columns are found before mixtures are compared, and one floor serves all numbers of components."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import foldwise as fw
from foldwise.fold.passes import Passes
from foldwise.models.mixture.collinear import CollinearColumnsWarning, collinear_columns


def columns(x: np.ndarray) -> tuple[int, ...]:
    return collinear_columns(Passes(fw.scan(x))).columns


def with_sum(seed: int) -> np.ndarray:
    x = np.random.default_rng(seed).standard_normal((300, 3))
    return np.column_stack([x, x[:, 0] + x[:, 1]])


def test_by_hand() -> None:
    """y = 2 x is a combination, y = x^2 is not; of two equal columns the second is told."""
    x = np.arange(6.0)
    assert columns(np.column_stack([x, 2 * x + 1])) == (1,)
    assert columns(np.column_stack([x, x**2])) == ()
    assert columns(np.column_stack([x**2, x, x])) == (2,)


@pytest.mark.parametrize(("noise", "told"), [(0.0, True), (1e-6, True), (1e-2, False)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("offset", [0.0, 1e4])
def test_nearly_a_combination(noise: float, told: bool, dtype: Any, offset: float) -> None:
    x = with_sum(0)
    x[:, 3] += noise * np.random.default_rng(1).standard_normal(len(x))
    assert columns((x + (0.0 if dtype == np.float32 else offset)).astype(dtype)) == ((3,) if told else ())


def test_weights_constants_and_units() -> None:
    x = np.column_stack([with_sum(0), np.full(300, 7.0)]) * np.array([1.0, 1e-9, 1e9, 1.0, 1.0])
    x[:, 3] = x[:, 0] + 1e9 * x[:, 1]
    assert columns(x) == (3,)  # the constant is told elsewhere
    w = np.zeros(300)
    w[:2] = 1.0
    few = collinear_columns(Passes(fw.scan(x, weights=w)))
    assert few.few_rows
    assert few.rows == 2


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("kind", ["sum", "twice"])
def test_one_gaussian_with_a_collinear_column_is_one(seed: int, kind: str) -> None:
    """It was the largest number tried, for every seed: the ridge shrank as components did."""
    x = with_sum(seed)
    if kind == "twice":
        x = x[:, [0, 1, 2, 0]]
    with pytest.warns(CollinearColumnsWarning, match="linear combinations of others.*x3.*Leave them out"):
        found = fw.choose_mixture(x, range(1, 6), ("full",))
    assert found.best.n_components == 1
    assert found.collinear == ("x3",)
    without = fw.choose_mixture(x[:, :3], range(1, 6), ("full",))
    assert without.best.n_components == 1
    assert without.collinear == ()


def test_groups_are_found_all_the_same() -> None:
    x = with_sum(0)
    x[:100, :2] += 8
    x[:, 3] = x[:, 0] + x[:, 1]
    with pytest.warns(CollinearColumnsWarning):
        found = fw.choose_mixture(x, range(1, 5), ("full", "tied"))
    assert found.best.n_components == 2
    assert "Linear combinations of other columns: x3" in str(found)


def test_fewer_rows_than_columns() -> None:
    """A BIC of -8000 for noise was not worth a word."""
    x = np.random.default_rng(0).standard_normal((20, 50))
    with pytest.warns(CollinearColumnsWarning, match="20 rows are too few for covariances of 50 columns"):
        found = fw.choose_mixture(x, range(1, 4))
    assert found.best.covariance_type in ("diag", "spherical")
    assert all(e.collapsed for e in found.entries if e.covariance_type in ("full", "tied") and not e.reason)


def test_a_given_floor_is_kept() -> None:
    with pytest.warns(CollinearColumnsWarning):
        found = fw.choose_mixture(with_sum(0), (1, 2), ("full",), reg_covar=1e-3)
    np.testing.assert_allclose(found.best_model.ridge_, 1e-3)


def test_total_is_the_same_floor_for_every_number() -> None:
    x = np.concatenate(
        [np.random.default_rng(0).standard_normal((100, 2)), 50 + np.random.default_rng(1).standard_normal((100, 2))]
    )
    floors = [fw.GaussianMixture(k, reg_covar="total").fit(x).ridge_ for k in (1, 2, 3)]
    np.testing.assert_allclose(floors[0], 1e-10 * x.var(axis=0), rtol=1e-9)
    np.testing.assert_array_equal(floors[0], floors[1])
    np.testing.assert_array_equal(floors[0], floors[2])


def test_far_more_columns_than_rows_are_told_at_once() -> None:
    x = np.random.default_rng(0).standard_normal((20, 1500))
    found = collinear_columns(Passes(fw.scan(x)))
    assert found.few_rows
    assert found.rows == 20
    for kind, needed in (("full", "3,002"), ("tied", "1,501")):
        with pytest.raises(
            fw.errors.DataError, match=f"20 rows cannot determine .* 1,500 columns .*at least {needed} rows"
        ):
            fw.GaussianMixture(2, covariance_type=kind).fit(x)
    with pytest.warns(CollinearColumnsWarning, match="20 rows are too few for covariances of 1,500 columns"):
        chosen = fw.choose_mixture(x, [1, 2], ("full", "spherical"))
    assert chosen.best.covariance_type == "spherical"
    assert "cannot determine" in chosen.entries[0].reason
