"""`foldwise autoencode`, its page, and `foldwise apply` of what it made."""

import csv
import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import foldwise as fw
from foldwise.cli import main

EXAMPLES = Path(__file__).parents[2] / "examples"
WINE, PENGUINS = EXAMPLES / "wine.csv", EXAMPLES / "penguins.csv"
QUICK = ["--layers", "8", "--epochs", "5"]
WITHOUT_TORCH = """
import sys

class Hidden:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == "torch":
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, Hidden())
from foldwise.cli import main
raise SystemExit(main(sys.argv[1:]))
"""


def test_it_prints_what_is_lost_beside_pca_the_columns_and_the_novel_rows(capsys):
    assert main(["autoencode", str(WINE), "--scale", "--label", "cultivar", *QUICK]) == 0
    out = capsys.readouterr().out
    assert "scaled columns, autoencoder 13-8-2-8-13 (silu)" in out
    lost, by_pca = (
        float(re.search(rf"^{name} +([\d.]+) %", out, re.MULTILINE)[1]) for name in ("lost by the codes", "lost by PCA")
    )
    assert 0 < lost <= by_pca < 100
    model = fw.Autoencoder(2, encoder=[8], max_iter=5, scale=True, random_state=0, missing="model")
    model.fit(fw.scan(WINE, columns="numeric"))
    assert lost == pytest.approx(100 * model.held_out_error_ / model.held_out_variance_, abs=0.06)
    for name in ("alcohol", "proline"):
        assert re.search(rf"^{name} +-?[\d.]+ % +-?[\d.]+ %$", out, re.MULTILINE)
    assert re.search(r"over the \d+ rows that were held out", out)
    # The worst row, with its label and number, is the one of the largest error.
    worst = re.search(r"^ *(\d+)  (\w+) +([\d.]+) +[\d.]+  ", out, re.MULTILINE)
    errors = model.reconstruction_error(fw.scan(WINE, columns="numeric"))
    assert int(worst[1]) == int(np.argmax(errors))
    assert float(worst[3]) == pytest.approx(errors.max(), rel=1e-3)
    assert worst[2] in ("barolo", "grignolino", "barbera")


def test_columns_are_judged_on_the_rows_held_out(capsys):
    """Weighted by the variances of the columns, the shares are what is lost."""
    assert main(["autoencode", str(WINE), "--scale", *QUICK, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    text = json.dumps(told)
    assert "lost by the codes" in text
    assert "explained by codes" in text


def test_rows_model_and_page_are_written_and_applied_without_torch(tmp_path, capsys):
    out, model, page = tmp_path / "o.csv", tmp_path / "m.fw", tmp_path / "r.html"
    command = ["autoencode", str(WINE), "-k", "3", "--label", "cultivar", *QUICK, "--scale", "--model", str(model)]
    assert main([*command, "--out", str(out), "--report", str(page)]) == 0
    text = capsys.readouterr().out
    assert f"codes: {out} (178 rows)" in text
    with out.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == ["row", "cultivar", "autoencoder0", "autoencoder1", "autoencoder2", "error"]
    fitted = fw.load(model)
    known = fw.scan(WINE, columns="numeric")
    np.testing.assert_allclose([float(row["autoencoder1"]) for row in rows], fitted.transform(known)[:, 1], rtol=1e-6)
    np.testing.assert_allclose([float(row["error"]) for row in rows], fitted.reconstruction_error(known), rtol=1e-6)
    html = page.read_text()
    for title in (
        "What the codes tell of each column",
        "The most novel rows",
        "The rows by their codes",
        "The rows on the first two principal components",
        "Training",
    ):
        assert title in html
    assert html.count("grignolino</text>") == 2  # in the legends of both planes
    assert "src=" not in html  # the only script is in the page itself
    other = tmp_path / "a.csv"
    subprocess.run(
        [sys.executable, "-c", WITHOUT_TORCH, "apply", str(model), str(WINE), "--out", str(other)],
        check=True,
        capture_output=True,
    )
    with other.open(newline="") as file:
        again = list(csv.DictReader(file))
    np.testing.assert_allclose([float(row["error"]) for row in again], [float(row["error"]) for row in rows], rtol=1e-6)


def test_one_number_missing_cells_and_no_labels(tmp_path, capsys):
    page = tmp_path / "r.html"
    assert main(["autoencode", str(PENGUINS), "-k", "1", "--scale", *QUICK, "--report", str(page)]) == 0
    assert "8 missing cells in 2 of 344 rows" in capsys.readouterr().out
    assert "The code beside the first component" in page.read_text()


def test_sizes_are_compared_with_pca(tmp_path, capsys):
    page, figures = tmp_path / "r.html", tmp_path / "f.json"
    command = ["autoencode", str(WINE), "--scale", "--sizes", "1, 2", *QUICK, "--report", str(page)]
    assert main([*command, "--out", str(figures)]) == 0
    out = capsys.readouterr().out
    assert "142 rows to learn from, 36 rows held out" in out
    assert re.search(r"^size  autoencoder     PCA  difference", out, re.MULTILINE)
    assert "What is lost, by the size of the code" in page.read_text()
    assert json.loads(figures.read_text())


def test_the_same_seed_gives_the_same_codes(tmp_path):
    for name in ("a", "b"):
        command = ["autoencode", str(WINE), "--scale", *QUICK, "--seed", "3", "--out", str(tmp_path / f"{name}.csv")]
        assert main([*command, "--threads", "1" if name == "a" else "2"]) == 0
    assert (tmp_path / "a.csv").read_text() == (tmp_path / "b.csv").read_text()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--layers", "64,x"], "--layers 64,x: give whole numbers separated by commas, as in 512,256,128"),
        (["--sizes", "0"], "--sizes 0: give whole numbers"),
        (["--size", "40"], "--size 40: a code must not have more numbers than the 13 columns"),
        (["--sizes", "40"], "a code of 40 is no smaller than 13 columns"),
        (["--sizes", "1,2", "--size", "2"], "--size and --sizes: give one of them"),
        (["--sizes", "1,2", "--model", "m.fw"], "--sizes compares several models and keeps none"),
        (["--sizes", "1,2", "--out", "s.csv"], "give a name that ends in .json"),
        (["--report", "page.txt"], "ends in .html"),
    ],
)
def test_bad_options(options, message, capsys):
    assert main(["autoencode", str(WINE), *options]) != 0
    assert message in " ".join(capsys.readouterr().err.split())


def test_without_torch_it_says_what_to_install(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "torch", None)
    assert main(["autoencode", str(WINE)]) != 0
    assert "pip install 'foldwise[torch]'" in " ".join(capsys.readouterr().err.split())


def test_defaults_are_those_of_the_model():
    import inspect

    from foldwise.cli.autoencode import autoencode

    ours, model = (inspect.signature(one).parameters for one in (autoencode, fw.Autoencoder))
    for name in ("activation", "noise", "dropout"):
        assert ours[name].default == model[name].default


def test_the_model_is_kept_if_the_report_is_interrupted(tmp_path, monkeypatch, capsys):
    def stop(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("foldwise.report.autoencoder.autoencoder_report", stop)
    assert main(["autoencode", str(WINE), "--scale", *QUICK, "--model", str(tmp_path / "m.fw")]) == 130
    assert fw.load(tmp_path / "m.fw").n_components_ == 2
