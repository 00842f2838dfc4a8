"""Exact ties are counted apart from near ones: without any, renumbering the targets only renumbers the labels."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from foldwise.kernels.targets import CentreGroups, DenseTargets, Moved, Rescaling, rescaling_within
from tests.kernels.test_targets import KINDS, SCALES, frame_of, some_rows


def counts(x: NDArray[Any], points: NDArray[Any], frame: Rescaling, **given: Any) -> tuple[NDArray[np.int32], int, int]:
    labels = np.full(len(x), -1, np.int32)
    _, _, near, exact = DenseTargets(points, frame, **given).nearest(x, labels)
    return labels, near, exact


def tied(x: NDArray[Any], points: NDArray[Any]) -> int:
    """The number of rows with several nearest points, in exact arithmetic."""
    rows, targets = ([[Fraction(float(v)) for v in row] for row in part] for part in (x, points))
    found = 0
    for row in rows:
        squares = [sum((a - b) ** 2 for a, b in zip(row, target, strict=True)) for target in targets]
        found += squares.count(min(squares)) > 1
    return found


@pytest.mark.parametrize("d", [1, 3, 8])
def test_by_hand(dtype: Any, d: int) -> None:
    """Half-way between two points there is an exact tie; a little beside it only a near one."""
    points = np.zeros((2, d), dtype)
    points[1, 0] = 2
    x = np.zeros((4, d), dtype)
    x[:, 0] = [0.25, 1, np.nextafter(dtype(1), dtype(2)), np.nextafter(dtype(1), dtype(0))]
    labels, near, exact = counts(x, points, frame_of(x, points))
    assert labels.tolist() == [0, 0, 1, 0]
    assert near >= exact == 1
    x[:, 0] = [0.25, 0.5, 1.75, 2]
    assert counts(x, points, frame_of(x, points))[1:] == (0, 0)


def test_equal_points_tie_with_every_row_of_theirs(dtype: Any) -> None:
    x = np.random.default_rng(0).standard_normal((50, 6)).astype(dtype)
    points = np.concatenate([x[:3], x[:3]])
    assert counts(x, points, frame_of(x))[2] == 50


@st.composite
def cases(draw: st.DrawFn) -> tuple[Any, Any, Any]:
    dtype = draw(st.sampled_from([np.float32, np.float64]))
    n, d, k = draw(st.integers(1, 30)), draw(st.integers(1, 20)), draw(st.integers(1, 12))
    kind, scale = draw(st.sampled_from(KINDS)), draw(st.sampled_from(SCALES[dtype]))
    x, points = some_rows(kind, n, d, k, dtype, scale, draw(st.integers(0, 2**32)))
    return x, points, draw(st.permutations(range(k)))


@settings(deadline=None, max_examples=150)
@given(case=cases())
def test_counts_the_rows_that_brute_force_finds_tied(case: tuple[Any, Any, Any]) -> None:
    x, points, _ = case
    _, near, exact = counts(x, points, frame_of(x, points))
    assert near >= exact == tied(x, points)
    order = np.arange(len(points), dtype=np.int32)
    groups = CentreGroups(order, np.array([len(points)], np.int32))
    for observed in (False, True):
        targets = DenseTargets(points, frame_of(x, points), groups, observed)
        labels, upper, lower = np.full(len(x), -1, np.int32), np.empty(len(x), x.dtype), np.empty(len(x), x.dtype)
        still = Moved.of(np.zeros(len(points)), np.zeros(1), 0.0, x.shape[1], x.dtype)
        for fresh in (True, False):  # a row that is tied is not skipped by the bounds of the first pass
            bounds = upper, lower, np.empty((0, 1), x.dtype)
            assert targets.nearest_bounded(x, labels, bounds, still, fresh=fresh)[3] == exact


@settings(deadline=None, max_examples=150)
@given(case=cases())
def test_without_exact_ties_renumbering_only_renumbers(case: tuple[Any, Any, Any]) -> None:
    x, points, order = case
    frame = frame_of(x, points)
    labels, _, exact = counts(x, points, frame)
    again, _, exact_again = counts(x, np.ascontiguousarray(points[list(order)]), frame)
    assert exact == exact_again
    same = np.array(order, np.int32)[again] == labels
    assert np.count_nonzero(~same) <= exact


def test_rows_with_missing_cells(dtype: Any) -> None:
    """Over the observed cells both points are at the same distance of the second row, and of the third."""
    points = np.array([[0, 0], [2, 5]], dtype)
    x = np.array([[0.25, np.nan], [1, np.nan], [np.nan, 2.5], [0, 1], [np.nan, np.nan]], dtype)
    frame = rescaling_within(np.zeros(2), np.zeros(2), np.full(2, 5.0), np.dtype(dtype))
    labels, _, exact = counts(x, points, frame, observed=True)
    assert labels.tolist() == [0, 0, 0, 0, -1]
    assert exact == 2
