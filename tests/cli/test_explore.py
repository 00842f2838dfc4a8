"""`foldwise explore`: the files it writes, and what it says of input that cannot be explored."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

import foldwise as fw
from foldwise.cli import main
from foldwise.selection.explore import steps


@pytest.fixture(autouse=True)
def _quick(monkeypatch, tmp_path):
    monkeypatch.setattr(steps, "_REPEATS", 5)
    monkeypatch.chdir(tmp_path)


def write(path, rows, head="a,b,c"):
    np.savetxt(path, rows, delimiter=",", header=head, comments="", fmt="%.6g")
    return str(path)


def groups(n=40, seed=0):
    rng = np.random.default_rng(seed)
    return np.concatenate([rng.normal(size=(n, 3)) + centre for centre in ([0, 0, 0], [9, 0, 0], [0, 9, 9])])


def test_files_beside_the_report(tmp_path, capsys):
    assert main(["explore", write(tmp_path / "x.csv", groups()), "--max-clusters", "4"]) == 0
    printed = capsys.readouterr().out
    assert {"report.html", "rows.csv", "model.fw", "summary.json"} <= set(os.listdir(tmp_path))
    assert printed.rstrip().endswith("report: report.html")
    assert "3 groups" in printed
    lines = (tmp_path / "rows.csv").read_text().splitlines()
    assert lines[0].startswith("row,cluster,confidence,t2,residual,pca0,pca1")
    assert len(lines) == 121
    summary = json.loads((tmp_path / "summary.json").read_text())
    assert json.dumps(summary, allow_nan=False)
    assert main(["apply", "model.fw", "x.csv", "--out", "again.csv"]) == 0
    clusters = [line.split(",")[1] for line in lines[1:]]
    assert [line.split(",")[1] for line in (tmp_path / "again.csv").read_text().splitlines()[1:]] == clusters


def test_other_names_and_several_files(tmp_path):
    x = groups()
    one, other = write(tmp_path / "x1.csv", x[:60]), write(tmp_path / "x2.csv", x[60:])
    names = ["--out", "sub.html", "--rows", "r.parquet", "--summary", "s.json"]
    assert main(["explore", one, other, *names, "-k", "3", "--scale", "no", "--max-clusters", "3"]) == 0
    assert {"sub.html", "r.parquet", "s.json", "sub-model.fw"} <= set(os.listdir(tmp_path))
    assert fw.scan("r.parquet", columns="numeric").n_rows == 120


def test_array_files_and_json(tmp_path, capsys):
    np.save(tmp_path / "x.npy", groups())
    assert main(["explore", "x.npy", "--json", "--max-clusters", "4"]) == 0
    assert json.loads(capsys.readouterr().out)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "empty"),
        ("a,b\n", "no rows"),
        ("a\n" + "1.5\n2.5\n3.25\n" * 9, "only one column"),
        ("a,b\n" + "1,2\n" * 30, "constant"),
        ("a,b\n1,2\n3,4\n", "too few"),
        ("a,b\n" + "".join(f"some words number {i},other words {i * i}\n" for i in range(30)), "no column of numbers"),
    ],
)
def test_input_that_cannot_be_explored(tmp_path, capsys, text, said):
    (tmp_path / "x.csv").write_text(text)
    (tmp_path / "report.html").write_text("old")
    assert main(["explore", "x.csv"]) == 2
    error = capsys.readouterr().err
    assert said in error
    assert error.count("\n") == 1
    assert (tmp_path / "report.html").read_text() == "old"
    assert sorted(os.listdir(tmp_path)) == ["report.html", "x.csv"]


def test_inputs_are_never_overwritten(tmp_path, capsys):
    one, other = write(tmp_path / "x.csv", groups()), write(tmp_path / "rows.csv", groups(seed=1))
    before = (tmp_path / "rows.csv").read_bytes()
    assert main(["explore", one, other]) == 2
    assert "input file" in capsys.readouterr().err
    assert (tmp_path / "rows.csv").read_bytes() == before


def test_all_files_are_of_one_run(tmp_path, monkeypatch, capsys):
    import foldwise.cli.output
    from foldwise.errors import OutputError

    x = write(tmp_path / "x.csv", groups())
    for name in ("report.html", "rows.csv", "model.fw", "summary.json"):
        (tmp_path / name).write_text("old")

    def full(*_, **__):
        raise OutputError("rows.csv: cannot be written: No space left on device.")

    monkeypatch.setattr(foldwise.cli.output, "write_rows", full)
    assert main(["explore", x, "--max-clusters", "3"]) == 2
    assert "No space left" in capsys.readouterr().err
    assert all(
        (tmp_path / name).read_text() == "old" for name in ("report.html", "rows.csv", "model.fw", "summary.json")
    )
    assert len(os.listdir(tmp_path)) == 5

    def stop(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(foldwise.cli.output, "write_rows", stop)
    assert main(["explore", x, "--max-clusters", "3"]) == 130
    assert "rows.csv was not written" in capsys.readouterr().out
    assert (tmp_path / "rows.csv").read_text() == "old"
    assert (tmp_path / "report.html").read_text().startswith("<!doctype html>")


def test_rows_are_numbered_as_in_the_file(tmp_path):
    rows = np.column_stack([np.arange(120), groups()])
    rows[100, 1:] = [60.0, -40.0, 50.0]
    x = write(tmp_path / "x.csv", rows, "n,a,b,c")
    assert main(["explore", x, "--as", "n=number", "--exclude", "n", "--where", "n >= 20", "-k", "2"]) == 0
    summary = json.loads((tmp_path / "summary.json").read_text())
    assert any(one["row"] == 100 for one in summary["rows_worth_a_look"])
    clusters = {line.split(",")[0]: line.split(",")[1] for line in (tmp_path / "rows.csv").read_text().splitlines()[1:]}
    for group in summary["groups"]["groups"]:
        assert all(clusters[str(row)] == str(group["number"]) for row in group["exemplars"])


def test_infinity_is_one_line(tmp_path, capsys):
    rows = groups()
    rows[3, 1] = np.inf
    assert main(["explore", write(tmp_path / "x.csv", rows)]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert "row 3" in error


def test_more_groups_than_rows(tmp_path, capsys):
    assert main(["explore", write(tmp_path / "x.csv", groups()), "-k", "400"]) == 2
    assert "--clusters 400 is more than the 120 rows" in capsys.readouterr().err


def test_bad_places(tmp_path, capsys):
    x = write(tmp_path / "x.csv", groups())
    for arguments, said in [
        ([str(tmp_path)], "folder"),
        (["none.csv"], "no such file"),
        ([x, "--out", "no/such/report.html"], "--out"),
        ([x, "--out", "report.txt"], ".html"),
        ([x, "--rows", "x.csv"], "input file"),
        ([x, "--rows", "r.csv", "--summary", "r.csv"], "same file"),
        ([x, "--rows", "r.docx"], "r.docx"),
    ]:
        assert main(["explore", *arguments]) == 2, arguments
        error = capsys.readouterr().err
        assert said in error
        assert error.count("\n") == 1


def test_very_many_columns(tmp_path, capsys):
    (tmp_path / "x.csv").write_text(",".join(f"c{j}" for j in range(20_001)) + "\n" + ",".join(["1"] * 20_001) + "\n")
    assert main(["explore", "x.csv"]) == 2
    assert "columns are more than" in capsys.readouterr().err


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_ctrl_c_writes_what_is_done(tmp_path):
    rng = np.random.default_rng(0)
    write(tmp_path / "x.csv", rng.normal(size=(4000, 3)))
    process = subprocess.Popen(
        [sys.executable, "-m", "foldwise.cli", "explore", "x.csv"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    time.sleep(6.0)
    if process.poll() is None:
        process.send_signal(signal.SIGINT)
    out, error = process.communicate(timeout=120)
    assert "Traceback" not in error
    assert process.returncode in (0, 130)
    if process.returncode == 130 and "report:" in out:
        assert (tmp_path / "report.html").exists()
        assert "not" in out
