import csv
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import foldwise as fw
from foldwise.cli import main

WINE = Path(__file__).parents[2] / "examples" / "wine.csv"


def test_pca_prints_an_aligned_table(capsys):
    assert main(["pca", str(WINE), "--scale"]) == 0
    out = capsys.readouterr().out
    assert "178 rows, 13 columns" in out
    assert "left out, not numbers: cultivar" in out
    lines = out.splitlines()
    head = next(line for line in lines if line.startswith("component"))
    first = next(line for line in lines if line.startswith("pca0"))
    # R: prcomp(wine, scale. = TRUE) has a first standard deviation of 2.1692972 and a share of 0.3619885
    assert "4.7059" in first
    assert "36.2 %" in first
    assert first.index("+") == head.index("top loadings")
    assert "flavanoids" in first


def test_pca_writes_scores_and_model_and_apply_agrees(tmp_path, capsys):
    scores, again, model = tmp_path / "scores.csv", tmp_path / "again.parquet", tmp_path / "m.fw"
    assert main(["pca", str(WINE), "-k", "3", "--scale", "--out", str(scores), "--model", str(model)]) == 0
    assert main(["apply", str(model), str(WINE), "--out", str(again)]) == 0
    with open(scores) as file:
        head, *lines = csv.reader(file)
    assert head == ["pca0", "pca1", "pca2"]
    expected = fw.PCA(3, scale=True).fit(fw.scan(WINE, columns="numeric")).transform(fw.scan(WINE, columns="numeric"))
    np.testing.assert_array_equal(np.array(lines, dtype=float), expected)
    duckdb = pytest.importorskip("duckdb")
    stored = duckdb.sql(f"select * from '{again}'").fetchnumpy()
    np.testing.assert_array_equal(np.column_stack([stored[name] for name in head]), expected)


@pytest.mark.parametrize(("asked", "kept"), [("2", 2), ("0.9", 8), ("parallel", 3)])
def test_numbers_of_components(asked, kept, capsys):
    assert main(["pca", str(WINE), "--scale", "--components", asked]) == 0
    assert capsys.readouterr().out.count("\npca") == kept


def test_columns_where_and_weights(tmp_path, capsys):
    model = tmp_path / "m.fw"
    call = ["pca", str(WINE), "--columns", "alcohol", "--columns", "hue", "--where", "cultivar = 'barolo'"]
    assert main([*call, "--model", str(model)]) == 0
    fitted = fw.load(model)
    assert list(fitted.feature_names_in_) == ["alcohol", "hue"]
    assert fitted.n_samples_ == 59
    assert main([*call, "--weights", "ash"]) == 0
    assert "59 rows, 2 columns" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (["pca", "nothing-here.csv"], ["nothing-here.csv"]),
        (["pca", str(WINE), "--components", "many"], ["--components many", "gavish-donoho"]),
        (["pca", str(WINE), "--columns", "alcool"], ["alcool", "alcohol"]),
        (["pca", str(WINE), "--columns", "cultivar"], ["cultivar", "row 0", "barolo"]),
        (["apply", str(WINE), str(WINE), "--out", "x.csv"], ["wine.csv", "not a model"]),
        (["pca", str(WINE), "--out", "scores.docx"], ["scores.docx", ".parquet"]),
    ],
)
def test_errors_are_one_message_and_no_traceback(call, words, capsys):
    assert main(call) == 2
    err = capsys.readouterr().err
    assert err.startswith("foldwise: ")
    assert "Traceback" not in err
    for word in words:
        assert word in err


def test_report_is_one_small_page_that_loads_nothing(tmp_path, capsys):
    page = tmp_path / "report.html"
    assert main(["pca", str(WINE), "--scale", "--report", str(page)]) == 0
    text = page.read_text()
    assert text.count("<circle") == 178
    assert "flavanoids" in text
    assert "http" not in text
    assert "<script" not in text
    assert page.stat().st_size < 200_000


def test_the_installed_command():
    done = subprocess.run([sys.executable, "-m", "foldwise", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == fw.__version__
