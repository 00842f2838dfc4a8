"""The laws of the sums of EM over rows with missing cells: the same as for complete ones, and what NaN adds to them."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from foldwise.data.block import DenseBlock
from foldwise.models.mixture.covariance import COVARIANCE_TYPES
from foldwise.stats.responsibility_sums import ResponsibilitySums
from foldwise.testing import check_statistic

KINDS = list(COVARIANCE_TYPES)
K = 3


def components(name: str, d: int, offset: float, dtype: Any = np.float64, *, gaps: bool = True) -> Any:
    rng = np.random.default_rng(3)
    family = COVARIANCE_TYPES[name].of_columns(d, None)
    factor = rng.standard_normal((K, d, d)) + 2 * np.eye(d)
    covariances = family.of_matrices(factor @ factor.transpose(0, 2, 1), np.ones(K))
    means = offset + 2 * rng.standard_normal((K, d))
    pivot = np.full(d, offset, dtype).astype(np.float64)
    weights, whiten = np.array([0.5, 0.3, 0.2]), family.whiten(covariances)
    return family.components(weights, means, whiten, pivot, np.dtype(dtype), scatter=family.scatter, gaps=gaps)


@st.composite
def cases(draw: st.DrawFn) -> tuple[np.ndarray, float, np.ndarray]:
    n, d = draw(st.integers(1, 40)), draw(st.integers(2, 6))
    rng = np.random.default_rng(draw(st.integers(0, 10_000)))
    offset = draw(st.sampled_from([0.0, 1e3, 1e8]))
    x = offset + 2 * rng.standard_normal((n, d))
    x[rng.random(x.shape) < draw(st.sampled_from([0.1, 0.5, 0.9]))] = np.nan
    return x, offset, rng.integers(0, 4, n).astype(np.float64)


def same(a: ResponsibilitySums, b: ResponsibilitySums, rtol: float = 1e-9) -> None:
    for name in ("log_likelihood", "counts", "shift", "scatter"):
        x, y = np.asarray(getattr(a, name)), np.asarray(getattr(b, name))
        np.testing.assert_allclose(x, y, rtol=rtol, atol=rtol * (1 + np.abs(y).max(initial=0.0)), err_msg=name)


@pytest.mark.parametrize("name", KINDS)
@given(case=cases(), cuts=st.lists(st.floats(0, 1), max_size=5))
def test_any_split_equals_the_whole_and_empty_is_the_identity(name: str, case: Any, cuts: list[float]) -> None:
    x, offset, _ = case
    packed = components(name, x.shape[1], offset)
    nothing = ResponsibilitySums.empty(packed.scatter, K, x.shape[1])
    total = nothing
    for start, stop in pairwise([0, *sorted(int(c * len(x)) for c in cuts), len(x)]):
        total = total.merge(ResponsibilitySums.of(DenseBlock(x[start:stop], start), packed))
    whole = ResponsibilitySums.of(DenseBlock(x), packed)
    same(total, whole)
    for merged in (whole.merge(nothing), nothing.merge(whole)):
        for part in ("counts", "shift", "scatter"):
            np.testing.assert_array_equal(getattr(merged, part), getattr(whole, part))


@pytest.mark.parametrize("name", KINDS)
@given(case=cases())
def test_weights_are_repetition_and_order_does_not_matter(name: str, case: Any) -> None:
    x, offset, w = case
    packed = components(name, x.shape[1], offset)
    found = ResponsibilitySums.of(DenseBlock(x, 0, w), packed)
    same(found, ResponsibilitySums.of(DenseBlock(np.repeat(x, w.astype(int), axis=0)), packed))
    order = np.random.default_rng(0).permutation(len(x))
    same(found, ResponsibilitySums.of(DenseBlock(np.ascontiguousarray(x[order]), 0, w[order]), packed))


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_complete_rows_have_the_bits_of_complete_components(name: str, dtype: Any) -> None:
    x = (5.0 + np.random.default_rng(0).standard_normal((300, 4))).astype(dtype)
    with_gaps = ResponsibilitySums.of(DenseBlock(x), components(name, 4, 5.0, dtype))
    without = ResponsibilitySums.of(DenseBlock(x), components(name, 4, 5.0, dtype, gaps=False))
    assert with_gaps.log_likelihood == without.log_likelihood
    for part in ("counts", "shift", "scatter"):
        np.testing.assert_array_equal(getattr(with_gaps, part), getattr(without, part))


@pytest.mark.parametrize("name", KINDS)
def test_the_shipped_check(name: str) -> None:
    rng = np.random.default_rng(1)
    x = 5.0 + rng.standard_normal((60, 3))
    x[rng.random(x.shape) < 0.3] = np.nan
    packed = components(name, 3, 5.0)
    check_statistic(lambda block: ResponsibilitySums.of(block, packed), x)
