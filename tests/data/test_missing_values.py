"""Words and numbers that the user says stand for missing cells, in files of every kind."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import duckdb
import numpy as np
import pandas as pd
import pytest

import foldwise as fw
from foldwise.errors import DataError, ParameterError


def cells(source):
    """All rows, with NaN where a cell is missing."""
    return np.concatenate([piece.load().unchecked for piece in source.pieces()])


@pytest.fixture
def put(tmp_path):
    def put(name, text):
        path = tmp_path / name
        path.write_text(text)
        return str(path)

    return put


def lines(rows):
    return "x,y\n" + "".join(f"{x},{y}\n" for x, y in rows)


@pytest.mark.parametrize("first", [0.5, "NA", "?"])  # without and with a reason to look closer
@pytest.mark.parametrize("way", [fw.scan, fw.prepare])
def test_number_for_missing_in_text(put, way, first):
    rows = [(first if i == 0 else i + 0.5, -9 if i % 4 == 1 else i * 1.5) for i in range(12)]
    found = cells(way(put("x.csv", lines(rows)), missing_values=["-9"]))
    assert np.isnan(found[:, 1]).tolist() == [i % 4 == 1 for i in range(12)]
    assert np.array_equal(found[2, :], [2.5, 3.0])


def test_number_for_missing_among_words(put):
    rows = [("-9" if i % 3 == 0 else "yes" if i % 2 else "no", i * 0.5) for i in range(24)]
    found = fw.look(put("x.csv", lines(rows)), missing_values=["-9"])["x"]
    assert found.kind == "boolean"
    assert found.profile.missing == 8


def test_word_for_missing_that_comes_late(put):
    path = put("x.csv", lines((i + 0.5, "unknown" if i == 25_000 else i) for i in range(30_000)))
    found = cells(fw.scan(path, missing_values=["unknown"]))
    assert np.flatnonzero(np.isnan(found[:, 1])).tolist() == [25_000]


@pytest.mark.parametrize("way", [fw.scan, fw.prepare])
@pytest.mark.parametrize(("cell", "meant"), [("NA", np.nan), ("", np.nan), ("${}.50", 0.5), ("{}.5", 0.5)])
@pytest.mark.parametrize("order", ["ab", "ba"])
def test_files_of_which_one_has_other_cells(put, tmp_path, way, cell, meant, order):
    put(f"{order[0]}.csv", lines((i * 0.5, i % 5 + 0.3) for i in range(20)))
    put(f"{order[1]}.csv", lines((cell.format(i + 1), i % 5 + 0.3) for i in range(20)))
    found = cells(way(str(tmp_path / "*.csv")))[:, 0]
    plain, others = (found[:20], found[20:]) if order == "ab" else (found[20:], found[:20])
    assert np.array_equal(plain, np.arange(20) * 0.5)
    assert np.array_equal(others, np.arange(20) + 1 + meant if meant == meant else np.full(20, np.nan), equal_nan=True)


def test_files_of_which_one_has_a_unit(put, tmp_path):
    put("a.csv", lines((i * 0.5, i % 5 + 0.3) for i in range(20)))
    put("b.csv", lines((f"{i + 1}%", i % 5 + 0.3) for i in range(20)))
    with pytest.raises(DataError, match="column 'x': the files do not have the same columns"):
        fw.scan(str(tmp_path / "*.csv"))
    prepared = fw.prepare(str(tmp_path / "*.csv"))
    assert prepared.names == ("y",)
    assert "x (%, no unit)" in next(note.text for note in prepared.recipe.notes if note.topic == "mixed-units")


def stored(frame, path):
    """A file of the kind that its name says, with types of its own."""
    kind = path.suffix
    if kind == ".sqlite":
        with closing(sqlite3.connect(path)) as base:
            frame.to_sql("t", base, index=False)
    elif kind == ".jsonl":
        frame.to_json(path, orient="records", lines=True)
    elif kind == ".duckdb":
        with duckdb.connect(str(path)) as base:
            base.register("given", frame)
            base.execute("CREATE TABLE t AS FROM given")
    else:
        write = {".parquet": frame.to_parquet, ".feather": frame.to_feather}.get(kind)
        frame.to_excel(path, index=False) if write is None else write(path)
    return str(path)


NUMBERS = pd.DataFrame({"x": [1.5, 2.5, -9, 4.0, 0.25, 6.5] * 3, "n": np.arange(18) % 7 * 3 - 9})
NUMBERS["y"] = np.arange(18) * 1.5 + 0.1


@pytest.mark.parametrize("way", [fw.scan, fw.prepare])
@pytest.mark.parametrize("kind", ["parquet", "jsonl", "xlsx", "sqlite", "duckdb", "feather"])
def test_number_for_missing_in_typed_columns(tmp_path, kind, way):
    path = stored(NUMBERS, tmp_path / f"x.{kind}")
    source = way(path, missing_values=["-9", "0.25"])
    meant = NUMBERS.astype(float).replace({"x": {-9: np.nan, 0.25: np.nan}, "n": {-9: np.nan}})
    assert np.array_equal(cells(source), meant, equal_nan=True)
    assert source.fingerprint() != way(path).fingerprint()


@pytest.mark.parametrize("way", [fw.scan, fw.prepare])
def test_number_for_missing_in_queries_and_frames(tmp_path, way):
    path = stored(NUMBERS, tmp_path / "x.parquet")
    for x in (NUMBERS, f"SELECT * FROM '{path}'", duckdb.connect().read_parquet(path)):
        found = cells(way(x, missing_values=["-9"]))
        assert np.isnan(found).sum(axis=0).tolist() == [3, 3, 0]


def test_missing_values_of_an_array_are_refused(tmp_path):
    np.save(tmp_path / "x.npy", NUMBERS.to_numpy())
    for x in (NUMBERS.to_numpy(), [[1.0, -9.0]], str(tmp_path / "x.npy"), fw.scan(NUMBERS)):
        with pytest.raises(ParameterError, match="missing_values"):
            fw.scan(x, missing_values=["-9"])


def test_model_keeps_numbers_for_missing(tmp_path):
    path = stored(NUMBERS, tmp_path / "x.parquet")
    model = fw.KMeans(2, missing="model", random_state=0).fit(fw.prepare(path, missing_values=["-9"]))
    gaps = NUMBERS.astype(float).replace(-9, np.nan)
    assert np.array_equal(model.predict(NUMBERS), model.predict(gaps))
    assert np.array_equal(model.predict(path), model.labels_)


@pytest.mark.parametrize("kind", ["xlsx", "sqlite"])
def test_words_for_missing_add_to_the_usual_ones(tmp_path, kind):
    table = pd.DataFrame({"x": [1.5, 2.5, "NA", 4.0, "Unknown", 6.5] * 3, "y": np.arange(18) * 1.5})
    if kind == "xlsx":
        table.to_excel(tmp_path / "x.xlsx", index=False)
    else:
        with closing(sqlite3.connect(tmp_path / "x.sqlite")) as base:
            base.execute("CREATE TABLE t (x, y)")
            base.executemany("INSERT INTO t VALUES (?, ?)", table.to_numpy().tolist())
            base.commit()
    for way in (fw.scan, fw.prepare):
        found = cells(way(str(tmp_path / f"x.{kind}"), missing_values=["Unknown"]))
        assert np.isnan(found).sum(axis=0).tolist() == [6, 0]


def test_fingerprint_knows_how_columns_are_computed(tmp_path):
    dates = pd.DataFrame({"x": np.arange(40) * 0.7, "t": pd.date_range("2024-01-01", periods=40, freq="31h")})
    path = stored(dates, tmp_path / "t.parquet")
    prints = {fw.prepare(path, as_={"t": part}).fingerprint() for part in ("hour", "month", "number")}
    assert len(prints) == 3
    text = str(tmp_path / "t.csv")
    pd.DataFrame({"x": [f"1.{i}" for i in range(100, 140)], "y": np.arange(40) % 7}).to_csv(text, index=False, sep=";")
    assert (
        len({way(text, **said).fingerprint() for way in (fw.scan, fw.prepare) for said in ({}, {"decimal": ","})}) == 4
    )
