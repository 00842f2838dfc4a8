"""Student's t, shifted families and where geometric counts begin: R's figures, bounds, and likelihoods without one."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import foldwise as fw
from foldwise.errors import DataError, NotFinishedWarning, ParameterError

# Lieblein and Zelen (1956): millions of revolutions to failure of 23 ball bearings.
BEARINGS = [17.88, 28.92, 33.00, 41.52, 42.12, 45.60, 48.40, 51.84, 51.96, 54.12, 55.56, 67.80, 68.64, 68.64, 68.88, 84.12,
            93.12, 98.64, 105.12, 105.84, 127.92, 128.04, 173.40]  # fmt: skip
TAILS = [-4.2, -1.7, -1.1, -0.8, -0.6, -0.45, -0.3, -0.21, -0.1, 0.05, 0.12, 0.2, 0.33, 0.41, 0.6, 0.77, 0.95, 1.2, 1.9,
         6.3]  # fmt: skip


def fitted(x: Any, family: str, **options: Any) -> Any:
    return fw.fit_distribution(x, family, **options)


# ---------------------------------------------------------------- R 4.2, MASS 7.3: fitdistr, or optim on its densities


def test_student_t_as_mass_has_it() -> None:
    fit = fitted(TAILS, "t")
    assert fit.parameters == pytest.approx({"location": 0.05784394, "scale": 0.67203035, "df": 1.52977069}, rel=2e-5)
    assert fit.max_log_likelihood == pytest.approx(-34.7482051402, rel=1e-10)


@pytest.mark.parametrize(
    ("family", "parameters", "log_likelihood"),
    [
        ("shifted-weibull", (14.878345948, 1.593999457, 63.872344869), -112.8502434),
        ("shifted-lognormal", (-10.4943641703, 4.3207770629, 0.4378867184), -113.020172406),
        ("shifted-gamma", (9.24909817129, 2.85870531286, 0.04539661624), -112.914031032),
    ],
)
def test_ball_bearings_as_r_has_them(family: str, parameters: tuple[float, ...], log_likelihood: float) -> None:
    fit = fitted(BEARINGS, family)
    np.testing.assert_allclose(list(fit.parameters.values()), parameters, rtol=1e-5)
    assert fit.max_log_likelihood == pytest.approx(log_likelihood, rel=1e-10)
    assert fit.outcome.converged


def test_geometric_as_r_has_it() -> None:
    """R counts misses: `fitdistr(c(0, 3, 1, 7, 2), "geometric")` has prob = 1 / (1 + mean)."""
    x = [0, 3, 1, 7, 2]
    fit = fitted(x, "geometric")
    assert fit.parameters == {"start": 0.0, "p": pytest.approx(1 / 3.6)}
    assert fit.max_log_likelihood == pytest.approx(stats.geom(1 / 3.6, loc=-1).logpmf(x).sum())
    assert fit.fixed == ("start",)
    assert fit.pdf(0) == pytest.approx(1 / 3.6)


# ---------------------------------------------------------------- the start of geometric counts


def test_the_start_is_chosen_by_the_values_and_can_be_given() -> None:
    x = np.array([1.0, 4.0, 2.0, 8.0, 3.0])
    one, zero = fitted(x, "geometric"), fitted(x, "geometric", fixed={"start": 0})
    assert one.parameters == {"start": 1.0, "p": pytest.approx(5 / 18)}
    assert zero.parameters == {"start": 0.0, "p": pytest.approx(5 / 23)}
    assert "trials up to and with the first hit (1, 2, 3, ...)" in repr(one)
    assert "misses before the first hit (0, 1, 2, ...)" in repr(zero)
    assert "start 1, p" in repr(fw.fit_distribution(x, ["geometric", "poisson"]))
    moved = fitted(x - 1, "geometric")
    assert moved.parameters["p"] == one.parameters["p"]
    assert moved.max_log_likelihood == pytest.approx(one.max_log_likelihood)
    with pytest.raises(DataError, match="0 is not a count from 1 on"):
        fitted([0, 1, 2], "geometric", fixed={"start": 1})
    with pytest.raises(ParameterError, match="must be 0 or 1"):
        fitted(x, "geometric", fixed={"start": 2})
    assert fitted(np.zeros(5), "geometric").parameters == {"start": 0.0, "p": 1.0}


# ---------------------------------------------------------------- Student's t


def test_light_tails_are_the_normal_distribution() -> None:
    x = np.random.default_rng(0).uniform(size=200)
    for method in ("auto", "newton"):
        fit = fitted(x, "student-t", method=method)
        normal = fitted(x, "normal")
        assert fit.parameters["df"] == 1e6
        assert fit.parameters["location"] == normal.parameters["mean"]
        assert fit.parameters["scale"] == normal.parameters["sigma"]
        assert fit.max_log_likelihood == pytest.approx(normal.max_log_likelihood, abs=1e-3)
        assert fit.standard_errors["location"] == pytest.approx(normal.standard_errors["mean"], rel=1e-4)
        assert math.isnan(fit.standard_errors["df"])
        assert "take normal" in repr(fit)


@settings(max_examples=25, deadline=None)
@given(df=st.floats(0.5, 60.0), scale=st.floats(1e-6, 1e6), offset=st.floats(-1e6, 1e6), seed=st.integers(0, 99))
def test_no_other_degrees_of_freedom_are_better(df: float, scale: float, offset: float, seed: int) -> None:
    x = offset + scale * np.random.default_rng(seed).standard_t(df, 120)
    fit = fitted(x, "student-t")
    assert fit.outcome.converged
    assert fit.max_log_likelihood >= fitted(x, "normal").max_log_likelihood - 1e-4
    assert fit.max_log_likelihood >= fitted(x, "cauchy").max_log_likelihood - 1e-9
    for other in (1.0, 2.0, 5.0, 30.0):
        assert fit.max_log_likelihood >= fitted(x, "student-t", fixed={"df": other}).max_log_likelihood - 1e-8


def test_one_degree_of_freedom_is_cauchy() -> None:
    x = np.random.default_rng(1).standard_cauchy(100)
    given_df, cauchy = fitted(x, "student-t", fixed={"df": 1}), fitted(x, "cauchy")
    assert given_df.parameters["location"] == pytest.approx(cauchy.parameters["location"], rel=1e-8)
    assert given_df.max_log_likelihood == pytest.approx(cauchy.max_log_likelihood, rel=1e-12)


def test_half_of_the_values_equal_have_no_t_distribution() -> None:
    with pytest.raises(DataError, match=r"3 of the values are equal \(2\).*scale goes to 0"):
        fitted([2.0, 2.0, 2.0, 5.0, 9.0], "student-t")
    with pytest.raises(DataError, match="equal"):
        fitted([1.0, 2.0, 2.0, 2.5, 9.0, 11.0], "student-t", fixed={"df": 0.3})


# ---------------------------------------------------------------- shifted families


@settings(max_examples=25, deadline=None)
@given(shape=st.floats(2.2, 12.0), scale=st.floats(1e-5, 1e5), offset=st.floats(-1e4, 1e4), seed=st.integers(0, 99))
def test_a_shift_only_moves_the_location(shape: float, scale: float, offset: float, seed: int) -> None:
    y = np.random.default_rng(seed).gamma(shape, 1.0, 100)
    x = np.round(y * 1024) / 1024
    for family in ("shifted-gamma", "shifted-weibull", "shifted-lognormal", "shifted-exponential"):
        here, there = fitted(x, family), fitted(x * scale + offset, family)
        assert there.max_log_likelihood == pytest.approx(
            here.max_log_likelihood - 100 * math.log(scale), abs=1e-5 * (1 + abs(offset) / scale * 1e-3)
        )
        own = {"shifted-gamma": "gamma", "shifted-weibull": "weibull", "shifted-lognormal": "lognormal"}.get(family)
        if own is not None and here.parameters["location"] < x.min() - y.mean() / 50:
            # a location of 0 is one of those that were to choose from
            assert here.max_log_likelihood >= fitted(x, own).max_log_likelihood - 1e-8


def test_shifted_exponential_by_hand() -> None:
    fit = fitted([3.0, 4.0, 8.0], "shifted-exponential")
    assert fit.parameters == {"location": 3.0, "rate": pytest.approx(0.5)}
    assert fit.max_log_likelihood == pytest.approx(3 * math.log(0.5) - 3)
    assert "corner at the location" in repr(fit)
    assert fitted([3.0, 4.0, 8.0], "shifted-exponential", fixed={"location": 1}).parameters["rate"] == 0.25
    with pytest.raises(DataError, match="3 lies below the given location"):
        fitted([3.0, 4.0, 8.0], "shifted-exponential", fixed={"location": 3.5})


@pytest.mark.parametrize("family", ["shifted-gamma", "shifted-weibull"])
def test_a_likelihood_without_bound_is_bounded_and_told(family: str) -> None:
    """With a shape below 1 the density is infinite at the location: so is the likelihood, as it comes to the least value."""
    x = 5.0 + np.random.default_rng(0).gamma(0.5, 2.0, 300)
    fit = fitted(x, family)
    assert "may be unbounded there" in repr(fit)
    assert fit.parameters["location"] == pytest.approx(x.min() - (x.mean() - x.min()) / 300)
    assert fit.outcome.converged
    closer = x.min() - 1e-9
    assert fit.log_likelihood(location=closer) > fit.log_likelihood(location=x.min() - 1e-6)
    assert math.isnan(fit.standard_errors["location"])
    assert all(fit.standard_errors[name] > 0 for name in fit.free[1:])


def test_lognormal_keeps_its_maximum_away_from_the_least_value() -> None:
    """Close enough to the least value its likelihood is above any bound, too; nobody means that."""
    x = 10.0 + np.random.default_rng(2).lognormal(0.0, 0.6, 200)
    fit = fitted(x, "shifted-lognormal")
    assert fit.parameters["location"] == pytest.approx(10.0, abs=0.3)
    assert fit.notes == ()


@pytest.mark.parametrize("family", ["shifted-gamma", "shifted-weibull", "shifted-lognormal"])
def test_values_skewed_to_the_left_are_told(family: str) -> None:
    x = -np.random.default_rng(3).gamma(2.0, 1.0, 200)
    fit = fitted(x, family)
    assert "not skewed to the right" in repr(fit)
    assert np.isfinite(fit.max_log_likelihood)


def test_shifted_families_refuse() -> None:
    with pytest.raises(DataError, match="at least four values"):
        fitted([1.0, 2.0, 4.0], "shifted-gamma")
    with pytest.raises(DataError, match="1 is not above the given location"):
        fitted([1.0, 2.0, 4.0, 5.0], "shifted-weibull", fixed={"location": 1.0})
    with pytest.raises(DataError, match="no ascent can climb"):
        fitted([1.0, 2.0, 4.0, 5.0], "shifted-exponential", method="newton")


@pytest.mark.parametrize("name", ["t", "student", "weibull3", "gamma3", "lognormal3", "shifted_expon"])
def test_other_names(name: str) -> None:
    assert fitted(BEARINGS, name).family.split("-")[0] in ("student", "shifted")


@pytest.mark.parametrize("family", ["gamma", "weibull", "lognormal"])
def test_a_shift_is_never_worse_than_none(family: str, table: Callable[[str], np.ndarray]) -> None:
    """For few values the bound of the location excluded 0, and the wider family had the lower likelihood."""
    x = table("aircondit")[:, 0]
    plain, shifted = fw.fit_distribution(x, family), fw.fit_distribution(x, f"shifted-{family}")
    assert shifted.log_likelihood() >= plain.log_likelihood() - 1e-6


@pytest.mark.parametrize("family", ["shifted-gamma", "shifted-weibull", "shifted-lognormal"])
def test_a_narrow_sample_far_from_zero_comes_to_an_end(family: str) -> None:
    """The climb was stuck at a bound of the location that rounding blurs, and began there anew for ever."""
    x = 1e6 + np.random.default_rng(0).random(60) * 1e-3
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotFinishedWarning)  # it may well say that it is stuck
        assert np.isfinite(fw.fit_distribution(x, family).max_log_likelihood)
