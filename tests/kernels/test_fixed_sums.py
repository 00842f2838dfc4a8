"""Sums of clusters in fixed point: against integers of Python, in any order, and as the two parts of other sums."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from foldwise.fold.local import Cuts
from foldwise.kernels.targets import CentreGroups, DenseTargets, Grid, Moved, Rescaling, rescaling_within
from foldwise.stats.cluster_sums import ClusterSums


def frame_of(x: NDArray[np.float32]) -> Rescaling:
    return rescaling_within(x.astype(np.float64).mean(axis=0), x.min(axis=0), x.max(axis=0), x.dtype)


def table(n: int, d: int, seed: int, offset: float = 0.0) -> NDArray[np.float32]:
    return (np.random.default_rng(seed).standard_normal((n, d)) + offset).astype(np.float32)


def zero(k: int, d: int) -> ClusterSums:
    return ClusterSums.zero(np.arange(k, dtype=np.int32), d)


def assign(
    targets: DenseTargets, x: NDArray[Any], labels: NDArray[np.int32], sums: ClusterSums, grid: Grid | None = None
) -> tuple[int, int, int, int]:
    grid = grid or Grid.of(len(x))
    return targets.nearest(x, labels, sums=grid.fixed(sums.high, sums.low, sums.weight))


def same(first: ClusterSums, second: ClusterSums) -> bool:
    return all((a == b).all() for a, b in zip(first.parts, second.parts, strict=True))


def equal(first: ClusterSums, second: ClusterSums) -> bool:
    """The sums, whichever way they are split into two parts."""
    apart = first.high - second.high == second.low - first.low
    return bool(apart.all()) and np.array_equal(first.weight, second.weight)


def by_hand(x: NDArray[np.float32], labels: NDArray[np.int32], k: int, frame: Rescaling) -> list[list[Fraction]]:
    """The exact sums of y."""
    sums = [[Fraction(0)] * x.shape[1] for _ in range(k)]
    for row, label in zip(x, labels, strict=True):
        for j, value in enumerate(row):
            sums[label][j] += (Fraction(float(value)) - Fraction(float(frame.pivot[j]))) * Fraction(frame.scale)
    return sums


def test_a_case_worked_by_hand() -> None:
    x = np.array([[0.25, -1.0], [0.5, 1.0], [-0.75, 0.0]], np.float32)
    frame, labels, sums = Rescaling(np.zeros(2), 1.0), np.full(3, -1, np.int32), zero(2, 2)
    assert assign(DenseTargets(np.array([[0.5, 0.0], [-1.0, 0.0]], np.float32), frame), x, labels, sums)[0] == 3
    assert labels.tolist() == [0, 0, 1]
    assert (sums.high + sums.low).tolist() == [[0.75, 0.0], [-0.75, 0.0]]
    assert sums.weights.tolist() == [2.0, 1.0]


@settings(max_examples=40, deadline=None)
@given(
    n=st.integers(1, 130),
    d=st.integers(1, 40),
    k=st.integers(1, 20),
    seed=st.integers(0, 2**20),
    offset=st.sampled_from([0.0, 1.0, 1e5]),
    rows=st.sampled_from([1, 10**4, 10**6, 10**9]),
)
def test_sums_are_those_of_integers(n: int, d: int, k: int, seed: int, offset: float, rows: int) -> None:
    """`rows` is the number of rows of a whole table, of which these are some."""
    x = table(n, d, seed, offset)
    if seed % 2:
        x[seed % n] *= np.float32(2.0**-40)  # a row with values that are no numbers in fixed point
    frame, grid = frame_of(x), Grid.of(max(n, rows))
    labels, sums = np.full(n, -1, np.int32), zero(k, d)
    assign(DenseTargets(table(k, d, seed + 1, offset), frame), x, labels, sums, grid)
    assign(DenseTargets(table(k, d, seed + 2, offset), frame), x, labels, sums, grid)  # some rows move
    expected = by_hand(x, labels, k, frame)
    for c in range(k):
        assert sums.weight[0, c] == np.count_nonzero(labels == c)
        for j in range(d):
            high, low = Fraction(float(sums.high[c, j])), Fraction(float(sums.low[c, j]))
            error = Fraction(2) ** -54 + Fraction(2) ** (-2 * grid.bits)  # of y in float64, and of what is dropped
            assert abs(high + low - expected[c][j]) <= n * error
            assert (high * (1 << grid.bits)).denominator == 1


def test_more_rows_than_the_integers_hold_at_a_time() -> None:
    x = np.ones((20_000, 2), np.float32)
    x[:, 1] = 0.5 - 2.0**-24
    sums = zero(1, 2)
    assign(DenseTargets(np.zeros((1, 2), np.float32), Rescaling(np.zeros(2), 1.0)), x, np.full(20_000, -1, np.int32), sums)
    assert (sums.high + sums.low).tolist() == [[20_000.0, 20_000 * (0.5 - 2.0**-24)]]


@pytest.mark.parametrize("d", [3, 8, 16, 17, 200])
def test_bounds_move_the_same_rows(d: int) -> None:
    x, k = table(1000, d, 5), 12
    frame, grid = frame_of(x), Grid.of(1000)
    groups = CentreGroups(np.arange(k, dtype=np.int32), np.array([5, k], np.int32))
    dtype = np.dtype(np.float32)
    bounds = np.empty(1000, dtype), np.empty(1000, dtype), np.empty((1000, 2), dtype)
    plain, bounded = zero(k, d), zero(k, d)
    first, second = (np.full(1000, -1, np.int32) for _ in range(2))
    start = before = table(k, d, 6)
    total = np.zeros(k)
    for step in range(4):
        points = start * np.float32(1 - 0.05 * step)
        total += np.linalg.norm((points - before).astype(np.float64) * frame.scale, axis=1) * (1 + 1e-6)
        moved = Moved.of(total, groups.largest(total), float(total.max()), d, dtype)
        assign(DenseTargets(points, frame), x, first, plain)
        sums = grid.fixed(bounded.high, bounded.low, bounded.weight)
        DenseTargets(points, frame, groups).nearest_bounded(x, second, bounds, moved, fresh=step == 0, sums=sums)
        before = points
        assert (first == second).all()
        assert (plain.high + plain.low == bounded.high + bounded.low).all()
        assert same(replace_parts(plain), replace_parts(bounded))


@pytest.mark.parametrize("d", [3, 8, 16, 64, 200])
@pytest.mark.parametrize("bounded", [False, True])
def test_threads_that_share_out_rows_find_the_same(d: int, bounded: bool) -> None:
    """They take parts of the rows until there are none, and add to the same sums."""
    n, k = 9001, 12
    x = table(n, d, 5)
    x[7] *= np.float32(2.0**-40)  # no number in fixed point: added in two parts at once
    frame, grid, dtype = frame_of(x), Grid.of(n), np.dtype(np.float32)
    groups = CentreGroups(np.arange(k, dtype=np.int32), np.array([5, k], np.int32))
    moved = Moved.of(np.zeros(k), np.zeros(2), 0.0, d, dtype)
    found = []
    for n_threads in (0, 1, 3):  # none: the whole in one call
        labels, sums, counts = np.full(n, -1, np.int32), zero(k, d), []
        bounds = np.empty(n, dtype), np.empty(n, dtype), np.empty((n, 2), dtype)
        for step in range(3):
            points = table(k, d, 6) * np.float32(1 - 0.1 * step)
            parts = Cuts(2, 100, 3000, 16).parts(n) if n_threads else None
            given: dict[str, Any] = {"sums": grid.fixed(sums.high, sums.low, sums.weight), "parts": parts}
            if bounded:
                targets = DenseTargets(points, frame, groups)
                call = partial(targets.nearest_bounded, x, labels, bounds, moved, fresh=True, **given)
            else:
                call = partial(DenseTargets(points, frame).nearest, x, labels, fresh=step == 0, **given)
            counts.append(np.zeros(4))
            with ThreadPoolExecutor(max(n_threads, 1)) as pool:
                while True:
                    each = [pool.submit(call) for _ in range(max(n_threads, 1))]
                    counts[-1] += np.sum([one.result() for one in each], axis=0)
                    if parts is None or parts.taken == n:  # a call returns after some time
                        break
        found.append((labels, replace_parts(sums), counts))
    for labels, sums, counts in found[1:]:
        assert (labels == found[0][0]).all()
        assert same(sums, found[0][1])
        np.testing.assert_array_equal(counts, found[0][2])


def test_what_cannot_be_shared_out() -> None:
    x, labels = table(100, 4, 1), np.zeros(100, np.int32)
    targets, parts = DenseTargets(table(3, 4, 2), frame_of(x)), Cuts(2, 10, 20).parts
    with pytest.raises(ValueError, match="those of the rows"):
        targets.nearest(x, labels, parts=parts(99))
    with pytest.raises(ValueError, match="parts of one step"):
        targets.nearest(x, labels, parts=parts(100), residuals=np.zeros((2, 3)))
    with pytest.raises(ValueError, match="two by targets for each part"):
        targets.nearest(x, labels, parts=Cuts(2, 30, 30, 30).parts(100), residuals=np.zeros((2, 3)))
    with pytest.raises(ValueError, match="are not written"):
        targets.nearest(x, labels, parts=parts(100), changes=(labels.copy(), labels.copy()))
    labels[55] = 3
    sums = zero(3, 4)
    with pytest.raises(ValueError, match="not a target"):
        targets.nearest(x, labels, sums=Grid.of(100).fixed(sums.high, sums.low, sums.weight), parts=parts(100))


@pytest.mark.parametrize("d", [3, 8, 16, 40, 200])
def test_residuals_of_parts_are_those_of_blocks(d: int) -> None:
    """Each part has lines of its own, with the bits of a call for its rows alone."""
    n, k, step = 1000, 7, 96
    x = table(n, d, 3)
    targets, labels = DenseTargets(table(k, d, 4), frame_of(x)), np.full(n, -1, np.int32)
    found = np.zeros((2 * -(-n // step), k))
    parts = Cuts(2, step, step, step).parts(n)
    targets.nearest(x, labels, residuals=found, fresh=True, parts=parts)
    for i, first in enumerate(range(0, n, step)):
        rows = x[first : first + step]
        alone, own = np.zeros((2, k)), np.full(len(rows), -1, np.int32)
        targets.nearest(rows, own, residuals=alone)
        np.testing.assert_array_equal(found[2 * i : 2 * i + 2], alone)
        np.testing.assert_array_equal(labels[first : first + step], own)


@settings(max_examples=60, deadline=None)
@given(
    n=st.integers(1, 3000) | st.just(20_000),
    d=st.sampled_from([8, 16]),
    k=st.integers(1, 33),
    seed=st.integers(0, 2**20),
    small=st.sampled_from([0.0, 0.001, 0.3]),
    near=st.sampled_from([0.0, 0.01, 0.2]),
)
def test_rows_added_while_others_are_compared(n: int, d: int, k: int, seed: int, small: float, near: float) -> None:
    """With AVX-512, a first pass adds the rows of the panel before: also rows that fixed point cannot hold, and rows between
    two targets, whose labels wait."""
    rng = np.random.default_rng(seed)
    x, points = table(n, d, seed), table(k, d, seed + 1)
    some = rng.random(n) < small
    x[some] *= np.float32(2.0**-40)
    tied = rng.random(n) < near
    pairs = points[rng.integers(k, size=(2, n))]
    x[tied] = ((pairs[0] + pairs[1]) / 2)[tied]
    frame, grid = rescaling_within(np.zeros(d), x.min(axis=0), x.max(axis=0), x.dtype), Grid.of(max(n, 10_000))
    length = float(np.sqrt(np.square(x.astype(np.float64) * frame.scale).sum() / n)) or 1.0
    targets = DenseTargets(points, frame, row_length=length)
    labels, again = np.full(n, 77, np.int32), np.full(n, -1, np.int32)
    at_once, later = zero(k, d), zero(k, d)
    moved = targets.nearest(x, labels, sums=grid.fixed(at_once.high, at_once.low, at_once.weight), fresh=True)[0]
    DenseTargets(points, frame).nearest(x, again)  # in floating point
    targets.move_rows_fixed(x, None, again, grid.fixed(later.high, later.low, later.weight))
    assert moved == n
    np.testing.assert_array_equal(labels, again)
    assert equal(at_once, later)


@pytest.mark.parametrize("d", [8, 16])
def test_rows_whose_labels_wait_and_that_fixed_point_cannot_hold(d: int) -> None:
    """Such rows are in no sum when those of their panels are checked, and must not be taken out of any."""
    n, k, rng = 5000, 6, np.random.default_rng(d)
    points = table(k, d, 1)
    points[:, 0] = 0
    x = table(n, d, 2)
    tied = rng.random(n) < 0.1
    pairs = points[rng.integers(k, size=(2, n))]
    x[tied] = ((pairs[0] + pairs[1]) / 2)[tied]
    x[tied, 0] = np.float32(1.7 * 2.0**-60)
    frame, grid = rescaling_within(np.zeros(d), x.min(axis=0), x.max(axis=0), x.dtype), Grid.of(n)
    targets = DenseTargets(points, frame, row_length=float(np.sqrt(d) * frame.scale))
    labels, at_once, later = np.full(n, -1, np.int32), zero(k, d), zero(k, d)
    targets.nearest(x, labels, sums=grid.fixed(at_once.high, at_once.low, at_once.weight), fresh=True)
    targets.move_rows_fixed(x, None, labels, grid.fixed(later.high, later.low, later.weight))
    assert equal(at_once, later)


def replace_parts(sums: ClusterSums) -> ClusterSums:
    """High and low parts depend on how often the integers were emptied; their sum does not."""
    return ClusterSums(sums.which, sums.high + sums.low, np.zeros_like(sums.low), sums.weight)


def test_moving_by_hand_is_moving_by_the_nearest() -> None:
    x, k, d = table(300, 9, 1), 4, 9
    frame, grid = frame_of(x), Grid.of(300)
    first, second = DenseTargets(table(k, d, 2), frame), DenseTargets(table(k, d, 3), frame)
    labels, sums, other = np.full(300, -1, np.int32), zero(k, d), zero(k, d)
    assign(first, x, labels, sums)
    first.move_rows_fixed(x, None, labels, grid.fixed(other.high, other.low, other.weight))
    assert same(replace_parts(sums), replace_parts(other))
    before = labels.copy()
    assert 0 < assign(second, x, labels, sums)[0] < 300
    which = np.flatnonzero(before != labels).astype(np.int32)
    first.move_rows_fixed(x, (which, before[which]), labels, grid.fixed(other.high, other.low, other.weight))
    assert same(replace_parts(sums), replace_parts(other))


@pytest.mark.parametrize("offset", [0.0, 100.0])
def test_sums_are_those_in_two_parts(offset: float) -> None:
    x, k, d = table(5000, 7, 3, offset), 5, 7
    x[::50, 3] *= np.float32(1e-12)
    frame, grid = frame_of(x), Grid.of(5000)
    targets, labels = DenseTargets(table(k, d, 4, offset), frame), np.full(5000, -1, np.int32)
    fixed, exact = zero(k, d), zero(k, d)
    assign(targets, x, labels, fixed)
    targets.move_rows(x, None, 1.0, None, labels, exact.which, grid, exact.parts)
    assert same(replace_parts(fixed), replace_parts(exact))


def test_zeros_stay_zero() -> None:
    """The pivot is a number in fixed point as well."""
    x = np.abs(table(1000, 6, 8))
    x[:500, ::2] = 0.0
    frame, sums = frame_of(x), zero(2, 6)
    DenseTargets(np.zeros((2, 6), np.float32), frame).move_rows_fixed(
        x, None, np.repeat(np.array([0, 1], np.int32), 500), Grid.of(1000).fixed(sums.high, sums.low, sums.weight)
    )
    assert (frame.undo(sums.means(), np.dtype(np.float32))[0, ::2] == 0.0).all()


def test_what_is_refused() -> None:
    x = table(10, 3, 0)
    frame, labels, points = frame_of(x), np.full(10, -1, np.int32), table(2, 3, 1)
    with pytest.raises(ValueError, match="only complete float32 rows"):
        assign(DenseTargets(points.astype(np.float64), frame), x.astype(np.float64), labels, zero(2, 3))
    with pytest.raises(ValueError, match="only complete float32 rows"):
        assign(DenseTargets(points, frame, observed=True), x, labels, zero(2, 3))
    with pytest.raises(ValueError, match="targets by columns"):
        assign(DenseTargets(points, frame), x, labels, zero(3, 3))
    with pytest.raises(ValueError, match="bits must be"):
        assign(DenseTargets(points, frame), x, labels, zero(2, 3), Grid(1.0, 1.0, 0))
    labels[0] = 7  # a previous label that is no target
    with pytest.raises(ValueError, match="a label is not a target"):
        assign(DenseTargets(points, frame), x, labels, zero(2, 3))


_LEVELS = [1.0, 2.0**-10, 2.0**-26, 2.0**-45, 2.0**-70, 0.0]  # of values, some of which fixed point cannot hold


@settings(max_examples=150, deadline=None)
@example(n=7, d=7, k=2, kind="levels", seed=331043)  # small values that fixed point holds all the same
@example(n=1442, d=32, k=10, kind="noise", seed=575764)
@given(
    n=st.integers(1, 2000),
    d=st.sampled_from([5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 64, 65, 128, 200]),
    k=st.sampled_from([1, 2, 5, 10, 16, 20, 63, 64, 65, 130]),
    kind=st.sampled_from(["noise", "lattice", "levels", "skewed", "offset"]),
    seed=st.integers(0, 2**20),
)
def test_first_labels_are_written_and_added_whatever_was_there(n: int, d: int, k: int, kind: str, seed: int) -> None:
    """As from -1 in floating point, where rows are listed and checked before they are added."""
    rng = np.random.default_rng(seed)
    n = min(n, 200_000 // d)
    x = table(n, d, seed, 1e4 if kind == "offset" else 0.0)
    if kind == "lattice":  # ties abound: many rows are in doubt
        x = rng.integers(-2, 3, (n, d)).astype(np.float32)
    elif kind == "levels":
        x *= rng.choice(np.array(_LEVELS, np.float32), (n, d), p=[0.95, 0.01, 0.01, 0.01, 0.01, 0.01])
    points = x[rng.integers(n, size=k)].copy()
    if kind == "skewed":
        points[1:] += np.float32(50)  # nearly all rows are in one cluster
    frame, grid = frame_of(x), Grid.of(n)
    want, wanted = np.full(n, -1, np.int32), zero(k, d)
    expected = assign(DenseTargets(points, frame), x, want, wanted, grid)
    length = float(np.sqrt(np.square(frame.apply(x)).sum(axis=1).mean())) or 1.0
    got, sums = rng.integers(-(2**31), 2**31, n).astype(np.int32), zero(k, d)
    targets = DenseTargets(points, frame, row_length=length)
    given_sums = grid.fixed(sums.high, sums.low, sums.weight)
    counts = targets.nearest(x, got, sums=given_sums, fresh=True)
    np.testing.assert_array_equal(got, want)
    assert counts[0] == expected[0] == n
    assert equal(sums, wanted)
    # What is left in the sums of this thread would show in the next pass, in which all rows move.
    other = DenseTargets(points[::-1].copy(), frame, row_length=length)
    other.nearest(x, got, sums=given_sums)
    assign(DenseTargets(points[::-1].copy(), frame), x, want, wanted, grid)
    np.testing.assert_array_equal(got, want)
    assert equal(sums, wanted)
    assert targets.nearest(x, got, fresh=True)[0] == n  # without sums, too
    assign(DenseTargets(points, frame), x, want, wanted, grid)
    np.testing.assert_array_equal(got, want)


def test_values_that_fixed_point_cannot_hold_are_corrected_within_a_pass() -> None:
    """A few rows in many are taken out of the sums again, and added in parts."""
    x = table(5000, 8, 3)
    x[1234, 5] = np.float32(2.0**-60)
    x[4999, 0] = np.float32(-(2.0**-49) * 1.7)
    frame, grid, points = frame_of(x), Grid.of(5000), x[:10].copy()
    labels, sums = np.full(5000, 7, np.int32), zero(10, 8)
    DenseTargets(points, frame, row_length=1.0).nearest(x, labels, sums=grid.fixed(*sums.parts), fresh=True)
    want, wanted = np.full(5000, -1, np.int32), zero(10, 8)
    assign(DenseTargets(points, frame), x, want, wanted, grid)
    np.testing.assert_array_equal(labels, want)
    assert equal(sums, wanted)
    units = np.concatenate([sums.high, sums.low]) * 2.0**grid.fixed_bits  # their sums need more bits than fixed point has
    assert (units % 1).any()
