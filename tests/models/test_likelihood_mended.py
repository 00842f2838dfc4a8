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
    """A finite size exists where sum (x - mean)^2 > sum x: here 41 > 31, though not 41 > 40."""
    x = [1, 1, 2, 2, 3, 3, 4, 4, 5, 6]
    fit: Any = fw.fit_distribution(x, "negative-binomial", fixed={"mean": 4})
    assert fit.outcome.converged
    assert fit.parameters["size"] == pytest.approx(49.4, rel=1e-2)
    assert fit.max_log_likelihood == pytest.approx(-19.708, abs=1e-3)
    for factor in (0.8, 1.25):
        assert fit.log_likelihood({"size": fit.parameters["size"] * factor}) < fit.max_log_likelihood
    # sum (x - 2.5)^2 = 24.5 + 6 * 0.36 ... stays below sum x: the likelihood rises with the size for ever
    with pytest.raises(DataError, match="size grows without end"):
        fw.fit_distribution(x, "negative-binomial", fixed={"mean": 3.2})


def test_zeros_have_no_size() -> None:
    with pytest.raises(DataError, match="size goes to 0"):
        fw.fit_distribution(np.zeros(5), "negative-binomial", fixed={"mean": 2.0})
