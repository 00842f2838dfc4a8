"""The scatter matrix times a few vectors: dense and sparse kernels against their NumPy twin, and what they promise."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from foldwise import kernels
from foldwise.kernels import reference
from foldwise.kernels import sparse as sparse_kernels


def centre_of(x: Any) -> Any:
    mean = x.astype(np.float64).mean(axis=0) if len(x) else np.zeros(x.shape[1])
    return np.vstack([mean, np.zeros(x.shape[1])])


def off(found: Any, x: Any, weights: Any, centre: Any, factor: Any, basis: Any) -> float:
    """The largest error, relative to what rounding can do: the lengths of the columns times those of the products."""
    true = reference.scatter_product(x, weights, centre, factor, basis)
    z = (x.astype(np.float64) - centre[0]) * (1.0 if factor is None else factor)
    if weights is not None:
        z = z[weights != 0] * np.sqrt(weights[weights != 0])[:, None]
    sizes = np.outer(np.linalg.norm(z, axis=0), np.linalg.norm(z) * np.linalg.norm(basis, axis=0))
    return float((np.abs(found - true) / np.where(sizes > 0, sizes, 1.0)).max(initial=0.0))


def test_by_hand() -> None:
    x = np.array([[1.0, 2.0], [3.0, 6.0]])  # about the mean (2, 4): (-1, -2) and (1, 2)
    basis = np.array([[1.0, 0.0], [0.0, 1.0]])
    for made in (x, x.astype(np.float32)):
        found = kernels.scatter_product(made, None, np.array([[2.0, 4.0], [0.0, 0.0]]), None, basis, wide=False)
        np.testing.assert_array_equal(found, [[2.0, 4.0], [4.0, 8.0]])
        sparse = sparse_kernels.scatter_product(
            sp.csr_array(made), None, np.array([[2.0, 4.0], [0.0, 0.0]]), np.array([1.0, 0.5]), basis, wide=True
        )
        np.testing.assert_array_equal(sparse, [[2.0, 2.0], [2.0, 2.0]])


def weights_of(kind: str, n: int, rng: np.random.Generator) -> NDArray[np.float64] | None:
    return {
        "none": None,
        "some zero": rng.random(n) * (rng.random(n) < 0.7),
        "wild": 10.0 ** rng.uniform(-60, 60, n),
    }[kind]


@settings(max_examples=60, deadline=None)
@given(
    n=st.integers(0, 200),
    d=st.integers(1, 70),
    b=st.integers(1, 40),
    dtype=st.sampled_from([np.float32, np.float64]),
    offset=st.sampled_from([0.0, 1e3, 1e6]),
    weighted=st.sampled_from(["none", "some zero", "wild"]),
    scaled=st.booleans(),
    wide=st.booleans(),
    seed=st.integers(0, 2**32),
)
def test_dense_and_sparse_against_the_reference(
    n: int, d: int, b: int, dtype: Any, offset: float, weighted: str, scaled: bool, wide: bool, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    x = (rng.standard_normal((n, d)) + offset).astype(dtype)
    weights = weights_of(weighted, n, rng)
    centre, basis = centre_of(x), rng.standard_normal((d, b))
    factor = rng.uniform(0.1, 10, d) if scaled else None
    limit = 1e-13 if wide or dtype == np.float64 else 1e-6
    found = kernels.scatter_product(x, weights, centre, factor, basis, wide=wide)
    assert off(found, x, weights, centre, factor, basis) <= limit
    some = x.copy()
    some[:, d // 2 :][rng.random((n, d - d // 2)) < 0.6] = 0  # columns that all rows store, and others
    centre = centre_of(some)
    found = sparse_kernels.scatter_product(sp.csr_array(some), weights, centre, factor, basis, wide=wide)
    assert off(found, some, weights, centre, factor, basis) <= limit * (1 + offset)  # zeros among values of that size


@settings(max_examples=60, deadline=None)
@given(
    n=st.integers(0, 200),
    d=st.sampled_from([1, 7, 8, 16, 33, 70, 1030, 2050]),
    b=st.integers(1, 30),
    dtype=st.sampled_from([np.float32, np.float64]),
    offset=st.sampled_from([0.0, 1e3, 1e6]),
    weighted=st.sampled_from(["none", "some zero", "wild"]),
    scaled=st.booleans(),
    seed=st.integers(0, 2**32),
)
def test_product_and_form_against_the_reference(
    n: int, d: int, b: int, dtype: Any, offset: float, weighted: str, scaled: bool, seed: int
) -> None:
    """The product has the precision of the rows, and the form that of float64."""
    rng = np.random.default_rng(seed)
    x = (rng.standard_normal((n, d)) + offset).astype(dtype)
    weights = weights_of(weighted, n, rng)
    centre, basis = centre_of(x), rng.standard_normal((d, b))
    factor = rng.uniform(0.1, 10, d) if scaled else None
    product, form = kernels.product_and_form(x, weights, centre, factor, basis)
    assert off(product, x, weights, centre, factor, basis) <= (1e-6 if dtype == np.float32 else 1e-13)
    true = basis.T @ reference.scatter_product(x, weights, centre, factor, basis)
    z = (x.astype(np.float64) - centre[0]) * (1.0 if factor is None else factor)
    if weights is not None:
        z = z[weights != 0] * np.sqrt(weights[weights != 0])[:, None]
    lengths = np.linalg.norm(z) * np.linalg.norm(basis, axis=0)
    assert (np.abs(form - true) <= 1e-13 * (1 + 1e-6 * offset) * np.outer(lengths, lengths)).all()


_AT_THE_EDGE = """
import ctypes, mmap, numpy as np
from foldwise import kernels
page, size = mmap.PAGESIZE, 64 * mmap.PAGESIZE
memory = mmap.mmap(-1, size + page)
start = ctypes.addressof(ctypes.c_char.from_buffer(memory))
libc = ctypes.CDLL(None, use_errno=True)
assert libc.mprotect(ctypes.c_void_p(start + size), ctypes.c_size_t(page), 0) == 0  # what comes after cannot be read
rng = np.random.default_rng(0)
for n in (59, 60, 61, 120, 121, 180):
    for d in (3, 16, 40, 49, 250):
        x = np.frombuffer(memory, np.float32, n * d, size - 4 * n * d).reshape(n, d)
        x[:] = rng.standard_normal((n, d))
        basis = rng.standard_normal((d, 5))
        kernels.scatter_product(x, None, np.zeros((2, d)), None, basis, wide=False)
        kernels.product_and_form(x, None, np.zeros((2, d)), None, basis)
print("read")
"""


@pytest.mark.parametrize("n", [1, 59, 60, 500, 1003])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("wide", [False, True])
def test_product_and_columns_have_the_bits_of_either_alone(n: int, dtype: Any, wide: bool) -> None:
    rng = np.random.default_rng(0)
    for d in (1, 20, 257):
        x = (rng.standard_normal((n, d)) + 3).astype(dtype)
        centre, factor, basis = centre_of(x) + 0.1, rng.uniform(0.5, 2, d), rng.standard_normal((d, 11))
        product, mean, squares = kernels.product_and_columns(x, centre, factor, basis, wide=wide)
        assert product.tobytes() == kernels.scatter_product(x, None, centre, factor, basis, wide=wide).tobytes()
        _, alone, squares_alone = kernels.columns(x, None)
        assert mean.tobytes() == alone.tobytes()
        assert squares.tobytes() == squares_alone.tobytes()


@pytest.mark.skipif(sys.platform != "linux", reason="protects a page of memory")
def test_nothing_is_read_after_the_last_row() -> None:
    """Rows near zero are read where they are, and the last vector of a row reaches into the next one."""
    done = subprocess.run([sys.executable, "-c", _AT_THE_EDGE], capture_output=True, text=True)
    assert done.stdout == "read\n", done.stderr


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_halves_of_the_sparse_product_make_the_whole(dtype: Any, weighted: bool) -> None:
    rng = np.random.default_rng(0)
    x = sp.random_array((300, 90), density=0.1, rng=rng, format="csr", dtype=dtype)
    weights = rng.integers(0, 3, 300).astype(np.float64) if weighted else None
    centre, factor, basis = centre_of(x.toarray()), rng.uniform(0.5, 2, 90), rng.standard_normal((90, 11))
    codes = sparse_kernels.project(x, weights, centre, factor, basis)
    found = sparse_kernels.project_back(x, weights, centre, factor, codes)
    whole = sparse_kernels.scatter_product(x, weights, centre, factor, basis, wide=True)
    np.testing.assert_allclose(found, whole, rtol=1e-10, atol=1e-12)


def test_rows_of_weight_zero_may_hold_anything() -> None:
    rng = np.random.default_rng(0)
    x = rng.standard_normal((200, 20)).astype(np.float32)
    weights = np.ones(200)
    weights[50:60] = 0
    centre, basis = centre_of(x), rng.standard_normal((20, 5))
    before = kernels.scatter_product(x, weights, centre, None, basis, wide=False)
    form = kernels.product_and_form(x, weights, centre, None, basis)
    x[50:60] = 3e38
    assert kernels.scatter_product(x, weights, centre, None, basis, wide=False).tobytes() == before.tobytes()
    x[55] = np.nan
    for found, expected in zip(kernels.product_and_form(x, weights, centre, None, basis), form, strict=True):
        assert found.tobytes() == expected.tobytes()


def test_a_column_does_not_depend_on_the_columns_beside_it() -> None:
    """By that, threads can share out the columns of a block."""
    rng = np.random.default_rng(0)
    x = sp.random_array((300, 90), density=0.1, rng=rng, format="csr", dtype=np.float64)
    centre, basis = centre_of(x.toarray()), rng.standard_normal((90, 32))
    whole = sparse_kernels.scatter_product(x, None, centre, None, basis, wide=True)
    for cut in (16, 7):
        left, right = (
            sparse_kernels.scatter_product(x, None, centre, None, np.ascontiguousarray(part), wide=True)
            for part in (basis[:, :cut], basis[:, cut:])
        )
        assert np.hstack([left, right]).tobytes() == whole.tobytes()


_BITS = """
import hashlib, numpy as np, scipy.sparse as sp
from foldwise import kernels
from foldwise.kernels import sparse
rng = np.random.default_rng(0)
x = (rng.standard_normal((1000, 257)) + 5).astype(np.float32)
basis, centre = rng.standard_normal((257, 20)), np.vstack([x.mean(axis=0, dtype=np.float64), np.zeros(257)])
weights = rng.integers(0, 3, 1000).astype(float)
ways = (kernels.scatter_product, x), (sparse.scatter_product, sp.csr_array(x))
found = [f(y, w, centre, None, basis, wide=wide) for f, y in ways for w in (None, weights) for wide in (False, True)]
for d, offset in (257, 5), (1100, 0), (1100, 5):
    x = (rng.standard_normal((500, d)) + offset).astype(np.float32)
    centre = np.vstack([x.mean(axis=0, dtype=np.float64), np.full(d, 1e-9)])
    basis = rng.standard_normal((d, 11))
    found += [y for w in (None, weights[:500]) for y in kernels.product_and_form(x, w, centre, None, basis)]
    few = [np.ascontiguousarray(basis[:, :b]) for b in (1, 4, 6, 8, 11)]
    found += [kernels.scatter_product(x, w, centre, None, q, wide=False) for w in (None, weights[:500]) for q in few]
print(hashlib.sha256(b"".join(each.tobytes() for each in found)).hexdigest())
"""


def test_the_same_bits_on_avx2_and_avx512(prints_by_isa: Callable[[str], set[str]]) -> None:
    assert len(prints_by_isa(_BITS)) == 1


@pytest.mark.parametrize("d", [1, 16, 17, 40, 784, 1100, 4500])
@pytest.mark.parametrize("offset", [0.0, 5.0])
def test_few_columns_of_q_are_multiplied_as_many_are(d: int, offset: float) -> None:
    """With rows as they are and with packed ones; the last strip is not whole."""
    rng = np.random.default_rng(0)
    x = (rng.standard_normal((139, d)) + offset).astype(np.float32)
    centre, basis, factor = centre_of(x), rng.standard_normal((d, 20)), rng.uniform(0.5, 2, d)
    for b in range(1, 14):
        few = np.ascontiguousarray(basis[:, :b])
        found = kernels.scatter_product(x, None, centre, factor, few, wide=False)
        assert off(found, x, None, centre, factor, few) <= 1e-6


def test_bad_input_is_refused() -> None:
    x, basis, centre = np.zeros((4, 3)), np.zeros((3, 2)), np.zeros((2, 3))
    with pytest.raises(ValueError, match="rows"):
        kernels.scatter_product(x, None, centre, None, np.zeros((4, 2)), wide=True)
    with pytest.raises(ValueError, match="centre"):
        kernels.scatter_product(x, None, np.zeros((2, 4)), None, basis, wide=True)
    with pytest.raises(ValueError, match="weights"):
        kernels.scatter_product(x, np.ones(3), centre, None, basis, wide=True)
    with pytest.raises(ValueError, match="factor"):
        kernels.scatter_product(x, None, centre, np.ones(4), basis, wide=True)
    with pytest.raises(TypeError):
        kernels.scatter_product(x.astype(np.int64), None, centre, None, basis, wide=True)
    with pytest.raises(ValueError, match="there must be"):
        kernels.product_and_columns(x[:0], centre, None, basis, wide=True)
    with pytest.raises(ValueError, match="squares"):
        kernels._core.product_and_columns(x, centre, None, basis, True, np.zeros((3, 2)), np.zeros((2, 3)), np.zeros(2))
    with pytest.raises(ValueError, match="form"):
        kernels._core.product_and_form(x, None, centre, None, basis, np.zeros((3, 2)), np.zeros((3, 2)))
    with pytest.raises(ValueError, match="rows"):
        sparse_kernels.scatter_product(sp.csr_array(x), None, centre, None, np.zeros((4, 2)), wide=True)
