"""Seeds: rows of X, drawn as k-means++ says, better than random rows; weights count as repetition."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import foldwise as fw
from foldwise.fold.passes import Passes
from foldwise.models.kmeans import seeding
from foldwise.models.kmeans.fit_data import KMeansData

Make = Callable[..., Any]
KINDS = ["k-means++", "random", "k-means||"]


def seeds_of(x: Any, k: int, seed: int, kind: str = "k-means++", weights: Any = None) -> np.ndarray:
    rows, rng = KMeansData(Passes(fw.scan(x, weights=weights), n_threads=1)), np.random.default_rng(seed)
    if kind == "k-means++":
        return seeding.plusplus(rows, k, rng)
    return seeding.random_rows(rows, k, rng) if kind == "random" else seeding.parallel(rows, k, rng)


def potential(x: np.ndarray, seeds: np.ndarray) -> float:
    """The sum of squared distances to the nearest seed."""
    x, seeds = x.astype(np.float64), seeds.astype(np.float64)
    return float(((x[:, None] - seeds) ** 2).sum(axis=2).min(axis=1).sum())


@pytest.mark.parametrize("name", ["iris", "wine", "digits"])
def test_expected_potential_is_below_that_of_random_rows(name: str) -> None:
    """SPEC C2, over 15 seeds; and as good as scikit-learn's greedy k-means++."""
    from sklearn import datasets
    from sklearn.cluster import kmeans_plusplus

    x = getattr(datasets, f"load_{name}")().data
    mean = {
        kind: np.mean([potential(x, seeds_of(x, 10, seed, kind)) for seed in range(15)])
        for kind in ("k-means++", "random", "k-means||")
    }
    assert mean["k-means++"] < 0.95 * mean["random"]
    assert mean["k-means||"] < 0.95 * mean["random"]
    theirs = np.mean([potential(x, kmeans_plusplus(x, 10, random_state=seed)[0]) for seed in range(15)])
    assert mean["k-means++"] < 1.08 * theirs


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("offset", [0.0, 1e4])
def test_seeds_are_rows(blobs: Make, dtype: Any, offset: float) -> None:
    x = (blobs(200, 3, 5) + offset).astype(dtype)
    rows = {row.tobytes() for row in x}
    for kind in ("k-means++", "random"):
        for seed in range(5):
            seeds = seeds_of(x, 20, seed, kind)
            assert seeds.dtype == dtype
            assert {seed.tobytes() for seed in seeds} <= rows
            assert len({seed.tobytes() for seed in seeds}) == 20


def test_seeds_of_sparse_rows_are_rows(blobs: Make) -> None:
    x = blobs(200, 3, 5)
    x[np.random.default_rng(0).random(x.shape) < 0.4] = 0
    rows = {row.tobytes() for row in x}
    for kind in ("k-means++", "random"):
        assert {seed.tobytes() for seed in seeds_of(sp.csr_array(x), 12, 0, kind)} <= rows


@pytest.mark.parametrize("kind", ["k-means++", "k-means||"])
def test_far_groups_all_get_a_seed(kind: str) -> None:
    """Groups a thousand spreads apart: whatever is drawn, the next seed is in a group that has none."""
    rng = np.random.default_rng(0)
    x = np.repeat(np.arange(12) * 1e4, 25)[:, None] + rng.standard_normal((300, 1))
    for seed in range(20):
        found = np.round(seeds_of(x, 12, seed, kind)[:, 0] / 1e4)
        assert sorted(found) == list(range(12))


def test_one_outlier_is_not_always_taken_but_nearly() -> None:
    """Drawn by squared distance: a row with 99.9 % of the potential is the second seed."""
    x = np.concatenate([np.random.default_rng(0).standard_normal((100, 1)), [[1e4]]])
    assert all(1e4 in seeds_of(x, 2, seed) for seed in range(20))


@pytest.mark.parametrize("kind", KINDS)
def test_different_seeds_differ(blobs: Make, kind: str) -> None:
    x = blobs(300, 3, 5, spread=2.0)
    assert len({seeds_of(x, 5, seed, kind).tobytes() for seed in range(10)}) > 5
    assert seeds_of(x, 5, 3, kind).tobytes() == seeds_of(x, 5, 3, kind).tobytes()


@pytest.mark.parametrize("kind", KINDS)
def test_rows_of_weight_zero_are_never_seeds(blobs: Make, kind: str) -> None:
    """What scikit-learn's test_sample_weight_zero means."""
    x = blobs(100, 5, 5)
    w = np.random.default_rng(0).random(100)
    w[::2] = 0
    none = {row.tobytes() for row in x[::2]}
    for seed in range(10):
        assert not none & {row.tobytes() for row in seeds_of(x, 10, seed, kind, w)}


def test_the_first_seed_follows_the_weights() -> None:
    """What scikit-learn's test_sample_weight_init means: a row is drawn as often as it weighs."""
    x, w = np.arange(4.0)[:, None], np.array([1.0, 0.0, 2.0, 5.0])
    for kind in ("k-means++", "random"):
        drawn = np.bincount([int(seeds_of(x, 1, seed, kind, w)[0, 0]) for seed in range(800)], minlength=4)
        # Four standard deviations of 800 draws.
        np.testing.assert_allclose(drawn / 800, w / 8, atol=4 * 0.5 / np.sqrt(800))
        assert drawn[1] == 0


def test_the_second_seed_follows_weight_times_squared_distance() -> None:
    """Row 0 outweighs all, so it is the first seed; then row 1 has mass 3 * 1 and row 2 has 2 * 4, of 11.

    Of the two candidates of the greedy rule, row 2 leaves 3 * 1 and row 1 leaves 2 * 1: row 1 wins whenever it is drawn.
    """
    x, w = np.array([[0.0], [1.0], [2.0]]), np.array([1e6, 3.0, 2.0])
    second = [set(seeds_of(x, 2, seed, weights=w)[:, 0]) - {0.0} for seed in range(600)]
    share = np.mean([1.0 in found for found in second if found])
    never = (8 / 11) ** 2  # both of two candidates are row 2
    assert share == pytest.approx(1 - never, abs=4 * 0.5 / np.sqrt(600))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("distinct", [1, 3])
def test_duplicates(kind: str, distinct: int) -> None:
    points = np.random.default_rng(0).standard_normal((distinct, 2))
    x = points[np.random.default_rng(1).integers(distinct, size=60)]
    seeds = seeds_of(x, 5, 0, kind)
    assert seeds.shape == (5, 2)
    assert {seed.tobytes() for seed in seeds} <= {row.tobytes() for row in x}
    if kind != "random":
        assert len(np.unique(seeds, axis=0)) == distinct


@pytest.mark.parametrize("kind", KINDS)
def test_as_many_seeds_as_rows(kind: str) -> None:
    x = np.random.default_rng(0).standard_normal((15, 2))
    seeds = seeds_of(x, 15, 0, kind)
    assert sorted(map(tuple, seeds)) == sorted(map(tuple, x))


@pytest.mark.parametrize("scale", [1e-25, 1e20])
def test_seeds_at_the_ends_of_float32(blobs: Make, scale: float) -> None:
    """The draws are those of the data at scale 1."""
    x = blobs(200, 3, 5, dtype=np.float32)
    power = np.float32(2.0 ** round(np.log2(scale)))
    for kind in KINDS:
        np.testing.assert_array_equal(seeds_of(x * power, 8, 1, kind), seeds_of(x, 8, 1, kind) * power)


def test_seeds_over_several_blocks() -> None:
    """Rows of all blocks are drawn: groups lie in blocks of their own."""
    x = np.repeat(np.arange(3) * 100.0, 20_000)[:, None] + np.random.default_rng(0).standard_normal((60_000, 1))
    x = np.ascontiguousarray(np.repeat(x, 24, axis=1))
    for kind in ("k-means++", "k-means||"):
        assert sorted(np.round(seeds_of(x, 3, 5, kind)[:, 0] / 100)) == [0, 1, 2]
