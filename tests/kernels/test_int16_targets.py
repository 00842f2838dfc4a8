"""Rows compared as integers of 16 bits: the labels are those of the comparison in floating point, whatever the rows."""

from __future__ import annotations

import ctypes
import mmap
import sys
import warnings
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import foldwise as fw
from foldwise import kernels
from foldwise.data.cache import cached
from foldwise.data.scan import scan
from foldwise.fold.passes import Passes
from foldwise.kernels import _core, reference
from foldwise.kernels.targets import VECTOR_ROWS, DenseTargets, Rescaling, integer_rows, rescaling_within
from foldwise.models.kmeans.fit_data import KMeansData
from foldwise.models.kmeans.integer_rows import IntegerRows

_guards: list[mmap.mmap] = []  # they live as long as the tests
KINDS = ["noise", "groups", "lattice", "few distinct", "corners", "shifted", "heavy tails", "one column", "zeros"]


def rows_of(kind: str, n: int, d: int, rng: np.random.Generator) -> NDArray[np.float32]:
    if kind == "groups":
        x = rng.standard_normal((n, d)) * 0.1 + rng.standard_normal((7, d))[rng.integers(7, size=n)]
    elif kind == "lattice":  # ties abound
        x = rng.integers(-2, 3, (n, d)).astype(np.float64)
    elif kind == "few distinct":
        x = rng.standard_normal((3, d))[rng.integers(3, size=n)]
    elif kind == "corners":  # every value as large as can be
        x = rng.choice([-1.0, 1.0], (n, d))
    elif kind == "shifted":
        x = rng.standard_normal((n, d)) + 1e4
    elif kind == "heavy tails":  # a few rows far longer than the typical one
        x = rng.standard_t(1.1, (n, d))
    elif kind == "one column":
        x = np.zeros((n, d))
        x[:, d // 2] = rng.standard_normal(n)
    elif kind == "zeros":
        x = np.zeros((n, d))
    else:
        x = rng.standard_normal((n, d))
    return np.ascontiguousarray(x.astype(np.float32))


def frame_of(x: NDArray[Any]) -> Rescaling:
    middle = (x.astype(np.float64) / len(x)).sum(axis=0)
    return rescaling_within(middle, x.min(axis=0), x.max(axis=0), x.dtype)


def guarded(x: NDArray[Any]) -> NDArray[Any]:
    """The same values at the end of a page, behind which there is memory that must not be read."""
    if not sys.platform.startswith("linux"):
        return x
    page = mmap.PAGESIZE
    pages = -(-x.nbytes // page)
    memory = mmap.mmap(-1, (pages + 1) * page)
    _guards.append(memory)
    whole = np.frombuffer(memory, np.uint8)
    assert not ctypes.CDLL(None, use_errno=True).mprotect(ctypes.c_void_p(whole.ctypes.data + pages * page), page, 0)
    copy = whole[pages * page - x.nbytes : pages * page].view(x.dtype).reshape(x.shape)
    copy[...] = x
    return copy


def labels_of(x: NDArray[Any], points: NDArray[Any], row_length: float) -> tuple[NDArray[np.int32], tuple[int, ...]]:
    labels = np.full(len(x), -1, np.int32)
    counts = DenseTargets(points, frame_of(x), row_length=row_length).nearest(x, labels)
    return labels, counts


def typical(x: NDArray[Any]) -> float:
    return float(np.sqrt(np.square(frame_of(x).apply(x)).sum(axis=1).mean())) or 1.0


@settings(deadline=None, max_examples=300)
@given(
    kind=st.sampled_from(KINDS),
    n=st.integers(1, 400),
    d=st.integers(5, 70),
    k=st.integers(1, 40),
    scale=st.sampled_from([2.0**-60, 1e-3, 1.0, 3.0, 2.0**60]),
    wrong=st.sampled_from([1.0, 1e-3, 0.3, 30.0]),
    seed=st.integers(0, 2**32),
)
def test_labels_are_those_of_floating_point(
    kind: str, n: int, d: int, k: int, scale: float, wrong: float, seed: int
) -> None:
    """Even if the length said to be typical is far from it: then sums leave 32 bits, or rounding leaves all rows in doubt."""
    rng = np.random.default_rng(seed)
    x = rows_of(kind, n, d, rng) * np.float32(scale)
    points = x[rng.integers(n, size=k)] if seed % 2 else rows_of(kind, k, d, rng) * np.float32(scale)
    want, counts = labels_of(x, points, 0.0)
    got, again = labels_of(x, points, wrong * typical(x))
    np.testing.assert_array_equal(got, want)
    assert counts[0] == again[0] == n  # all labels are new


@settings(deadline=None, max_examples=150)
@given(
    kind=st.sampled_from(KINDS),
    n=st.integers(1, 200),
    d=st.sampled_from([127, 128, 129, 143, 144, 145, 159, 160, 161, 200, 783, 784, 1023, 1024]),
    k=st.integers(1, 13),
    wrong=st.sampled_from([1.0, 0.3, 30.0]),
    seed=st.integers(0, 2**32),
)
def test_few_targets_of_many_columns(kind: str, n: int, d: int, k: int, wrong: float, seed: int) -> None:
    """Which are compared with columns in the lanes; the rows end where memory ends."""
    rng = np.random.default_rng(seed)
    x = guarded(rows_of(kind, n, d, rng))
    points = x[rng.integers(n, size=k)] if seed % 2 else rows_of(kind, k, d, rng)
    want, _ = labels_of(x, points, 0.0)
    np.testing.assert_array_equal(labels_of(x, points, wrong * typical(x))[0], want)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    ("n", "d", "k"), [(5000, 3, 5), (9000, 8, 20), (3001, 16, 9), (2000, 40, 30), (700, 200, 10), (300, 784, 40)]
)
def test_residuals_of_a_pass_have_the_bits_of_a_pass_of_their_own(n: int, d: int, k: int, dtype: Any) -> None:
    rng = np.random.default_rng(n)
    x = (rng.standard_normal((n, d)) + 3).astype(dtype)
    targets = DenseTargets(x[:k].copy(), frame_of(x), row_length=typical(x) if dtype == np.float32 else 0.0)
    labels, found = np.full(n, -1, np.int32), np.zeros((2, k))
    targets.nearest(x, labels, residuals=found)
    np.testing.assert_array_equal(found, targets.residuals_and_counts(x, labels))
    assert found[1].sum() == n


def test_residuals_of_observed_cells() -> None:
    """A row with nothing observed is in no cluster, and adds nothing."""
    rng = np.random.default_rng(2)
    x = rng.standard_normal((3000, 9)).astype(np.float32)
    points = x[:6].copy()
    x[rng.random(x.shape) < 0.2] = np.nan
    x[5] = np.nan
    targets = DenseTargets(points, Rescaling(np.zeros(9), 0.25), observed=True)
    labels, found = np.full(len(x), -1, np.int32), np.zeros((2, 6))
    targets.nearest(x, labels, residuals=found)
    np.testing.assert_array_equal(found, targets.residuals_and_counts(x, labels))
    assert labels[5] == -1
    assert found[1].sum() == np.count_nonzero(labels >= 0)


@pytest.mark.parametrize(
    ("n", "d", "k"),
    [(3000, 5, 300), (5000, 8, 20), (2000, 16, 257), (2000, 17, 256), (3000, 33, 258), (1500, 64, 700), (700, 257, 40),
     (600, 784, 30), (500, 1024, 25), (500, 1030, 25)],
)  # fmt: skip
@pytest.mark.parametrize("kind", ["noise", "groups", "heavy tails"])
def test_shapes_around_the_limits(n: int, d: int, k: int, kind: str) -> None:
    """Of tiles, of tags (256 targets), of columns in registers, and of columns at all."""
    rng = np.random.default_rng(n + d)
    x = rows_of(kind, n, d, rng)
    points = x[rng.choice(n, k, replace=False)]
    want, _ = labels_of(x, points, 0.0)
    np.testing.assert_array_equal(labels_of(x, points, typical(x))[0], want)
    frame = frame_of(x)
    some = np.arange(0, n, 10)
    gaps = np.square(frame.apply(x[some])[:, None] - frame.apply(points)).sum(axis=2)
    np.testing.assert_array_equal(want[some], gaps.argmin(axis=1))


def test_far_and_huge_targets() -> None:
    """Targets far outside the rows, and none but equal ones."""
    rng = np.random.default_rng(3)
    x = rows_of("noise", 500, 12, rng)
    for points in (x[:9] * np.float32(1e4), x[:9] + np.float32(1e6), np.repeat(x[:1], 9, axis=0), x[:9] * np.float32(1e-30)):
        points = np.ascontiguousarray(points)
        np.testing.assert_array_equal(labels_of(x, points, typical(x))[0], labels_of(x, points, 0.0)[0])


def test_the_nearest_by_hand() -> None:
    """Rows at -1, 0 and 1 of the first of 8 columns."""
    x = np.zeros((3, 8), np.float32)
    x[:, 0] = [-1, 0, 1]
    labels = np.full(3, -1, np.int32)
    points = np.zeros((2, 8), np.float32)
    points[:, 0] = [-0.75, 0.5]
    DenseTargets(points, Rescaling(np.zeros(8), 1.0), row_length=0.8).nearest(x, labels)
    assert labels.tolist() == [0, 1, 1]


def test_changes_and_sums_are_the_same() -> None:
    """What a pass records of rows that move does not depend on how it compares them."""
    rng = np.random.default_rng(5)
    x = rows_of("noise", 4000, 24, rng)
    old, new = x[:15].copy(), x[15:30].copy()
    found = []
    for row_length in (0.0, typical(x)):
        labels = labels_of(x, old, 0.0)[0]
        changes = np.empty(len(x), np.int32), np.empty(len(x), np.int32)
        count = DenseTargets(new, frame_of(x), row_length=row_length).nearest(x, labels, changes=changes)[0]
        order = np.argsort(changes[0][:count])
        found.append((labels, changes[0][:count][order], changes[1][:count][order]))
    for one, other in zip(*found, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.skipif(not _core.quick_int16(20, 16), reason="no quick products of 16-bit integers here")
@pytest.mark.parametrize(
    ("d", "k", "offset"), [(6, 5, 0.0), (8, 90, 0.0), (16, 40, 0.0), (40, 30, 1e3), (100, 30, 0.0), (150, 9, 10.0)]
)
def test_fits_have_the_same_bits(d: int, k: int, offset: float, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(d)
    x = (rng.standard_normal((20_000, d)) + offset).astype(np.float32)
    start = x[:k].copy()
    given_ = {"init": start, "n_init": 1, "max_iter": 12, "tol": 0.0, "algorithm": "lloyd"}
    lengths: list[float] = []
    own = KMeansData.row_length.func
    assert own is not None

    def asked(data: KMeansData) -> float:
        lengths.append(own(data))
        return lengths[-1]

    monkeypatch.setattr(KMeansData, "row_length", property(asked))
    with pytest.warns(fw.errors.NotFinishedWarning):
        as_integers = fw.KMeans(k, **given_).fit(x)
    monkeypatch.setattr(KMeansData, "row_length", 0.0)
    with pytest.warns(fw.errors.NotFinishedWarning):
        as_floats = fw.KMeans(k, **given_).fit(x)
    assert min(lengths) > 0  # or the two fits would not differ in what they do
    np.testing.assert_array_equal(as_integers.labels_, as_floats.labels_)
    np.testing.assert_array_equal(as_integers.cluster_centers_, as_floats.cluster_centers_)
    assert as_integers.inertia_ == as_floats.inertia_
    np.testing.assert_array_equal(as_integers.predict(x), as_integers.labels_)


@pytest.mark.parametrize("factor", [1.0, 3.0, 10.0, 1e3, 1e30])
def test_rows_of_weight_zero_may_lie_anywhere(factor: float) -> None:
    rng = np.random.default_rng(9)
    x = rows_of("noise", 10_000, 8, rng)
    weights = np.ones(len(x))
    weights[:300] = 0.0
    x[:300] *= np.float32(factor)
    with pytest.warns(fw.errors.NotFinishedWarning):
        km = fw.KMeans(30, init=x[1000:1030].copy(), n_init=1, max_iter=5, tol=0.0).fit(x, sample_weight=weights)
    np.testing.assert_array_equal(km.labels_, km.predict(x))
    gaps = np.square(x[:300, None].astype(np.float64) - km.cluster_centers_).sum(axis=2)
    if factor <= 1e3:  # farther away, float64 cannot tell centres apart
        np.testing.assert_array_equal(km.labels_[:300], gaps.argmin(axis=1))


def test_what_is_counted_does_not_depend_on_threads() -> None:
    rng = np.random.default_rng(10)
    x = rows_of("noise", 30_000, 40, rng)
    counts = []
    for threads in (1, 2, 3):
        with pytest.warns(fw.errors.NotFinishedWarning):
            km = fw.KMeans(30, init=x[:30].copy(), n_init=1, max_iter=6, tol=0.0, algorithm="lloyd", n_threads=threads).fit(x)
        counts.append([(step["near_ties"], step["moved"]) for step in km.trace_])
    assert counts[0] == counts[1] == counts[2]


def test_a_target_that_is_no_number_attracts_nothing() -> None:
    rng = np.random.default_rng(12)
    x = rows_of("noise", 500, 12, rng)
    points = x[:30].copy()
    points[4] = np.nan
    np.testing.assert_array_equal(labels_of(x, points, typical(x))[0], labels_of(x, points, 0.0)[0])


def test_where_it_pays() -> None:
    """Never without the instructions; with few targets only for short rows."""
    assert not (kernels.instruction_set() == "baseline" and _core.quick_int16(50, 16))
    assert _core.quick_int16(50, 16) >= _core.quick_int16(10, 16) >= _core.quick_int16(10, 300)
    assert not _core.quick_int16(50, 4)
    assert not _core.quick_int16(50, 1025)


def test_the_reference_agrees() -> None:
    rng = np.random.default_rng(11)
    x = rows_of("groups", 800, 21, rng)
    points = rows_of("groups", 13, 21, rng)
    np.testing.assert_array_equal(labels_of(x, points, typical(x))[0], reference.nearest(x, points))


def kept_labels(x: NDArray[Any], points: NDArray[Any], cuts: list[int]) -> list[NDArray[np.int32]]:
    """The labels of a pass that keeps the rows as integers, part by part, and of one that reads them."""
    integers = integer_rows(len(x), x.shape[1])
    targets = DenseTargets(points, frame_of(x), row_length=typical(x), kept=True)
    found = []
    for ready in (False, True):
        labels = np.full(len(x), -1, np.int32)
        for start, stop in pairwise([0, *cuts, len(x)]):
            here = slice(start, stop)
            targets.nearest(x[here], labels[here], integers=(integers[here], ready) if targets.rounded else None)
        found.append(labels)
    return found


@settings(deadline=None, max_examples=200)
@given(
    kind=st.sampled_from(KINDS),
    n=st.integers(1, 400),
    d=st.integers(9, 70),
    k=st.integers(1, 40),
    cut=st.integers(0, 24),
    seed=st.integers(0, 2**32),
)
def test_rows_that_are_kept_as_integers_get_the_same_labels(kind: str, n: int, d: int, k: int, cut: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    x = rows_of(kind, n, d, rng)
    points = x[rng.integers(n, size=k)] if seed % 2 else rows_of(kind, k, d, rng)
    want, _ = labels_of(x, points, 0.0)
    for got in kept_labels(x, points, [VECTOR_ROWS * cut] if 0 < VECTOR_ROWS * cut < n else []):
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize(
    ("n", "d", "k"), [(3000, 17, 2), (2000, 33, 12), (1600, 64, 64), (1500, 257, 10), (900, 784, 7), (500, 1024, 3)]
)
def test_kept_rows_of_many_columns(n: int, d: int, k: int) -> None:
    rng = np.random.default_rng(n + d)
    x = rows_of("noise", n, d, rng)
    points = x[rng.choice(n, k, replace=False)]
    want, _ = labels_of(x, points, 0.0)
    assert DenseTargets(points, frame_of(x), row_length=typical(x), kept=True).rounded == _core.quick_int16(k, d, True)
    for got in kept_labels(x, points, [16, 208, 480]):
        np.testing.assert_array_equal(got, want)


def test_what_is_kept_is_checked() -> None:
    x = rows_of("noise", 100, 20, np.random.default_rng(1))
    targets = DenseTargets(x[:3].copy(), frame_of(x), row_length=typical(x), kept=True)
    labels = np.full(100, -1, np.int32)
    for integers in (integer_rows(99, 20), integer_rows(100, 18), integer_rows(101, 20)[1:]):
        with pytest.raises(ValueError, match="kept"):
            targets.nearest(x, labels, integers=(integers, False))


@pytest.mark.skipif(not _core.quick_int16(5, 40, True), reason="no quick products of 16-bit integers here")
@pytest.mark.parametrize(("d", "k"), [(20, 3), (41, 12), (100, 30)])
@pytest.mark.parametrize("threads", [1, 2, 3])
def test_fits_that_keep_integers_have_the_same_bits(d: int, k: int, threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(d)
    x = np.ascontiguousarray(rng.standard_normal((30_011, d)), dtype=np.float32)
    given_ = {"init": x[:k].copy(), "n_init": 1, "max_iter": 9, "tol": 0.0, "algorithm": "lloyd", "n_threads": threads}
    used: list[bool | None] = []
    own = IntegerRows.for_pass

    def asked(rows: IntegerRows, k: int, *, reads_rows: bool) -> bool | None:
        used.append(own(rows, k, reads_rows=reads_rows))
        return used[-1]

    monkeypatch.setattr(IntegerRows, "for_pass", asked)
    with pytest.warns(fw.errors.NotFinishedWarning):
        kept = fw.KMeans(k, **given_).fit(x)
    assert used[:4] == [None, None, False, True]
    monkeypatch.setattr(IntegerRows, "suit", lambda rows, k: False)
    with pytest.warns(fw.errors.NotFinishedWarning):
        plain = fw.KMeans(k, **given_).fit(x)
    np.testing.assert_array_equal(kept.labels_, plain.labels_)
    np.testing.assert_array_equal(kept.cluster_centers_, plain.cluster_centers_)
    assert kept.inertia_ == plain.inertia_
    assert kept.trace_ == plain.trace_


@pytest.mark.skipif(not _core.quick_int16(5, 40, True), reason="no quick products of 16-bit integers here")
def test_a_first_pass_reads_rows_and_no_integers_kept_of_them() -> None:
    """It adds every row, as in every start but the first; the passes after it use what is kept."""
    integers = KMeansData(Passes(cached(scan(rows_of("noise", 10_000, 40, np.random.default_rng(3)))))).integers
    assert [integers.for_pass(5, reads_rows=number == 0) for number in range(3)] == [None, None, False]
    integers.ready = True
    assert integers.for_pass(5, reads_rows=True) is None
    assert integers.for_pass(5, reads_rows=False) is True


def test_rows_are_kept_only_where_there_is_memory_for_them(monkeypatch: pytest.MonkeyPatch) -> None:
    x = rows_of("noise", 10_000, 40, np.random.default_rng(2))
    enough = KMeansData(Passes(cached(scan(x))))
    assert enough.integers.suit(10) == _core.quick_int16(10, 40, True)
    monkeypatch.setattr("foldwise.models.kmeans.integer_rows.available", lambda: 1 << 20)
    short = KMeansData(Passes(cached(scan(x))))
    assert not short.integers.suit(10)


@pytest.mark.skipif(not _core.quick_int16(5, 40, True), reason="no quick products of 16-bit integers here")
@pytest.mark.parametrize("far", [40, 63])
def test_centres_that_no_integer_can_hold(far: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A pass that should write the integers cannot: then no later pass may read them."""
    rng = np.random.default_rng(0)
    x = np.ascontiguousarray(rng.standard_normal((20_000, 32)), dtype=np.float32)
    start = x[:64].copy()
    start[64 - far :] = 1e6 * (1 + rng.random((far, 32)))  # as if in other units
    given_ = {"init": start, "n_init": 1, "max_iter": 8, "tol": 0.0, "algorithm": "lloyd"}
    fits = []
    for kept in (True, False):
        if not kept:
            monkeypatch.setattr(IntegerRows, "suit", lambda rows, k: False)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            fits.append(fw.KMeans(64, **given_).fit(x))
    np.testing.assert_array_equal(fits[0].labels_, fits[1].labels_)
    np.testing.assert_array_equal(fits[0].cluster_centers_, fits[1].cluster_centers_)


def test_no_memory_for_integers_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def none_left(n: int, d: int) -> None:
        raise MemoryError

    monkeypatch.setattr("foldwise.models.kmeans.tasks.integer_rows", none_left)
    x = rows_of("noise", 10_000, 40, np.random.default_rng(2))
    with pytest.warns(fw.errors.NotFinishedWarning):
        km = fw.KMeans(5, init=x[:5].copy(), n_init=1, max_iter=6, tol=0.0, algorithm="lloyd").fit(x)
    np.testing.assert_array_equal(km.predict(x), km.labels_)
