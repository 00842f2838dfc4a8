"""Differences of logarithms and gamma functions that would cancel if evaluated as written."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

_CLOSE = 0.1  # up to here a short series is used, where the logarithm would lose digits
_LARGE = 12.0  # from here on, Stirling's series has full precision

_STIRLING = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156)
_DIGAMMA = (1 / 12, -1 / 120, 1 / 252, -1 / 240, 1 / 132, -691 / 32760, 1 / 12)
_TRIGAMMA = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6)


def excess(t: Any) -> Any:
    """t - log(1 + t) for t > -1: never negative, about t^2 / 2 for small t.

    >>> round(float(excess(1e-9)) / 1e-18, 6), float(excess(1.0)) == 1 - math.log(2)
    (0.5, True)
    """
    t = np.asarray(t, dtype=np.float64)
    small = np.abs(t) < _CLOSE
    if small.all():
        return _excess_series(t)
    with np.errstate(divide="ignore", invalid="ignore"):
        out = np.asarray(t - np.log1p(t))
    if small.any():
        out = np.where(small, _excess_series(np.where(small, t, 0.0)), out)
    return out


def _excess_series(t: NDArray[np.float64]) -> NDArray[np.float64]:
    # log(1 + t) = 2 atanh(r) with r = t / (2 + t); subtracting its first term from t leaves r t.
    r = t / (2.0 + t)
    q = r * r
    tail = 1 / 15 * q
    for odd in (13, 11, 9, 7, 5, 3):
        tail = (1 / odd + tail) if odd == 3 else (1 / odd + tail) * q
    return np.asarray(r * (t - 2.0 * q * tail))


def divergence(gap: Any, mean: Any) -> Any:
    """x log(x / mean) - x + mean for x = mean + gap, both non-negative: about gap^2 / (2 mean) for a small gap.

    >>> float(divergence(-3.0, 3.0)), round(float(divergence(1e7, 1e15)), 9)
    (3.0, 0.05)
    """
    gap, mean = np.asarray(gap, dtype=np.float64), np.asarray(mean, dtype=np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        t = gap / mean
        log = np.log1p(t)
        small = np.abs(t) < _CLOSE
        less = t - log
        if small.any():
            less = np.where(small, _excess_series(np.where(small, t, 0.0)), less)
        found = np.where(t > -1.0, t * log - less, 1.0) * mean
    return np.where(mean > 0, found, np.where(gap == 0, 0.0, np.inf))[()]


def factorial_rest(x: Any) -> Any:
    """log x! - x log x + x: the remainder of log x! after its two large terms; 0 for x = 0.

    >>> float(factorial_rest(0.0)), float(factorial_rest(1.0))
    (0.0, 1.0)
    """
    x = np.asarray(x, dtype=np.float64)
    some = np.maximum(x, 1.0)
    return np.where(x > 0, np.log(some) - stirling(some), 0.0)[()]


def log_ratio(x: NDArray[np.float64], pivot: float, *, fine: bool) -> NDArray[np.float64]:
    """log(x / pivot) of positive values; `fine` keeps full accuracy for values close to the pivot."""
    if fine:
        t = (x - pivot) / pivot
        close = np.abs(t) < 0.5
        return np.log1p(t) if close.all() else np.where(close, np.log1p(np.where(close, t, 0.0)), np.log(x / pivot))
    with np.errstate(over="ignore", under="ignore", divide="ignore"):
        ratio = x / pivot
    if ratio.size and not (ratio.min() > 1e-290 and ratio.max() < 1e290):
        return np.asarray(np.log(x) - math.log(pivot))
    return np.asarray(np.log(ratio))


def stirling(k: Any) -> Any:
    """k log k - k - log Gamma(k): the remainder of log Gamma after its two large terms, with the sign changed.

    >>> round(float(stirling(1e16)), 10) == round(0.5 * math.log(1e16 / (2 * math.pi)), 10)
    True
    """
    from scipy.special import gammaln

    k = np.asarray(k, dtype=np.float64)
    far = np.maximum(k, _LARGE)
    large = 0.5 * np.log(far / (2 * np.pi)) - stirling_rest(far)
    if (k >= _LARGE).all():
        return large[()]
    near = np.minimum(k, _LARGE)
    return np.where(k >= _LARGE, large, near * np.log(near) - near - gammaln(near))[()]


def stirling_rest(k: Any) -> Any:
    """Stirling's series in 1 / k, for k of at least 12."""
    return _odd(k, _STIRLING)


def log_less_digamma(k: Any) -> Any:
    """log k - digamma(k), about 1 / (2 k).

    >>> float(log_less_digamma(1e16))
    5e-17
    """
    from scipy.special import digamma

    k = np.asarray(k, dtype=np.float64)
    far = np.maximum(k, _LARGE)
    inverse = 1.0 / far
    large = inverse * (0.5 + _odd(far, _DIGAMMA))
    near = np.minimum(k, _LARGE)
    return np.where(k >= _LARGE, large, np.log(near) - digamma(near))[()]


def trigamma_excess(k: Any) -> Any:
    """trigamma(k) - 1 / k, about 1 / (2 k^2): minus the derivative of `log_less_digamma`.

    >>> round(float(trigamma_excess(1e8)) * 1e16, 6)
    0.5
    """
    from scipy.special import polygamma

    k = np.asarray(k, dtype=np.float64)
    far = np.maximum(k, _LARGE)
    large = (0.5 + _odd(far, _TRIGAMMA)) / far / far
    near = np.minimum(k, _LARGE)
    return np.where(k >= _LARGE, large, polygamma(1, near) - 1.0 / near)[()]


def _odd(k: Any, coefficients: Sequence[float]) -> Any:
    """c0 / k + c1 / k^3 + c2 / k^5 + ..."""
    inverse = 1.0 / k
    q, total = inverse * inverse, 0.0
    for coefficient in reversed(coefficients):
        total = coefficient + q * total
    return inverse * total
