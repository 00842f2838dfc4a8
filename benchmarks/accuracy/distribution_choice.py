"""How often the family that values were drawn from is the one that `fit_distribution` puts first.

"before" is plain AIC among the nineteen families that there were first, as Foldwise once ranked them; "same families" ranks
those by the score of today, which counts estimated limits of the support as two parameters; "all families" adds Student's t
and the shifted ones, which are further candidates that may be taken by mistake. Small samples do not tell much: what counts
there is that no family is preferred whatever the data.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable

import numpy as np

import foldwise as fw
from benchmarks.common import show
from foldwise.models.likelihood.ranking import score

Draw = Callable[[np.random.Generator, int], np.ndarray]
TRUTH: dict[str, Draw] = {
    "normal": lambda rng, n: rng.normal(10.0, 2.0, n),
    "uniform": lambda rng, n: rng.uniform(3.0, 7.0, n),
    "exponential": lambda rng, n: rng.exponential(2.0, n),
    "lognormal": lambda rng, n: rng.lognormal(1.0, 0.7, n),
    "gamma": lambda rng, n: rng.gamma(3.0, 2.0, n),
    "weibull": lambda rng, n: 3.0 * rng.weibull(2.5, n),
    "laplace": lambda rng, n: rng.laplace(10.0, 2.0, n),
    "pareto": lambda rng, n: 2.0 * (1.0 + rng.pareto(2.5, n)),
    "rayleigh": lambda rng, n: rng.rayleigh(3.0, n),
    "logistic": lambda rng, n: rng.logistic(10.0, 1.0, n),
    "gumbel": lambda rng, n: rng.gumbel(10.0, 2.0, n),
    "inverse-gaussian": lambda rng, n: rng.wald(2.0, 5.0, n),
    "cauchy": lambda rng, n: 10.0 + rng.standard_cauchy(n),
    "student-t": lambda rng, n: 10.0 + rng.standard_t(3.0, n),
    "shifted-exponential": lambda rng, n: 5.0 + rng.exponential(2.0, n),
    "shifted-lognormal": lambda rng, n: 10.0 + rng.lognormal(0.0, 0.7, n),
    "shifted-gamma": lambda rng, n: 10.0 + rng.gamma(3.0, 2.0, n),
    "shifted-weibull": lambda rng, n: 10.0 + 3.0 * rng.weibull(2.5, n),
}
ADDED = {"student-t", "shifted-exponential", "shifted-gamma", "shifted-weibull", "shifted-lognormal"}
SIZES = (10, 30, 100, 1000)
FRESH = 2026  # the criterion was chosen while looking at other seeds than these


def chosen(x: np.ndarray) -> dict[str, str]:
    """The family that each way puts first."""
    fits = fw.fit_distribution(x).fits
    first = [fit for fit in fits if fit.family not in ADDED]
    ways = {
        "before": min(first, key=lambda fit: fit.aic),
        "same families": min(first, key=lambda fit: score(fit, "bic", fit.max_log_likelihood)),
        "all families": fits[0],
        "all, AIC": min(fits, key=lambda fit: score(fit, "aic", fit.max_log_likelihood)),
    }
    return {way: fit.family for way, fit in ways.items()}


def main() -> None:
    warnings.simplefilter("ignore")
    repeats = int(sys.argv[-1]) if sys.argv[-1].isdigit() else 60
    ways = ("before", "same families", "all families", "all, AIC")
    head = ["drawn from", *ways, "uniform, before", "uniform, now"]
    for n in SIZES:
        lines, shares = [], {}
        for truth, draw in TRUTH.items():
            found = [chosen(draw(np.random.default_rng([FRESH, seed, n]), n)) for seed in range(repeats)]
            right = [100 * float(np.mean([one[way] == truth for one in found])) for way in ways]
            limits = [100 * np.mean([one[way] == "uniform" for one in found]) for way in ("before", "all families")]
            shares[truth] = right
            shown = [
                "-" if truth in ADDED and way in ways[:2] else f"{r:.0f}" for way, r in zip(ways, right, strict=True)
            ]
            lines.append([truth, *shown, *(f"{share:.0f}" for share in limits)])
        for name, some in {"mean of the first 13": set(TRUTH) - ADDED, "mean of all 18": set(TRUTH)}.items():
            means = np.mean([right for truth, right in shares.items() if truth in some], axis=0)
            lines.append([name, *(f"{mean:.0f}" for mean in means), "", ""])
        show(f"n = {n}: the right family first, % of {repeats} samples; and how often it was uniform", head, lines)


if __name__ == "__main__":
    main()
