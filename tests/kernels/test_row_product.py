"""Rows times vectors in float32, whose values depend on the row and the vector alone."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foldwise import kernels
from foldwise.kernels import reference

f32 = np.float32


def test_by_hand() -> None:
    x, vectors = np.array([[1, 2], [3, -1], [0, 0]], f32), np.array([[1, 1], [2, 0], [0, 0.5], [-1, 3]], f32)
    found = kernels.row_product(x, vectors)
    np.testing.assert_array_equal(found, [[3, 2, 1, 5], [2, 6, -0.5, -6], [0, 0, 0, 0]])
    np.testing.assert_array_equal(found, reference.row_product(x, vectors))


@settings(max_examples=60, deadline=None)
@given(n=st.integers(0, 60), d=st.integers(0, 90), o=st.integers(0, 80), seed=st.integers(0, 9))
def test_as_its_twin(n: int, d: int, o: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    x, vectors = rng.standard_normal((n, d), f32), rng.standard_normal((o, d), f32)
    found = kernels.row_product(x, vectors)
    assert found.shape == (n, o)
    # Of whole numbers nothing is rounded; of others, each step may round the other way.
    np.testing.assert_array_equal(kernels.row_product(x.round(), vectors.round()), x.round() @ vectors.round().T)
    sizes = np.abs(x).astype(np.float64) @ np.abs(vectors.T)
    assert (np.abs(found - reference.row_product(x, vectors)) <= 2.0**-23 * (d + 1) * sizes).all()


@pytest.mark.parametrize("d", [1, 31, 32, 33, 700])
def test_a_value_depends_on_its_row_and_vector_alone(d: int) -> None:
    rng = np.random.default_rng(d)
    x, vectors = rng.standard_normal((67, d), f32), rng.standard_normal((71, d), f32)
    whole = kernels.row_product(x, vectors)
    for rows in (slice(0, 1), slice(5, 18), slice(None, None, 3), slice(None, None, -1)):
        for some in (slice(0, 1), slice(3, 40), slice(None, None, 2)):
            found = kernels.row_product(np.ascontiguousarray(x[rows]), np.ascontiguousarray(vectors[some]))
            np.testing.assert_array_equal(found, whole[rows, some])


def test_what_is_not_finite_stays_in_its_row_and_vector() -> None:
    x, vectors = np.ones((14, 3), f32), np.ones((35, 3), f32)
    x[3, 1], x[13, 2], vectors[34, 0] = np.nan, np.inf, -np.inf
    found = kernels.row_product(x, vectors)
    expected = np.full((14, 35), 3, f32)
    expected[:, 34] = -np.inf
    expected[13] = np.inf
    expected[13, 34] = expected[3] = np.nan
    np.testing.assert_array_equal(found, expected)


_BITS = """
import hashlib
import numpy as np
from foldwise import kernels
rng = np.random.default_rng(0)
of = hashlib.sha256()
for n, d, o in ((30, 40, 50), (13, 7, 33), (1, 784, 100), (25, 2, 1)):
    of.update(kernels.row_product(rng.standard_normal((n, d), np.float32), rng.standard_normal((o, d), np.float32)))
print(of.hexdigest())
"""


def test_the_same_bits_on_avx2_and_avx512(prints_by_isa: Callable[[str], set[str]]) -> None:
    assert len(prints_by_isa(_BITS)) == 1


def test_bad_input_is_refused() -> None:
    x, vectors, out = np.zeros((4, 3), f32), np.zeros((2, 3), f32), np.zeros((4, 2), f32)
    with pytest.raises(ValueError, match="entry per column"):
        kernels.row_product(x, np.zeros((2, 4), f32))
    with pytest.raises(ValueError, match="out must have"):
        kernels._core.row_product(x, vectors, out.T.copy())
    with pytest.raises(TypeError):
        kernels.row_product(x.astype(np.float64), vectors)
    with pytest.raises(TypeError):
        kernels.row_product(x[:, ::2], vectors)
