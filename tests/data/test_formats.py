"""Files of every format: each cell as another reader gives it, what is chosen and told, and where data come from."""

from __future__ import annotations

import datetime as dt
import io
import json
import os
import pickle
import sqlite3
import subprocess
import sys
import threading
import zipfile
from functools import partial

import data_helpers
import duckdb
import numpy as np
import openpyxl
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

import foldwise as fw
from foldwise.data.reading import Reading
from foldwise.data.tables import open_table
from foldwise.errors import DataError, MissingDependencyError


@pytest.fixture
def messy(shared_data):
    folder = shared_data / "messy"
    if not folder.is_dir():
        pytest.skip("the messy tables are not here")
    return folder


def cells(table):
    """All cells, by column; NaN and NULL alike are None."""
    rows = table.relation().fetchall()
    columns = [[None if value != value else value for value in column] for column in zip(*rows, strict=True)]
    return dict(zip([column.name for column in table.columns], columns, strict=True))


def said(table, topic):
    return " ".join(note.text for note in table.notes if note.topic == topic)


def test_a_sheet_with_titles_beside_an_empty_column(messy):
    table = open_table(messy / "two_sheets.xlsx", Reading(sheet="Stations"))
    sheet = openpyxl.load_workbook(messy / "two_sheets.xlsx")["Stations"]
    wanted = [[cell.value for cell in row] for row in sheet["B5:E17"]]
    found = cells(table)
    assert list(found) == wanted[0]
    for column, values in zip(found.values(), zip(*wanted[1:], strict=True), strict=True):
        assert column == [value.date() if isinstance(value, dt.datetime) else value for value in values]
    assert [column.type for column in table.columns] == ["VARCHAR", "BIGINT", "VARCHAR", "DATE"]
    assert "Stations of the network" in said(table, "title-rows")
    assert not said(table, "several-sheets")


def test_a_sheet_with_merged_names_and_a_total(messy):
    table = open_table(messy / "two_sheets.xlsx")
    sheet = openpyxl.load_workbook(messy / "two_sheets.xlsx")["Readings"]
    wanted = [[cell.value for cell in row] for row in sheet["A5:E52"]]
    found = cells(table)
    assert list(found) == ["day", "station", "temperature min", "temperature max", "rain"]
    for name, values in zip(found, zip(*wanted, strict=True), strict=True):
        if name == "day":
            assert found[name] == [value.date() for value in values]
        elif name == "station":
            assert found[name] == list(values)
        else:
            assert found[name] == [None if value in (None, "n/a") else float(value) for value in values]
    assert "Stations" in said(table, "several-sheets")
    assert "Readings" in said(table, "several-sheets")
    assert "Total" in said(table, "total-row")
    assert said(table, "merged-cells")
    assert "temperature max" in said(table, "mixed-types")
    source = fw.scan(messy / "two_sheets.xlsx", columns=["temperature min", "temperature max"])
    expected = [[float(row[2]), float(row[3])] for row in wanted]
    np.testing.assert_array_equal(data_helpers.rows(source), expected)


@pytest.mark.parametrize("name", ["customers", "orders", "spending"])
def test_sqlite(messy, name):
    before = set(os.listdir(messy))
    table = open_table(messy / "shop.sqlite", Reading(table=name))
    rows = sqlite3.connect(messy / "shop.sqlite").execute(f"SELECT * FROM {name}")
    names = [one[0] for one in rows.description]
    wanted = dict(zip(names, map(list, zip(*rows.fetchall(), strict=True)), strict=True))
    if name == "orders":
        wanted["items"] = [int(value) for value in wanted["items"]]
        assert "items" in said(table, "mixed-types")
    assert cells(table) == wanted
    assert not said(table, "several-tables")
    assert set(os.listdir(messy)) == before  # nothing is left beside the database


def test_the_largest_table_of_a_database(messy):
    table = open_table(messy / "shop.sqlite")
    assert table.n_rows == 130
    assert all(word in said(table, "several-tables") for word in ("customers", "orders", "spending"))
    with pytest.raises(DataError, match=r"no table 'nothing'.*'customers', 'orders', 'spending'"):
        open_table(messy / "shop.sqlite", Reading(table="nothing"))
    np.testing.assert_array_equal(data_helpers.read(messy / "shop.sqlite", columns=["items"])[:3, 0], [4.0, 5.0, 6.0])


def test_duckdb(messy):
    table = open_table(messy / "lab.duckdb")
    rows = duckdb.connect(str(messy / "lab.duckdb"), read_only=True).execute("FROM samples")
    names = [one[0] for one in rows.description]
    assert cells(table) == dict(zip(names, map(list, zip(*rows.fetchall(), strict=True)), strict=True))
    assert "tags" in said(table, "nested")
    source = fw.scan(messy / "lab.duckdb", columns=["price", "passed"], where="value > 0.5")
    frame = duckdb.connect(str(messy / "lab.duckdb"), read_only=True).execute("FROM samples WHERE value > 0.5").df()
    np.testing.assert_array_equal(data_helpers.rows(source), frame[["price", "passed"]].astype(float))


@pytest.mark.parametrize("name", ["penguins.feather", "planets.arrow", "types.parquet"])
def test_arrow_and_parquet(messy, name):
    if name == "penguins.feather":
        wanted = pa.feather.read_table(messy / name)
    elif name == "planets.arrow":
        wanted = pa.ipc.open_stream(messy / name).read_all()
    else:
        wanted = pq.read_table(messy / name)
    table = open_table(messy / name)
    found = cells(table)
    assert list(found) == wanted.column_names
    for column in wanted.column_names:
        values = [None if value != value else value for value in wanted[column].to_pylist()]
        if column == "when":  # Python calls the hour that comes twice unequal to itself in another zone
            assert all(one.tzinfo is not None for one in found[column])
            found[column], values = ([one.astimezone(dt.UTC) for one in part] for part in (found[column], values))
        assert found[column] == values, column
    if name == "types.parquet":
        assert "point" in said(table, "nested")
        assert "parts" in said(table, "nested")


def test_json_with_keys_that_come_and_go(messy):
    lines = [json.loads(line) for line in (messy / "missing_keys.jsonl").read_text().splitlines() if line.strip()]
    table = open_table(messy / "missing_keys.jsonl")
    found = cells(table)
    assert set(found) == set().union(*lines)
    for name in found:
        wanted = [line.get(name) for line in lines]
        assert found[name] == [float(value) if name == "code" else value for value in wanted], name
    assert "gps" in said(table, "nested")


def test_a_key_far_beyond_the_sample_of_a_large_file(tmp_path, monkeypatch):
    monkeypatch.setattr("foldwise.data.duckdb_sql._SMALL", 0)
    path = tmp_path / "x.jsonl"
    with path.open("w") as file:
        for i in range(30_000):
            file.write(json.dumps({"a": i}) + "\n")
        file.write('{"a": 1, "late": 2.5}\n')
    table = open_table(path)
    assert [column.name for column in table.columns] == ["a", "late"]
    assert table.relation().filter("late IS NOT NULL").fetchall() == [(1.0, 2.5)]


def test_values_far_beyond_the_sample_of_a_large_file(tmp_path, monkeypatch):
    monkeypatch.setattr("foldwise.data.duckdb_sql._SMALL", 0)
    lines = [json.dumps({"a": i, "late": i if i > 29_000 else None}) for i in range(30_000)]
    (tmp_path / "x.jsonl").write_text("\n".join(lines))
    assert [column.type for column in open_table(tmp_path / "x.jsonl").columns] == ["DOUBLE", "DOUBLE"]


def test_one_list_of_objects_and_zstd(tmp_path):
    rows = [{"a": 1, "b": None}, {"a": 2, "b": 3.5, "c": [1]}]
    (tmp_path / "x.json").write_text(json.dumps(rows))
    assert cells(open_table(tmp_path / "x.json")) == {"a": [1.0, 2.0], "b": [None, 3.5], "c": [None, [1]]}
    duckdb.execute(f"COPY (SELECT 1.5 AS a, 'x' AS s) TO '{tmp_path / 'x.jsonl.zst'}' (FORMAT json, COMPRESSION zstd)")
    assert cells(open_table(tmp_path / "x.jsonl.zst")) == {"a": [1.5], "s": ["x"]}


def test_npz(messy):
    with np.load(messy / "arrays.npz") as arrays:
        wanted, names = arrays["X"], list(arrays["feature_names"])
    table = open_table(messy / "arrays.npz")
    found = cells(table)
    assert list(found) == names
    for name, column in zip(names, wanted.T, strict=True):
        assert found[name] == [None if np.isnan(value) else value for value in column]
    assert all(word in said(table, "several-arrays") for word in ("X", "y", "feature_names"))
    single = open_table(messy / "arrays.npz", Reading(table="y"))
    assert single.n_rows == 150


@pytest.mark.parametrize("dtype", ["f4", "f8", ">f8", "i2", "?", "f2"])
@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_arrays_of_any_number(tmp_path, dtype, save):
    array = np.asfortranarray(np.arange(12).reshape(4, 3) % 5).astype(dtype)
    save(tmp_path / "x.npz", array)
    source = fw.scan(tmp_path / "x.npz")
    assert source.dtype == (np.float32 if dtype in ("f4", "f2") else np.float64)
    np.testing.assert_array_equal(data_helpers.rows(source), array.astype(float))


def test_archives_that_are_no_table(tmp_path):
    import scipy.sparse

    scipy.sparse.save_npz(tmp_path / "s.npz", scipy.sparse.eye_array(3, format="csr"))
    with pytest.raises(DataError, match="load_npz"):
        fw.scan(tmp_path / "s.npz")
    np.savez(tmp_path / "v.npz", a=np.arange(3.0), b=np.arange(3), c=np.array(["x", "y", "z"]))
    assert cells(open_table(tmp_path / "v.npz")) == {"a": [0.0, 1.0, 2.0], "b": [0, 1, 2], "c": ["x", "y", "z"]}
    np.savez(tmp_path / "o.npz", np.array([[None, 1]], dtype=object))
    with pytest.raises(DataError, match=r"o\.npz"):
        fw.scan(tmp_path / "o.npz")
    np.savez(tmp_path / "d.npz", a=np.arange(3.0), b=np.arange(4.0))
    with pytest.raises(DataError, match="two dimensions"):
        fw.scan(tmp_path / "d.npz")


def _book(path, rows, **sheets):
    book = openpyxl.Workbook()
    for name, content in {"first": rows, **sheets}.items():
        sheet = book.active if name == "first" else book.create_sheet(name)
        for row in content:
            sheet.append(row)
    book.save(path)


def test_cells_of_a_sheet_that_differ_in_type(tmp_path):
    day = dt.datetime(2020, 5, 6)
    rows = [
        ["all", "dates", "moments", "truth", "numbers", "words"],
        [1, day, day, True, 1.5, " a "],
        ["x", None, dt.datetime(2020, 5, 6, 7, 8, 9), False, "2.5", None],
        [day, day, "n/a", None, 1e300, "b"],
        [True, day, day, True, 7, "1"],
    ]
    _book(tmp_path / "x.xlsx", rows)
    table = open_table(tmp_path / "x.xlsx")
    assert [column.type for column in table.columns] == [
        "VARCHAR",
        "DATE",
        "TIMESTAMP",
        "BOOLEAN",
        "DOUBLE",
        "VARCHAR",
    ]
    found = cells(table)
    assert found["all"] == ["1", "x", "2020-05-06", "TRUE"]
    assert found["dates"] == [day.date(), None, day.date(), day.date()]
    assert found["moments"] == [day, dt.datetime(2020, 5, 6, 7, 8, 9), None, day]
    assert found["truth"] == [True, False, None, True]
    assert found["numbers"] == [1.5, 2.5, 1e300, 7.0]
    assert found["words"] == [" a ", None, "b", "1"]
    assert "numbers" in said(table, "mixed-types")
    assert "all" in said(table, "mixed-types")


@pytest.mark.parametrize(
    ("rows", "names", "count", "topic"),
    [
        ([["a", 2019, 2020], ["x", 1, 2], ["y", 3, 4]], ["a", "2019", "2020"], 2, ""),
        ([[1, 2], [3, 4], [5, 6]], ["column0", "column1"], 3, "no-header"),
        ([["u", 1], ["v", 2], ["u", 3]], ["column0", "column1"], 3, "no-header"),
        ([["a", "a", None], [1, 2, 3], [4, 5, 6]], ["a", "a 2", "column 3"], 2, "duplicate-names"),
        ([["a", "b", "c"], [1, 2, 3], [4, 5, 6], [], ["Source: somebody"]], ["a", "b", "c"], 2, "comment-lines"),
        (
            [["Report"], ["of", "May"], [], ["a", "b", "c", "d"], [1, 2, 3, 4], [5, 6, 7, 8]],
            list("abcd"),
            2,
            "title-rows",
        ),
        ([["a", "b"], [1, 2], [], [3, 4], ["sum", 6]], ["a", "b"], 2, "total-row"),
        ([["kind", "b"], ["total", 2], ["total", 4]], ["kind", "b"], 2, ""),
    ],
)
def test_where_the_table_is_in_a_sheet(tmp_path, rows, names, count, topic):
    _book(tmp_path / "x.xlsx", rows)
    table = open_table(tmp_path / "x.xlsx")
    assert [column.name for column in table.columns] == names
    assert table.n_rows == count
    assert not topic or said(table, topic)


def test_options_for_sheets(tmp_path):
    rows = [["a", "b"], [1, "none"], [2, 4]]
    _book(tmp_path / "x.xlsx", rows, Other=[["c"], [5]])
    assert list(cells(open_table(tmp_path / "x.xlsx", Reading(sheet="2")))) == ["c"]
    assert list(cells(open_table(tmp_path / "x.xlsx", Reading(sheet="other")))) == ["c"]
    assert open_table(tmp_path / "x.xlsx", Reading(header=False)).n_rows == 3
    assert open_table(tmp_path / "x.xlsx", Reading(skip=1, header=False)).n_rows == 2
    told = open_table(tmp_path / "x.xlsx", Reading(missing_values=("4",)))  # besides the usual words
    assert cells(told)["b"] == [None, None]
    with pytest.raises(DataError, match=r"no sheet 'No'.*'Sheet', 'Other'"):
        open_table(tmp_path / "x.xlsx", Reading(sheet="No"))


def test_a_sheet_of_libreoffice(tmp_path):
    def cell(value):
        if isinstance(value, str):
            return f'<table:table-cell office:value-type="string"><text:p>{value}</text:p></table:table-cell>'
        if isinstance(value, dt.date):
            return f'<table:table-cell office:value-type="date" office:date-value="{value}"/>'
        return f'<table:table-cell office:value-type="float" office:value="{value}"/>'

    day = dt.date(2021, 2, 3)
    rows = [["a", "b", "c"], [1.5, "x", day], [2, "y", day]]
    body = "".join(f"<table:table-row>{''.join(map(cell, row))}</table:table-row>" for row in rows)
    home = "urn:oasis:names:tc:opendocument:xmlns"
    content = (
        f'<office:document-content xmlns:office="{home}:office:1.0" xmlns:table="{home}:table:1.0" '
        f'xmlns:text="{home}:text:1.0" office:version="1.2"><office:body><office:spreadsheet>'
        f'<table:table table:name="Sheet1">{body}</table:table></office:spreadsheet></office:body></office:document-content>'
    )
    kind = "application/vnd.oasis.opendocument.spreadsheet"
    manifest = (
        f'<manifest:manifest xmlns:manifest="{home}:manifest:1.0"><manifest:file-entry manifest:full-path="/" '
        f'manifest:media-type="{kind}"/></manifest:manifest>'
    )
    with zipfile.ZipFile(tmp_path / "x.ods", "w") as archive:
        archive.writestr("mimetype", kind)
        archive.writestr("META-INF/manifest.xml", manifest)
        archive.writestr("content.xml", content)
    assert cells(open_table(tmp_path / "x.ods")) == {"a": [1.5, 2.0], "b": ["x", "y"], "c": [day, day]}


def test_a_cell_far_away_from_the_others(tmp_path):
    book = openpyxl.Workbook()
    book.active["A1"] = "a"
    book.active["XFD1048576"] = 2
    book.save(tmp_path / "x.xlsx")
    with pytest.raises(DataError, match="XFD1048576"):
        fw.scan(tmp_path / "x.xlsx")


def test_packages_that_are_missing(messy, monkeypatch):
    monkeypatch.setitem(sys.modules, "python_calamine", None)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingDependencyError, match=r"pip install 'foldwise\[excel\]'"):
        fw.scan(messy / "two_sheets.xlsx")
    with pytest.raises(MissingDependencyError, match=r"pip install 'foldwise\[arrow\]'"):
        fw.scan(messy / "penguins.feather")


def test_a_database_in_use_stays_as_it_is(tmp_path):
    path = tmp_path / "x.sqlite"
    base = sqlite3.connect(path)
    base.execute("PRAGMA journal_mode = WAL")
    base.execute("CREATE TABLE t (a, b)")
    base.executemany("INSERT INTO t VALUES (?, ?)", [(1, 2), (3, 4)])
    base.commit()
    assert cells(open_table(path)) == {"a": [1, 3], "b": [2, 4]}  # what is in the journal only
    base.close()


def test_what_sqlite_cells_hold(tmp_path):
    base = sqlite3.connect(tmp_path / "x.db")
    base.execute('CREATE TABLE t (n INTEGER, r REAL, "odd "" name" TEXT, raw BLOB, "nothing", mix, m TEXT)')
    rows = [
        (1, 1.0, "a", b"x", None, 1, "p"),
        (2**53 + 1, 2.5, "ü", b"\xff", None, "two", "q"),
        (None, None, None, None, None, 3.5, None),
    ]
    base.executemany("INSERT INTO t VALUES (?, ?, ?, ?, ?, ?, ?)", rows)
    base.execute("INSERT INTO t (m) VALUES (CAST(x'e9' AS TEXT))")
    base.commit()
    base.close()
    table = open_table(tmp_path / "x.db")
    assert "é" in said(table, "encoding")
    assert [column.type for column in table.columns][:3] == ["BIGINT", "DOUBLE", "VARCHAR"]
    found = cells(table)
    assert found["n"] == [1, 2**53 + 1, None, None]
    assert found["r"] == [1.0, 2.5, None, None]
    assert found['odd " name'] == ["a", "ü", None, None]
    assert found["nothing"] == [None] * 4
    assert found["mix"] == ["1", "two", "3.5", None]
    assert found["m"] == ["p", "q", None, "é"]


def test_many_rows_in_batches(tmp_path, monkeypatch):
    monkeypatch.setattr("foldwise.data.scratch_table._CELLS", 1)
    base = sqlite3.connect(tmp_path / "x.sqlite")
    base.execute("CREATE TABLE t (a, b)")
    base.executemany("INSERT INTO t VALUES (?, ?)", ((i, i / 2) for i in range(5000)))
    base.commit()
    base.close()
    table = open_table(tmp_path / "x.sqlite")
    assert table.sql.count(".parquet") == 5
    np.testing.assert_array_equal(data_helpers.read(tmp_path / "x.sqlite"), [[i, i / 2] for i in range(5000)])


def test_views_of_a_database_reach_no_other_file(tmp_path):
    (tmp_path / "secret.csv").write_text("a\n1\n")
    base = duckdb.connect(str(tmp_path / "x.duckdb"))
    base.execute("CREATE TABLE t AS SELECT 1.0 AS a")
    base.execute("CREATE SCHEMA s; CREATE TABLE s.t AS SELECT 2.0 AS b FROM range(9)")
    base.execute(f"CREATE VIEW v AS FROM read_csv('{tmp_path / 'secret.csv'}')")
    base.close()
    table = open_table(tmp_path / "x.duckdb")
    assert all(word in said(table, "several-tables") for word in ("t", "s.t", "v"))
    assert table.n_rows == 9
    assert cells(open_table(tmp_path / "x.duckdb", Reading(table="t"))) == {"a": [1.0]}
    with pytest.raises(DataError, match="reads other files"):
        open_table(tmp_path / "x.duckdb", Reading(table="v"))
    with pytest.raises(DataError, match="is not understood"):
        fw.scan(tmp_path / "x.duckdb", where=f"(SELECT true FROM read_csv('{tmp_path / 'secret.csv'}'))")


def test_tables_with_scratch_files_travel(messy):
    source = pickle.loads(pickle.dumps(fw.scan(messy / "two_sheets.xlsx", columns=["temperature min"])))
    assert data_helpers.rows(source).shape == (48, 1)
    assert "Readings" in source.fingerprint()
    assert "Stations" in fw.scan(messy / "two_sheets.xlsx", sheet="Stations", columns=["elevation"]).fingerprint()


def test_arrow_types(tmp_path):
    table = pa.table(
        {
            "half": pa.array([1.5, None], pa.float16()) if hasattr(np, "float16") else [1.5, None],
            "null": pa.nulls(2),
            "word": pa.array(["a", None]).dictionary_encode(),
            "large": pa.array(["x", "y"], pa.large_string()),
            "list": [[1], [2, 3]],
            "day": pa.array([dt.date(2020, 1, 2), None]),
            "flag": [True, None],
        }
    )
    pyarrow.feather.write_feather(table, tmp_path / "x.feather", compression="zstd")
    found = open_table(tmp_path / "x.feather")
    assert cells(found) == {name: table[name].to_pylist() for name in table.column_names}
    assert "list" in said(found, "nested")
    with pa.OSFile(str(tmp_path / "e.arrow"), "wb") as sink, pa.ipc.new_stream(sink, table.schema):
        pass
    with pytest.raises(DataError, match="0 sample"):
        fw.scan(tmp_path / "e.arrow")


@pytest.mark.parametrize("name", ["x", "x.unknown"])
@pytest.mark.parametrize(
    "given",
    [
        "two_sheets.xlsx",
        "shop.sqlite",
        "lab.duckdb",
        "planets.arrow",
        "types.parquet",
        "missing_keys.jsonl",
        "arrays.npz",
    ],
)
def test_the_content_tells_the_format(messy, tmp_path, given, name):
    (tmp_path / name).write_bytes((messy / given).read_bytes())
    assert cells(open_table(tmp_path / name)).keys() == cells(open_table(messy / given)).keys()


@pytest.mark.parametrize(
    "given",
    [
        "two_sheets.xlsx",
        "shop.sqlite",
        "lab.duckdb",
        "planets.arrow",
        "types.parquet",
        "missing_keys.jsonl",
        "arrays.npz",
        "penguins.csv.gz",
        "taxis.csv.zst",
    ],
)
def test_standard_input(messy, monkeypatch, given):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO((messy / given).read_bytes())))
    first, again = open_table("-"), open_table("-")
    assert first.where == "standard input"
    wanted = cells(open_table(messy / given))
    assert cells(first) == cells(again) == wanted


def test_standard_input_without_data(monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"")))
    with pytest.raises(DataError, match="standard input: nothing came"):
        fw.scan("-")
    code = "import foldwise as fw, numpy as np; print(fw.KMeans(2).fit(fw.scan('-')).cluster_centers_.shape)"
    done = subprocess.run(
        [sys.executable, "-c", code],
        input=b"a,b\n1,2\n3,4\n5,6\n",
        capture_output=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
        check=False,
    )
    assert done.stdout.split() == [b"(2,", b"2)"], done.stderr


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes with names here")
def test_a_pipe_with_a_writer(tmp_path):
    os.mkfifo(tmp_path / "x")
    writer = threading.Thread(target=partial((tmp_path / "x").write_text, "a,b\n1,2\n3,4\n"))
    writer.start()
    np.testing.assert_array_equal(data_helpers.read(tmp_path / "x"), [[1, 2], [3, 4]])
    writer.join()


@pytest.mark.parametrize("folder", ["a=1", "b=2"])
def test_names_of_folders_are_no_columns(tmp_path, folder):
    (tmp_path / folder).mkdir()
    pq.write_table(pa.table({"a": [5.0, 6.0]}), tmp_path / folder / "x.parquet")
    (tmp_path / folder / "x.jsonl").write_text('{"a": 5}\n{"a": 6}\n')
    for name in ("x.parquet", "x.jsonl"):
        assert cells(open_table(tmp_path / folder / name)) == {"a": [5.0, 6.0]}


def test_positions_are_labels(tmp_path):
    rows = np.random.default_rng(0).normal(size=(60, 4))
    np.save(tmp_path / "x.npy", rows)
    np.savetxt(tmp_path / "x.csv", rows, delimiter=",")
    for name in ("x.npy", "x.csv"):
        path = str(tmp_path / name)
        source = fw.scan(path, columns=[0, 2])
        assert source.names == ("0", "2")
        np.testing.assert_allclose(data_helpers.read(path, columns=["0", "2"]), rows[:, [0, 2]])
        model = fw.KMeans(2, random_state=0).fit(source)
        np.testing.assert_array_equal(model.predict(path), model.labels_)
        assert fw.scan(path).names is None
    with pytest.raises(DataError, match="no column '7'"):
        fw.scan(tmp_path / "x.npy", columns=["7"])


@pytest.mark.parametrize("width", [1500])
def test_wide_tables(tmp_path, width):
    rows = np.random.default_rng(0).normal(size=(38, width)).round(6)
    names = [f"g{j}" for j in range(width)]
    pq.write_table(pa.table(dict(zip(names, rows.T, strict=True))), tmp_path / "x.parquet")
    np.savez(tmp_path / "x.npz", rows)
    pyarrow.feather.write_feather(pa.table(dict(zip(names, rows.T, strict=True))), tmp_path / "x.feather")
    for name in ("x.parquet", "x.npz", "x.feather"):
        np.testing.assert_array_equal(data_helpers.read(tmp_path / name), rows)


def test_errors_of_parquet_are_what_they_are(tmp_path, monkeypatch):
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table({f"c{j}": np.arange(5.0) for j in range(2000)}), path, compression="gzip")  # which DuckDB reads
    monkeypatch.setattr("foldwise.data.duckdb_connection._megabytes_for", lambda width, chunks: 1)
    monkeypatch.setattr("foldwise.data.duckdb_connection._MOST_MEGABYTES", 1)
    with pytest.raises(DataError, match="more memory") as error:
        data_helpers.read(path)
    assert "truncated" not in str(error.value)
    monkeypatch.undo()
    path.write_bytes(path.read_bytes()[:1000])
    with pytest.raises(DataError, match="truncated"):
        data_helpers.read(path)


def test_columns_without_names_are_prepared_and_found_again(tmp_path):
    rows = np.random.default_rng(0).normal(size=(60, 4))
    path = str(tmp_path / "x.csv")
    np.savetxt(path, rows, delimiter=",")
    for columns in ([0, 2], ["0", "2"], ["column0", "column2"]):
        prepared = fw.prepare(path, columns=columns)
        np.testing.assert_allclose(data_helpers.rows(prepared), rows[:, [0, 2]])
        model = fw.KMeans(2, random_state=0).fit(prepared)
        np.testing.assert_array_equal(model.predict(path), model.labels_)
