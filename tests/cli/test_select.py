"""`foldwise select`, its page, and `foldwise apply` of what it made."""

import csv
import json
import re
from itertools import combinations
from math import comb
from pathlib import Path

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import KFold, StratifiedKFold, cross_val_score
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import foldwise as fw
from foldwise.cli import main
from foldwise.report.svg import ORANGE

EXAMPLES = Path(__file__).parents[2] / "examples"
WINE, PENGUINS = str(EXAMPLES / "wine.csv"), str(EXAMPLES / "penguins.csv")


def rows_of(path):
    with Path(path).open(newline="") as file:
        return list(csv.DictReader(file))


def as_json(arguments, capsys):
    assert main(["select", *arguments, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


@pytest.fixture
def table(tmp_path):
    """Three numbers, a sum of two of them, a number to predict and a category with a rare level, both with gaps."""
    rng = np.random.default_rng(5)
    a, b, c = rng.standard_normal((3, 80))
    lines = ["id,a,b,c,sum,y,group,times"]
    for i in range(80):
        group = "" if i in (3, 4) else "rare" if i in (7, 11) else "high" if a[i] > 0 else "low"
        y = "" if i == 9 else f"{2 * a[i] - b[i]:.6f}"
        lines.append(f"k{i:03d},{a[i]:.6f},{b[i]:.6f},{c[i]:.6f},{a[i] + b[i]:.6f},{y},{group},{1 + i % 3}")
    path = tmp_path / "table.csv"
    path.write_text("\n".join(lines) + "\n")
    return str(path)


# ---------------------------------------------------------------- variance explained


def test_the_path_is_that_of_the_library(capsys):
    found = as_json([WINE, "-n", "4", "--scale"], capsys)
    model = fw.FeatureSelector(4, scale=True).fit(fw.scan(WINE, columns="numeric"))
    path = found["tables"]["Every step of the search"]
    assert path["step"] == [model.path_.told(step) for step in model.path_.steps] == list(model.selected_)
    np.testing.assert_allclose(path["explained"], [step.score for step in model.path_.steps], rtol=1e-12)
    np.testing.assert_allclose(path["at most"], [step.bound for step in model.path_.steps], rtol=1e-12)
    np.testing.assert_allclose(np.cumsum(path["gain"]), path["explained"], rtol=1e-12)
    assert path[""] == ["", "", "", "chosen"]
    assert found["facts"]["columns kept"] == list(model.selected_)
    assert found["facts"]["reached of that"] == pytest.approx(model.score_ / model.bound_)


def test_what_is_lost_and_what_is_explained_are_those_of_regressions(capsys):
    """Every figure of the two tables, by least squares on the rows."""
    found = as_json([WINE, "-n", "3", "--scale"], capsys)
    source = fw.scan(WINE, columns="numeric")
    x = np.concatenate([piece.load().rows for piece in source.pieces()])
    x = (x - x.mean(axis=0)) / x.std(axis=0)
    names = list(source.names)

    def left(chosen):
        part = x[:, [names.index(name) for name in chosen]]
        return x - part @ np.linalg.lstsq(part, x, rcond=None)[0]

    def score(chosen):
        return 1 - float((left(chosen) ** 2).sum() / (x**2).sum())

    kept = found["tables"]["Columns kept"]
    assert kept["lost without it"] == sorted(kept["lost without it"], reverse=True)
    for name, lost in zip(kept["kept"], kept["lost without it"], strict=True):
        others = [one for one in kept["kept"] if one != name]
        assert lost == pytest.approx(score(kept["kept"]) - score(others), abs=1e-10)
    out = found["tables"]["Columns left out"]
    assert len(out["left out"]) == 10
    assert out["explained"] == sorted(out["explained"])
    shares = 1 - (left(kept["kept"]) ** 2).mean(axis=0)
    correlations = np.corrcoef(x.T)
    for name, share, near, r in zip(*out.values(), strict=True):
        j = names.index(name)
        assert share == pytest.approx(shares[j], abs=1e-10)
        own = [correlations[j, names.index(one)] for one in kept["kept"]]
        assert r == pytest.approx(max(own, key=abs), abs=1e-10)
        assert near == kept["kept"][int(np.argmax(np.abs(own)))]


def test_exhaustive_says_how_many_subsets_it_could_leave_out(capsys):
    found = as_json([WINE, "-n", "5", "--scale", "--search", "exhaustive"], capsys)
    assert found["facts"]["subsets in all"] == comb(13, 5)
    assert found["facts"]["saved by the bound"] + found["facts"]["subsets compared"] == comb(13, 5)
    names = [name for name in rows_of(WINE)[0] if name != "cultivar"]
    scatter = np.corrcoef([[float(row[name]) for row in rows_of(WINE)] for name in names]) / 13

    def score(some):
        part = scatter[:, some]
        return np.trace(part @ np.linalg.solve(scatter[np.ix_(some, some)], part.T))

    best = max(combinations(range(13), 5), key=lambda some: score(list(some)))
    assert set(found["facts"]["columns kept"]) == {names[j] for j in best}
    assert found["facts"]["variance explained"] == pytest.approx(score(list(best)))
    assert main(["select", WINE, "-n", "5", "--scale", "--search", "exhaustive"]) == 0
    assert re.search(r"^subsets compared +\d+ of 1,287 \(.*best subset of all\)", capsys.readouterr().out, re.MULTILINE)


def test_auto_says_its_rule_and_a_share_is_reached(capsys):
    assert main(["select", WINE, "--scale"]) == 0
    out = capsys.readouterr().out
    assert re.search(
        r"^auto keeps 5 columns \(plausible: 5 to 10\): the fewest .* \(66\.5 %; by parallel", out, re.MULTILINE
    )
    assert "hint: --search exhaustive" in out
    found = as_json([WINE, "--scale", "-n", "0.9"], capsys)
    path = found["tables"]["Every step of the search"]
    chosen = path[""].index("chosen")
    assert path["explained"][chosen] >= 0.9 > path["explained"][chosen - 1]
    assert any(note.startswith(f"share 0.9 keeps {path['columns'][chosen]} columns") for note in found["notes"])


def test_backward_is_told_by_rising_size(capsys):
    found = as_json([WINE, "--scale", "-n", "3", "--search", "backward"], capsys)
    path = found["tables"]["Every step of the search"]
    assert path["columns"] == list(range(3, 14))
    assert path[""][0] == "chosen"
    assert path["step"][-1] == "all columns"
    assert all(gain > 0 for gain in path["gain"][1:])


def test_units_that_decide_everything_are_told(capsys):
    assert main(["select", WINE, "-n", "2"]) == 0
    out = capsys.readouterr().out
    assert re.search(
        r"^hint: one column alone explains 99\.\d %.*--scale lets all columns count alike", out, re.MULTILINE
    )
    assert main(["select", WINE, "-n", "2", "--scale"]) == 0
    assert "count alike" not in capsys.readouterr().out


# ---------------------------------------------------------------- files


def test_rows_model_and_page_are_written_and_applied(table, tmp_path, capsys):
    out, model, page = tmp_path / "o.csv", tmp_path / "m.fw", tmp_path / "r.html"
    command = ["select", table, "--exclude", "y,times", "-n", "2", "--out", str(out), "--model", str(model)]
    assert main([*command, "--report", str(page)]) == 0
    printed = capsys.readouterr().out
    found, given, written = fw.load(model), rows_of(table), rows_of(out)
    assert list(written[0]) == ["row", "id", *found.get_feature_names_out()]
    for one, before in zip(written, given, strict=True):
        assert one["id"] == before["id"]
        assert all(float(one[name]) == float(before[name]) for name in found.selected_)
    assert "chosen columns:" in printed
    text = page.read_text()
    for title in ("2 columns of 4 that stand for all", "Columns kept", "Columns left out", "Every step of the search"):
        assert title in text
    assert "at most: principal components" in text
    assert text.count(f"stroke:{ORANGE}") == 1  # one ring
    assert main(["apply", str(model), table, "--out", str(tmp_path / "a.csv")]) == 0
    assert rows_of(tmp_path / "a.csv") == written
    capsys.readouterr()
    assert main(["apply", str(model), table, "--out", str(tmp_path / "a.csv"), "--keep", "all"]) == 2
    assert "the file itself has all" in capsys.readouterr().err


@pytest.mark.parametrize("missing", ["mean", "drop", "model"])
def test_missing_cells_are_written_as_missing(missing, tmp_path, capsys):
    out = tmp_path / "o.csv"
    assert main(["select", PENGUINS, "-n", "2", "--scale", "--missing", missing, "--out", str(out)]) == 0
    written, given = rows_of(out), rows_of(PENGUINS)
    names = [name for name in written[0] if name != "row"]
    assert len(written) == len(given) == 344
    for name in names:
        assert [row[name] == "" for row in written] == [row[name] in ("", "NA") for row in given]
    capsys.readouterr()


def test_weights_count_rows_that_often(table, tmp_path, capsys):
    given = rows_of(table)
    names = ["a", "b", "c", "sum"]
    lines = [",".join(row[name] for name in names) for row in given for _ in range(int(row["times"]))]
    long = tmp_path / "long.csv"
    long.write_text("\n".join([",".join(names), *lines]) + "\n")
    weighted = as_json([table, "-n", "2", "--exclude", "y", "--weights", "times"], capsys)
    repeated = as_json([str(long), "-n", "2"], capsys)
    assert weighted["facts"]["columns kept"] == repeated["facts"]["columns kept"]
    assert weighted["facts"]["variance explained"] == pytest.approx(repeated["facts"]["variance explained"], rel=1e-12)


def test_a_file_of_numbers_without_names(tmp_path, capsys):
    x = np.random.default_rng(0).standard_normal((60, 5))
    x[:, 2], x[:, 4] = 1.0, 2 * x[:, 0]
    np.save(tmp_path / "x.npy", x)
    assert main(["select", str(tmp_path / "x.npy"), "-n", "3", "--out", str(tmp_path / "o.npy")]) == 0
    out = capsys.readouterr().out
    assert re.search(r"^x2 +100\.0 % +-$", out, re.MULTILINE)  # a constant is close to nothing
    np.testing.assert_array_equal(np.load(tmp_path / "o.npy"), x[:, [0, 1, 3]])


# ---------------------------------------------------------------- clusters


@pytest.mark.parametrize(("scoring", "name"), [(None, "between clusters"), ("silhouette", "silhouette")])
def test_columns_for_clusters(scoring, name, tmp_path, capsys):
    page = tmp_path / "r.html"
    options = [] if scoring is None else ["--scoring", scoring]
    found = as_json([WINE, "--scale", "-k", "3", "-n", "2", *options, "--report", str(page)], capsys)
    model = fw.FeatureSelector(2, criterion="cluster", n_clusters=3, scoring=scoring, scale=True, random_state=0)
    model.fit(fw.scan(WINE, columns="numeric"))
    assert found["facts"]["columns kept"] == list(model.selected_)
    np.testing.assert_allclose(found["tables"]["Every step of the search"][name], model.path_.scores, rtol=1e-12)
    assert found["facts"]["subsets compared"] == 13 + 12
    assert "2 columns of 13 for 3 clusters" in page.read_text()


# ---------------------------------------------------------------- a final task


def test_a_category_is_classified(capsys):
    found = as_json([WINE, "--target", "cultivar", "--task", "neighbours", "-n", "2", "--seed", "3"], capsys)
    given = rows_of(WINE)
    y = np.array([row["cultivar"] for row in given])
    assert "cultivar" not in found["facts"]["columns kept"]
    x = np.array([[float(row[name]) for name in found["facts"]["columns kept"]] for row in given])
    folds = StratifiedKFold(5, shuffle=True, random_state=3)
    scores = cross_val_score(make_pipeline(StandardScaler(), KNeighborsClassifier()), x, y, cv=folds)
    assert found["facts"]["cross-validated accuracy"] == pytest.approx(scores.mean())
    path = found["tables"]["Every step of the search"]
    assert path["give or take"][-1] == pytest.approx(scores.std(ddof=1) / np.sqrt(5))
    assert "target: cultivar (category, 3 levels)" in found["about"]


def test_a_number_is_predicted_and_rows_without_it_are_written_all_the_same(table, tmp_path, capsys):
    out = tmp_path / "o.csv"
    command = [table, "--target", "y", "--exclude", "times", "-n", "2", "--folds", "4", "--out", str(out)]
    found = as_json(command, capsys)
    assert "target: y (number); 1 row without it not used in the search" in found["about"]
    given = [row for row in rows_of(table) if row["y"]]
    x = np.array([[float(row[name]) for name in found["facts"]["columns kept"]] for row in given])
    y = np.array([float(row["y"]) for row in given])
    scores = cross_val_score(LinearRegression(), x, y, cv=KFold(4, shuffle=True, random_state=0))
    assert found["facts"]["cross-validated R²"] == pytest.approx(scores.mean())
    assert found["facts"]["cross-validated R²"] > 0.999
    written = rows_of(out)
    assert [row["y"] for row in written] == [row["y"] for row in rows_of(table)]
    assert len(written) == 80


@pytest.mark.filterwarnings("always::foldwise.errors.FoldwiseWarning")
def test_rare_levels_are_told_and_all_searches_run(table, capsys):
    for search in ("backward", "floating", "swap", "exhaustive"):
        assert main(["select", table, "--target", "group", "--exclude", "y,times", "--search", search, "-n", "2"]) == 0
        captured = capsys.readouterr()
        assert "levels of group with fewer rows than --folds 5: rare (2)" in captured.err
        assert captured.err.count("\n") == 1
        assert "2 rows without it not used" in captured.out


def test_a_task_with_weights_and_missing_cells(table, capsys):
    path = Path(table)
    lines = path.read_text().splitlines()
    cells = lines[6].split(",")
    lines[6] = ",".join([*cells[:2], "", *cells[3:]])
    path.write_text("\n".join(lines) + "\n")
    for task in ("linear", "forest"):
        command = [
            "select",
            table,
            "--columns",
            "a,b",
            "--target",
            "y",
            "--task",
            task,
            "--weights",
            "times",
            "-n",
            "1",
        ]
        assert main([*command, "--folds", "2"]) == 0
        assert "1 missing cell in 1 of 79 rows" in capsys.readouterr().out
    assert main(["select", table, "--target", "y", "--task", "neighbours", "--weights", "times"]) == 2
    assert "--task neighbours takes no weights" in capsys.readouterr().err


@pytest.mark.filterwarnings("always::foldwise.errors.NotFinishedWarning")
def test_a_search_that_was_stopped_goes_on(tmp_path, capsys):
    command = ["select", WINE, "--target", "cultivar", "--task", "neighbours", "-n", "2"]
    checkpoint = tmp_path / "kept"
    assert main([*command, "--checkpoint", str(checkpoint), "--time-budget", "0.05"]) == 0
    stopped = capsys.readouterr().out
    assert "stopped early" in stopped
    assert checkpoint.exists()
    resumed = as_json([*command[1:], "--checkpoint", str(checkpoint)], capsys)
    assert any("resumed from a checkpoint" in line for line in resumed["about"])
    assert not checkpoint.exists()
    whole = as_json(command[1:], capsys)
    assert resumed["tables"]["Every step of the search"] == whole["tables"]["Every step of the search"]


# ---------------------------------------------------------------- what cannot be done


@pytest.mark.parametrize(
    ("text", "arguments", "words"),
    [
        ("", [], "the file is empty"),
        ("a,b\n1,2\n1,2\n1,2\n", [], "every column is constant"),
        ("a,b\nred,x\nblue,y\nred,x\nred,y\n", [], "--categories encode uses categories"),
        (None, ["-n", "9"], "--features 9 must not exceed the number of columns, 6"),
        (None, ["-n", "0"], "--features 0: give a number such as 5"),
        (None, ["-n", "some"], "--features some: give a number such as 5"),
        (None, ["--target", "price"], "there is no column 'price'"),
        (None, ["--target", "id"], "the target must be a number or a category, but this is: identifier"),
        (None, ["--target", "y", "-n", "0.5"], "--features 0.5: a share is of explained variance"),
        (None, ["--target", "y", "--weights", "y"], "the weights cannot be the target"),
        (None, ["--target", "id", "--id", "id"], "--id says that it names the rows"),
        (None, ["--target", "y", "--folds", "60"], "--folds 60: 79 rows with a target are too few"),
        (None, ["--criterion", "wrapper"], "give the column to predict, as in --target price"),
        (None, ["--criterion", "cluster"], "give the number of clusters, as in -k 3"),
        (None, ["--criterion", "cluster", "-k", "2", "--target", "y"], "--target is for --criterion wrapper"),
        (None, ["--task", "forest", "--criterion", "variance-explained"], "--task is for --criterion wrapper"),
        (None, ["--keep", "all", "--out", "o.csv"], "--keep all: --out has the chosen columns"),
        (None, ["--out", "o.xyz"], "o.xyz"),
    ],
)
def test_bad_input_is_one_line(text, arguments, words, table, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    if text is not None:
        Path(table).write_text(text)
    assert main(["select", table, *arguments]) == 2
    captured = capsys.readouterr()
    assert words in captured.err
    assert captured.err.count("\n") == 1
    assert captured.out == ""


def test_a_target_must_vary_and_have_levels_that_repeat(tmp_path, capsys):
    path = tmp_path / "t.csv"
    path.write_text("x,y,z\n" + "\n".join(f"{i * i},{i % 7},{i}.5" for i in range(12)) + "\n")
    assert main(["select", str(path), "--target", "z", "--as", "z=category"]) == 2
    assert "every level has fewer rows than --folds 5" in capsys.readouterr().err
    assert main(["select", str(path), "--target", "z", "--where", "z = 3.5"]) == 2
    assert "in all rows, so that there is nothing to predict" in capsys.readouterr().err
    assert main(["select", str(tmp_path / "x.npy"), "--target", "1"]) == 2
    assert "the columns of arrays and images have no names" in capsys.readouterr().err


def test_one_column_is_kept(tmp_path, capsys):
    path = tmp_path / "one.csv"
    path.write_text("x\n1\n2\n4\n7\n")
    assert main(["select", str(path), "--report", str(tmp_path / "r.html")]) == 0
    assert re.search(r"^columns kept +1 of 1$", capsys.readouterr().out, re.MULTILINE)
    assert "Columns left out" not in (tmp_path / "r.html").read_text()
