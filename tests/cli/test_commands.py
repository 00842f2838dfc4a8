import csv
import json
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
    assert "describing: cultivar" in out
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
    assert head == ["row", "pca0", "pca1", "pca2"]
    expected = fw.PCA(3, scale=True).fit(fw.scan(WINE, columns="numeric")).transform(fw.scan(WINE, columns="numeric"))
    np.testing.assert_array_equal(np.array(lines, dtype=float)[:, 1:], expected)
    duckdb = pytest.importorskip("duckdb")
    stored = duckdb.sql(f"select * from '{again}'").fetchnumpy()
    np.testing.assert_array_equal(np.column_stack([stored[name] for name in head[1:]]), expected)


@pytest.mark.parametrize(("asked", "kept"), [("2", 2), ("0.9", 8), ("parallel", 3), ("broken-stick", 2), ("auto", 3)])
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
        (["pca", str(WINE), "--columns", "cultivar"], ["wine.csv", "cultivar", "--categories encode"]),
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
    assert "://" not in text
    assert "src=" not in text  # the only script is in the page itself
    assert page.stat().st_size < 200_000


def test_the_installed_command():
    done = subprocess.run([sys.executable, "-m", "foldwise", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == fw.__version__


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (["pca", str(WINE), "-k", "-1"], []),
        (["pca", str(WINE), "-k", "1.5"], ["--components 1.5"]),
        (["pca", str(WINE), "--report", "no-such-folder/r.html"], ["no-such-folder", "does not exist"]),
        (["pca", str(WINE), "--report", "r.pdf"], [".html"]),
        (["pca", str(WINE), "--checkpoint", "c"], ["krylov or power"]),
    ],
)
def test_wrong_options_are_told_before_any_work(call, words, capsys):
    try:
        code = main(call)
    except SystemExit as stop:  # cyclopts tells about values that are no options
        code = stop.code
    captured = capsys.readouterr()
    assert code
    assert "component  variance" not in captured.out
    for word in words:
        assert word in captured.err


def test_the_data_are_not_overwritten(tmp_path, capsys):
    copy = tmp_path / "wine.csv"
    copy.write_bytes(WINE.read_bytes())
    assert main(["pca", str(copy), "--out", str(copy)]) == 2
    assert "destroy" in capsys.readouterr().err
    assert copy.read_bytes() == WINE.read_bytes()


def test_columns_of_npy_by_position_and_names_by_comma(tmp_path, capsys):
    rows = np.random.default_rng(0).standard_normal((50, 4))
    np.save(tmp_path / "x.npy", rows)
    assert main(["pca", str(tmp_path / "x.npy"), "--columns", "0,2"]) == 0
    assert "50 rows, 2 columns" in capsys.readouterr().out
    assert main(["pca", str(WINE), "--columns", "alcohol,hue"]) == 0
    assert "178 rows, 2 columns" in capsys.readouterr().out


def test_a_model_without_names_says_when_the_width_is_wrong(tmp_path, capsys):
    rows = np.random.default_rng(0).standard_normal((50, 4))
    np.save(tmp_path / "x.npy", rows)
    np.save(tmp_path / "y.npy", rows[:, :3])
    assert main(["pca", str(tmp_path / "x.npy"), "--model", str(tmp_path / "m.fw")]) == 0
    assert main(["apply", str(tmp_path / "m.fw"), str(tmp_path / "y.npy"), "--out", str(tmp_path / "o.csv")]) == 2
    assert "3 features" in capsys.readouterr().err


def test_nothing_to_write_is_told(tmp_path, capsys):
    np.save(tmp_path / "x.npy", np.random.default_rng(0).standard_normal((100, 4)))
    assert main(["pca", str(tmp_path / "x.npy"), "-k", "0", "--out", str(tmp_path / "o.csv")]) == 2
    assert "no column to write" in capsys.readouterr().err


def test_a_wrong_number_of_threads_in_the_environment(monkeypatch, capsys):
    monkeypatch.setenv("FOLDWISE_THREADS", "abc")
    assert main(["pca", str(WINE)]) == 2
    assert "FOLDWISE_THREADS" in capsys.readouterr().err


COMMANDS = [
    ["pca", str(WINE), "-k", "2"],
    ["cluster", str(WINE), "-k", "3"],
    ["cluster", str(WINE), "-k", "2:3"],
    ["mixture", str(WINE), "-k", "2", "--type", "diag"],
    ["fit-distribution", str(WINE), "-c", "hue", "-f", "normal"],
]


@pytest.mark.parametrize("call", COMMANDS, ids=lambda call: call[0])
def test_json_is_all_that_is_printed(call, tmp_path, capsys):
    page = [] if "2:3" in call else ["--model", str(tmp_path / "m.fw")]
    assert main([*call, "--json", *page]) == 0
    printed = json.loads(capsys.readouterr().out)
    if call[0] == "pca":
        assert printed["tables"]["Components"]["variance"] == fw.load(tmp_path / "m.fw").explained_variance_.tolist()
    if call[0] == "cluster" and page:
        assert printed["facts"]["inertia"] == fw.load(tmp_path / "m.fw").inertia_
        assert sum(printed["tables"]["The clusters"]["rows"]) == 178


@pytest.mark.skipif(not hasattr(fw, "engine"), reason="engines are chosen by fw.engine")
@pytest.mark.parametrize("engine", ["serial", "threads"])
@pytest.mark.parametrize("call", COMMANDS, ids=lambda call: call[0])
def test_engines_print_the_same(call, engine, capsys):
    outputs = []
    for extra in ([], ["--engine", engine]):
        assert main([*call, "--json", *extra]) == 0
        outputs.append({k: v for k, v in json.loads(capsys.readouterr().out).items() if k in ("facts", "parameters")})
    assert outputs[0] == outputs[1]


def test_every_computing_command_has_an_engine(capsys):
    for command in ("pca", "cluster", "mixture", "fit-distribution", "apply"):
        assert main([command, "--help"]) == 0
        assert "--engine" in capsys.readouterr().out
