"""The laws of the statistic behind EM: an identity, merging associates, any split is the whole, weights repeat."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from foldwise.data.block import DenseBlock
from foldwise.models.mixture.covariance import COVARIANCE_TYPES, CovarianceType
from foldwise.stats.array_sum import ArraySum
from foldwise.stats.responsibility_sums import ResponsibilitySums
from foldwise.testing import check_statistic

KINDS = ["full", "tied", "diag", "spherical"]
K = 3


def components(name: str, d: int, offset: float, dtype: Any = np.float64) -> tuple[Any, CovarianceType]:
    rng = np.random.default_rng(3)
    family = COVARIANCE_TYPES[name].of_columns(d, None)
    factor = rng.standard_normal((K, d, d)) + 2 * np.eye(d)
    covariances = family.of_matrices(factor @ factor.transpose(0, 2, 1), np.ones(K))
    means = offset + 2 * rng.standard_normal((K, d))
    pivot = np.full(d, offset, dtype).astype(np.float64)
    made = family.components(
        np.array([0.5, 0.3, 0.2]), means, family.whiten(covariances), pivot, np.dtype(dtype), scatter=family.scatter
    )
    return made, family


def make(name: str, x: np.ndarray, offset: float) -> Any:
    packed, _ = components(name, x.shape[1], offset, x.dtype)
    return lambda block: ResponsibilitySums.of(block, packed)


@st.composite
def cases(draw: st.DrawFn, *, least: int = 0, dtype: Any = np.float64) -> tuple[np.ndarray, float, np.ndarray]:
    n, d = draw(st.integers(least, 40)), draw(st.integers(1, 4))
    rng = np.random.default_rng(draw(st.integers(0, 10_000)))
    offset = draw(st.sampled_from([0.0, 1e3] if dtype == np.float32 else [0.0, 1e3, 1e8]))
    x = (offset + 2 * rng.standard_normal((n, d))).astype(dtype)
    return x, offset, rng.integers(0, 4, n).astype(np.float64)


def same(a: ResponsibilitySums, b: ResponsibilitySums, rtol: float = 1e-9) -> None:
    for name in ("log_likelihood", "counts", "shift", "scatter"):
        x, y = np.asarray(getattr(a, name)), np.asarray(getattr(b, name))
        np.testing.assert_allclose(x, y, rtol=rtol, atol=rtol * (1 + np.abs(y).max(initial=0.0)), err_msg=name)


@pytest.mark.parametrize("name", KINDS)
@given(case=cases(), cuts=st.lists(st.floats(0, 1), max_size=5))
def test_any_split_equals_the_whole_and_empty_is_the_identity(name: str, case: Any, cuts: list[float]) -> None:
    x, offset, _ = case
    of, nothing = make(name, x, offset), ResponsibilitySums.empty(COVARIANCE_TYPES[name].scatter, K, x.shape[1])
    total = nothing
    for start, stop in pairwise([0, *sorted(int(c * len(x)) for c in cuts), len(x)]):
        total = total.merge(of(DenseBlock(x[start:stop], start)))
    whole = of(DenseBlock(x))
    same(total, whole)
    for merged in (whole.merge(nothing), nothing.merge(whole)):
        for part in ("counts", "shift", "scatter"):
            np.testing.assert_array_equal(getattr(merged, part), getattr(whole, part))


@pytest.mark.parametrize("name", KINDS)
@given(case=cases(least=1))
def test_weights_are_repetition(name: str, case: Any) -> None:
    x, offset, w = case
    of = make(name, x, offset)
    same(of(DenseBlock(x, 0, w)), of(DenseBlock(np.repeat(x, w.astype(int), axis=0))))


@pytest.mark.parametrize("name", KINDS)
def test_the_shipped_check_and_given_responsibilities_agree(name: str) -> None:
    """`given` with the responsibilities of the components is `of`."""
    x = 5.0 + np.random.default_rng(0).standard_normal((60, 3))
    packed, family = components(name, 3, 5.0)
    check_statistic(lambda block: ResponsibilitySums.of(block, packed), x)
    each = np.empty((60, K))
    packed.logs(x, np.empty(60), each)
    means = 5.0 + 2 * _means(3)
    check_statistic(
        lambda block: ResponsibilitySums.given(
            block, family.scatter, means, np.exp(each)[block.start :][: block.n_rows]
        ),
        x,
    )
    found, told = (
        ResponsibilitySums.of(DenseBlock(x), packed),
        ResponsibilitySums.given(DenseBlock(x), family.scatter, means, np.exp(each)),
    )
    for part in ("counts", "shift", "scatter"):
        np.testing.assert_allclose(getattr(found, part), getattr(told, part), rtol=1e-9, atol=1e-9)


def _means(d: int) -> np.ndarray:
    rng = np.random.default_rng(3)
    rng.standard_normal((K, d, d))
    return rng.standard_normal((K, d))


def test_sums_add_up() -> None:
    check_statistic(lambda block: ArraySum(block.dense().sum(axis=0)), np.arange(12.0).reshape(6, 2))
