"""All eigenvectors of a matrix: right, the same for any number of threads, whatever the size and scale of the matrix."""

from __future__ import annotations

import numpy as np
import pytest

from foldwise.data.block import Floats
from foldwise.fold import blas
from foldwise.models.pca import all_directions as module
from foldwise.models.pca import covariance
from foldwise.models.pca.all_directions import all_directions, even_parts


@pytest.fixture(autouse=True, params=["LAPACK's", "our own"])
def steps(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both ways for matrices of all sizes."""
    monkeypatch.setattr(module, "_MANY", 0 if request.param == "our own" else 10**9)


def _matrix(d: int, kind: str) -> Floats:
    x = np.random.default_rng(d).standard_normal((3 * d, d))
    if kind == "equal":  # most eigenvalues are
        return np.eye(d) + np.outer(x[0], x[0])
    if kind == "apart":  # no reflection is needed for the first half of the columns
        x[:, : d // 2] = 0.0
        return x.T @ x + np.diag(np.arange(d) < d // 2) * np.arange(1.0, d + 1)
    return x.T @ x


@pytest.mark.parametrize("kind", ["full", "equal", "apart"])
@pytest.mark.parametrize("d", [2, 65, 66, 130, 300])
def test_vectors_are_right_and_the_same_for_any_number_of_threads(d: int, kind: str) -> None:
    whole = _matrix(d, kind)
    with blas.single():
        found = [all_directions(np.triu(whole), n) for n in (1, 2, 3)]
    values, rows = found[0]
    assert np.all(np.diff(values) >= 0)
    np.testing.assert_allclose(values, np.linalg.eigvalsh(whole), atol=1e-13 * values[-1])
    np.testing.assert_allclose(rows @ rows.T, np.eye(d), atol=1e-13)
    np.testing.assert_allclose(rows @ whole, values[:, None] * rows, atol=2e-14 * d * values[-1])
    for others in found[1:]:
        assert all(mine.tobytes() == other.tobytes() for mine, other in zip(found[0], others, strict=True))


@pytest.mark.parametrize("scale", [2.0**-900, 2.0**900])
def test_squares_of_the_matrix_may_leave_the_range(scale: float) -> None:
    whole = _matrix(70, "full")
    values, rows = all_directions(np.triu(whole))
    scaled_values, scaled_rows = all_directions(np.triu(whole * scale))
    np.testing.assert_allclose(scaled_values, values * scale, rtol=1e-12)
    np.testing.assert_allclose(np.abs(scaled_rows @ rows.T), np.eye(70), atol=1e-10)


def test_a_matrix_of_zeros_has_the_axes() -> None:
    values, rows = all_directions(np.zeros((70, 70)))
    assert not values.any()
    np.testing.assert_array_equal(np.abs(rows), np.eye(70))


def test_no_convergence_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    from scipy.linalg import lapack

    for name in ("dsyevd", "dstevd"):
        monkeypatch.setattr(lapack, name, lambda *args, **options: (np.zeros(70), np.zeros((70, 70)), 1))
    with pytest.raises(np.linalg.LinAlgError, match="converge"):
        all_directions(np.eye(70))


@pytest.mark.parametrize("count", [0, 1, 2, 3, 100, 256, 257, 784])
def test_parts_are_even_and_cover_all(count: int) -> None:
    parts = even_parts(count)
    assert len(parts) % 2 == 0
    assert [i for part in parts for i in range(count)[part]] == list(range(count))
    sizes = [part.stop - part.start for part in parts]
    assert max(sizes) - min(sizes) <= 1
    assert max(sizes) <= 128


def test_a_scipy_without_the_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those before 1.16 have no dstevd."""
    monkeypatch.delattr("scipy.linalg.lapack.dstevd", raising=False)
    whole = _matrix(130, "full")
    values, rows = all_directions(np.triu(whole), 2)
    np.testing.assert_allclose(rows @ whole, values[:, None] * rows, atol=1e-10 * values[-1])


def test_no_directions_have_no_residuals() -> None:
    covariance._in_upper.cache_clear()
    found = covariance._residuals(np.eye(1100), np.zeros((1100, 0)), np.zeros(0), 1.0, None, 2)
    assert found.shape == (0,)
    assert covariance._in_upper.cache_info().currsize == 0
