"""Parts of rows in memory: where they are cut, what they share, and that nothing depends on it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import foldwise as fw
from foldwise.data.cache import CachedSource, cached
from foldwise.data.scan import scan
from foldwise.fold.local import Cuts, LocalBlocks
from foldwise.fold.passes import Passes
from foldwise.models.kmeans.fit_data import KMeansData


class Numbers:
    """Writes the number of each row and counts rows."""

    def prepare(self, state: dict[str, Any], n: int) -> None:
        if "seen" not in state:
            state["seen"] = np.zeros(n, np.int64)

    def __call__(self, block: Any, state: dict[str, Any], total: Count) -> None:
        self.prepare(state, block.n_rows)
        state["seen"] += block.start + np.arange(block.n_rows)
        total.rows += block.n_rows
        total.value += float(block.values.sum())


class Count:
    def __init__(self) -> None:
        self.rows, self.value = 0, 0.0

    def add(self, other: Count) -> None:
        self.rows += other.rows
        self.value += other.value


def sizes_of(cuts: Cuts, n: int) -> list[int]:
    parts = cuts.parts(n)
    taken = list(iter(parts.take, None))
    assert [start for start, _ in taken] == [0, *(stop for _, stop in taken)][:-1]
    assert taken[-1][1] == parts.taken == n
    return [stop - start for start, stop in taken]


@given(
    n=st.integers(1, 5000),
    threads=st.integers(1, 8),
    least=st.integers(1, 300),
    more=st.integers(0, 3000),
    step=st.integers(1, 64),
)
def test_falling_parts_cover_all_rows(n: int, threads: int, least: int, more: int, step: int) -> None:
    cuts = Cuts(threads, least, least + more, step)
    sizes = np.array(sizes_of(cuts, n))
    assert (sizes > 0).all()
    assert sizes.max() < least + more + step
    assert (sizes[:-1] % step == 0).all()
    assert (np.diff(sizes[:-1]) <= 0).all()
    assert len(sizes) <= cuts.most_threads(n)
    assert Cuts(threads, least, least + more, step, alone=n).most_threads(n) == 1


def test_parts_need_sizes() -> None:
    for bad in ((0, 1, 1, 1), (1, 0, 1, 1), (1, 2, 1, 1), (1, 1, 1, 0)):
        with pytest.raises(ValueError, match="parts need"):
            Cuts(*bad).parts(10)


@pytest.mark.parametrize("n_threads", [1, 2, 3])
def test_states_of_parts_are_those_of_blocks(n_threads: int) -> None:
    x = np.arange(60_000 * 40, dtype=np.float32).reshape(-1, 40) % 7
    blocks = LocalBlocks(cached(scan(x)), n_threads)
    first = blocks.total(Numbers(), Count, Cuts(n_threads, 100, 30_000))
    blocks.total(Numbers(), Count, Cuts(1, 12_345, 12_345))
    blocks.total(Numbers(), Count)  # by blocks
    seen = np.concatenate(blocks.update(lambda state: state["seen"]))
    assert (seen == 3 * np.arange(len(x))).all()
    assert first.rows == len(x)
    assert first.value == x.astype(np.float64).sum()


def test_a_pass_over_blocks_first() -> None:
    x = np.ones((60_000, 40), np.float32)
    blocks = LocalBlocks(cached(scan(x)), 2)
    blocks.total(Numbers(), Count)
    blocks.total(Numbers(), Count, Cuts(1, 1000, 60_000))
    seen = np.concatenate(blocks.update(lambda state: state["seen"]))
    assert (seen == 2 * np.arange(len(x))).all()


def test_adjacent_blocks_are_joined_and_others_are_not() -> None:
    x = np.random.default_rng(0).standard_normal((60_000, 40)).astype(np.float32)
    weights = np.ones(len(x))
    source = cached(scan(x, weights=weights))
    assert isinstance(source, CachedSource)
    (joined,) = source.joined()
    assert len(list(source.pieces())) > 1
    assert np.shares_memory(joined.values, x)
    assert (joined.values == x).all()
    assert len(joined.weights) == len(x)
    columns = cached(scan(np.asfortranarray(x)))  # each block is a copy
    assert isinstance(columns, CachedSource)
    assert len(columns.joined()) == len(list(columns.pieces()))


def is_fixed(x: Any, **more: Any) -> bool:
    return KMeansData(Passes(cached(scan(x, **more)))).fixed


def test_where_sums_are_in_fixed_point() -> None:
    x = np.random.default_rng(0).standard_normal((3000, 3)).astype(np.float32)
    assert is_fixed(x)
    assert not is_fixed(x.astype(np.float64))
    assert not is_fixed(x, weights=np.ones(3000))
    assert not is_fixed(np.c_[x, np.full(3000, np.float32(1.7e18))])  # a pivot so large leaves no room for the point


def test_a_large_constant_column_changes_no_inertia() -> None:
    x = np.random.default_rng(1).standard_normal((5000, 2)).astype(np.float32)
    plain = fw.KMeans(4, init=x[:4], n_init=1).fit(x)
    wide = np.c_[x, np.full(5000, np.float32(1.7e18))]
    more = fw.KMeans(4, init=wide[:4], n_init=1).fit(wide)
    first = [[step["inertia"] for step in model.trace_[:10]] for model in (more, plain)]
    np.testing.assert_allclose(*first, rtol=1e-6)


@pytest.mark.parametrize("far", [1e3, 1e6, 1e8])
def test_small_values_beside_large_ones(far: float) -> None:
    """Sums in fixed point would lose their digits: such rows are added in two parts, with every digit."""
    rng = np.random.default_rng(0)
    x = (1e-3 * rng.standard_normal((20_000, 4))).astype(np.float32)
    x[-10:] = far * (1 + rng.random((10, 4)))
    start = np.stack([x[0], x[1], x[-1]])
    model = fw.KMeans(3, init=start, n_init=1, max_iter=1000, tol=0).fit(x)
    for label, centre in enumerate(model.cluster_centers_):
        mean = x[model.labels_ == label].astype(np.float64).mean(axis=0)
        np.testing.assert_allclose(centre, mean, rtol=2e-7)


@pytest.mark.parametrize("d", [3, 8, 16, 40])
def test_fixed_point_and_two_parts_agree(d: int) -> None:
    """Weights of 1 are summed in two parts."""
    rng = np.random.default_rng(d)
    x = rng.standard_normal((20_000, d)).astype(np.float32)
    plain = fw.KMeans(7, init=x[:7], n_init=1, max_iter=1000, tol=0).fit(x)
    parts = fw.KMeans(7, init=x[:7], n_init=1, max_iter=1000, tol=0).fit(x, sample_weight=np.ones(len(x)))
    assert (plain.labels_ == parts.labels_).all()
    np.testing.assert_array_equal(plain.cluster_centers_, parts.cluster_centers_)


def test_zeros_beside_tiny_values() -> None:
    """A cluster of tiny values has a tiny mean, though others in its column are large; one of zeros has 0."""
    x = np.zeros((3000, 2), np.float32)
    x[:1000, 0] = 1e-14 * (1 + np.arange(1000) % 3)
    x[1000:2000, 0] = 1.0
    x[2000:, 1] = 1.0
    model = fw.KMeans(3, init=x[[0, 1000, 2000]], n_init=1, max_iter=10, tol=0).fit(x)
    np.testing.assert_allclose(model.cluster_centers_, [[x[:1000, 0].mean(dtype=float), 0], [1, 0], [0, 1]], rtol=1e-2)
    parts = fw.KMeans(3, init=x[[0, 1000, 2000]], n_init=1, max_iter=10, tol=0).fit(x, sample_weight=np.ones(3000))
    np.testing.assert_array_equal(model.cluster_centers_, parts.cluster_centers_)


@pytest.mark.parametrize("small", [1e-6, 1e-14, 1e-18])
def test_columns_of_very_different_sizes(small: float) -> None:
    rng = np.random.default_rng(2)
    x = np.c_[rng.uniform(0, 1, 5000), small * rng.uniform(1, 2, 5000)].astype(np.float32)
    model = fw.KMeans(3, init=x[:3], n_init=1, max_iter=1000, tol=0).fit(x)
    for label, centre in enumerate(model.cluster_centers_):
        np.testing.assert_allclose(centre, x[model.labels_ == label].mean(axis=0, dtype=float), rtol=1e-6)
