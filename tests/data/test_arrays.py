from __future__ import annotations

import subprocess
import sys
from decimal import Decimal

import numpy as np
import pytest
from data_helpers import read, weights
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from foldwise.data import scan
from foldwise.errors import DataError, DataTypeError, ParameterError


def unaligned(x):
    raw = np.empty(x.nbytes + 1, dtype=np.uint8)
    view = raw[1:].view(x.dtype).reshape(x.shape)
    view[:] = x
    assert not view.flags.aligned
    return view


def read_only(x):
    copy = x.copy()
    copy.flags.writeable = False
    return copy


LAYOUTS = {
    "fortran": np.asfortranarray,
    "strided": lambda x: np.repeat(x, 2, axis=0)[::2],
    "columns strided": lambda x: np.repeat(x, 2, axis=1)[:, ::2],
    "reversed": lambda x: x[::-1].copy()[::-1],
    "big-endian": lambda x: x.astype(">f8"),
    "unaligned": unaligned,
    "read-only": read_only,
    "object": lambda x: x.astype(object),
    "list": lambda x: x.tolist(),
    "matrix": lambda x: np.ascontiguousarray(x).view(np.matrix),
    "masked, nothing masked": np.ma.masked_array,
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.filterwarnings("ignore:the matrix subclass:PendingDeprecationWarning")
def test_layout_does_not_matter(table, layout):
    assert np.array_equal(read(LAYOUTS[layout](table)), table)


def test_plain_floats_are_not_copied(table):
    for x in (table, table.astype(np.float32), read_only(table)):
        assert all(np.shares_memory(piece.load().values, x) for piece in scan(x).pieces())


@pytest.mark.parametrize("dtype", ["f2", "i1", "u8", "i4", "?", ">i2", ">f4", "f4"])
def test_dtype_rule(dtype):
    x = np.arange(12).reshape(4, 3).astype(dtype)
    expected = np.float32 if np.dtype(dtype).newbyteorder("=") == np.float32 else np.float64
    assert scan(x).dtype == expected
    assert np.array_equal(read(x), x.astype(expected))
    assert scan(x, dtype=np.float32).dtype == np.float32
    assert np.array_equal(read(x, dtype=np.float32), x.astype(np.float32))


def test_memmap(tmp_path, table):
    np.save(tmp_path / "x.npy", table)
    assert np.array_equal(read(np.load(tmp_path / "x.npy", mmap_mode="r")), table)


def test_object_with_an_array_inside(small):
    class Wrapped:
        def __array__(self, dtype=None, copy=None):
            return small

    assert np.array_equal(read(Wrapped()), small)


def test_decimals_in_an_object_array():
    assert np.array_equal(read(np.array([[Decimal("1.5"), 2]], dtype=object)), [[1.5, 2.0]])


@given(
    hnp.arrays(np.float64, hnp.array_shapes(min_dims=2, max_dims=2, max_side=20), elements=st.floats(-1e9, 1e9)),
    st.data(),
)
def test_columns_and_rows(x, data):
    columns = data.draw(
        st.lists(st.integers(-x.shape[1], x.shape[1] - 1), min_size=1, unique_by=lambda j: j % x.shape[1])
    )
    mask = data.draw(hnp.arrays(bool, x.shape[0]).filter(np.any))
    assert np.array_equal(read(x, columns=columns, where=mask), x[mask][:, columns])
    assert np.array_equal(read(x, where=np.flatnonzero(mask)), x[mask])


def test_weights_go_with_their_rows(table):
    w = np.arange(len(table), dtype=np.int32)
    assert np.array_equal(weights(scan(table, weights=w)), w)
    assert weights(scan(table, weights=w)).dtype == np.float64


@pytest.mark.parametrize(
    ("w", "message"),
    [
        ([1, 2], "2 weights were given for 3 rows"),
        ([1, -1, 1], r"row 1 .*-1.0 is not a finite number of at least 0"),
        ([1, 1, np.nan], r"row 2 .*nan"),
        ([0, 0, 0], "all weights are zero"),
        ([[1], [1], [1]], "one weight per row"),
        (["a", "b", "c"], "weights are not numbers"),
        ("w", "the columns have no names"),
    ],
)
def test_bad_weights(w, message):
    with pytest.raises(DataError, match=message):
        scan(np.ones((3, 2)), weights=w)


@pytest.mark.parametrize(
    ("x", "parts"),
    [
        (np.ones((2, 2)) * 1j, ["Complex data not supported"]),
        (np.ones(3), ["Expected 2D array, got 1D array instead", "Reshape your data"]),
        ([], ["Expected 2D array, got 1D array instead"]),
        (3.0, ["Expected 2D array, got scalar array instead"]),
        (np.ones((2, 2, 2)), ["dim 3"]),
        (np.ones((0, 3)), ["Found array with 0 sample(s) (shape=(0, 3)) while a minimum of 1 is required."]),
        (np.ones((3, 0)), ["0 feature(s) (shape=(3, 0)) while a minimum of 1 is required."]),
        (np.array([[1.0, 2], [3, np.nan]]), ["Input contains NaN", "row 1", "column 1"]),
        (np.array([[1.0, 2], [np.inf, 3]]), ["Input contains infinity", "row 1", "column 0"]),
        (np.array([[1, "x"]], dtype=object), ["row 0", "column 1", "'x' is not a number"]),
        (np.array([["1", "2"], ["3", "a"]]), ["row 1", "column 1", "'a' is not a number"]),
        (np.array([[1, None]], dtype=object), ["Input contains NaN", "column 1"]),
        ([[1, 2], [3]], ["the rows differ in length"]),
        (np.zeros((2, 2), dtype="M8[s]"), ["not numbers"]),
        (np.zeros(2, dtype=[("a", float), ("b", float)]).reshape(1, 2), ["structured array"]),
        (np.ma.masked_array([[1.0, 2.0]], [[False, True]]), ["Input contains NaN", "column 1"]),
        ((i for i in range(3)), ["only once"]),
        ({1, 2}, ["not understood"]),
    ],
)
def test_refused(x, parts):
    with pytest.raises(DataError) as caught:
        read(x)
    for part in parts:
        assert part in str(caught.value)


def test_dict_in_an_object_array_is_a_type_error():
    with pytest.raises(DataTypeError, match=r"argument must be .* string.* number"):
        read(np.array([[1.0, {"foo": "bar"}]], dtype=object))


def test_too_large_for_float32():
    with pytest.raises(DataError, match=r"too large for dtype.'float32'"):
        read(np.array([[1e300]]), dtype=np.float32)


def test_other_dtypes_cannot_be_asked_for(small):
    with pytest.raises(DataError, match="float16"):
        scan(small, dtype=np.float16)


def test_column_numbers_in_messages_are_those_of_the_array():
    with pytest.raises(DataError) as caught:
        read(np.array([[1.0, 2.0, np.nan]]), columns=[2])
    assert (caught.value.row, caught.value.column) == (0, 2)


@pytest.mark.parametrize(
    "options",
    [
        {"columns": ["a"]},
        {"columns": [7]},
        {"columns": []},
        {"columns": [0, 0]},
        {"where": "x > 0"},
        {"where": [True]},
    ],
)
def test_impossible_options(small, options):
    with pytest.raises(DataError):
        scan(small, **options)


def test_a_source_passes_through(small):
    source = scan(small)
    assert scan(source) is source
    with pytest.raises(ParameterError):
        scan(source, dtype=np.float32)


def test_fingerprint(table):
    changed = table.copy()
    changed[-1, -1] += 1
    assert scan(table).fingerprint() == scan(np.asfortranarray(table)).fingerprint()
    assert scan(table).fingerprint() != scan(changed).fingerprint()
    assert scan(table).fingerprint() != scan(table, weights=np.ones(len(table))).fingerprint()


def test_importing_stays_light():
    code = "import sys, foldwise.data as d; d.scan([[1.0]]); print({m.split('.')[0] for m in sys.modules})"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    for library in ("duckdb", "pandas", "polars", "pyarrow", "scipy", "sklearn"):
        assert f"'{library}'" not in loaded
