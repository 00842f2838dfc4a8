"""What SQL may do: a query is one statement that only reads; a condition reads nothing but its own table."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pytest

import foldwise as fw
from foldwise.cli import main
from foldwise.errors import DataError

TABLE = pd.DataFrame({"a": [1.0, 2.0, 3.0], "b": [4.0, 5.0, 7.0]})


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    TABLE.to_csv("table.csv", index=False)
    TABLE.to_csv("table.csv.gz", index=False)
    TABLE.to_parquet("table.parquet")
    TABLE.to_json("table.jsonl", orient="records", lines=True)
    TABLE.to_csv("other.csv", index=False)
    return tmp_path


def rows_of(source: Any) -> list[list[float]]:
    return [row for piece in source.pieces() for row in piece.load().dense().tolist()]


@pytest.mark.parametrize(
    "text",
    [
        "SELECT * FROM 'table.csv'; COPY (SELECT 1) TO 'written.csv'",
        "SELECT * FROM 'table.csv'; SELECT * FROM 'other.csv'",
        "WITH c AS (COPY (SELECT 1 AS a) TO 'written.csv') SELECT * FROM c",
        "WITH c AS (COPY (SELECT 1 AS a) TO 'written.csv'), t AS (FROM 'table.csv') PIVOT t ON b",
        "WITH c AS (SELECT 1) INSERT INTO c SELECT 2",
        "FROM 'table.csv'; ATTACH 'written.csv' AS d",
        "FROM 'table.csv'; INSTALL httpfs",
        "FROM 'table.csv'; EXPORT DATABASE 'written.csv'",
        "FROM 'table.csv'; SET threads = 1",
        "FROM 'table.csv'; PRAGMA version",
        "FROM 'table.csv'; CREATE TABLE t AS SELECT 1",
    ],
)
def test_text_that_is_not_one_query_is_refused(folder: Path, text: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(DataError, match=r"statement|PIVOT|COPY|syntax error"):
        fw.scan(text)
    assert main(["pca", text]) == 2
    error = capsys.readouterr().err
    assert "one query" in error or "syntax error" in error  # the latter for COPY in WITH, before DuckDB 2
    assert not (folder / "written.csv").exists()


@pytest.mark.parametrize(
    "text",
    [
        "SELECT * FROM 'table.csv';",
        "FROM 'table.csv' -- COPY; all",
        "WITH t AS (FROM 'table.csv') SELECT a, b FROM t UNION ALL SELECT * FROM 'other.csv' ORDER BY a",
        "SELECT a AS \"copy\", b FROM 'table.csv' WHERE a > (SELECT min(a) FROM 'other.csv')",
        "WITH t AS (FROM 'table.csv') PIVOT t ON b USING sum(a)",
    ],
)
def test_queries_still_work(folder: Path, text: str) -> None:
    assert fw.scan(text, columns="numeric").n_columns >= 1


@pytest.mark.parametrize("name", ["table.csv", "table.csv.gz", "table.parquet", "table.jsonl", "tab*.csv"])
def test_a_condition_reads_no_other_file(folder: Path, name: str) -> None:
    assert rows_of(fw.scan(name, where="a > 1")) == [[2.0, 5.0], [3.0, 7.0]]
    for condition in (
        "a > (SELECT min(a) FROM read_csv('other.csv'))",
        f"a > (SELECT min(a) FROM '{folder}/other.csv')",
        "a < (SELECT count(*) FROM read_text('/etc/hostname'))",
        "a < (SELECT count(*) FROM glob('*'))",
    ):
        with pytest.raises(DataError, match="Permission"):
            fw.scan(name, where=condition)


def test_a_condition_reads_no_file_in_the_scratch_folder(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FOLDWISE_SCRATCH", str(folder))  # whose files DuckDB lets any query read
    with pytest.raises(DataError, match="Permission"):
        fw.scan("table.csv", where=f"a > (SELECT min(a) FROM '{folder}/other.csv')")


@pytest.mark.parametrize("frame", [TABLE, pl.from_pandas(TABLE)], ids=["pandas", "polars"])
def test_a_condition_of_a_frame_reads_no_file(folder: Path, frame: Any) -> None:
    assert rows_of(fw.scan(frame, where="a > 2")) == [[3.0, 7.0]]
    with pytest.raises(DataError, match="Permission"):
        fw.scan(frame, where="a > (SELECT min(a) FROM 'other.csv')")


def test_a_condition_of_a_query_or_relation_has_no_sub_query(folder: Path) -> None:
    relation = duckdb.connect().sql("FROM 'table.csv'")
    for data in ("FROM 'table.csv'", relation):
        assert rows_of(fw.scan(data, where="a > 2 -- and no more")) == [[3.0, 7.0]]
        with pytest.raises(DataError, match="sub-query"):
            fw.scan(data, where="a > (SELECT min(a) FROM 'other.csv')")


def test_a_copy_in_another_process_is_confined_too(folder: Path) -> None:
    copy = pickle.loads(pickle.dumps(fw.scan("table.csv", where="a > 1")))
    assert rows_of(copy) == [[2.0, 5.0], [3.0, 7.0]]
    for statement in ("FROM 'other.csv'", "SET enable_external_access = true", "COPY (SELECT 1) TO 'written.csv'"):
        with pytest.raises(duckdb.Error):
            copy._table.database.query(statement)


@pytest.mark.parametrize("where", ["a > 1; DROP TABLE t", "a > 1) OR (1 = 1", "a > 1 LIMIT 1", "a > 1 UNION SELECT 1"])
def test_a_condition_is_one_expression(folder: Path, where: str) -> None:
    with pytest.raises(DataError, match="not understood"):
        fw.scan("table.csv", where=where)


def test_a_comment_in_a_condition_does_not_hide_a_bad_value(folder: Path) -> None:
    (folder / "bad.csv").write_text("a,b\n1,2\n3,\n")
    with pytest.raises(DataError, match="missing value") as error:
        fw.PCA(1).fit(fw.scan("bad.csv", where="a > 0 -- all"))
    assert (error.value.row, error.value.column) == (1, "b")


@pytest.mark.parametrize("name", ['a"b', "a'b", "a;b", "a'); DROP TABLE t; --", 'a" FROM x --', "a[1]*"])
@pytest.mark.parametrize("ending", ["csv", "parquet", "jsonl"])
def test_names_with_quotes(tmp_path: Path, name: str, ending: str) -> None:
    path = tmp_path / f"{name.replace('/', '')}.{ending}"
    frame = pd.DataFrame({name: [1.0, 2.0], "c": [3.0, 5.0], "w\"'": [1.0, 2.0]})
    if ending == "csv":
        frame.to_csv(path, index=False)
    elif ending == "parquet":
        frame.to_parquet(path)
    else:
        frame.to_json(path, orient="records", lines=True)
    quoted = '"' + name.replace('"', '""') + '"'
    source = fw.scan(path, columns=[name, "c"], where=f"{quoted} > 1", weights="w\"'")
    assert source.names == (name, "c")
    assert rows_of(source) == [[2.0, 5.0]]
    assert rows_of(fw.scan(frame, columns=[name, "c"], where=f"{quoted} > 1")) == [[2.0, 5.0]]


@pytest.mark.parametrize(
    "call",
    [
        "enable_logging(storage='file', storage_config={'path': 'rows.csv'})",
        "enable_logging(storage='file', storage_path='logs')",
        "enable_profiling(save_location := 'profile.json')",
    ],
)
def test_functions_that_write_are_refused(call, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rows.csv").write_text("a,b\n1,2\n3,5\n9,4\n")
    for text in (
        f"SELECT a, b FROM 'rows.csv' WHERE (SELECT count(*) FROM {call}) >= 0",
        f"SELECT a, b FROM 'rows.csv', {call}",
    ):
        with pytest.raises(DataError, match="does more than read"):
            fw.PCA(1).fit(text)
    assert [path.name for path in tmp_path.iterdir()] == ["rows.csv"]
    assert (tmp_path / "rows.csv").read_text().count("\n") == 4


def test_a_condition_selects_the_same_rows_each_time(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("a,b,s\n1,2,random (x)\n3,5,y\n9,4,y\n")
    for where in ("random() < 0.5", "a > 0 AND RANDOM () < 2", "uuid() IS NOT NULL"):
        with pytest.raises(DataError, match="other rows each time"):
            fw.scan(path, where=where)
    assert fw.scan(path, columns=["a"], where="s = 'random (x)' OR a > 3").count() == 2
