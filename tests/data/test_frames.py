from __future__ import annotations

import subprocess
import sys
from decimal import Decimal
from itertools import pairwise

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from data_helpers import read, weights
from hypothesis import given
from hypothesis import strategies as st

from foldwise.data import scan
from foldwise.errors import DataError, LeftOutWarning

NAMES = list("abcde")


class OnlyAStream:
    def __init__(self, table):
        self.table = table

    def __arrow_c_stream__(self, requested_schema=None):
        return self.table.__arrow_c_stream__(requested_schema)


KINDS = {
    "pandas": lambda frame: frame,
    "pandas in pieces": lambda frame: pd.concat([frame[[name]] for name in frame], axis=1),
    "pandas, arrow dtypes": lambda frame: frame.astype(
        {name: pd.ArrowDtype(pa.from_numpy_dtype(dtype)) for name, dtype in frame.dtypes.items()}
    ),
    "polars": pl.from_pandas,
    "polars lazy": lambda frame: pl.from_pandas(frame).lazy(),
    "pyarrow": pa.table,
    "one-shot reader": lambda frame: pa.table(frame).to_reader(1000),
    "a stream and nothing else": lambda frame: OnlyAStream(pa.table(frame)),
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind(table, kind):
    source = scan(KINDS[kind](pd.DataFrame(table, columns=NAMES)))
    assert source.names == tuple(NAMES)
    assert source.n_rows == len(table)
    for _ in range(2):
        assert np.array_equal(np.vstack([piece.load().values for piece in source.pieces()]), table)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "dtype",
    ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float32", "float64", "bool"],
)
def test_every_dtype(kind, dtype):
    frame = pd.DataFrame({"x": np.arange(10).astype(dtype), "y": np.arange(10).astype(dtype)})
    source = scan(KINDS[kind](frame))
    assert source.dtype == (np.float32 if dtype == "float32" else np.float64)
    assert np.array_equal(read(KINDS[kind](frame)), frame.to_numpy().astype(source.dtype))


def test_mixed_widths_give_float64():
    frame = pd.DataFrame({"x": np.ones(3, dtype=np.float32), "y": np.ones(3)})
    assert scan(frame).dtype == np.float64
    assert scan(frame, columns="x").dtype == np.float32
    assert scan(frame, dtype=np.float32).dtype == np.float32


def test_float16_decimals_and_nullable():
    halves = np.array([0.1, -2.5, 6e-8, 65504], dtype=np.float16)
    arrow = pa.table(
        {"h": pa.array(halves), "d": pa.array([Decimal("1.25"), Decimal("-3.5"), Decimal(0), Decimal(12345)])}
    )
    assert np.array_equal(read(arrow), np.column_stack([halves, [1.25, -3.5, 0, 12345]]).astype(float))
    nullable = pd.DataFrame({"i": pd.array([1, 2], dtype="Int64"), "b": pd.array([True, False], dtype="boolean")})
    assert np.array_equal(read(nullable), [[1, 1], [2, 0]])


def test_big_endian_and_object_columns():
    frame = pd.DataFrame({"x": np.arange(3.0).astype(">f8"), "y": pd.Series([1, 2.5, Decimal(3)], dtype=object)})
    assert np.array_equal(read(frame), [[0, 1], [1, 2.5], [2, 3]])


def test_slices_and_bitmaps():
    flags = pa.array(np.arange(100) % 3 == 0)
    table = pa.table({"f": flags, "x": pa.array(np.arange(100))}).slice(13, 50)
    expected = np.column_stack([np.arange(13, 63) % 3 == 0, np.arange(13, 63)])
    assert np.array_equal(read(table), expected)
    assert np.array_equal(read(pa.table({"f": flags}).slice(7).to_batches()[0]), (np.arange(7, 100) % 3 == 0)[:, None])


@given(st.lists(st.integers(0, 60_000), max_size=8))
def test_rechunking_does_not_move_a_cut(cuts):
    x = np.arange(120_000.0).reshape(60_000, 2)
    edges = sorted({0, len(x), *cuts})
    table = pa.concat_tables([pa.table({"a": x[i:j, 0], "b": x[i:j, 1]}) for i, j in pairwise(edges)])
    assert np.array_equal(read(table), x)


MISSING = {
    "pandas NaN": lambda: pd.DataFrame({"a": [1.0, 2.0], "b": [1.0, np.nan]}),
    "pandas NA": lambda: pd.DataFrame({"a": [1, 2], "b": pd.array([1, None], dtype="Int64")}),
    "pandas None": lambda: pd.DataFrame({"a": [1, 2], "b": pd.Series([1, None], dtype=object)}),
    "polars": lambda: pl.DataFrame({"a": [1, 2], "b": [1, None]}),
    "pyarrow": lambda: pa.table({"a": [1, 2], "b": [1.0, None]}),
    "pyarrow slice": lambda: pa.table({"a": [0, 1, 2], "b": [None, 1.0, None]}).slice(1),
}


@pytest.mark.parametrize("kind", MISSING)
def test_missing_value(kind):
    with pytest.raises(DataError, match="Input contains NaN") as caught:
        read(MISSING[kind]())
    assert (caught.value.row, caught.value.column) == (1, "b")


def text_frames():
    frame = pd.DataFrame({"name": ["u", "v"], "x": [1.0, 2.0], "day": pd.to_datetime(["2020-01-01", "2020-01-02"])})
    return [frame, pl.from_pandas(frame), pa.table(frame)]


@pytest.mark.parametrize("frame", text_frames(), ids=["pandas", "polars", "pyarrow"])
def test_columns_that_are_not_numbers(frame):
    with pytest.warns(LeftOutWarning, match="name, day") as caught:
        source = scan(frame)
    assert caught[0].filename == __file__
    assert source.left_out == ("name", "day")
    assert source.names == ("x",)
    assert scan(frame, columns="numeric").left_out == ("name", "day")
    with pytest.raises(DataError, match="does not hold numbers") as error:
        scan(frame, columns=["x", "name"])
    assert error.value.column == "name"


@pytest.mark.parametrize("kind", ["pandas", "polars", "pyarrow"])
def test_a_word_among_numbers(kind):
    frame = pd.DataFrame({"x": ["1", "2", "n/a", "4"], "y": [1, 2, 3, 4]})
    with pytest.raises(DataError, match="'n/a' is not a number") as caught:
        scan(KINDS[kind](frame))
    assert (caught.value.row, caught.value.column) == (2, "x")
    assert scan(KINDS[kind](frame), columns=["y"]).names == ("y",)


def test_names(small):
    assert scan(pd.DataFrame(small)).names is None
    with pytest.raises(DataError, match="must all be text"):
        scan(pd.DataFrame(small, columns=["a", 1, "b"]))
    with pytest.raises(DataError, match="two columns are named 'a'"):
        scan(pd.DataFrame(small, columns=["a", "b", "a"]))
    with pytest.raises(DataError, match="Close matches: 'length'"):
        scan(pd.DataFrame(small, columns=["length", "b", "c"]), columns=["lenght"])
    assert np.array_equal(read(pd.DataFrame(small), columns=[-1, 0]), small[:, [-1, 0]])


@pytest.mark.parametrize("kind", ["pandas", "polars", "pyarrow", "one-shot reader", "polars lazy"])
def test_where_and_weights(table, kind):
    frame = pd.DataFrame(table, columns=NAMES)
    frame["w"] = np.arange(len(frame))
    source = scan(KINDS[kind](frame), where="a > 0 AND w < 100000", weights="w", columns=["b", "a"])
    kept = frame[(frame.a > 0) & (frame.w < 100_000)]
    blocks = [piece.load() for piece in source.pieces()]
    assert np.array_equal(np.vstack([block.values for block in blocks]), kept[["b", "a"]])
    assert np.array_equal(np.concatenate([block.weights for block in blocks]), kept["w"])
    plain = scan(KINDS[kind](frame), weights="w")
    assert plain.names == tuple(NAMES)
    assert np.array_equal(weights(plain), frame["w"])


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"where": "zz > 0"}, "not understood"),
        ({"where": [True, False]}, "SQL text"),
        ({"weights": "zz"}, "no column 'zz'"),
        ({"weights": [1.0]}, "1 weights were given for 2 rows"),
        ({"columns": ["a", 1.5]}, "names or positions"),
    ],
)
def test_impossible_options(options, text):
    with pytest.raises(DataError, match=text):
        scan(pd.DataFrame({"a": [1.0, 2.0], "b": [1.0, 2.0]}), **options)


@pytest.mark.parametrize(
    ("frame", "text"),
    [
        (pd.DataFrame({"a": []}, dtype=float), "0 sample"),
        (pd.DataFrame(index=range(3)), "0 feature"),
        (pd.DataFrame({"a": [1j]}), "Complex data not supported"),
        (pd.DataFrame({"a": ["x"]}), "no numeric column"),
        (pd.Series([1.0, 2.0]), "Expected 2D array, got 1D array"),
        (pl.Series([1.0, 2.0]), "Expected 2D array, got 1D array"),
        (pl.DataFrame(), "0 sample"),
        (pa.table({"a": pa.array([], pa.float64())}), "0 sample"),
    ],
)
def test_refused(frame, text):
    with pytest.raises(DataError, match=text):
        scan(frame)


def test_pyarrow_is_not_needed():
    code = """
import sys
sys.modules["pyarrow"] = None
import numpy as np, pandas as pd, polars as pl
from foldwise.data import scan
frame = pd.DataFrame({"a": [1.0, 2.0], "b": pd.array([1, 2], dtype="Int64")})
for x in (frame, pl.DataFrame({"a": [1.0, 2.0], "b": [1, 2]}), "SELECT 1 AS a, 2 AS b"):
    print([piece.load().values.tolist() for piece in scan(x).pieces()])
print([piece.load().values.tolist() for piece in scan(frame, where="a > 1").pieces()])
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_fingerprint(small):
    frame = pd.DataFrame(small, columns=["a", "b", "c"])
    assert scan(frame).fingerprint() == scan(pl.from_pandas(frame)).fingerprint()
    assert scan(frame).fingerprint() != scan(frame + 1).fingerprint()
    assert scan(frame).fingerprint() != scan(frame.rename(columns={"a": "z"})).fingerprint()
