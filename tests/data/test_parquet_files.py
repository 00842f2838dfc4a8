"""Parquet columns decoded here: the same rows as DuckDB reads, whatever wrote the file, and DuckDB where that must be."""

from __future__ import annotations

import datetime
import os
import pickle

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from data_helpers import rows, weights

import foldwise as fw
from foldwise.data import scan
from foldwise.errors import DataError, SourceChangedError

RNG = np.random.default_rng(0)
N = 3000


def is_read_here(source):
    return source._page_reader() is not None


def by_duckdb(path, **options):
    """The rows as DuckDB gives them."""
    source = scan(path, **options)
    source._by_duckdb = True
    return np.vstack([piece.load().values for piece in source.pieces()])


def by_pages(path, **options):
    source = scan(path, **options)
    assert is_read_here(source)
    found = np.vstack([piece.load().values for piece in source.pieces()])
    assert not source._by_duckdb  # no page was refused
    return found


def agree(path, **options):
    found = by_pages(path, **options)
    np.testing.assert_array_equal(found, by_duckdb(path, **options))
    return found


def columns(missing=0.0, n=N):
    """A column of every type that is read here, of few and of many different values."""
    found = {}
    for kind in ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"):
        about = np.iinfo(kind)
        found[kind] = RNG.integers(about.min, about.max, n, dtype=kind, endpoint=True)
        found[f"{kind}_few"] = RNG.integers(0, 5, n).astype(kind)
    for kind in ("float32", "float64"):
        found[kind] = RNG.standard_normal(n).astype(kind)
        found[f"{kind}_few"] = RNG.integers(0, 9, n).astype(kind)
        found[f"{kind}_runs"] = np.repeat(RNG.standard_normal(-(-n // 100)), 100)[:n].astype(kind)
    found["truth"] = RNG.random(n) < 0.5
    mask = {name: RNG.random(n) < missing for name in found}
    return pa.table({name: pa.array(values, mask=mask[name]) for name, values in found.items()})


@pytest.mark.parametrize("missing", [0.0, 0.1, 0.99])
@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("compression", ["none", "snappy"])
@pytest.mark.parametrize(
    "layout",
    [
        {},
        {"row_group_size": 7},
        {"data_page_size": 256, "write_batch_size": 64},
        {"row_group_size": 1000, "use_dictionary": False, "data_page_size": 1000, "write_batch_size": 100},
        {"dictionary_pagesize_limit": 100, "write_batch_size": 50},  # a dictionary, then plain pages
    ],
)
def test_written_by_arrow(tmp_path, missing, version, compression, layout):
    path = tmp_path / "x.parquet"
    pq.write_table(columns(missing), path, compression=compression, data_page_version=version, **layout)
    agree(path, dtype=np.float64)


def test_booleans_and_bytes_apart(tmp_path):
    path = tmp_path / "x.parquet"
    table = columns(0.2).select(["float32", "float64", "truth"])
    coded = {"float32": "BYTE_STREAM_SPLIT", "float64": "BYTE_STREAM_SPLIT", "truth": "RLE"}
    pq.write_table(table, path, use_dictionary=False, column_encoding=coded, data_page_version="2.0")
    agree(path)


@pytest.mark.parametrize("options", ["", ", ROW_GROUP_SIZE 2048", ", COMPRESSION uncompressed"])
def test_written_by_duckdb(tmp_path, options):
    path, table = tmp_path / "x.parquet", columns(0.05)
    connection = duckdb.connect()
    connection.register("made", table)
    connection.execute(f"COPY made TO '{path}' (FORMAT parquet{options})")
    agree(path)


def test_single_precision_stays_single(tmp_path):
    path = tmp_path / "x.parquet"
    x = RNG.standard_normal((N, 3)).astype(np.float32)
    pq.write_table(pa.table(dict(zip("abc", x.T, strict=True))), path)
    assert scan(path).dtype == np.float32
    np.testing.assert_array_equal(agree(path), x)


def test_required_columns_and_an_empty_row_group(tmp_path):
    path = tmp_path / "x.parquet"
    schema = pa.schema([pa.field("a", pa.float64(), nullable=False), pa.field("b", pa.int32(), nullable=False)])
    with pq.ParquetWriter(path, schema) as file:
        for n in (3, 0, 5):
            file.write_table(pa.table({"a": np.arange(float(n)), "b": np.arange(n, dtype=np.int32)}, schema=schema))
    assert agree(path)[:, 1].tolist() == [0, 1, 2, 0, 1, 2, 3, 4]


def test_no_rows(tmp_path):
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table({"a": pa.array([], pa.float64())}), path)
    with pytest.raises(DataError, match=r"0 sample\(s\)"):
        scan(path)


def test_chosen_columns_and_weights(tmp_path):
    path, table = tmp_path / "x.parquet", columns()
    pq.write_table(table, path, row_group_size=500)
    source = scan(path, columns=["float64", "int8"], weights="uint8_few")
    assert is_read_here(source)
    np.testing.assert_array_equal(rows(source)[:, 1], table["int8"].to_numpy())
    np.testing.assert_array_equal(weights(source), table["uint8_few"].to_numpy())


def test_several_files(tmp_path):
    table = columns()
    for k, n in enumerate((1000, 1, 1999)):
        pq.write_table(table.slice((0, 1000, 1001)[k], n), tmp_path / f"{k}.parquet", row_group_size=300)
    found = agree(str(tmp_path / "*.parquet"))
    np.testing.assert_array_equal(found[:, 0], table["int8"].to_numpy())


def test_files_with_other_types_are_read_by_duckdb(tmp_path):
    pq.write_table(pa.table({"a": np.arange(5, dtype=np.int32)}), tmp_path / "0.parquet")
    pq.write_table(pa.table({"a": np.arange(5) + 0.5}), tmp_path / "1.parquet")
    source = scan(str(tmp_path / "*.parquet"))
    assert not is_read_here(source)
    assert rows(source)[:, 0].tolist() == [0, 1, 2, 3, 4, 0.5, 1.5, 2.5, 3.5, 4.5]


@pytest.mark.parametrize("compression", ["zstd", "gzip", "lz4"])
def test_other_compressions_are_read_by_duckdb(tmp_path, compression):
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table({"a": np.arange(5.0)}), path, compression=compression)
    assert not is_read_here(scan(path))
    assert rows(scan(path))[:, 0].tolist() == [0, 1, 2, 3, 4]


def test_what_else_is_read_by_duckdb(tmp_path):
    path = tmp_path / "x.parquet"
    made = {
        "delta": pa.array([1, 2, 3]),
        "decimal": pa.array([1, 2, 3], pa.decimal128(9, 2)),
        "x": pa.array([1.0, 2.0, 3.0]),
        "nested": [{"x": 7.0}] * 3,
        "list": [[1.0]] * 3,
        "day": [datetime.date(2020, 1, 1)] * 3,
    }
    pq.write_table(pa.table(made), path, use_dictionary=False, column_encoding={"delta": "DELTA_BINARY_PACKED"})
    for name, here in (("delta", False), ("decimal", False), ("x", True)):
        source = scan(path, columns=[name])
        assert is_read_here(source) is here
        assert rows(source)[:, 0].tolist() == [1, 2, 3]
    assert not is_read_here(scan(path, columns=["x"], where="x > 1"))
    assert not is_read_here(scan(path, columns=["x"], missing_values=["1"]))


def test_names_that_look_like_paths(tmp_path):
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table({"a, b": [1.0, 2.0], "a": [{"b": 5.0}] * 2, "é,;'": [3.0, 4.0]}), path)
    source = scan(path, columns=["a, b", "é,;'"])
    assert rows(source).tolist() == [[1, 3], [2, 4]]


def test_a_range_of_blocks_and_pieces_that_are_not_loaded(tmp_path):
    path = tmp_path / "x.parquet"
    x = RNG.standard_normal((200_000, 2))
    pq.write_table(pa.table({"a": x[:, 0], "b": x[:, 1]}), path, row_group_size=30_000, data_page_size=10_000)
    source = pickle.loads(pickle.dumps(scan(path)))
    assert is_read_here(source)
    blocks = [piece.load() for piece in source.pieces()]
    some = [piece.load() for piece in source.pieces(1, 2)]
    assert len(blocks) > 1
    assert len(some) == 1
    np.testing.assert_array_equal(some[0].values, blocks[1].values)
    every = list(source.pieces())
    for k in (1, 0):
        np.testing.assert_array_equal(every[k].load().values, blocks[k].values)
    for number, piece in enumerate(source.pieces()):
        if number == 1:
            np.testing.assert_array_equal(piece.load().values, blocks[1].values)


@pytest.mark.parametrize("n_threads", [1, 2, 3])
def test_same_bits_from_file_and_array(tmp_path, n_threads):
    path = tmp_path / "x.parquet"
    x = RNG.standard_normal((150_000, 7)).astype(np.float32)
    pq.write_table(pa.table(dict(zip("abcdefg", x.T, strict=True))), path, row_group_size=40_000, data_page_size=30_000)
    assert is_read_here(scan(path))
    for model, name in (
        (fw.PCA(3, n_threads=n_threads), "components_"),
        (fw.KMeans(3, random_state=0, tol=0.1, n_threads=n_threads), "cluster_centers_"),
    ):
        from_file = getattr(model.fit(path), name)
        np.testing.assert_array_equal(from_file, getattr(model.fit(x), name))


def damaged(path, column, group=0, *, at=20, by=b"\xff" * 40):
    """Overwrite a part of a page of one column."""
    about = pq.ParquetFile(path).metadata.row_group(group).column(column)
    data = bytearray(path.read_bytes())
    start = (about.dictionary_page_offset or about.data_page_offset) + at
    data[start : start + len(by)] = by
    path.write_bytes(data)


def test_a_damaged_page_is_an_error_that_names_the_file(tmp_path):
    path = tmp_path / "x.parquet"
    x = np.repeat(np.arange(100_000.0), 2).reshape(-1, 2)
    pq.write_table(pa.table({"a": x[:, 0], "b": x[:, 1]}), path, row_group_size=20_000, use_dictionary=False)
    damaged(path, 1, group=3, at=0)
    source = scan(path)
    assert is_read_here(source)
    with pytest.raises(DataError, match="cannot be read") as error:
        rows(source)
    assert error.value.where == str(path)
    for n_threads in (1, 2):
        with pytest.raises(DataError, match="cannot be read"):
            fw.PCA(1, n_threads=n_threads).fit(path)


def test_pages_refused_half_way_are_read_by_duckdb(tmp_path, monkeypatch):
    path = tmp_path / "x.parquet"
    x = RNG.standard_normal((200_000, 3))
    pq.write_table(pa.table(dict(zip("abc", x.T, strict=True))), path)
    source = scan(path)

    class Refusing:
        def __init__(self, reader):
            self.reader, self.left = reader, 1

        def range(self, start, stop):
            return self.reader.range(start, stop)

        def read(self, asked):
            self.left -= 1
            if self.left < 0:
                raise RuntimeError("not understood")
            return self.reader.read(asked)

    made = source._page_reader
    monkeypatch.setattr(source, "_page_reader", lambda: Refusing(made()))
    np.testing.assert_array_equal(rows(source), x)
    assert source._by_duckdb


def test_missing_and_infinite_name_their_place(tmp_path):
    for value, what in ((None, "missing"), (np.inf, "infinit")):
        path = tmp_path / "x.parquet"
        values = np.zeros(50_000).tolist()
        values[41_234] = value
        pq.write_table(pa.table({"a": np.arange(50_000.0), "b": values}), path, row_group_size=10_000)
        assert is_read_here(scan(path))
        with pytest.raises(DataError, match=f"(?i){what}") as error:
            fw.PCA(1).fit(path)
        assert (error.value.where, error.value.row, error.value.column) == (str(path), 41_234, "b")


def test_any_byte_changed(tmp_path):
    """What is read of a damaged file is what DuckDB reads of it; where DuckDB refuses, an error says so."""
    path = tmp_path / "x.parquet"
    table = columns(0.1, 300).select(["int32_few", "float32", "float64_runs"])
    pq.write_table(table, path, row_group_size=150, write_page_index=False)
    good = path.read_bytes()
    footer = len(good) - 8 - int.from_bytes(good[-8:-4], "little")
    for at in RNG.choice(footer, 60, replace=False):
        bad = bytearray(good)
        bad[at] ^= int(RNG.integers(1, 256))
        path.write_bytes(bad)
        try:
            expected = by_duckdb(path)
        except DataError:
            expected = None
        try:
            found = np.vstack([piece.load().values for piece in scan(path).pieces()])
        except DataError:
            assert expected is None
            continue
        if expected is not None:
            np.testing.assert_array_equal(found, expected)


def test_a_file_changed_while_the_last_pieces_are_read(tmp_path):
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table({"a": RNG.normal(size=N), "b": RNG.normal(size=N)}), path)
    source = scan(path)
    assert is_read_here(source)
    pieces = list(source.pieces())  # all are handed out, and the file was checked for the last time
    os.utime(path, ns=(1, 1))
    with pytest.raises(SourceChangedError, match="changed"):
        pieces[-1].load()


def test_only_what_the_reader_refuses_is_read_by_duckdb(tmp_path, monkeypatch):
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table({"a": RNG.normal(size=N)}), path)
    source = scan(path)

    def broken(start, parts):
        raise RuntimeError("not a page")

    monkeypatch.setattr(source, "load", broken)
    with pytest.raises(RuntimeError, match="not a page"):
        next(source.pieces()).load()
    assert not source._by_duckdb
