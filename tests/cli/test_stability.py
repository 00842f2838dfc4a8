"""`--stability` of `foldwise cluster` and `foldwise mixture`."""

import json
import re
from pathlib import Path

import numpy as np
import pytest

import foldwise as fw
from foldwise.cli import main

WINE = Path(__file__).parents[2] / "examples" / "wine.csv"


def test_clusters(tmp_path, capsys):
    out, page = tmp_path / "c.csv", tmp_path / "c.html"
    options = ["-k", "3", "--scale", "--stability", "--out", str(out), "--report", str(page)]
    assert main(["cluster", str(WINE), *options]) == 0
    text = capsys.readouterr().out
    assert re.search(r"^cluster +Jaccard +corrected +dissolved +confidence +stability$", text, re.MULTILINE)
    source = fw.scan(WINE, columns="numeric")
    found = fw.stability(fw.KMeans(3, scale=True, search="breathing").fit(source), source)
    assert found.sentence in text
    for i, verdict in enumerate(found.verdicts):
        line = rf"^{i} +{found.jaccard[i]:.2f} +{found.corrected[i]:.2f} .* {verdict}$"
        assert re.search(line, text, re.MULTILINE)
    written = fw.scan(out, columns=["confidence"])
    np.testing.assert_array_equal(np.concatenate([p.load().rows for p in written.pieces()])[:, 0], found.confidence)
    html = page.read_text()
    assert "How stable the clusters are" in html
    assert "How surely the rows keep their clusters" in html
    assert max(len(line) for line in text.splitlines() if line.startswith(("cluster", "0", "100 fits"))) < 130


def test_mixtures_and_json(tmp_path, capsys):
    out = tmp_path / "m.npy"
    options = ["-k", "3", "--type", "diag", "--merge", "2", "--stability", "--json", "--out", str(out), "--seed", "1"]
    assert main(["mixture", str(WINE), *options]) == 0
    told = json.loads(capsys.readouterr().out)
    assert "How stable the clusters are" in json.dumps(told)
    rows = np.load(out)
    assert rows.dtype.names == ("cluster", "p0", "p1", "log_density", "confidence")
    assert ((rows["confidence"] >= 0) & (rows["confidence"] <= 1)).all()


@pytest.mark.parametrize("command", ["cluster", "mixture"])
def test_the_help_says_what_is_not_covered(command, capsys):
    assert main([command, "--help"]) == 0
    words = " ".join(re.sub("[│╭╮╰╯─]", " ", capsys.readouterr().out).split())
    assert "--time-budget and --checkpoint are for the fit before it" in words


def test_where_it_makes_no_sense(capsys):
    assert main(["cluster", str(WINE), "-k", "2:4", "--stability"]) == 2
    assert "--stability: not with a range" in capsys.readouterr().err
    assert main(["cluster", str(WINE), "-k", "1", "--stability"]) == 0
    assert "One cluster has no stability" in capsys.readouterr().out


@pytest.mark.parametrize("command", ["cluster", "mixture"])
def test_without_the_option_nothing_changes(command, tmp_path, capsys):
    out = tmp_path / "c.csv"
    assert main([command, str(WINE), "-k", "2", *(["--type", "diag"] * (command == "mixture")), "--out", str(out)]) == 0
    assert "Jaccard" not in capsys.readouterr().out
    assert "confidence" not in out.read_text().splitlines()[0]
