"""A report is a value: what is in it is what text, page, JSON and notebook show."""

import json

import numpy as np
import pytest

import foldwise as fw
from foldwise.report.cluster import cluster_report
from foldwise.report.html import as_html, write_html
from foldwise.report.json import as_dict
from foldwise.report.pca import pca_report
from foldwise.report.text import as_text
from foldwise.report.values import Chart, Column, Fact, Group, Note, Report, Table

REPORT = Report(
    "Fish & chips",
    ["fish.csv: 3 rows"],
    [Fact("weight", 2.5, "2.50", "kg"), Fact("only here", 1, "one", only="page")],
    [
        Table(
            "Sizes",
            [Column("fish", ["cod", "<eel>", "all"], left=True), Column("share", [0.25, np.nan, 1.0], "{:.0%}".format)],
            "How large they are.",
            most=1,
            total=True,
            only=None,
        ),
        Group([Chart("Drawn", lambda: "<svg>drawn</svg>"), Chart("Not drawn", lambda: None), Note("a note")]),
        Note("for the terminal", only="text"),
        Group([Chart("Nothing at all", lambda: None)]),
    ],
)


def test_text():
    assert as_text(REPORT) == str(REPORT)
    assert str(REPORT).splitlines() == [
        "fish.csv: 3 rows",
        "",
        "weight  2.50 kg",
        "",
        "fish  share",
        "cod     25%",
        "all    100%",
        "... and 1 more",
        "How large they are.",
        "",
        "a note",
        "",
        "for the terminal",
    ]


def test_page():
    page = as_html(REPORT)
    assert page.lstrip().startswith("<!doctype html>")
    for shown in ("Fish &amp; chips", "cod", "<svg>drawn</svg>", "a note", "only here", "... and 1 more"):
        assert shown in page
    for hidden in ("<eel>", "Not drawn", "Nothing at all", "for the terminal"):
        assert hidden not in page
    assert page.count("<script") == 1  # the theme's
    assert len(page) < 25_000
    assert page.count('<section class="card') == 2


def test_a_notebook_shows_the_same_without_a_page_around_it():
    shown = REPORT._repr_html_()
    assert shown.lstrip().startswith('<div class="foldwise">')
    assert "<body" not in shown
    assert "<script" not in shown
    assert "<svg>drawn</svg>" in shown


def test_json():
    values = as_dict(REPORT)
    assert values["facts"] == {"weight": 2.5, "only here": 1}
    assert values["tables"] == {"Sizes": {"fish": ["cod", "<eel>", "all"], "share": [0.25, None, 1.0]}}
    assert json.loads(json.dumps(values)) == values


@pytest.mark.parametrize("kind", ["pca", "cluster"])
def test_charts_are_drawn_only_for_pages(kind, tmp_path, monkeypatch):
    from foldwise.report import projection

    drawn = []
    whole = projection.Projection.draw
    monkeypatch.setattr(projection.Projection, "draw", lambda *a, **k: drawn.append(1) or whole(*a, **k))
    source = fw.scan(np.random.default_rng(0).standard_normal((40, 3)))
    report = (
        pca_report(fw.PCA().fit(source), source) if kind == "pca" else cluster_report(fw.KMeans(2).fit(source), source)
    )
    as_text(report), as_dict(report)
    assert not drawn
    write_html(report, tmp_path / "r.html")
    assert drawn
