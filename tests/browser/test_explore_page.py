"""The page of an exploration: it fits the screen, names from the data do nothing, and its rows can be searched."""

from dataclasses import replace

import numpy as np
import pytest

from foldwise.report.explore import explore_report

from ..report.explorations import blobs, explored, penguins  # noqa: TID252

WIDE = "document.documentElement.scrollWidth"


@pytest.mark.parametrize("width", [400, 900, 1500])
def test_the_penguins_fit_every_screen(show, width):
    page = show(explore_report(penguins()), width=width, color_scheme="dark" if width == 900 else "light")
    assert page.locator(".lead p").count() == 5
    assert page.evaluate(WIDE) <= width
    assert page.locator(".figure svg").count() >= 15
    assert page.locator("[role=img]:not([aria-label])").count() == 0
    assert page.get_by_text("To repeat it").is_hidden()
    page.get_by_text("How it was made").last.click()
    assert page.get_by_text("To repeat it").is_visible()


def test_rows_worth_a_look_can_be_searched(show):
    report = explore_report(penguins())
    table = next(part for part in report.parts if getattr(part, "searchable", False))
    species = next(column for column in table.columns if column.name == "species").values
    page = show(report)
    page.get_by_label("Search: Rows worth a look").fill("gentoo")
    shown = page.locator("table[data-searchable] tbody tr:visible").count()
    assert shown == list(species).count("Gentoo")
    assert 0 < shown < len(species)


@pytest.mark.parametrize("count", [1, 20])
def test_one_group_and_twenty(show, count):
    page = show(explore_report(blobs(count)))
    page.locator(".stage canvas").wait_for()
    assert page.evaluate(WIDE) <= 900
    assert ("the rows form one cloud" in page.locator(".lead").inner_text()) == (count == 1)


def test_what_was_stopped_still_is_a_page(show):
    lost = dict.fromkeys(["clusters", "profile", "labels", "silhouette", "ensemble", "stability", "points", "outliers"])
    found = replace(penguins(), **lost, summaries=(), categories=(), unfinished=("groups",))
    page = show(explore_report(found))
    assert page.get_by_text("this was not done: groups").is_visible()


def test_names_that_try_to_be_more_than_names(show):
    bad = ["<script>alert(1)</script>", "</title></svg><img src=x onerror=alert(2)>", "x" * 10_000, "\"'&<"]
    rng = np.random.default_rng(0)
    x = np.concatenate([rng.standard_normal((40, 4)) + shift for shift in (0, 9)])
    label = (bad[1], [bad[0]] * 40 + [bad[1]] * 40)
    page = show(explore_report(explored(x, bad, label=label, where=bad[0])))
    page.locator(".stage canvas").wait_for()
    assert page.locator("img").count() == 0
    assert page.evaluate(WIDE) <= 900
