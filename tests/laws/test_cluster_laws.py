"""The laws of the statistics behind k-means: merging Extent to rounding, merging Sums to the last bit."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from foldwise.data.block import DenseBlock, SparseBlock
from foldwise.kernels.targets import DenseTargets, Grid, rescaling_within
from foldwise.stats.cluster_sums import ClusterSums
from foldwise.stats.extent import Extent
from foldwise.testing import check_statistic


@dataclass(frozen=True)
class Case:
    """Rows, perhaps weights, and cuts between them."""

    x: np.ndarray
    weights: np.ndarray | None
    places: list[int]

    def block(self, start: int = 0, stop: int | None = None) -> DenseBlock:
        return DenseBlock(self.x[start:stop], start, None if self.weights is None else self.weights[start:stop])

    def blocks(self) -> list[DenseBlock]:
        return [self.block(start, stop) for start, stop in pairwise(self.places)]


@st.composite
def cases(draw: st.DrawFn, *, weighted: bool | None = None) -> Case:
    n, d = draw(st.integers(1, 40)), draw(st.integers(1, 20))
    rng = np.random.default_rng(draw(st.integers(0, 10_000)))
    offset, spread = draw(st.sampled_from([0.0, 1e3, 1e8])), draw(st.sampled_from([1e-3, 1.0, 1e4]))
    dtype = draw(st.sampled_from([np.float32, np.float64]))
    x = (offset + spread * rng.standard_normal((n, d))).astype(dtype)
    cuts = sorted(int(c * n) for c in draw(st.lists(st.floats(0, 1), max_size=6)))
    with_weights = draw(st.booleans()) if weighted is None else weighted
    return Case(x, rng.integers(0, 4, n).astype(np.float64) if with_weights else None, [0, *cuts, n])


# ---------------------------------------------------------------- Extent


def assert_same(a: Extent, b: Extent) -> None:
    assert a.count == b.count
    assert a.heaviest == b.heaviest
    np.testing.assert_array_equal(a.low, b.low)
    np.testing.assert_array_equal(a.high, b.high)
    assert a.columns.weight == pytest.approx(b.columns.weight, rel=1e-14)
    size = np.abs(b.columns.mean).max(initial=0) + 1e-300
    np.testing.assert_allclose(a.columns.mean, b.columns.mean, rtol=0, atol=1e-13 * size)
    within = 1e-9 * b.columns.squares.max(initial=0) + 1e-13 * size
    np.testing.assert_allclose(a.columns.squares, b.columns.squares, rtol=1e-9, atol=within)


def test_extent_obeys_the_shipped_law() -> None:
    x = np.random.default_rng(0).standard_normal((50, 3)) + 7
    check_statistic(
        Extent.of,
        x,
        summary=lambda e: np.concatenate(
            [[e.count, e.columns.weight], e.columns.mean, e.columns.squares, e.low, e.high]
            if e.count
            else [np.zeros(14)]
        ),
    )


@given(case=cases())
def test_empty_extent_is_the_identity(case: Case) -> None:
    value, nothing = Extent.of(case.block()), Extent.empty(case.x.shape[1])
    for merged in (value.merge(nothing), nothing.merge(value)):
        assert merged.count == value.count
        assert merged.heaviest == value.heaviest
        for part in ("low", "high"):
            assert getattr(merged, part).tobytes() == getattr(value, part).tobytes()
        for part in ("weight", "mean", "squares"):
            np.testing.assert_array_equal(getattr(merged.columns, part), getattr(value.columns, part))


@given(case=cases())
def test_any_split_of_rows_has_the_extent_of_the_whole(case: Case) -> None:
    total = Extent.empty(case.x.shape[1])
    for block in case.blocks():
        total = total.merge(Extent.of(block))
    assert_same(total, Extent.of(case.block()))
    right = Extent.empty(case.x.shape[1])
    for block in reversed(case.blocks()):
        right = Extent.of(block).merge(right)
    assert_same(right, total)


@given(case=cases(weighted=True))
def test_rows_of_weight_zero_have_no_extent(case: Case) -> None:
    assert case.weights is not None
    counted = case.weights > 0
    found = Extent.of(case.block())
    spoilt = np.where(counted[:, None], case.x, case.x.dtype.type(3e30))
    again = Extent.of(DenseBlock(spoilt, 0, case.weights))
    if counted.any():
        np.testing.assert_array_equal(found.low, case.x[counted].min(axis=0))
        np.testing.assert_array_equal(found.high, case.x[counted].max(axis=0))
        assert_same(found, again)
    else:
        assert np.all(found.low > found.high)
    assert found.count == len(case.x)  # rows without weight get labels too
    assert found.heaviest == case.weights.max()


@given(case=cases())
def test_sparse_rows_have_the_extent_of_dense_ones(case: Case) -> None:
    holes = np.where(np.random.default_rng(1).random(case.x.shape) < 0.5, case.x, 0)
    sparse = Extent.of(SparseBlock(sp.csr_array(holes), 0, case.weights))
    dense = Extent.of(DenseBlock(holes, 0, case.weights))
    np.testing.assert_array_equal(sparse.low, dense.low)
    np.testing.assert_array_equal(sparse.high, dense.high)
    assert (sparse.count, sparse.heaviest) == (dense.count, dense.heaviest)


# ---------------------------------------------------------------- Sums


def sums_of(case: Case, labels: np.ndarray, block: DenseBlock, k: int) -> ClusterSums:
    """The sums of a block's rows, for the clusters that it holds and a few more."""
    x = case.x
    frame = rescaling_within(x.mean(axis=0, dtype=np.float64), x.min(axis=0), x.max(axis=0), x.dtype)
    mine = labels[block.start : block.start + block.n_rows]
    which = np.union1d(mine, np.flatnonzero(np.random.default_rng(block.start).random(k) < 0.3)).astype(np.int32)
    slots = np.full(k, -1, np.int32)
    slots[which] = np.arange(len(which))
    sums = ClusterSums.zero(which, x.shape[1])
    DenseTargets(np.zeros((k, x.shape[1]), x.dtype), frame).move_rows(
        block.values, block.weights, 0.25, None, mine, slots, Grid.of(len(x)), (sums.high, sums.low, sums.weight)
    )
    return sums


def bits(sums: ClusterSums, k: int) -> bytes:
    """What a statistic means: the sums of all clusters, also of those it does not mention."""
    whole = ClusterSums.zero(np.arange(k, dtype=np.int32), sums.high.shape[1]).merge(sums)
    return b"".join((part + 0.0).tobytes() for part in (whole.high, whole.low, whole.weight))


@given(case=cases(), seed=st.integers(0, 1000))
def test_sums_merge_to_the_bit_in_any_order(case: Case, seed: int) -> None:
    rng = np.random.default_rng(seed)
    k = int(rng.integers(1, 9))
    labels = rng.integers(k, size=len(case.x)).astype(np.int32)
    whole = bits(sums_of(case, labels, case.block(), k), k)
    parts: list[Any] = [sums_of(case, labels, block, k) for block in case.blocks()]
    while len(parts) > 1:  # any two may be merged next, in either order
        i, j = rng.choice(len(parts), 2, replace=False)
        merged = parts[i].merge(parts[j])
        assert np.array_equal(merged.which, np.union1d(parts[i].which, parts[j].which))
        parts = [part for number, part in enumerate(parts) if number not in (i, j)] + [merged]
    assert bits(parts[0], k) == whole


@given(case=cases(), seed=st.integers(0, 1000))
def test_zero_sums_are_the_identity(case: Case, seed: int) -> None:
    rng = np.random.default_rng(seed)
    labels = rng.integers(4, size=len(case.x)).astype(np.int32)
    value = sums_of(case, labels, case.block(), 4)
    nothing = ClusterSums.zero(np.array([], dtype=np.int32), case.x.shape[1])
    for merged in (value.merge(nothing), nothing.merge(value)):
        assert np.array_equal(merged.which, value.which)
        assert merged.high.tobytes() == (value.high + 0.0).tobytes()
        assert merged.low.tobytes() == (value.low + 0.0).tobytes()
        assert merged.weight.tobytes() == value.weight.tobytes()


@given(case=cases(), seed=st.integers(0, 1000))
def test_means_are_those_of_the_members(case: Case, seed: int) -> None:
    rng = np.random.default_rng(seed)
    k = 3
    labels = rng.integers(k, size=len(case.x)).astype(np.int32)
    w = np.ones(len(case.x)) if case.weights is None else case.weights
    x = case.x
    frame = rescaling_within(x.mean(axis=0, dtype=np.float64), x.min(axis=0), x.max(axis=0), x.dtype)
    sums = ClusterSums.zero(np.arange(k, dtype=np.int32), x.shape[1]).merge(sums_of(case, labels, case.block(), k))
    means = sums.means()
    for c in range(k):
        here = labels == c
        total = float(w[here].sum())
        assert sums.weights[c] == total * (1.0 if case.weights is None else 0.25)
        if total == 0:
            assert np.isnan(means[c]).all()
            continue
        true = (x[here].astype(np.longdouble) * w[here, None]).sum(axis=0) / total
        # Its own rounding, and that of rows at their offset.
        within = 8 * np.spacing(np.abs(x.astype(np.float64)).max())
        assert np.all(np.abs(frame.undo(means[c][None], np.dtype(np.float64))[0] - true) <= within)


def test_two_rows_by_hand() -> None:
    """(1, 3) and (3, 7) weigh 1 and 3: the sum about (0, 0) is (10, 24), the mean (2.5, 6)."""
    x, slots = np.array([[1.0, 3.0], [3.0, 7.0]]), np.array([0], np.int32)
    frame = rescaling_within(np.zeros(2), np.full(2, -8.0), np.full(2, 8.0), x.dtype)
    sums = ClusterSums.zero(slots, 2)
    DenseTargets(np.zeros((1, 2)), frame).move_rows(
        x,
        np.array([1.0, 3.0]),
        0.25,
        None,
        np.zeros(2, np.int32),
        slots,
        Grid.of(2),
        (sums.high, sums.low, sums.weight),
    )
    np.testing.assert_array_equal(sums.weights, [1.0])
    np.testing.assert_array_equal(frame.undo(sums.means(), x.dtype), [[2.5, 6.0]])
