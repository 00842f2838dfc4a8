"""How many components: rules that read the variances, and how sure each one is."""

from __future__ import annotations

from dataclasses import dataclass, field
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray

from foldwise.data.block import Floats
from foldwise.errors import ParameterError
from foldwise.models.pca.noise_edge import TRACY_WIDOM, NoiseEdge
from foldwise.models.pca.solver import dimensions
from foldwise.models.pca.spectrum import Spectrum
from foldwise.reportable import Reportable

RULES = ("parallel", "held-out", "mle", "gavish-donoho", "broken-stick")  # "held-out" looks at rows: held_out.py

_AHEAD = 1  # components of parallel analysis that may look like noise before one that does not


@dataclass(frozen=True)
class RankChoice(Reportable):
    """The number a rule arrived at, and the range it would also defend: `low` to `high`.

    `figures` holds what the rule looked at, one value for each number of components or for each component.
    """

    rule: str
    chosen: int
    low: int
    high: int
    meaning: str
    figures: dict[str, Floats] = field(default_factory=dict, repr=False)


def by_rule(rule: Any, found: Spectrum) -> RankChoice | None:
    """What n_components=`rule` says of these variances; None where it is a number, or all."""
    if rule is None or isinstance(rule, Integral):
        return None
    if rule == "held-out":
        raise ParameterError("n_components='held-out' looks at the rows again: use fit, not partial_fit")
    if rule not in RULES:
        return by_share(found.variances, found.total_variance, float(rule), found.weight)
    most = dimensions(len(found.mean), found.indicators)
    if rule == "mle":
        return by_minka(found.variances, found.weight, most, found.floor)
    variances = np.where(found.variances > found.floor, found.variances, 0.0)  # what is rounding is not compared
    if rule == "parallel":
        return by_parallel_analysis(variances, found.directions, found.column_variances, found.weight, most)
    if rule == "broken-stick":
        return by_broken_stick(variances, found.total_variance, found.weight, most)
    return by_gavish_donoho(variances, found.weight, most)


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


def by_minka(variances: Floats, weight: float, n_columns: int, floor: float = 0.0, *, none: bool = False) -> RankChoice:
    """Minka's approximation to the evidence of a k-dimensional probabilistic PCA (Minka 2000); no noise is below `floor`.

    With `none`, no component at all is an answer, too; scikit-learn's rule has at least one.
    """
    from scipy.special import gammaln

    if weight < n_columns:
        raise ParameterError("n_components='mle' is only supported if n_samples >= n_features")
    d, n = n_columns, weight
    floor = max(floor, float(variances[0]) * np.finfo(np.float64).eps * d, float(np.finfo(np.float64).tiny))
    spectrum = np.maximum(variances, floor)
    logs = np.log(spectrum)
    evidence = np.full(max(d, 2), -np.inf)  # of 0, 1, ... components; a single column leaves one
    if none and d > 1:
        evidence[0] = -np.log(float(spectrum.mean())) * n * d / 2
    with np.errstate(divide="ignore", invalid="ignore"):  # of pairs of directions i < j; equal variances count as -inf
        apart = np.log(np.maximum(spectrum[:, None] - spectrum, 0))
        narrow = apart + np.log(np.maximum(1 / spectrum - 1 / spectrum[:, None], 0))
    among = 0.0
    for k in range(1, d):
        if spectrum[k - 1] <= floor:
            break  # a direction without variance is no component
        i = np.arange(k)
        among += float(narrow[: k - 1, k - 1].sum())
        noise = float(spectrum[k:].mean())
        prior = -k * np.log(2) + float(np.sum(gammaln((d - i) / 2) - np.log(np.pi) * (d - i) / 2))
        fit = -n / 2 * float(logs[:k].sum()) - np.log(noise) * n * (d - k) / 2
        free = d * k - k * (k + 1) / 2
        with np.errstate(divide="ignore"):
            across = float(apart[:k, k:].sum() + (d - k) * np.log(np.maximum(1 / noise - 1 / spectrum[:k], 0)).sum())
        curvature = among + across + free * np.log(n)
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
    variances: Floats, directions: Floats, column_variances: Floats, weight: float, most: int | None = None
) -> RankChoice:
    """Parallel analysis without random numbers, one component at a time (Dobriban and Owen 2019).

    A component counts if it varies more than the largest one of unrelated columns would (`NoiseEdge`), given the columns'
    variances without the components before it, so that strong ones do not hide weak ones. Two in a row that do not end the
    search. `most` is the number of directions in which the rows can vary at all.
    """
    rows = _repetitions(weight)
    most = min(rows - 1, len(column_variances) if most is None else most)
    floor = float(variances.max(initial=0.0)) * 1e-12  # what is at the level of rounding is no component
    left, outside = column_variances.astype(np.float64), np.ones(len(column_variances))
    last = dict.fromkeys(TRACY_WIDOM, 0)
    levels: dict[float, list[float]] = {chance: [] for chance in TRACY_WIDOM}
    for k, variance in enumerate(variances[: most - 1]):  # with the last one there is no noise left to compare with
        square = np.asarray(directions[k], dtype=np.float64) ** 2
        noise = NoiseEdge.of(*_noise_beside(variance, square, left, outside, rows - 1 - k))
        for chance in TRACY_WIDOM:
            levels[chance].append(noise.level(chance))
            if variance > max(levels[chance][-1], floor) and k <= last[chance] + _AHEAD:
                last[chance] = k + 1
        if variance <= floor or k >= max(last.values()) + _AHEAD:
            break
        left, outside = np.maximum(left - variance * square, 0.0), np.maximum(outside - square, 0.0)
    return RankChoice(
        rule="parallel",
        chosen=last[0.95],
        low=last[0.99],
        high=last[0.5],
        meaning="components above the 99 %, 95 % (chosen) and 50 % level of unrelated columns",
        figures={"null_95": np.array(levels[0.95]), "null_median": np.array(levels[0.5])},
    )


def _noise_beside(
    variance: float, square: Floats, left: Floats, outside: Floats, freedom: int
) -> tuple[Floats, int, Floats]:
    """The columns' noise if this component were none of it: variances, degrees of freedom, and how many each stands for.

    Components found before took noise along: of a column whose share h is left outside them, h counts, with 1 / h of the
    variance that is left. The component's own variance beyond noise is taken off each column, but no more than the other
    columns vouch for: a component of one column is no relation.
    """
    some = outside > 1e-9
    variances = np.where(some, left / np.where(some, outside, 1.0), 0.0)
    if (taken := 1 - outside).any():
        along = float(taken @ variances) / float(taken.sum())
        variances = np.maximum(along + (variances - along) / np.sqrt(np.maximum(outside, 0.25)), 0.0) * some
    inflation = 1 + float(outside.sum()) / freedom
    noise = variances
    for _ in range(3):
        beyond = max(variance - inflation * float(square @ noise), 0.0)
        noise = np.maximum(variances - beyond * square * (1 - square), 0.0)
    return noise, freedom, np.where(some, outside, 0.0)


def by_broken_stick(variances: Floats, total: float, weight: float, n_columns: int) -> RankChoice:
    """Leading shares of variance that exceed those of a stick broken at random (Frontier 1976; Jackson 1993).

    The range is that of shares two standard errors lower and higher, for normal data.
    """
    parts = min(_repetitions(weight) - 1, n_columns)
    expected = (np.cumsum(1.0 / np.arange(parts, 0, -1))[::-1] / parts)[: len(variances)]
    shares = (variances / total if total > 0 else np.zeros_like(variances))[: len(expected)]
    error = 2 * shares * np.sqrt(2 / max(weight - 1, 1))

    def leading(shares: Floats) -> int:
        return int(np.argmin(np.append(shares > expected * (1 + 1e-12), False)))

    return RankChoice(
        rule="broken-stick",
        chosen=leading(shares),
        low=leading(shares - error),
        high=leading(shares + error),
        meaning="leading shares above those of a stick broken at random, lowered and raised by two standard errors",
        figures={"share": shares, "broken_stick": expected},
    )


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
