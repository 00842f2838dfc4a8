"""The laws of the statistics of k-means with missing cells: the extent to rounding, the sums to the last bit."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from foldwise.data.block import DenseBlock
from foldwise.kernels.targets import DenseTargets, Grid, Rescaling
from foldwise.stats.cluster_sums import ClusterSums
from foldwise.stats.observed_extent import ObservedExtent
from foldwise.testing import check_statistic

FRAME = Rescaling(np.zeros(5), 0.125)
K = 4


def rows_of(seed: int, n: int, dtype: Any = np.float64) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows with missing cells, of which one may have nothing observed; labels; weights."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((n, 5)).clip(-7, 7).astype(dtype)
    x[rng.random(x.shape) < rng.choice([0.05, 0.4, 0.9])] = np.nan
    labels = np.where(np.isnan(x).all(axis=1), -1, rng.integers(K, size=n)).astype(np.int32)
    return x, labels, rng.integers(0, 4, n).astype(np.float64)


def sums_of(x: np.ndarray, labels: np.ndarray, weights: np.ndarray, start: int, stop: int) -> ClusterSums:
    mine = labels[start:stop]
    which = np.unique(mine[mine >= 0]).astype(np.int32)
    slots = np.full(K, -1, np.int32)
    slots[which] = np.arange(len(which))
    sums = ClusterSums.zero(which, 5, missing=True)
    DenseTargets(np.zeros((K, 5), x.dtype), FRAME, observed=True).move_rows(
        x[start:stop], weights[start:stop], 0.25, None, mine, slots, Grid.of(len(x)), sums.parts
    )
    return sums


def bits(sums: ClusterSums) -> bytes:
    whole = ClusterSums.zero(np.arange(K, dtype=np.int32), 5, missing=True).merge(sums)
    return b"".join((part + 0.0).tobytes() for part in whole.parts)


@given(st.integers(0, 10_000), st.integers(1, 40), st.lists(st.floats(0, 1), max_size=5))
def test_sums_merge_to_the_bit_in_any_order(seed: int, n: int, cuts: list[float]) -> None:
    x, labels, weights = rows_of(seed, n, [np.float32, np.float64][seed % 2])
    places = [0, *sorted(int(cut * n) for cut in cuts), n]
    parts = [sums_of(x, labels, weights, a, b) for a, b in pairwise(places)]
    whole, rng = bits(sums_of(x, labels, weights, 0, n)), np.random.default_rng(seed)
    while len(parts) > 1:
        i, j = rng.choice(len(parts), 2, replace=False)
        merged = parts[i].merge(parts[j])
        parts = [part for number, part in enumerate(parts) if number not in (i, j)] + [merged]
    assert bits(parts[0]) == whole
    nothing = ClusterSums.zero(np.arange(0, dtype=np.int32), 5, missing=True)
    assert bits(parts[0].merge(nothing)) == bits(nothing.merge(parts[0])) == whole


@given(st.integers(0, 10_000), st.integers(1, 40))
def test_means_are_those_of_the_observed_cells(seed: int, n: int) -> None:
    x, labels, weights = rows_of(seed, n)
    sums = ClusterSums.zero(np.arange(K, dtype=np.int32), 5, missing=True).merge(sums_of(x, labels, weights, 0, n))
    means, cells = sums.means(), sums.cell_weights
    for c in range(K):
        for j in range(5):
            here = (labels == c) & ~np.isnan(x[:, j])
            total = weights[here].sum()
            assert cells[c, j] == total * 0.25
            if total == 0:
                assert np.isnan(means[c, j])
            else:
                true = weights[here] @ x[here, j] / total
                np.testing.assert_allclose(means[c, j] / FRAME.scale, true, rtol=1e-13, atol=1e-14)
        assert sums.weights[c] == weights[labels == c].sum() * 0.25


def test_renumbered_sums_keep_the_weights_of_missing_cells() -> None:
    x, labels, weights = rows_of(3, 30)
    sums = ClusterSums.zero(np.arange(K, dtype=np.int32), 5, missing=True).merge(sums_of(x, labels, weights, 0, 30))
    new = sums.renumbered(np.array([2, -1, 0, 1], np.int32), 3)
    for old, now in ((0, 2), (2, 0), (3, 1)):
        np.testing.assert_array_equal(new.means()[now], sums.means()[old])
        np.testing.assert_array_equal(new.cell_weights[now], sums.cell_weights[old])


def _figures(extent: ObservedExtent) -> np.ndarray:
    columns = extent.columns
    ends = [np.nan_to_num(end, posinf=0.0, neginf=0.0) for end in (extent.low, extent.high)]
    return np.concatenate([[extent.count, columns.blank, columns.rows], columns.weight, columns.mean, *ends])


@given(st.integers(0, 10_000), st.integers(2, 40))
def test_the_extent_of_any_split_is_that_of_the_whole(seed: int, n: int) -> None:
    x, _, weights = rows_of(seed, n)
    check_statistic(ObservedExtent.of, x, summary=_figures)
    whole, nothing = ObservedExtent.of(DenseBlock(x, 0, weights)), ObservedExtent.empty(5)
    for merged in (whole.merge(nothing), nothing.merge(whole)):
        np.testing.assert_array_equal(_figures(merged), _figures(whole))
        assert (merged.heaviest, merged.lightest) == (whole.heaviest, whole.lightest)


def test_an_extent_by_hand() -> None:
    nan = np.nan
    x = np.array([[1.0, nan], [3.0, nan], [nan, nan], [99.0, 5.0]])
    found = ObservedExtent.of(DenseBlock(x, 0, np.array([1.0, 3.0, 1.0, 0.0])))
    np.testing.assert_array_equal(found.low, [1.0, np.inf])  # a row of weight 0 does not count
    np.testing.assert_array_equal(found.high, [3.0, -np.inf])
    assert (found.count, found.heaviest, found.lightest) == (4, 3.0, 1.0)
    np.testing.assert_array_equal(found.columns.weight, [4.0, 0.0])
    assert found.columns.mean[0] == 2.5
