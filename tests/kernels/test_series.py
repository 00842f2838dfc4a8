"""Functions that do not cancel, against 400 digits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from foldwise.kernels.series import excess, log_less_digamma, log_ratio, stirling, stirling_rest, trigamma_excess

mp = pytest.importorskip("mpmath")
SHAPES = np.concatenate([10.0 ** np.linspace(-8, 20, 150), [1.0, 2.0, 11.999, 12.0, 12.001]])


def worst(found: Any, exact: Any, at: np.ndarray) -> float:
    with mp.workdps(400):
        true = [exact(mp.mpf(float(x))) for x in at]
        return max(float(abs((mp.mpf(float(f)) - t) / t)) for f, t in zip(found(at), true, strict=True))


def test_excess() -> None:
    at = np.concatenate([10.0 ** np.linspace(-150, 5, 120), -(10.0 ** np.linspace(-150, -0.01, 90))])
    assert worst(excess, lambda t: t - mp.log1p(t), at) < 3e-15
    assert float(excess(0.0)) == 0.0
    assert np.all(excess(np.linspace(-0.99, 3, 1000)) >= 0)


def test_gamma_functions() -> None:
    assert worst(log_less_digamma, lambda k: mp.log(k) - mp.digamma(k), SHAPES) < 1e-14
    assert worst(trigamma_excess, lambda k: mp.psi(1, k) - 1 / k, SHAPES) < 1e-14
    large = SHAPES[SHAPES >= 12]
    rest = lambda k: mp.loggamma(k) - (k - mp.mpf(1) / 2) * mp.log(k) + k - mp.log(2 * mp.pi) / 2  # noqa: E731
    assert worst(stirling_rest, rest, large) < 1e-13
    with mp.workdps(60):
        for k in SHAPES:
            true = mp.mpf(float(k)) * mp.log(k) - mp.mpf(float(k)) - mp.loggamma(mp.mpf(float(k)))
            assert abs(float(stirling(k)) - true) < 1e-14 * max(1, abs(true))


def test_logarithms_next_to_the_pivot() -> None:
    near = 1e8 * (1 + np.array([1e-15, -3e-9, 0.2, 5.0, -0.999]))
    for x, found in zip(near, log_ratio(near, 1e8, fine=True), strict=True):
        with mp.workdps(50):
            true = mp.log(mp.mpf(float(x)) / mp.mpf(1e8))
            assert abs(mp.mpf(float(found)) - true) <= 4e-16 * abs(true)
    wide = np.array([1e-300, 1e-200, 1.0, 1e300])
    np.testing.assert_allclose(log_ratio(wide, 1e300, fine=False), np.log(wide) - np.log(1e300), rtol=1e-14)
