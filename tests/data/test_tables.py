from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor

import duckdb
import numpy as np
import pandas as pd
import pytest
from data_helpers import read, rows, weights

from foldwise.data import scan
from foldwise.errors import DataError, LeftOutWarning, SourceChangedError

NAMES = tuple("abcde")


@pytest.fixture(scope="session")
def folder(tmp_path_factory, table):
    """The same rows in every format."""
    here = tmp_path_factory.mktemp("tables")
    pd.DataFrame(table, columns=NAMES).to_parquet(here / "t.parquet")
    rows = duckdb.sql(f"FROM '{here}/t.parquet'").to_arrow_table()
    for name, options in (
        ("t.csv", "HEADER"),
        ("t.csv.gz", "HEADER, COMPRESSION gzip"),
        ("t.tsv", "HEADER, DELIMITER '\t'"),
        ("t.txt", "HEADER, DELIMITER ';'"),
        ("t.jsonl", "FORMAT json"),
        ("t.json", "FORMAT json, ARRAY true"),
        ("t.ndjson.gz", "FORMAT json, COMPRESSION gzip"),
    ):
        csv = "" if "FORMAT" in options else "FORMAT csv, "
        duckdb.sql(f"COPY rows TO '{here}/{name}' ({csv}{options})")
    for k in range(3):
        part = rows.slice(k * 40_000, 40_000)
        for form in ("parquet", "csv"):
            duckdb.sql(f"COPY part TO '{here}/part{k}.{form}' (FORMAT {form})")
        assert len(part)
    return here


@pytest.mark.parametrize(
    "name",
    [
        "t.csv",
        "t.csv.gz",
        "t.tsv",
        "t.txt",
        "t.parquet",
        "t.jsonl",
        "t.json",
        "t.ndjson.gz",
        "part*.parquet",
        "part*.csv",
    ],
)
def test_every_format(folder, table, name):
    source = scan(str(folder / name))
    assert source.names == NAMES
    assert source.slow
    for _ in range(2):
        assert np.array_equal(rows(source), table)


def test_lists_relations_and_sql(folder, table):
    assert np.array_equal(read([folder / "part0.csv", folder / "part1.csv", folder / "part2.csv"]), table)
    assert np.array_equal(read(duckdb.sql(f"FROM '{folder}/t.parquet'")), table)
    assert np.array_equal(read(f"  select * from '{folder}/t.parquet'"), table)
    assert np.array_equal(read(f"WITH t AS (FROM '{folder}/t.csv') SELECT b, a FROM t"), table[:, [1, 0]])


@pytest.mark.parametrize("size", [1, 997, 200_000])
def test_row_groups_do_not_move_a_cut(tmp_path, table, size):
    count = 1000 if size == 1 else len(table)
    pd.DataFrame(table[:count], columns=NAMES).to_parquet(tmp_path / "x.parquet", row_group_size=size)
    source = scan(tmp_path / "x.parquet")
    assert source.n_rows == count
    assert np.array_equal(rows(source), table[:count])


def test_pieces_in_threads(folder, table):
    with ThreadPoolExecutor(3) as pool:
        blocks = list(pool.map(lambda piece: piece.load(), scan(folder / "t.parquet").pieces()))
    assert np.array_equal(np.vstack([block.values for block in blocks]), table)


def test_two_passes_at_once_and_an_unfinished_one(folder, table):
    source = scan(folder / "t.parquet")
    first, second = source.pieces(), source.pieces()
    assert np.array_equal(next(first).load().values, next(second).load().values)
    first.close()
    second.close()
    assert np.array_equal(rows(source), table)


@pytest.mark.parametrize("name", ["t.csv", "t.parquet", "t.jsonl"])
def test_columns_where_and_weights(folder, table, name):
    kept = table[table[:, 0] > 0.5]
    assert np.array_equal(read(folder / name, columns=["c", "a"], where="a > 0.5"), kept[:, [2, 0]])
    assert np.array_equal(read(folder / name, columns=[3, -1], where="a > 0.5"), kept[:, [3, -1]])
    given = scan(folder / name, weights=np.arange(len(table)))
    assert np.array_equal(weights(given), np.arange(len(table)))
    positive = scan(folder / name, weights="a", where="a >= 0")
    assert positive.names == NAMES[1:]
    assert np.array_equal(weights(positive), table[table[:, 0] >= 0][:, 0])


@pytest.mark.parametrize("name", ["t.csv", "t.parquet"])
def test_bad_weights(folder, table, name):
    for count in (3, len(table) + 1):
        with pytest.raises(DataError, match=f"{count} weights were given for {len(table)} rows"):
            rows(scan(folder / name, weights=np.ones(count)))
    with pytest.raises(DataError, match="not a finite number of at least 0") as caught:
        rows(scan(folder / name, weights="a"))
    assert (caught.value.row, caught.value.column) == (np.flatnonzero(table[:, 0] < 0)[0], "a")
    with pytest.raises(DataError, match="all weights are zero"):
        scan(folder / name, weights="a", where="a < 0")


def test_types():
    kinds = ("TINYINT", "UBIGINT", "DECIMAL(9,3)", "HUGEINT", "FLOAT", "DOUBLE")
    columns = [f"{k + 1}::{kind} AS c{k}" for k, kind in enumerate(kinds)]
    assert np.array_equal(read(f"SELECT {', '.join(columns)}, true AS b"), [[1, 2, 3, 4, 5, 6, 1]])
    assert np.array_equal(read("SELECT 1.25::DECIMAL(9,3) a, -0.1::DECIMAL(9,3) b"), [[1.25, -0.1]])
    assert scan("SELECT 1::FLOAT a, 2::FLOAT b").dtype == np.float32
    assert scan("SELECT 1::FLOAT a, 2 b").dtype == np.float64
    assert scan("SELECT 1::FLOAT a, 2 b", columns="a").dtype == np.float32
    assert read("SELECT 1.5 a", dtype=np.float32).dtype == np.float32


def test_wider_numbers_in_a_later_file_are_not_rounded(tmp_path):
    pd.DataFrame({"x": [1, 2]}).to_parquet(tmp_path / "a.parquet")
    pd.DataFrame({"x": [0.5]}).to_parquet(tmp_path / "b.parquet")
    assert np.array_equal(read(str(tmp_path / "*.parquet")), [[1], [2], [0.5]])


def test_fractions_after_the_sniffed_rows(tmp_path):
    (tmp_path / "x.csv").write_text("a,b\n" + "1,2\n" * 30_000 + '1.5,"2"\n')
    assert np.array_equal(read(tmp_path / "x.csv")[-1], [1.5, 2])


def test_without_a_header(tmp_path):
    (tmp_path / "x.csv").write_text("1,2\n3,4\n")
    assert scan(tmp_path / "x.csv").names is None
    assert np.array_equal(read(tmp_path / "x.csv"), [[1, 2], [3, 4]])


def test_names_keep_their_case_and_signs(tmp_path):
    (tmp_path / "x.csv").write_text('a,A,"b ""c"", d",\n1,2,3,4\n')
    source = scan(tmp_path / "x.csv")
    assert source.names[:3] == ("a", "A", 'b "c", d')
    assert np.array_equal(read(tmp_path / "x.csv"), [[1, 2, 3, 4]])


def test_left_out(tmp_path):
    (tmp_path / "x.csv").write_text("name,x,day\nu,1,2020-01-01\nv,2,2020-01-02\n")
    with pytest.warns(LeftOutWarning, match="name, day") as caught:
        source = scan(tmp_path / "x.csv")
    assert caught[0].filename == __file__
    assert (source.names, source.left_out) == (("x",), ("name", "day"))
    assert np.array_equal(read(tmp_path / "x.csv", columns="numeric", where="day > DATE '2020-01-01'"), [[2]])


def test_changed_between_passes(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("a\n1\n")
    source = scan(path)
    rows(source)
    path.write_text("a\n1\n2\n")
    os.utime(path, ns=(1, 1))
    with pytest.raises(SourceChangedError, match="changed"):
        rows(source)
    path.unlink()
    with pytest.raises(SourceChangedError):
        rows(source)


def test_fingerprint(folder):
    plain = scan(folder / "t.csv").fingerprint()
    assert "t.csv" in plain
    assert str(folder) not in plain
    assert plain == scan(folder / "t.csv").fingerprint()
    assert plain != scan(folder / "t.csv", columns=["a"]).fingerprint()
    assert plain != scan(folder / "t.csv", where="a > 0").fingerprint()
    assert scan("SELECT 1 a").fingerprint() != scan("SELECT 2 a").fingerprint()
