"""The exponential behind kernels: to the last digits, 1 for what rounding left above 0, 0 for what would be subnormal."""

from __future__ import annotations

import numpy as np
import pytest

from foldwise import kernels
from foldwise.kernels import _core, reference


@pytest.mark.parametrize("n", [0, 1, 3, 4, 7, 8, 9, 16, 1003])
def test_agrees_with_its_twin(n: int) -> None:
    x = -(np.random.default_rng(n).random(n) ** 3) * 720
    out = x.copy()
    kernels.similarity(out)
    np.testing.assert_allclose(out, reference.similarity(x), rtol=5e-16, atol=0)


def test_the_ends() -> None:
    x = np.array([0.0, -0.0, 1e-17, 3.0, -1e-300, -707.9, -708.1, -1e308, -np.inf])
    kernels.similarity(x)
    np.testing.assert_array_equal(x[[0, 1, 2, 3, 4]], 1.0)
    assert x[5] > 0
    np.testing.assert_array_equal(x[6:], 0.0)


def test_every_value_by_itself() -> None:
    """The same bits wherever a value stands: tiles are cut in other places for other tables."""
    x = -np.random.default_rng(0).random(64) * 30
    whole = x.copy()
    kernels.similarity(whole)
    for start in range(0, 64, 5):
        part = x[start : start + 5].copy()
        kernels.similarity(part)
        np.testing.assert_array_equal(part, whole[start : start + 5])


def test_converts_nothing() -> None:
    with pytest.raises(TypeError):
        _core.similarity(np.zeros(3, dtype=np.float32))
    with pytest.raises(TypeError):
        _core.similarity(np.zeros(6)[::2])
