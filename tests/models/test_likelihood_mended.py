"""Answers that were once wrong without a word: weights that look like none, large counts, given parameters far off."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import foldwise as fw
from foldwise.errors import DataError

# ---------------------------------------------------------------- weights whose sum is the number of rows


@pytest.mark.parametrize(
    ("x", "weights", "location", "scale"),
    [
        ([-100.0, -90.0, 1.0, 2.0, 3.0], [0, 0, 1, 1, 1], 2.0, 2 / 3),
        ([1.0, 2.0, 3.0, 4.0, 50.0], [3, 0.5, 0.5, 0.5, 0.5], 1.0, (0.5 * (1 + 2 + 3 + 49)) / 5),
    ],
)
def test_a_median_knows_its_weights(x: Any, weights: Any, location: float, scale: float) -> None:
    fit: Any = fw.fit_distribution(x, "laplace", sample_weight=weights)
    assert fit.parameters == {"location": location, "scale": pytest.approx(scale)}


@pytest.mark.parametrize("family", ["laplace", "cauchy"])
def test_a_mask_of_weights_leaves_rows_out(family: str) -> None:
    x = np.random.default_rng(0).standard_cauchy(400)
    mask = np.arange(400) % 3 > 0
    masked: Any = fw.fit_distribution(np.where(mask, x, -1e6), family, sample_weight=mask * 1.0)
    plain: Any = fw.fit_distribution(x[mask], family)
    assert masked.parameters == pytest.approx(plain.parameters, rel=1e-9)
    assert masked.max_log_likelihood == pytest.approx(plain.max_log_likelihood, rel=1e-12)


# ---------------------------------------------------------------- negative binomial, given mean


def test_a_given_mean_is_not_what_the_spread_is_compared_with() -> None:
    """A finite size exists where sum (x - mean)^2 > sum x: here 33 > 31, though not 33 > 40."""
    x = [1, 1, 2, 2, 3, 3, 4, 4, 5, 6]
    fit: Any = fw.fit_distribution(x, "negative-binomial", fixed={"mean": 4})
    assert fit.outcome.converged
    assert fit.parameters["size"] == pytest.approx(49.4, rel=1e-2)
    assert fit.max_log_likelihood == pytest.approx(-19.708, abs=1e-3)
    for factor in (0.8, 1.25):
        assert fit.log_likelihood({"size": fit.parameters["size"] * factor}) < fit.max_log_likelihood
    # about 3.2 the squares sum to 25, below 31: the likelihood rises with the size for ever
    with pytest.raises(DataError, match="size grows without bound"):
        fw.fit_distribution(x, "negative-binomial", fixed={"mean": 3.2})


def test_zeros_have_no_size() -> None:
    with pytest.raises(DataError, match="size goes to 0"):
        fw.fit_distribution(np.zeros(5), "negative-binomial", fixed={"mean": 2.0})


# ---------------------------------------------------------------- large counts


def _exact(mp: Any, family: str, x: Any, theta: dict[str, float]) -> Any:
    t = {name: mp.mpf(value) for name, value in theta.items()}
    lg = mp.loggamma
    one = {
        "poisson": lambda k: k * mp.log(t["rate"]) - t["rate"] - lg(k + 1),
        "geometric": lambda k: mp.log(t["p"]) + (k - 1) * mp.log(1 - t["p"]),
        "binomial": lambda k: (
            lg(t["n"] + 1) - lg(k + 1) - lg(t["n"] - k + 1) + k * mp.log(t["p"]) + (t["n"] - k) * mp.log(1 - t["p"])
        ),
        "negative-binomial": lambda k: (
            lg(k + t["size"])
            - lg(t["size"])
            - lg(k + 1)
            + t["size"] * mp.log(t["size"] / (t["size"] + t["mean"]))
            + k * mp.log(t["mean"] / (t["size"] + t["mean"]))
        ),
    }[family]
    return mp.fsum(one(mp.mpf(float(k))) for k in x)


def _counts(family: str, size: float) -> tuple[np.ndarray, dict[str, float]]:
    rng = np.random.default_rng(3)
    if family == "poisson":
        return rng.poisson(size, 50) * 1.0, {}
    if family == "geometric":
        return rng.geometric(1 / size, 50) * 1.0, {}
    if family == "binomial":
        return rng.poisson(4.0, 50) * 1.0, {"n": size}
    return np.floor(size * rng.gamma(2.0, 0.5, 50)), {}


@pytest.mark.parametrize("family", ["poisson", "geometric", "binomial", "negative-binomial"])
@pytest.mark.parametrize("size", [20.0, 1e5, 1e9, 1e12, 1e15])
def test_log_likelihoods_of_large_counts_keep_their_digits(family: str, size: float) -> None:
    """Against 60 digits, at the estimate and beside it."""
    mp = pytest.importorskip("mpmath")
    x, fixed = _counts(family, size)
    fit: Any = fw.fit_distribution(x, family, fixed=fixed)
    with mp.workdps(60):
        here = float(_exact(mp, family, x, fit.parameters))
        assert fit.max_log_likelihood == pytest.approx(here, rel=1e-11)
        for factor in (0.99, 1 + 1e-8):
            beside = {**fit.parameters, fit.free[-1]: fit.parameters[fit.free[-1]] * factor}
            assert fit.log_likelihood(beside) == pytest.approx(float(_exact(mp, family, x, beside)), rel=1e-11)


@pytest.mark.parametrize("size", [1e-3, 0.5, 2.0, 11.9, 12.1, 1e3, 1e6, 1e9, 1e12, 1e14])
@pytest.mark.parametrize("mean", [0.5, 30.0, 1e6, 1e12, 1e15])
def test_a_negative_binomial_of_any_size_keeps_its_digits(size: float, mean: float) -> None:
    mp = pytest.importorskip("mpmath")
    rng = np.random.default_rng(5)
    x = np.append(rng.poisson(np.minimum(mean * rng.gamma(size, 1 / size, 40), 8e15)) * 1.0, 0.0)
    fit: Any = fw.fit_distribution(x, "negative-binomial", fixed={"size": size, "mean": mean})
    with mp.workdps(60):
        assert fit.max_log_likelihood == pytest.approx(
            float(_exact(mp, "negative-binomial", x, fit.parameters)), rel=1e-10
        )


# ---------------------------------------------------------------- given parameters in other units, and far off

PLACES = {"normal": "mean", "inverse-gaussian": "mean"}


@pytest.mark.parametrize("family", ["normal", "inverse-gaussian", "laplace", "logistic", "gumbel", "cauchy", "weibull"])
@pytest.mark.parametrize("size", [1e-200, 2.0, 1e200])
def test_a_location_at_all_of_the_values_is_refused_at_any_scale(family: str, size: float) -> None:
    name = "scale" if family == "weibull" else PLACES.get(family, "location")
    with pytest.raises(DataError, match=r"equal.*(grows without bound|does not fall)"):
        fw.fit_distribution([size] * 4, family, fixed={name: size})


def test_half_of_the_values_at_a_given_location_are_refused_at_any_scale() -> None:
    x = np.array([1.0, 1.0, 1.0, 5.0, 9.0])
    for size in (1.0, 1e200):
        with pytest.raises(DataError, match="half of the values or more are equal"):
            fw.fit_distribution(x * size, "cauchy", fixed={"location": size})


def test_a_location_far_from_the_values() -> None:
    fit: Any = fw.fit_distribution([1e60, 2e60, 3e60], "normal", fixed={"mean": 1e157})
    assert fit.parameters == {"mean": 1e157, "sigma": pytest.approx(1e157, rel=1e-15)}
    assert fit.max_log_likelihood == pytest.approx(
        -3 * (math.log(1e157) + 0.5 * math.log(2 * math.pi) + 0.5), rel=1e-13
    )
    fit = fw.fit_distribution(np.zeros(3), "normal", fixed={"mean": 1e200})
    assert fit.parameters["sigma"] == pytest.approx(1e200, rel=1e-15)
    # width and place of a density: by symmetry all values lie at distance 1 in units of the location
    for family, at_one in (("laplace", 1.0), ("cauchy", 1.0), ("logistic", 1 / 1.5434046384182085)):
        fit = fw.fit_distribution([1e60, 2e60, 3e60], family, fixed={"location": 1e157})
        assert fit.outcome.converged
        assert fit.parameters["scale"] == pytest.approx(1e157 * at_one, rel=1e-7)


@pytest.mark.parametrize("family", ["normal", "logistic", "gumbel", "cauchy"])
def test_a_location_too_far_from_the_values_is_refused(family: str) -> None:
    name = PLACES.get(family, "location")
    with pytest.raises(DataError, match="too far apart"):
        fw.fit_distribution([1.0, 2.0, 3.0], family, fixed={name: 1e200})
    width = "sigma" if family == "normal" else "scale"
    with pytest.raises(DataError, match="too far apart"):
        fw.fit_distribution([1e150, 2e150], family, fixed={name: 1e200, width: 1.0})


@pytest.mark.parametrize(
    ("family", "fixed"),
    [
        ("normal", {"sigma": 1e-250}),
        ("laplace", {"scale": 1e250}),
        ("exponential", {"rate": 1e-250}),
        ("weibull", {"shape": 1e-250}),
        ("rayleigh", {"scale": 1e-250}),
        ("gamma", {"rate": 1e-250}),
        ("lognormal", {"mu": 1e250}),
    ],
)
def test_widths_and_shapes_too_far_from_the_values_are_refused(family: str, fixed: dict[str, float]) -> None:
    with pytest.raises(DataError, match="too far apart"):
        fw.fit_distribution([1.0, 2.0, 3.0], family, fixed=fixed)


def test_gumbel_with_a_location_above_the_values() -> None:
    fit: Any = fw.fit_distribution(-(np.array([1, 2, 3, 2.5, 4]) + 600), "gumbel", fixed={"location": 0})
    assert fit.outcome.converged
    assert fit.parameters["scale"] == pytest.approx(747, rel=2e-3)
    assert fit.max_log_likelihood == pytest.approx(-40.25, abs=0.01)


def test_weibull_with_a_scale_below_the_values() -> None:
    """The same for logarithms: 1 / shape + mean log x = mean x^shape log x."""
    x = np.array([1001.0, 1002.0, 1003.0])
    fit: Any = fw.fit_distribution(x, "weibull", fixed={"scale": 1.0})
    assert fit.outcome.converged
    k, logs = fit.parameters["shape"], np.log(x)
    assert 1 / k + logs.mean() == pytest.approx((x**k * logs).mean(), rel=1e-8)


# ---------------------------------------------------------------- tests of fit


def test_chi_square_refuses_what_is_no_repetition() -> None:
    x = np.random.default_rng(0).poisson(3.0, 300) * 1.0
    found: Any = fw.fit_distribution(x, "poisson", sample_weight=np.full(300, 0.5))
    told = found.goodness_of_fit()
    assert told.p_values == {}
    assert "not whole numbers" in told.note
    twice: Any = fw.fit_distribution(x, "poisson", sample_weight=np.full(300, 2.0))
    assert twice.goodness_of_fit().p_values.keys() == {"chi-square"}


def test_quick_fits_of_cauchy_with_a_given_scale_are_the_usual_ones() -> None:
    """The bootstrap must not begin in the tail, where the ascent may end at a lower maximum."""
    from foldwise.data.block import DenseBlock
    from foldwise.models.likelihood.families import FAMILIES
    from foldwise.models.likelihood.solve import estimate

    for seed in range(20):
        x = np.random.default_rng(seed).standard_cauchy(40) * 5
        usual: Any = fw.fit_distribution(x, "cauchy", fixed={"scale": 0.2})
        quick = estimate(FAMILIES["cauchy"], DenseBlock(x.reshape(-1, 1)), {"scale": 0.2})
        assert usual.log_likelihood(quick) >= usual.max_log_likelihood - 1e-6


# ---------------------------------------------------------------- all parameters given


@pytest.mark.parametrize(
    ("family", "fixed"),
    [
        ("beta", {"a": 2.0, "b": 3.0}),
        ("weibull", {"shape": 2.0, "scale": 0.5}),
        ("gamma", {"shape": 2.0, "rate": 3.0}),
        ("cauchy", {"location": 0.1, "scale": 2.0}),
        ("laplace", {"location": 0.1, "scale": 2.0}),
        ("uniform", {"low": 0.0, "high": 1.0}),
        ("normal", {"mean": 0.0, "sigma": 1.0}),
    ],
)
@pytest.mark.parametrize("method", ["auto", "newton"])
def test_nothing_is_searched_where_all_is_given(family: str, fixed: dict[str, float], method: str) -> None:
    x = np.array([0.2, 0.5, 0.7])
    fit: Any = fw.fit_distribution(x, family, fixed=fixed, method=method)
    assert (fit.method, fit.parameters, fit.free) == ("given", fixed, ())
    assert fit.max_log_likelihood == pytest.approx(fit.scipy.logpdf(x).sum(), rel=1e-12)


def test_limits_without_width_are_refused() -> None:
    with pytest.raises(DataError, match="given limits are equal"):
        fw.fit_distribution([2.0, 2.0], "uniform", fixed={"low": 2.0, "high": 2.0})
