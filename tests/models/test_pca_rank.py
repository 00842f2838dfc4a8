"""How many components (SPEC A9): a number, a share, rules with uncertainty, a score of a final task."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import foldwise as fw
from foldwise.errors import ParameterError
from foldwise.models.pca.rank import by_gavish_donoho, by_minka, by_parallel_analysis, by_share

RULES = ["mle", "parallel", "gavish-donoho"]


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("true", [1, 3, 6])
@pytest.mark.parametrize("seed", [0, 1])
def test_planted_rank_is_found(planted: Any, rule: str, true: int, seed: int) -> None:
    # Not stronger: the null of parallel analysis keeps each column's variance, strong ones hide weak ones.
    x = planted([*np.linspace(3.2, 2.5, true), *[1.0] * (20 - true)], 1000, seed=seed)
    pca = fw.PCA(rule).fit(x)
    assert pca.n_components_ == true
    assert pca.components_.shape == (true, 20)
    assert pca.rank_.rule == rule
    assert pca.rank_.low <= true <= pca.rank_.high


@pytest.mark.parametrize("rule", ["parallel", "gavish-donoho"])
@pytest.mark.parametrize(("n", "d"), [(1000, 20), (50, 100)])
def test_pure_noise_has_no_component(rule: str, n: int, d: int) -> None:
    x = np.random.default_rng(4).standard_normal((n, d))
    pca = fw.PCA(rule).fit(x)
    assert pca.n_components_ == 0
    assert pca.transform(x).shape == (n, 0)
    np.testing.assert_allclose(pca.inverse_transform(np.zeros((2, 0))), np.tile(x.mean(axis=0), (2, 1)), atol=1e-12)


@pytest.mark.parametrize("rule", ["parallel", "gavish-donoho"])
def test_planted_rank_of_wide_data(rule: str) -> None:
    rng = np.random.default_rng(0)
    x = rng.standard_normal((60, 3)) * 3 @ rng.standard_normal((3, 300)) + rng.standard_normal((60, 300))
    assert fw.PCA(rule).fit(x).n_components_ == 3


@pytest.mark.parametrize("rule", RULES)
def test_rules_do_not_depend_on_units(planted: Any, rule: str) -> None:
    x = planted([5, 4, *[1.0] * 8], 500)
    assert {fw.PCA(rule).fit(x * size + shift).n_components_ for size, shift in [(1, 0), (1e-9, 0), (1e6, 1e9)]} == {2}


def test_minka_agrees_with_scikit_learn(table: Any) -> None:
    from sklearn.decomposition import PCA

    for name in ("iris", "wine", "banknote", "decathlon", "fgl_glass"):
        x = table(name)
        assert fw.PCA("mle").fit(x).n_components_ == PCA("mle", svd_solver="full").fit(x).n_components_, name


def test_minka_needs_more_rows_than_columns() -> None:
    with pytest.raises(ParameterError, match="n_samples >= n_features"):
        fw.PCA("mle").fit(np.random.default_rng(0).standard_normal((5, 9)))


@pytest.mark.parametrize("share", [0.5, 0.8, 0.95, 0.999])
def test_share_is_the_least_number_that_reaches_it(table: Any, share: float) -> None:
    for name in ("iris", "wine", "fgl_glass"):
        x = table(name)
        ratios = np.cumsum(fw.PCA(scale=True).fit(x).explained_variance_ratio_)
        pca = fw.PCA(share, scale=True).fit(x)
        k = pca.n_components_
        assert ratios[k - 1] > share
        assert k == 1 or ratios[k - 2] <= share
        np.testing.assert_allclose(pca.rank_.figures["cumulative_share"], ratios, rtol=1e-12)


def test_share_reaches_exact_decimals() -> None:
    """Variances 8, 1, 1: the first is exactly four fifths, which the rule, as scikit-learn's, must exceed."""
    choice = by_share(np.array([8.0, 1.0, 1.0]), 10.0, 0.8, 1e9)
    assert choice.chosen == 2
    assert by_share(np.array([8.0, 1.0, 1.0]), 10.0, 0.79, 1e9).chosen == 1


def test_share_is_surer_with_more_rows() -> None:
    variances = np.array([5.0, 3.0, 1.0, 0.5, 0.3, 0.2])
    widths = [by_share(variances, 10.0, 0.88, n) for n in (10, 100, 100_000)]
    ranges = [choice.high - choice.low for choice in widths]
    assert ranges[0] > ranges[1] > ranges[2] == 0


@given(seed=st.integers(0, 10_000), n=st.integers(12, 200), d=st.integers(2, 10))
def test_ranges_contain_what_was_chosen(seed: int, n: int, d: int) -> None:
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((n, d)) @ rng.standard_normal((d, d))
    covariance = np.cov(x.T)
    variances = np.linalg.eigvalsh(covariance)[::-1]
    choices = [
        by_share(variances, variances.sum(), 0.8, n),
        by_minka(variances, n, d),
        by_parallel_analysis(variances, covariance.diagonal(), n, 0, repeats=20),
        by_gavish_donoho(variances, n, d),
    ]
    for choice in choices:
        assert 0 <= choice.low <= choice.chosen <= choice.high <= d, choice
        assert choice.meaning


def test_minka_gives_probabilities(planted: Any) -> None:
    rank = fw.PCA("mle").fit(planted([3, 2, 1.3, 1, 1, 1], 150)).rank_
    chance = rank.figures["probability"]
    assert chance.sum() == pytest.approx(1)
    assert chance.argmax() == rank.chosen
    assert chance[rank.low : rank.high + 1].sum() >= 0.95


@pytest.mark.parametrize("rule", [*RULES, 0.9])
def test_rules_on_one_column_and_on_equal_rows(rule: Any) -> None:
    one = fw.PCA(rule).fit(np.arange(20.0)[:, None])
    assert one.n_components_ in (0, 1)
    same = fw.PCA(rule).fit(np.full((20, 3), 7.0))
    assert 0 <= same.n_components_ <= 3
    assert same.transform(np.full((2, 3), 7.0)).shape == (2, same.n_components_)


def test_rules_are_the_same_in_every_call(table: Any) -> None:
    first, second = (fw.PCA("parallel").fit(table("wine")).rank_ for _ in range(2))
    np.testing.assert_array_equal(first.figures["null_95"], second.figures["null_95"])
