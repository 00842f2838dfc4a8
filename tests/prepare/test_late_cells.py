"""Cells that come late, or in new files only: a missing one where none was before, or a word among numbers."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import foldwise as fw
from foldwise.data import first_rows
from foldwise.errors import DataError
from foldwise.prepare.prepared import describing
from foldwise.report.write_rows import write_transformed

_ROWS, _LATE = 30_000, 25_000  # DuckDB types cells in chunks, of which the first must be sound


@pytest.fixture
def few_rows_judged(monkeypatch):
    monkeypatch.setattr(first_rows, "MOST_ROWS", 2000)


def written(path, late="NA", n=_ROWS, at=_LATE):
    """A table in which x, and z, which is not used, have one odd cell each far down."""
    i = np.arange(n)
    table = pd.DataFrame({"id": [f"k{j}" for j in i], "x": i * 0.5, "y": i % 7 + 0.3, "z": i * 0.25})
    table["g"] = np.where(i % 2, "a", "b")
    table = table.astype({"x": object, "z": object})
    table.loc[at, "x"] = late
    table.loc[at + 5, "z"] = late
    table.to_csv(path, index=False)
    return str(path)


def cells(source):
    return np.concatenate([piece.load().unchecked for piece in source.pieces()])


@pytest.mark.parametrize("token", ["NA", "?", ""])
def test_new_file_with_a_missing_cell(tmp_path, token):
    rows = [(i * 0.5, i % 7 + 0.1) for i in range(40)]
    old, new = tmp_path / "old.csv", tmp_path / "new.csv"
    old.write_text("x,y\n" + "".join(f"{x},{y}\n" for x, y in rows))
    new.write_text("x,y\n" + "".join(f"{token if k == 20 else x},{y}\n" for k, (x, y) in enumerate(rows)))
    model = fw.KMeans(2, missing="model", random_state=0).fit(fw.prepare(str(old)))
    found = model.predict(str(new))
    assert np.array_equal(np.delete(found, 20), np.delete(model.labels_, 20))
    table = pd.DataFrame(rows, columns=["x", "y"])
    table.loc[20, "x"] = np.nan
    assert found[20] == model.predict(table)[20]


def test_missing_cell_first_seen_late(tmp_path, few_rows_judged):
    source = fw.prepare(written(tmp_path / "x.csv"), exclude="z")
    model = fw.KMeans(2, missing="model", random_state=0).fit(source)
    assert np.isnan(cells(source)).sum() == 1
    codes, _ = describing(source)
    assert len(cells(codes)) == _ROWS
    out = tmp_path / "out.csv"
    assert write_transformed(model, source, out, keep="all") == _ROWS
    back = pd.read_csv(out)
    assert np.flatnonzero(back.x.isna()).tolist() == [_LATE]
    assert np.flatnonzero(back.z.isna()).tolist() == [_LATE + 5]
    assert np.array_equal(back.cluster, model.labels_)


@pytest.mark.parametrize("name", ["out.csv", "out.parquet"])
def test_late_cell_in_a_column_that_is_only_written(tmp_path, few_rows_judged, name):
    source = fw.prepare(written(tmp_path / "x.csv"), columns=["y"])
    model = fw.KMeans(2, random_state=0).fit(source)
    assert write_transformed(model, source, tmp_path / name, keep="all") == _ROWS
    back = (pd.read_csv if name.endswith("csv") else pd.read_parquet)(tmp_path / name)
    assert np.flatnonzero(back.x.isna()).tolist() == [_LATE]
    assert np.flatnonzero(back.z.isna()).tolist() == [_LATE + 5]


def test_late_cell_when_levels_are_counted(tmp_path, few_rows_judged):
    path = written(tmp_path / "x.csv")
    source = fw.prepare(path, categories="encode", where="x > 5 OR x IS NULL")
    assert len(source.recipe.having("used")[-1].levels.levels) == 2
    assert source.unseen() == []
    assert np.isnan(cells(source)).sum() == 2


@pytest.mark.parametrize("sign", ["", "$"])  # read with types, and by SQL over text
def test_late_word_is_told_with_its_place(tmp_path, few_rows_judged, sign):
    path = tmp_path / "x.csv"
    rows = [
        f"{'oops' if i == 10 else 'k'},{'oops' if i == _LATE else f'{sign}{i * 0.5}'},{i % 7 + 0.3}"
        for i in range(_ROWS)
    ]
    path.write_text("\n".join(["word,x,y", *rows]) + "\n")
    source = fw.prepare(str(path))
    with pytest.raises(DataError, match=rf"'oops' is not a number.*\(line {_LATE + 2}\).*whole=True.*as_=") as problem:
        fw.KMeans(2, random_state=0).fit(source)
    assert (problem.value.where, problem.value.row, problem.value.column) == (str(path), _LATE, "x")
    fw.KMeans(2, missing="model", random_state=0).fit(fw.prepare(str(path), whole=True))


def test_word_in_a_new_file_is_told_with_its_place(tmp_path):
    old, new = tmp_path / "old.csv", tmp_path / "new.csv"
    old.write_text("x,y\n" + "".join(f"{i * 0.5},{i % 7 + 0.1}\n" for i in range(40)))
    new.write_text("x,y\n" + "".join(f"{'abc' if i == 20 else i * 0.5},{i % 7 + 0.1}\n" for i in range(40)))
    model = fw.KMeans(2, random_state=0).fit(fw.prepare(str(old)))
    with pytest.raises(DataError, match=r"'abc' is not a number.*\(line 22\)") as problem:
        model.predict(str(new))
    assert (problem.value.where, problem.value.row, problem.value.column) == (str(new), 20, "x")
