"""Several brief starts on tables that are not small: the kernel by itself, and what the default fit makes of it."""

from __future__ import annotations

import numpy as np
import pytest

import foldwise as fw
from foldwise.kernels import _core
from foldwise.models.kmeans.brief_starts import brief_sample_size
from foldwise.models.kmeans.label_order import by_size


def blobs(n: int, d: int, k: int, dtype: str = "float64", seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return (rng.normal(size=(k, d))[rng.integers(k, size=n)] * 3 + rng.normal(size=(n, d))).astype(dtype)


def kernel(x, k, weights=None, *, scale=1.0, seed=1, starts=4, steps=4, further=300, threads=1):
    out = np.empty((k, x.shape[1]))
    value = _core.brief_starts(x, weights, scale, seed, starts, steps, further, threads, out)
    return value, out


def mean_distance(x, centres, weights=None):
    away = np.square(x[:, None, :].astype(np.float64) - centres).sum(axis=2).min(axis=1)
    return np.average(away, weights=weights)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_two_clumps_by_hand(dtype):
    x = np.array([[0, 0], [2, 0], [1, 3], [100, 100], [102, 104]], dtype)
    value, centres = kernel(x, 2)
    np.testing.assert_allclose(centres, [[1, 1], [101, 102]], atol=1e-5)  # the larger cluster first
    # squared distances to (1, 1): 2, 2, 4; to (101, 102): 5, 5
    assert value == pytest.approx(18 / 5, rel=1e-3)  # float32, of squares about 5000


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("n", "d", "k"), [(500, 1, 2), (1000, 7, 5), (777, 40, 11), (2000, 3, 33)])
def test_value_is_that_of_the_centres(n, d, k, dtype):
    x = blobs(n, d, k, dtype)
    value, centres = kernel(x, k)
    assert value == pytest.approx(mean_distance(x, centres), rel=1e-4)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n", [31, 32, 33, 63, 64, 65, 95, 97])
def test_what_fills_the_last_block_neither_counts_nor_moves(n, weighted):
    """Rows far from zero: those that fill a block are at zero, and look far from any centre."""
    x = blobs(n, 3, 4, seed=n) + 50.0
    weights = np.random.default_rng(n).integers(1, 4, n).astype(np.float64) if weighted else None
    value, centres = kernel(x, 4, weights)
    assert value == pytest.approx(mean_distance(x, centres, weights), rel=1e-4)
    label = np.square(x[:, None, :] - centres).sum(axis=2).argmin(axis=1)
    means = [np.average(x[label == j], axis=0, weights=None if weights is None else weights[label == j]) for j in range(4)]
    np.testing.assert_allclose(centres, means, atol=1e-4)


def test_nearly_a_fixed_point():
    x = blobs(3000, 5, 6)
    _, centres = kernel(x, 6)
    label = np.square(x[:, None, :] - centres).sum(axis=2).argmin(axis=1)
    means = np.array([x[label == j].mean(axis=0) for j in range(6)])
    assert np.abs(means - centres).max() < 0.02


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("weighted", [False, True])
def test_same_bits_for_any_number_of_threads(dtype, weighted):
    """Large enough for a second thread to share out the starts and the table that they are made on; some rows are repeated."""
    x = blobs(20_000, 14, 9, dtype)
    x[:3000] = x[3000:6000]
    weights = np.random.default_rng(1).integers(0, 4, len(x)).astype(np.float64) if weighted else None
    (one, centres), (two, others) = kernel(x, 9, weights, threads=1), kernel(x, 9, weights, threads=2)
    assert one == two
    np.testing.assert_array_equal(centres, others)


def test_neither_order_nor_repetition_matters():
    rng = np.random.default_rng(3)
    x = blobs(600, 4, 5)
    times = rng.integers(0, 4, size=600)
    repeated = np.repeat(x, times, axis=0)
    _, by_weight = kernel(x, 5, times.astype(np.float64))
    _, by_rows = kernel(repeated, 5)
    _, shuffled = kernel(np.ascontiguousarray(repeated[rng.permutation(len(repeated))]), 5)
    np.testing.assert_array_equal(by_rows, shuffled)
    np.testing.assert_allclose(by_weight, by_rows, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("power", [-40, 40])
def test_scale_is_undone(power):
    x = blobs(800, 3, 4)
    _, plain = kernel(x, 4)
    _, scaled = kernel(x * 2.0**power, 4, scale=2.0**-power)
    np.testing.assert_array_equal(scaled, plain * 2.0**power)


def test_offset_does_not_matter():
    x = np.round(blobs(800, 3, 4) * 1024) / 1024
    _, plain = kernel(x, 4)
    _, far = kernel(x + 2.0**30, 4)
    np.testing.assert_allclose(far - 2.0**30, plain, atol=1e-5)


def test_more_clusters_than_distinct_rows():
    x = np.repeat(np.arange(3.0)[:, None], 50, axis=0)
    value, centres = kernel(x, 5)
    assert value == 0
    assert np.isfinite(centres).all()


@pytest.mark.parametrize(
    ("x", "k", "weights"),
    [
        (np.ones((5, 2)), 2, np.ones(4)),
        (np.ones((0, 2)), 2, None),
        (np.ones((5, 2)), 2, np.zeros(5)),
    ],
)
def test_what_does_not_fit_is_refused(x, k, weights):
    with pytest.raises(ValueError, match=r"fit each other|no row has weight"):
        kernel(x, k, weights)


# ---------------------------------------------------------------- the default fit


def used(model, x, k):
    """The size of the sample that a fit of this table would look at."""
    from foldwise.models.kmeans.fit_data import KMeansData
    from foldwise.models.session import open_passes

    with open_passes(fw.scan(x)) as passes:
        return brief_sample_size(KMeansData(passes), k)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_default_fit_has_the_same_bits_for_any_number_of_threads(dtype):
    for n in (3000, 90_000):  # whole, and a sample
        x = blobs(n, 6, 8, dtype)
        models = [fw.KMeans(8, n_threads=threads).fit(x) for threads in (1, 2, 7)]
        for other in models[1:]:
            np.testing.assert_array_equal(models[0].cluster_centers_, other.cluster_centers_)
            np.testing.assert_array_equal(models[0].labels_, other.labels_)


def test_sizes():
    assert used(fw.KMeans, blobs(3000, 6, 8), 8) == 3000
    assert used(fw.KMeans, blobs(80_000, 6, 8), 8) == 80_000
    assert used(fw.KMeans, blobs(80_001, 6, 8), 8) == 40_000
    assert used(fw.KMeans, blobs(80_001, 6, 8), 50) == 20_000
    assert used(fw.KMeans, blobs(400, 300, 2), 300) == 400
    assert used(fw.KMeans, blobs(60_000, 128, 2, "float32"), 1000) is None  # one start in passes


def test_distances_to_the_start_of_a_sample_are_given_up():
    from foldwise.models.kmeans.brief_starts import BriefStart
    from foldwise.models.kmeans.fit_data import KMeansData
    from foldwise.models.session import open_passes

    with open_passes(fw.scan(blobs(90_000, 6, 8))) as passes:
        BriefStart(KMeansData(passes), 8, 40_000, 0, lambda number: pytest.fail("the sample suits"))(0)
        assert not any(passes.update(list))


def test_brief_starts_find_groups_that_single_starts_miss():
    """Twenty-five far apart groups: a single greedy start often leaves two in one cluster."""
    rng = np.random.default_rng(0)
    x = rng.permutation(np.repeat(rng.uniform(0, 1000, (25, 2)), 200, axis=0) + rng.normal(size=(5000, 2)))
    best = [fw.KMeans(25, random_state=seed).fit(x).inertia_ for seed in range(10)]
    single = [fw.KMeans(25, search="none", random_state=seed).fit(x).inertia_ for seed in range(10)]
    assert np.mean(best) <= np.mean(single)
    assert np.median(best) < 1.05 * 2 * len(x)  # two columns with unit variance


@pytest.mark.parametrize("seed", range(6))
def test_a_row_that_the_sample_misses(seed):
    x = np.concatenate([blobs(90_000, 2, 2), [[1e5, 1e5]]])
    model = fw.KMeans(3, random_state=seed).fit(x)
    missed = 90_000 not in np.random.default_rng([seed, 3, 0]).choice(len(x), 40_000, replace=False)
    assert ("brief" in model.manifest_.algorithm) == (not missed)
    assert model.cluster_weights_.min() == 1  # the far row has a cluster to itself, in the sample or not


def test_weights_of_zero_do_not_count():
    x = blobs(3000, 6, 8)
    weights = np.zeros(3000)
    weights[:12] = 1
    model = fw.KMeans(8).fit(x, sample_weight=weights)
    assert (model.cluster_weights_ > 0).all()


@pytest.mark.parametrize("weights", [[3.0, 7.0, 5.0], [2.0, 2.0, 9.0], [1.0, 1.0, 1.0]])
def test_clusters_are_ordered_by_size_then_by_centre(weights):
    centres = np.array([[1.0, 5.0], [1.0, 4.0], [0.0, 9.0]])
    expected = sorted(range(3), key=lambda j: (-weights[j], *centres[j]))
    np.testing.assert_array_equal(by_size(np.array(weights), centres), expected)
