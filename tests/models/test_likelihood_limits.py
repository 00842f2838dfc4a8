"""Tests of fit where the support begins or ends with an estimate, where values are rounded, and where they are equal."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy import stats

import foldwise as fw


def goodness(x: Any, family: str, resamples: int = 49, **options: Any) -> Any:
    fit: Any = fw.fit_distribution(x, family, **options)
    return fit.goodness_of_fit(resamples=resamples)


def anderson_darling(u: np.ndarray) -> float:
    """As in the textbook, of probabilities."""
    u, n = np.sort(u), len(u)
    terms = [(2 * i + 1) * (math.log(u[i]) + math.log1p(-u[n - 1 - i])) for i in range(n)]
    return -n - math.fsum(terms) / n


# ---------------------------------------------------------------- estimated limits


def test_uniform_by_hand() -> None:
    """Between 0 and 1, which are the least and the greatest value, two values are left: a quarter and three quarters."""
    found = goodness([0.75, 0.0, 1.0, 0.25], "uniform")
    by_hand = -2 - (2 * math.log(0.25) + 6 * math.log(0.75)) / 2
    assert found.statistics["Anderson-Darling"] == pytest.approx(by_hand)
    assert found.statistics["Kolmogorov-Smirnov"] == pytest.approx(0.25)


def test_given_the_least_value_paretos_logarithms_are_exponential() -> None:
    x = 2.0 * (1 + np.random.default_rng(0).pareto(2.5, 80))
    logs = np.log(x / x.min())
    rate = len(x) / logs.sum()
    expected = anderson_darling(-np.expm1(-rate * logs[logs > 0]))
    assert goodness(x, "pareto").statistics["Anderson-Darling"] == pytest.approx(expected, rel=1e-9)
    moved = np.log(x)
    assert goodness(moved, "shifted-exponential").statistics["Anderson-Darling"] == pytest.approx(expected, rel=1e-9)


def test_a_given_limit_is_tested_as_it_is() -> None:
    x = np.random.default_rng(1).uniform(0.1, 0.9, 40)
    found = goodness(x, "uniform", fixed={"low": 0.0, "high": 1.0})
    assert found.statistics["Anderson-Darling"] == pytest.approx(anderson_darling(x), rel=1e-9)
    half = goodness(x, "uniform", fixed={"low": 0.0})
    inner = np.sort(x)[:-1] / x.max()
    assert half.statistics["Anderson-Darling"] == pytest.approx(anderson_darling(inner), rel=1e-9)


@pytest.mark.parametrize("family", ["uniform", "pareto", "shifted-exponential"])
def test_a_wrong_family_with_estimated_limits_is_found_out(family: str) -> None:
    """The statistic was infinite, for the sample and for every resample, so the p-value was 1 whatever the data."""
    x = np.random.default_rng(0).normal(20.0, 3.0, 200)
    found = goodness(x, family)
    assert all(math.isfinite(value) for value in found.statistics.values())
    assert found.p_value == 1 / 50


DRAW: dict[str, Any] = {
    "uniform": lambda rng, n: rng.uniform(3.0, 7.0, n),
    "pareto": lambda rng, n: 2.0 * (1.0 + rng.pareto(2.5, n)),
    "shifted-exponential": lambda rng, n: 5.0 + rng.exponential(2.0, n),
}


@pytest.mark.parametrize("family", DRAW)
@pytest.mark.parametrize("decimals", [None, 1])
def test_p_values_of_the_right_family_are_uniform(family: str, decimals: int | None) -> None:
    p_values = []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        x = DRAW[family](rng, 25)
        x = x if decimals is None else np.round(x, decimals)
        fit: Any = fw.fit_distribution(x, family)
        p_values.append(fit.goodness_of_fit(resamples=19, random_state=seed).p_value)
    assert 0.35 < np.mean(p_values) < 0.65
    assert np.mean(np.array(p_values) <= 0.2) <= 0.4
    assert max(p_values) <= 1.0
    assert len(set(p_values)) > 8


def test_limits_leave_too_few_values() -> None:
    assert goodness([1.0, 2.5, 4.0], "uniform").p_values == {}
    assert "too few values" in goodness([1.0, 2.5, 4.0], "uniform").note


def test_repetitions_are_tested_as_such() -> None:
    x, w = np.random.default_rng(2).uniform(size=40), np.arange(40) % 3
    here, there = goodness(x, "uniform", sample_weight=w), goodness(np.repeat(x, w), "uniform")
    assert here.statistics == pytest.approx(there.statistics)
    assert here.p_values == there.p_values


# ---------------------------------------------------------------- exact zeros, ties, rounding


def test_one_exact_zero_does_not_decide() -> None:
    x = np.random.default_rng(3).exponential(2.0, 200)
    x[17] = 0.0
    found = goodness(x, "exponential")
    assert math.isfinite(found.statistics["Anderson-Darling"])
    assert 0.05 < found.p_value < 1
    x[:60] = 0.0
    assert goodness(x, "exponential").p_value == 1 / 50


def test_many_values_at_a_limit_are_no_uniform_distribution() -> None:
    x = np.minimum(np.random.default_rng(4).uniform(size=200), 0.8)
    assert goodness(x, "uniform").p_value == 1 / 50


@pytest.mark.parametrize(("deviation", "n"), [(0.7, 400), (7.0, 2000)])
def test_rounded_values_are_compared_with_rounded_samples(deviation: float, n: int) -> None:
    """Unrounded resamples never have such ties: the right family was refused."""
    rng = np.random.default_rng(5)
    x = np.round(rng.normal(170.0, deviation, n))
    found = goodness(x, "normal", resamples=39)
    assert found.p_value > 0.05
    assert "rounded to multiples of 1, as the values are" in found.note
    assert goodness(np.round(rng.exponential(10.0, 400)), "normal", resamples=39).p_value == 1 / 40


def test_spread_over_the_rounding_interval_by_hand() -> None:
    """Values 0, 0, 1 of a given uniform distribution from -0.5 to 1.5: halves, of which the first is cut into quarters."""
    found = goodness([0.0, 0.0, 1.0], "uniform", fixed={"low": -0.5, "high": 1.5})
    assert found.statistics["Anderson-Darling"] == pytest.approx(anderson_darling(np.array([0.125, 0.375, 0.75])))


def test_decimals_that_are_all_different_are_left_alone() -> None:
    x = np.round(np.random.default_rng(6).normal(size=60), 6)
    assert "rounded" not in goodness(x, "normal", resamples=19).note
    fit: Any = fw.fit_distribution(x, "normal")
    assert goodness(x, "normal", resamples=19).statistics["Kolmogorov-Smirnov"] == pytest.approx(
        stats.kstest(x, fit.scipy.cdf).statistic
    )


def test_chi_square_p_values_are_about_uniform() -> None:
    p_values = []
    for seed in range(100):
        fit: Any = fw.fit_distribution(np.random.default_rng(seed).poisson(3.0, 100), "poisson")
        p_values.append(fit.goodness_of_fit().p_value)
    assert 0.4 < np.mean(p_values) < 0.6
    assert np.mean(np.array(p_values) <= 0.1) <= 0.2


@pytest.mark.parametrize(
    ("family", "draw"),
    [
        ("uniform", lambda rng: np.round(rng.uniform(0, 10, 500))),
        ("shifted-exponential", lambda rng: np.round(5 + 3 * rng.exponential(size=200))),
        ("pareto", lambda rng: np.round(10 * (1 + rng.pareto(3.0, size=200)))),
    ],
)
def test_rounded_values_whose_limit_is_a_multiple_of_the_unit(family: str, draw: Any) -> None:
    """Half as many are rounded to the limit as to its neighbour; the right family was rejected nearly always."""
    rejected = 0
    for seed in range(12):
        fit = fw.fit_distribution(draw(np.random.default_rng(seed)), family)
        p = fit.goodness_of_fit(resamples=19, random_state=seed).p_values["Anderson-Darling"]
        rejected += p <= 0.05
    assert rejected <= 4
