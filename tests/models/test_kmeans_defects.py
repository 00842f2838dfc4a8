"""What other tools get wrong (PEERS.md), as regression tests: offsets, scales, stale labels, duplicates, layouts."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import foldwise as fw
from foldwise.errors import FoldwiseWarning
from foldwise.fold.outcome import Reason
from foldwise.models.kmeans.centre_model import FewerClustersWarning

Check = Callable[..., None]


def two_blobs(offset: float = 0.0, scale: float = 1.0, dtype: Any = np.float64) -> tuple[np.ndarray, np.ndarray]:
    """1000 x 4: two blobs at +-1, spread .1; and which row is in which."""
    rng = np.random.default_rng(0)
    side = np.repeat([-1.0, 1.0], 500)
    x = side[:, None] + 0.1 * rng.standard_normal((1000, 4))
    return ((x + offset) * scale).astype(dtype), (side > 0).astype(int)


def assert_split(km: Any, side: np.ndarray) -> None:
    """Each blob is one cluster; they are equally large, so the one with the smaller centre comes first."""
    np.testing.assert_array_equal(km.labels_, side)


@pytest.mark.parametrize(
    ("dtype", "offset"),
    [(np.float32, o) for o in (0.0, 1e2, 1e4, 1e5)] + [(np.float64, o) for o in (0.0, 1e4, 1e8, 1e9, 1e12)],
)
@pytest.mark.parametrize("algorithm", ["lloyd", "bounded"])
@pytest.mark.parametrize("init", ["k-means++", "random", "k-means||"])
def test_two_blobs_at_an_offset(
    check_consistent: Check, check_means: Check, dtype: Any, offset: float, algorithm: str, init: str
) -> None:
    """scikit-learn: predict agrees with labels_ on 61 % (float32, 1e4), 51 % (float64, 1e9)."""
    x, side = two_blobs(offset, dtype=dtype)
    km = fw.KMeans(2, algorithm=algorithm, init=init, n_init=3, tol=0, random_state=1).fit(x)
    assert_split(km, side)
    check_consistent(km, x, brute=False)
    check_means(km, x)


@pytest.mark.parametrize("offset", [1e6, 1e7, 1e8])
def test_float32_where_the_data_themselves_are_rounded(check_consistent: Check, offset: float) -> None:
    """At 1e7 float32 values are whole numbers, at 1e8 multiples of 8: what is left is still clustered exactly."""
    x, _ = two_blobs(offset, dtype=np.float32)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FewerClustersWarning)
        km = fw.KMeans(2, tol=0).fit(x)
    check_consistent(km, x)
    wide = x.astype(np.float64)
    halves = [wide[km.labels_ == c] for c in range(2) if (km.labels_ == c).any()]
    within = sum(((half - half.mean(axis=0)) ** 2).sum() for half in halves)
    assert km.inertia_ <= within * (1 + 1e-6) + 1000 * 4 * np.spacing(np.float32(offset)) ** 2


@pytest.mark.parametrize(
    ("dtype", "scale"),
    [(np.float32, s) for s in (1e-35, 1e-25, 1e-10, 1e10, 1e20, 1e37)]
    + [(np.float64, s) for s in (1e-300, 1e-170, 1e-145, 1e-25, 1e25, 1e145, 1e170, 1e300)],
)
@pytest.mark.parametrize("algorithm", ["lloyd", "bounded"])
def test_two_blobs_at_a_scale(dtype: Any, scale: float, algorithm: str) -> None:
    """scikit-learn: float32 values x 1e20 give inertia inf and one cluster; x 1e-25 give inertia 0 and one cluster."""
    x, side = two_blobs(scale=scale, dtype=dtype)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FoldwiseWarning)  # squares of 1e170 have no float64: said, and tested below
        km = fw.KMeans(2, algorithm=algorithm, tol=0).fit(x)
    assert km.outcome_.converged
    assert_split(km, side)
    np.testing.assert_array_equal(km.predict(x), km.labels_)
    factor = np.longdouble(scale)
    each = ((x.astype(np.longdouble) - km.cluster_centers_[km.labels_]) / factor) ** 2
    true = each.sum() * factor**2
    if 1e-300 < true < 1e300:
        assert abs(km.inertia_ / true - 1) < 1e-12
        assert abs(-km.score(x) / true - 1) < 1e-12
        assert km.trace_[-1]["inertia"] == pytest.approx(float(true), rel=1e-6)
    distances = km.transform(x)
    assert distances.dtype == dtype
    true_distance = np.sqrt((((x[:, None].astype(np.longdouble) - km.cluster_centers_) / factor) ** 2).sum(axis=2))
    np.testing.assert_allclose((distances / factor).astype(np.float64), true_distance.astype(np.float64), rtol=1e-5)


@pytest.mark.parametrize("scale", [1e-170, 1e170])
def test_an_inertia_without_a_float64_is_told(scale: float) -> None:
    x, side = two_blobs(scale=scale)
    with pytest.warns(FoldwiseWarning, match="leaves the range of float64"):
        km = fw.KMeans(2).fit(x)
    assert_split(km, side)


@pytest.mark.parametrize("scales", [(1.0, 1e-12), (1e8, 1e-8)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_columns_of_very_different_sizes(check_consistent: Check, scales: tuple[float, float], dtype: Any) -> None:
    rng = np.random.default_rng(2)
    x = (rng.standard_normal((300, 2)) * scales).astype(dtype)
    km = fw.KMeans(5, tol=0).fit(x)
    check_consistent(km, x)
    means = np.array([x[km.labels_ == c].mean(axis=0, dtype=np.longdouble) for c in range(5)])
    # A column's digits are those that the whole range leaves it: 2^-60 of it.
    within = np.finfo(dtype).eps * np.abs(means) + 1e-17 * max(scales)
    assert np.all(np.abs(km.cluster_centers_ - means) <= within)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_near_constant_columns(check_consistent: Check, dtype: Any) -> None:
    """sk #9354, #13905, #17794: a constant column, and one that varies in its last digit, beside one with clusters."""
    rng = np.random.default_rng(3)
    x = np.empty((400, 3), dtype)
    x[:, 0] = 0.1
    x[:, 1] = np.where(rng.random(400) < 0.5, dtype(1e5), np.nextafter(dtype(1e5), dtype(2e5)))
    side = (rng.random(400) < 0.4).astype(int)
    x[:, 2] = side * 4 + rng.standard_normal(400) * 0.1
    km = fw.KMeans(2, tol=0).fit(x)
    np.testing.assert_array_equal(km.labels_, side)
    assert np.all(km.cluster_centers_[:, 0] == dtype(0.1))
    check_consistent(km, x)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_labels_are_not_stale_after_an_empty_cluster_was_filled(check_consistent: Check, dtype: Any) -> None:
    """sk #34074: 4 of 300 small random cases. Starts far away leave clusters without rows."""
    filled = 0
    for seed in range(300):
        rng = np.random.default_rng(seed)
        n, d, k = int(rng.integers(4, 16)), int(rng.integers(1, 4)), int(rng.integers(2, 5))
        x = rng.standard_normal((n, d)).astype(dtype)
        start = rng.standard_normal((k, d)) * 3
        start[rng.integers(k)] = 100
        km = fw.KMeans(k, init=start, tol=[0.0, 1e-4, 0.1][seed % 3], max_iter=[300, 1, 2][seed % 3])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FoldwiseWarning)
            km.fit(x)
        check_consistent(km, x)
        filled += bool(km.manifest_.repairs)
    assert filled > 200


def test_repairs_are_in_the_manifest() -> None:
    x = np.random.default_rng(0).standard_normal((50, 2))
    km = fw.KMeans(3, init=np.array([[0.0, 0.0], [50.0, 50.0], [60.0, 60.0]]), tol=0).fit(x)
    assert km.manifest_.repairs == ("2 times an empty cluster was given a row",)
    assert (km.cluster_weights_ > 0).all()
    assert fw.KMeans(3, tol=0).fit(x).manifest_.repairs == ()


def test_many_rows_of_weight_zero_do_not_hide_those_that_can_fill() -> None:
    rng = np.random.default_rng(0)
    x = np.concatenate([rng.standard_normal((500, 2)) + 1000, rng.standard_normal((20, 2))])
    w = np.repeat([0.0, 1.0], [500, 20])
    km = fw.KMeans(3, init=np.array([[0.0, 0.0], [1.0, 1.0], [5e3, 5e3]]), tol=0).fit(x, sample_weight=w)
    assert (km.cluster_weights_ > 0).all()


# ---------------------------------------------------------------- duplicates


@pytest.mark.parametrize("init", ["k-means++", "random", "k-means||"])
@pytest.mark.parametrize("search", ["none", "breathing", "split-merge"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_fewer_distinct_points_than_clusters(check_consistent: Check, dtype: Any, search: str, init: str) -> None:
    """sk #28055 (endless loop), #10059 (duplicate centres): it ends, all is exact, and it is said."""
    points = np.array([[0.1, 0.2], [0.3, 0.7], [5.0, 5.1]], dtype)
    x = points[np.random.default_rng(0).integers(3, size=90)]
    km = fw.KMeans(7, init=init, search=search, tol=0)
    with pytest.warns(FewerClustersWarning, match=r"distinct clusters \(3\) found smaller than n_clusters \(7\)"):
        km.fit(x)
    assert km.outcome_.reason is Reason.CONVERGED
    assert km.inertia_ == pytest.approx(0, abs=1e-12)
    assert len(np.unique(km.labels_)) == 3
    assert np.count_nonzero(km.cluster_weights_) == 3
    found = km.cluster_centers_[:3]
    np.testing.assert_allclose(found[np.argsort(found[:, 0])], points, rtol=0, atol=1e-15)
    check_consistent(km, x)


@pytest.mark.parametrize("init", ["k-means++", "random", "k-means||"])
@pytest.mark.parametrize("tol", [0.0, 1e-4])
def test_as_many_distinct_points_as_clusters(init: str, tol: float) -> None:
    for seed in range(20):
        rng = np.random.default_rng(seed)
        points = rng.standard_normal((6, 2))
        x = points[np.concatenate([np.arange(6), rng.integers(6, size=100)])]
        km = fw.KMeans(6, init=init, n_init=1, tol=tol, random_state=seed).fit(x)
        assert (km.cluster_weights_ > 0).all()
        assert km.inertia_ < 1e-25


def test_duplicate_starting_centres(check_consistent: Check) -> None:
    x = np.random.default_rng(0).standard_normal((100, 2))
    km = fw.KMeans(4, init=np.repeat(x[:1], 4, axis=0), tol=0).fit(x)
    assert (km.cluster_weights_ > 0).all()
    check_consistent(km, x)


@pytest.mark.parametrize("n_clusters", [1, 3])
def test_all_rows_equal(check_consistent: Check, n_clusters: int) -> None:
    x = np.full((20, 3), 0.1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FewerClustersWarning)
        km = fw.KMeans(n_clusters, search="breathing").fit(x)
    assert km.inertia_ == 0
    assert not km.labels_.any()
    assert np.all(km.cluster_centers_ == 0.1)
    check_consistent(km, x)


def test_as_many_clusters_as_rows(check_consistent: Check) -> None:
    x = np.random.default_rng(0).standard_normal((12, 2))
    for search in ("none", "breathing", "split-merge"):
        km = fw.KMeans(12, search=search, tol=0).fit(x)
        assert km.inertia_ < 1e-25
        assert sorted(km.labels_) == list(range(12))
        check_consistent(km, x)


# ---------------------------------------------------------------- layouts


def test_layouts_and_dtypes_of_equal_values(check_consistent: Check) -> None:
    """sk #4507 (Fortran order), #21654 (unaligned memory), and whole numbers."""
    whole = np.random.default_rng(4).integers(-50, 50, (300, 3))
    x = whole.astype(np.float64)
    expected = fw.KMeans(5, tol=0).fit(x)
    raw = np.empty(x.nbytes + 3, np.uint8)
    unaligned = np.frombuffer(raw, np.float64, x.size, 3)
    unaligned = unaligned.reshape(x.shape)
    unaligned[:] = x
    assert not unaligned.flags.aligned
    padded = np.zeros((300, 7))
    padded[:, 1:4] = x
    frozen = x.copy()
    frozen.flags.writeable = False
    others = [
        np.asfortranarray(x), unaligned, padded[:, 1:4], x[::-1][::-1], frozen, x.tolist(), x.astype(">f8"),
        whole, whole.astype(np.int8), whole.astype(np.int32), np.asfortranarray(whole), whole.astype(object),
    ]  # fmt: skip
    for other in others:
        km = fw.KMeans(5, tol=0).fit(other)
        np.testing.assert_array_equal(km.labels_, expected.labels_)
        assert km.cluster_centers_.tobytes() == expected.cluster_centers_.tobytes()
        np.testing.assert_array_equal(km.predict(other), km.labels_)
    check_consistent(expected, x)


def test_the_data_are_not_changed() -> None:
    for dtype in (np.float32, np.float64):
        x = (np.random.default_rng(0).standard_normal((100, 3)) + 1e3).astype(dtype)
        w = np.random.default_rng(1).random(100)
        start = x[:4].copy()
        kept = x.copy(), w.copy(), start.copy()
        km = fw.KMeans(4, init=start, copy_x=False).fit(x, sample_weight=w)
        for now, before in zip((x, w, start), kept, strict=True):
            np.testing.assert_array_equal(now, before)
        assert not np.shares_memory(km.cluster_centers_, start)


def test_rows_beyond_where_squares_end() -> None:
    """Of a row 1e200 away the squared distance is infinite, the distance and the nearest centre are not."""
    x = np.array([[0.0, 1.0], [1e-3, 1.0], [1.0, 1.0]])
    km = fw.KMeans(3, init=x).fit(x)
    far = np.array([[1e200, 0.0], [-1e200, 0.0], [1e308, 1.0], [1e150, 1.0], [-1e308, 1e300]])
    np.testing.assert_array_equal(km.predict(far), [2, 0, 2, 2, 0])
    np.testing.assert_allclose(km.transform(far)[:, 0], [1e200, 1e200, 1e308, 1e150, 1e308], rtol=1e-15)


def test_one_weight_for_all_rows() -> None:
    x = np.random.default_rng(0).standard_normal((50, 2))
    twice, once = (fw.KMeans(3, init=x[:3]).fit(x, sample_weight=w).inertia_ for w in (2.0, None))
    assert twice == pytest.approx(2 * once, rel=1e-14)
