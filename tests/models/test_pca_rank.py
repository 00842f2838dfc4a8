"""How many components (SPEC A9): a number, a share, rules with uncertainty."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import foldwise as fw
from foldwise.errors import ParameterError
from foldwise.models.pca.noise_edge import NoiseEdge
from foldwise.models.pca.rank import by_broken_stick, by_gavish_donoho, by_minka, by_parallel_analysis, by_share

RULES = ["mle", "parallel", "gavish-donoho"]


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("true", [1, 3, 6])
@pytest.mark.parametrize("seed", [0, 1])
def test_planted_rank_is_found(planted: Any, rule: str, true: int, seed: int) -> None:
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
    values, vectors = np.linalg.eigh(covariance)
    variances, directions = np.maximum(values[::-1], 0), vectors[:, ::-1].T
    choices = [
        by_share(variances, variances.sum(), 0.8, n),
        by_minka(variances, n, d),
        by_minka(variances, n, d, none=True),
        by_parallel_analysis(variances, directions, covariance.diagonal(), n),
        by_broken_stick(variances, variances.sum(), n, d),
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


@pytest.mark.parametrize("rule", [*RULES, "broken-stick", 0.9])
def test_rules_on_one_column_and_on_equal_rows(rule: Any) -> None:
    one = fw.PCA(rule).fit(np.arange(20.0)[:, None])
    assert one.n_components_ in (0, 1)
    same = fw.PCA(rule).fit(np.full((20, 3), 7.0))
    assert 0 <= same.n_components_ <= 3
    assert same.transform(np.full((2, 3), 7.0)).shape == (2, same.n_components_)


# ---------------------------------------------------------------- parallel analysis without random numbers


@pytest.mark.parametrize(("n", "d"), [(1000, 10), (100, 100), (50, 400)])
def test_edge_and_spread_for_equal_variances_are_johnstones(n: int, d: int) -> None:
    noise = NoiseEdge.of(np.full(d, 3.0), n)
    assert noise.edge == pytest.approx(3 * (1 + np.sqrt(d / n)) ** 2, rel=1e-12)
    spread = (np.sqrt(n) + np.sqrt(d)) * np.cbrt(1 / np.sqrt(n) + 1 / np.sqrt(d)) / n
    assert noise.spread == pytest.approx(3 * spread, rel=1e-12)


@given(
    variances=st.lists(st.floats(0.01, 100), min_size=1, max_size=12),
    repeated=st.integers(1, 4),
    freedom=st.integers(2, 500),
)
def test_edge_solves_silversteins_equation(variances: list[float], repeated: int, freedom: int) -> None:
    """The edge is the least value of z(m) = -1/m + sum t / (1 + t m) / n between -1 / max t and 0."""
    from scipy.optimize import minimize_scalar

    t = np.repeat(variances, repeated)
    noise = NoiseEdge.of(np.array(variances), freedom, np.full(len(variances), float(repeated)))

    def z(log: float) -> float:
        m = -1 / (t.max() * (1 + np.exp(log)))
        return float(-1 / m + np.sum(t / (1 + t * m)) / freedom)

    found = minimize_scalar(z, bounds=(-12, 12), method="bounded", options={"xatol": 1e-10})
    assert noise.edge == pytest.approx(found.fun, rel=1e-6)
    assert noise.edge == pytest.approx(NoiseEdge.of(t, freedom).edge, rel=1e-12)


def test_edge_is_that_of_noise() -> None:
    rng = np.random.default_rng(0)
    deviations = np.sqrt(np.linspace(0.3, 3, 40))
    largest = [
        float(np.linalg.eigvalsh(np.cov((rng.standard_normal((200, 40)) * deviations).T))[-1]) for _ in range(200)
    ]
    noise = NoiseEdge.of(deviations**2, 199)
    assert noise.level(0.5) == pytest.approx(np.median(largest), rel=0.02)
    assert 0.9 < np.mean(np.array(largest) < noise.level(0.95)) < 0.99


def test_no_noise_has_no_edge() -> None:
    assert NoiseEdge.of(np.zeros(3), 10).level(0.95) == 0
    assert NoiseEdge.of(np.ones(3), 0).edge == 0


def test_false_alarms_are_few(planted: Any) -> None:
    """At most about 5 % of tables of noise, or of noise beside strong components, have a component too many."""
    for strong in ([], [30.0, 20.0]):
        tables = [planted([*strong, *[1.0] * (12 - len(strong))], 150, seed=seed) for seed in range(60)]
        over = [fw.PCA("parallel").fit(x).n_components_ > len(strong) for x in tables]
        assert np.mean(over) <= 0.1, strong


def test_strong_components_do_not_hide_weak_ones(planted: Any) -> None:
    x = planted([1000.0, 2.0, *[1.0] * 18], 1000)
    assert fw.PCA("parallel").fit(x).n_components_ == 2


def test_a_column_with_a_large_variance_is_no_component() -> None:
    x = np.random.default_rng(0).standard_normal((400, 8)) * [10, 5, 1, 1, 1, 1, 1, 1]
    assert fw.PCA("parallel").fit(x).n_components_ == 0
    x[:, 2] += x[:, 0]
    assert fw.PCA("parallel").fit(x).n_components_ == 1


def test_parallel_analysis_of_exactly_flat_data() -> None:
    rng = np.random.default_rng(0)
    x = rng.standard_normal((50, 2)) @ rng.standard_normal((2, 12))
    assert fw.PCA("parallel").fit(x).n_components_ == 2


def test_parallel_analysis_needs_no_random_numbers(table: Any) -> None:
    first, second = (fw.PCA("parallel", random_state=seed).fit(table("wine")).rank_ for seed in (1, 2))
    np.testing.assert_array_equal(first.figures["null_95"], second.figures["null_95"])


# ---------------------------------------------------------------- the broken stick, and Minka's evidence


def test_broken_stick_by_hand() -> None:
    """Of a stick broken in three, the parts are (1 + 1/2 + 1/3) / 3 = 11/18, (1/2 + 1/3) / 3 = 5/18 and 1/9 on average."""
    choice = by_broken_stick(np.array([7.0, 2.0, 1.0]), 10.0, 1e9, 3)
    np.testing.assert_allclose(choice.figures["broken_stick"], [11 / 18, 5 / 18, 1 / 9])
    assert choice.chosen == choice.low == choice.high == 1
    assert by_broken_stick(np.array([6.0, 3.0, 1.0]), 10.0, 1e9, 3).chosen == 0  # 0.6 < 11/18, though 0.3 > 5/18
    assert by_broken_stick(np.array([6.2, 3.0, 0.8]), 10.0, 1e9, 3).chosen == 2
    few = by_broken_stick(np.array([6.2, 3.0, 0.8]), 10.0, 50, 3)
    assert (few.low, few.high) == (0, 3)


def test_evidence_is_scikit_learns() -> None:
    from sklearn.decomposition._pca import _assess_dimension

    variances = np.sort(np.random.default_rng(0).gamma(1.0, size=12))[::-1]
    evidence = by_minka(variances, 100, 12).figures["log_evidence"]
    expected = [_assess_dimension(variances, k, 100) for k in range(1, 12)]
    np.testing.assert_allclose(np.diff(evidence[1:]), np.diff(expected), rtol=1e-10)


def test_minka_may_say_none() -> None:
    variances = np.linspace(1.3, 0.75, 10)  # about as 500 rows of noise have them
    assert by_minka(variances, 500, 10).chosen >= 1  # as in scikit-learn
    assert by_minka(variances, 500, 10, none=True).chosen == 0
    assert by_minka(np.array([5.0, *variances]), 500, 11, none=True).chosen == 1
