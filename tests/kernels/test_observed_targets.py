"""Rows with missing cells: distances over the observed ones, exactly as brute force in extended precision finds them."""

from __future__ import annotations

import pickle
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from foldwise.kernels import reference
from foldwise.kernels.targets import CentreGroups, DenseTargets, Grid, Moved, Rescaling, rescaling_within

SHARES = [0.0, 0.02, 0.05, 0.3, 0.7, 0.97]
SCALES = {np.float32: [1e-20, 1.0, 1e15], np.float64: [1e-150, 1.0, 1e150]}
KINDS = ["random", "lattice", "duplicated", "shifted"]


def frame_of(*parts: NDArray[Any]) -> Rescaling:
    x = np.concatenate(parts)
    seen = ~np.isnan(x)
    counts = np.maximum(seen.sum(axis=0), 1)
    middle = (np.where(seen, x, 0).astype(np.float64) / counts).sum(axis=0)
    return rescaling_within(middle, np.fmin.reduce(x, axis=0), np.fmax.reduce(x, axis=0), x.dtype)


def some_rows(
    kind: str, n: int, d: int, k: int, dtype: Any, share: float, seed: int, scale: float = 1.0
) -> tuple[Any, Any]:
    """Rows with missing cells, and complete targets, of one kind."""
    rng = np.random.default_rng(seed)
    if kind == "lattice":
        both = rng.integers(-2, 3, (n + k, d)).astype(np.float64)
        scale = 2.0 ** round(np.log2(scale))  # so that extended precision sees the ties as well
    elif kind == "duplicated":
        few = rng.standard_normal((max(2, k // 2), d))
        both = few[rng.integers(len(few), size=n + k)]
    else:
        both = rng.standard_normal((n + k, d)) + (rng.choice([1e2, 1e4, 1e8]) if kind == "shifted" else 0.0)
    both = (both * scale).astype(dtype)
    x = np.ascontiguousarray(both[:n])
    x[rng.random(x.shape) < share] = np.nan
    return x, np.ascontiguousarray(both[n:])


def nearest(x: NDArray[Any], points: NDArray[Any]) -> NDArray[np.int32]:
    labels = np.full(len(x), -1, np.int32)
    DenseTargets(points, frame_of(x, points), observed=True).nearest(x, labels)
    return labels


def exactly_nearest(x: NDArray[Any], points: NDArray[Any]) -> NDArray[np.int32]:
    """The same as the reference finds, with what extended precision cannot tell apart settled by fractions."""
    labels = reference.nearest_observed(x, points)
    for i, squares in enumerate(reference.observed_squares(x, points)):
        close = np.flatnonzero(squares <= squares.min() * (1 + 1e-15))
        if labels[i] >= 0 and len(close) > 1:
            seen = np.flatnonzero(~np.isnan(x[i]))
            labels[i] = min(close, key=lambda c: (sum((_exact(x[i, j]) - _exact(points[c, j])) ** 2 for j in seen), c))
    return labels


def _exact(value: Any) -> Fraction:
    return Fraction(float(value))


@st.composite
def cases(draw: st.DrawFn) -> tuple[Any, Any]:
    dtype = draw(st.sampled_from([np.float32, np.float64]))
    n, d, k = draw(st.integers(1, 60)), draw(st.integers(1, 40)), draw(st.integers(1, 40))
    kind, share, scale = (draw(st.sampled_from(options)) for options in (KINDS, SHARES, SCALES[dtype]))
    return some_rows(kind, n, d, k, dtype, share, draw(st.integers(0, 2**32)), scale)


# ---------------------------------------------------------------- the nearest target


@settings(deadline=None, max_examples=150)
@given(cases())
def test_nearest_is_brute_force(case: tuple[Any, Any]) -> None:
    x, points = case
    np.testing.assert_array_equal(nearest(x, points), reference.nearest_observed(x, points))


@pytest.mark.parametrize("share", [0.05, 0.5])
@pytest.mark.parametrize("kind", KINDS)
def test_nearest_for_many_numbers_of_columns(dtype: Any, kind: str, share: float) -> None:
    for d in (1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 33, 63, 64, 65, 127, 129, 191, 192, 193, 385, 577):
        x, points = some_rows(kind, 29, d, 11, dtype, share, d)
        np.testing.assert_array_equal(nearest(x, points), reference.nearest_observed(x, points), err_msg=f"{d} columns")


@pytest.mark.parametrize("d", [1, 3, 16])
def test_nearest_for_every_number_of_targets(dtype: Any, d: int) -> None:
    for k in range(1, 71):
        x, points = some_rows("lattice" if k % 2 else "random", 25, d, k, dtype, 0.2, k)
        np.testing.assert_array_equal(nearest(x, points), reference.nearest_observed(x, points), err_msg=f"{k} targets")


@pytest.mark.parametrize("width", [8, 16, 24, 48])
def test_nearest_around_whole_panels_of_rows(dtype: Any, width: int) -> None:
    for n in {m for times in (1, 2, 5) for m in (times * width - 1, times * width, times * width + 1)}:
        x, points = some_rows("shifted", n, 5, 9, dtype, 0.3, n)
        np.testing.assert_array_equal(nearest(x, points), reference.nearest_observed(x, points), err_msg=f"{n} rows")


@pytest.mark.parametrize("k", [1, 5])
def test_a_row_with_nothing_observed_has_no_label(dtype: Any, k: int) -> None:
    x, points = some_rows("random", 100, 6, k, dtype, 0.1, 0)
    x[[0, 17, 99]] = np.nan
    labels, near = np.zeros(100, np.int32), np.ones(100, dtype)
    targets = DenseTargets(points, frame_of(x, points), observed=True)
    moved, *_ = targets.nearest(x, labels, near)
    assert np.flatnonzero(labels < 0).tolist() == [0, 17, 99]
    assert moved == np.count_nonzero(labels)  # all labels were 0
    assert not near[[0, 17, 99]].any()
    each = np.empty(100)
    total = targets.residuals(x, None, labels, each)
    assert np.isnan(each[[0, 17, 99]]).all()
    np.testing.assert_allclose(total.sum(), np.nansum(each), rtol=1e-14)


def test_complete_rows_have_the_labels_and_distances_of_the_complete_kernel(dtype: Any) -> None:
    x, points = some_rows("random", 200, 20, 7, dtype, 0.0, 1)
    frame = frame_of(x, points)
    plain, observed = DenseTargets(points, frame), DenseTargets(points, frame, observed=True)
    labels, again = np.full(200, -1, np.int32), np.full(200, -1, np.int32)
    plain.nearest(x, labels)
    observed.nearest(x, again)
    np.testing.assert_array_equal(labels, again)
    np.testing.assert_array_equal(plain.residuals(x, None, labels), observed.residuals(x, None, labels))
    np.testing.assert_array_equal(plain.distances(x), observed.distances(x))


def test_the_two_nearest_distances(dtype: Any) -> None:
    x, points = some_rows("random", 150, 30, 9, dtype, 0.2, 2)
    near, next_ = np.empty(150, dtype), np.empty(150, dtype)
    frame = frame_of(x, points)
    DenseTargets(points, frame, observed=True).nearest(x, np.full(150, -1, np.int32), near, next_)
    true = np.sort(reference.observed_squares(x, points), axis=1)[:, :2].astype(np.float64) * frame.scale**2
    rtol = 1e-4 if dtype == np.float32 else 1e-12
    np.testing.assert_allclose(near, true[:, 0], rtol=rtol)
    np.testing.assert_allclose(next_, true[:, 1], rtol=rtol)


# ---------------------------------------------------------------- bounds


@settings(deadline=None, max_examples=80)
@given(cases(), st.integers(0, 2**32))
def test_bounds_never_change_a_label(case: tuple[Any, Any], seed: int) -> None:
    x, points = case
    rng, (n, d), k = np.random.default_rng(seed), x.shape, len(points)
    inside = np.flatnonzero(rng.random(k - 1) < rng.random()) + 1
    groups = CentreGroups(rng.permutation(k).astype(np.int32), np.append(inside, k).astype(np.int32))
    frame, several = frame_of(x, points), len(groups.ends)
    labels, upper, lower = np.full(n, -1, np.int32), np.full(n, np.nan, x.dtype), np.full(n, np.nan, x.dtype)
    by_group = np.full((n if several > 1 else 0, several), np.nan, x.dtype)
    total, group_total, most, before = np.zeros(k), np.zeros(several), 0.0, points
    for turn in range(6):
        step = (points.astype(np.float64) - before.astype(np.float64)) * frame.scale
        drift = np.sqrt(np.einsum("ij,ij->i", step, step)) * (1 + 1e-14 * d)
        total, group_total, most = total + drift, group_total + groups.largest(drift), most + float(drift.max())
        moved = Moved.of(total, group_total, most, d, x.dtype)
        DenseTargets(points, frame, groups, observed=True).nearest_bounded(
            x, labels, (upper, lower, by_group), moved, fresh=turn == 0
        )
        np.testing.assert_array_equal(labels, exactly_nearest(x, points))
        before, target = points, x[rng.integers(n, size=k)]  # towards rows, so that ties stay likely
        target = np.where(np.isnan(target), points, target)
        share = rng.choice([0.0, 1e-6, 0.01, 0.5, 1.0], k)[:, None]
        points = np.ascontiguousarray((points + share * (target - points)).astype(x.dtype))


def test_bounds_prune_nearly_all_rows_of_unmoved_targets(dtype: Any) -> None:
    x, points = some_rows("random", 500, 60, 20, dtype, 0.1, 3)
    x[7] = np.nan
    groups = CentreGroups(np.arange(20, dtype=np.int32), np.array([20], np.int32))
    labels, upper, lower = np.full(500, -1, np.int32), np.empty(500, dtype), np.empty(500, dtype)
    moved = Moved.of(np.zeros(20), np.zeros(1), 0.0, 60, np.dtype(dtype))
    targets = DenseTargets(points, frame_of(x, points), groups, observed=True)
    for fresh in (True, False):
        bounds = upper, lower, np.empty((0, 1), dtype)
        changed, computed, *_ = targets.nearest_bounded(x, labels, bounds, moved, fresh=fresh)
    assert changed == 0
    assert computed < 25
    assert labels[7] == -1


# ---------------------------------------------------------------- sums, residuals, seeding, distances


def sums_of(x: Any, weights: Any, labels: Any, k: int, frame: Rescaling, changes: Any = None, sums: Any = None) -> Any:
    d = x.shape[1]
    if sums is None:
        sums = np.zeros((k, d)), np.zeros((k, d)), np.zeros((2, k)), np.zeros((2, k, d))
    targets = DenseTargets(np.zeros((k, d), x.dtype), frame, observed=True)
    slots = np.arange(k, dtype=np.int32)
    targets.move_rows(x, weights, 0.25, changes, labels, slots, Grid.of(len(x)), sums)
    return sums


@settings(deadline=None, max_examples=60)
@given(st.integers(0, 2**32), st.integers(1, 25), st.booleans(), st.sampled_from([np.float32, np.float64]))
def test_sums_and_weights_of_the_observed_cells(seed: int, d: int, weighted: bool, dtype: Any) -> None:
    rng, n, k = np.random.default_rng(seed), 80, 4
    x, _ = some_rows("shifted", n, d, 1, dtype, 0.3, seed)
    x[3] = np.nan
    frame, weights = frame_of(x), rng.integers(0, 4, n).astype(float) if weighted else None
    labels = np.where(np.isnan(x).all(axis=1), -1, rng.integers(k, size=n)).astype(np.int32)
    high, low, weight, missing = sums_of(x, weights, labels, k, frame)
    # Weights are multiplied by their scale, 0.25, if there are any; without, each row counts as 1.
    share = np.ones(n) if weights is None else weights * 0.25
    y = (x.astype(np.longdouble) * frame.scale - frame.pivot * frame.scale) * share[:, None]
    for c in range(k):
        here = labels == c
        np.testing.assert_allclose((high + low)[c], np.nansum(y[here], axis=0).astype(float), rtol=0, atol=1e-15 * n)
        assert weight[:, c].sum() == share[here].sum()
        np.testing.assert_array_equal(missing[:, c].sum(axis=0), (share[here, None] * np.isnan(x[here])).sum(axis=0))


@settings(deadline=None, max_examples=40)
@given(st.integers(0, 2**32), st.sampled_from([np.float32, np.float64]))
def test_moving_rows_gives_the_bits_of_sums_made_anew(seed: int, dtype: Any) -> None:
    rng, n, k = np.random.default_rng(seed), 60, 3
    x, _ = some_rows("random", n, 19, 1, dtype, 0.3, seed)
    x[5] = np.nan
    frame, weights, blank = frame_of(x), rng.random(n), np.isnan(x).all(axis=1)
    first, after = (np.where(blank, -1, rng.integers(k, size=n)).astype(np.int32) for _ in range(2))
    sums = sums_of(x, weights, first, k, frame)
    changed = np.flatnonzero(first != after).astype(np.int32)
    sums_of(x, weights, after, k, frame, (changed, first[changed]), sums)
    for moved, anew in zip(sums, sums_of(x, weights, after, k, frame), strict=True):
        assert (moved + 0.0).tobytes() == (anew + 0.0).tobytes()


def test_residuals_are_those_of_observed_cells(dtype: Any) -> None:
    x, points = some_rows("shifted", 70, 33, 4, dtype, 0.2, 5)
    frame, labels = frame_of(x, points), np.random.default_rng(0).integers(4, size=70).astype(np.int32)
    weights, each = np.random.default_rng(1).random(70), np.empty(70)
    total = DenseTargets(points, frame, observed=True).residuals(x, weights, labels, each)
    true = reference.observed_squares(x, points)[np.arange(70), labels].astype(float) * frame.scale**2
    np.testing.assert_allclose(each, true, rtol=1e-12)
    np.testing.assert_allclose(total, np.bincount(labels, weights * true, minlength=4), rtol=1e-12)


def test_closest_seeds_and_candidates(dtype: Any) -> None:
    x, points = some_rows("random", 130, 21, 5, dtype, 0.2, 6)
    x[9] = np.nan
    x[10] = points[1]  # at a distance of 0
    frame, weights = frame_of(x, points), np.random.default_rng(1).random(130)
    closest = np.full(130, np.finfo(dtype).max, dtype)
    total, potential = DenseTargets(points, frame, observed=True).update_closest(x, weights, 2, closest)
    true = reference.observed_squares(x, points).astype(float) * frame.scale**2
    least = true[:, :2].min(axis=1)
    rtol = 1e-4 if dtype == np.float32 else 1e-12
    np.testing.assert_allclose(closest, least, rtol=rtol)
    assert closest[9] == closest[10] == 0
    np.testing.assert_allclose(total, weights @ least, rtol=rtol)
    np.testing.assert_allclose(potential, [weights @ np.minimum(least, true[:, c]) for c in (2, 3, 4)], rtol=rtol)


def test_distances_are_scaled_to_all_columns_by_hand() -> None:
    """From (1, -, 2, -) to (4, 9, 6, 9): the observed squares 9 + 16 stand for half of the columns, so the root of 50."""
    x = np.array([[1.0, np.nan, 2.0, np.nan], [4.0, 9.0, 6.0, 9.0], [np.nan] * 4])
    points = np.array([[4.0, 9.0, 6.0, 9.0]])
    found = DenseTargets(points, Rescaling(np.zeros(4), 0.125), observed=True).distances(x)
    np.testing.assert_allclose(found[:, 0], [np.sqrt(50.0), 0.0, np.nan], rtol=1e-15)


def test_it_travels_and_refuses_wrong_arrays() -> None:
    x, points = some_rows("random", 10, 3, 2, np.float64, 0.3, 7)
    targets = pickle.loads(pickle.dumps(DenseTargets(points, frame_of(x, points), observed=True)))
    labels = np.full(10, -1, np.int32)
    targets.nearest(x, labels)
    np.testing.assert_array_equal(labels, reference.nearest_observed(x, points))
    given = x, None, 1.0, None, labels, np.arange(2, dtype=np.int32), Grid.of(10)
    three = np.zeros((2, 3)), np.zeros((2, 3)), np.zeros((2, 2))
    with pytest.raises(ValueError, match="missing cells"):
        targets.move_rows(*given, three)
    with pytest.raises(ValueError, match="missing cells"):
        targets.move_rows(*given, (*three, np.zeros((2, 1, 3))))
    with pytest.raises(ValueError, match="not a target"):
        targets.residuals(x, None, np.full(10, -2, np.int32))
