from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from data_helpers import read, weights

from foldwise.data import scan
from foldwise.errors import DataError


@pytest.fixture
def matrix():
    return sp.random_array((40_000, 6), density=0.2, format="csr", rng=np.random.default_rng(0))


@pytest.mark.parametrize("form", ["csr", "csc", "coo", "bsr", "dia", "lil", "dok"])
@pytest.mark.parametrize("old", [False, True])
def test_every_format(matrix, form, old):
    x = sp.csr_matrix(matrix[:50]) if old else matrix[:50]
    assert np.array_equal(read(x.asformat(form)), x.toarray())


def test_blocks_stay_sparse_and_on_the_grid(matrix):
    source = scan(matrix)
    assert source.sparse
    assert [sp.issparse(piece.load().matrix) for piece in source.pieces()] == [True] * 3
    assert np.array_equal(read(matrix), matrix.toarray())


def test_dtypes(matrix):
    assert scan(matrix.astype(np.float32)).dtype == np.float32
    assert scan(matrix.astype(bool)).dtype == np.float64
    assert read(matrix, dtype=np.float32).dtype == np.float32


def test_duplicates_are_added_up():
    x = sp.csr_array((np.array([1.0, 2.0]), np.array([1, 1]), np.array([0, 2])), shape=(1, 2))
    source = scan(x)
    assert np.array_equal(next(source.pieces()).load().matrix.data, [3.0])
    assert x.nnz == 2  # the caller's matrix is left alone


def test_columns_rows_and_weights(matrix):
    mask = np.arange(matrix.shape[0]) % 3 == 0
    w = np.arange(mask.sum())
    source = scan(matrix, columns=[2, 0], where=mask, weights=w)
    assert np.array_equal(weights(source), w)
    assert np.array_equal(read(matrix, columns=[2, 0], where=mask), matrix.toarray()[mask][:, [2, 0]])


@pytest.mark.parametrize(("value", "text"), [(np.nan, "Input contains NaN"), (-np.inf, "Input contains infinity")])
def test_bad_value(matrix, value, text):
    x = matrix.tolil()
    x[20_001, 4] = value
    with pytest.raises(DataError, match=text) as caught:
        read(x)
    assert (caught.value.row, caught.value.column) == (20_001, 4)


@pytest.mark.parametrize(
    ("x", "text"),
    [
        (sp.csr_array((0, 3)), "0 sample"),
        (sp.csr_array((3, 0)), "0 feature"),
        (sp.csr_array(np.ones((2, 2)) * 1j), "Complex data not supported"),
        (sp.coo_array(np.ones(3)), "Expected 2D array, got 1D array"),
    ],
)
def test_refused(x, text):
    with pytest.raises(DataError, match=text):
        scan(x)


def test_fingerprint(matrix):
    other = matrix.copy()
    other.data[0] += 1
    assert scan(matrix).fingerprint() == scan(matrix.tocsc()).fingerprint() != scan(other).fingerprint()
