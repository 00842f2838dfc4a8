"""What a fit can do: the distribution, the likelihood curve, tests of fit, comparisons, intervals that cover, files."""

from __future__ import annotations

import math
from dataclasses import FrozenInstanceError
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

import foldwise as fw
from foldwise.errors import ParameterError, StoreError
from foldwise.models.likelihood import Comparison, FittedDistribution

RNG = np.random.default_rng(5)
GAMMA = RNG.gamma(2.0, 3.0, 400)
COUNTS = RNG.negative_binomial(4, 0.4, 500) * 1.0


def test_it_is_the_distribution() -> None:
    fit = fw.fit_distribution(GAMMA, "gamma")
    theirs = stats.gamma(fit.parameters["shape"], scale=1 / fit.parameters["rate"])
    x = np.linspace(0.1, 30, 50)
    np.testing.assert_allclose(fit.pdf(x), theirs.pdf(x))
    np.testing.assert_allclose(fit.logpdf(x), theirs.logpdf(x))
    np.testing.assert_allclose(fit.cdf(x), theirs.cdf(x))
    np.testing.assert_allclose(fit.quantile([0.1, 0.9]), theirs.ppf([0.1, 0.9]))
    sample = fit.sample(4000, random_state=1)
    assert sample.shape == (4000,)
    assert sample.mean() == pytest.approx(GAMMA.mean(), rel=0.1)
    np.testing.assert_array_equal(sample, fit.sample(4000, random_state=1))
    counts = fw.fit_distribution(COUNTS, "negative-binomial")
    assert counts.pdf(np.arange(2000)).sum() == pytest.approx(1.0)
    assert counts.discrete
    with pytest.raises(FrozenInstanceError):
        fit.n = 3.0


def test_the_likelihood_can_be_drawn() -> None:
    fit = fw.fit_distribution([1] * 55 + [0] * 45, "bernoulli")
    p, value = fit.curve()
    assert p[np.argmax(value)] == pytest.approx(0.55, abs=0.005)
    np.testing.assert_allclose(value, 55 * np.log(p) + 45 * np.log1p(-p))
    np.testing.assert_allclose(fit.log_likelihood(p), value)
    np.testing.assert_allclose(fit.log_likelihood(p=[0.5, 0.6]), fit.log_likelihood({"p": [0.5, 0.6]}))
    assert fit.log_likelihood(0.0) == fit.log_likelihood(2.0) == -math.inf
    both = fw.fit_distribution(GAMMA, "gamma")
    shape, along = both.curve("shape", points=31)
    assert len(shape) == 31
    expected = [stats.gamma(a, scale=1 / both.parameters["rate"]).logpdf(GAMMA).sum() for a in shape]
    np.testing.assert_allclose(along, expected, rtol=1e-11)
    with pytest.raises(ParameterError, match="several parameters are free"):
        both.log_likelihood(2.0)
    with pytest.raises(ParameterError, match="no parameter 'scale'"):
        both.log_likelihood(scale=2.0)
    weibull = fw.fit_distribution(GAMMA, "weibull")
    k, along = weibull.curve("shape", points=40)
    expected = [stats.weibull_min(a, scale=weibull.parameters["scale"]).logpdf(GAMMA).sum() for a in k]
    np.testing.assert_allclose(along, expected, rtol=1e-11)


def test_the_second_derivative_of_the_curve_is_the_information() -> None:
    fit = fw.fit_distribution(GAMMA, "gamma", fixed={"rate": 1 / 3})
    shape, value = fit.curve(points=201, reach=0.5)
    bend = np.polyfit(shape - fit.parameters["shape"], value, 4)[-3] * 2
    assert fit.standard_errors["shape"] == pytest.approx(1 / math.sqrt(-bend), rel=1e-4)


# ---------------------------------------------------------------- comparisons


def test_a_comparison_is_sorted_and_says_what_was_refused() -> None:
    found = fw.fit_distribution(GAMMA, "all")
    assert isinstance(found, Comparison)
    scores = [found.score(fit) for fit in found]
    assert scores == sorted(scores)
    assert found.best.family == "gamma"
    assert found["weibull"].bic == pytest.approx(found.best.bic + found.behind(found["weibull"]))
    assert len(found) + len(found.refused) == 24
    assert "not a count" in found.refused["poisson"]
    with pytest.raises(KeyError, match="not a count"):
        found["poisson"]
    text = repr(found)
    assert text.splitlines()[1].startswith("gamma")
    assert "poisson: not fitted" in text
    by_aic = fw.fit_distribution(GAMMA, ["exponential", "gamma"], criterion="aic")
    assert by_aic.best.aic < by_aic.fits[1].aic


def test_one_pass_serves_all_exponential_families() -> None:
    one_pass = ["normal", "gamma", "lognormal", "exponential", "inverse-gaussian", "rayleigh", "pareto", "uniform"]
    found = fw.fit_distribution(GAMMA, one_pass)
    assert len(found) == 8
    assert {fit.manifest.passes for fit in found} == {1}
    for family in one_pass:
        assert found[family].parameters == fw.fit_distribution(GAMMA, family).parameters
    several = fw.fit_distribution(GAMMA, ["weibull", "logistic", "gumbel"])
    alone = [fw.fit_distribution(GAMMA, name) for name in ("weibull", "logistic", "gumbel")]
    assert several.best.manifest.passes == max(fit.manifest.passes for fit in alone)
    for fit in alone:
        assert several[fit.family].parameters == fit.parameters


def test_counts_are_compared_with_densities_by_probability() -> None:
    found = fw.fit_distribution(COUNTS, "all", fixed={"binomial": {"n": 1000}})
    assert found.best.family == "negative-binomial"
    assert found.log_probabilities.keys() == {fit.family for fit in found}
    normal = found["normal"]
    mass = normal.cdf(COUNTS + 0.5) - normal.cdf(COUNTS - 0.5)
    assert found.log_probabilities["normal"] == pytest.approx(np.log(mass).sum(), rel=1e-10)
    assert found.score(normal) == pytest.approx(2 * math.log(500) - 2 * np.log(mass).sum(), rel=1e-10)
    assert "probability of half a unit to either side" in repr(found)
    assert fw.fit_distribution(COUNTS, ["normal", "gumbel"]).log_probabilities == {}


def test_nothing_fits() -> None:
    found = fw.fit_distribution([-1.0, -1.0], ["gamma", "normal"])
    assert not found.fits
    assert "not fitted" in repr(found)


# ---------------------------------------------------------------- tests of fit


def test_p_values_are_uniform_under_the_family_itself() -> None:
    """Fixed-parameter p-values of estimated families would hardly ever be small; these are small as often as they say."""
    p_values = []
    for seed in range(40):
        x = np.random.default_rng(seed).gamma(2.0, 1.0, 60)
        fit = fw.fit_distribution(x, "gamma")
        p_values.append(fit.goodness_of_fit(resamples=39, random_state=seed).p_values["Kolmogorov-Smirnov"])
    assert 0.3 < np.mean(p_values) < 0.7
    assert 0.05 <= np.mean(np.array(p_values) <= 0.2) <= 0.4


def test_a_wrong_family_is_found_out() -> None:
    x = RNG.lognormal(0.0, 1.0, 500)
    wrong, right = (fw.fit_distribution(x, family).goodness_of_fit(resamples=99) for family in ("normal", "lognormal"))
    assert wrong.p_value == 0.01
    assert right.p_value > 0.05
    frozen = fw.fit_distribution(x, "lognormal").scipy
    assert right.statistics["Kolmogorov-Smirnov"] == pytest.approx(stats.kstest(x, frozen.cdf).statistic)
    assert right.n == 500


def test_large_data_are_sampled_and_it_is_said() -> None:
    x = np.random.default_rng(0).exponential(2.0, 600_000)
    fit = fw.fit_distribution(x, "exponential")
    found = fit.goodness_of_fit(resamples=19, most=500)
    assert found.n == 500
    assert "500 of the values, drawn at random" in found.note
    assert found == fit.goodness_of_fit(resamples=19, most=500)
    w = np.ones(600_000)
    w[::2] = 2.0
    assert fw.fit_distribution(x, "exponential", sample_weight=w).goodness_of_fit(resamples=19, most=500).n == 500
    weighted = fw.fit_distribution(x[:100], "exponential", sample_weight=w[:100] + 0.5).goodness_of_fit()
    assert weighted.p_values == {}
    assert "not whole numbers" in weighted.note


def test_repeated_values_are_tested_as_such() -> None:
    x, w = GAMMA[:80], np.arange(80) % 3
    fit = fw.fit_distribution(x, "gamma", sample_weight=w)
    again = fw.fit_distribution(np.repeat(x, w), "gamma")
    a, b = fit.goodness_of_fit(resamples=19), again.goodness_of_fit(resamples=19)
    for name, value in a.statistics.items():
        assert value == pytest.approx(b.statistics[name])


def test_chi_square_of_counts() -> None:
    right = fw.fit_distribution(COUNTS, "negative-binomial").goodness_of_fit()
    wrong = fw.fit_distribution(COUNTS, "poisson").goodness_of_fit()
    assert right.p_value > 0.01
    assert wrong.p_value < 1e-10
    assert "degrees of freedom" in right.note
    # by hand: a coin that was said to be fair
    coin = fw.fit_distribution([1] * 55 + [0] * 45, "bernoulli", fixed={"p": 0.5}).goodness_of_fit()
    assert coin.statistics["chi-square"] == pytest.approx(1.0)
    assert coin.p_value == pytest.approx(stats.chi2(1).sf(1.0))
    assert fw.fit_distribution([1, 0], "bernoulli").goodness_of_fit().p_values == {}


# ---------------------------------------------------------------- intervals


@pytest.mark.parametrize(
    ("family", "draw", "truth"),
    [
        ("gamma", lambda rng: rng.gamma(2.0, 3.0, 80), {"shape": 2.0, "rate": 1 / 3}),
        ("weibull", lambda rng: rng.weibull(1.5, 80) * 2, {"shape": 1.5, "scale": 2.0}),
        ("normal", lambda rng: rng.normal(1.0, 2.0, 80), {"mean": 1.0, "sigma": 2.0}),
        ("poisson", lambda rng: rng.poisson(3.0, 80), {"rate": 3.0}),
        ("bernoulli", lambda rng: rng.random(80) < 0.3, {"p": 0.3}),
        ("beta", lambda rng: rng.beta(2.0, 3.0, 80), {"a": 2.0, "b": 3.0}),
    ],
)
def test_intervals_cover(family: str, draw: Any, truth: dict[str, float]) -> None:
    """300 samples: a true coverage of 0.95 has a standard error of 0.013 here."""
    hits = dict.fromkeys(truth, 0)
    for seed in range(300):
        fit = fw.fit_distribution(draw(np.random.default_rng(seed)) * 1.0, family)
        for name, value in truth.items():
            low, high = fit.intervals[name]
            hits[name] += low <= value <= high
    for name, count in hits.items():
        assert 0.90 <= count / 300 <= 0.985, (name, count)


def test_confidence_widens() -> None:
    narrow, wide = (fw.fit_distribution(GAMMA, "gamma", confidence=c).intervals["shape"] for c in (0.5, 0.99))
    assert wide[0] < narrow[0] < narrow[1] < wide[1]
    fit = fw.fit_distribution(GAMMA, "gamma")
    value, error = fit.parameters["shape"], fit.standard_errors["shape"]
    assert fit.intervals["shape"] == pytest.approx([value * math.exp(s * 1.959963985 * error / value) for s in (-1, 1)])
    assert fit.interval_scales == {"shape": "log", "rate": "log"}


# ---------------------------------------------------------------- text and files


def test_it_reads_well() -> None:
    text = repr(fw.fit_distribution([1] * 55 + [0] * 45, "bernoulli"))
    assert text.splitlines() == [
        "bernoulli, 100 values, closed form",
        "parameter  estimate  std. error  95 % interval",
        "p              0.55   0.0497494  0.451826 to 0.644429",
        "log-likelihood -68.81388137, AIC 139.6277627, BIC 142.2329329",
    ]
    climbed = repr(fw.fit_distribution(GAMMA, "gamma", method="gradient"))
    assert "gamma, 400 values, gradient, converged after" in climbed
    assert "given" in repr(fw.fit_distribution(GAMMA, "gamma", fixed={"shape": 2.0}))


@pytest.mark.parametrize(
    "family", ["gamma", "weibull", "negative-binomial", "uniform", "laplace", "student-t", "geometric"]
)
def test_round_trip(family: str, tmp_path: Path) -> None:
    fit = fw.fit_distribution(COUNTS + 1, family)
    fw.save(fit, tmp_path / "m.fw")
    again = fw.load(tmp_path / "m.fw")
    assert type(again) is FittedDistribution
    assert repr(again) == repr(fit)
    assert again.parameters == fit.parameters
    assert again.trace == fit.trace
    assert again.manifest == fit.manifest
    np.testing.assert_array_equal(again.covariance, fit.covariance)
    np.testing.assert_array_equal(again.pdf([1.0, 2.0]), fit.pdf([1.0, 2.0]))
    if family in ("weibull", "laplace", "student-t"):
        with pytest.raises(ParameterError, match="a loaded fit does not have"):
            again.log_likelihood(scale=1.0)
    else:
        assert again.log_likelihood() == fit.log_likelihood()
    with pytest.raises(ParameterError, match="a loaded fit does not have"):
        again.goodness_of_fit()


def test_a_comparison_can_be_kept(tmp_path: Path) -> None:
    found = fw.fit_distribution(GAMMA, "all")
    fw.save(found, tmp_path / "m.fw")
    again = fw.load(tmp_path / "m.fw")
    assert repr(again) == repr(found)
    assert again.refused == found.refused
    whole = (tmp_path / "m.fw").read_bytes()
    (tmp_path / "m.fw").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(StoreError, match="damaged"):
        fw.load(tmp_path / "m.fw")


def test_families_by_the_names_that_others_give_them() -> None:
    x = np.random.default_rng(0).gamma(2.0, 1.0, 50)
    for other, ours in (
        ("norm", "normal"),
        ("Gaussian", "normal"),
        ("expon", "exponential"),
        ("weibull_min", "weibull"),
    ):
        assert fw.fit_distribution(x, other).family == ours
