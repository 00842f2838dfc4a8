"""`foldwise cluster`, and `foldwise apply` of what it made."""

import csv
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import foldwise as fw
from foldwise.cli import main
from foldwise.selection.profile import profile

WINE = Path(__file__).parents[2] / "examples" / "wine.csv"


def numeric():
    return fw.scan(WINE, columns="numeric")


def test_it_prints_clusters_traits_and_centres(capsys):
    assert main(["cluster", str(WINE), "-k", "3", "--scale"]) == 0
    out = capsys.readouterr().out
    assert "178 rows, 13 columns" in out
    assert "describing: cultivar" in out
    assert "converged" in out
    # scikit-learn: KMeans(3, n_init=10) on StandardScaler().fit_transform(wine) has an inertia of 1277.928
    assert "inertia                    1277.9 of scaled columns" in out
    lines = out.splitlines()
    head = next(i for i, line in enumerate(lines) if line.startswith("cluster "))
    sizes = [int(line.split()[1]) for line in lines[head + 1 : head + 4]]
    assert sizes == [65, 62, 51]
    assert lines[head + 2].index("proline +1.1") == lines[head].index("what sets it apart")
    assert re.search(r"^proline +510 +1,100 +619 +747$", out, re.MULTILINE)
    assert "hint: -k auto" in out


def test_it_looks_right_with_many_clusters_columns_and_no_names(tmp_path, capsys):
    rng = np.random.default_rng(0)
    x = (rng.standard_normal((20, 60))[np.arange(600) % 20] * 9 + rng.standard_normal((600, 60))) * 10.0 ** (
        np.arange(60) % 6 - 2
    )
    np.save(tmp_path / "x.npy", x)
    assert main(["cluster", str(tmp_path / "x.npy"), "-k", "20", "--search", "none"]) == 0
    out = capsys.readouterr().out
    assert max(len(line) for line in out.splitlines()) < 120
    assert re.search(r"^\((\d+) columns that differ less between the clusters are not shown\)$", out, re.MULTILINE)
    assert re.search(r"^cluster +x\d+ ", out, re.MULTILINE)
    assert "hint: --search breathing" in out
    assert re.search(r"hint: x\d+ has the largest spread and dominates the distances; --scale", out)


@pytest.mark.parametrize("name", ["c.csv", "c.parquet", "c.jsonl", "c.npy"])
def test_labels_and_distances_are_written_and_apply_writes_the_same(name, tmp_path):
    first, again, model = tmp_path / name, tmp_path / f"again-{name}", tmp_path / "m.fw"
    assert main(["cluster", str(WINE), "-k", "3", "--scale", "--out", str(first), "--model", str(model)]) == 0
    assert main(["apply", str(model), str(WINE), "--out", str(again)]) == 0
    expected = fw.KMeans(3, scale=True, search="breathing", random_state=0).fit(numeric())
    distances = expected.transform(numeric())[np.arange(178), expected.labels_]
    for path in (first, again):
        labels, found = read(path)
        np.testing.assert_array_equal(labels, expected.labels_)
        np.testing.assert_allclose(found, distances, rtol=1e-12)
    np.testing.assert_array_equal(fw.load(model).predict(str(WINE)), expected.labels_)


def read(path):
    if path.suffix == ".npy":
        rows = np.load(path)
        return rows["cluster"], rows["distance"]
    if path.suffix == ".csv":
        with open(path) as file:
            head, *lines = csv.reader(file)
        assert head == ["row", "cluster", "distance"]
        assert lines[0][1].isdigit()  # a whole number, not 0.0
        assert [int(line[0]) for line in lines] == list(range(len(lines)))
        return np.array([int(line[1]) for line in lines]), np.array([float(line[2]) for line in lines])
    if path.suffix == ".jsonl":
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        return np.array([line["cluster"] for line in lines]), np.array([line["distance"] for line in lines])
    stored = pytest.importorskip("duckdb").sql(f"select * from '{path}'").fetchnumpy()
    assert stored["cluster"].dtype == np.int32
    return stored["cluster"], stored["distance"]


def test_columns_where_weights_and_cosine(tmp_path, capsys):
    model = tmp_path / "m.fw"
    call = ["cluster", str(WINE), "-k", "2", "--columns", "alcohol,hue", "--where", "cultivar = 'barolo'"]
    assert main([*call, "--weights", "ash", "--metric", "cosine", "--model", str(model)]) == 0
    out = capsys.readouterr().out
    assert "59 rows, 2 columns" in out
    assert "mean cosine" in out
    assert re.search(r"^cluster +rows +weight +share", out, re.MULTILINE)
    assert fw.load(model).metric == "cosine"


def test_a_range_shows_the_votes(tmp_path, capsys):
    page = tmp_path / "votes.html"
    assert main(["cluster", str(WINE), "-k", "2:6", "--scale", "--report", str(page)]) == 0
    out = capsys.readouterr().out
    assert re.search(r"^There are \w+ 3 clusters", out, re.MULTILINE)
    assert re.search(r"^silhouette +3 +3 to 3", out, re.MULTILINE)
    assert not re.search(r"^cluster +rows", out, re.MULTILINE)
    text = page.read_text()
    assert "What each criterion saw" in text
    assert text.count("<svg") == 10
    assert "://" not in text
    assert "nan" not in text.replace("nonflavanoid", "").lower()


def test_auto_chooses_and_clusters(tmp_path, capsys):
    out = tmp_path / "rows.csv"
    assert main(["cluster", str(WINE), "-k", "auto", "--scale", "--out", str(out), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert "3 clusters" in json.dumps(found)
    assert len({line.split(",")[1] for line in out.read_text().splitlines()[1:]}) == 3


def test_auto_says_that_there_are_none(tmp_path, capsys):
    noise, out = tmp_path / "noise.csv", tmp_path / "rows.csv"
    np.savetxt(noise, np.random.default_rng(0).random((300, 4)), delimiter=",", header="a,b,c,d", comments="")
    assert main(["cluster", str(noise), "-k", "auto", "--out", str(out)]) == 0
    assert "No clusters found" in capsys.readouterr().out
    assert len(out.read_text().splitlines()) == 301


@pytest.mark.parametrize("k", ["3", "12"])
def test_the_report_is_one_small_page_that_loads_nothing(k, tmp_path):
    page = tmp_path / "report.html"
    assert main(["cluster", str(WINE), "-k", k, "--scale", "--report", str(page)]) == 0
    text = page.read_text()
    assert text.count('r="3"') == 178
    assert "flavanoids" in text
    assert "://" not in text
    assert "src=" not in text  # the only script is in the page itself
    assert "nan" not in text.replace("nonflavanoid", "").lower()
    assert page.stat().st_size < 200_000


def test_the_report_of_many_rows_stays_small(tmp_path):
    rng = np.random.default_rng(0)
    np.save(tmp_path / "x.npy", rng.standard_normal((30_000, 3)) + 6 * rng.integers(0, 3, (30_000, 1)))
    page = tmp_path / "report.html"
    assert main(["cluster", str(tmp_path / "x.npy"), "-k", "70", "--search", "none", "--report", str(page)]) == 0
    assert page.stat().st_size < 400_000


@pytest.mark.parametrize(("columns", "k"), [("alcohol", "2"), ("alcohol,hue", "1")], ids=["one column", "one cluster"])
def test_reports_of_little(columns, k, tmp_path):
    page = tmp_path / "report.html"
    assert main(["cluster", str(WINE), "-k", k, "--columns", columns, "--report", str(page)]) == 0
    assert "What sets each cluster apart" in page.read_text()


@pytest.mark.filterwarnings("always::UserWarning")
@pytest.mark.parametrize(
    ("rows", "k"),
    [
        (np.ones((20, 3)), 2),
        (np.ones((1, 2)), 1),
        (np.repeat([[0.0, 1.0], [5.0, 5.0]], 10, axis=0), 4),
        (np.random.default_rng(0).standard_normal((100, 3)) * 1e170, 2),
        (np.random.default_rng(0).standard_normal((100, 3)).astype(np.float32) * np.float32(1e-25), 2),
    ],
    ids=["all equal", "one row", "two points", "large", "small"],
)
def test_odd_data_are_told_about_too(rows, k, tmp_path, capsys):
    np.save(tmp_path / "x.npy", rows)
    page = [] if float(rows.max()) > 1e150 else ["--report", str(tmp_path / "r.html")]  # PCA refuses such variances
    assert main(["cluster", str(tmp_path / "x.npy"), "-k", str(k), "--max-iter", "20", *page]) == 0
    out = capsys.readouterr().out
    assert "what sets it apart" in out
    assert " nan" not in out


def test_figures_of_very_large_values_are_those_of_the_same_values_divided(tmp_path):
    x = np.random.default_rng(0).standard_normal((100, 3))
    small, large = (profile(fw.KMeans(2, init=x[:2] * f).fit(x * f), fw.scan(x * f)) for f in (1.0, 2.0**500))
    np.testing.assert_array_equal(small.differences, large.differences)
    np.testing.assert_array_equal(small.means, large.means / 2.0**500)
    assert small.silhouette == large.silhouette


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (["-k", "many"], ["--clusters many", "2:12"]),
        (["-k", "0"], ["--clusters 0"]),
        (["-k", "5:2"], ["--clusters 5:2"]),
        (["-k", "500"], ["178", "500"]),
        (["--out", "labels.docx"], ["labels.docx", ".parquet"]),
        (["--report", "r.pdf"], [".html"]),
        (["--model", "no-such-folder/m.fw"], ["no-such-folder", "does not exist"]),
        (["--resume"], ["--resume", "--model"]),
        (["-k", "2:4", "--out", "labels.csv"], ["--out", "range", "-k auto"]),
        (["--columns", "alcool"], ["alcool", "alcohol"]),
        (["--metric", "manhattan"], []),
    ],
)
def test_wrong_options_are_one_message_before_any_work(call, words, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    try:
        code = main(["cluster", str(WINE), *call])
    except SystemExit as stop:  # cyclopts tells about values that are no options
        code = stop.code
    captured = capsys.readouterr()
    assert code
    assert "what sets it apart" not in captured.out
    assert "Traceback" not in captured.err
    for word in words:
        assert word in captured.err
    assert not list(tmp_path.iterdir())


@pytest.mark.filterwarnings("always::foldwise.errors.NotFinishedWarning")
def test_a_budget_that_ran_out_is_resumed_to_the_same_model(tmp_path, capsys):
    model, whole = tmp_path / "m.fw", tmp_path / "whole.fw"
    call = ["cluster", str(WINE), "-k", "4", "--scale", "--model"]
    assert main([*call, str(model), "--resume", "--time-budget", "1e-9"]) == 0
    out = capsys.readouterr().out
    assert "stopped early: out of time" in out
    assert f"checkpoint: {model}.checkpoint (run the same command again to resume)" in out
    assert main([*call, str(model), "--resume"]) == 0
    assert not Path(f"{model}.checkpoint").exists()
    assert main([*call, str(whole)]) == 0
    assert fw.load(model).cluster_centers_.tobytes() == fw.load(whole).cluster_centers_.tobytes()


# Every step waits, so that the parent has time to interrupt in the middle of the fit.
CHILD = """
import sys, time
from foldwise.cli import main
from foldwise.fold import events
with events.listening(lambda event: time.sleep(0.3) if isinstance(event, events.StepDone) else None):
    sys.exit(main(sys.argv[1:]))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_ctrl_c_keeps_the_best_and_the_checkpoint_and_exits_with_130(tmp_path):
    rng = np.random.default_rng(0)
    np.save(tmp_path / "x.npy", rng.random((20_000, 4)))
    model, checkpoint = tmp_path / "m.fw", tmp_path / "m.fw.checkpoint"
    call = ["cluster", str(tmp_path / "x.npy"), "-k", "9", "--model", str(model), "--resume"]
    with subprocess.Popen([sys.executable, "-c", CHILD, *call], stdout=subprocess.PIPE, text=True) as child:
        deadline = time.monotonic() + 60
        while not checkpoint.exists() and child.poll() is None and time.monotonic() < deadline:
            time.sleep(0.01)
        os.kill(child.pid, signal.SIGINT)
        out = child.communicate(timeout=60)[0]
    assert child.returncode == 130
    assert "stopped early: interrupted" in out
    assert checkpoint.exists()
    assert fw.load(model).outcome_.reason == "interrupted"
    assert main(call) == 0
    assert not checkpoint.exists()
    undisturbed = fw.KMeans(9, search="breathing", random_state=0).fit(tmp_path / "x.npy")
    assert fw.load(model).cluster_centers_.tobytes() == undisturbed.cluster_centers_.tobytes()
    assert fw.load(model).manifest_.resumed_at > 0


def test_the_data_are_not_overwritten(tmp_path, capsys):
    copy = tmp_path / "wine.csv"
    copy.write_bytes(WINE.read_bytes())
    assert main(["cluster", str(copy), "--checkpoint", str(copy)]) == 2
    assert "destroy" in capsys.readouterr().err
    assert copy.read_bytes() == WINE.read_bytes()
