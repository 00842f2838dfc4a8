"""`foldwise ensemble`, its page, and `foldwise apply` of what it made."""

import csv
import json
import re
from pathlib import Path

import numpy as np
import pytest

import foldwise as fw
from foldwise.cli import main
from foldwise.report.ensemble import ensemble_report
from foldwise.report.heat_map import heat_map
from foldwise.report.html import as_html

WINE = Path(__file__).parents[2] / "examples" / "wine.csv"


def test_it_prints_clusters_and_how_sure_they_are(capsys):
    assert main(["ensemble", str(WINE), "-k", "3", "--scale"]) == 0
    out = capsys.readouterr().out
    assert "ensemble of 20 clusterings (k-range), spectral consensus, of 6 to 13 clusters" in out
    sizes = [int(line.split()[1]) for line in out.splitlines() if re.match(r"[012] +\d+ +\d", line)]
    assert sorted(sizes) == sorted(
        np.bincount(fw.ClusterEnsemble(3, scale=True).fit(fw.scan(WINE, columns="numeric")).labels_)
    )
    assert re.search(r"^cultivar  grignolino  1?\d\d %", out, re.MULTILINE)
    assert "mean confidence" in out
    assert "hint: -k auto" in out
    assert "PAC" not in out  # base clusterings with more clusters part pairs on purpose


def test_auto_chooses_the_number_and_says_why(capsys):
    assert main(["ensemble", str(WINE), "--scale", "--clusterings", "5"]) == 0
    out = capsys.readouterr().out
    assert re.search(r"^There are \w+ 3 clusters", out, re.MULTILINE)
    assert re.search(r"^silhouette +3 ", out, re.MULTILINE)


def test_auto_may_find_no_clusters(tmp_path, capsys):
    np.save(tmp_path / "x.npy", np.random.default_rng(3).standard_normal((150, 3)))
    assert main(["ensemble", str(tmp_path / "x.npy"), "--clusterings", "3"]) == 0
    out = capsys.readouterr().out
    assert "No clusters found" in out
    assert "hint: -k 2" in out


def test_rows_model_and_page_are_written_and_applied(tmp_path, capsys):
    out, model, page = tmp_path / "o.csv", tmp_path / "m.fw", tmp_path / "r.html"
    command = ["ensemble", str(WINE), "-k", "3", "--out", str(out), "--model", str(model), "--report", str(page)]
    assert main([*command, "--keep", "all"]) == 0
    with out.open(newline="") as file:
        rows = list(csv.DictReader(file))
    found = fw.load(model)
    assert [int(row["cluster"]) for row in rows] == found.labels_.tolist()
    np.testing.assert_allclose([float(row["confidence"]) for row in rows], found.confidence_, rtol=1e-12)
    assert rows[0]["cultivar"] == "barolo"
    text = page.read_text()
    for title in (
        "The clusters",
        "The consensus matrix",
        "How often two rows are together",
        "What sets each cluster apart",
    ):
        assert title in text
    assert "data:image/png;base64," in text
    assert main(["apply", str(model), str(WINE), "--out", str(tmp_path / "a.csv")]) == 0
    with (tmp_path / "a.csv").open(newline="") as file:
        assert [int(row["cluster"]) for row in csv.DictReader(file)] == found.labels_.tolist()
    capsys.readouterr()


def test_a_file_of_labels(tmp_path, capsys):
    lines = ["a,b,c", *(f"{i // 10},{(i // 10 + 1) % 3},{i // 10 if i % 7 else ''}" for i in range(30))]
    (tmp_path / "labels.csv").write_text("\n".join(lines) + "\n")
    out, page = tmp_path / "o.csv", tmp_path / "r.html"
    assert main(["ensemble", str(tmp_path / "labels.csv"), "--labels", "--out", str(out), "--report", str(page)]) == 0
    text = capsys.readouterr().out
    assert "30 rows, 3 clusterings" in text
    assert "3 clusters: the eigenvalues" in text
    with out.open(newline="") as file:
        labels = np.array([int(row["cluster"]) for row in csv.DictReader(file)])
    assert all(len(set(labels[10 * i : 10 * i + 10].tolist())) == 1 for i in range(3))
    assert len(set(labels.tolist())) == 3
    assert "The consensus matrix" in page.read_text()
    assert main(["ensemble", str(tmp_path / "labels.csv"), "--labels", "-k", "2", "--json"]) == 0
    json.loads(capsys.readouterr().out)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["-k", "many"], "give a number such as 3, or auto"),
        (["-k", "0"], "give a number such as 3, or auto"),
        (["--labels", "--model", "m.fw"], "--model: not with --labels"),
        (["--labels"], "must be numbers"),
        (["--consensus", "median"], "consensus"),
    ],
)
def test_bad_arguments(arguments, words, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    try:
        code = main(["ensemble", str(WINE), *arguments])
    except SystemExit as stopped:
        code = stopped.code
    assert code != 0
    captured = capsys.readouterr()
    assert words in captured.err + captured.out


def test_pages_of_unusual_fits():
    rng = np.random.default_rng(0)
    x = np.concatenate([rng.standard_normal((40, 2)), rng.standard_normal((40, 2)) + 9])
    x[3, 1] = np.nan
    for settings in (
        {"n_clusters": 2, "missing": "model"},
        {"n_clusters": 2, "missing": "drop", "scale": True},
        {"n_clusters": 1},
    ):
        rows = np.nan_to_num(x) if "missing" not in settings else x
        source = fw.scan(rows) if "missing" not in settings else rows
        model = fw.ClusterEnsemble(n_base=3, **settings).fit(source)
        from foldwise.data.missing import allow_missing

        assert "consensus cluster" in as_html(ensemble_report(model, allow_missing(fw.scan(rows))))
    one = fw.ClusterEnsemble(2, n_base=3).fit(x[10:, :1])
    assert "The clusters" in as_html(ensemble_report(one, fw.scan(x[10:, :1])))


def test_a_heat_map_is_drawn_for_groups_in_order():
    drawn = heat_map(np.eye(4), [0, 0, 1, 1])
    assert drawn.startswith("<svg")
    assert drawn.count("data:image/png") == 1
