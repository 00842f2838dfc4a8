"""What every page does: themes, sorting and searching, folding, print, and reading by other means than the eye."""

from itertools import pairwise

import numpy as np
import pytest

from foldwise.report.values import Chart, Column, Note, Report, Table

PAPER = "getComputedStyle(document.querySelector('.card')).backgroundColor"


def test_dark_and_light(show, report):
    page = show(report(), color_scheme="light")
    light, fill = page.evaluate(PAPER), "getComputedStyle(document.querySelector('h1')).color"
    ink = page.evaluate(fill)
    page.get_by_role("button", name="Dark theme").click()
    assert page.evaluate(PAPER) != light
    assert page.evaluate(fill) != ink
    page.reload()  # the choice is remembered
    page.get_by_role("button", name="Light theme").click()
    assert page.evaluate(PAPER) == light


def test_the_system_is_dark(show, report):
    page = show(report(), color_scheme="dark")
    assert page.evaluate(PAPER) == "rgb(23, 28, 34)"
    assert page.get_by_role("button", name="Light theme").is_visible()


def cells(page, column):
    rows = page.locator("table[data-searchable] tbody tr:visible")
    return [rows.nth(i).locator("td").nth(column).inner_text() for i in range(rows.count())]


def test_sorting(show, report):
    page = show(report())
    table = page.locator("table[data-searchable]")
    weight = table.get_by_role("button", name="weight")
    weight.click()
    assert table.locator("th").nth(1).get_attribute("aria-sort") == "ascending"
    assert cells(page, 1) == ["2.5 kg", "5.0 kg", "7.0 kg", "30.0 kg", "1,000.0 kg", "-"]
    weight.press("Enter")
    assert table.locator("th").nth(1).get_attribute("aria-sort") == "descending"
    assert cells(page, 1) == ["1,000.0 kg", "30.0 kg", "7.0 kg", "5.0 kg", "2.5 kg", "-"]
    table.get_by_role("button", name="name").click()
    assert cells(page, 0) == ["n1", "n3", "n5", "n7", "n20", "n100"]


def test_searching(show, report):
    page = show(report())
    page.get_by_label("Search: Typical rows").fill("N1 kg")
    assert cells(page, 0) == ["n100", "n1"]
    assert page.get_by_text("2 of 6 rows").is_visible()


def test_folded_parts_open_when_asked_and_for_print(show, report):
    page = show(report())
    inside = page.locator("details.card").get_by_text("seed")
    assert not inside.is_visible()
    page.locator("details.card > summary").click()
    assert inside.is_visible()
    page.locator("details.card > summary").click()
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert inside.is_visible()
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert not inside.is_visible()


def test_print(show, report):
    page = show(report(), color_scheme="dark")
    assert not page.locator(".still").is_visible()
    page.emulate_media(media="print")
    assert page.locator(".still").is_visible()
    for hidden in (".live", "button.theme", ".find"):
        assert not page.locator(hidden).is_visible()
    assert page.evaluate(PAPER) == "rgb(255, 255, 255)"
    assert page.pdf().startswith(b"%PDF")


def test_reading_by_other_means(show, report):
    page = show(report())
    assert [page.get_by_role(role).count() for role in ("main", "banner", "contentinfo")] == [1, 1, 1]
    assert page.get_by_role("img", name="A blue rectangle").count() == 1
    levels = page.evaluate("[...document.querySelectorAll('h1, h2, h3')].map(h => Number(h.tagName[1]))")
    assert levels[0] == 1
    assert all(deeper <= level + 1 for level, deeper in pairwise(levels))
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the results"
    named = "e => e.labels?.length || e.innerText || e.ariaLabel"
    assert page.evaluate(f"[...document.querySelectorAll('button, select, input')].every({named})")


def test_contents_of_a_long_page(show):
    parts = [Table(f"Part {i}", [Column("n", [i])]) for i in range(8)]
    page = show(Report("Long", parts=[*parts, Chart("Not there", lambda: None), Note("Untitled")]))
    links = page.get_by_role("navigation").get_by_role("link")
    assert links.all_inner_texts() == [f"Part {i}" for i in range(8)]
    links.nth(7).click()
    assert page.locator(":target").get_by_role("heading").inner_text() == "Part 7"


@pytest.mark.parametrize("width", [320, 390, 820, 1280, 1600])
def test_no_width_makes_the_page_scroll_sideways(width, show, report):
    page = show(report(), width=width)
    page.locator(".stage canvas").wait_for()
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_simple_pages_have_no_large_script(show, tmp_path):
    table = Table("Plain", [Column("n", [1, 2]), Column("share", np.array([0.5, np.nan]), "{:.0%}".format, bar=1.0)])
    page = show(Report("Small", parts=[table]))
    assert (tmp_path / "report.html").stat().st_size < 30_000
    assert page.locator("th button").count() == 0
    assert page.locator("td").last.inner_text() == "-"
