"""The report on chosen columns, for models of every kind."""

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression

import foldwise as fw
from foldwise.report.charts import path_chart
from foldwise.report.html import as_html
from foldwise.report.json import as_dict
from foldwise.report.select import select_report
from foldwise.report.svg import ORANGE

RNG = np.random.default_rng(0)
X = RNG.standard_normal((60, 3)) @ RNG.standard_normal((3, 6)) + 0.1 * RNG.standard_normal((60, 6))


def spread(rows):
    """A criterion of a user."""
    return float(rows.std(axis=0).mean())


@pytest.mark.parametrize(
    ("settings", "y", "shown"),
    [
        ({"n_features": 3, "search": "floating"}, None, "How much the columns explain"),
        ({"n_features": "auto", "search": "swap", "scale": True}, None, "auto keeps"),
        ({"n_features": 6, "search": "backward"}, None, "all columns"),
        ({"n_features": 2, "search": "exhaustive"}, None, "saved by the bound"),
        ({"n_features": 2, "criterion": "cluster", "n_clusters": 2}, None, "Between clusters by the number of columns"),
        ({"n_features": 2, "criterion": spread}, None, "Score by the number of columns"),
        ({"n_features": 2, "criterion": "wrapper", "estimator": LinearRegression()}, X[:, 0], "subsets compared"),
    ],
)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_every_kind_of_fit_is_told_as_text_and_page(settings, y, shown, dtype):
    x = X.astype(dtype)
    model = fw.FeatureSelector(random_state=0, **settings).fit(x, y)
    report = select_report(model, fw.scan(x))
    page, values = as_html(report), as_dict(report)
    assert shown in page
    assert values["facts"]["columns kept"] == [f"x{j}" for j in model.selected_]
    assert f"{model.n_features_} of 6" in str(report)
    steps = values["tables"]["Every step of the search"]
    assert len(steps["columns"]) == len(model.path_.steps)
    assert steps[""].count("chosen") == 1
    assert steps["columns"][steps[""].index("chosen")] == model.n_features_


def test_removals_and_exchanges_are_told():
    """The first column is best alone, and worse than the third once the second is in."""
    a, b, noise = np.random.default_rng(1).standard_normal((3, 400))
    x = np.column_stack([a + b + 0.5 * noise, 1.3 * a, 1.3 * b])
    for search, told in (
        ("swap", ["x0", "x2", "x1 instead of x0"]),
        ("floating", ["x0", "x2", "x1", "without x0", "x0"]),
    ):
        model = fw.FeatureSelector(2 if search == "swap" else 3, search=search).fit(x)
        report = as_dict(select_report(model, fw.scan(x)))
        steps = report["tables"]["Every step of the search"]
        assert steps["step"] == told
        np.testing.assert_allclose(np.cumsum(steps["gain"]), steps["explained"], rtol=1e-12)
        assert sorted(report["facts"]["columns kept"]) == ["x0", "x1", "x2"][-model.n_features_ :]


def test_nothing_is_lost_without_a_column_that_others_explain():
    x = np.column_stack([X[:, 0], X[:, 1], X[:, 0] - X[:, 1]])
    model = fw.FeatureSelector(3).fit(x)
    kept = as_dict(select_report(model, fw.scan(x)))["tables"]["Columns kept"]
    assert min(kept["lost without it"]) == pytest.approx(0.0, abs=1e-9)
    assert "Columns left out" not in str(select_report(model, fw.scan(x)))


@pytest.mark.filterwarnings("ignore::foldwise.errors.NotFinishedWarning")
def test_a_search_that_was_stopped_does_not_claim_to_be_the_best():
    x = np.random.default_rng(0).standard_normal((300, 26))
    model = fw.FeatureSelector(12, search="exhaustive", time_budget=0.01).fit(x)
    assert not model.outcome_.converged
    text = str(select_report(model, fw.scan(x)))
    assert "the search was stopped before its end" in text
    assert "best subset of all" not in text


def test_a_wide_table_keeps_the_text_short():
    x = np.random.default_rng(0).standard_normal((300, 160))
    report = select_report(fw.FeatureSelector(10, search="backward").fit(x), fw.scan(x))
    lines = str(report).splitlines()
    assert any(line.startswith("... and ") for line in lines)
    assert len(lines) < 200
    assert next(line for line in lines if line.endswith("chosen")).split()[0] == "10"
    assert "and 1" in str(report)


def test_the_chart_has_both_lines_and_one_ring():
    sizes, scores, bounds = [1, 2, 3], np.array([0.3, 0.6, 0.7]), np.array([0.4, 0.7, 0.9])
    drawn = path_chart(sizes, scores, bounds, None, 2, ("columns", "at most"), percent=True)
    assert drawn.count("<polyline") == 2
    assert drawn.count(f"stroke:{ORANGE}") == 1
    assert "2 columns: 60.0%" in drawn
    alone = path_chart(sizes, scores, None, np.array([0.1, np.nan, 0.1]), 3, ("score", ""), percent=False)
    assert alone.count("<polyline") == 3  # the scores, and two error bars
    assert "at most" not in alone
