"""KernelKMeans where float64 ends and far from the origin: right answers, or an error that says so."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.metrics import adjusted_rand_score

import foldwise as fw
from foldwise.data.block import block_of
from foldwise.data.row_pairs import rescaled, rescaling_of
from foldwise.errors import DataError, NotFinishedWarning, ParameterError
from foldwise.models.kernel.exact import NotPositiveWarning
from foldwise.models.kernel.fit_data import sample_rows

TRUTH = np.repeat(np.arange(3), 60)
BLOBS = np.random.default_rng(0).standard_normal((180, 3)) + 8 * np.eye(3)[TRUTH]


@pytest.mark.parametrize("kernel", ["rbf", "poly"])
@pytest.mark.parametrize("approximation", [None, "nystroem", "random-features"])
@pytest.mark.parametrize("scale", [1e170, 1e155, 1e-155, 1e-170])
def test_a_gamma_that_is_no_number_is_told(kernel: str, approximation: str | None, scale: float) -> None:
    if kernel == "poly" and approximation == "random-features":
        pytest.skip("random features are for rbf")
    advice = "Divide the data" if scale > 1 else "Multiply the data"
    with pytest.raises(DataError, match=f"gamma='auto' .* leaves the range of float64.*{advice}"):
        fw.KernelKMeans(3, kernel=kernel, approximation=approximation).fit(BLOBS * scale)


@pytest.mark.parametrize("kernel", ["rbf", "laplacian", "poly", "linear"])
@pytest.mark.parametrize("scale", [2.0**430, 2.0**-430])
def test_scales_that_float64_bears_change_nothing(kernel: str, scale: float) -> None:
    one, two = (fw.KernelKMeans(3, kernel=kernel).fit(rows) for rows in (BLOBS, BLOBS * scale))
    np.testing.assert_array_equal(one.labels_, two.labels_)
    assert two.inertia_ / (scale**2 if kernel == "linear" else 1.0) == pytest.approx(one.inertia_, rel=1e-12)
    np.testing.assert_array_equal(two.predict(BLOBS * scale), two.labels_)


@pytest.mark.parametrize("scale", [1e170, 1e-170])
def test_laplacian_has_no_squares(scale: float) -> None:
    model = fw.KernelKMeans(3, kernel="laplacian").fit(BLOBS * scale)
    assert adjusted_rand_score(TRUTH, model.labels_) == 1
    assert model.gamma_ * scale == pytest.approx(fw.KernelKMeans(3, kernel="laplacian").fit(BLOBS).gamma_)


@pytest.mark.parametrize("kernel", ["rbf", "laplacian"])
def test_a_gamma_given_for_rows_far_apart(kernel: str) -> None:
    # Every row is alone, as it is for any large scale.
    near, far = (fw.KernelKMeans(3, kernel=kernel, gamma=1.0, init=TRUTH).fit(BLOBS * s) for s in (1e9, 1e200))
    assert far.inertia_ == pytest.approx(near.inertia_) == 177
    np.testing.assert_array_equal(far.labels_, near.labels_)


@pytest.mark.parametrize("kernel", ["rbf", "laplacian", "poly", "linear"])
@pytest.mark.parametrize("value", [0.0, 1e-300, 3.0, 1e100, 1e300])
def test_equal_rows_are_no_error_at_any_scale(kernel: str, value: float) -> None:
    if kernel == "poly" and value > 3:
        pytest.skip("the kernel itself leaves float64, which is told")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", fw.models.kmeans.centre_model.FewerClustersWarning)
        model = fw.KernelKMeans(2, kernel=kernel).fit(np.full((20, 2), value))
    assert model.inertia_ == 0


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("approximation", [None, "nystroem"])
@pytest.mark.parametrize(("scale", "words"), [(1e155, "leave the range.*Divide"), (1e-170, "too small.*Multiply")])
def test_linear_where_squares_are_no_numbers(sparse: bool, approximation: str | None, scale: float, words: str) -> None:
    rows: Any = sp.csr_array(BLOBS * scale) if sparse else BLOBS * scale
    with pytest.raises(DataError, match=words):
        fw.KernelKMeans(3, kernel="linear", approximation=approximation).fit(rows)


def test_linear_and_a_new_row_too_far_away() -> None:
    model = fw.KernelKMeans(3, kernel="linear").fit(BLOBS)
    with pytest.raises(DataError, match="leave the range"):
        model.predict(np.array([[0.0, 1e200, 0.0]]))


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize("offset", [1e6, 1e8])
@pytest.mark.parametrize("approximation", [None, "nystroem", "random-features"])
def test_sparse_rows_far_from_the_origin(kernel: str, offset: float, approximation: str | None) -> None:
    if kernel == "linear" and approximation == "random-features":
        pytest.skip("random features are for rbf")
    near = BLOBS / 4 if approximation is None else BLOBS  # loose ones have many optima, one as good as another
    few = sp.random_array((180, 8), density=0.1, rng=np.random.default_rng(1)).toarray()
    rows = np.column_stack([near + offset, few])
    sparse, dense = (
        fw.KernelKMeans(3, kernel=kernel, approximation=approximation, init="k-means++", n_features=150).fit(x)
        for x in (sp.csr_array(rows), rows)
    )
    if kernel == "rbf":
        assert sparse.gamma_ == pytest.approx(dense.gamma_, rel=1e-9)
    # Sparse landmarks are rows, dense ones centres.
    assert sparse.inertia_ == pytest.approx(dense.inertia_, rel=1e-7 if approximation != "nystroem" else 0.05)
    assert adjusted_rand_score(sparse.labels_, dense.labels_) == 1
    np.testing.assert_array_equal(sparse.predict(sp.csr_array(rows)), sparse.labels_)
    np.testing.assert_array_equal(sparse.predict(rows), sparse.labels_)


def test_only_offset_columns_of_sparse_rows_are_filled_in() -> None:
    rows = sp.random_array((400, 50), density=0.05, format="lil", rng=np.random.default_rng(0))
    rows[:, [7]] = 1e7 + np.random.default_rng(1).standard_normal((400, 1))
    rows[3, 7] = 0.0  # not stored, and shifted all the same
    x = sp.csr_array(rows)
    frame = rescaling_of(block_of(x))
    y = rescaled(block_of(x), frame).rows
    assert np.flatnonzero(frame.pivot).tolist() == [7]
    assert y.nnz == x.nnz + 1
    np.testing.assert_allclose(y.toarray() / frame.scale + frame.pivot, x.toarray(), rtol=1e-15, atol=1e-15)


def _centred(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return (a - BLOBS.mean(axis=0)) @ (b - BLOBS.mean(axis=0)).T


@pytest.mark.parametrize("kernel", ["precomputed", _centred])
def test_normalize_and_a_kernel_with_negative_values(kernel: Any) -> None:
    rows = _centred(BLOBS, BLOBS) if kernel == "precomputed" else BLOBS
    with pytest.raises(ParameterError, match="without negative values, and this one has -"):
        fw.KernelKMeans(3, kernel=kernel, normalize=True).fit(rows)


def test_normalize_and_a_negative_sum_that_a_sample_does_not_show() -> None:
    n = 3000  # of which a thousand are looked at
    rows = np.random.default_rng(0).standard_normal((n, 2))
    hidden = int(np.setdiff1d(np.arange(n), sample_rows(np.ones(n), 1000, 0))[0])
    rows[hidden] = 100.0

    def kernel(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        odd = (a[:, :1] == 100.0) != (b[:, 0] == 100.0)
        return np.where(odd, -1.0, 1.0)

    with pytest.raises(ParameterError, match=rf"row {hidden} is -3e\+03"):
        fw.KernelKMeans(2, kernel=kernel, normalize=True, init=np.arange(n) % 2).fit(rows)


def test_normalize_and_a_row_without_weight_that_is_like_no_other() -> None:
    rows = np.concatenate([BLOBS, [[1e6, 0.0, 0.0]]])
    with_it = fw.KernelKMeans(3, normalize=True, gamma=0.1).fit(rows, sample_weight=np.append(np.ones(180), 0.0))
    without = fw.KernelKMeans(3, normalize=True, gamma=0.1).fit(BLOBS)
    assert with_it.inertia_ == pytest.approx(without.inertia_)
    np.testing.assert_array_equal(with_it.labels_[:180], without.labels_)


def test_negative_squares_are_not_hidden() -> None:
    matrix = -(BLOBS @ BLOBS.T)
    with (
        pytest.warns(NotPositiveWarning, match="may be negative"),
        pytest.warns(NotFinishedWarning),  # it goes round in circles
    ):
        model = fw.KernelKMeans(3, kernel="precomputed", init=TRUTH).fit(matrix)
    means = np.array([BLOBS[model.members_ == c].mean(axis=0) for c in range(3)])
    assert model.inertia_ == pytest.approx(-((BLOBS - means[model.labels_]) ** 2).sum())
    assert model.inertia_ < -100
    assert model.score(matrix) == pytest.approx(-model.inertia_)
    assert (model.transform(matrix) >= 0).all()


def test_equal_rows_have_no_negative_squares_by_rounding() -> None:
    rows = np.repeat(np.random.default_rng(0).standard_normal((3, 5)), 7, axis=0) / 3
    for kernel in ("rbf", "linear", "poly"):
        model = fw.KernelKMeans(3, kernel=kernel).fit(rows)
        assert model.cluster_inertias_.min() >= 0
