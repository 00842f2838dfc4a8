"""KernelKMeans against hand-worked cases, brute force and plain k-means; what must hold after every fit."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.distance import cdist
from sklearn.metrics import adjusted_rand_score
from sklearn.metrics.pairwise import laplacian_kernel, polynomial_kernel, rbf_kernel
from sklearn.utils.estimator_checks import parametrize_with_checks

import foldwise as fw
from foldwise.data.block import block_of
from foldwise.kernels.targets import rescaling_around
from foldwise.models.kernel.functions import Gaussian

KERNELS: dict[str, Callable[[Any, Any, float], Any]] = {
    "rbf": lambda a, b, gamma: np.exp(-gamma * cdist(a, b, "sqeuclidean")),
    "laplacian": lambda a, b, gamma: laplacian_kernel(a, b, gamma=gamma),
    "poly": lambda a, b, gamma: polynomial_kernel(a, b, degree=3, gamma=gamma, coef0=1),
    "linear": lambda a, b, gamma: a @ b.T,
}


@pytest.fixture
def rows() -> np.ndarray:
    """Three loose groups of 90 rows, and no clear best clustering."""
    rng = np.random.default_rng(0)
    return np.repeat([[0.0, 0.0], [2.0, 0.0], [0.0, 2.5]], 30, axis=0) + rng.standard_normal((90, 2)) * 0.8


def brute(
    matrix: np.ndarray, labels: np.ndarray, k: int, weights: np.ndarray | None = None
) -> tuple[np.ndarray, float]:
    """Kernel k-means by the textbook's formula, and the sum of squared distances at the end."""
    w = np.ones(len(matrix)) if weights is None else weights
    for _ in range(300):
        apart = squares(matrix, np.diagonal(matrix), labels, k, w)
        new = apart.argmin(axis=1)
        if np.array_equal(new, labels):
            break
        labels = new
    return labels, float(w @ apart[np.arange(len(labels)), labels])


def squares(cross: np.ndarray, own: np.ndarray, labels: np.ndarray, k: int, w: np.ndarray) -> np.ndarray:
    """|phi(x) - mean|^2 of the rows of `cross`, for clusters of the rows that are its columns; for square ones only."""
    out = np.empty((len(cross), k))
    for c in range(k):
        member = labels == c
        weight = w[member].sum()
        inner = cross[:, member] @ w[member] / weight
        out[:, c] = own - 2 * inner + w[member] @ inner[member] / weight
    return out


def check(model: Any, x: Any, matrix: np.ndarray, weights: np.ndarray | None = None) -> None:
    """Labels are those of predict and of the formula, the inertia is that of labels and means, and never rose."""
    w = np.ones(len(matrix)) if weights is None else np.asarray(weights, dtype=float)
    k, labels = model.n_clusters, model.labels_
    np.testing.assert_array_equal(model.predict(x), labels)
    apart = squares(matrix, np.diagonal(matrix), model.members_, k, w)
    size = np.abs(np.diagonal(matrix)).max()
    assert (apart[np.arange(len(labels)), labels] <= apart.min(axis=1) + 1e-9 * size).all()
    assert model.inertia_ == pytest.approx(float(w @ apart[np.arange(len(labels)), labels]), rel=1e-9, abs=1e-9 * size)
    np.testing.assert_allclose(model.transform(x) ** 2, np.maximum(apart, 0), atol=1e-9 * size, rtol=1e-6)
    np.testing.assert_allclose(model.cluster_weights_, np.bincount(labels, w, minlength=k))
    assert model.cluster_inertias_.sum() == pytest.approx(model.inertia_)
    if model.outcome_.converged:
        np.testing.assert_array_equal(model.members_, labels)
    run, last = -1.0, np.inf
    for figures in model.trace_:
        if figures["run"] != run:
            run, last = figures["run"], np.inf
        for name in ("inertia_after_e", "inertia"):
            assert figures[name] <= last + 1e-10 * size * len(labels), (name, figures, last)
            last = figures[name]


# ---------------------------------------------------------------- by hand


def test_linear_by_hand() -> None:
    x = np.array([[0.0], [1.0], [10.0], [11.0], [13.0]])
    model = fw.KernelKMeans(2, kernel="linear").fit(x)
    np.testing.assert_array_equal(model.labels_, [1, 1, 0, 0, 0])  # the larger cluster is number 0
    # {0, 1} about 0.5, {10, 11, 13} about 34/3
    assert model.inertia_ == pytest.approx(0.5 + (16 + 1 + 25) / 9)
    np.testing.assert_allclose(model.transform([[2.0]]), [[34 / 3 - 2, 1.5]])
    np.testing.assert_array_equal(model.predict([[5.0], [7.0]]), [1, 0])


def test_squares_as_a_kernel_by_hand() -> None:
    """(x y)^2 is the product of x^2 and y^2: -3 and 3 are the same, 1 and -1 too, which no line between them could tell."""
    x = np.array([[-3.0], [-1.0], [1.0], [3.0]])
    model = fw.KernelKMeans(2, kernel="poly", degree=2, gamma=1, coef0=0).fit(x)
    np.testing.assert_array_equal(model.labels_, [0, 1, 1, 0])
    assert model.inertia_ == 0
    np.testing.assert_allclose(model.transform([[2.0]]), [[5.0, 3.0]])


def test_gaussian_by_hand() -> None:
    """Three rows of which two share a cluster: |phi(x) - m|^2 = 1 - 2/2 (1 + e) + 1/4 (2 + 2 e) = (1 - e) / 2."""
    x = np.array([[0.0], [1.0], [9.0]])
    model = fw.KernelKMeans(2, gamma=0.5).fit(x)
    e = np.exp(-0.5)
    np.testing.assert_array_equal(model.labels_, [0, 0, 1])
    assert model.inertia_ == pytest.approx(1 - e)
    np.testing.assert_allclose(model.transform(x[:1])[0, 0], np.sqrt((1 - e) / 2))


# ---------------------------------------------------------------- against brute force


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kernel", KERNELS)
def test_the_textbook_from_the_same_start(rows: np.ndarray, kernel: str, weighted: bool) -> None:
    rng = np.random.default_rng(1)
    weights = rng.integers(0, 4, len(rows)).astype(float) if weighted else None
    start, gamma = rng.integers(4, size=len(rows)), 0.7
    matrix = KERNELS[kernel](rows, rows, gamma)
    model = fw.KernelKMeans(4, kernel=kernel, gamma=gamma, init=start).fit(rows, sample_weight=weights)
    labels, inertia = brute(matrix, start, 4, weights)
    np.testing.assert_array_equal(model.labels_, labels)
    assert model.inertia_ == pytest.approx(inertia, rel=1e-9)
    # The linear kernel is taken from the mean of the rows, which changes the matrix but no distance.
    check(model, rows, matrix if kernel != "linear" else (rows - rows.mean(0)) @ (rows - rows.mean(0)).T, weights)


def test_linear_is_k_means(rows: np.ndarray) -> None:
    start = np.random.default_rng(2).integers(5, size=len(rows))
    centres = np.array([rows[start == c].mean(axis=0) for c in range(5)])
    plain = fw.KMeans(5, init=centres, n_init=1, tol=0).fit(rows)
    model = fw.KernelKMeans(5, kernel="linear", init=start).fit(rows)
    np.testing.assert_array_equal(model.labels_, plain.labels_)
    assert model.inertia_ == pytest.approx(plain.inertia_)
    np.testing.assert_allclose(model.transform(rows), plain.transform(rows), atol=1e-7)


@pytest.mark.parametrize("kernel", KERNELS)
def test_ways_to_give_a_kernel_agree(rows: np.ndarray, kernel: str) -> None:
    gamma, start = 0.3, np.arange(len(rows)) % 3
    named = fw.KernelKMeans(3, kernel=kernel, gamma=gamma, init=start).fit(rows)
    called = fw.KernelKMeans(3, kernel=lambda a, b: KERNELS[kernel](a, b, gamma), init=start).fit(rows)
    matrix = KERNELS[kernel](rows, rows, gamma)
    computed = fw.KernelKMeans(3, kernel="precomputed", init=start).fit(matrix)
    new = rows[::7] + 0.1
    for other, theirs in ((called, new), (computed, KERNELS[kernel](new, rows, gamma))):
        np.testing.assert_array_equal(other.labels_, named.labels_)
        assert other.inertia_ == pytest.approx(named.inertia_)
        np.testing.assert_array_equal(other.predict(theirs), named.predict(new))
    np.testing.assert_allclose(computed.transform(matrix), named.transform(rows), atol=1e-7)
    np.testing.assert_array_equal(computed.predict(matrix), computed.labels_)


def test_normalized_is_a_normalised_cut(rows: np.ndarray) -> None:
    matrix = rbf_kernel(rows, gamma=2)
    model = fw.KernelKMeans(3, gamma=2, normalize=True).fit(rows)
    degrees, sides = matrix.sum(axis=1), np.eye(3)[model.labels_]
    within = np.einsum("ij,ij->j", sides, matrix @ sides) / (sides.T @ degrees)
    assert model.inertia_ == pytest.approx((1 / degrees).sum() - within.sum())
    np.testing.assert_array_equal(model.predict(rows), model.labels_)
    # Moving any one row to another cluster with all else as it is does not lower it by much: it is a fixed point of steps.
    assert model.outcome_.converged
    figures = [each["inertia"] for each in model.trace_]
    assert all(b <= a + 1e-12 for a, b in itertools.pairwise(figures))


# ---------------------------------------------------------------- laws


@given(st.integers(0, 2**31), st.integers(2, 4), st.sampled_from(["rbf", "laplacian", "poly", "linear"]), st.booleans())
def test_after_any_fit(seed: int, k: int, kernel: str, twice: bool) -> None:
    rng = np.random.default_rng(seed)
    x = rng.integers(-3, 4, (int(rng.integers(k, 25)), 2)).astype(float)
    x[0:k, 0] = np.arange(k) * 10  # at least so many distinct rows
    weights = rng.integers(1, 3, len(x)).astype(float) if twice else None
    model = fw.KernelKMeans(k, kernel=kernel, gamma=0.5, random_state=seed).fit(x, sample_weight=weights)
    seen = x - (x.mean(axis=0) if kernel == "linear" else 0)
    check(model, x, KERNELS[kernel](seen, seen, 0.5), weights)
    assert len(np.unique(model.labels_)) == k


@given(st.integers(0, 2**31))
def test_order_and_place_do_not_matter(seed: int) -> None:
    rng = np.random.default_rng(seed)
    x = np.concatenate([rng.standard_normal((30, 2)), rng.standard_normal((20, 2)) + 7])
    model = fw.KernelKMeans(2).fit(x)
    order = rng.permutation(len(x))
    mixed = fw.KernelKMeans(2).fit(x[order])
    assert adjusted_rand_score(mixed.labels_, model.labels_[order]) == 1
    assert mixed.inertia_ == pytest.approx(model.inertia_)
    moved = fw.KernelKMeans(2).fit(x * 8 + 1024)  # exact in float64: gamma follows the scale
    np.testing.assert_array_equal(moved.labels_, model.labels_)
    assert moved.gamma_ * 64 == pytest.approx(model.gamma_)
    assert moved.inertia_ == pytest.approx(model.inertia_)


@pytest.mark.parametrize("init", ["spectral", "k-means++", "random"])
@pytest.mark.parametrize("options", [{}, {"normalize": True}, {"kernel": "poly"}, {"kernel": "laplacian"}])
def test_weights_mean_repetition(rows: np.ndarray, options: dict[str, Any], init: str) -> None:
    counts = np.random.default_rng(3).integers(0, 4, len(rows))
    weighted = fw.KernelKMeans(3, init=init, **options).fit(rows, sample_weight=counts.astype(float))
    repeated = fw.KernelKMeans(3, init=init, **options).fit(np.repeat(rows, counts, axis=0))
    assert weighted.gamma_ == pytest.approx(repeated.gamma_)
    assert weighted.inertia_ == pytest.approx(repeated.inertia_)
    np.testing.assert_array_equal(np.repeat(weighted.labels_, counts), repeated.labels_)
    np.testing.assert_array_equal(weighted.predict(rows), repeated.predict(rows))


def test_few_moved_rows_or_whole_passes(rows: np.ndarray, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sums brought up to date by moved rows alone end where whole passes end."""
    from foldwise.models.kernel import descent

    start = np.random.default_rng(5).integers(3, size=len(rows))
    some = fw.KernelKMeans(3, gamma=0.2, init=start).fit(rows)
    assert 0 in {figures["whole"] for figures in some.trace_}
    assert some.trace_[-1]["whole"] == 1
    assert some.trace_[-1]["moved"] == 0
    monkeypatch.setattr(descent, "_FEW", -1.0)
    whole = fw.KernelKMeans(3, gamma=0.2, init=start).fit(rows)
    assert {figures["whole"] for figures in whole.trace_} == {1}
    np.testing.assert_array_equal(whole.labels_, some.labels_)
    assert whole.inertia_ == some.inertia_  # the last pass is a whole one in both


# ---------------------------------------------------------------- digits


@pytest.mark.parametrize(("dtype", "offset"), [(np.float64, 1e8), (np.float32, 1e4)])
@pytest.mark.parametrize("kernel", ["rbf", "linear", "laplacian"])
def test_a_large_offset(rows: np.ndarray, kernel: str, dtype: Any, offset: float) -> None:
    x = (rows + offset).astype(dtype)
    back = x.astype(np.float64) - offset  # exactly the values that are stored
    far, near = fw.KernelKMeans(3, kernel=kernel).fit(x), fw.KernelKMeans(3, kernel=kernel).fit(back)
    np.testing.assert_array_equal(far.labels_, near.labels_)
    np.testing.assert_array_equal(far.predict(x), far.labels_)
    assert far.inertia_ == pytest.approx(near.inertia_, rel=1e-9)
    assert far.transform(x).dtype == dtype
    np.testing.assert_allclose(far.transform(x), near.transform(back), rtol=1e-5, atol=1e-6)


def test_near_rows_far_from_the_others() -> None:
    """Two rows 1e-4 apart, a million from the rest: products of such rows have no digit left for their distance."""
    rng = np.random.default_rng(0)
    x = np.concatenate([rng.standard_normal((20, 3)), rng.standard_normal((20, 3)) * 1e-4 + 1e6])
    kernel = Gaussian(1e8, rescaling_around(x))
    prepared = kernel.prepare(block_of(x))
    true = np.exp(-1e8 * cdist(x, x, "sqeuclidean"))
    np.testing.assert_allclose(kernel.matrix(prepared, prepared), true, atol=1e-6)  # 1e6 + 1e-4 itself has that much
    assert 0.01 < true[20:, 20:].mean() < 0.99


@pytest.mark.parametrize("scale", [1e-150, 1e-30, 1e30, 1e150])
def test_any_scale(rows: np.ndarray, scale: float) -> None:
    factor = 2.0 ** np.round(np.log2(scale))
    model, plain = fw.KernelKMeans(3).fit(rows * factor), fw.KernelKMeans(3).fit(rows)
    np.testing.assert_array_equal(model.labels_, plain.labels_)
    assert model.inertia_ == pytest.approx(plain.inertia_)


def test_float32_is_as_good(rows: np.ndarray) -> None:
    x = rows.astype(np.float32)
    one, two = fw.KernelKMeans(3).fit(x), fw.KernelKMeans(3).fit(x.astype(np.float64))
    np.testing.assert_array_equal(one.labels_, two.labels_)
    assert one.inertia_ == pytest.approx(two.inertia_, rel=1e-9)


@pytest.mark.parametrize("kernel", ["rbf", "poly", "linear"])
def test_sparse(kernel: str) -> None:
    x = sp.random_array((120, 30), density=0.2, format="csr", rng=np.random.default_rng(0))
    start = np.arange(120) % 3
    sparse = fw.KernelKMeans(3, kernel=kernel, init=start).fit(x)
    dense = fw.KernelKMeans(3, kernel=kernel, init=start).fit(x.toarray())
    np.testing.assert_array_equal(sparse.labels_, dense.labels_)
    assert sparse.inertia_ == pytest.approx(dense.inertia_)
    np.testing.assert_array_equal(sparse.predict(x), sparse.labels_)
    np.testing.assert_array_equal(sparse.predict(x.toarray()), dense.predict(x))


# ---------------------------------------------------------------- clusters that run empty


def test_empty_clusters_are_filled_and_told() -> None:
    x = np.array([[0.0], [0.1], [5.0], [5.1], [9.0]])
    model = fw.KernelKMeans(3, gamma=1, init=np.array([0, 0, 1, 1, 1])).fit(x)
    assert sorted(np.bincount(model.labels_)) == [1, 2, 2]
    assert "empty cluster" in model.manifest_.repairs[0]
    check(model, x, rbf_kernel(x, gamma=1))


@pytest.mark.parametrize("init", ["spectral", "k-means++", "random"])
@pytest.mark.parametrize("normalize", [False, True])
def test_fewer_distinct_rows_than_clusters(init: str, normalize: bool) -> None:
    x = np.array([[0.0], [0.0], [1.0], [1.0], [1.0]])
    with pytest.warns(UserWarning, match="distinct clusters"):
        model = fw.KernelKMeans(3, init=init, normalize=normalize).fit(x)
    assert len(np.unique(model.labels_)) == 2
    assert model.inertia_ == pytest.approx(0, abs=1e-12)
    np.testing.assert_array_equal(model.predict(x), model.labels_)


def test_ties_go_to_the_lowest_number() -> None:
    x = np.array([[-1.0], [1.0], [-1.5], [1.5], [0.0]])
    model = fw.KernelKMeans(2, gamma=1, init=np.array([1, 0, 1, 0, 1])).fit(x)
    # 0 was with the left half, which is then nearer; without it, it would be a tie.
    assert model.predict([[0.0]]) == model.labels_[4]
    two = fw.KernelKMeans(2, gamma=1, init=np.array([1, 0])).fit([[-1.0], [1.0]])
    assert two.predict([[0.0]]) == 0


@pytest.mark.filterwarnings("ignore:Number of distinct clusters")
@pytest.mark.filterwarnings("ignore:.*stopped before it converged")
@parametrize_with_checks(
    [
        fw.KernelKMeans(3),
        fw.KernelKMeans(3, normalize=True),
        fw.KernelKMeans(3, kernel="poly"),
        fw.KernelKMeans(3, kernel="linear", memory_budget=2**20),
        fw.KernelKMeans(3, approximation="nystroem"),
        fw.KernelKMeans(3, approximation="random-features"),
    ]
)
def test_scikit_learns_own_checks(estimator: Any, check: Any) -> None:
    check(estimator)
