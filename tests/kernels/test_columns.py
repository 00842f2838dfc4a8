"""Moments and range of each column in one sweep: against the twins, with weights, and with equal bits on AVX2 and AVX-512."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foldwise import kernels
from foldwise.kernels import reference
from foldwise.kernels.targets import DenseTargets, rescaling_around


def test_by_hand(dtype: Any) -> None:
    x = np.array([[1, 10], [3, 10], [99, -99], [5, 10]], dtype)
    total, mean, squares, low, high = kernels.columns_and_extent(x, np.array([1.0, 2.0, 0.0, 1.0]))
    assert total == 4
    assert mean.tolist() == [[3, 10], [0, 0]]
    assert squares.tolist() == [8, 0]
    assert low.tolist() == [1, 10]
    assert high.tolist() == [5, 10]


@settings(deadline=None, max_examples=150)
@given(
    n=st.integers(1, 90),
    d=st.integers(1, 140),
    zero=st.sampled_from([None, 0.0, 0.1, 0.9]),
    offset=st.sampled_from([0.0, 1e4]),
    single=st.booleans(),
    seed=st.integers(0, 999),
)
def test_agrees_with_the_twins(n: int, d: int, zero: float | None, offset: float, single: bool, seed: int) -> None:
    rng = np.random.default_rng(seed)
    x = (rng.standard_normal((n, d)) + offset).astype(np.float32 if single else np.float64)
    weights = None if zero is None else np.where(rng.random(n) < zero, 0.0, rng.random(n) + 0.5)
    if weights is not None:
        weights[rng.integers(n)] = 1.0
    counted = x if weights is None else x[weights > 0]
    total, mean, squares, low, high = kernels.columns_and_extent(x, weights)
    plain = kernels.columns(x, weights)
    assert plain[0] == total
    np.testing.assert_array_equal(plain[1], mean)
    np.testing.assert_array_equal(plain[2], squares)
    true = reference.columns(counted, None if weights is None else weights[weights > 0])
    assert np.isclose(total, true[0], rtol=1e-14)
    np.testing.assert_allclose(mean.sum(axis=0), true[1].sum(axis=0), rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(squares, true[2], rtol=1e-10, atol=1e-300)
    for found, truth in zip((low, high), reference.extent(counted), strict=True):
        assert found.dtype == np.float64
        np.testing.assert_array_equal(found, truth)


def test_without_weight_nothing_has_a_range(dtype: Any) -> None:
    for x, weights in ((np.ones((3, 2), dtype), np.zeros(3)), (np.empty((0, 2), dtype), None)):
        total, mean, squares, low, high = kernels.columns_and_extent(x, weights)
        assert total == 0
        assert not mean.any()
        assert not squares.any()
        assert (low == np.inf).all()
        assert (high == -np.inf).all()


def test_a_column_that_varies_never_looks_constant(dtype: Any) -> None:
    """The square of the difference underflows; rows of weight 0 do not count as a difference."""
    tiny = np.float64(1e-30 if dtype == np.float32 else 1e-200)
    x = np.array([[0, 5, 5], [tiny, 5, 5], [0, 5, 7]], dtype)
    assert np.array_equal(kernels.columns(x, None)[2] > 0, [True, False, True])
    assert np.array_equal(kernels.columns(x, np.array([1.0, 1.0, 0.0]))[2] > 0, [True, False, False])


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("weighted", [False, True])
def test_what_is_not_finite_shows_in_the_mean(dtype: Any, bad: float, weighted: bool) -> None:
    """On it relies the check of the data, which is not made apart; also in a row of weight 0."""
    for n, d in ((1, 1), (7, 3), (100, 20), (64, 65)):
        x = np.random.default_rng(0).standard_normal((n, d)).astype(dtype)
        x[n // 2, d - 1] = bad
        weights = np.ones(n) if weighted else None
        if weights is not None and n > 1:
            weights[n // 2] = 0.0
        with np.errstate(invalid="ignore"):
            mean = kernels.columns(x, weights)[1]
        assert not np.isfinite(mean[:, d - 1]).all()


@settings(deadline=None, max_examples=100)
@given(d=st.integers(1, 40), seed=st.integers(0, 999), offset=st.sampled_from([0.0, 1e8]), small=st.booleans())
def test_merging_has_the_bits_of_its_twin(d: int, seed: int, offset: float, small: bool) -> None:
    rng = np.random.default_rng(seed)
    sides: list[Any] = []
    for _ in range(2):
        centre = reference.two_parts(rng.integers(-3, 3, d) + offset, rng.standard_normal(d) * (1e-200 if small else 1.0))
        sides += [centre, rng.integers(0, 3, d) * rng.random(d), float(rng.integers(1, 9)) / 3]
    for found, true in zip(kernels.merge_columns(*sides), reference.merge_columns(*sides), strict=True):
        np.testing.assert_array_equal(found, true)


def test_merging_refuses_other_shapes() -> None:
    two, one = np.zeros((2, 3)), np.zeros(3)
    for wrong in ((two, one, 1.0, two[:, :2].copy(), one, 1.0), (two, one, 1.0, np.zeros((1, 3)), one, 1.0)):
        with pytest.raises(ValueError, match=r"columns|parts"):
            kernels.merge_columns(*wrong)


def test_wrong_ranges_are_refused(dtype: Any) -> None:
    x, mean, out = np.ones((4, 3), dtype), np.empty((2, 3)), np.empty(3)
    other = np.float64 if dtype == np.float32 else np.float32
    for low in (np.empty(2, dtype), np.empty(3, other)):
        with pytest.raises(ValueError, match="low and high"):
            kernels._core.columns(x, None, mean, out, low, np.empty(3, dtype))


BITS = "from tests.kernels.test_columns import bits; print(bits())"


def bits() -> str:
    """A hash of moments, ranges and squared distances for many shapes."""
    rng, parts = np.random.default_rng(1), []
    for n, d in ((1, 1), (50, 2), (333, 7), (200, 8), (100, 23), (70, 33), (65, 64), (40, 130), (9, 784)):
        for dtype in (np.float32, np.float64):
            x = (rng.standard_normal((n, d)) + 3).astype(dtype)
            for weights in (None, rng.integers(0, 3, n) + 0.25):
                parts += kernels.columns_and_extent(x, weights)[1:]
                targets = DenseTargets(x[:5].copy(), rescaling_around(x))
                parts.append(targets.residuals(x, weights, np.arange(n, dtype=np.int32) % len(x[:5])))
    return hashlib.sha256(b"".join(np.ascontiguousarray(part).tobytes() for part in parts)).hexdigest()


@pytest.mark.skipif(kernels.instruction_set() != "avx512", reason="needs AVX-512 to compare with AVX2")
def test_the_same_bits_on_avx2_and_avx512() -> None:
    command = [sys.executable, "-c", BITS]
    done = subprocess.run(
        command, env={**os.environ, "FOLDWISE_ISA": "avx2"}, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == bits()
