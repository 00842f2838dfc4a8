"""Kernels for sparse rows against brute force in extended precision, and against the kernels for dense rows."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from foldwise import kernels
from foldwise.kernels import _core, reference
from foldwise.kernels.sparse import SparseTargets, unit_rows
from foldwise.kernels.targets import DenseTargets, Grid, Rescaling, rescaling_within


def some_rows(n: int, d: int, fill: float, dtype: Any, seed: int = 0, *, whole: bool = False) -> sp.csr_array:
    rng = np.random.default_rng(seed)
    values = rng.standard_normal((n, d)) * 3
    if whole:
        values = np.round(values)
    return sp.csr_array((values * (rng.random((n, d)) < fill)).astype(dtype))


def frame_of(x: sp.csr_array, points: NDArray[Any]) -> Rescaling:
    low, high = min(float(x.min()), float(points.min())), max(float(x.max()), float(points.max()))
    d = points.shape[1]
    return rescaling_within(np.zeros(d), np.full(d, low), np.full(d, high), points.dtype)


def labels_of(x: sp.csr_array, points: NDArray[Any], frame: Rescaling | None = None) -> tuple[NDArray[np.int32], int]:
    labels = np.full(x.shape[0], -1, dtype=np.int32)
    moved, computed, settled, _ = SparseTargets(points, frame or frame_of(x, points)).nearest(x, labels)
    assert moved == computed == x.shape[0]
    return labels, settled


def squared(x: sp.csr_array, points: NDArray[Any]) -> NDArray[Any]:
    rows = x.toarray().astype(np.longdouble)
    return np.stack([((rows - point) ** 2).sum(axis=1) for point in points.astype(np.longdouble)], axis=1)


def exact_nearest(x: sp.csr_array, points: NDArray[Any]) -> list[int]:
    halves = [sum(Fraction(v) ** 2 for v in point[point != 0]) / 2 for point in points]
    out = []
    for i in range(x.shape[0]):
        row = slice(x.indptr[i], x.indptr[i + 1])
        stored = [(j, Fraction(v)) for j, v in zip(x.indices[row], x.data[row], strict=True)]
        scores = [sum(v * Fraction(point[j]) for j, v in stored) for point in points]
        out.append(max(range(len(points)), key=lambda c: (scores[c] - halves[c], -c)))
    return out


@pytest.mark.parametrize("k", [1, 2, 7, 8, 9, 20, 64, 65, 130])
def test_nearest_equals_brute_force(k: int, dtype: Any) -> None:
    x = some_rows(300, 57, 0.15, dtype)
    points = some_rows(k, 57, 0.3, dtype, seed=1).toarray()
    near, second = np.empty(300, dtype), np.empty(300, dtype)
    labels = np.full(300, -1, dtype=np.int32)
    frame = frame_of(x, points)
    SparseTargets(points, frame).nearest(x, labels, near, second)
    assert np.array_equal(labels, reference.nearest(x.toarray(), points))
    truth = np.sort(squared(x, points), axis=1)
    digits = 1e-6 if dtype == np.float32 else 1e-12
    np.testing.assert_allclose(near / frame.scale**2, truth[:, 0].astype(float), rtol=digits)
    if k > 1:
        np.testing.assert_allclose(second / frame.scale**2, truth[:, 1].astype(float), rtol=digits)


@given(seed=st.integers(0, 10_000), k=st.integers(1, 12), d=st.integers(1, 20), single=st.booleans())
def test_ties_go_to_the_lowest_number(seed: int, k: int, d: int, single: bool) -> None:
    """Small whole numbers make exact ties, zero rows and equal targets."""
    dtype = np.float32 if single else np.float64
    x = some_rows(40, d, 0.4, dtype, seed, whole=True)
    points = some_rows(k, d, 0.4, dtype, seed + 1, whole=True).toarray()
    assert np.array_equal(labels_of(x, points)[0], reference.nearest(x.toarray(), points))


@given(seed=st.integers(0, 10_000), power=st.integers(0, 50))
def test_near_ties_are_decided_right(seed: int, power: int) -> None:
    """Two targets on either side of each row, one of them 2^-power further away."""
    rng = np.random.default_rng(seed)
    x = some_rows(1, 12, 0.5, np.float64, seed)
    step = np.round(rng.standard_normal(12) * 64) / 64
    row = np.round(x.toarray() * 64) / 64
    points = np.concatenate([row + step * (1 + 2.0**-power), row - step, row + step])
    x = sp.csr_array(row)
    assert np.array_equal(labels_of(x, points)[0], reference.nearest(row, points))


def test_rows_with_nothing_in_common_with_targets_of_one_length() -> None:
    """Documents share no word with most others: then only the last bits of the targets' lengths decide."""
    x = some_rows(400, 3000, 0.002, np.float64, seed=3)
    points, without = unit_rows(some_rows(30, 3000, 0.004, np.float64, seed=4))
    assert not without
    points = points.toarray()
    labels, settled = labels_of(x, points)
    assert settled > 50
    assert labels.tolist() == exact_nearest(x, points)  # extended precision has too few digits for it


def test_equal_targets_cost_nothing_and_the_first_wins(dtype: Any) -> None:
    x = some_rows(50, 30, 0.2, dtype)
    points = np.ascontiguousarray(np.repeat(some_rows(3, 30, 0.2, dtype, 1).toarray(), 4, axis=0))
    labels, _ = labels_of(x, points)
    assert set(labels) <= {0, 4, 8}
    assert np.array_equal(labels, reference.nearest(x.toarray(), points))


@pytest.mark.parametrize("offset", [1e3, 1e6])
def test_full_rows_far_from_zero(offset: float) -> None:
    """Without a pivot products lose digits; labels and distances do not."""
    rng = np.random.default_rng(0)
    rows, points = rng.standard_normal((200, 6)) + offset, rng.standard_normal((5, 6)) + offset
    x = sp.csr_array(rows)
    labels, _ = labels_of(x, points)
    assert np.array_equal(labels, reference.nearest(rows, points))
    frame, each = frame_of(x, points), np.empty(200)
    targets = SparseTargets(points, frame)
    targets.residuals(x, None, labels, each)
    truth = squared(x, points)
    np.testing.assert_allclose(each / frame.scale**2, truth.min(axis=1).astype(float), rtol=1e-12)
    np.testing.assert_allclose(targets.distances(x), np.sqrt(truth).astype(float), rtol=1e-12)


@pytest.mark.parametrize("scale", [1e-170, 1e-20, 1e20, 1e170])
def test_any_scale(scale: float) -> None:
    """Everything scales with the data; squares that leave float64 are never formed."""
    x, points = some_rows(80, 30, 0.3, np.float64), some_rows(6, 30, 0.3, np.float64, 1).toarray()
    truth = np.sqrt(squared(x, points)).astype(float)
    labels = labels_of(x, points)[0]
    x, points = x * scale, points * scale
    assert np.array_equal(labels_of(x, points)[0], labels)
    targets = SparseTargets(points, frame_of(x, points))
    np.testing.assert_allclose(targets.distances(x) / scale, truth, rtol=1e-12)
    each = np.empty(80)
    targets.residuals(x, None, labels, each)
    np.testing.assert_allclose(np.sqrt(each) / targets.rescaling.scale / scale, truth.min(axis=1), rtol=1e-12)


def test_a_row_far_beyond_all_targets() -> None:
    """Its square is no float64, its nearest target is clear all the same."""
    points = np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0]])
    x = sp.csr_array(np.array([[1e200, 0.0], [0.0, 1e250], [-1e300, 1e299]]))
    frame = rescaling_within(np.zeros(2), points.min(axis=0), points.max(axis=0), points.dtype)
    assert labels_of(x, points, frame)[0].tolist() == [0, 1, 2]


@pytest.mark.parametrize("weighted", [False, True])
def test_transfer_agrees_with_that_of_dense_rows(weighted: bool, dtype: Any) -> None:
    """Bit by bit: values are cut in the same place, and exact sums have no order."""
    rng = np.random.default_rng(5)
    x = some_rows(200, 40, 0.2, dtype)
    points = np.zeros((6, 40), dtype)
    frame, grid = frame_of(x, points), Grid.of(200)
    weights = rng.random(200) * (rng.random(200) < 0.8) if weighted else None
    before = rng.integers(-1, 6, 200).astype(np.int32)
    after = rng.integers(0, 6, 200).astype(np.int32)
    slots = np.array([3, 1, 0, 2, 5, 4], dtype=np.int32)
    out = []
    first = np.maximum(before, 0)
    moved = np.flatnonzero(first != after).astype(np.int32)
    for targets, rows, changes in (
        (SparseTargets(points, frame), x, first),
        (DenseTargets(points, frame), x.toarray(), (moved, first[moved])),
    ):
        sums = np.zeros((6, 40)), np.zeros((6, 40)), np.zeros((2, 6))
        targets.move_rows(rows, weights, 1.0, None, first, slots, grid, sums)
        targets.move_rows(rows, weights, 1.0, changes, after, slots, grid, sums)
        out.append(sums)
    for sparse, dense in zip(*out, strict=True):
        assert np.array_equal(sparse, dense)
    total = x.toarray().astype(float) * frame.scale * (1.0 if weights is None else weights[:, None])
    for label in range(6):
        here = out[0][0][slots[label]] + out[0][1][slots[label]]
        np.testing.assert_allclose(here, total[after == label].sum(axis=0), rtol=1e-13, atol=1e-15)


def test_closest_is_the_sum_of_the_least_distances(dtype: Any) -> None:
    rng = np.random.default_rng(2)
    x = some_rows(300, 50, 0.2, dtype)
    points = np.ascontiguousarray(x[[3, 77, 200, 5]].toarray())
    frame, weights = frame_of(x, points), rng.random(300)
    closest = np.full(300, np.finfo(dtype).max, dtype)
    total, potential = SparseTargets(points, frame).update_closest(x, weights, 2, closest)
    truth = squared(x, points).astype(float) * frame.scale**2
    least = truth[:, :2].min(axis=1)
    digits = 1e-6  # seeds are drawn by it
    np.testing.assert_allclose(closest, least, rtol=digits)
    assert not closest[[3, 77]].any()
    assert total == pytest.approx(weights @ least, rel=digits)
    np.testing.assert_allclose(potential, [weights @ np.minimum(least, truth[:, c]) for c in (2, 3)], rtol=digits)


@pytest.mark.parametrize("index", [np.int32, np.int64])
def test_both_kinds_of_indices(index: Any, dtype: Any) -> None:
    x = some_rows(60, 20, 0.3, dtype)
    points = some_rows(5, 20, 0.3, dtype, 1).toarray()
    x.indices, x.indptr = x.indices.astype(index), x.indptr.astype(index)
    assert np.array_equal(labels_of(x, points)[0], reference.nearest(x.toarray(), points))
    x.indptr = x.indptr.astype(np.int32)
    assert np.array_equal(labels_of(x, points)[0], reference.nearest(x.toarray(), points))


def test_broken_rows_are_refused() -> None:
    targets = _core.SparseTargets(np.eye(3), 1.0)
    labels = np.zeros(1, dtype=np.int32)
    values, starts = np.ones(1), np.array([0, 1], dtype=np.int32)
    for column in (3, -1):
        with pytest.raises(ValueError, match="column"):
            targets.nearest(values, np.array([column], dtype=np.int32), starts, labels)
    column = np.zeros(1, dtype=np.int32)
    for broken in ([0, 2], [1, 0], [-1, 1]):
        with pytest.raises(ValueError, match="rows must begin"):
            targets.nearest(values, column, np.array(broken, dtype=np.int32), labels)
    with pytest.raises(TypeError, match="dtype"):
        targets.nearest(values.astype(np.float32), column, starts, labels)
    with pytest.raises(TypeError, match="int32 or int64"):
        targets.nearest(values, column, starts.astype(np.int64), labels)
    with pytest.raises(ValueError, match="one entry per row"):
        targets.nearest(values, column, starts, np.zeros(2, dtype=np.int32))
    with pytest.raises(ValueError, match="not a target"):
        targets.residuals(values, column, starts, None, np.array([3], dtype=np.int32), np.zeros(3))
    sums = np.zeros((3, 3)), np.zeros((3, 3)), np.zeros((2, 3))
    slots = np.full(3, -1, dtype=np.int32)
    with pytest.raises(ValueError, match="slot"):
        targets.move_rows(values, column, starts, None, 1.0, None, labels, slots, 1.0, 1.0, *sums)


@pytest.mark.parametrize("scale", [1e-320, 1e-170, 1.0, 1e170, 1e308])
def test_unit_rows_at_any_scale(scale: float) -> None:
    rows = np.array([[3.0, 0.0, 4.0], [0.0, 0.0, 0.0], [0.0, -1.0, 0.0]]) / 4 * scale
    out, without = kernels.unit_rows(rows)
    assert without == 1
    np.testing.assert_allclose(out, reference.unit_rows(rows)[0], rtol=1e-15)
    np.testing.assert_allclose(unit_rows(sp.csr_array(rows))[0].toarray(), out, rtol=0)


def test_unit_rows_against_the_twin(dtype: Any) -> None:
    rows = some_rows(200, 37, 0.6, dtype)
    out, without = kernels.unit_rows(rows.toarray())
    truth, zero = reference.unit_rows(rows.toarray())
    assert without == zero
    # Rounded once from float64: one unit in the last place where that is near the middle of two float32.
    np.testing.assert_allclose(out, truth, rtol=2 * np.finfo(dtype).eps)
    assert np.abs(np.linalg.norm(out.astype(float), axis=1)[truth.any(axis=1)] - 1).max() < np.finfo(dtype).eps * 4
