"""Defaults of KernelKMeans: which start and which width of the kernel are chosen, and what it says if others are as good."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.datasets import make_circles
from sklearn.metrics import adjusted_rand_score
from sklearn.metrics.pairwise import rbf_kernel

import foldwise as fw
from foldwise.data.block import block_of
from foldwise.fold.deadline import Deadline
from foldwise.fold.passes import Passes
from foldwise.models.kernel.choose import Sample, SampleMatrix, choose
from foldwise.models.kernel.neighbours import gammas_of_distances, weighted_median
from foldwise.models.kernel.spectral import Graphs


def two_groups(d: int, deviation: float, seed: int, n: int = 300) -> tuple[np.ndarray, np.ndarray]:
    """100 apart in every column, most rows near the centre and long tails."""
    rng = np.random.default_rng([seed, d])
    y = np.repeat([0, 1], n)
    noise = rng.standard_normal((2 * n, d))
    noise *= np.abs(rng.standard_normal((2 * n, 1))) * np.sqrt(d) / np.linalg.norm(noise, axis=1, keepdims=True)
    return noise * deviation + 100.0 * y[:, None], y


# ---------------------------------------------------------------- blobs, where the densest part was cut out


@pytest.mark.parametrize(("d", "deviation"), [(2, 30), (4, 50), (8, 30), (16, 50)])
def test_groups_with_tails_are_found_as_k_means_finds_them(d: int, deviation: float) -> None:
    """The middle of one group against all the rest: an index of 0.25 or so, where k-means has 0.9."""
    x, y = two_groups(d, deviation, 1)
    plain = adjusted_rand_score(y, fw.KMeans(2, n_init=5).fit_predict(x))
    assert adjusted_rand_score(y, fw.KernelKMeans(2).fit_predict(x)) > plain - 0.05
    assert plain > 0.8


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_one_column(seed: int) -> None:
    """It was the middle against both tails."""
    rng = np.random.default_rng(seed)
    y = np.repeat([0, 1], 400)
    x = (rng.standard_normal(800) * 28 + 100 * y)[:, None]
    assert adjusted_rand_score(y, fw.KernelKMeans(2).fit_predict(x)) > 0.75


@pytest.mark.parametrize("options", [{}, {"approximation": "nystroem", "n_features": 60}], ids=str)
def test_small_groups_beside_large_ones(options: dict[str, Any]) -> None:
    rng = np.random.default_rng(0)
    centres = np.array([[0.0, 0], [8, 0], [0, 8], [60, 60], [60, 68], [68, 60], [68, 68]])
    y = np.repeat(np.arange(7), [200, 200, 200, 20, 20, 20, 20])
    x = rng.standard_normal((len(y), 2)) + centres[y]
    assert adjusted_rand_score(y, fw.KernelKMeans(7, **options).fit_predict(x)) > 0.98


def test_rings_and_blobs_choose_different_starts() -> None:
    rings, y = make_circles(200, factor=0.5, noise=0.04, random_state=0)
    assert adjusted_rand_score(y, fw.KernelKMeans(2).fit_predict(rings)) == 1
    assert chosen(rings, 2).start == "spectral"
    blobs, _ = two_groups(4, 30, 0, n=100)
    assert chosen(blobs, 2).start == "k-means"


def test_a_spiral_needs_a_narrow_kernel() -> None:
    along = np.linspace(0.3, 1.5, 200)
    arms = [
        along[:, None] * np.column_stack([np.cos(t), np.sin(t)]) for t in (2 * np.pi * along, np.pi * (2 * along + 1))
    ]
    x, y = np.concatenate(arms), np.repeat([0, 1], 200)
    model = fw.KernelKMeans(2).fit(x)
    assert adjusted_rand_score(y, model.labels_) == 1
    median = np.median(((x[:, None] - x) ** 2).sum(axis=2)[np.triu_indices(400, 1)])
    assert model.gamma_ * median > 4


# ---------------------------------------------------------------- what can not be chosen is kept


def test_a_given_gamma_is_kept() -> None:
    x, y = two_groups(2, 10, 0, n=60)
    model = fw.KernelKMeans(2, gamma=1e-3).fit(x)
    assert model.gamma_ == 1e-3
    assert adjusted_rand_score(y, model.labels_) == 1
    given = fw.KernelKMeans(2, kernel="precomputed").fit(rbf_kernel(x, gamma=1e-3))
    assert adjusted_rand_score(given.labels_, model.labels_) == 1


def test_other_starts_have_the_usual_gamma() -> None:
    x, _ = two_groups(2, 30, 0, n=60)
    squares = ((x[:, None] - x) ** 2).sum(axis=2)
    for init in ("spectral", "k-means++", np.arange(120) % 2):
        assert fw.KernelKMeans(2, init=init).fit(x).gamma_ == pytest.approx(gammas_of_distances(squares, None)[0])


def test_kernels_that_are_no_similarity_have_no_cuts() -> None:
    x, _ = two_groups(2, 30, 0, n=30)
    assert chosen(x, 2, matrix=x @ x.T) is None


# ---------------------------------------------------------------- said, if another is as good


def test_a_doubt_is_told() -> None:
    """A square grid in two: across or down are as good. Three groups in three are in no doubt."""
    grid = np.stack(np.meshgrid(np.arange(12.0), np.arange(12.0)), axis=-1).reshape(-1, 2)
    (note,) = fw.KernelKMeans(2).fit(grid).manifest_.notes
    assert "another clustering" in note
    assert "set init and gamma to decide" in note
    rng = np.random.default_rng(0)
    three = np.array([[0.0, 0.0], [10, 0], [4, 9]])[np.arange(120) % 3] + rng.normal(0, 0.4, (120, 2))
    assert fw.KernelKMeans(3).fit(three).manifest_.notes == ()


def test_a_doubt_by_hand() -> None:
    from foldwise.models.kernel.choose import Choice, _doubt

    one = Choice(1.0, "k-means", np.array([0, 0, 1, 1], dtype=np.int32))
    other = Choice(2.0, "spectral", np.array([0, 1, 0, 1], dtype=np.int32))
    same = Choice(2.0, "spectral", np.array([1, 1, 0, 0], dtype=np.int32))
    assert _doubt(one, 0.01, [(0.01, one), (0.0101, same)]) is None  # the same clusters
    assert _doubt(one, 0.01, [(0.01, one), (0.02, other)]) is None  # a cut twice as large
    note = _doubt(one, 0.01, [(0.01, one), (0.012, other)])
    assert note is not None
    assert "from spectral with gamma=2" in note


# ---------------------------------------------------------------- by hand


def test_cuts_by_hand() -> None:
    """Two pairs of rows, far apart: nothing is cut between the pairs, and everything if they are torn."""
    x = np.array([[0.0], [1.0], [1000.0], [1001.0]])
    squares = (x - x.T) ** 2
    graphs = Graphs(np.exp(-squares * 1e-4), None, 2)
    assert graphs.cut(np.array([0, 0, 1, 1], dtype=np.int32)) < graphs.cut(np.array([0, 1, 0, 1], dtype=np.int32))


def test_gammas_by_hand() -> None:
    """Rows 0, 1, ..., 30: the median squared distance is 81, the seventh neighbour of most is 4 away."""
    x = np.arange(31.0)[:, None]
    squares = (x - x.T) ** 2
    assert np.median(squares[np.triu_indices(31, 1)]) == 81
    # 81 / 15 is less than twice 16, which is thus the width of the usual kernel and of the narrow one; 81 / 5 is less, too.
    assert gammas_of_distances(squares, None) == pytest.approx((1 / 32, 2 / 81, 0.7 / 81))


@pytest.mark.parametrize("n", [1, 2, 5, 8])
def test_the_median_without_sorting(n: int) -> None:
    values = np.random.default_rng(n).permutation(n).astype(float)
    nearly = np.ones(n)
    nearly[0] += 1e-15  # takes the way of unequal weights
    assert weighted_median(values, np.ones(n)) == weighted_median(values, nearly)


def chosen(x: np.ndarray, k: int, matrix: np.ndarray | None = None) -> Any:
    squares = ((x[:, None] - x) ** 2).sum(axis=2)
    gammas = gammas_of_distances(squares, None) if matrix is None else (None,)
    sample = Sample(
        np.arange(len(x)),
        np.arange(len(x)),
        np.ones(len(x)),
        block_of(x),
        gammas,
        lambda gamma: np.exp(-gamma * squares) if matrix is None else matrix,
    )
    passes = Passes(fw.scan(x), n_threads=1)
    return choose(sample, k, normalize=False, seed=0, passes=passes, deadline=Deadline())


def test_a_matrix_in_memory() -> None:
    values = np.arange(9.0).reshape(3, 3)
    matrix, which = SampleMatrix(values), np.array([2, 0])
    np.testing.assert_array_equal(matrix.times(np.eye(2), which), matrix.columns(which))
    np.testing.assert_array_equal(matrix.submatrix(which), values[np.ix_(which, which)])
