from __future__ import annotations

import os

import numpy as np
import pytest
from data_helpers import rows

from foldwise.data import scan
from foldwise.data.write import open_writer
from foldwise.errors import DataError, OutputError


@pytest.mark.parametrize("name", ["x.parquet", "x.csv", "x.csv.gz", "x.tsv", "x.jsonl", "x.npy"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_what_is_written_is_read_back(tmp_path, table, name, dtype):
    x = table[:20_000].astype(dtype)
    names = ["a", "B", 'b "c"', "d, f", "e"]
    with open_writer(tmp_path / name, names, dtype) as writer:
        for start in range(0, len(x), 7001):
            writer.write(x[start : start + 7001])
    assert writer.rows == len(x)
    assert os.listdir(tmp_path) == [name]
    source = scan(tmp_path / name)
    assert np.array_equal(rows(source).astype(dtype), x)
    if name.endswith((".csv", ".csv.gz", ".tsv", ".npy")):
        assert source.names == (None if name.endswith("npy") else tuple(names))


@pytest.mark.parametrize("name", ["x.parquet", "x.csv", "x.npy"])
def test_no_rows_is_a_file_too(tmp_path, name):
    with open_writer(tmp_path / name, ["a", "b"], np.float64):
        pass
    with pytest.raises(DataError, match="0 sample"):
        scan(tmp_path / name)


@pytest.mark.parametrize("name", ["x.parquet", "x.csv", "x.npy"])
def test_an_error_leaves_the_old_file(tmp_path, small, name):
    path = tmp_path / name
    path.write_text("old")

    def interrupted():
        with open_writer(path, ["a", "b", "c"], np.float64) as writer:
            writer.write(small)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == [name]


def test_the_file_appears_only_at_the_end(tmp_path, small):
    path = tmp_path / "x.npy"
    with open_writer(path, ["a", "b", "c"], np.float64) as writer:
        writer.write(small)
        assert not path.exists()
    assert np.array_equal(np.load(path), small)


def test_refused(tmp_path, small):
    with pytest.raises(DataError, match="unknown file format"):
        open_writer(tmp_path / "x.xlsx", ["a"], np.float64)
    with (
        pytest.raises(OutputError, match=r"x\.csv: cannot be written: the folder .*no does not exist"),
        open_writer(tmp_path / "no" / "x.csv", ["a"], np.float64),
    ):
        pass
    with (
        pytest.raises(ValueError, match="do not fit"),
        open_writer(tmp_path / "x.npy", ["a"], np.float64) as writer,
    ):
        writer.write(small)
    with pytest.raises(DataError, match="'A'"):
        open_writer(tmp_path / "x.csv", ["a", "A"], np.float64)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("name", ["x.parquet", "x.csv", "x.jsonl", "x.npy"])
def test_records_are_columns_of_their_own_kinds(tmp_path, name):
    dtype = np.dtype([("cluster", np.int32), ("distance", np.float32)])
    records = np.zeros(500, dtype)
    records["cluster"], records["distance"] = np.arange(500) % 7, np.arange(500) / 3
    with open_writer(tmp_path / name, dtype.names, dtype) as writer:
        writer.write(records[:301])
        writer.write(records[301:])
    if name.endswith("npy"):
        assert np.load(tmp_path / name).tobytes() == records.tobytes()
        return
    source = scan(tmp_path / name)
    assert source.names == ("cluster", "distance")
    np.testing.assert_array_equal(rows(source)[:, 0], records["cluster"])
    np.testing.assert_array_equal(rows(source)[:, 1].astype(np.float32), records["distance"])
    with (
        pytest.raises(ValueError, match="shape"),
        open_writer(tmp_path / name, dtype.names, dtype) as writer,
    ):
        writer.write(np.zeros((3, 2)))
