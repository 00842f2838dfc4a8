from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from data_helpers import read, weights

from foldwise.data import scan
from foldwise.errors import DataError, SourceChangedError


@pytest.fixture
def saved(tmp_path):
    def save(x):
        np.save(tmp_path / "x.npy", x)
        return tmp_path / "x.npy"

    return save


@pytest.mark.parametrize("dtype", ["f8", "f4", "f2", "i2", "u1", "?", ">f8", ">f4", ">i4"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_every_dtype_and_order(saved, table, dtype, order):
    x = np.asarray(table * 10).astype(dtype).copy(order=order)
    path = saved(x)
    expected = np.float32 if x.dtype.kind == "f" and x.dtype.itemsize == 4 else np.float64
    assert scan(path).dtype == expected
    assert np.array_equal(read(path), x.astype(expected))


@pytest.mark.parametrize("order", ["C", "F"])
def test_columns_and_weights(saved, table, order):
    path = saved(table.copy(order=order))
    w = np.arange(len(table))
    assert np.array_equal(read(str(path), columns=[4, 1]), table[:, [4, 1]])
    assert np.array_equal(weights(scan(path, weights=w)), w)


def test_pieces_in_threads_and_out_of_order(saved, table):
    pieces = list(scan(saved(table)).pieces())
    with ThreadPoolExecutor(4) as pool:
        blocks = list(pool.map(lambda piece: piece.load(), pieces[::-1]))
    assert np.array_equal(np.vstack([block.values for block in blocks[::-1]]), table)


@pytest.mark.parametrize(
    ("x", "text"),
    [
        (np.ones(3), "Expected 2D array, got 1D array instead"),
        (np.ones((0, 3)), "0 sample"),
        (np.ones((3, 0)), "0 feature"),
        (np.array([["a"]]), "<U1"),
        (np.ones((2, 2), dtype=complex), "Complex data not supported"),
    ],
)
def test_refused(saved, x, text):
    path = saved(x)
    with pytest.raises(DataError, match=text) as caught:
        scan(path)
    assert caught.value.where == str(path)


def test_objects_are_refused(tmp_path):
    np.save(tmp_path / "o.npy", np.array([[1, {}]], dtype=object), allow_pickle=True)
    with pytest.raises(DataError, match="object"):
        scan(tmp_path / "o.npy")


@pytest.mark.parametrize("keep", [3, 60, 1000])
def test_truncated(saved, table, keep):
    path = saved(table)
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises(DataError, match="truncated"):
        scan(path)


def test_bad_value(saved, table):
    x = table.copy()
    x[100_000, 3] = np.nan
    with pytest.raises(DataError, match="Input contains NaN") as caught:
        read(saved(x))
    assert (caught.value.row, caught.value.column) == (100_000, 3)


def test_changed_between_passes(saved, small):
    path = saved(small)
    source = scan(path)
    list(source.pieces())
    os.utime(path, ns=(0, 0))
    with pytest.raises(SourceChangedError, match="changed"):
        list(source.pieces())
    path.unlink()
    with pytest.raises(SourceChangedError):
        list(source.pieces())


def test_where_is_refused_with_advice(saved, small):
    with pytest.raises(DataError, match="mask"):
        scan(saved(small), where="a > 0")


def test_fingerprint_changes_with_the_file(saved, small):
    first = scan(saved(small)).fingerprint()
    assert "x.npy" in first
    assert scan(saved(np.vstack([small, small]))).fingerprint() != first
