"""Decisions about columns, and `look`: overriding them, late surprises, false alarms, and what is printed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import foldwise as fw
from foldwise.cli import main
from foldwise.data import first_rows
from foldwise.data.missing import allow_missing
from foldwise.data.tables import open_table
from foldwise.errors import DataError, ParameterError
from foldwise.prepare import duplicates, sentinels
from foldwise.prepare.decide import decide


def kinds(frame: Any, **options: Any) -> dict[str, str]:
    return {one.name: one.kind for one in fw.look(frame, **options)}


def topics(found: Any) -> dict[str, str]:
    return {note.topic: note.text for note in found.notes}


@pytest.fixture
def people() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "id": np.arange(1, 41),
            "zip": rng.integers(10_000, 10_005, 40),
            "age": rng.integers(18, 80, 40),
            "income": rng.lognormal(8, 1, 40),
            "joined": pd.date_range("2020-01-01", periods=40),
            "member": rng.random(40) < 0.5,
        }
    )


def test_typed_columns(people: pd.DataFrame) -> None:
    assert list(kinds(people).values()) == ["identifier", "category", "number", "number", "date", "boolean"]
    assert "zip" in topics(fw.look(people))["integer-codes"]


def test_kinds_as_asked(people: pd.DataFrame) -> None:
    found = fw.look(people, as_={"zip": "number", "age": "category", "id": "number"})
    assert [found[name].kind for name in ("zip", "age", "id")] == ["number", "category", "number"]
    assert found["age"].reason == "as asked"
    values = found.as_dict(values=True)["columns"]
    assert values[1]["values"] == people["zip"].tolist()
    assert values[2]["values"] == people["age"].astype(str).tolist()


def test_kinds_that_cannot_be(people: pd.DataFrame) -> None:
    with pytest.raises(ParameterError, match=r"there is no column 'zap'.*id, zip"):
        fw.look(people, as_={"zap": "category"})
    with pytest.raises(ParameterError, match="zip=colour"):
        fw.look(people, as_={"zip": "colour"})
    with pytest.raises(DataError, match="'age': the cells cannot be read as date: they hold numbers"):
        fw.look(people, as_={"age": "date"})


def test_small_data_that_run_on_stay_numbers() -> None:
    assert kinds(pd.DataFrame({"x": [1, 2, 3, 4]})) == {"x": "number"}
    assert kinds(pd.DataFrame({"year": range(1990, 2020)})) == {"year": "number"}
    assert kinds(pd.DataFrame({"rank": np.random.default_rng(0).permutation(30)})) == {"rank": "number"}
    assert kinds(pd.DataFrame({"row": [1, 2, 3, 4]})) == {"row": "identifier"}


@pytest.mark.parametrize(
    "values", [np.random.default_rng(1).normal(size=50), np.random.default_rng(1).permutation(5000)[:50] * 7]
)
def test_measurements_that_happen_to_differ_are_numbers(values: np.ndarray) -> None:
    assert kinds(pd.DataFrame({"mass": values})) == {"mass": "number"}


def test_nothing_but_missing() -> None:
    found = fw.look(pd.DataFrame({"a": [None, None, None], "b": [np.nan] * 3, "c": ["NA", "?", ""]}))
    assert {one.kind for one in found} == {"empty"}
    assert set(topics(found)) == {"empty-column", "missing-tokens"}


def test_a_frame_without_rows() -> None:
    found = fw.look(pd.DataFrame({"a": pd.Series(dtype=float), "b": pd.Series(dtype=str)}))
    assert (found.rows, [one.kind for one in found]) == (0, ["empty", "empty"])
    assert found.as_dict(values=True)["columns"][0]["values"] == []
    assert "0 rows, 2 columns" in str(found)


@pytest.mark.parametrize("late", ["trace", "1.5.2"])
def test_a_late_word_is_told_and_no_silent_gap(late: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(first_rows, "MOST_ROWS", 1000)
    path = tmp_path / "late.csv"
    path.write_text("a,b\n" + "".join(f"{k % 7}.5,{late if k == 2900 else k % 11}\n" for k in range(3000)))
    found = fw.look(path)
    assert found.rows == 3000
    assert (found["b"].kind, found["b"].profile.missing) == ("number", 1)
    assert late in topics(found)["mixed-types"]
    cells = found.as_dict(values=True)["columns"][1]["values"]
    assert cells[2900] is None
    assert cells[2899] == 2899 % 11


def test_many_late_words_make_it_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(first_rows, "MOST_ROWS", 1000)
    path = tmp_path / "late.csv"
    path.write_text("a,b\n" + "".join(f"{k % 7}.5,{f'w{k % 50}' if k > 2000 else k % 11}\n" for k in range(3000)))
    assert fw.look(path)["b"].kind == "category"


def test_a_reading_beyond_the_first_rows_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a look at all rows, a cell that does not fit ends the query."""
    monkeypatch.setattr(first_rows, "MOST_ROWS", 1000)
    path = tmp_path / "late.csv"
    path.write_text("a\n" + "".join("soon\n" if k == 2900 else f"{k % 7}\n" for k in range(3000)))
    judged = decide(open_table(path))
    assert judged["a"].kind == "number"
    with pytest.raises(Exception, match="soon"):
        judged.values().fetchall()


def test_rows_stay_in_order(tmp_path: Path) -> None:
    """Words that are missing are many, and DuckDB would make a join of an IN with many words."""
    frame = pd.DataFrame({"x": np.arange(40_000.0) / 8, "w": [f"k{k % 9}" if k % 5 else "NA" for k in range(40_000)]})
    frame.to_parquet(tmp_path / "a.parquet", row_group_size=2000)
    found = fw.look(tmp_path / "a.parquet").as_dict(values=True)["columns"]
    assert found[0]["values"] == frame["x"].tolist()
    assert found[1]["values"] == [None if word == "NA" else word for word in frame["w"]]


def test_wide_tables_give_the_same_as_narrow_ones() -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {f"x{j}": rng.normal(size=60) for j in range(70)} | {f"w{j}": rng.choice(["a", "b"], 60) for j in range(30)}
    )
    frame.iloc[3, 5] = np.nan
    wide = fw.look(frame)
    narrow = [one for start in range(0, 100, 10) for one in fw.look(frame.iloc[:, start : start + 10])]
    assert [(one.name, one.kind, one.profile.missing, one.profile.distinct) for one in wide] == [
        (one.name, one.kind, one.profile.missing, one.profile.distinct) for one in narrow
    ]
    assert wide["x5"].profile.mean == pytest.approx(frame["x5"].mean())


def test_the_output_is_capped() -> None:
    text = str(fw.look(pd.DataFrame(np.outer([0.0, 1.5, 2.5], np.ones(400)), columns=[f"c{j}" for j in range(400)])))
    assert "... and 300 more" in text
    assert len(text.splitlines()) < 140


# Warnings


@pytest.mark.parametrize(
    ("low", "high", "counts", "found"),
    [
        (18, 90, {999: 5}, [999]),
        (1, 5, {9: 3}, []),  # may be a value like the others
        (0, 6, {-1: 4}, [-1]),
        (0, 1, {-1: 4}, []),  # -1, 0, 1
        (-50, 40, {-99: 3}, []),
        (-5, 40, {-999: 3}, [-999]),
        (900, 8000, {-99: 11, 999: 1}, [-99]),
        (0, 15_000, {999: 2, 9999: 1}, []),
        (0, 980, {999: 4}, []),
    ],
)
def test_sentinels(low: float, high: float, counts: dict[int, int], found: list[int]) -> None:
    assert [one.value for one in sentinels.judged(low, high, counts)] == found


def test_copies_are_found_at_any_offset_and_with_gaps() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=200)
    gaps = np.where(rng.random(200) < 0.3, np.nan, 5 - 3 * x)
    table = np.column_stack([x, rng.normal(size=200), 1e6 + 1e-2 * x, gaps, x + rng.normal(size=200) * 0.05])
    assert duplicates.correlated(table) == [(0, 2), (0, 3)]
    assert duplicates.correlated(np.column_stack([np.ones(20), np.ones(20)])) == []


def test_categories_with_two_names() -> None:
    rng = np.random.default_rng(0)
    code = rng.integers(1, 4, 80)
    frame = pd.DataFrame(
        {"pclass": code, "class": np.array(["x", "First", "Second", "Third"])[code], "deck": rng.choice(list("AB"), 80)}
    )
    assert "pclass and class (one to one)" in topics(fw.look(frame))["near-duplicate"]


def test_numbers_stored_as_text_are_told() -> None:
    frame = pd.DataFrame({"x": ["1.5", "2", "30"], "y": [1.0, 2.5, 3.5]})
    found = fw.look(frame)
    assert found["x"].kind == "number"
    assert "x has numbers stored as text" in topics(found)["mixed-types"]


# The command


def test_json_of_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["look", str(tmp_path / "none.csv"), "--json"]) == 2
    assert "no such file" in json.loads(capsys.readouterr().out)["error"]
    assert main(["look", str(tmp_path / "none.csv")]) == 2
    assert "no such file" in capsys.readouterr().err


def test_options(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "a.csv"
    path.write_text("zip;x\n10115;1,5\n10115;unknown\n10117;2,5\n10117;3\n")
    assert main(["look", str(path), "--as", "zip=text", "--missing-values", "unknown", "--json", "--values"]) == 0
    zips, numbers = json.loads(capsys.readouterr().out)["columns"]
    assert (zips["kind"], zips["reason"]) == ("text", "as asked")
    assert (numbers["missing"], numbers["values"]) == (1, [1.5, None, 2.5, 3.0])
    assert main(["look", str(path), "--values"]) == 2
    assert "--json" in capsys.readouterr().err


def test_what_is_printed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "pets.csv"
    lines = [f"{k},{'cat' if k % 3 else 'dog'},{'NA' if k == 4 else k % 10 + 0.5}" for k in range(1, 31)]
    path.write_text("\n".join(["no,pet,weight", *lines]) + "\n")
    assert main(["look", str(path)]) == 0
    out = capsys.readouterr().out.splitlines()
    assert out[0].startswith(f"{path}: 30 rows, 3 columns; commas")
    assert out[2].split() == ["column", "kind", "missing", "distinct", "values", "shape", "why"]
    assert out[3].split()[:2] == ["no", "identifier"]
    assert "cat 20, dog 10" in out[4]
    assert "0.5 to 9.5, mean 5.017" in out[5]
    assert all(len(line) <= 120 for line in out[1:])  # the first has the path, of any length
    assert "- read as missing: weight ('NA')" in out


def test_in_a_notebook() -> None:
    page = fw.look(pd.DataFrame({"a<b": [1.5, 2.5, 3.5]}))._repr_html_()
    assert "a&lt;b" in page


def look_at(path: Path, text: str, **options: Any) -> Any:
    path.write_text(text)
    return fw.look(path, **options)


def test_numbers_whose_mark_may_be_either_are_told(tmp_path: Path) -> None:
    rows = "a{0}b\n1,234{0}5\n5,678{0}6\n2,345{0}7\n"
    found = look_at(tmp_path / "a.csv", rows.format(";"))
    assert found["a"].kind == "number"
    assert "a ('1,234' was taken for 1234)" in topics(found)["ambiguous-numbers"]
    assert "ambiguous-numbers" not in topics(fw.look(tmp_path / "a.csv", decimal=","))
    assert "ambiguous-numbers" not in topics(look_at(tmp_path / "b.csv", 'a,b\n"1,234",5\n"5,678",6\n'))
    assert "ambiguous-numbers" not in topics(look_at(tmp_path / "c.csv", "a;b\n1,234;5\n1,234,567;6\n"))


def test_accounts_of_twenty_digits_are_identifiers(tmp_path: Path) -> None:
    text = "account;v\n" + "".join(f"1234567890123456789{j};{j * 1.5}\n" for j in range(10))
    found = look_at(tmp_path / "a.csv", text)
    assert (found["account"].kind, found["account"].profile.distinct) == ("identifier", 10)


def test_missing_numbers_of_the_user_are_told(tmp_path: Path) -> None:
    found = look_at(tmp_path / "a.csv", "a,b\n-9,7\n4,5\n-9,3\n1,1\n", missing_values=["-9"])
    assert "a ('-9' 2)" in topics(found)["missing-tokens"]
    assert found["a"].profile.missing == 2


def test_whole_numbers_that_are_days(tmp_path: Path) -> None:
    text = "when,date,n,one\n20200101,20200101,20200199,20200101\nNA,20200102,20200215,20200102\n20210315,,20200216,20200103\n"
    found = look_at(tmp_path / "a.csv", text)
    assert [one.kind for one in found] == ["date", "date", "number", "number"]
    assert found["when"].reason == "dates, year/month/day"
    values = found.as_dict(values=True)["columns"]
    assert values[0]["values"] == ["2020-01-01", None, "2021-03-15"]
    assert fw.look(tmp_path / "a.csv", as_={"one": "date"})["one"].kind == "date"
    with pytest.raises(DataError, match=r"column .n.: the cells cannot be read as date"):
        fw.look(tmp_path / "a.csv", as_={"n": "date"})
    used = fw.prepare(tmp_path / "a.csv", as_={"when": "year", "one": "day"})
    want = [[2020, 20200199, 1], [np.nan, 20200215, 2], [2021, 20200216, 3]]
    np.testing.assert_array_equal(rows_of(used), want)


@pytest.mark.parametrize("kind", ["int64", "float64"])
def test_days_of_frames(kind: str) -> None:
    frame = pd.DataFrame({"d": np.array([20200101, 20200215, 20211231], kind), "x": [1.5, 2.5, 4.0]})
    if kind == "float64":
        frame.loc[1, "d"] = np.nan
    found = fw.look(frame)
    assert [one.kind for one in found] == ["date", "number"]
    assert found.as_dict(values=True)["columns"][0]["values"][::2] == ["2020-01-01", "2021-12-31"]
    prepared = fw.prepare(frame, as_={"d": "year"})
    np.testing.assert_array_equal(rows_of(prepared)[[0, 2], 0], [2020, 2021])


def rows_of(prepared: Any) -> np.ndarray:
    return np.vstack([piece.load().dense() for piece in allow_missing(prepared).pieces()])


@pytest.mark.parametrize("word", ["inf", "1e400", "-Infinity"])
def test_infinite_numbers_are_told(word: str, tmp_path: Path) -> None:
    found = look_at(tmp_path / "a.csv", f"x,y\n1.5,2\n{word},3\n2.5,5\n")
    assert "x (1 cell)" in topics(found)["infinite"]
    assert found["x"].profile.infinite == 1
    assert "infinite" not in topics(look_at(tmp_path / "b.csv", "x,y\n1.5,2\n1e300,3\n2.5,5\n"))
