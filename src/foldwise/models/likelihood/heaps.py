"""Values that lie in heaps: many at the least or greatest one, as where a scale ends, and many round numbers."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping

from foldwise.models.likelihood.families.base import Family, plain
from foldwise.models.likelihood.probabilities import interval
from foldwise.stats.univariate import Univariate

_SHARE = 0.02  # of the values: fewer at a limit are not worth a word
_LEAST = 5.0
_TIMES = 3.0  # as many as the family expects there
_UNITS = 20.0  # that the values must reach over for multiples of 5 or 10 to mean something
_CLEAR = 5.0  # standard errors


def heap_notes(
    family: Family, theta: Mapping[str, float], free: Collection[str], values: Univariate
) -> tuple[str, ...]:
    """What a reader should know about heaps of equal and of round values, which no family here describes."""
    if values.low == values.high:
        return ()
    notes = []
    for which, value, weight in (
        ("least", values.low, values.low_weight),
        ("greatest", values.high, values.high_weight),
    ):
        if weight < max(_LEAST, _SHARE * values.weight):
            continue
        expected = values.weight * _probability(family, theta, free, values, value)
        if not weight > _TIMES * expected + _LEAST - 1.0:
            continue
        notes.append(
            f"{weight:,.10g} of the values ({100 * weight / values.weight:.3g} %) equal the {which} one, {plain(value)}, where "
            f"the family expects {expected:.2g}: if they were censored or cut off there, the parameters are biased"
        )
    return (*notes, *_round_numbers(values))


def _probability(
    family: Family, theta: Mapping[str, float], free: Collection[str], values: Univariate, value: float
) -> float:
    """What the family gives to a value: a density to the interval that is rounded to it, so nothing if none is rounded."""
    if family.discrete:
        return float(family.scipy(theta).pmf(value))
    if values.rounding is None:
        return 0.0
    half = values.rounding.step / 2
    below, above = interval(family.scipy(family.widened(theta, free, half)), value, half)
    found = float(above[0] - below[0]) if below[0] < 0.5 else float(below[1] - above[1])
    return found if math.isfinite(found) else 0.0


def _round_numbers(values: Univariate) -> tuple[str, ...]:
    rounding = values.rounding
    if rounding is None or values.high - values.low < _UNITS * rounding.step:
        return ()
    n = rounding.weight
    for units, weight, share in ((10, rounding.tens, 0.1), (5, rounding.fives, 0.2)):
        if weight - share * n > max(_CLEAR * math.sqrt(share * (1 - share) * n), 0.75 * share * n):
            return (
                f"{100 * weight / n:.3g} % of the values are multiples of {plain(float(f'{units * rounding.step:g}'))}, where "
                f"about {100 * share:g} % would be by chance: they are heaped at round numbers, and tests of fit see that",
            )
    return ()
