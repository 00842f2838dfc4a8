"""Which family is put first: limits of the support count twice, whole numbers count by probability, heaps are told."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import foldwise as fw
from foldwise.data.block import DenseBlock
from foldwise.models.likelihood.families import FAMILIES
from foldwise.stats.rounding import Rounding
from foldwise.stats.univariate import Univariate

# ---------------------------------------------------------------- the score


def test_scores_by_hand() -> None:
    x = np.random.default_rng(0).normal(10.0, 2.0, 20)
    found: Any = fw.fit_distribution(x, ["normal", "uniform", "exponential", "pareto"])
    for family, counted in {"normal": 2, "uniform": 4, "exponential": 1, "pareto": 3}.items():
        fit = found[family]
        assert found.score(fit) == pytest.approx(counted * math.log(20) - 2 * fit.max_log_likelihood)
    aic: Any = fw.fit_distribution(x, ["normal", "uniform"], criterion="aic")
    assert aic.score(aic["normal"]) == pytest.approx(aic["normal"].aic + 2 * 2 * 3 / (20 - 3))
    assert aic.score(aic["uniform"]) == pytest.approx(aic["uniform"].aic + 2 * 2 * 3 / (20 - 3) + 4)
    # AIC and BIC themselves are the textbook's
    assert aic["uniform"].aic == pytest.approx(4 + 40 * math.log(np.ptp(x)))


@pytest.mark.parametrize(
    ("family", "theta", "counted"),
    [
        ("uniform", {"low": 0.0, "high": 1.0}, 4.0),
        ("shifted-exponential", {"location": 0.0, "rate": 1.0}, 3.0),
        ("shifted-gamma", {"location": 0.0, "shape": 3.0, "rate": 1.0}, 3.0),
        ("shifted-gamma", {"location": 0.0, "shape": 0.7, "rate": 1.0}, 4.0),
        ("shifted-weibull", {"location": 0.0, "shape": 1.25, "scale": 1.0}, 3.6),
        ("shifted-lognormal", {"location": 0.0, "mu": 0.0, "sigma": 0.5}, 3.0),
    ],
)
def test_a_limit_counts_by_how_steeply_the_density_begins(family: str, theta: Any, counted: float) -> None:
    assert FAMILIES[family].counted(theta, tuple(theta)) == pytest.approx(counted)
    first = next(iter(theta))
    assert FAMILIES[family].counted(theta, tuple(theta)[1:]) == len(theta) - 1 + (family == "uniform")
    assert first in (FAMILIES[family].begins, FAMILIES[family].ends)


def test_the_gain_from_a_limit_by_chance_is_twice_that_of_a_parameter() -> None:
    """Twice the log-likelihood above that of the truth: 1 on average for each parameter, 2 for each limit."""
    rng, gains = np.random.default_rng(0), {"normal": [], "uniform": []}
    for _ in range(300):
        z, u = rng.standard_normal(50), rng.random(50)
        normal: Any = fw.fit_distribution(z, "normal")
        uniform: Any = fw.fit_distribution(u, "uniform")
        gains["normal"].append(2 * (normal.max_log_likelihood - normal.log_likelihood(mean=0.0, sigma=1.0)))
        gains["uniform"].append(2 * (uniform.max_log_likelihood - uniform.log_likelihood(low=0.0, high=1.0)))
    assert np.mean(gains["normal"]) == pytest.approx(2.0, abs=0.4)
    assert np.mean(gains["uniform"]) == pytest.approx(4.0, abs=0.6)


def test_small_normal_samples_are_not_called_uniform() -> None:
    """Of 60 samples of 10 values, 51 were; now about as many as would be guessed among several families."""
    families = ["normal", "logistic", "laplace", "cauchy", "gumbel", "uniform", "gamma", "weibull", "lognormal"]
    chosen = []
    for seed in range(60):
        x = np.random.default_rng([seed, 10]).normal(10.0, 2.0, 10)
        found: Any = fw.fit_distribution(x, families)
        chosen.append(found.best.family)
    assert chosen.count("uniform") <= 25


@pytest.mark.parametrize(
    ("family", "draw", "least"),
    [
        ("normal", lambda rng: rng.normal(10.0, 2.0, 1000), 0.9),
        ("uniform", lambda rng: rng.uniform(3.0, 7.0, 100), 0.9),
        ("exponential", lambda rng: rng.exponential(2.0, 1000), 0.9),
        ("shifted-exponential", lambda rng: 5.0 + rng.exponential(2.0, 1000), 0.9),
        ("pareto", lambda rng: 2.0 * (1 + rng.pareto(2.5, 1000)), 0.9),
        ("gamma", lambda rng: rng.gamma(3.0, 2.0, 1000), 0.8),
    ],
)
def test_with_many_values_it_is_the_right_family(family: str, draw: Any, least: float) -> None:
    """AIC takes a parameter too many in one of six samples, however many values there are."""
    found = [fw.fit_distribution(draw(np.random.default_rng(seed)), "all") for seed in range(10)]
    assert np.mean([one.best.family == family for one in found]) >= least


def test_too_few_values_for_a_corrected_criterion() -> None:
    found: Any = fw.fit_distribution([1.0, 2.0, 4.0], ["normal", "uniform", "exponential"], criterion="aic")
    assert found.best.family == "exponential"
    assert found.behind(found.best) == 0.0
    assert math.isinf(found.behind(found["normal"]))
    assert "inf" in repr(found)


# ---------------------------------------------------------------- whole numbers


def test_heights_in_centimetres_are_no_counts() -> None:
    x = np.round(np.random.default_rng(0).normal(170.0, 7.0, 400))
    found: Any = fw.fit_distribution(x, ["poisson", "normal", "negative-binomial", "geometric"])
    assert found.best.family == "normal"
    assert found.behind(found["poisson"]) > 100


@pytest.mark.parametrize(
    ("family", "draw"),
    [
        ("poisson", lambda rng: rng.poisson(3.0, 300)),
        ("poisson", lambda rng: rng.poisson(0.1, 300)),
        ("bernoulli", lambda rng: rng.integers(0, 2, 300)),
        ("geometric", lambda rng: rng.geometric(0.3, 300)),
        ("geometric", lambda rng: rng.geometric(0.3, 300) - 1),
        ("negative-binomial", lambda rng: rng.negative_binomial(2, 0.2, 500)),
    ],
)
def test_counts_stay_counts(family: str, draw: Any) -> None:
    """Densities narrower than a unit, as of an exponential distribution at many zeros, cannot win."""
    found: Any = fw.fit_distribution(draw(np.random.default_rng(1)) * 1.0)
    assert found.best.family == family


def test_dice_are_uniform_by_hand() -> None:
    """Limits that were read off rounded values lie half a unit further out: each face has probability 1 / 6."""
    x = np.tile(np.arange(1.0, 7.0), 20)
    found: Any = fw.fit_distribution(x, ["uniform", "poisson", "normal"])
    assert found.log_probabilities["uniform"] == pytest.approx(-120 * math.log(6))
    assert found.best.family == "uniform"


def test_large_whole_numbers_take_a_pass(tmp_path: Path) -> None:
    x = np.round(np.random.default_rng(2).normal(1e6, 5e3, 500))
    found: Any = fw.fit_distribution(x, ["poisson", "normal"])
    assert found.best.family == "normal"
    assert found.log_probabilities["normal"] == pytest.approx(found["normal"].max_log_likelihood, rel=1e-6)
    fw.save(found, tmp_path / "m.fw")
    again: Any = fw.load(tmp_path / "m.fw")
    assert again.log_probabilities == found.log_probabilities
    assert repr(again) == repr(found)


# ---------------------------------------------------------------- heaps


def told(x: Any, family: str = "normal", **options: Any) -> str:
    fit: Any = fw.fit_distribution(x, family, **options)
    return "\n".join(fit.notes)


def test_values_at_a_limit_are_told() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(50.0, 10.0, 400)
    assert told(x) == ""
    above = np.minimum(x, 60.0)
    n = int((above == 60.0).sum())
    assert f"{n} of the values ({100 * n / 400:.3g} %) equal the greatest one, 60" in told(above)
    assert "equal the least one, 45" in told(np.maximum(x, 45.0))
    assert "equal the greatest one, 60" in told(np.round(above))
    assert "equal the least one, 0" in told(np.where(rng.random(300) < 0.4, 0, rng.poisson(6.0, 300)), "poisson")
    found: Any = fw.fit_distribution(above, ["normal", "gumbel"])
    assert "equal the greatest one, 60" in repr(found)
    weights = np.ones(400)
    assert told(above, sample_weight=weights) == told(above)


def test_heaps_at_round_numbers_are_told() -> None:
    rng = np.random.default_rng(1)
    x = np.round(rng.normal(70.0, 12.0, 500))
    assert told(x) == ""
    tens = np.where(rng.random(500) < 0.3, np.round(x, -1), x)
    assert "are multiples of 10, where about 10 % would be by chance" in told(tens)
    fives = np.where(rng.random(500) < 0.4, np.round(x / 5) * 5, x)
    assert "are multiples of" in told(fives)
    small = np.where(rng.random(500) < 0.3, np.round(x / 10, 0), np.round(x / 10, 1))
    assert "are multiples of 1, where" in told(small)


@pytest.mark.parametrize("family", ["normal", "exponential", "uniform", "poisson"])
def test_nothing_is_told_of_clean_values(family: str) -> None:
    for seed in range(20):
        rng = np.random.default_rng(seed)
        x = {
            "normal": lambda rng=rng: np.round(rng.normal(170, 7, 200)),
            "exponential": lambda rng=rng: np.round(rng.exponential(3.0, 200), 1),
            "uniform": lambda rng=rng: np.round(rng.uniform(0, 30, 200)),
            "poisson": lambda rng=rng: rng.poisson(0.7, 200),
        }[family]()
        assert not any("equal the" in note or "heaped" in note for note in fw.fit_distribution(x, family).notes)


@settings(max_examples=60, deadline=None)
@given(
    x=st.lists(st.integers(-(10**6), 10**6), min_size=2, max_size=40),
    decimals=st.integers(0, 4),
    cut=st.integers(0, 40),
)
def test_rounding_merges(x: list[int], decimals: int, cut: int) -> None:
    values = np.array(x) / 10.0**decimals
    w = np.arange(len(values)) % 3 + 1.0
    whole = Univariate.of(DenseBlock(values.reshape(-1, 1), 0, w))
    assert whole.rounding == Rounding.of(values, w)
    assert whole.rounding is not None
    assert whole.rounding.decimals <= decimals
    cut = min(cut, len(values))
    parts = [Univariate.of(DenseBlock(values[s].reshape(-1, 1), 0, w[s])) for s in (slice(0, cut), slice(cut, None))]
    merged = parts[0].merge(parts[1])
    assert merged.rounding == whole.rounding
    assert (merged.low_weight, merged.high_weight) == (whole.low_weight, whole.high_weight)
    assert whole.low_weight == w[values == values.min()].sum()
    if decimals == 0:
        assert whole.rounding.tens == w[np.array(x) % 10 == 0].sum()
        assert whole.rounding.fives == w[np.array(x) % 5 == 0].sum()


def test_float32_decimals_are_recognised() -> None:
    x = np.round(np.random.default_rng(0).normal(5.0, 1.0, 100), 2)
    for dtype in (np.float32, np.float64):
        fit: Any = fw.fit_distribution(x.astype(dtype), "normal")
        assert fit.statistics.rounding.decimals == 2
    assert fw.fit_distribution(np.random.default_rng(0).normal(size=50), "normal").statistics.rounding is None


def test_float32_values_are_not_rounded_ones() -> None:
    """The spacing of float32 was taken for a unit, and the values for heaped ones."""
    for mean, deviation in ((80.0, 5.0), (50.0, 3.1), (1000.0, 7.0)):
        x = np.random.default_rng(0).normal(mean, deviation, 500).astype(np.float32)
        assert not any("multiples" in note for note in fw.fit_distribution(x, "normal").notes)
