"""Does the family describe the data at all? Tests that know that its parameters were estimated."""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from foldwise.data.block import Block, DenseBlock, Floats
from foldwise.errors import ParameterError
from foldwise.fold.passes import Passes
from foldwise.models.likelihood.families import FAMILIES
from foldwise.models.likelihood.families.base import Family, RefusalError
from foldwise.models.likelihood.probabilities import interval
from foldwise.models.likelihood.solve import estimate
from foldwise.models.session import open_passes
from foldwise.reportable import Reportable
from foldwise.stats.rounding import Rounding
from foldwise.stats.term_sums import BinWeights
from foldwise.stats.univariate import values_and_weights

_LEAST_EXPECTED = 5.0
_MOST_CELLS = 200
_SMALLEST = 1e-6  # the least probability below or above a value that Anderson and Darling's distance takes into account


@dataclass(frozen=True)
class Goodness(Reportable):
    """Statistics and p-values by the name of the test, of `n` values; `note` says what they rest on.

    A small p-value says that values from the family would hardly ever lie this far from it. With very many values any family
    that is not exactly right is found out.
    """

    statistics: dict[str, float]
    p_values: dict[str, float]
    n: float
    note: str
    resamples: int = 0
    degrees: int = 0  # of freedom, of chi-square

    @property
    def p_value(self) -> float:
        """That of Anderson-Darling, or of chi-square for counts."""
        return next(iter(self.p_values.values()), math.nan)


def goodness_of_fit(fit: Any, *, resamples: int, most: int, seed: int, engine: Any = None) -> Goodness:
    """See `FittedDistribution.goodness_of_fit`."""
    if fit.source is None:
        raise ParameterError("goodness of fit needs the data, which a loaded fit does not have.")
    try:
        if fit.discrete:
            with open_passes(fit.source, engine=engine, n_threads=fit.manifest.threads) as passes:
                return _chi_square(fit, passes)
        return _by_bootstrap(fit, draw(fit, most, seed, engine=engine), resamples, seed)
    except RefusalError as refusal:
        return Goodness({}, {}, fit.n, str(refusal))


# ---------------------------------------------------------------- counts


def _chi_square(fit: Any, passes: Passes) -> Goodness:
    from scipy.special import chdtrc

    _repetitions(passes)
    edges, expected = _cells(fit)
    if len(expected) < len(fit.free) + 2:
        return Goodness({}, {}, fit.n, "too few cells with an expected count of 5 or more for a chi-square test")
    observed = passes.fold(partial(BinWeights.of, edges=edges)).weights
    statistic = float(((observed - expected) ** 2 / expected).sum())
    least, greatest = len(expected) - 1 - len(fit.free), len(expected) - 1
    low, high = float(chdtrc(least, statistic)), float(chdtrc(greatest, statistic))
    note = f"{len(expected)} cells; the p-value is for {least} degrees of freedom"
    if fit.free:
        note += f" (parameters were estimated from all values, so the truth lies between it and {high:.3g})"
    return Goodness({"chi-square": statistic}, {"chi-square": low}, fit.n, note, degrees=least)


def _cells(fit: Any) -> tuple[Floats, Floats]:
    """Edges (a value that equals one lies above it) between cells in which at least five values are expected."""
    distribution = fit.scipy
    low, high = distribution.ppf([1e-9, 1 - 1e-9])
    step = max(1.0, math.ceil((high - low + 1) / (50 * _MOST_CELLS)))
    marks = np.arange(low, high + step, step)
    inside = np.diff(distribution.cdf(marks)) * fit.n
    edges, expected, sum_ = [], [], float(distribution.cdf(marks[0])) * fit.n
    target = max(_LEAST_EXPECTED, fit.n / _MOST_CELLS)
    for mark, part in zip(marks[:-1], inside, strict=True):
        if sum_ >= target:
            edges.append(float(mark) + 1.0)
            expected.append(sum_)
            sum_ = 0.0
        sum_ += float(part)
    rest = fit.n - sum(expected)
    if rest < _LEAST_EXPECTED and expected:
        edges.pop()
        rest += expected.pop()
    return np.array(edges), np.array([*expected, rest])


# ---------------------------------------------------------------- continuous values


def _by_bootstrap(fit: Any, sample: Floats, resamples: int, seed: int) -> Goodness:
    family = FAMILIES[fit.family]
    fixed = {name: fit.parameters[name] for name in fit.fixed}
    n = len(sample)
    note = f"parametric bootstrap, {resamples} samples of {n} values"
    if n < fit.n:
        note += f"; the test looks at {n} of the values, drawn at random, and at the family fitted to these"
    rounding = fit.statistics.rounding
    if rounding is not None and len(np.unique(sample)) == n:
        rounding = None  # without ties it makes no difference
    if rounding is not None:
        note += f"; the samples are rounded to multiples of {rounding.step:g}, as the values are"
    rng = np.random.default_rng([seed, 1])
    theta = _refit(family, sample, fixed)
    if theta is None:
        return Goodness({}, {}, fit.n, "the family cannot be fitted to the sample that would be tested")
    found = _distances(family, theta, fit.free, sample, rounding)
    if found is None:
        return Goodness({}, {}, fit.n, "too few values for a test beside those that determine where the support ends")
    half = 0.0 if rounding is None else rounding.step / 2
    above, made, frozen = np.zeros(2), 0, family.scipy(family.widened(theta, fit.free, half, _ends(sample)))
    for _ in range(resamples):
        drawn = np.asarray(frozen.rvs(size=n, random_state=rng), dtype=np.float64)
        drawn = drawn if rounding is None else np.rint(drawn * 10.0**rounding.decimals) / 10.0**rounding.decimals
        again = _refit(family, drawn, fixed)
        distances = None if again is None else _distances(family, again, fit.free, drawn, rounding)
        if distances is None:
            continue
        made += 1
        above += (distances >= found) & np.isfinite(found)
    if made < resamples:
        note += f"; {resamples - made} of them could not be fitted and do not count"
    names = ("Anderson-Darling", "Kolmogorov-Smirnov")
    statistics = dict(zip(names, map(float, found), strict=True))
    if made <= resamples // 2:
        return Goodness(statistics, {}, n, f"{note}; that is too few for p-values")
    p_values = dict(zip(names, map(float, (above + 1) / (made + 1)), strict=True))
    return Goodness(statistics, p_values, n, note, made)


def _refit(family: Family, x: Floats, fixed: dict[str, float]) -> dict[str, float] | None:
    with np.errstate(all="ignore"):
        try:
            return estimate(family, DenseBlock(x.reshape(-1, 1)), fixed)
        except RefusalError:
            return None


def _distances(
    family: Family, theta: dict[str, float], free: Collection[str], x: Floats, rounding: Rounding | None
) -> Floats | None:
    """Anderson and Darling's, and Kolmogorov and Smirnov's, distance of the values from the distribution.

    A value at which the support begins or ends because it is the least or the greatest one says nothing about the family, and
    Anderson and Darling's distance would be infinite: given that value, the others are a sample of the distribution between
    the limits (Quesenberry and Starbuck 1976), and it is these that are tested.
    """
    x = np.sort(x)
    if rounding is None:
        limits = ((family.begins, x[0]), (family.ends, x[-1]))
        first, last = (name is not None and name in free and theta[name] == value for name, value in limits)
        x = x[int(first) : len(x) - int(last)]
    n = len(x)
    if n < 2:
        return None
    place = np.arange(1, n + 1)
    with np.errstate(all="ignore"):
        below, above = _levels(family, theta, free, x, rounding)
        # A value that the family all but forbids, such as an exact 0 of an exponential distribution, weighs much, not all.
        logs = np.log(np.maximum(below, _SMALLEST)) + np.log(np.maximum(above, _SMALLEST))[::-1]
        squared = -n - float(((2 * place - 1) / n * logs).sum())
    largest = float(np.maximum(place / n - below, below - (place - 1) / n).max())
    return np.array([one if math.isfinite(one) else math.inf for one in (squared, largest)])


def _levels(
    family: Family, theta: dict[str, float], free: Collection[str], x: Floats, rounding: Rounding | None
) -> tuple[Floats, Floats]:
    """The probabilities below and above sorted values; equal ones are spread over the interval that is rounded to them."""
    if rounding is None:
        frozen = family.scipy(theta)
        return frozen.cdf(x), frozen.sf(x)
    half = rounding.step / 2
    values, first, of, times = np.unique(x, return_index=True, return_inverse=True, return_counts=True)
    lower, upper = interval(family.scipy(family.widened(theta, free, half, _ends(x))), values, half)
    share = (np.arange(len(x)) - first[of] + 0.5) / times[of]
    below = lower[0][of] + (upper[0] - lower[0])[of] * share
    return below, upper[1][of] + (lower[1] - upper[1])[of] * (1.0 - share)


def _ends(x: Floats) -> tuple[float, float]:
    """The shares of values that equal the least and the greatest one."""
    return float(np.mean(x == x.min())), float(np.mean(x == x.max()))


def _repetitions(passes: Passes) -> NDArray[np.int64]:
    """How many values each block stands for; weights that are no repetition are refused."""
    found = passes.each(_weight)
    if not all(whole for _, whole in found):
        raise RefusalError("weights that are not whole numbers do not mean repetition, so there is no sample to test")
    return np.array([weight for weight, _ in found]).astype(np.int64)


def _weight(block: Block) -> tuple[float, bool]:
    """The weight of a block's values, and whether each weight is a whole number."""
    _, w, _ = values_and_weights(block)
    return (float(block.n_rows), True) if w is None else (float(w.sum()), bool((w == np.floor(w)).all()))


def draw(fit: Any, most: int, seed: int, *, engine: Any = None) -> Floats:
    """All values, or some drawn at random without replacement; weights mean repetition here too."""
    with open_passes(fit.source, engine=engine, n_threads=fit.manifest.threads) as passes:
        ends = np.cumsum(_repetitions(passes))
        total = int(ends[-1])
        chosen = np.arange(total) if total <= most else _drawn(total, most, np.random.default_rng([seed, 0]))
        of_block = np.searchsorted(ends, chosen, side="right")
        starts = np.append(0, ends[:-1])
        wanted = {int(i): chosen[of_block == i] - starts[i] for i in np.unique(of_block)}
        found = passes.ask(_pick, wanted)
    return np.concatenate([found[i] for i in sorted(found)])


def _pick(block: Block, state: Any, repetitions: NDArray[np.int64]) -> Floats:
    """The values that repetitions of a block's rows, counted from 0, stand for."""
    x, w, _ = values_and_weights(block)
    return np.array(x[repetitions if w is None else np.searchsorted(np.cumsum(w), repetitions, side="right")])


def _drawn(total: int, most: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Numbers below `total`, none twice, rising; without a list of all of them."""
    found = np.unique(rng.integers(total, size=most))
    while len(found) < most:
        found = np.unique(np.append(found, rng.integers(total, size=most - len(found))))
    return found
