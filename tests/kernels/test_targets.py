"""The nearest target of every row: exactly what brute force in extended precision says, with bounds or without."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from foldwise import kernels
from foldwise.kernels import reference
from foldwise.kernels.targets import CentreGroups, DenseTargets, Moved, Rescaling, rescaling_around, rescaling_within

SCALES = {np.float32: [1e-25, 1e-12, 1.0, 1e12, 1e20], np.float64: [1e-170, 1e-25, 1.0, 1e25, 1e170]}
KINDS = ["random", "lattice", "duplicated", "shifted", "one column far"]


def frame_of(*parts: NDArray[Any]) -> Rescaling:
    x = np.concatenate(parts)
    middle = (x.astype(np.float64) / len(x)).sum(axis=0)
    return rescaling_within(middle, x.min(axis=0), x.max(axis=0), x.dtype)


def nearest(x: NDArray[Any], points: NDArray[Any], frame: Rescaling | None = None) -> NDArray[np.int32]:
    labels = np.full(len(x), -1, np.int32)
    DenseTargets(points, frame or frame_of(x, points)).nearest(x, labels)
    return labels


def some_rows(kind: str, n: int, d: int, k: int, dtype: Any, scale: float, seed: int) -> tuple[Any, Any]:
    """Rows and targets of one kind."""
    rng = np.random.default_rng(seed)
    if kind == "lattice":
        both = rng.integers(-2, 3, (n + k, d)).astype(np.float64)
    elif kind == "duplicated":
        few = rng.standard_normal((max(2, k // 2), d))
        both = few[rng.integers(len(few), size=n + k)]
    elif kind == "shifted":
        both = rng.standard_normal((n + k, d)) + rng.choice([1e2, 1e4, 1e8])
    elif kind == "one column far":
        both = rng.standard_normal((n + k, d))
        both[:, d // 2] += 1e6
    else:
        both = rng.standard_normal((n + k, d))
    if kind == "lattice":  # by a power of two, so that extended precision sees the ties as well
        scale = 2.0 ** round(np.log2(scale))
    both = (both * scale).astype(dtype)
    return np.ascontiguousarray(both[:n]), np.ascontiguousarray(both[n:])


@st.composite
def cases(draw: st.DrawFn) -> tuple[Any, Any]:
    dtype = draw(st.sampled_from([np.float32, np.float64]))
    n, d, k = draw(st.integers(1, 60)), draw(st.integers(1, 40)), draw(st.integers(1, 30))
    scale = draw(st.sampled_from(SCALES[dtype]))
    return some_rows(draw(st.sampled_from(KINDS)), n, d, k, dtype, scale, draw(st.integers(0, 2**32)))


@settings(deadline=None, max_examples=150)
@given(cases())
def test_nearest_is_brute_force(case: tuple[Any, Any]) -> None:
    x, points = case
    np.testing.assert_array_equal(nearest(x, points), reference.nearest(x, points))


@pytest.mark.parametrize("kind", KINDS)
def test_nearest_for_many_numbers_of_columns(dtype: Any, kind: str) -> None:
    for d in (1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 33, 64, 191, 192, 193, 200, 383, 384, 385, 577, 800):
        x, points = some_rows(kind, 29, d, 11, dtype, 1.0, d)
        np.testing.assert_array_equal(nearest(x, points), reference.nearest(x, points), err_msg=f"{d} columns")


@pytest.mark.parametrize("d", [1, 3, 16, 203])
def test_nearest_for_every_number_of_targets(dtype: Any, d: int) -> None:
    for k in range(1, 71 if d < 200 else 27):
        x, points = some_rows("lattice" if k % 2 else "random", 25, d, k, dtype, 1.0, k)
        np.testing.assert_array_equal(nearest(x, points), reference.nearest(x, points), err_msg=f"{k} targets")


@pytest.mark.parametrize("width", [8, 12, 16, 24, 48])
def test_nearest_around_whole_panels_of_rows(dtype: Any, width: int) -> None:
    for n in {m for times in (1, 2, 5) for m in (times * width - 1, times * width, times * width + 1)}:
        x, points = some_rows("shifted", n, 5, 9, dtype, 1.0, n)
        np.testing.assert_array_equal(nearest(x, points), reference.nearest(x, points), err_msg=f"{n} rows")


def test_no_rows(dtype: Any) -> None:
    points = np.ones((3, 2), dtype)
    assert (
        DenseTargets(points, rescaling_around(points)).nearest(np.empty((0, 2), dtype), np.empty(0, np.int32))[0] == 0
    )


def test_exact_ties_go_to_the_lowest_number() -> None:
    """float32 targets that are permutations of each other's coordinates: equally far in exact arithmetic."""
    rng = np.random.default_rng(3)
    for _ in range(50):
        d = int(rng.integers(2, 9))
        row = rng.standard_normal(d).astype(np.float32)
        base = rng.standard_normal(d).astype(np.float32)
        points = np.stack([rng.permutation(base) for _ in range(6)])
        x = np.stack([np.full(d, row[0]), row])
        for values, found in zip(x, nearest(x, points), strict=True):
            exact = [
                sum((Fraction(float(a)) - Fraction(float(b))) ** 2 for a, b in zip(values, point, strict=True))
                for point in points
            ]
            assert found == exact.index(min(exact))


@pytest.mark.parametrize("gap", [0, 1, 2, 5, 50])
def test_targets_a_few_units_in_the_last_place_apart(dtype: Any, gap: int) -> None:
    rng = np.random.default_rng(gap)
    x = rng.standard_normal((60, 7)).astype(dtype)
    point = rng.standard_normal(7).astype(dtype)
    points = np.stack([point] * 5)
    for number in range(5):
        for _ in range(gap):
            points[number, number] = np.nextafter(points[number, number], dtype(9))
    np.testing.assert_array_equal(nearest(x, points), reference.nearest(x, points))


@pytest.mark.parametrize("far", [1e2, 1e6, 1e10, 1e15])
def test_rows_far_outside_the_frame(dtype: Any, far: float) -> None:
    """What predict does: the frame is that of the centres, and rows may lie anywhere."""
    rng = np.random.default_rng(1)
    points = (rng.standard_normal((6, 3)) + 5).astype(dtype)
    x = (rng.standard_normal((50, 3)) * far).astype(dtype)
    np.testing.assert_array_equal(nearest(x, points, rescaling_around(points)), reference.nearest(x, points))


def test_equal_targets_leave_a_frame_without_extent(dtype: Any) -> None:
    points = np.full((4, 3), 0.1, dtype)
    x = np.random.default_rng(0).standard_normal((30, 3)).astype(dtype)
    assert not nearest(x, points, rescaling_around(points)).any()


def test_counts_and_distances(dtype: Any) -> None:
    rng = np.random.default_rng(0)
    x, points = rng.standard_normal((77, 6)).astype(dtype), rng.standard_normal((9, 6)).astype(dtype)
    frame = frame_of(x)
    labels, near, next_ = np.zeros(77, np.int32), np.empty(77, dtype), np.empty(77, dtype)
    moved, computed, *_ = DenseTargets(points, frame).nearest(x, labels, near, next_)
    truth = reference.nearest(x, points)
    assert moved == np.count_nonzero(truth)
    assert computed == 77
    squares = ((x[:, None].astype(np.longdouble) - points) ** 2).sum(axis=2) * frame.scale**2
    squares.sort(axis=1)
    within = 30 * np.finfo(dtype).eps
    np.testing.assert_allclose(near, squares[:, 0].astype(dtype), rtol=0, atol=within)
    np.testing.assert_allclose(next_, squares[:, 1].astype(dtype), rtol=0, atol=within)
    assert DenseTargets(points, frame).nearest(x, labels)[0] == 0


# ---------------------------------------------------------------- bounds


def random_groups(k: int, rng: np.random.Generator) -> CentreGroups:
    inside = np.flatnonzero(rng.random(k - 1) < rng.random()) + 1
    return CentreGroups(rng.permutation(k).astype(np.int32), np.append(inside, k).astype(np.int32))


class Bounded:
    """Bounds that are kept while targets move, as the model keeps them."""

    def __init__(self, x: NDArray[Any], frame: Rescaling, groups: CentreGroups) -> None:
        self.x, self.frame, self.groups = x, frame, groups
        n, several = len(x), len(groups.ends)
        self.labels = np.full(n, -1, np.int32)
        self.upper, self.lower = np.full(n, np.nan, x.dtype), np.full(n, np.nan, x.dtype)
        self.by_group = np.full((n if several > 1 else 0, several), np.nan, x.dtype)
        self.total, self.group_total, self.most = np.zeros(len(groups.order)), np.zeros(several), 0.0
        self.last: NDArray[Any] | None = None

    def step(self, points: NDArray[Any]) -> tuple[int, int, int]:
        fresh = self.last is None
        if self.last is not None:
            step = (points.astype(np.float64) - self.last.astype(np.float64)) * self.frame.scale
            drift = np.sqrt(np.einsum("ij,ij->i", step, step)) * (1 + 1e-14 * points.shape[1])
            self.total += drift
            self.group_total += self.groups.largest(drift)
            self.most += float(drift.max())
        self.moved = Moved.of(self.total, self.group_total, self.most, points.shape[1], self.x.dtype)
        self.last = points
        return DenseTargets(points, self.frame, self.groups).nearest_bounded(
            self.x, self.labels, (self.upper, self.lower, self.by_group), self.moved, fresh=fresh
        )

    def check(self, points: NDArray[Any]) -> None:
        """Upper bounds lie above, lower bounds below the true distances."""
        # Scaled first (exactly): even longdouble could lose digits of squares of very small values.
        x, targets = (part.astype(np.longdouble) * self.frame.scale for part in (self.x, points))
        true = np.sqrt(((x[:, None] - targets) ** 2).sum(axis=2))
        rows = np.arange(len(x))
        assert np.all(self.upper.astype(np.longdouble) + self.moved.each[self.labels] >= true[rows, self.labels])
        true[rows, self.labels] = np.inf
        assert np.all(self.lower.astype(np.longdouble) - self.moved.most <= true.min(axis=1))
        start = 0
        for group, end in enumerate(self.groups.ends if len(self.by_group) else ()):
            bound = self.by_group[:, group].astype(np.longdouble) - self.moved.group[group]
            assert np.all(bound <= true[:, self.groups.order[start:end]].min(axis=1))
            start = end


@settings(deadline=None, max_examples=80)
@given(cases(), st.integers(0, 2**32))
def test_bounds_never_change_a_label(case: tuple[Any, Any], seed: int) -> None:
    x, points = case
    rng = np.random.default_rng(seed)
    bounded = Bounded(x, frame_of(x, points), random_groups(len(points), rng))
    for _ in range(6):
        moved, *_ = bounded.step(points)
        np.testing.assert_array_equal(bounded.labels, reference.nearest(x, points))
        assert 0 <= moved <= len(x)
        bounded.check(points)
        target = x[rng.integers(len(x), size=len(points))]  # towards rows, so that ties stay likely
        share = rng.choice([0.0, 1e-6, 0.01, 0.5, 1.0], len(points))[:, None]
        points = np.ascontiguousarray((points + share * (target - points)).astype(x.dtype))


@pytest.mark.parametrize("d", [2, 40, 192, 193, 400])
@pytest.mark.parametrize("groups", ["one", "pairs", "random"])
def test_bounds_through_a_whole_descent(dtype: Any, d: int, groups: str) -> None:
    """Lloyd's own steps: most rows are pruned in the end, and every label is right on the way."""
    rng = np.random.default_rng(d)
    n, k = 400, 24
    x = (rng.standard_normal((k // 2, d))[rng.integers(k // 2, size=n)] * 5 + rng.standard_normal((n, d))).astype(dtype)
    points = np.ascontiguousarray(x[:k])
    ends = {"one": [k], "pairs": range(2, k + 1, 2)}
    fixed = CentreGroups(np.arange(k, dtype=np.int32), np.array(ends.get(groups, [k]), np.int32))
    bounded = Bounded(x, frame_of(x), random_groups(k, rng) if groups == "random" else fixed)
    plain = np.full(n, -1, np.int32)
    for _ in range(12):
        before = plain.copy()
        DenseTargets(points, bounded.frame).nearest(x, plain)
        moved, computed, *_ = bounded.step(points)
        np.testing.assert_array_equal(bounded.labels, plain)
        assert moved == np.count_nonzero(before != plain)
        means = [x[plain == c].mean(axis=0, dtype=np.float64) if (plain == c).any() else points[c] for c in range(k)]
        points = np.asarray(means).astype(dtype)
    np.testing.assert_array_equal(plain, reference.nearest(x, bounded.last))
    bounded.check(bounded.last)
    if d > 2:  # with few short targets, comparing is cheaper than sharper bounds
        assert computed < n / 2


@pytest.mark.parametrize("width", [3, 6, 17])
def test_bounds_of_more_rows_in_doubt_than_are_compared_at_once(dtype: Any, width: int) -> None:
    """Noise: hardly a row is settled by bounds, and each needs other groups."""
    rng = np.random.default_rng(width)
    x, k = rng.standard_normal((1300, 70)).astype(dtype), 51
    points = np.ascontiguousarray(x[:k])
    ends = np.append(np.arange(width, k, width), k).astype(np.int32)
    bounded = Bounded(x, frame_of(x), CentreGroups(rng.permutation(k).astype(np.int32), ends))
    for _ in range(5):
        computed = bounded.step(points)[1]
        np.testing.assert_array_equal(bounded.labels, nearest(x, points, bounded.frame))
        bounded.check(points)
        own = bounded.labels
        points = np.stack([x[own == c].mean(axis=0, dtype=np.float64) for c in range(k)]).astype(dtype)
    assert 0 < computed < 1300


@pytest.mark.parametrize("size", [1, 2, 3, 12])
@pytest.mark.parametrize("d", [1, 5, 64])
def test_unmoved_targets_prune_nearly_all_rows(dtype: Any, d: int, size: int) -> None:
    x, points = some_rows("random", 500, d, 12, dtype, 1.0, d)
    ends = np.arange(size, 13, size, dtype=np.int32)
    bounded = Bounded(x, frame_of(x), CentreGroups(np.random.default_rng(0).permutation(12).astype(np.int32), ends))
    bounded.step(points)
    moved, computed, *_ = bounded.step(points)
    assert moved == 0
    assert computed < 25


# ---------------------------------------------------------------- frame, extent, refusals


@settings(deadline=None, max_examples=60)
@given(cases())
def test_frames_lose_nothing(case: tuple[Any, Any]) -> None:
    x, _ = case
    frame = frame_of(x)
    assert np.frexp(frame.scale)[0] == 0.5
    y = frame.apply(x)
    assert np.abs(y).max() <= 1
    # y is 0 only if there is nothing to see, and otherwise not so small that its square is lost.
    assert np.abs(y).max() >= 0.1 or (x == x[0]).all()
    back = frame.undo(y, x.dtype)
    within = 2 * np.finfo(x.dtype).eps * np.abs(x).max(axis=0)
    assert np.all(np.abs(back.astype(np.float64) - x) <= within)


def test_frames_at_the_ends_of_the_range(dtype: Any) -> None:
    most, least = np.finfo(dtype).max, np.finfo(dtype).smallest_normal
    for ends in ([-most, most], [0, least], [-most, least], [least, 2 * least]):
        x = np.array(ends, dtype)[:, None]
        y = frame_of(x).apply(x)
        assert np.isfinite(y).all()
        assert np.abs(y).max() <= 4  # there is no smaller scale; exact sums have that much room
        assert y[0, 0] < y[1, 0]


@settings(deadline=None, max_examples=100)
@given(n=st.integers(1, 80), d=st.integers(1, 40), seed=st.integers(0, 99), single=st.booleans())
def test_extent(n: int, d: int, seed: int, single: bool) -> None:
    x = np.random.default_rng(seed).standard_normal((n, d)).astype(np.float32 if single else np.float64)
    for found, truth in zip(kernels.extent(x), reference.extent(x), strict=True):
        assert found.dtype == np.float64
        np.testing.assert_array_equal(found, truth)


def test_wrong_arrays_are_refused(dtype: Any) -> None:
    points = np.ones((3, 4), dtype)
    targets = DenseTargets(points, rescaling_around(points))
    other = np.float64 if dtype == np.float32 else np.float32
    labels = np.zeros(5, np.int32)
    x = np.zeros((5, 4), dtype)
    for wrong in (x.astype(other), x.astype(np.int64), np.asfortranarray(x), np.zeros((5, 8), dtype)[:, ::2], x[0]):
        with pytest.raises(TypeError):
            targets.nearest(wrong, labels)
    for wrong_labels in (labels.astype(np.int64), np.zeros((5, 1), np.int32), np.zeros(10, np.int32)[::2]):
        with pytest.raises(TypeError):
            targets.nearest(x, wrong_labels)
    with pytest.raises(ValueError, match="as many columns"):
        targets.nearest(np.zeros((5, 3), dtype), labels)
    with pytest.raises(ValueError, match="one entry per row"):
        targets.nearest(x, labels[:4])
    with pytest.raises(ValueError, match="one entry per row"):
        targets.nearest(x, labels, np.zeros(4, dtype))
    with pytest.raises(ValueError, match="rows' dtype"):
        targets.nearest(x, labels, np.zeros(5, other))
    frozen = labels.copy()
    frozen.flags.writeable = False
    with pytest.raises(TypeError):
        targets.nearest(x, frozen)
    with pytest.raises(ValueError, match="pivot"):
        DenseTargets(points, Rescaling(np.zeros(3), 1.0))
    with pytest.raises(ValueError, match="a target and a column"):
        DenseTargets(np.zeros((0, 4), dtype), Rescaling(np.zeros(4), 1.0))
    with pytest.raises(ValueError, match="float32 or float64"):
        DenseTargets(points.astype(np.int64), Rescaling(np.zeros(4), 1.0))


@pytest.mark.parametrize(
    ("order", "ends"), [([0, 1], [3]), ([0, 1, 1], [3]), ([0, 1, 5], [3]), ([0, 1, 2], [2]), ([0, 1, 2], [0, 3])]
)
def test_groups_must_hold_every_target_once(order: list[int], ends: list[int]) -> None:
    groups = CentreGroups(np.array(order, np.int32), np.array(ends, np.int32))
    with pytest.raises(ValueError, match=r"groups must hold|no group may be empty"):
        DenseTargets(np.ones((3, 4)), Rescaling(np.zeros(4), 1.0), groups)


def test_wrong_bounds_are_refused(dtype: Any) -> None:
    points, x = np.ones((3, 4), dtype), np.zeros((5, 4), dtype)
    groups = CentreGroups(np.arange(3, dtype=np.int32), np.array([1, 3], np.int32))
    targets = DenseTargets(points, Rescaling(np.zeros(4), 1.0), groups)
    labels, each, by_group = np.zeros(5, np.int32), np.zeros(5, dtype), np.zeros((5, 2), dtype)
    moved = Moved.of(np.zeros(3), np.zeros(2), 0.0, 4, np.dtype(dtype))
    targets.nearest_bounded(x, labels, (each, each.copy(), by_group), moved, fresh=True)
    for bounds in ((each[:4], each, by_group), (each, each[:4], by_group)):
        with pytest.raises(ValueError, match="one entry per row"):
            targets.nearest_bounded(x, labels, bounds, moved, fresh=True)
    with pytest.raises(ValueError, match="row and group"):
        targets.nearest_bounded(x, labels, (each, each, by_group[:, :1].copy()), moved, fresh=True)
    short = Moved.of(np.zeros(2), np.zeros(2), 0.0, 4, np.dtype(dtype))
    with pytest.raises(ValueError, match="per target and per group"):
        targets.nearest_bounded(x, labels, (each, each, by_group), short, fresh=True)
    for bad in (-1, 3):
        with pytest.raises(ValueError, match="not a target"):
            targets.nearest_bounded(x, np.full(5, bad, np.int32), (each, each, by_group), moved, fresh=False)


@pytest.mark.parametrize("d", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("k", [1, 2, 7, 64, 65])
def test_short_rows_with_and_without_ties(d: int, k: int) -> None:
    """Rows of up to four columns have a kernel of their own; on a small grid many have several nearest targets."""
    rng = np.random.default_rng(d * 100 + k)
    for make in (lambda n: rng.integers(0, 4, (n, d)), lambda n: rng.standard_normal((n, d)) + 100.0):
        x, points = make(1003).astype(np.float32), make(k).astype(np.float32)
        frame = rescaling_within(x.mean(axis=0, dtype=np.float64), x.min(axis=0), x.max(axis=0), x.dtype)
        labels = np.full(len(x), -1, np.int32)
        changes = np.empty(len(x), np.int32), np.empty(len(x), np.int32)
        DenseTargets(points, frame).nearest(x, labels, changes=changes)
        gaps = x[:, None].astype(np.longdouble) - points
        np.testing.assert_array_equal(labels, (gaps**2).sum(axis=2).argmin(axis=1))
        np.testing.assert_array_equal(changes[0], np.arange(len(x)))
        before = labels.copy()
        other = points[::-1].copy()
        moved, *_ = DenseTargets(other, frame).nearest(x, labels, changes=changes)
        np.testing.assert_array_equal(changes[0][:moved], np.flatnonzero(labels != before))
        np.testing.assert_array_equal(changes[1][:moved], before[labels != before])
