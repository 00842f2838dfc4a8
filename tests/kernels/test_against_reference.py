"""Each kernel against its NumPy twin, over shapes, offsets and scales."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from foldwise import kernels
from foldwise.kernels import reference

OFFSETS = [0.0, 1e3, 1e6, 1e8]
SCALES = {np.float32: [1e-25, 1e-12, 1.0, 1e12, 1e20], np.float64: [1e-100, 1e-25, 1.0, 1e25, 1e100]}


@st.composite
def matrices(draw: st.DrawFn) -> NDArray[Any]:
    dtype = draw(st.sampled_from([np.float32, np.float64]))
    n, d = draw(st.integers(0, 300)), draw(st.integers(0, 70))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    offset, scale = draw(st.sampled_from(OFFSETS)), draw(st.sampled_from(SCALES[dtype]))
    return ((rng.standard_normal((n, d)) + offset) * scale).astype(dtype)


def some_weights(n: int, kind: str) -> NDArray[np.float64] | None:
    rng = np.random.default_rng(n)
    if kind == "none":
        return None
    if kind == "wild":
        return 10.0 ** rng.uniform(-12, 12, n)
    return rng.random(n) * (rng.random(n) < 0.7)


kinds = st.sampled_from(["none", "some zero", "wild"])


@settings(deadline=None, max_examples=200)
@given(matrices(), kinds)
def test_scatter(check_scatter: Any, x: NDArray[Any], kind: str) -> None:
    check_scatter(x, some_weights(len(x), kind))


@settings(deadline=None, max_examples=200)
@given(matrices(), kinds)
def test_columns(check_columns: Any, x: NDArray[Any], kind: str) -> None:
    check_columns(x, some_weights(len(x), kind))


@pytest.mark.parametrize("weighted", [False, True])
def test_scatter_for_every_remainder_of_columns(check_scatter: Any, dtype: Any, weighted: bool) -> None:
    rng = np.random.default_rng(1)
    for d in range(1, 100):
        x = rng.standard_normal((300 + d, d)).astype(dtype)
        check_scatter(x, rng.random(len(x)) if weighted else None)


@pytest.mark.parametrize("n", [1, 2, 7, 8, 9, 127, 129, 255, 256, 257, 511, 513, 1024, 1029, 4111])
def test_scatter_for_many_remainders_of_rows(check_scatter: Any, check_columns: Any, dtype: Any, n: int) -> None:
    rng = np.random.default_rng(n)
    for d in (1, 2, 3, 4, 5, 27, 60):
        check_scatter(rng.standard_normal((n, d)).astype(dtype), None)
        check_columns(rng.standard_normal((n, d)).astype(dtype), None)


def test_scatter_of_wide_rows(check_scatter: Any, dtype: Any) -> None:
    x = (np.random.default_rng(2).standard_normal((700, 411)) * 3 + 1e3).astype(dtype)
    check_scatter(x, None)


def test_scatter_of_more_wide_rows_than_are_packed_at_a_time(check_scatter: Any, dtype: Any) -> None:
    rng = np.random.default_rng(5)
    x = (rng.standard_normal((900, 1300)) * 3 + 1e3).astype(dtype)
    check_scatter(x, None)
    check_scatter(x, rng.random(len(x)))


@settings(deadline=None, max_examples=100)
@given(matrices(), st.booleans())
def test_centred(x: NDArray[Any], scaled: bool) -> None:
    rng = np.random.default_rng(0)
    centre = rng.standard_normal(x.shape[1])
    scale = rng.random(x.shape[1]) + 0.5 if scaled else None
    result = kernels.centred(x, centre, scale)
    assert result.dtype == x.dtype
    assert np.array_equal(result, reference.centred(x, centre, scale))


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("size", [1, 2, 31, 4095, 4096, 4097, 20011])
def test_finite_finds_the_first_bad_value(dtype: Any, bad: float, size: int) -> None:
    x = np.full(size, np.finfo(dtype).max, dtype)
    assert kernels.finite(x) == -1
    for place in {0, size // 3, size // 2, size - 1}:
        spoilt = x.copy()
        spoilt[place] = bad
        spoilt[-1] = bad
        assert kernels.finite(spoilt) == reference.finite(spoilt) == place


def test_finite_of_nothing_and_of_a_matrix(dtype: Any) -> None:
    assert kernels.finite(np.empty((0, 3), dtype)) == -1
    x = np.zeros((5, 7), dtype)
    x[3, 2] = np.nan
    assert kernels.finite(x) == 3 * 7 + 2
