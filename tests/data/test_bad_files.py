"""Bad input is an error that names the file, the row and the column."""

from __future__ import annotations

import gzip
import pickle

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from data_helpers import read

import foldwise as fw
from foldwise.data import scan
from foldwise.errors import DataError, MissingFileError


@pytest.fixture
def put(tmp_path):
    def write(name, content):
        path = tmp_path / name
        data = content if isinstance(content, bytes) else content.encode()
        path.write_bytes(gzip.compress(data, 1) if name.endswith(".gz") else data)
        return path

    return write


def refused(x, *parts, where=None, row=None, column=None, **options):
    with pytest.raises(DataError) as caught:
        read(x, **options)
    error = caught.value
    for part in parts:
        assert part in str(error), str(error)
    if where is not None:
        assert error.where == str(where)
    assert (error.row, error.column) == (row, column)
    return error


@pytest.mark.parametrize("name", ["x.csv", "x.csv.gz"])
def test_a_word_in_row_1_000_001(put, name):
    path = put(name, "a,b\n" + "1,2\n" * 1_000_000 + "3,oops\n" + "1,2\n" * 5)
    refused(path, "'oops' is not a number", "line 1000002", "columns=", where=path, row=1_000_000, column="b")


def test_a_word_within_the_sniffed_rows(put):
    path = put("x.csv", "a,b\n" + "1,2\n" * 5 + "n/a,3\n")
    refused(path, "Input contains NaN", "missing='model'", where=path, row=5, column="a")
    path = put("y.csv", "a,b\n" + "1,2\n" * 25 + "n/a,3\n" + "oops,3\n")
    refused(path, "'oops' is not a number", "(line 28)", where=path, row=26, column="a")
    assert scan(path, columns=["b"]).names == ("b",)


def test_a_word_in_the_second_file(put, tmp_path):
    put("a.csv", "x\n1\n2\n")
    path = put("b.csv", "x\n" + "3\n" * 30_000 + "word\n")
    refused(str(tmp_path / "*.csv"), "'word'", where=path, row=30_000, column="x")


def test_a_text_column_that_was_asked_for(put):
    path = put("x.csv", "a,name\n1,u\n2,v\n")
    refused(path, "'u' is not a number", where=path, row=0, column="name", columns=["a", "name"])
    frame = put("x.parquet", b"")
    pd.DataFrame({"name": ["7", "v"]}).to_parquet(frame)
    refused(frame, "'v' is not a number", where=frame, row=1, column="name", columns=["name"])


@pytest.mark.parametrize(
    ("value", "message"),
    [("", "missing value"), ("nan", "Input contains NaN"), ("-inf", "Input contains infinity")],
)
def test_missing_and_infinite_in_csv(put, value, message):
    path = put("x.csv", "a,b\n" + "1,2\n" * 50_000 + f"1,{value}\n")
    refused(path, message, where=path, row=50_000, column="b")
    assert read(path, where="coalesce(isfinite(b), false)").shape == (50_000, 2)


def test_missing_and_infinite_in_parquet(tmp_path):
    for value, message in (
        (None, "missing value"),
        (np.nan, "Input contains NaN"),
        (np.inf, "Input contains infinity"),
    ):
        pd.DataFrame({"a": [1.0, 2.0]}).to_parquet(tmp_path / "a.parquet")
        pq.write_table(pa.table({"a": [1.0, value]}), tmp_path / "b.parquet")
        refused(str(tmp_path / "*.parquet"), message, where=tmp_path / "b.parquet", row=1, column="a")


def test_json(put):
    lines = '{"a": 1, "b": 2}\n' * 30_000
    path = put("x.jsonl", lines + '{"a": "bad", "b": 2}\n')
    refused(path, "'bad' is not a number", "line 30001", where=path, row=30_000, column="a")
    path = put("y.jsonl", lines + '{"a": 1}\n')
    refused(path, "missing value", where=path, row=30_000, column="b")
    path = put("z.jsonl", '{"a": 1}\n' * 4 + '{"a": "n/a"}\n')
    refused(path, "'n/a' is not a number", where=path, row=4, column="a")
    path = put("w.jsonl", lines + "{oops\n")
    refused(path, "not JSON", where=path, row=30_000)


def test_sql_and_relations():
    refused("SELECT NULL::DOUBLE a, 1 b", "Input contains NaN", "SQL query", row=0, column="a")
    refused("SELECT * FROM nowhere", "nowhere", where="SQL query")
    refused("SELECT 1 a, 2 a", "two columns are named 'a'", column="a")
    refused("SELECT 1 a WHERE false", "0 sample(s)")
    refused("SELECT 'x' a", "no numeric column")


@pytest.mark.parametrize(
    ("name", "content", "parts"),
    [
        ("x.csv", "", ["empty"]),
        ("x.csv", "a,b\n", ["0 sample(s)", "minimum of 1 is required"]),
        ("x.csv.gz", "", ["0 sample(s)"]),
        ("x.jsonl", "", ["empty"]),
        ("x.csv", "name\nu\nv\n", ["no numeric column", "'name'"]),
        ("x.csv", "a,b\n" + "1,2\n" * 30_000 + "1,2,3\n", ["3 cells instead of 2", "line 30002"]),
        ("x.csv", "a,b\né,ü\nö,ä\n".encode() + b"3,\xe9\n", ["not UTF-8", "line 4", "encoding="]),
        ("x.parquet", b"PAR1 and nothing else", ["not a Parquet file, or truncated"]),
        ("x.xlsx", "z", ["not a spreadsheet, or damaged"]),
        ("x.zip.gz", "z", ["unknown file format", ".parquet", ".npy"]),
        ("x", b"z\0\1", ["unknown file format"]),
    ],
)
def test_unusable_files(put, name, content, parts):
    path = put(name, content)
    refused(path, *parts, where=path)


@pytest.mark.parametrize(
    ("content", "row", "parts"),
    [
        (b"a,b\n1,2\n3\n4,5\n", 1, ["missing value", "line 3"]),
        (b"a,b\n" + b"1,2\n" * 30_000 + b"3\n", 30_000, ["missing value", "line 30002"]),
        (b"a,b\n1,2\n1,2\n3,\xff\xe9\n", 2, ["'\u00ff\u00e9' is not a number", "line 4"]),
        (b"a,b\n" + b"1,2\n" * 50_000 + b"3,\xe9\n", 50_000, ["'\u00e9' is not a number", "line 50002"]),
    ],
)
def test_short_rows_and_other_encodings(put, content, row, parts):
    path = put("x.csv", content)
    refused(path, *parts, where=path, row=row, column="b")


def test_truncated_parquet(tmp_path, table):
    path = tmp_path / "x.parquet"
    pd.DataFrame(table).rename(columns=str).to_parquet(path)
    path.write_bytes(path.read_bytes()[:-1000])
    refused(path, "truncated", where=path)


def test_damaged_parquet(tmp_path, table):
    path = tmp_path / "x.parquet"
    pd.DataFrame(table).rename(columns=str).to_parquet(path)
    content = bytearray(path.read_bytes())
    content[4:4000] = bytes(3996)
    path.write_bytes(content)
    refused(path, "Parquet", where=path)


def test_duplicate_names(put):
    path = put("x.csv", "a,b,a\n1,2,3\n")  # the file cannot be helped, so the second gets another name
    assert scan(path).names == ("a", "b", "a_2")
    path = put("x.parquet", b"")
    pq.write_table(pa.table([[1], [2]], names=["a", "a"]), path)
    refused(path, "two columns are named 'a'", where=path, column="a")


@pytest.mark.parametrize(
    ("second", "column"),
    [("a,c\n1,2\n", "b"), ("a,b,c\n1,2,3\n", "c"), ("b,a\n1,2\n", "b"), ("a,b\n1,u\n", "b")],
)
def test_mixed_csv_schemas(put, tmp_path, second, column):
    first, other = put("a.csv", "a,b\n1,2\n"), put("b.csv", second)
    refused(str(tmp_path / "*.csv"), str(first), "same columns", where=other, column=column)


def test_mixed_parquet_schemas(tmp_path):
    pd.DataFrame({"a": [1], "b": [2]}).to_parquet(tmp_path / "a.parquet")
    pd.DataFrame({"a": [1], "c": [2]}).to_parquet(tmp_path / "b.parquet")
    refused(str(tmp_path / "*.parquet"), str(tmp_path / "a.parquet"), where=tmp_path / "b.parquet", column="b")


def test_missing_files_and_folders(tmp_path, put):
    for path in (tmp_path / "no.csv", str(tmp_path / "no*.csv"), [str(tmp_path / "no.csv")]):
        with pytest.raises(FileNotFoundError) as caught:
            scan(path)
        assert isinstance(caught.value, MissingFileError)
        assert isinstance(pickle.loads(pickle.dumps(caught.value)), MissingFileError)
    refused(tmp_path, "folder without files", where=tmp_path)
    put("a.csv", "a\n1\n")
    refused(tmp_path, "this is a folder", "pattern", "*.csv", where=tmp_path)
    put("a.jsonl", '{"a": 1}\n')
    refused(str(tmp_path / "a*"), "different formats")
    refused("https://example.org/x.csv", "local files", where="https://example.org/x.csv")


def test_options(put):
    path = put("x.csv", "length,b\n1,2\n")
    refused(path, "Close matches: 'length'", where=path, columns=["lenght"])
    with pytest.raises(DataError, match="not understood"):
        scan(path, where="zz > 0")
    with pytest.raises(DataError, match="SQL text"):
        scan(path, where=[True])
    with pytest.raises(DataError, match="0 sample"):
        read(path, where="b > 5")


@pytest.mark.parametrize("word", ["TRUE", "false"])
def test_truth_value_among_numbers(put, word):
    rows = [f"{i}.5,{i}" for i in range(40)]
    rows[30] = f"{word},1"
    path = put("x.csv", "\n".join(["a,b", *rows]) + "\n")
    refused(path, f"'{word}' is not a number", "line 32", where=path, row=30, column="a")


def test_a_condition_that_is_not_understood_takes_one_line(tmp_path):
    (tmp_path / "x.csv").write_text("a,b\n1,2\n3,4\n")
    for where, told in (("a >", "syntax error"), ("zz > 1", r'"zz" not found.*Candidate bindings')):
        with pytest.raises(DataError, match=rf"is not understood: .*{told}.*such as: age >= 18") as caught:
            fw.scan(tmp_path / "x.csv", where=where)
        assert "\n" not in str(caught.value)


def test_what_is_no_npy_file_ends_with_advice(tmp_path):
    (tmp_path / "x.npy").write_bytes(b"\x93NUMPY junk")
    with pytest.raises(DataError, match=r"not a \.npy file.*numpy\.save"):
        fw.scan(tmp_path / "x.npy")


def test_one_row_is_told_from_equal_rows(tmp_path):
    (tmp_path / "x.csv").write_text("a,b\n1,2\n")
    with pytest.raises(DataError, match="there is one row, or all are equal"):
        fw.prepare(tmp_path / "x.csv")
