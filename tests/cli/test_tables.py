"""Tables as people have them, from the command line: what is told first, what --out carries, what apply does with new rows."""

from __future__ import annotations

import csv
import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from foldwise.cli import main

ROOT = Path(__file__).parents[2]
PENGUINS = str(ROOT / "examples" / "penguins.csv")


def rows(path: Path) -> list[dict[str, str]]:
    with open(path) as file:
        return list(csv.DictReader(file))


@pytest.fixture
def people(tmp_path: Path) -> Path:
    lines = ["key;Größe;pet;since"]
    for i in range(40):
        size = "n/a" if i == 7 else f"1.{200 + 10 * (i % 20) + 400 * (i // 20)},5"
        lines.append(f"k{i:02};{size};{('cat', 'dog')[i // 20]};{1 + i % 28:02}.03.2021")
    path = tmp_path / "people.csv"
    path.write_bytes(("\r\n".join(lines) + "\r\n").encode("latin-1"))
    return path


def test_the_first_lines_tell_what_was_read_and_decided(people: Path, capsys: Any) -> None:
    assert main(["cluster", str(people), "-k", "2"]) == 0
    out = capsys.readouterr().out.splitlines()
    assert out[0].startswith(f"{people}: 40 rows, 4 columns (semicolons, header in line 1")
    assert "1252" in out[0] or "atin" in out[0]
    assert out[1] == "used: Größe"
    assert "describing: pet" in out
    assert "identifiers: key" in out
    assert any(line.startswith("left out: since (dates") for line in out)
    assert any("1 missing cell in 1 of 40 rows and 1 column" in line for line in out)
    assert any(
        line.split() == ["pet", "dog", "100", "%", "0", "%", "51", "%"] for line in out
    )  # describes the clusters


def test_out_carries_rows_identifiers_and_labels(people: Path, tmp_path: Path, capsys: Any) -> None:
    out = tmp_path / "out.csv"
    assert main(["cluster", str(people), "-k", "2", "--label", "pet", "--where", "pet = 'dog'", "--out", str(out)]) == 0
    found = rows(out)
    assert list(found[0]) == ["row", "key", "pet", "cluster", "distance"]
    assert [row["row"] for row in found] == [str(i) for i in range(20, 40)]
    assert [row["key"] for row in found] == [f"k{i}" for i in range(20, 40)]
    assert main(["pca", str(people), "--keep", "all", "--out", str(out)]) == 0
    found = rows(out)
    assert list(found[0]) == ["row", "key", "Größe", "pet", "since", "pca0"]
    assert found[0]["Größe"] == "1.200,5"  # as it stands in the file
    assert found[7]["Größe"] == "n/a"
    assert found[3]["since"] == "04.03.2021"
    duckdb = pytest.importorskip("duckdb")
    assert main(["pca", str(people), "--keep", "all", "--out", str(tmp_path / "o.parquet")]) == 0
    stored = duckdb.sql(f"FROM '{tmp_path / 'o.parquet'}' LIMIT 1").fetchall()[0]
    assert stored[:3] == (0, "k00", 1200.5)


@pytest.mark.parametrize("name", ["fw_row_number", "row", "c0", "carried by foldwise 0", "cluster"])
def test_columns_may_have_any_name(name: str, tmp_path: Path) -> None:
    path, out = tmp_path / "t.csv", tmp_path / "o.csv"
    path.write_text(f"id,{name},b\n" + "".join(f"k{i},{i * i + 7},{i % 5}.5\n" for i in range(20)))
    assert main(["cluster", str(path), "-k", "2", "--where", "b < 4", "--keep", "all", "--out", str(out)]) == 0
    with open(out) as file:
        lines = list(csv.reader(file))[1:]
    assert [line[1:3] for line in lines] == [[f"k{i}", str(i * i + 7)] for i in range(20) if i % 5 < 4]


def test_long_identifiers_are_not_changed(tmp_path: Path) -> None:
    path, out = tmp_path / "t.csv", tmp_path / "o.csv"
    path.write_text("order,v\n" + "".join(f"{12345678901234567 + i % 9},{i}.5\n" for i in range(20)))
    assert main(["cluster", str(path), "-k", "2", "--id", "order", "--columns", "v", "--out", str(out)]) == 0
    assert [row["order"] for row in rows(out)] == [str(12345678901234567 + i % 9) for i in range(20)]


def test_new_rows_may_have_another_dialect(tmp_path: Path) -> None:
    first, new, model, out = tmp_path / "a.csv", tmp_path / "b.csv", tmp_path / "m.fw", tmp_path / "o.csv"
    first.write_text("x,y\n" + "".join(f"{i}.25,{i % 7}.5\n" for i in range(30)))
    new.write_text("y;x\n" + "".join(f"{i % 7},5;{i},25\n" for i in range(30)))
    assert main(["cluster", str(first), "-k", "3", "--model", str(model), "--out", str(out)]) == 0
    wanted = rows(out)
    assert main(["apply", str(model), str(new), "--out", str(out)]) == 0
    assert rows(out) == wanted


def test_a_condition_that_cannot_tell_columns_apart_is_refused(tmp_path: Path, capsys: Any) -> None:
    path = tmp_path / "t.csv"
    path.write_text("k;SIZE;size\na;1;2\nb;2;5\nc;9;8\nd;10;3\n")
    assert main(["cluster", str(path), "-k", "2", "--where", '"size" < 4']) == 2
    assert "SQL ignores case" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["o.parquet", "o.jsonl", "o.csv.gz"])
def test_identifiers_are_in_every_format(name: str, people: Path, tmp_path: Path) -> None:
    duckdb = pytest.importorskip("duckdb")
    out = tmp_path / name
    assert main(["cluster", str(people), "-k", "2", "--out", str(out)]) == 0
    stored = duckdb.sql(f"SELECT row, key, cluster FROM '{out}' ORDER BY row").fetchall()
    assert [line[:2] for line in stored] == [(i, f"k{i:02}") for i in range(40)]


def test_a_result_does_not_take_the_name_of_a_column(people: Path, tmp_path: Path) -> None:
    text = people.read_bytes().replace(b"key;", b"Cluster;")
    people.write_bytes(text)
    out = tmp_path / "out.csv"
    assert main(["cluster", str(people), "-k", "2", "--out", str(out)]) == 0
    assert list(rows(out)[0]) == ["row", "Cluster", "cluster_", "distance"]


@pytest.mark.filterwarnings("always::foldwise.errors.FoldwiseWarning")
def test_apply_prepares_new_rows_as_those_of_the_fit(people: Path, tmp_path: Path, capsys: Any) -> None:
    model, first, again = tmp_path / "m.fw", tmp_path / "1.csv", tmp_path / "2.csv"
    call = ["cluster", str(people), "-k", "2", "--categories", "encode", "--model", str(model), "--out", str(first)]
    assert main(call) == 0
    assert main(["apply", str(model), str(people), "--out", str(again)]) == 0
    assert rows(first) == rows(again)
    new = tmp_path / "new.csv"
    new.write_text("pet,colour,key,Größe\nnewt,red,a,1300\ncat,blue,b,\n")
    assert main(["apply", str(model), str(new), "--out", str(again), "--keep", "all"]) == 0
    said = capsys.readouterr().err
    assert "pet: 1 cell with levels that were not there in the fit ('newt')" in said
    found = rows(again)
    assert [row["colour"] for row in found] == ["red", "blue"]
    assert all(row["cluster"] in "01" for row in found)
    new.write_text("pet,key\ncat,a\n")
    assert main(["apply", str(model), str(new), "--out", str(again)]) == 2
    assert "there is no column 'Größe'" in capsys.readouterr().err


def test_missing_cells_each_way(people: Path, tmp_path: Path, capsys: Any) -> None:
    for policy, said in (
        ("drop", "left out"),
        ("mean", "filled with the column means"),
        ("model", "left to the model"),
    ):
        for command in (["cluster", "-k", "2"], ["pca"], ["mixture", "-k", "1", "--type", "full"]):
            assert main([command[0], str(people), *command[1:], "--missing", policy]) == 0
            assert said in capsys.readouterr().out
    assert main(["cluster", str(people), "-k", "2", "--missing", "error"]) == 2
    error = capsys.readouterr().err
    assert "row 7" in error
    assert "--missing model" in error
    assert main(["fit-distribution", str(people), "--column", "Größe", "--family", "normal", "--no-test"]) == 0
    assert "1 of 40 values" in capsys.readouterr().out


def test_what_was_misunderstood_can_be_said(tmp_path: Path, capsys: Any) -> None:
    path = tmp_path / "t.txt"
    path.write_text("made by a machine\n3;1,5;x\n4;2,5;y\n6;9,5;x\n7;8,25;y\n", encoding="utf-8")
    call = ["look", str(path), "--json", "--header", "no", "--skip", "1", "--delimiter", ";", "--decimal", ","]
    assert main([*call, "--values", "--missing-values", "x"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["rows"] == 4
    assert found["columns"][1]["values"] == [1.5, 2.5, 9.5, 8.25]
    assert found["columns"][2]["missing"] == 2


def test_standard_input(monkeypatch: Any, capsys: Any) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(Path(PENGUINS).read_bytes())))
    assert main(["cluster", "-", "-k", "3", "--scale"]) == 0
    assert "344 rows" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--where", "species = 'Emu'"], ["no row satisfies", "--where"]),
        (["--exclude", "speces"], ["no column 'speces'", "species"]),
        (["--as", "species"], ["--as species", "zip=category"]),
        (["--as", "species=kind"], ["--as species=kind", "category"]),
        (["--columns", "species"], ["not a number", "--categories encode"]),
        (["--columns", "island,sex", "--exclude", "body_mass_g"], ["island"]),
        (["--encoding", "klingon"], ["klingon"]),
    ],
)
def test_errors_are_in_the_words_of_the_command_line(options: list[str], words: list[str], capsys: Any) -> None:
    assert main(["cluster", PENGUINS, "-k", "2", *options]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    for word in words:
        assert word in said
    for word in ("svd_solver", "n_clusters", "columns=", "as_=", "fw."):
        assert word not in said
