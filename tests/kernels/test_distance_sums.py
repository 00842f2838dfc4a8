"""Sums of distances to the rows of each cluster, against extended precision."""

from __future__ import annotations

import numpy as np
import pytest

from foldwise import kernels
from foldwise.kernels import _core, reference


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(
    ("m", "n", "d", "k"), [(0, 5, 2, 2), (3, 0, 2, 2), (1, 1, 1, 1), (9, 100, 3, 4), (17, 61, 33, 60), (8, 400, 300, 2)]
)
def test_agrees_with_its_twin(m: int, n: int, d: int, k: int, weighted: bool, dtype: type) -> None:
    rng = np.random.default_rng(n + d)
    points, x = rng.standard_normal((m, d)) + 1e6, (rng.standard_normal((n, d)) + 1e6).astype(dtype)
    labels = rng.integers(0, k, n).astype(np.int32)
    weights = rng.integers(0, 3, n).astype(np.float64) if weighted else None
    out = kernels.distance_sums(points, x, weights, labels, k)
    np.testing.assert_allclose(out, reference.distance_sums(points, x, weights, labels, k), rtol=1e-13)


def test_each_point_by_itself_and_equal_rows_are_at_distance_zero() -> None:
    rng = np.random.default_rng(0)
    x, labels = rng.standard_normal((50, 3)), rng.integers(0, 4, 50).astype(np.int32)
    whole = kernels.distance_sums(x, x, None, labels, 4)
    for i in range(50):
        assert kernels.distance_sums(x[i : i + 1], x, None, labels, 4).tobytes() == whole[i].tobytes()
    assert kernels.distance_sums(x[:1], x[:1].copy(), None, labels[:1], 4).tolist() == [[0.0] * 4]


def test_the_scale_applies_to_the_rows() -> None:
    out = kernels.distance_sums(np.array([[0.0]]), np.array([[3.0], [5.0]]), None, np.array([0, 1], np.int32), 2, 0.5)
    assert out.tolist() == [[1.5, 2.5]]


def test_what_does_not_belong_together_is_refused() -> None:
    x, labels, out = np.zeros((4, 2)), np.zeros(4, np.int32), np.empty((4, 1))
    for wrong in (
        (x[:, :1].copy(), x, None, labels, 1.0, out),
        (x, x, None, labels[:2], 1.0, out),
        (x, x, np.ones(3), labels, 1.0, out),
        (x, x, None, labels + 1, 1.0, out),
        (x, x, None, labels - 1, 1.0, out),
        (x, x, None, labels, 1.0, out[:2]),
    ):
        with pytest.raises(ValueError, match=r"belong together|no sum"):
            _core.distance_sums(*wrong)
    with pytest.raises(TypeError):
        _core.distance_sums(x, x.astype(np.int64), None, labels, 1.0, out)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(
    ("m", "n", "d", "k"), [(0, 5, 2, 2), (3, 0, 2, 2), (1, 1, 1, 1), (9, 100, 3, 4), (17, 61, 33, 60)]
)
def test_over_common_cells_agrees_with_its_twin(m: int, n: int, d: int, k: int, weighted: bool, dtype: type) -> None:
    rng = np.random.default_rng(n + d)
    points, x = rng.standard_normal((m, d)) + 1e6, (rng.standard_normal((n, d)) + 1e6).astype(dtype)
    points[rng.random(points.shape) < 0.3] = np.nan
    x[rng.random(x.shape) < 0.3] = np.nan
    labels = rng.integers(0, k, n).astype(np.int32)
    weights = rng.integers(0, 3, n).astype(np.float64) if weighted else None
    out, compared = kernels.observed_distance_sums(points, x, weights, labels, k)
    true, true_compared = reference.observed_distance_sums(points, x, weights, labels, k)
    np.testing.assert_allclose(out, true, rtol=1e-13)
    np.testing.assert_array_equal(compared, true_compared)


def test_over_common_cells_by_hand() -> None:
    """From (1, -, 2, -) to (4, 9, 6, 9), with 2 of 4 columns in common, and to (-, 1, -, 1), with none."""
    nan = np.nan
    points, x = np.array([[1.0, nan, 2.0, nan]]), np.array([[4.0, 9.0, 6.0, 9.0], [nan, 1.0, nan, 1.0]])
    out, compared = kernels.observed_distance_sums(points, x, np.array([3.0, 1.0]), np.zeros(2, np.int32), 1)
    np.testing.assert_allclose(out, [[3 * np.sqrt(50.0)]], rtol=1e-15)
    assert compared.tolist() == [[3.0]]


def test_complete_rows_have_the_same_sums_either_way() -> None:
    rng = np.random.default_rng(0)
    x, labels = rng.standard_normal((50, 3)), rng.integers(0, 4, 50).astype(np.int32)
    out, compared = kernels.observed_distance_sums(x, x, None, labels, 4)
    np.testing.assert_allclose(out, kernels.distance_sums(x, x, None, labels, 4), rtol=1e-15)
    np.testing.assert_array_equal(compared, np.tile(np.bincount(labels, minlength=4), (50, 1)))
