"""Time to fit distributions, relative to SciPy's: one run, interleaved, best of five, two threads."""

from __future__ import annotations

import os

os.environ.setdefault("FOLDWISE_THREADS", "2")
os.environ.setdefault("OMP_NUM_THREADS", "2")

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import stats

import foldwise as fw
from benchmarks.common import race, show

N = int(os.environ.get("FOLDWISE_BENCH_ROWS", 1_000_000))


def cases(rng: np.random.Generator) -> list[tuple[str, np.ndarray, Callable[[Any], Any]]]:
    """Family, values, and SciPy's fit with the location at 0 where the family has none."""
    return [
        ("normal", rng.normal(3, 2, N), stats.norm.fit),
        ("exponential", rng.exponential(4, N), lambda x: stats.expon.fit(x, floc=0)),
        ("gamma", rng.gamma(2.5, 3, N), lambda x: stats.gamma.fit(x, floc=0)),
        ("lognormal", rng.lognormal(0.5, 0.8, N), lambda x: stats.lognorm.fit(x, floc=0)),
        ("inverse-gaussian", rng.wald(2, 5, N), lambda x: stats.invgauss.fit(x, floc=0)),
        ("beta", rng.beta(2, 5, N), lambda x: stats.beta.fit(x, floc=0, fscale=1)),
        ("pareto", 2 * (1 + rng.pareto(3, N)), lambda x: stats.pareto.fit(x, floc=0)),
        ("laplace", rng.laplace(1, 2, N), stats.laplace.fit),
        ("weibull", rng.weibull(1.7, N) * 6, lambda x: stats.weibull_min.fit(x, floc=0)),
        ("logistic", rng.logistic(-4, 0.7, N), stats.logistic.fit),
        ("gumbel", rng.gumbel(5, 2, N), stats.gumbel_r.fit),
        ("cauchy", rng.standard_cauchy(N) * 3 + 10, stats.cauchy.fit),
    ]


def main() -> None:
    warnings.simplefilter("ignore")
    rng = np.random.default_rng(0)
    rows = []
    for family, x, theirs in cases(rng):
        times = race(
            {"ours": lambda x=x, f=family: fw.fit_distribution(x, f), "SciPy": lambda x=x, fit=theirs: fit(x)}, rounds=3
        )
        ratio = times["ours"] / times["SciPy"]
        rows.append([family, f"{times['ours'] * 1e3:.1f}", f"{times['SciPy'] * 1e3:.1f}", f"{ratio:.2f}"])
    x = rng.gamma(2.5, 3, N)
    names = ["normal", "exponential", "gamma", "lognormal", "inverse-gaussian", "pareto", "rayleigh", "uniform"]
    fits = {
        "normal": stats.norm.fit,
        "exponential": lambda x: stats.expon.fit(x, floc=0),
        "gamma": lambda x: stats.gamma.fit(x, floc=0),
        "lognormal": lambda x: stats.lognorm.fit(x, floc=0),
        "inverse-gaussian": lambda x: stats.invgauss.fit(x, floc=0),
        "pareto": lambda x: stats.pareto.fit(x, floc=0),
        "rayleigh": lambda x: stats.rayleigh.fit(x, floc=0),
        "uniform": stats.uniform.fit,
    }
    times = race(
        {"ours": lambda: fw.fit_distribution(x, names), "SciPy": lambda: [fits[name](x) for name in names]}, rounds=3
    )
    ratio = times["ours"] / times["SciPy"]
    rows.append(["these 8 compared", f"{times['ours'] * 1e3:.1f}", f"{times['SciPy'] * 1e3:.1f}", f"{ratio:.2f}"])
    show(
        f"Maximum likelihood, {N:,} float64 values; ours with standard errors and log-likelihood, SciPy's fit without",
        ["family", "ours, ms", "SciPy, ms", "ours / SciPy"],
        rows,
    )


if __name__ == "__main__":
    main()
