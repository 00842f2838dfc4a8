"""What comes in: kinds of data, weights, given parameters, degenerate and forbidden values, offsets and scales."""

from __future__ import annotations

import itertools
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize

import foldwise as fw
from foldwise.errors import DataError, ParameterError
from foldwise.models.likelihood.families import FAMILIES

RNG = np.random.default_rng(7)
DATA: dict[str, np.ndarray] = {
    "normal": RNG.normal(3.0, 2.0, 150),
    "logistic": RNG.logistic(-4.0, 0.7, 150),
    "laplace": RNG.laplace(1.0, 2.0, 151),
    "cauchy": RNG.standard_cauchy(150) * 3 + 10,
    "gumbel": RNG.gumbel(5.0, 2.0, 150),
    "uniform": RNG.uniform(-2.0, 9.0, 150),
    "exponential": RNG.exponential(4.0, 150),
    "gamma": RNG.gamma(2.5, 3.0, 150),
    "weibull": RNG.weibull(1.7, 150) * 6,
    "lognormal": RNG.lognormal(0.5, 0.8, 150),
    "inverse-gaussian": RNG.wald(2.0, 5.0, 150),
    "rayleigh": RNG.rayleigh(3.0, 150),
    "pareto": 2.0 * (1 + RNG.pareto(3.0, 150)),
    "beta": RNG.beta(2.0, 5.0, 150),
    "bernoulli": (RNG.random(150) < 0.3) * 1.0,
    "binomial": RNG.binomial(12, 0.4, 150) * 1.0,
    "geometric": RNG.geometric(0.3, 150) * 1.0,
    "poisson": RNG.poisson(4.0, 150) * 1.0,
    "negative-binomial": RNG.negative_binomial(3, 0.3, 150) * 1.0,
    "student-t": 4.0 + 2.0 * RNG.standard_t(3.0, 150),
    "shifted-exponential": 3.0 + RNG.exponential(4.0, 150),
    "shifted-gamma": 5.0 + RNG.gamma(4.0, 1.5, 150),
    "shifted-weibull": 2.0 + 3.0 * RNG.weibull(2.5, 150),
    "shifted-lognormal": 10.0 + RNG.lognormal(0.7, 0.5, 150),
}
GIVEN = {"binomial": {"n": 12}, "geometric": {"start": 1}}


def fitted(family: str, x: Any = None, **options: Any) -> Any:
    options.setdefault("fixed", GIVEN.get(family))
    return fw.fit_distribution(DATA[family] if x is None else x, family, **options)


def same(a: Any, b: Any, rtol: float = 1e-9) -> None:
    np.testing.assert_allclose(list(a.parameters.values()), list(b.parameters.values()), rtol=rtol)
    np.testing.assert_allclose(list(a.standard_errors.values()), list(b.standard_errors.values()), rtol=max(rtol, 1e-7))
    assert a.max_log_likelihood == pytest.approx(b.max_log_likelihood, rel=1e-9)
    assert (a.n, a.bic) == (pytest.approx(b.n), pytest.approx(b.bic))


@pytest.mark.parametrize("family", FAMILIES)
def test_weights_are_repetition(family: str) -> None:
    x = DATA[family]
    times = np.random.default_rng(1).integers(0, 4, len(x))
    same(fitted(family, sample_weight=times), fitted(family, np.repeat(x, times)))


@pytest.mark.parametrize("family", FAMILIES)
def test_float32_values_are_summed_in_float64(family: str) -> None:
    narrow = DATA[family].astype(np.float32)
    same(fitted(family, narrow), fitted(family, narrow.astype(np.float64)), rtol=1e-12)


@pytest.mark.parametrize("family", FAMILIES)
def test_every_subset_of_parameters_can_be_given(family: str) -> None:
    """Against SciPy's optimiser on SciPy's densities, in the parameters that are left."""
    whole = fitted(family)
    always = GIVEN.get(family, {})
    names = [name for name in whole.parameters if name not in always]
    for size in range(1, len(names) + 1):
        for given_names in itertools.combinations(names, size):
            known = {name: _other(family, name, whole.parameters[name]) for name in given_names} | always
            fit = fitted(family, fixed=known)
            for name, value in known.items():
                assert fit.parameters[name] == value
            assert fit.free == tuple(name for name in names if name not in known)
            assert fit.max_log_likelihood == pytest.approx(_best(family, fit), abs=1e-7 * abs(fit.max_log_likelihood))


def _other(family: str, name: str, value: float) -> float:
    if family == "uniform":
        return value - 1 if name == "low" else value + 1
    if (family == "pareto" and name == "scale") or (family.startswith("shifted") and name == "location"):
        return value * 0.8
    return value * 1.1 if name != "p" else value * 0.9


def _best(family: str, fit: Any) -> float:
    x = DATA[family]

    def value(theta: dict[str, float]) -> float:
        frozen = FAMILIES[family].scipy(theta)
        with np.errstate(all="ignore"):
            return math.fsum((frozen.logpmf if fit.discrete else frozen.logpdf)(x))

    if not fit.free or set(fit.free) <= FAMILIES[family].corners:
        return value(fit.parameters)
    if len(fit.free) == 2:
        start = np.array([fit.parameters[name] for name in fit.free])
        found = optimize.minimize(
            lambda z: -value({**fit.parameters, **dict(zip(fit.free, (z * start).tolist(), strict=True))}),
            np.ones(2),
            method="Nelder-Mead",
            options={"xatol": 1e-8, "fatol": 1e-10},
        )
        return -float(found.fun)
    (name,) = fit.free
    centre = fit.parameters[name]
    reach = 0.3 * abs(centre)
    if name == "location" and family.startswith("shifted"):
        reach = 0.9 * (float(x.min()) - centre)
    found = optimize.minimize_scalar(
        lambda v: -value({**fit.parameters, name: v}),
        bounds=(centre - reach, centre + reach),
        method="bounded",
        options={"xatol": 1e-9},
    )
    return -float(found.fun)


# ---------------------------------------------------------------- offsets and scales

SCALED = [name for name, family in FAMILIES.items() if any(p.unit != "none" for p in family.parameters)]


@pytest.mark.parametrize("family", SCALED)
@pytest.mark.parametrize("factor", [2.0**-40, 3.0, 1e30, 1e150, 1e290, 1e-150, 1e-300])
def test_a_factor_goes_through(family: str, factor: float) -> None:
    x = DATA[family]
    here, there = fitted(family), fitted(family, x * factor)
    for parameter in FAMILIES[family].parameters:
        value = here.parameters[parameter.name]
        expected = {
            "value": value * factor,
            "inverse": value / factor,
            "log": value + math.log(factor),
            "none": value,
        }[parameter.unit]
        assert there.parameters[parameter.name] == pytest.approx(expected, rel=1e-8)
        error = here.standard_errors[parameter.name]
        if parameter.unit in ("value", "inverse") and not math.isnan(error):
            scaled = error * factor if parameter.unit == "value" else error / factor
            assert there.standard_errors[parameter.name] == pytest.approx(scaled, rel=1e-6)
    assert there.max_log_likelihood == pytest.approx(here.max_log_likelihood - len(x) * math.log(factor), rel=1e-9)


@pytest.mark.parametrize("family", ["normal", "logistic", "laplace", "cauchy", "gumbel", "uniform"])
@pytest.mark.parametrize("offset", [-5.0, 1e8])
def test_an_offset_costs_no_digits(family: str, offset: float) -> None:
    x = np.round(DATA[family] * 1024) / 1024  # so that the offset can be added without rounding
    here, there = fitted(family, x), fitted(family, x + offset)
    first, second = here.parameters, there.parameters
    place, width = list(first)
    assert second[place] == pytest.approx(first[place] + offset, rel=1e-14, abs=1e-9)
    if family == "uniform":
        return
    assert second[width] == pytest.approx(first[width], rel=1e-10)
    assert there.max_log_likelihood == pytest.approx(here.max_log_likelihood, rel=1e-11)
    assert there.standard_errors[place] == pytest.approx(here.standard_errors[place], rel=1e-9)


@settings(max_examples=30)
@given(shape=st.floats(0.05, 1e9), scale=st.floats(1e-20, 1e20), n=st.integers(2, 200), seed=st.integers(0, 999))
def test_gamma_solves_its_equation_for_any_shape(shape: float, scale: float, n: int, seed: int) -> None:
    """log(shape) - digamma(shape) is log(mean) - mean(log), in 50 digits."""
    mp = pytest.importorskip("mpmath")
    x = np.random.default_rng(seed).gamma(shape, scale, n)
    x = np.maximum(x, 1e-290)
    if x.min() == x.max():
        return
    fit = fw.fit_distribution(x, "gamma")
    assert fit.outcome.converged
    with mp.workdps(60):
        exact = [mp.mpf(float(one)) for one in x]
        s = mp.log(mp.fsum(exact) / n) - mp.fsum(mp.log(one) for one in exact) / n
        k = mp.mpf(fit.parameters["shape"])
        away = (mp.log(k) - mp.digamma(k) - s) / ((mp.psi(1, k) - 1 / k) * k)
        # To values that float64 cannot tell apart, the data themselves say no more than this.
        assert abs(away) < 1e-9
        assert abs(mp.mpf(fit.parameters["rate"]) * mp.fsum(exact) / n / k - 1) < 1e-12


# ---------------------------------------------------------------- kinds of data


def test_kinds_of_data(tmp_path: Path) -> None:
    pd, pl = pytest.importorskip("pandas"), pytest.importorskip("polars")
    x = DATA["gamma"]
    expected = fitted("gamma").parameters
    frame = pd.DataFrame({"word": "a", "x": x, "y": -x})
    frame.to_csv(tmp_path / "t.csv", index=False)
    for data, options in [
        (list(x), {}),
        (tuple(x), {}),
        ([[v] for v in x], {}),
        (x.reshape(-1, 1), {}),
        (np.stack([-x, x], axis=1), {"column": 1}),
        (frame["x"], {}),
        (frame, {"column": "x"}),
        (frame[["x"]], {}),
        (pl.Series(x), {}),
        (pl.from_pandas(frame), {"column": "x"}),
        (tmp_path / "t.csv", {"column": "x"}),
        (f"SELECT x FROM '{tmp_path / 't.csv'}'", {}),
        (fw.scan(tmp_path / "t.csv", columns=["x"]), {}),
    ]:
        fit = fitted("gamma", data, **options)
        np.testing.assert_allclose(list(fit.parameters.values()), list(expected.values()), rtol=1e-13)
    assert fitted("gamma", frame, column="x").column == "x"
    assert fitted("bernoulli", np.array([True, False, True])).parameters["p"] == pytest.approx(2 / 3)
    assert fitted("poisson", pd.Series([1, 2, 3], dtype="Int64")).parameters == {"rate": 2.0}
    assert fitted("normal", range(3)).parameters["mean"] == 1.0


def test_what_is_no_column_is_refused(tmp_path: Path) -> None:
    x = DATA["normal"]
    with pytest.raises(DataError, match=r"there are 2 columns of numbers.*column="):
        fitted("normal", np.stack([x, x], axis=1))
    with pytest.raises(DataError, match="sparse"):
        fitted("normal", sp.csr_array(x.reshape(-1, 1)))
    with pytest.raises(ParameterError, match="one dimension"):
        fitted("normal", x, column=0)
    np.save(tmp_path / "x.npy", x)
    with pytest.raises(DataError, match="no column 3"):
        fitted("normal", tmp_path / "x.npy", column=3)
    (tmp_path / "t.csv").write_text("a,b\n1,2\n3,4\n")
    with pytest.raises(DataError, match=r"t\.csv: there are 2 columns.*'a', 'b'"):
        fitted("normal", tmp_path / "t.csv")
    with pytest.raises(DataError, match="there is no column 'c'"):
        fitted("normal", tmp_path / "t.csv", column="c")
    with pytest.raises(ParameterError, match="first opened"):
        fitted("normal", fw.scan(tmp_path / "t.csv", columns=["a"]), column="a")
    with pytest.raises(DataError, match="0 sample"):
        fitted("normal", [])


def test_nan_and_infinity_are_named() -> None:
    for bad, words in ((np.nan, "NaN"), (np.inf, "infinity")):
        x = DATA["normal"].copy()
        x[17] = bad
        with pytest.raises(DataError, match=rf"row 17.*{words}"):
            fitted("normal", x)
    with pytest.raises(DataError, match="'five' is not a number"):
        fitted("normal", ["five"] if False else np.array([1.0, "five"], dtype=object))


@pytest.mark.parametrize(
    ("family", "bad", "words"),
    [
        ("gamma", 0.0, "0 is not greater than 0"),
        ("gamma", -1.5, "-1.5 is not greater than 0"),
        ("lognormal", -1.0, "not greater than 0"),
        ("weibull", 0.0, "not greater than 0"),
        ("inverse-gaussian", 0.0, "not greater than 0"),
        ("rayleigh", 0.0, "not greater than 0"),
        ("pareto", 0.0, "not greater than 0"),
        ("exponential", -0.5, "-0.5 is not at least 0"),
        ("beta", 1.0, "1 is not strictly between 0 and 1"),
        ("beta", 0.0, "0 is not strictly between 0 and 1"),
        ("poisson", 2.5, r"2.5 is not a count \(0, 1, 2, ...\)"),
        ("poisson", -1.0, "-1 is not a count"),
        ("negative-binomial", 2.5, "2.5 is not a count"),
        ("binomial", 0.5, "0.5 is not a count"),
        ("geometric", 0.0, "0 is not a count from 1 on"),
        ("geometric", -1.0, "-1 is not a count from 1 on"),
        ("bernoulli", 2.0, "2 is not 0 or 1"),
        ("bernoulli", 0.5, "0.5 is not 0 or 1"),
    ],
)
def test_forbidden_values_are_named(family: str, bad: float, words: str, tmp_path: Path) -> None:
    x = DATA[family].copy()
    x[43] = bad
    with pytest.raises(DataError, match=rf"array, row 43 \(counting from 0\).*{words}.*another family") as told:
        fitted(family, x)
    assert told.value.row == 43
    path = tmp_path / "t.csv"
    path.write_text("x\n" + "\n".join(map(repr, x.tolist())) + "\n")
    with pytest.raises(DataError, match=rf"t\.csv, row 43 \(counting from 0\), column 'x': .*{words}"):
        fitted(family, path, column="x")
    w = np.ones(len(x))
    w[43] = 0.0  # it does not count
    assert fitted(family, x, sample_weight=w).n == len(x) - 1
    assert "row 43" in fw.fit_distribution(x, [family], fixed={family: GIVEN.get(family, {})}).refused[family]


# ---------------------------------------------------------------- degenerate data

EQUAL = ["normal", "logistic", "laplace", "cauchy", "gumbel", "uniform", "gamma", "weibull", "lognormal", "pareto",
         "inverse-gaussian", "student-t", "shifted-exponential", "shifted-gamma", "shifted-weibull",
         "shifted-lognormal"]  # fmt: skip


@pytest.mark.parametrize("family", [*EQUAL, "beta"])
@pytest.mark.parametrize("n", [1, 2, 50])
def test_equal_values_have_no_maximum(family: str, n: int) -> None:
    with pytest.raises(DataError, match=r"all values are equal \(0\.3.*\), so the likelihood grows without bound"):
        fitted(family, np.full(n, 0.3))


@pytest.mark.parametrize("family", EQUAL)
def test_all_zeros_are_refused_with_a_reason(family: str) -> None:
    with pytest.raises(DataError, match=r"equal|greater than 0"):
        fitted(family, np.zeros(9))


def test_zeros_of_other_families() -> None:
    with pytest.raises(DataError, match="all values are 0"):
        fitted("exponential", np.zeros(5))
    with pytest.raises(DataError, match="all values are 0"):
        fitted("negative-binomial", np.zeros(5))
    assert fitted("normal", np.zeros(5), fixed={"sigma": 2.0}).parameters == {"mean": 0.0, "sigma": 2.0}


@pytest.mark.parametrize(
    ("family", "x", "value", "interval"),
    [
        ("bernoulli", np.zeros(20), 0.0, (0.0, 1 - 0.025 ** (1 / 20))),
        ("bernoulli", np.ones(20), 1.0, (0.025 ** (1 / 20), 1.0)),
        ("geometric", np.ones(20), 1.0, (0.025 ** (1 / 20), 1.0)),
        ("poisson", np.zeros(20), 0.0, (0.0, -math.log(0.025) / 20)),
        ("binomial", np.zeros(20), 0.0, (0.0, 1 - 0.025 ** (1 / 240))),
    ],
)
@pytest.mark.parametrize("method", ["auto", "newton"])
def test_estimates_at_the_edge_say_so(family: str, x: Any, value: float, interval: Any, method: str) -> None:
    fit = fitted(family, x, method=method)
    name = fit.free[0]
    assert fit.parameters[name] == value
    assert math.isnan(fit.standard_errors[name])
    assert "edge of its range: standard errors do not exist" in fit.notes[0]
    assert fit.intervals[name] == pytest.approx(interval)
    assert fit.max_log_likelihood == pytest.approx(0.0)
    assert "none" in repr(fit)


def test_corners_say_so() -> None:
    fit = fitted("uniform")
    assert all(math.isnan(error) for error in fit.standard_errors.values())
    assert "corner at the low and high" in fit.notes[0]
    fit = fitted("pareto")
    assert math.isnan(fit.standard_errors["scale"])
    assert fit.standard_errors["shape"] == pytest.approx(fit.parameters["shape"] / math.sqrt(150))
    fit = fitted("laplace")
    assert "expected information" in fit.notes[0]
    assert fit.standard_errors["location"] == pytest.approx(fit.parameters["scale"] / math.sqrt(151))
    assert fit.parameters["location"] == np.median(DATA["laplace"])
    with pytest.raises(DataError, match="no ascent can climb"):
        fitted("uniform", method="gradient")


def test_counts_that_do_not_spread_are_no_negative_binomial() -> None:
    with pytest.raises(DataError, match=r"spread no more.*Try poisson"):
        fitted("negative-binomial", [2, 3, 2, 3, 3, 2])


def test_nearly_poisson_counts_keep_their_digits() -> None:
    """A large size, where differences of digamma functions would cancel."""
    mp = pytest.importorskip("mpmath")
    rng = np.random.default_rng(0)
    x = rng.poisson(5.0 * rng.gamma(400.0, 1 / 400, 40_000)) * 1.0
    fit = fitted("negative-binomial", x)
    r, m = fit.parameters["size"], fit.parameters["mean"]
    assert r > 100
    with mp.workdps(40):
        counts = np.bincount(x.astype(int))
        score = mp.fsum(int(c) * (mp.digamma(k + mp.mpf(r)) - mp.digamma(mp.mpf(r))) for k, c in enumerate(counts))
        score += len(x) * mp.log(mp.mpf(r) / (mp.mpf(r) + mp.mpf(m)))
        error = fit.standard_errors["size"]
        assert abs(score) * error**2 / r < 1e-9


def test_large_counts_take_passes() -> None:
    """Beyond 65,535 there is no table of counts."""
    x = np.random.default_rng(0).negative_binomial(2, 1e-5, 3000) * 1.0
    assert x.max() > 70_000
    fit = fitted("negative-binomial", x)
    assert fit.manifest.passes > 2
    frozen = FAMILIES["negative-binomial"].scipy
    here = math.fsum(frozen(fit.parameters).logpmf(x))
    assert fit.max_log_likelihood == pytest.approx(here, rel=1e-9)
    for factor in (0.98, 1.02):
        assert math.fsum(frozen({**fit.parameters, "size": fit.parameters["size"] * factor}).logpmf(x)) < here
    assert fitted("poisson", x).max_log_likelihood == pytest.approx(
        math.fsum(FAMILIES["poisson"].scipy({"rate": x.mean()}).logpmf(x)), rel=1e-9
    )


def test_cauchy_with_a_given_scale_finds_the_higher_of_two_maxima() -> None:
    x = np.concatenate([np.linspace(-50, -49, 9), np.linspace(60, 61, 11)])
    fit = fitted("cauchy", x, fixed={"scale": 1.0})
    assert 60 < fit.parameters["location"] < 61
    with pytest.raises(DataError, match="half of the values or more are equal"):
        fitted("cauchy", [1.0, 1.0, 1.0, 5.0, 9.0])


# ---------------------------------------------------------------- parameters


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"family": "gama"}, "'gama' is not known; there are normal"),
        ({"family": []}, "names no family"),
        ({"method": "bfgs"}, "method='bfgs' is not known"),
        ({"confidence": 95}, "between 0 and 1"),
        ({"criterion": "dic"}, "aic and bic"),
        ({"fixed": {"scale": 1.0}}, "normal has no parameter 'scale'; it has mean, sigma"),
        ({"fixed": {"sigma": -1.0}}, "sigma=-1.0 must be greater than 0"),
        ({"fixed": {"sigma": "5"}}, "not a number"),
        ({"fixed": {"sigma": math.nan}}, "finite"),
        ({"family": ["normal", "gamma"], "fixed": {"sigma": 5.0}}, "say whose parameters"),
        ({"max_iter": 0}, "max_iter"),
        ({"time_budget": -1.0}, "time_budget"),
        ({"n_threads": 0}, "n_threads"),
        ({"family": "binomial", "fixed": {"n": 2.5}}, "whole number"),
    ],
)
def test_parameters_that_cannot_be_meant(options: dict[str, Any], words: str) -> None:
    options = {"family": "normal", **options}
    with pytest.raises(ParameterError, match=words):
        fw.fit_distribution(DATA["poisson"], **options)


def test_binomial_needs_its_number_of_trials() -> None:
    with pytest.raises(DataError, match=r'the number of trials is not known. Give it, as in fixed={"n": 10}'):
        fw.fit_distribution([1, 2, 3], "binomial")
    with pytest.raises(DataError, match="3 hits are more than n = 2 trials"):
        fw.fit_distribution([1, 2, 3], "binomial", fixed={"n": 2})
    with pytest.raises(DataError, match="do not lie between the given limits"):
        fw.fit_distribution([1, 2, 3], "uniform", fixed={"low": 2.0})


# ---------------------------------------------------------------- the ends of float64

NASTY: dict[str, Any] = {
    "two values": [1.0, 2.0],
    "an outlier": np.append(np.random.default_rng(0).standard_normal(500), 1e12),
    "heavy tails": np.random.default_rng(0).standard_cauchy(500) ** 3,
    "next to 0 and 1": np.random.default_rng(0).beta(0.01, 0.01, 300).clip(1e-15, 1 - 1e-15),
    "subnormal": [5e-324, 1e-323, 2e-322],
    "largest": [1.7e308, 1.6e308, 1.0e308],
    "both ends": [1.7e308, -1.7e308, 1.0e308, 5.0],
    "three values": [0.0, 1.0, 3.0],
}


@pytest.mark.parametrize("name", NASTY)
def test_every_family_is_fitted_or_refused(name: str) -> None:
    """Nothing else: no other error, no warning, no number that is none."""
    found = fw.fit_distribution(NASTY[name], "all")
    assert len(found.fits) + len(found.refused) == len(FAMILIES)
    assert len(found.fits) >= 4
    for fit in found:
        assert fit.outcome.converged, fit
        assert np.isfinite(list(fit.parameters.values())).all(), fit
        assert math.isfinite(fit.max_log_likelihood), fit


def test_values_further_apart_than_float64_is_precise() -> None:
    x = np.array([1e-300, 1.0, 1e300, 2.0])
    fit = fw.fit_distribution(x, "lognormal")
    assert fit.parameters["mu"] == pytest.approx(np.log(x).mean(), rel=1e-13, abs=1e-13)
    assert fit.parameters["sigma"] == pytest.approx(np.log(x).std(), rel=1e-13)
    assert fw.fit_distribution(x, "gamma").parameters["shape"] < 0.01
    with pytest.raises(DataError, match="too far apart"):
        fw.fit_distribution(x, "pareto")
    with pytest.raises(DataError, match="leave the range of float64"):
        fw.fit_distribution(x, "inverse-gaussian")
    with pytest.raises(DataError, match="too far apart"):
        fw.fit_distribution([5e-324, 1e-323], "normal", fixed={"sigma": 1e30})
