"""Right at any offset and scale, or a clear error: what today's tools get wrong, in both float widths."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import foldwise as fw
from foldwise.errors import DataError

SOLVERS = ["covariance_eigh", "full", "krylov", "power"]


def truth(x: np.ndarray) -> np.ndarray:
    """Variances by two passes in extended precision; only a small matrix is diagonalised in float64."""
    wide = x.astype(np.longdouble)
    z = wide - wide.mean(axis=0)
    scatter = z.T @ z / (len(x) - 1)
    return np.linalg.eigvalsh(scatter.astype(np.float64))[::-1]


def spreads(n: int = 5000, seed: int = 0) -> np.ndarray:
    """The data of the defects that were found in other libraries."""
    return np.random.default_rng(seed).standard_normal((n, 5)) * [3, 2, 1.5, 1, 0.5]


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("offset", [0.0, 1.0, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8])
@pytest.mark.parametrize(("dtype", "rtol"), [(np.float32, 1e-6), (np.float64, 1e-12)])
def test_variances_at_any_offset(solver: str, offset: float, dtype: type, rtol: float) -> None:
    x = (spreads() + offset).astype(dtype)
    pca = fw.PCA(3, svd_solver=solver).fit(x)
    np.testing.assert_allclose(pca.explained_variance_, truth(x)[:3], rtol=rtol)
    mean = x.astype(np.longdouble).mean(axis=0).astype(float)
    np.testing.assert_allclose(pca.mean_, mean, rtol=1e-15, atol={np.float32: 1e-8, np.float64: 1e-15}[dtype])


@pytest.mark.parametrize("offset", [1e3, 1e6, 1e8])
@pytest.mark.parametrize(("dtype", "rtol"), [(np.float32, 1e-6), (np.float64, 1e-12)])
def test_wide_data_at_any_offset(offset: float, dtype: type, rtol: float) -> None:
    x = (np.random.default_rng(0).standard_normal((20, 400)) * np.linspace(300, 100, 20)[:, None] + offset).astype(
        dtype
    )
    wide = x.astype(np.longdouble)
    z = wide - wide.mean(axis=0)
    expected = np.linalg.eigvalsh((z @ z.T / 19).astype(float))[::-1]
    pca = fw.PCA(5).fit(x)
    assert pca.manifest_.algorithm == "gram"
    np.testing.assert_allclose(pca.explained_variance_, expected[:5], rtol=rtol)


@pytest.mark.parametrize("solver", ["covariance_eigh", "full", "krylov"])
@pytest.mark.parametrize(("dtype", "rtol"), [(np.float32, 1e-6), (np.float64, 1e-10)])
def test_rows_that_drift_over_many_blocks(solver: str, dtype: type, rtol: float) -> None:
    """Block means then differ as much as the rows do, and merging them must not lose what the rows hold."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((120_000, 5)) * [3, 2, 1.5, 1, 0.5]
    x = (x[np.argsort(x[:, 0])] + 1e6).astype(dtype)
    pca = fw.PCA(2, svd_solver=solver).fit(x)
    np.testing.assert_allclose(pca.explained_variance_, truth(x)[:2], rtol=rtol)


@pytest.mark.parametrize(("dtype", "offset", "wrong"), [(np.float64, 1e8, 67.5), (np.float32, 1e3, 16.4)])
def test_defect_of_peers_first_variance(dtype: type, offset: float, wrong: float) -> None:
    """Forming X'X - n m m' gives 67.5 (float64, 1e8) or 16.4 (float32, 1e3) where 9 is right."""
    x = (spreads() + offset).astype(dtype)
    first = fw.PCA().fit(x).explained_variance_[0]
    assert first == pytest.approx(9, rel=0.05)
    assert abs(first - wrong) > 5


def test_defect_of_peers_subspace_in_float32_at_offset_1e6(planted: Any) -> None:
    """Rows far from zero in float32: the subspace that the stored numbers carry is found."""
    x = (planted([9, 8, 7, *[1.0] * 22], 30_000) * 4 + 1e6).astype(np.float32)
    z = x.astype(np.float64) - x.astype(np.float64).mean(axis=0)
    vectors = np.linalg.eigh(z.T @ z)[1][:, ::-1][:, :3]
    pca = fw.PCA(3).fit(x)
    np.testing.assert_allclose(np.linalg.svd(pca.components_ @ vectors, compute_uv=False), 1, atol=1e-6)


def test_offsets_do_not_reach_the_scores() -> None:
    plain = spreads()
    moved = plain + 2.0**20
    moved -= 2.0**20  # what is left after rounding at that offset
    near, far = fw.PCA(2).fit(moved), fw.PCA(2).fit(moved + 2.0**20)
    np.testing.assert_allclose(far.transform(moved + 2.0**20), near.transform(moved), atol=1e-8)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize(
    ("dtype", "size"), [(np.float32, 1e-25), (np.float32, 1e20), (np.float64, 1e-120), (np.float64, 1e120)]
)
def test_tiny_and_large_values(solver: str, dtype: type, size: float) -> None:
    plain = spreads(500).astype(dtype)
    x = (plain.astype(np.float64) * size).astype(dtype)
    ours, unit = fw.PCA(3, svd_solver=solver).fit(x), fw.PCA(3, svd_solver=solver).fit(plain)
    rtol = {np.float32: 1e-5, np.float64: 1e-9}[dtype]
    np.testing.assert_allclose(ours.explained_variance_ / size / size, unit.explained_variance_, rtol=rtol)
    np.testing.assert_allclose(ours.explained_variance_ratio_, unit.explained_variance_ratio_, rtol=rtol)
    np.testing.assert_allclose(ours.components_, unit.components_, atol=1e-5)
    np.testing.assert_allclose(ours.transform(x) / dtype(size), unit.transform(plain), atol=2e-4)
    back = ours.inverse_transform(ours.transform(x))
    np.testing.assert_allclose(back / dtype(size), unit.inverse_transform(unit.transform(plain)), atol=2e-4)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("shape", [(20, 3), (3, 20)])
def test_variances_that_overflow_are_a_clear_error(solver: str, shape: tuple[int, int]) -> None:
    x = np.random.default_rng(0).standard_normal(shape) * 1e300
    with pytest.raises(
        DataError, match=r"so large that their variance overflows float64.*Divide the data by a constant"
    ):
        fw.PCA(2, svd_solver=solver).fit(x)


def test_overflow_in_one_column_is_named() -> None:
    x = np.random.default_rng(0).standard_normal((20, 3))
    x[:, 1] *= 1e300
    with pytest.raises(DataError) as caught:
        fw.PCA().fit(x)
    assert caught.value.column == 1


@pytest.mark.parametrize("solver", SOLVERS)
def test_variances_that_underflow_are_not_silently_nothing(solver: str) -> None:
    x = spreads(50) * 1e-180  # the squares are below the least float64
    with pytest.raises(DataError, match="lost below the range"):
        fw.PCA(2, svd_solver=solver).fit(x)


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_tiny_column_beside_others_only_matters_when_scaled(solver: str) -> None:
    x = spreads(50)
    x[:, 1] *= 1e-180
    pca = fw.PCA(2, svd_solver=solver).fit(x)
    without = fw.PCA(2).fit(np.delete(x, 1, axis=1))
    np.testing.assert_allclose(pca.explained_variance_, without.explained_variance_, rtol=1e-10)
    with pytest.raises(DataError, match="lost below the range") as caught:
        fw.PCA(2, svd_solver=solver, scale=True).fit(x)
    assert caught.value.column == 1


@pytest.mark.parametrize("solver", SOLVERS)
def test_blocks_that_drift_at_a_large_offset(solver: str) -> None:
    """Means of blocks differ by less than a float64 near 1e8 can tell exactly; they are kept in two parts."""
    rng = np.random.default_rng(0)
    n = 60_000
    x = rng.standard_normal((n, 4)) * [3.0, 2.0, 1.5, 1.0] + np.linspace(0, 2, n)[:, None] + 1e8
    wide = x.astype(np.longdouble) - x[0]
    wide -= wide.mean(axis=0)
    true = np.linalg.eigvalsh(np.asarray(wide.T @ wide / (n - 1), dtype=np.float64))[::-1]
    pca = fw.PCA(svd_solver=solver).fit(x)
    np.testing.assert_allclose(pca.explained_variance_, true, rtol=1e-12)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("value", [0.0, 0.1, 1e8 / 3, -1e-30])
def test_constant_columns_with_scale(solver: str, value: float) -> None:
    x = np.column_stack([spreads(300)[:, :2], np.full(300, value)])
    pca = fw.PCA(2, scale=True, svd_solver=solver).fit(x)
    without = fw.PCA(2, scale=True, svd_solver="full").fit(x[:, :2])
    assert pca.scale_[2] == 1
    np.testing.assert_allclose(pca.explained_variance_, without.explained_variance_, rtol=1e-9)
    np.testing.assert_allclose(pca.explained_variance_ratio_.sum(), 1, rtol=1e-12)
    np.testing.assert_allclose(pca.components_[:, 2], 0, atol=1e-12)
    np.testing.assert_allclose(pca.inverse_transform(pca.transform(x)), x, rtol=1e-9, atol=1e-12)


def test_constant_columns_over_many_blocks() -> None:
    """A mean off in its last digit in some block would give the column a variance, which scaling blows up."""
    x = np.column_stack([np.random.default_rng(0).standard_normal(300_000), np.full(300_000, 0.1)])
    for dtype in (np.float32, np.float64):
        pca = fw.PCA(1, scale=True).fit(x.astype(dtype), sample_weight=np.full(300_000, 0.3))
        assert pca.scale_[1] == 1
        assert pca.explained_variance_ratio_[0] == pytest.approx(1, rel=1e-12)


@pytest.mark.parametrize("solver", SOLVERS)
def test_nearly_constant_columns_with_scale(solver: str) -> None:
    """One part in a million of spread is still spread: it is scaled up like any other (sk #17794)."""
    rng = np.random.default_rng(0)
    plain = rng.standard_normal((400, 3))
    x = plain * [1, 1e-6, 1] + [0, 1.0, 0]
    pca = fw.PCA(svd_solver=solver, scale=True).fit(x)
    np.testing.assert_allclose(pca.explained_variance_, np.linalg.eigvalsh(np.corrcoef(plain.T))[::-1], rtol=1e-6)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("whiten", [False, True])
@pytest.mark.parametrize("scale", [False, True])
def test_equal_rows(solver: str, whiten: bool, scale: bool) -> None:
    x = np.tile([1.5, 2.5, 1 / 3], (10, 1))
    pca = fw.PCA(2, svd_solver=solver, whiten=whiten, scale=scale).fit(x)
    np.testing.assert_array_equal(pca.explained_variance_, [0, 0])
    np.testing.assert_array_equal(pca.explained_variance_ratio_, [0, 0])
    np.testing.assert_allclose(pca.components_ @ pca.components_.T, np.eye(2), atol=1e-12)
    np.testing.assert_array_equal(pca.transform(x), np.zeros((10, 2)))
    np.testing.assert_allclose(pca.inverse_transform(pca.transform(x)), x, rtol=1e-15)


@pytest.mark.parametrize("solver", SOLVERS)
def test_one_row_is_an_error(solver: str) -> None:
    with pytest.raises(DataError, match=r"1 sample.*minimum of 2"):
        fw.PCA(1, svd_solver=solver).fit([[1.0, 2.0, 3.0]])


def test_rows_without_weight_do_not_count() -> None:
    with pytest.raises(DataError, match=r"1 sample.*minimum of 2"):
        fw.PCA(1).fit(np.eye(3), sample_weight=[0.0, 1.0, 0.0])


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("shape", [(20, 4), (4, 20)])
def test_no_components(solver: str, shape: tuple[int, int]) -> None:
    x = np.random.default_rng(0).standard_normal(shape)
    pca = fw.PCA(0, svd_solver=solver).fit(x)
    assert pca.n_components_ == 0
    assert pca.components_.shape == (0, shape[1])
    assert pca.transform(x).shape == (shape[0], 0)
    assert pca.explained_variance_.shape == (0,)
    np.testing.assert_allclose(
        pca.inverse_transform(pca.transform(x)), np.tile(x.mean(axis=0), (shape[0], 1)), atol=1e-15
    )


@pytest.mark.parametrize("order", ["F", "strided", "reversed", "readonly", "int", "bool", "big-endian"])
def test_memory_layout_and_kind_of_numbers_do_not_matter(order: str) -> None:
    x = np.round(spreads(200) * 10)
    variants: dict[str, Any] = {
        "F": np.asfortranarray(x),
        "strided": np.repeat(x, 3, axis=1)[:, ::3],
        "reversed": x[::-1][::-1],
        "readonly": x.copy(),
        "int": x.astype(np.int16),
        "bool": x > 0,
        "big-endian": x.astype(">f8"),
    }
    given = variants[order]
    given.flags.writeable = order != "readonly"
    before = given.copy()
    ours = fw.PCA().fit(given)
    want = fw.PCA().fit(np.ascontiguousarray(given, dtype=np.float64))
    assert ours.components_.tobytes() == want.components_.tobytes()
    assert ours.transform(given).tobytes() == want.transform(given).tobytes()
    np.testing.assert_array_equal(given, before)


def test_small_variances_of_float32_rows_have_their_own_directions() -> None:
    """Far below the rounding of float32 products: a column in other units than the rest hides them."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(5000, 5))
    x[:, 1:] = x[:, 1:] @ rng.normal(size=(4, 4))
    x[:, 0] *= 2e4
    rows = x.astype(np.float32)
    for solver in ("auto", "covariance_eigh"):
        pca = fw.PCA(4, svd_solver=solver).fit(rows)
        found = pca.transform(rows).astype(np.float64).var(axis=0, ddof=1)
        np.testing.assert_allclose(found, pca.explained_variance_, rtol=1e-5)
        assert pca.explained_variance_[3] > pca.variance_floor_
        assert pca.manifest_.passes == 2
    assert fw.PCA(1).fit(rows).manifest_.passes == 1


def test_constant_columns_take_no_second_pass() -> None:
    rows = np.random.default_rng(0).normal(size=(500, 6)).astype(np.float32)
    rows[:, [1, 4]] = 7
    pca = fw.PCA().fit(rows)
    assert pca.manifest_.passes == 1
    assert (pca.explained_variance_[4:] <= pca.variance_floor_).all()
