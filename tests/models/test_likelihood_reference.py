"""Fits against SciPy's, against scores in extended precision, and against figures that others have published."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np
import pytest
from scipy import optimize, stats

import foldwise as fw
from foldwise.models.likelihood.families import FAMILIES

RNG = np.random.default_rng(20)
N = 700
DATA: dict[str, np.ndarray] = {
    "normal": RNG.normal(3.0, 2.0, N),
    "logistic": RNG.logistic(-4.0, 0.7, N),
    "laplace": RNG.laplace(1.0, 2.0, N),
    "cauchy": RNG.standard_cauchy(N) * 3 + 10,
    "gumbel": RNG.gumbel(5.0, 2.0, N),
    "uniform": RNG.uniform(-2.0, 9.0, N),
    "exponential": RNG.exponential(4.0, N),
    "gamma": RNG.gamma(2.5, 3.0, N),
    "weibull": RNG.weibull(1.7, N) * 6,
    "lognormal": RNG.lognormal(0.5, 0.8, N),
    "inverse-gaussian": RNG.wald(2.0, 5.0, N),
    "rayleigh": RNG.rayleigh(3.0, N),
    "pareto": 2.0 * (1 + RNG.pareto(3.0, N)),
    "beta": RNG.beta(2.0, 5.0, N),
    "bernoulli": (RNG.random(N) < 0.3) * 1.0,
    "binomial": RNG.binomial(12, 0.4, N) * 1.0,
    "geometric": RNG.geometric(0.3, N) * 1.0,
    "poisson": RNG.poisson(4.0, N) * 1.0,
    "negative-binomial": RNG.negative_binomial(3, 0.3, N) * 1.0,
    "student-t": 4.0 + 2.0 * RNG.standard_t(3.0, N),
    "shifted-exponential": 3.0 + RNG.exponential(4.0, N),
    "shifted-gamma": 5.0 + RNG.gamma(4.0, 1.5, N),
    "shifted-weibull": 2.0 + 3.0 * RNG.weibull(2.5, N),
    "shifted-lognormal": 10.0 + RNG.lognormal(0.7, 0.5, N),
}
GIVEN = {"binomial": {"n": 12}, "geometric": {"start": 1}}
assert set(DATA) == set(FAMILIES)


def fitted(family: str, x: Any = None, **options: Any) -> Any:
    options.setdefault("fixed", GIVEN.get(family))
    return fw.fit_distribution(DATA[family] if x is None else x, family, **options)


def free_values(fit: Any) -> np.ndarray:
    return np.array([fit.parameters[name] for name in fit.free])


SCIPY = {
    "normal": lambda x: stats.norm.fit(x),
    "exponential": lambda x: (1 / stats.expon.fit(x, floc=0)[1],),
    "gamma": lambda x: (lambda a, _, s: (a, 1 / s))(*stats.gamma.fit(x, floc=0)),
    "beta": lambda x: stats.beta.fit(x, floc=0, fscale=1)[:2],
    "lognormal": lambda x: (lambda s, _, m: (math.log(m), s))(*stats.lognorm.fit(x, floc=0)),
    "weibull": lambda x: stats.weibull_min.fit(x, floc=0)[::2],
    "laplace": lambda x: stats.laplace.fit(x),
    "uniform": lambda x: (lambda low, width: (low, low + width))(*stats.uniform.fit(x)),
    "pareto": lambda x: (lambda b, _, s: (s, b))(*stats.pareto.fit(x, floc=0)),
    "inverse-gaussian": lambda x: (lambda m, _, s: (m * s, s))(*stats.invgauss.fit(x, floc=0)),
    "rayleigh": lambda x: stats.rayleigh.fit(x, floc=0)[1:],
    "logistic": lambda x: stats.logistic.fit(x),
    "cauchy": lambda x: stats.cauchy.fit(x),
    "gumbel": lambda x: stats.gumbel_r.fit(x),
    "student-t": lambda x: (lambda df, m, s: (m, s, df))(*stats.t.fit(x)),
    "shifted-exponential": lambda x: (lambda m, s: (m, 1 / s))(*stats.expon.fit(x)),
    "shifted-gamma": lambda x: (lambda a, m, s: (m, a, 1 / s))(*stats.gamma.fit(x, 4.0, loc=5.0, scale=1.5)),
    "shifted-weibull": lambda x: (lambda a, m, s: (m, a, s))(*stats.weibull_min.fit(x, 2.5, loc=2.0, scale=3.0)),
    "shifted-lognormal": lambda x: (lambda s, m, e: (m, math.log(e), s))(*stats.lognorm.fit(x, 0.5, loc=10, scale=2)),
}


@pytest.mark.parametrize("family", SCIPY)
def test_continuous_families_equal_scipys_fit(family: str) -> None:
    """SciPy's answer is polished where its own stopping rule leaves digits over: its best from there, by its own logpdf."""
    fit = fitted(family)
    theirs = np.array(SCIPY[family](DATA[family]))
    ours = free_values(fit)
    np.testing.assert_allclose(ours, theirs, rtol=3e-4)
    if FAMILIES[family].corners:
        np.testing.assert_allclose(ours, theirs, rtol=1e-12)
        return
    polished = polish(fit, theirs)
    # Differences of a log-density that begins at the location are less exact; the next test has 40 digits.
    np.testing.assert_allclose(ours, polished, rtol=1e-6 if family.startswith("shifted") else 1e-8)


def polish(fit: Any, start: np.ndarray) -> np.ndarray:
    """A zero of the slope of SciPy's log-density, by differences, in units of the start."""
    family, names = FAMILIES[fit.family], fit.free
    x = np.sort(DATA[fit.family])

    def score(z: np.ndarray) -> np.ndarray:
        found = []
        for j in range(len(z)):
            parts = []
            for h in (1e-3, 2e-3):  # Richardson: the error falls with the fourth power of h
                up, down = z.copy(), z.copy()
                up[j] += h
                down[j] -= h
                both = [family.scipy(dict(zip(names, start * e, strict=True))).logpdf(x) for e in (up, down)]
                parts.append(math.fsum(both[0] - both[1]) / (2 * h))
            found.append((4 * parts[0] - parts[1]) / 3 / len(x))
        return np.array(found)

    found = optimize.root(score, np.ones(len(start)), tol=1e-14)
    return start * found.x


@pytest.mark.parametrize("family", [name for name in FAMILIES if not FAMILIES[name].corners])
def test_the_score_is_zero_in_extended_precision(family: str) -> None:
    """Independent of all our formulas: the derivative of the log-density in 40 digits, summed over the values."""
    mp = pytest.importorskip("mpmath")
    fit = fitted(family)
    some = DATA[family][:120]  # mpmath is slow
    fit = fitted(family, some)
    with mp.workdps(40):
        theta = {name: mp.mpf(value) for name, value in fit.parameters.items()}
        values = [mp.mpf(float(v)) for v in some]
        for name in fit.free:

            def total(value: Any, name: str = name) -> Any:
                return mp.fsum(LOG_DENSITY[family](mp, v, {**theta, name: value}) for v in values)

            step = theta[name] * mp.mpf(10) ** -12
            up, here, down = total(theta[name] + step), total(theta[name]), total(theta[name] - step)
            slope, bend = (up - down) / (2 * step), (up - 2 * here + down) / step**2
            # How far the zero of the score is, by its slope: relative to the parameter.
            assert abs(slope / bend / theta[name]) < 1e-11, name
            if name == fit.free[0]:
                assert float(here) == pytest.approx(fit.max_log_likelihood, rel=1e-12)


def _nb(mp: Any, x: Any, t: Any) -> Any:
    r, m = t["size"], t["mean"]
    return mp.loggamma(x + r) - mp.loggamma(r) - mp.loggamma(x + 1) + r * mp.log(r / (r + m)) + x * mp.log(m / (r + m))


def _shifted(name: str, mp: Any, x: Any, t: Any) -> Any:
    return LOG_DENSITY[name](mp, x - t["location"], t)


LOG_DENSITY: dict[str, Any] = {
    "normal": lambda mp, x, t: -(((x - t["mean"]) / t["sigma"]) ** 2) / 2 - mp.log(t["sigma"]) - mp.log(2 * mp.pi) / 2,
    "lognormal": lambda mp, x, t: (
        -(((mp.log(x) - t["mu"]) / t["sigma"]) ** 2) / 2 - mp.log(t["sigma"] * x) - mp.log(2 * mp.pi) / 2
    ),
    "logistic": lambda mp, x, t: (
        -(x - t["location"]) / t["scale"] - mp.log(t["scale"]) - 2 * mp.log1p(mp.exp(-(x - t["location"]) / t["scale"]))
    ),
    "cauchy": lambda mp, x, t: -mp.log(mp.pi * t["scale"] * (1 + ((x - t["location"]) / t["scale"]) ** 2)),
    "gumbel": lambda mp, x, t: (
        -(x - t["location"]) / t["scale"] - mp.log(t["scale"]) - mp.exp(-(x - t["location"]) / t["scale"])
    ),
    "exponential": lambda mp, x, t: mp.log(t["rate"]) - t["rate"] * x,
    "gamma": lambda mp, x, t: (
        t["shape"] * mp.log(t["rate"]) - mp.loggamma(t["shape"]) + (t["shape"] - 1) * mp.log(x) - t["rate"] * x
    ),
    "weibull": lambda mp, x, t: (
        mp.log(t["shape"] / t["scale"]) + (t["shape"] - 1) * mp.log(x / t["scale"]) - (x / t["scale"]) ** t["shape"]
    ),
    "inverse-gaussian": lambda mp, x, t: (
        mp.log(t["shape"] / (2 * mp.pi * x**3)) / 2 - t["shape"] * (x - t["mean"]) ** 2 / (2 * t["mean"] ** 2 * x)
    ),
    "rayleigh": lambda mp, x, t: mp.log(x / t["scale"] ** 2) - x**2 / (2 * t["scale"] ** 2),
    "beta": lambda mp, x, t: (t["a"] - 1) * mp.log(x) + (t["b"] - 1) * mp.log1p(-x) - mp.log(mp.beta(t["a"], t["b"])),
    "bernoulli": lambda mp, x, t: mp.log(t["p"] if x else 1 - t["p"]),
    "binomial": lambda mp, x, t: (
        mp.log(mp.binomial(t["n"], x)) + x * mp.log(t["p"]) + (t["n"] - x) * mp.log(1 - t["p"])
    ),
    "geometric": lambda mp, x, t: mp.log(t["p"]) + (x - 1) * mp.log(1 - t["p"]),
    "poisson": lambda mp, x, t: x * mp.log(t["rate"]) - t["rate"] - mp.loggamma(x + 1),
    "negative-binomial": _nb,
    "student-t": lambda mp, x, t: (
        mp.loggamma((t["df"] + 1) / 2)
        - mp.loggamma(t["df"] / 2)
        - mp.log(mp.pi * t["df"] * t["scale"] ** 2) / 2
        - (t["df"] + 1) / 2 * mp.log1p(((x - t["location"]) / t["scale"]) ** 2 / t["df"])
    ),
    **{f"shifted-{name}": partial(_shifted, name) for name in ("gamma", "weibull", "lognormal")},
}


@pytest.mark.parametrize("family", FAMILIES)
def test_the_log_likelihood_is_scipys(family: str) -> None:
    fit = fitted(family)
    assert fit.max_log_likelihood == pytest.approx(math.fsum(fit.logpdf(DATA[family])), rel=1e-11)
    assert fit.log_likelihood() == pytest.approx(fit.max_log_likelihood, rel=1e-13)
    other = {
        name: value * (0.97 if name != "low" else 1.03)
        for name, value in fit.parameters.items()
        if name not in ("n", "start")
    }
    if family == "uniform":
        other["high"] = 9.9
    theirs = (
        math.fsum(np.asarray(FAMILIES[family].scipy({**fit.parameters, **other}).logpdf(DATA[family])))
        if not (fit.discrete)
        else math.fsum(FAMILIES[family].scipy({**fit.parameters, **other}).logpmf(DATA[family]))
    )
    assert fit.log_likelihood(other) == pytest.approx(theirs, rel=1e-11)


@pytest.mark.parametrize("family", [name for name in FAMILIES if not FAMILIES[name].corners])
def test_standard_errors_are_those_of_a_numerical_hessian(family: str) -> None:
    fit = fitted(family)
    at = free_values(fit)
    names, d = fit.free, len(fit.free)
    h = 1e-2 * np.array([fit.standard_errors[name] for name in names])

    def value(point: np.ndarray) -> float:
        frozen = FAMILIES[family].scipy({**fit.parameters, **dict(zip(names, point, strict=True))})
        return math.fsum((frozen.logpmf if fit.discrete else frozen.logpdf)(DATA[family]))

    hessian = np.zeros((d, d))
    for i in range(d):
        for j in range(d):
            e, f = np.eye(d)[i] * h, np.eye(d)[j] * h
            corners = [value(at + s * e + t * f) * s * t for s in (1, -1) for t in (1, -1)]
            hessian[i, j] = sum(corners) / (4 * h[i] * h[j])
    errors = np.array(list(fit.standard_errors.values()))
    found = np.linalg.inv(-hessian) / np.outer(errors, errors)  # so that what is 0 is compared with 1
    np.testing.assert_allclose(fit.covariance / np.outer(errors, errors), found, atol=1e-3)
    np.testing.assert_allclose(list(fit.standard_errors.values()), np.sqrt(np.diag(fit.covariance)), rtol=1e-12)


@pytest.mark.parametrize("method", ["newton", "gradient"])
@pytest.mark.parametrize("family", [name for name in FAMILIES if not FAMILIES[name].corners])
def test_all_methods_agree(family: str, method: str) -> None:
    fit, climbed = fitted(family), fitted(family, method=method)
    assert climbed.outcome.converged
    assert climbed.method == method
    assert len(climbed.trace) > 1
    np.testing.assert_allclose(free_values(climbed), free_values(fit), rtol=1e-8)
    rises = np.diff([step["log_likelihood"] for step in climbed.trace])
    assert rises.min() > -1e-9 * abs(fit.max_log_likelihood)
    assert climbed.trace[-1]["gradient_norm"] < 1e-6 * N


# ---------------------------------------------------------------- what others have published


def test_the_lectures_coin() -> None:
    fit = fw.fit_distribution([1] * 55 + [0] * 45, "bernoulli")
    assert fit.parameters == {"p": 0.55}
    assert round(fit.log_likelihood(0.5), 2) == -69.31
    assert math.exp(fit.log_likelihood(0.5)) == pytest.approx(7.9e-31, rel=2e-3)
    assert fit.standard_errors["p"] == pytest.approx(math.sqrt(0.55 * 0.45 / 100), rel=1e-12)


def test_the_lectures_temperatures() -> None:
    x = [-2.5, -9.9, -12.1, -8.9, -6.0, -4.8, 2.4]
    known = fw.fit_distribution(x, "normal", fixed={"sigma": 5})
    assert round(known.parameters["mean"], 4) == -5.9714
    assert known.standard_errors == {"mean": pytest.approx(5 / math.sqrt(7))}
    both = fw.fit_distribution(x, "normal")
    assert round(both.parameters["mean"], 4) == -5.9714
    assert both.parameters["sigma"] == pytest.approx(np.std(x), rel=1e-14)
    ascent = fw.fit_distribution(x, "normal", fixed={"sigma": 5}, method="gradient")
    assert round(ascent.parameters["mean"], 4) == -5.9714
    assert ascent.trace[0]["mean"] != ascent.trace[-1]["mean"]


def test_ground_beef_as_r_has_it(table: Any) -> None:
    """Delignette-Muller and Dutang (2015), fitdistrplus: log-likelihoods, AIC and BIC of 254 servings, as printed there."""
    x = table("groundbeef")[:, 0]
    found = fw.fit_distribution(x, ["weibull", "gamma", "lognormal"])
    assert [fit.family for fit in found] == ["gamma", "weibull", "lognormal"]
    assert round(found["weibull"].max_log_likelihood, 3) == -1255.225
    assert (round(found["weibull"].aic, 3), round(found["weibull"].bic, 3)) == (2514.449, 2521.524)
    assert (round(found["gamma"].aic, 3), round(found["gamma"].bic, 3)) == (2511.250, 2518.325)
    assert (round(found["lognormal"].aic, 3), round(found["lognormal"].bic, 3)) == (2526.639, 2533.713)
    assert found["weibull"].parameters == {
        "shape": pytest.approx(2.1859, abs=1e-3),
        "scale": pytest.approx(83.348, abs=5e-3),
    }
    assert found["weibull"].standard_errors["shape"] == pytest.approx(0.10458, abs=2e-4)
    assert found["weibull"].standard_errors["scale"] == pytest.approx(2.52686, abs=1e-3)


def test_failure_times_of_air_conditioners(table: Any) -> None:
    """Davison and Hinkley (1997), example 2.9: mean 108.083, and a gamma shape of 0.707."""
    x = table("aircondit")[:, 0]
    fit = fw.fit_distribution(x, "gamma")
    assert round(fit.parameters["shape"], 3) == 0.706 or round(fit.parameters["shape"], 3) == 0.707
    assert fit.parameters["shape"] / fit.parameters["rate"] == pytest.approx(108.0833, abs=1e-4)
