"""`foldwise mixture`, and `foldwise apply` of what it made."""

import csv
import re
from pathlib import Path

import numpy as np
import pytest

import foldwise as fw
from foldwise.cli import main

WINE = Path(__file__).parents[2] / "examples" / "wine.csv"


def test_it_prints_the_table_the_clusters_and_the_means(capsys):
    assert main(["mixture", str(WINE), "-k", "1:4", "--type", "diag,spherical", "--scale"]) == 0
    out = capsys.readouterr().out
    assert "178 rows, 13 columns" in out
    assert "describing: cultivar" in out
    assert re.search(r"^components +diag +spherical$", out, re.MULTILINE)
    assert "*: the best (diag, 4)" in out
    assert re.search(r"^cluster +rows +share +probability +what sets it apart$", out, re.MULTILINE)
    sizes = [int(line.split()[1]) for line in out.splitlines() if re.match(r"^\d +\d+ +\d+\.\d %", line)]
    assert sum(sizes) == 178
    assert re.search(r"^proline( +[\d,]+){4} +747$", out, re.MULTILINE)
    assert "the best is the largest number tried" in out
    assert max(len(line) for line in out.splitlines()) < 130


@pytest.mark.parametrize("name", ["c.csv", "c.parquet", "c.npy"])
def test_probabilities_are_written_and_apply_writes_the_same(name, tmp_path):
    first, again, model = tmp_path / name, tmp_path / f"again-{name}", tmp_path / "m.fw"
    options = ["-k", "3", "--type", "tied", "--merge", "2", "--out", str(first), "--model", str(model)]
    assert main(["mixture", str(WINE), *options]) == 0
    assert main(["apply", str(model), str(WINE), "--out", str(again)]) == 0
    fitted = fw.load(model)
    expected, shares = fitted.predict(str(WINE)), fitted.predict_proba(str(WINE))
    assert shares.shape == (178, 2)
    for path in (first, again):
        told = read(path)
        np.testing.assert_array_equal(told["cluster"], expected)
        np.testing.assert_allclose(np.column_stack([told["p0"], told["p1"]]), shares, rtol=1e-12, atol=1e-300)
        np.testing.assert_allclose(told["log_density"], fitted.score_samples(str(WINE)), rtol=1e-12)


def read(path):
    if path.suffix == ".npy":
        return np.load(path)
    if path.suffix == ".csv":
        with open(path) as file:
            head, *lines = csv.reader(file)
        return dict(zip(head, np.array(lines, dtype=float).T, strict=True))
    import duckdb

    return duckdb.sql(f"SELECT * FROM '{path}'").fetchnumpy()


def test_the_page_is_whole(tmp_path, capsys):
    page = tmp_path / "m.html"
    assert main(["mixture", str(WINE), "-k", "2:3", "--scale", "--merge", "auto", "--report", str(page)]) == 0
    text = page.read_text()
    for words in (
        "The clusters",
        "How many components, of which shape?",
        "How certain the assignments are",
        "Means, in the units of the data",
    ):
        assert words in text
    assert "Components merged into clusters" in text
    assert "<polygon" in text
    assert "://" not in text
    assert len(text) < 300_000
    assert "nan" not in text
    assert str(page) in capsys.readouterr().out


@pytest.mark.filterwarnings("default")  # the command prints them
def test_one_of_each_can_be_resumed(tmp_path, capsys):
    model = tmp_path / "m.fw"
    command = ["mixture", str(WINE), "-k", "3", "--type", "full", "--scale", "--model", str(model), "--resume"]
    assert main([*command, "--max-iter", "1"]) == 0
    assert (tmp_path / "m.fw.checkpoint").exists()
    assert "stopped early: capped after 1 iteration" in capsys.readouterr().out
    assert main(command) == 0
    assert "resumed from a checkpoint at iteration 1" in capsys.readouterr().out
    assert not (tmp_path / "m.fw.checkpoint").exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["-k", "zero"], "--components zero: give a number"),
        (["--type", "round"], "--type round: give some of full"),
        (["-k", "2", "--merge", "5"], "1 to 2 clusters"),
        (["--merge", "some"], "--merge some: give a number of clusters, or auto"),
        (["-k", "2:3", "--time-budget", "1"], "only for one number and one type"),
        (["--report", "x.pdf"], "ends in .html"),
        (["--resume"], "--resume needs a place"),
    ],
)
def test_refusals(options, message, capsys):
    assert main(["mixture", str(WINE), *options]) == 2
    assert message in capsys.readouterr().err


def test_fewer_rows_than_the_range_has_numbers(tmp_path, capsys):
    file = tmp_path / "seven.csv"
    file.write_text("a,b\n" + "".join(f"{i},{(i * 37) % 11}\n" for i in range(7)))
    assert main(["mixture", str(file)]) == 0
    assert "BIC, lower is better" in capsys.readouterr().out
