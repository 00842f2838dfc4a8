"""What commands write: never over their input, never two results in one file, and one line if it cannot be done."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import foldwise as fw
from foldwise.cli import main
from foldwise.data.inputs import files_read

WINE = Path(__file__).parents[2] / "examples" / "wine.csv"


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the data in several forms, which is the current one."""
    import duckdb

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("s.csv", "s2.csv", "a[1].csv"):
        Path(name).write_bytes(WINE.read_bytes())
    Path("link.csv").symlink_to("s.csv")
    os.link("s.csv", "hard.csv")
    Path("parts/deep").mkdir(parents=True)
    for name in ("parts/0.parquet", "parts/deep/1.parquet"):
        duckdb.sql(f"COPY (SELECT alcohol, hue, ash FROM 's.csv') TO '{name}'")
    np.save("x.npy", np.random.default_rng(0).standard_normal((30, 3)))
    return tmp_path


def everything(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def refused(call: list[str], capsys: pytest.CaptureFixture[str], *words: str) -> None:
    """The command ends with code 2 and one line, has computed nothing and changed no file."""
    before = everything(Path.cwd())
    assert main(call) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    for word in words:
        assert word in captured.err
    assert everything(Path.cwd()) == before


@pytest.mark.parametrize(
    ("source", "out"),
    [
        ("s.csv", "s.csv"),
        ("s.csv", "parts/../s.csv"),
        ("s.csv", "link.csv"),
        ("link.csv", "s.csv"),
        ("s.csv", "hard.csv"),
        ("~/s.csv", "s.csv"),
        ("s.csv", "~/s.csv"),
        ("s*.csv", "s2.csv"),
        ("a[1].csv", "a[1].csv"),
        ("parts/**/*.parquet", "parts/deep/1.parquet"),
        ("x.npy", "x.npy"),
        ("SELECT * FROM 's.csv'", "s.csv"),
        ("SELECT * FROM 's.csv'", "link.csv"),
        ("SELECT * FROM 's.csv'", "hard.csv"),
        ('from "s.csv"', "s.csv"),
        ("from read_csv($$s.csv$$)", "s.csv"),
        ("from read_csv('s' || '.csv')", "s.csv"),
        ("SELECT * FROM 's*.csv'", "s2.csv"),
        ("SELECT * FROM read_csv(['s.csv', 's2.csv'])", "s2.csv"),
        ("WITH t AS (FROM 's2.csv') SELECT t.* FROM t JOIN 's.csv' USING (hue)", "s.csv"),
        ("SELECT * FROM read_parquet('parts')", "parts/0.parquet"),
        ("SELECT * FROM 'parts/**'", "parts/deep/1.parquet"),
    ],
)
def test_the_input_is_never_overwritten(here: Path, capsys: pytest.CaptureFixture[str], source: str, out: str) -> None:
    refused(["pca", source, "--out", out], capsys, f"--out {os.path.expanduser(out)}", "input", "destroy")


@pytest.mark.parametrize("option", ["--model", "--checkpoint"])
def test_other_outputs_do_not_overwrite_it_either(here: Path, capsys: Any, option: str) -> None:
    refused(["cluster", "SELECT * FROM 's.csv'", "-k", "2", option, "s.csv"], capsys, f"{option} s.csv", "destroy")


def test_a_model_is_not_overwritten_by_what_it_gives(here: Path, capsys: Any) -> None:
    fw.save(fw.PCA(2).fit("x.npy"), "m.csv")
    refused(["apply", "m.csv", "x.npy", "--out", "m.csv"], capsys, "--out m.csv", "destroy")


def test_a_text_in_a_condition_is_not_an_input(here: Path, capsys: Any) -> None:
    Path("parts/old.csv").write_text("old")
    query = "SELECT alcohol, hue FROM 's.csv' WHERE cultivar <> 'parts'"
    assert main(["pca", query, "--out", "parts/old.csv"]) == 0
    assert Path("parts/old.csv").read_text().startswith("row,pca0")
    assert files_read("SELECT 1 AS parts") == []
    assert files_read("SELECT broken FROM") == []


@pytest.mark.parametrize(
    "outputs",
    [
        ["--out", "a.csv", "--model", "a.csv"],
        ["--out", "a.csv", "--model", "parts/../a.csv"],
        ["--model", "r.html", "--report", "r.html"],
        ["--model", "m.fw", "--checkpoint", "m.fw"],
        ["--out", "old.csv", "--model", "to-old"],
        ["--out", "old.csv", "--model", "hard-old"],
        ["--model", "m.fw", "--report", "m.fw.html", "--checkpoint", "m.fw.html"],
    ],
)
def test_two_outputs_are_two_files(here: Path, capsys: Any, outputs: list[str]) -> None:
    Path("old.csv").write_text("old")
    Path("to-old").symlink_to("old.csv")
    os.link("old.csv", "hard-old")
    refused(["cluster", "s.csv", "-k", "2", *outputs], capsys, "are the same file", outputs[-2], outputs[-1])


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("parts", "it is a folder"),
        ("nowhere/m", "nowhere does not exist"),
        ("s.csv/m", "does not exist"),
        ("/dev/null", "device"),
        ("/proc/m", "No such file"),
    ],
)
def test_places_that_cannot_be_written_are_told_first(here: Path, capsys: Any, path: str, words: str) -> None:
    refused(["pca", "s.csv", "--model", path], capsys, f"--model {path}: cannot be written: ", words)
    assert not os.path.isfile("/dev/null")


OUTPUTS = [
    ["pca", "s.csv", "--out", "o.csv"],
    ["pca", "s.csv", "--out", "o.parquet"],
    ["pca", "s.csv", "--out", "o.npy"],
    ["pca", "s.csv", "--model", "m.fw"],
    ["pca", "s.csv", "--report", "r.html"],
    ["fit-distribution", "s.csv", "-c", "hue", "-f", "normal", "--out", "o.json"],
]


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO, errno.EDQUOT])
@pytest.mark.parametrize("call", OUTPUTS, ids=lambda call: call[-1])
def test_a_full_disk_is_one_line(here: Path, capsys: Any, monkeypatch: Any, call: list[str], code: int) -> None:
    Path(call[-1]).write_text("old")
    before = everything(here)

    def full(*arguments: Any) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, "fsync", full)
    assert main(call) == 2
    told = capsys.readouterr().err
    assert told == f"foldwise: {call[-1]}: cannot be written: {os.strerror(code)}. The old file is unchanged.\n"
    assert everything(here) == before


def test_what_duckdb_says_of_a_full_disk_is_put_plainly(here: Path, capsys: Any, monkeypatch: Any) -> None:
    import duckdb

    from foldwise.data.write import _Table

    def full(part: str) -> Any:
        def finish(table: Any) -> None:
            raise duckdb.IOException(f'Could not write file "{part}":\nNo space left on device')

        return finish

    monkeypatch.setattr(_Table, "finish", full("/x/.o.csv.0123456789ab.foldwise-part"))
    assert main(["pca", "s.csv", "--out", "o.csv"]) == 2
    assert capsys.readouterr().err == "foldwise: o.csv: cannot be written: No space left on device.\n"
    monkeypatch.setattr(_Table, "finish", full("/scratch/rows.db"))
    assert main(["pca", "s.csv", "--out", "o.csv"]) == 2
    assert "No space left on device, in /scratch/rows.db.\n" in capsys.readouterr().err
    assert not Path("o.csv").exists()


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs a device that is always full")
def test_standard_output_that_is_full_is_one_line_and_files_are_written(here: Path) -> None:
    with open("/dev/full", "w") as full:
        run = subprocess.run(
            [sys.executable, "-m", "foldwise", "pca", "s.csv", "--model", "m.fw"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert run.returncode == 2
    assert run.stderr == "foldwise: standard output cannot be written to: No space left on device.\n"
    assert fw.load("m.fw").n_features_in_ == 13


def test_a_query_is_not_run_to_find_out_what_it_reads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "old.csv").write_text("kept")
    text = "SELECT 1 AS a, 2 AS b; COPY (SELECT 7 AS z) TO 'written.csv'"
    assert main(["pca", text, "--out", "old.csv"]) == 2
    assert "2 statements" in capsys.readouterr().err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["old.csv"]
    assert (tmp_path / "old.csv").read_text() == "kept"
