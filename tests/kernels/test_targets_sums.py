"""Sums of clusters that are exact, residuals, seeding distances and distances, against their definitions."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from foldwise.kernels.targets import DenseTargets, Grid, Rescaling, rescaling_around, rescaling_within

SCALES = {np.float32: [1e-25, 1.0, 1e20], np.float64: [1e-170, 1.0, 1e170]}


def frame_of(x: NDArray[Any]) -> Rescaling:
    middle = (x.astype(np.float64) / len(x)).sum(axis=0)
    return rescaling_within(middle, x.min(axis=0), x.max(axis=0), x.dtype)


def changes(before: Any, after: NDArray[Any], which: Any) -> tuple[Any, Any] | None:
    """Which of some rows move, and from where."""
    if before is None:
        return None
    moved = np.flatnonzero(before[which] != after[which]).astype(np.int32)
    return moved, np.ascontiguousarray(before[which][moved], np.int32)


class Sums:
    """Sums of k clusters, fed through the kernel."""

    def __init__(self, x: NDArray[Any], k: int, weights: NDArray[np.float64] | None = None) -> None:
        self.x, self.k, self.weights = x, k, weights
        self.grid, self.frame = Grid.of(len(x)), frame_of(x)
        self.targets = DenseTargets(np.zeros((k, x.shape[1]), x.dtype), self.frame)
        self.high, self.low, self.weight = np.zeros((k, x.shape[1])), np.zeros((k, x.shape[1])), np.zeros((2, k))
        self.slots = np.arange(k, dtype=np.int32)

    def move(self, which: Any, before: Any, after: Any) -> None:
        self.targets.move_rows(
            np.ascontiguousarray(self.x[which]),
            None if self.weights is None else self.weights[which],
            1.0,
            changes(before, after, which),
            np.ascontiguousarray(after[which]),
            self.slots,
            self.grid,
            (self.high, self.low, self.weight),
        )

    def bits(self) -> bytes:
        return b"".join(part.tobytes() for part in (self.high, self.low, self.weight))


@st.composite
def cases(draw: st.DrawFn) -> tuple[Any, Any, Any, np.random.Generator]:
    dtype = draw(st.sampled_from([np.float32, np.float64]))
    n, d, k = draw(st.integers(1, 70)), draw(st.integers(1, 40)), draw(st.integers(1, 9))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    offset, scale = draw(st.sampled_from([0.0, 1e3, 1e8])), draw(st.sampled_from(SCALES[dtype]))
    x = ((rng.standard_normal((n, d)) + offset) * scale).astype(dtype)
    weights = rng.random(n) * (rng.random(n) < 0.8) if draw(st.booleans()) else None
    return x, rng.integers(k, size=n).astype(np.int32), weights, rng


@settings(deadline=None, max_examples=100)
@given(cases())
def test_sums_do_not_depend_on_the_way_to_them(case: tuple[Any, Any, Any, np.random.Generator]) -> None:
    x, labels, weights, rng = case
    k = 9
    plain = Sums(x, k, weights)
    plain.move(np.arange(len(x)), None, labels)
    roundabout = Sums(x, k, weights)
    now = np.full(len(x), -1, np.int32)
    for _ in range(4):  # rows go to random clusters in random batches, and are at last where they belong
        new = rng.integers(k, size=len(x)).astype(np.int32)
        for batch in np.array_split(rng.permutation(len(x)), 3):
            roundabout.move(batch, now, new)
        now = new
    roundabout.move(rng.permutation(len(x)), now, labels)
    assert roundabout.bits() == plain.bits()


@settings(deadline=None, max_examples=60)
@given(cases())
def test_what_leaves_leaves_nothing(case: tuple[Any, Any, Any, np.random.Generator]) -> None:
    x, labels, weights, _ = case
    sums = Sums(x, 10, weights)
    sums.move(np.arange(len(x)), None, labels)
    sums.move(np.arange(len(x)), labels, np.full(len(x), 9, np.int32))  # all to the last one
    for part in (sums.high, sums.low):
        assert not part[:9].any()
    assert not sums.weight[:, :9].any()


@settings(deadline=None, max_examples=60)
@given(cases())
def test_sums_are_those_of_longdouble(case: tuple[Any, Any, Any, np.random.Generator]) -> None:
    x, labels, weights, _ = case
    sums = Sums(x, 9, weights)
    sums.move(np.arange(len(x)), None, labels)
    w = np.ones(len(x)) if weights is None else weights
    y = (x.astype(np.longdouble) - sums.frame.pivot) * sums.frame.scale
    for c in range(9):
        here = labels == c
        true = (y[here] * w[here, None]).sum(axis=0)
        # y is worked out in float64, whose rounding is that of values at the offset.
        within = 2.0**-52 * len(x) * (2 + np.abs(x.astype(np.float64) * sums.frame.scale).max())
        assert np.all(np.abs((sums.high[c] + sums.low[c]) - true) <= within)
        assert sums.weight[:, c].sum() == pytest.approx(float(w[here].sum()), rel=1e-14)


def test_sums_of_small_values_beside_large_ones() -> None:
    """A column of 1 and one of 2^-30: two parts hold some 2^-60 of the largest."""
    x = np.random.default_rng(0).standard_normal((1000, 2)) * [1.0, 2.0**-30]
    sums = Sums(x, 1)
    sums.move(np.arange(1000), None, np.zeros(1000, np.int32))
    mean = sums.frame.undo((sums.high + sums.low) / sums.weight.sum(axis=0)[:, None], x.dtype)[0]
    true = x.astype(np.longdouble).mean(axis=0).astype(np.float64)
    assert np.all(np.abs(mean - true) <= [1e-16, 2e-18])


def test_slots_pick_the_lines() -> None:
    x = np.random.default_rng(0).standard_normal((50, 3))
    labels = np.array([2, 5] * 25, np.int32)
    whole, few = Sums(x, 6), Sums(x, 6)
    whole.move(np.arange(50), None, labels)
    few.high, few.low, few.weight = np.zeros((2, 3)), np.zeros((2, 3)), np.zeros((2, 2))
    few.slots = np.array([-1, -1, 1, -1, -1, 0], np.int32)
    few.move(np.arange(50), None, labels)
    np.testing.assert_array_equal(few.high, whole.high[[5, 2]])
    np.testing.assert_array_equal(few.low, whole.low[[5, 2]])
    np.testing.assert_array_equal(few.weight, whole.weight[:, [5, 2]])
    assert not whole.weight[:, [0, 1, 3, 4]].any()


def test_weights_repeat_rows_exactly(dtype: Any) -> None:
    rng = np.random.default_rng(1)
    x, times = rng.standard_normal((60, 5)).astype(dtype), rng.integers(0, 4, 60)
    labels = rng.integers(3, size=60).astype(np.int32)
    frame, grid = frame_of(x), Grid.of(1 << 20)
    found = []
    for rows, weights, mine in (
        (x, times / 4, labels),  # weights are scaled to at most 1
        (np.repeat(x, times, axis=0), np.full(times.sum(), 0.25), np.repeat(labels, times)),
    ):
        sums = np.zeros((3, 5)), np.zeros((3, 5)), np.zeros((2, 3))
        targets = DenseTargets(np.zeros((3, 5), dtype), frame)
        targets.move_rows(rows, weights, 1.0, None, mine, np.arange(3, dtype=np.int32), grid, sums)
        found.append((sums[0] + sums[1], sums[2].sum(axis=0)))
    np.testing.assert_allclose(found[0][0], found[1][0], rtol=0, atol=1e-15 * times.sum())
    np.testing.assert_array_equal(found[0][1], found[1][1])


@pytest.mark.parametrize("rows", [1, 2, 3, 1000, 1 << 20, (1 << 20) + 1, 1 << 33])
def test_grid_is_exact_for_as_many_terms(rows: int) -> None:
    """The largest values, as often as there may be: their sum is the exact one."""
    grid, bits = Grid.of(rows), 2 * (51 - (rows - 1).bit_length())
    rng = np.random.default_rng(0)
    for value in (1.0, -1.0, np.nextafter(1.0, 0.0), *rng.uniform(-1, 1, 50)):
        high, low = (float(part) for part in grid.cut(np.float64(value)))
        assert abs(Fraction(value) - Fraction(high) - Fraction(low)) <= Fraction(2) ** -bits / 2
        for part in (high, low):
            exact = Fraction(part) * rows
            assert Fraction(float(exact)) == exact


@settings(deadline=None, max_examples=60)
@given(cases())
def test_residuals_are_squared_differences(case: tuple[Any, Any, Any, np.random.Generator]) -> None:
    x, labels, weights, rng = case
    frame = frame_of(x)
    points = np.ascontiguousarray(x[rng.integers(len(x), size=9)])
    each = np.empty(len(x))
    total = DenseTargets(points, frame).residuals(x, weights, labels, each)
    gap = (x.astype(np.longdouble) - points[labels]) * frame.scale
    true = (gap**2).sum(axis=1)
    np.testing.assert_allclose(each, true.astype(np.float64), rtol=1e-13, atol=1e-300)
    w = np.ones(len(x)) if weights is None else weights
    expected = [float((true * w)[labels == c].sum()) for c in range(9)]
    np.testing.assert_allclose(total, expected, rtol=1e-13, atol=1e-300)


@settings(deadline=None, max_examples=60)
@given(cases(), st.integers(0, 5))
def test_update_closest(case: tuple[Any, Any, Any, np.random.Generator], taken: int) -> None:
    x, _, weights, rng = case
    frame = frame_of(x)
    first = np.ascontiguousarray(x[rng.integers(len(x), size=2)])
    points = np.ascontiguousarray(x[rng.integers(len(x), size=6)])
    closest = np.full(len(x), np.finfo(x.dtype).max, x.dtype)
    DenseTargets(first, frame).update_closest(x, weights, 2, closest)
    total, potential = DenseTargets(points, frame).update_closest(x, weights, taken, closest)

    def squares(to: NDArray[Any]) -> NDArray[np.float64]:
        gap = (x[:, None].astype(np.longdouble) - to) * frame.scale
        return (gap**2).sum(axis=2).astype(np.float64)

    near = squares(np.concatenate([first, points[:taken]])).min(axis=1)
    w = np.ones(len(x)) if weights is None else weights
    digits = 200 * float(np.finfo(x.dtype).eps)
    np.testing.assert_allclose(closest, near, rtol=0.02, atol=digits * float(near.max()))
    assert np.all(closest[near == 0] == 0)  # a row that is a seed must never be drawn again
    assert total == pytest.approx(float(w @ near), rel=1e-3, abs=digits * float(w.sum()) * float(near.max()))
    with_each = [float(w @ np.minimum(near, squares(point[None])[:, 0])) for point in points[taken:]]
    np.testing.assert_allclose(potential, with_each, rtol=1e-3, atol=digits * float(w.sum()) * float(near.max()))


@settings(deadline=None, max_examples=60)
@given(cases())
def test_distances(case: tuple[Any, Any, Any, np.random.Generator]) -> None:
    x, _, _, rng = case
    points = np.ascontiguousarray(x[rng.integers(len(x), size=5)])
    found = DenseTargets(points, rescaling_around(points)).distances(x)
    assert found.dtype == x.dtype
    factor = np.abs(
        x.astype(np.float64)
    ).max()  # longdouble squares of 1e170 are fine, those of 1e-170 too: only for clarity
    gap = (x[:, None].astype(np.longdouble) - points) / factor
    true = np.sqrt((gap**2).sum(axis=2)) * factor
    np.testing.assert_allclose(found, true.astype(x.dtype), rtol=1e-6 if x.dtype == np.float32 else 1e-9, atol=0)


def test_distance_of_equal_rows_is_zero_at_an_offset(dtype: Any) -> None:
    x = (np.random.default_rng(0).standard_normal((40, 6)) + 1e6).astype(dtype)
    found = DenseTargets(np.ascontiguousarray(x[:10]), rescaling_around(x[:10])).distances(x)
    assert np.all(found[np.arange(10), np.arange(10)] == 0)


def test_wrong_sums_are_refused() -> None:
    x, points = np.zeros((5, 4)), np.zeros((3, 4))
    targets = DenseTargets(points, Rescaling(np.zeros(4), 1.0))
    labels, slots = np.zeros(5, np.int32), np.arange(3, dtype=np.int32)
    grid = Grid.of(5)
    sums = np.zeros((3, 4)), np.zeros((3, 4)), np.zeros((2, 3))
    targets.move_rows(x, None, 1.0, None, labels, slots, grid, sums)
    with pytest.raises(ValueError, match="slot"):
        targets.move_rows(x, None, 1.0, None, np.full(5, 3, np.int32), slots, grid, sums)
    with pytest.raises(ValueError, match="slot"):
        targets.move_rows(x, None, 1.0, None, np.full(5, -1, np.int32), slots, grid, sums)
    with pytest.raises(ValueError, match="slot"):
        targets.move_rows(
            x, None, 1.0, (np.arange(5, dtype=np.int32), np.full(5, 7, np.int32)), labels, slots, grid, sums
        )
    with pytest.raises(ValueError, match="slot"):
        targets.move_rows(x, None, 1.0, (np.array([5], np.int32), np.zeros(1, np.int32)), labels, slots, grid, sums)
    with pytest.raises(ValueError, match="slots must"):
        targets.move_rows(x, None, 1.0, None, labels, slots[:2], grid, sums)
    with pytest.raises(ValueError, match="weights"):
        targets.move_rows(x, np.ones(4), 1.0, None, labels, slots, grid, sums)
    with pytest.raises(ValueError, match="sums must be"):
        targets.move_rows(x, None, 1.0, None, labels, slots, grid, (sums[0], sums[1], np.zeros((1, 3))))
    for bad in (-1, 3):
        with pytest.raises(ValueError, match="not a target"):
            targets.residuals(x, None, np.full(5, bad, np.int32))
    with pytest.raises(ValueError, match="one entry per row"):
        targets.residuals(x, None, labels, np.zeros(4))
    with pytest.raises(TypeError):
        targets.residuals(x.astype(np.float32), None, labels)
    with pytest.raises(ValueError, match="one entry per row"):
        targets.update_closest(x, None, 1, np.zeros(4))
    with pytest.raises(ValueError, match=r"negative|candidate"):
        targets.update_closest(x, None, 4, np.zeros(5))
