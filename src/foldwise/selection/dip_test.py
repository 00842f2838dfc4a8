"""Hartigan's dip test: does a sample come from a distribution with one peak?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from foldwise.data.block import Floats
from foldwise.errors import DataError
from foldwise.kernels import _core
from foldwise.reportable import Reportable

# Of the dip times the root of n, for n uniform values: what it exceeds with these probabilities. Simulated by
# benchmarks/accuracy/dip_table.py, with 60,000 samples of the small sizes and 8,000 of the largest.
_PROBABILITIES = (0.9, 0.7, 0.5, 0.3, 0.2, 0.1, 0.05, 0.02, 0.01, 0.005, 0.002, 0.001)
_QUANTILES = {
    8: (0.2321, 0.2818, 0.3141, 0.3411, 0.3549, 0.4020, 0.4365, 0.4697, 0.4894, 0.5069, 0.5264, 0.5553),
    12: (0.2504, 0.2819, 0.3155, 0.3567, 0.3818, 0.4168, 0.4503, 0.4904, 0.5150, 0.5381, 0.5649, 0.5868),
    20: (0.2535, 0.2948, 0.3269, 0.3682, 0.3946, 0.4341, 0.4702, 0.5109, 0.5399, 0.5677, 0.5981, 0.6196),
    35: (0.2628, 0.3041, 0.3396, 0.3809, 0.4089, 0.4512, 0.4883, 0.5324, 0.5609, 0.5897, 0.6247, 0.6467),
    60: (0.2694, 0.3124, 0.3490, 0.3916, 0.4208, 0.4637, 0.5017, 0.5493, 0.5808, 0.6128, 0.6471, 0.6722),
    100: (0.2746, 0.3184, 0.3554, 0.3984, 0.4281, 0.4724, 0.5117, 0.5588, 0.5889, 0.6172, 0.6529, 0.6813),
    200: (0.2795, 0.3238, 0.3621, 0.4066, 0.4363, 0.4814, 0.5216, 0.5688, 0.6017, 0.6313, 0.6697, 0.6953),
    500: (0.2852, 0.3291, 0.3680, 0.4126, 0.4426, 0.4888, 0.5295, 0.5784, 0.6110, 0.6410, 0.6788, 0.7096),
    1500: (0.2882, 0.3338, 0.3720, 0.4178, 0.4483, 0.4945, 0.5367, 0.5884, 0.6224, 0.6534, 0.6893, 0.7131),
    5000: (0.2927, 0.3374, 0.3757, 0.4205, 0.4518, 0.4984, 0.5402, 0.5916, 0.6273, 0.6605, 0.6983, 0.7301),
    20000: (0.2939, 0.3396, 0.3776, 0.4231, 0.4563, 0.5028, 0.5457, 0.6030, 0.6338, 0.6661, 0.7073, 0.7343),
}
_SIZES = np.array(sorted(_QUANTILES), dtype=np.float64)
_TABLE = np.array([_QUANTILES[n] for n in sorted(_QUANTILES)])
_LEAST = 8  # fewer values never prove anything


@dataclass(frozen=True)
class DipTest(Reportable):
    """The dip (0 to 0.25), and the probability that as many uniform values have one as large.

    Among distributions with one peak the uniform one has the largest dips, so that the probability is an upper bound.
    """

    dip: float
    p_value: float


def dip_test(values: Any, sample_weight: Any = None) -> DipTest:
    """Test whether values come from a distribution with a single peak (Hartigan and Hartigan 1985).

    A weight counts as repetition of its value. Values that are rounded to a few levels have a large dip for that reason alone:
    add a uniform value as wide as the rounding first. Fewer than eight values prove nothing: p is 1. The probability is
    interpolated in a table of simulations, and beyond 0.001 continued as that of a normal tail.

    >>> import numpy as np
    >>> import foldwise as fw
    >>> rng = np.random.default_rng(0)
    >>> one, two = rng.standard_normal(200), np.concatenate([rng.standard_normal(100), 5 + rng.standard_normal(100)])
    >>> fw.dip_test(one).p_value > 0.5, fw.dip_test(two).p_value < 0.001
    (True, True)
    """
    try:
        x = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as problem:
        raise DataError(f"the values are not numbers ({problem})", advice="Give one number for each") from None
    if x.ndim != 1:
        raise DataError(f"an array of {x.ndim} dimensions was passed", advice="Give one column at a time")
    weights = None if sample_weight is None else np.asarray(sample_weight, dtype=np.float64).reshape(-1)
    if weights is not None and (len(weights) != len(x) or not np.isfinite(weights).all() or (weights < 0).any()):
        raise DataError("sample_weight must be one number of at least 0 for each value")
    if not np.isfinite(x).all():
        raise DataError("the values contain NaN or infinity", advice="Leave these values out")
    return dip_of(x, weights)


def dip_of(x: Floats, weights: Floats | None = None) -> DipTest:
    """The same for finite values."""
    order = np.argsort(x, kind="stable")
    n = float(len(x)) if weights is None else float(weights.sum())
    if len(x) < 2 or n <= 0:
        return DipTest(0.0, 1.0)
    found = _core.dip(np.ascontiguousarray(x[order]), None if weights is None else np.ascontiguousarray(weights[order]))
    return DipTest(found, p_value(found, n))


def p_value(dip: float, n: float) -> float:
    """The probability that n uniform values have a dip of at least this.

    >>> round(p_value(0.0500, 100), 3), p_value(0.1, 5), p_value(0.1, 1000) < 1e-20
    (0.062, 1.0, True)
    """
    if n < _LEAST:
        return 1.0
    size = float(np.clip(n, _SIZES[0], _SIZES[-1]))
    # Quantiles approach their limit like one over the root of n.
    place = np.interp(-1.0 / np.sqrt(size), -1.0 / np.sqrt(_SIZES), np.arange(len(_SIZES)))
    below = min(int(place), len(_SIZES) - 2)
    quantiles = _TABLE[below] + (place - below) * (_TABLE[below + 1] - _TABLE[below])
    logs, squares, z = np.log(_PROBABILITIES), quantiles**2, dip * np.sqrt(n)
    if z <= quantiles[0]:
        return 1.0 - (1.0 - _PROBABILITIES[0]) * float(z / quantiles[0])
    if z >= quantiles[-1]:
        slope = (logs[-1] - logs[-4]) / (squares[-1] - squares[-4])
        return float(np.exp(max(logs[-1] + slope * (z**2 - squares[-1]), -700.0)))
    return float(np.exp(np.interp(z**2, squares, logs)))
