"""How many components: rules that read the variances, and how sure each one is."""

from __future__ import annotations

from dataclasses import dataclass, field
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray

from foldwise.data.block import Floats
from foldwise.errors import ParameterError
from foldwise.models.pca.spectrum import Spectrum

RULES = ("auto", "mle", "parallel", "gavish-donoho")  # "auto" looks at rows: held_out.py


@dataclass(frozen=True)
class RankChoice:
    """The number a rule arrived at, and the range it would also defend: `low` to `high`.

    `figures` holds what the rule looked at, one value for each number of components or for each component.
    """

    rule: str
    chosen: int
    low: int
    high: int
    meaning: str
    figures: dict[str, Floats] = field(default_factory=dict, repr=False)


def by_rule(rule: Any, found: Spectrum, seed: int) -> RankChoice | None:
    """What n_components=`rule` says of these variances; None where it is a number, or all."""
    if rule is None or isinstance(rule, Integral):
        return None
    if rule == "auto":
        raise ParameterError("n_components='auto' looks at the rows again: use fit, not partial_fit")
    if rule not in RULES:
        return by_share(found.variances, found.total_variance, float(rule), found.weight)
    if rule == "mle":
        return by_minka(found.variances, found.weight, len(found.mean), found.floor)
    variances = np.where(found.variances > found.floor, found.variances, 0.0)  # what is rounding is not compared
    if rule == "parallel":
        return by_parallel_analysis(variances, found.column_variances, found.weight, seed)
    return by_gavish_donoho(variances, found.weight, len(found.mean))


def by_share(variances: Floats, total: float, share: float, weight: float) -> RankChoice:
    """The least number whose cumulative share exceeds `share`; the range is that of the share plus or minus two errors.

    The error is the asymptotic one for normal data: the variance of an estimated variance l is 2 l^2 / (n - 1).
    """
    shares = variances / total if total > 0 else np.zeros_like(variances)
    # Summed up like this by who asks for a sum of explained_variance_ratio_: the last bit decides whether it is exceeded.
    cumulative = np.cumsum(shares) if total > 0 else np.ones_like(variances)
    heads = np.cumsum(shares**2)
    tails = heads[-1] - heads
    error = np.sqrt(2 / max(weight - 1, 1) * ((1 - cumulative) ** 2 * heads + cumulative**2 * tails))

    def least(shares: Floats) -> int:
        beyond = np.flatnonzero(shares > share)
        return int(beyond[0]) + 1 if beyond.size else len(shares)

    return RankChoice(
        rule=f"share {share:g}",
        chosen=least(cumulative),
        low=least(cumulative + 2 * error),
        high=least(np.maximum.accumulate(cumulative - 2 * error)),
        meaning="numbers for which the true share could be the one asked for (two standard errors, normal data)",
        figures={"cumulative_share": cumulative, "standard_error": error},
    )


def by_minka(variances: Floats, weight: float, n_columns: int, floor: float = 0.0) -> RankChoice:
    """Minka's approximation to the evidence of a k-dimensional probabilistic PCA (Minka 2000); no noise is below `floor`."""
    from scipy.special import gammaln

    if weight < n_columns:
        raise ParameterError("n_components='mle' is only supported if n_samples >= n_features")
    d, n = n_columns, weight
    floor = max(floor, float(variances[0]) * np.finfo(np.float64).eps * d, float(np.finfo(np.float64).tiny))
    spectrum = np.maximum(variances, floor)
    logs = np.log(spectrum)
    evidence = np.full(max(d, 2), -np.inf)  # of 0, 1, ... components; a single column leaves one
    for k in range(1, d):
        if spectrum[k - 1] <= floor:
            break  # a direction without variance is no component
        i = np.arange(k)
        noise = float(spectrum[k:].mean())
        prior = -k * np.log(2) + float(np.sum(gammaln((d - i) / 2) - np.log(np.pi) * (d - i) / 2))
        fit = -n / 2 * float(logs[:k].sum()) - np.log(noise) * n * (d - k) / 2
        smoothed = np.concatenate([spectrum[:k], np.full(d - k, noise)])
        rows, cols = np.triu_indices(d, 1)
        rows, cols = rows[rows < k], cols[rows < k]
        gaps = (spectrum[rows] - spectrum[cols]) * (1 / smoothed[cols] - 1 / smoothed[rows])
        with np.errstate(divide="ignore"):
            curvature = float(np.sum(np.log(np.maximum(gaps, 0)) + np.log(n)))
        free = d * k - k * (k + 1) / 2
        evidence[k] = prior + fit + np.log(2 * np.pi) * (free + k) / 2 - curvature / 2 - k * np.log(n) / 2
    chosen = int(np.argmax(evidence)) if np.isfinite(evidence).any() or np.isposinf(evidence).any() else 1
    decided = (np.arange(len(evidence)) == chosen) * 1.0
    chance = np.exp(evidence - evidence[chosen]) if np.isfinite(evidence[chosen]) else decided
    chance /= chance.sum()
    likely = _credible(chance)
    return RankChoice(
        rule="mle",
        chosen=chosen,
        low=int(likely.min()),
        high=int(likely.max()),
        meaning="numbers that together have 95 % of the posterior probability",
        figures={"log_evidence": evidence, "probability": chance},
    )


def _credible(chance: Floats) -> NDArray[np.intp]:
    order = np.argsort(-chance)
    return order[: int(np.searchsorted(np.cumsum(chance[order]), 0.95)) + 1]


def by_parallel_analysis(
    variances: Floats, column_variances: Floats, weight: float, seed: int, repeats: int = 50
) -> RankChoice:
    """Horn's parallel analysis: components that vary more than those of columns with no relation would.

    The null keeps each column's variance and draws the scatter matrix itself (Bartlett's decomposition of a Wishart
    matrix), so its cost does not depend on the number of rows.
    """
    d, rng = len(column_variances), np.random.default_rng(seed)
    rows = _repetitions(weight)
    spreads = np.sqrt(column_variances)
    null = np.empty((repeats, len(variances)))
    for repeat in range(repeats):
        values = np.linalg.svd(_null_factor(rng, rows - 1, d) * spreads, compute_uv=False) ** 2 / (rows - 1)
        null[repeat] = np.concatenate([values, np.zeros(len(variances))])[: len(variances)]
    levels = {share: np.quantile(null, share, axis=0) for share in (0.5, 0.95, 0.99)}

    def leading(threshold: Floats) -> int:
        # What is at the level of rounding is not compared: null and data can both be zero there.
        below = np.flatnonzero(variances <= threshold + variances[0] * 1e-12)
        return int(below[0]) if below.size else len(variances)

    return RankChoice(
        rule="parallel",
        chosen=leading(levels[0.95]),
        low=leading(levels[0.99]),
        high=leading(levels[0.5]),
        meaning="components above the 99 %, 95 % (chosen) and 50 % level of unrelated columns",
        figures={"null_95": levels[0.95], "null_median": levels[0.5]},
    )


def _null_factor(rng: np.random.Generator, freedom: int, d: int) -> Floats:
    """A matrix A with A'A distributed as the scatter of `freedom` standard normal rows."""
    if freedom < d:
        return rng.standard_normal((freedom, d))
    factor = np.triu(rng.standard_normal((d, d)), 1)
    factor[np.diag_indices(d)] = np.sqrt(rng.chisquare(freedom - np.arange(d)))
    return factor


def _repetitions(weight: float) -> int:
    """How many rows the weights stand for."""
    return max(2, round(weight))


def by_gavish_donoho(variances: Floats, weight: float, n_columns: int) -> RankChoice:
    """Singular values above the optimal hard threshold for unknown noise (Gavish and Donoho 2014).

    The noise is judged by the median singular value; the range is what thresholds 10 % lower and higher would give.
    """
    rows = _repetitions(weight)
    most = min(rows - 1, n_columns)  # centring takes one dimension
    singular = np.sqrt(np.concatenate([variances, np.zeros(max(0, most - len(variances)))])[:most])
    beta = most / max(rows - 1, n_columns)
    optimal = np.sqrt(2 * (beta + 1) + 8 * beta / (beta + 1 + np.sqrt(beta**2 + 14 * beta + 1)))
    threshold = float(optimal / np.sqrt(_median_of_noise(beta)) * np.median(singular))
    # At the level of rounding nothing is a component, also where the median itself is zero.
    floor = float(singular.max(initial=0.0)) * 1e-12

    def above(level: float) -> int:
        return int(np.count_nonzero(singular > max(level, floor)))

    return RankChoice(
        rule="gavish-donoho",
        chosen=above(threshold),
        low=above(threshold * 1.1),
        high=above(threshold * 0.9),
        meaning="singular values above the threshold, raised and lowered by 10 %",
        figures={"standard_deviation": singular, "threshold": np.array([threshold])},
    )


def _median_of_noise(beta: float) -> float:
    """The median of the Marchenko-Pastur law with ratio beta and unit noise."""
    from scipy.integrate import quad
    from scipy.optimize import brentq

    low, high = (1 - np.sqrt(beta)) ** 2, (1 + np.sqrt(beta)) ** 2
    if high - low < 1e-12:
        return 1.0

    def mass(up_to: float) -> float:
        # With t = low + (high - low) sin^2, the square-root ends of the density become smooth.
        def density(angle: float) -> float:
            t = low + (high - low) * np.sin(angle) ** 2
            return (
                float((high - low) ** 2 * (np.sin(2 * angle) / 2) ** 2 * 2 / (2 * np.pi * beta * t)) if t > 0 else 0.0
            )

        end = float(np.arcsin(np.sqrt((up_to - low) / (high - low))))
        return float(quad(density, 0, end, limit=200)[0])

    return float(brentq(lambda t: mass(t) - 0.5, low + 1e-14, high - 1e-14))
