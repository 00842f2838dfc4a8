"""Texts from data that try to be more than text, and inputs of unusual size."""

import numpy as np
import pytest

from foldwise.report.values import Column, Note, Report, Table

HOSTILE = [
    "<script>alert(1)</script>",
    "</script><script>alert(2)</script>",
    "<!--<script>",
    '"><img src=x onerror=alert(3)>',
    'it\'s "quoted" \\ and \\u003c back\\slashed',
    "{{ 7 * 7 }} {% raw %}",
    "שלום עולם",
    "🐧 penguin\u2028line\u2029",
    "x" * 10_000,
    "'; alert(4); //",
]


@pytest.mark.parametrize("webgl", [True, False])
def test_hostile_texts_stay_inert(webgl, show, report, points):
    from dataclasses import replace

    names = tuple(f"{text} {j}" for j, text in enumerate(HOSTILE))
    shown = points(n=100, k=len(HOSTILE), columns=len(HOSTILE), names=names)
    ids = tuple((str(i), HOSTILE[i % len(HOSTILE)]) for i in range(100))
    shown = replace(shown, ids=ids, id_names=("row", HOSTILE[0]), categories=((HOSTILE[1], tuple(HOSTILE)),))
    table = Table(HOSTILE[0], [Column(HOSTILE[3], HOSTILE, left=True)], HOSTILE[1], searchable=True)
    whole = report(shown, HOSTILE, title=HOSTILE[0], lead=HOSTILE)
    page = show(replace(whole, parts=[*whole.parts, table, Note("\n".join(HOSTILE))]), webgl=webgl)
    page.locator(".stage canvas").wait_for()
    page.get_by_role("button", name="Select rows").click()
    page.evaluate("document.querySelector('.scatter').scrollIntoView()")
    box = page.locator(".stage").bounding_box()
    page.mouse.move(box["x"] + 1, box["y"] + 1)
    page.mouse.down()
    for x, y in ((0.999, 0.001), (0.999, 0.999), (0.001, 0.999)):
        page.mouse.move(box["x"] + x * box["width"], box["y"] + y * box["height"], steps=4)
    page.mouse.up()
    assert page.locator(".rows tbody tr").count() == 100
    for kind in ("cluster", "category-0", *(f"column-{j}" for j in range(len(HOSTILE)))):
        page.get_by_role("combobox", name="Colour", exact=True).select_option(kind)
    x, y = page.evaluate("document.querySelector('.scatter').scatter.view.place(0)")
    page.evaluate("document.querySelector('.scatter').scrollIntoView()")
    box = page.locator(".stage").bounding_box()
    page.mouse.move(box["x"] + x + 20, box["y"] + y)
    page.mouse.move(box["x"] + x, box["y"] + y, steps=4)
    page.get_by_role("tooltip").wait_for()
    assert page.locator("h1").inner_text() == HOSTILE[0]
    assert page.title() == HOSTILE[0]
    assert page.locator(".rows tbody td:nth-child(2)").nth(4).inner_text() == HOSTILE[4]
    assert page.locator("img").count() == 0
    assert page.evaluate("document.scripts.length") == 4  # theme, sort, page, and the data
    assert page.evaluate("document.documentElement.scrollWidth") <= 900
    with page.expect_download():
        page.get_by_role("button", name="Download CSV").click()


@pytest.mark.parametrize("k", [1, 20, 45])
def test_number_of_clusters(k, show, report, points):
    page = show(report(points(n=900, k=k)))
    page.locator(".stage canvas").wait_for()
    assert page.locator(".legend button").count() == k
    colours = page.evaluate(
        "[...document.querySelectorAll('.legend .dot')].slice(0, 20).map(e => getComputedStyle(e).backgroundColor)"
    )
    assert len(set(colours)) == min(k, 20)


def test_one_row_and_one_component(show, report, points):
    page = show(report(points(n=1, k=1, components=1)))
    page.locator(".stage canvas").wait_for()
    assert page.locator(".axes .name").all_text_contents() == ["component 1", "component 1"]


def test_five_thousand_columns(show, report, points):
    page = show(report(points(n=1000, columns=5000)))
    page.locator(".stage canvas").wait_for()
    kept = page.locator("optgroup[label=Columns] option").count()
    assert 300 < kept < 5000
    assert page.get_by_text(f"{kept:,} of 5,000 columns can be chosen as colours.").is_visible()
    page.get_by_role("combobox", name="Colour", exact=True).select_option(f"column-{kept - 1}")
    assert page.locator(".legend .name").inner_text() == f"column {kept - 1}"


def test_three_hundred_thousand_points(show, report, points):
    page = show(report(points(n=300_000, columns=3)))
    page.wait_for_function("document.querySelector('.scatter')?.scatter?.data.n === 300000")
    ids = page.evaluate(
        "(d => [0, 1, 299999].map(i => d.ids[0].of(i)))(document.querySelector('.scatter').scatter.data)"
    )
    assert ids == ["0", "1", "299999"]


def test_a_table_of_very_long_cells(show):
    page = show(
        Report("Long cells", parts=[Table("Long", [Column("x" * 10_000, ["y" * 10_000] * 50, left=True)])]), width=390
    )
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert len(page.locator("td").first.inner_text()) == 300
    assert np.all([len(words) <= 300 for words in page.locator("th").all_inner_texts()])
