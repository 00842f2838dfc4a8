"""Packed moments are the moments of `Moments`, bit for bit, and a fold of many columns does not depend on threads."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

import foldwise as fw
from foldwise.data.block import Block, block_of
from foldwise.fold.tree import Tree
from foldwise.kernels.triangle import Spare
from foldwise.stats.moments import Moments
from foldwise.stats.packed_moments import PackedMoments


def _blocks(dtype: type, *, weighted: bool, d: int) -> list[Block]:
    rng = np.random.default_rng(3)
    x = (rng.standard_normal((1700, d)) * 3 + 1e3).astype(dtype)
    x[:, 0] = 7  # a constant column
    w = rng.integers(0, 3, len(x)).astype(np.float64) if weighted else None
    cuts = [(0, 600), (600, 1200), (1200, 1205), (1205, 1700)]
    return [block_of(x[a:b], a, None if w is None else w[a:b]) for a, b in cuts]


@pytest.mark.parametrize("d", [1, 5, 33, 530])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_same_bits_as_moments(dtype: type, weighted: bool, d: int) -> None:
    square: Tree[Moments] = Tree()
    packed: Tree[PackedMoments] = Tree(owner=True)
    kept: Tree[PackedMoments] = Tree()
    for number, block in enumerate(_blocks(dtype, weighted=weighted, d=d)):
        square.add(number, Moments.of(block))
        packed.add(number, PackedMoments.of(block))
        kept.add(number, PackedMoments.of(block))
    expected = square.result()
    assert expected is not None
    for tree in (packed, kept):
        result = tree.result()
        assert result is not None
        found = result.unpacked()
        assert (found.weight, found.rows) == (expected.weight, expected.rows)
        np.testing.assert_array_equal(found.centre, expected.centre)
        np.testing.assert_array_equal(found.scatter, np.triu(expected.scatter))


def test_merge_leaves_both_sides_as_they_are() -> None:
    left, right = (PackedMoments.of(block) for block in _blocks(np.float64, weighted=False, d=5)[:2])
    before = left.packed.copy(), right.packed.copy()
    left.merge(right)
    np.testing.assert_array_equal(left.packed, before[0])
    np.testing.assert_array_equal(right.packed, before[1])
    empty = PackedMoments.empty(5)
    assert empty.merge(left) is left
    assert left.merge(empty) is left
    assert empty.absorb(left) is left


def test_spare_memory_is_used_again_and_changes_nothing() -> None:
    blocks = _blocks(np.float32, weighted=True, d=33)
    spare = Spare()
    plain: Tree[PackedMoments] = Tree(owner=True)
    shared: Tree[PackedMoments] = Tree(owner=True)
    seen = []
    for number, block in enumerate(blocks):
        plain.add(number, PackedMoments.of(block))
        found = PackedMoments.of(block, spare)
        seen.append(found.packed)
        shared.add(number, found)
    assert seen[2] is seen[1]  # what the first pair left
    expected, result = plain.result(), shared.result()
    assert expected is not None
    assert result is not None
    np.testing.assert_array_equal(result.packed, expected.packed)
    np.testing.assert_array_equal(result.centre, expected.centre)
    assert pickle.loads(pickle.dumps(result)).packed.tobytes() == expected.packed.tobytes()


def test_merge_keeps_the_other_side_from_spare_memory() -> None:
    spare = Spare()
    left, right, third, _ = (PackedMoments.of(block, spare) for block in _blocks(np.float64, weighted=False, d=5))
    before = right.packed.copy()
    left.merge(right)
    following = PackedMoments.of(_blocks(np.float64, weighted=False, d=5)[2], spare)
    assert following.packed is not right.packed
    np.testing.assert_array_equal(following.packed, third.packed)
    np.testing.assert_array_equal(right.packed, before)


@pytest.mark.parametrize("d", [5, 130])
@pytest.mark.parametrize("weighted", [False, True])
def test_moments_merged_in_place_in_spare_memory_have_the_same_bits(weighted: bool, d: int) -> None:
    plain: Tree[Moments] = Tree()
    shared: Tree[Moments] = Tree(owner=True)
    spare, seen = Spare(kept=True), []
    for number, block in enumerate(_blocks(np.float32, weighted=weighted, d=d)):
        plain.add(number, Moments.of(block))
        found = Moments.of(block, spare)
        seen.append(found.scatter)
        shared.add(number, found)
    assert np.shares_memory(seen[2], seen[1])  # what the first pair left
    expected, result = plain.result(), shared.result()
    assert expected is not None
    assert result is not None
    assert (result.weight, result.rows) == (expected.weight, expected.rows)
    np.testing.assert_array_equal(result.centre, expected.centre)
    np.testing.assert_array_equal(result.scatter, expected.scatter)  # with zeros below the diagonal
    again = pickle.loads(pickle.dumps(result))
    assert again.spare is None
    np.testing.assert_array_equal(again.scatter, expected.scatter)
    assert pickle.loads(pickle.dumps(spare)).take(3).tolist() == [0.0] * 3


def test_moments_that_may_not_be_written_to_are_merged_elsewhere() -> None:
    left, right = (Moments.of(block) for block in _blocks(np.float64, weighted=False, d=5)[:2])
    before = left.scatter.copy()
    left.scatter.flags.writeable = False
    np.testing.assert_array_equal(left.absorb(right).scatter, left.merge(right).scatter)
    np.testing.assert_array_equal(left.scatter, before)
    assert left.absorb(Moments.empty(5)) is left
    assert Moments.empty(5).absorb(left) is left


@pytest.mark.parametrize("kind", [Moments, PackedMoments])
@pytest.mark.parametrize("side", ["left", "right"])
def test_memory_that_may_not_be_written_to_is_not_used(kind: Any, side: str) -> None:
    """Records that come from another process may be read-only; neither is what they leave given to the next block."""
    spare = Spare()
    first, second, third = _blocks(np.float64, weighted=False, d=5)[:3]
    left, right, expected = kind.of(first, spare), kind.of(second, spare), kind.of(first).merge(kind.of(second))
    given = left if side == "left" else right
    numbers = given.scatter if kind is Moments else given.packed
    numbers.flags.writeable = False
    merged = left.absorb(right)
    for name in ("centre", "scatter" if kind is Moments else "packed"):
        np.testing.assert_array_equal(getattr(merged, name), getattr(expected, name))
    kind.of(third, spare)  # in memory that may be written to


@pytest.mark.parametrize("k", [3, None])
def test_wide_fits_do_not_depend_on_threads_or_batches(k: int | None) -> None:
    x = np.random.default_rng(0).standard_normal((20_000, 1100), dtype=np.float32)
    fits = [fw.PCA(k, svd_solver="covariance_eigh", n_threads=n).fit(x) for n in (1, 2, 7)]
    batches = fw.PCA(k)
    for part in np.array_split(x, 4):
        batches.partial_fit(part)
    for other in (*fits[1:], batches):
        for name in ("components_", "explained_variance_", "residuals_", "mean_"):
            np.testing.assert_array_equal(getattr(other, name), getattr(fits[0], name))
