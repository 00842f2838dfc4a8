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
    fit: Any = fw.fit_distribution(x, "laplace", weights=weights)
    assert fit.parameters == {"location": location, "scale": pytest.approx(scale)}


@pytest.mark.parametrize("family", ["laplace", "cauchy"])
def test_a_mask_of_weights_leaves_rows_out(family: str) -> None:
    x = np.random.default_rng(0).standard_cauchy(400)
    mask = np.arange(400) % 3 > 0
    masked: Any = fw.fit_distribution(np.where(mask, x, -1e6), family, weights=mask * 1.0)
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
    with pytest.raises(DataError, match="size grows without end"):
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
