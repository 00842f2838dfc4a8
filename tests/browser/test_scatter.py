"""The scatter of rows: pointing, selecting, colouring, other components, and what is linked to it."""

import re

import numpy as np
import pytest


def settled(page):
    """Wait until the points are drawn."""
    page.wait_for_function(
        """() => {
          const canvas = document.querySelector(".stage canvas");
          if (!canvas?.width) return false;
          const copy = document.createElement("canvas");
          [copy.width, copy.height] = [canvas.width, canvas.height];
          const context = copy.getContext("2d", { willReadFrequently: true });
          context.drawImage(canvas, 0, 0);
          const { data } = context.getImageData(0, 0, copy.width, copy.height);
          return data.some((value, i) => i % 4 === 3 && value > 100);
        }"""
    )
    page.wait_for_timeout(50)


def place(page, i):
    """Where a point is on the screen."""
    box = page.locator(".stage").bounding_box()
    x, y = page.evaluate(f"document.querySelector('.scatter').scatter.view.place({i})")
    return box["x"] + x, box["y"] + y


def drawn_colours(page):
    """Colours of the pixels that are surely inside a point."""
    return page.evaluate(
        """() => {
          const canvas = document.querySelector(".stage canvas");
          const copy = document.createElement("canvas");
          [copy.width, copy.height] = [canvas.width, canvas.height];
          const context = copy.getContext("2d", { willReadFrequently: true });
          context.drawImage(canvas, 0, 0);
          const { data } = context.getImageData(0, 0, copy.width, copy.height);
          const seen = {};
          for (let i = 0; i < data.length; i += 4) if (data[i + 3] > 200) {
            const name = [data[i], data[i + 1], data[i + 2]].map(v => v >> 5).join();
            seen[name] = (seen[name] ?? 0) + 1;
          }
          return Object.keys(seen).filter(name => seen[name] > 20);
        }"""
    )


def draw_around(page, *corners):
    """Drag with the mouse, corners as shares of the stage."""
    box = page.locator(".stage").bounding_box()
    places = [(box["x"] + x * box["width"], box["y"] + y * box["height"]) for x, y in corners]
    page.mouse.move(*places[0])
    page.mouse.down()
    for x, y in places[1:]:
        page.mouse.move(x, y, steps=5)
    page.mouse.up()


ALL = ((0.001, 0.001), (0.999, 0.001), (0.999, 0.999), (0.001, 0.999))


def test_pointing_at_a_row(show, report, points):
    shown = points()
    page = show(report(shown))
    settled(page)
    assert not page.get_by_text("Drawn without WebGL").count()  # or these tests would be of the other view
    x, y = place(page, 42)
    page.mouse.move(x + 30, y + 30)
    page.mouse.move(x, y, steps=4)
    tip = page.get_by_role("tooltip")
    tip.wait_for()
    words = tip.inner_text()
    assert re.search(r"name\s+penguin \d+", words)
    i = int(re.search(r"penguin (\d+)", words)[1])
    assert f"{shown.values[i, 0]:g}" in words.replace(",", "")
    assert f"group {shown.labels[i]}" in words
    box = tip.bounding_box()
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= 900


def test_every_point_is_in_the_first_view(show, report, points):
    shown = points(100)
    shown.scores[7] = 1000.0, -400.0, 3.0  # far out
    page = show(report(shown))
    settled(page)
    ends = page.evaluate("document.querySelector('.scatter').scatter.view.ends()")
    x, y = page.evaluate("(s => [Array.from(s.x), Array.from(s.y)])(document.querySelector('.scatter').scatter)")
    assert ends[0][0] < min(x)
    assert max(x) < ends[0][1]
    assert ends[1][0] < min(y)
    assert max(y) < ends[1][1]
    box = page.locator(".stage").bounding_box()
    assert (ends[0][1] - ends[0][0]) / (ends[1][1] - ends[1][0]) == pytest.approx(
        box["width"] / box["height"], rel=1e-3
    )
    ticks = page.locator(".axes .x .tick").all_text_contents()
    page.get_by_role("button", name="Zoom to the middle 99 %").click()
    page.wait_for_function("document.querySelector('.scatter').scatter.view.ends()[0][1] < 0.5")
    page.wait_for_timeout(50)
    assert page.locator(".axes .x .tick").all_text_contents() != ticks
    page.get_by_role("button", name="All rows").click()
    page.wait_for_function("document.querySelector('.scatter').scatter.view.ends()[0][1] > 1")


@pytest.mark.parametrize("webgl", [True, False])
def test_selecting_rows(webgl, show, report, points):
    shown = points()
    page = show(report(shown), webgl=webgl)
    settled(page)
    page.get_by_role("button", name="Select rows").click()
    draw_around(page, *ALL)
    assert page.get_by_role("heading", name="300 rows selected").is_visible()
    page.keyboard.press("Escape")
    assert page.get_by_text("Nothing is selected. Press").is_visible()
    page.keyboard.down("Shift")
    draw_around(page, (0.001, 0.001), (0.5, 0.001), (0.5, 0.999), (0.001, 0.999))
    page.keyboard.up("Shift")
    x = page.evaluate("Array.from(document.querySelector('.scatter').scatter.x)")
    chosen = np.flatnonzero(np.array(x) < 0)
    assert 0 < len(chosen) < 300
    assert page.get_by_role("heading", name=f"{len(chosen)} rows selected").is_visible()
    rows = page.locator(".rows tbody tr")
    assert rows.count() == min(100, len(chosen))
    assert rows.first.locator("td").nth(1).inner_text() == f"penguin {chosen[0]}"
    assert page.locator(".small svg[role=img]").count() == 5  # a histogram of each column
    page.locator(".rows").get_by_role("button", name="column 0").click()
    assert page.locator(".rows th[aria-sort=ascending]").count() == 1
    assert page.locator(".scatter [aria-live]").inner_text() == f"{len(chosen)} rows selected."


def test_taking_selected_rows_along(show, report, points):
    page = show(report(points()), permissions=["clipboard-read", "clipboard-write"])
    settled(page)
    page.get_by_role("button", name="Select rows").click()
    draw_around(page, *ALL)
    with page.expect_download() as waiting:
        page.get_by_role("button", name="Download CSV").click()
    lines = waiting.value.path().read_text(encoding="utf-8").splitlines()
    assert lines[0].startswith("row,name,cluster,confidence,island,column 0")
    assert len(lines) == 301
    page.get_by_role("button", name="Copy ids").click()
    page.get_by_text("Copied").wait_for()
    assert page.evaluate("navigator.clipboard.readText()").splitlines()[5].split("\t") == ["5", "penguin 5"]


def test_colours(show, report, points):
    page = show(report(points()))
    settled(page)
    before = drawn_colours(page)
    assert len(before) >= 3
    assert page.locator(".legend button").all_text_contents() == ["group 0100", "group 1100", "group 2100"]
    page.get_by_role("combobox", name="Colour", exact=True).select_option(label="column 1")
    page.wait_for_timeout(300)
    assert set(drawn_colours(page)) != set(before)
    assert page.locator(".legend .name").inner_text() == "column 1"
    assert "6 rows without a value" in page.locator(".legend").inner_text()
    page.get_by_role("combobox", name="Colour", exact=True).select_option(label="island")
    assert page.locator(".legend button").all_text_contents() == ["Biscoe100", "Dream100", "missing100"]
    page.get_by_role("combobox", name="Colour", exact=True).select_option(label="confidence")
    assert page.locator(".scatter [aria-live]").inner_text() == "Coloured by confidence."


def test_one_entry_of_the_legend(show, report, points):
    page = show(report(points()))
    settled(page)
    page.get_by_role("button", name="group 1").first.click()
    page.wait_for_timeout(300)
    assert len(drawn_colours(page)) <= 2  # one, and its edges
    page.get_by_role("button", name="Select rows").click()
    draw_around(page, *ALL)
    assert page.get_by_role("heading", name="100 rows selected").is_visible()


def test_other_components(show, report, points):
    shown = points()
    page = show(report(shown))
    settled(page)
    assert page.locator(".axes .name").all_text_contents() == ["component 1", "component 2"]
    page.get_by_role("combobox", name="Up", exact=True).select_option(label="component 3")
    page.wait_for_timeout(200)
    assert page.locator(".axes .name").all_text_contents() == ["component 1", "component 3"]
    y = page.evaluate(
        "(s => Array.from(s.y, v => s.centre[1] + v * s.unit))(document.querySelector('.scatter').scatter)"
    )
    np.testing.assert_allclose(y, shown.scores[:, 2], atol=np.ptp(shown.scores[:, 2]) / 60000)


def test_a_cluster_elsewhere_on_the_page(show, report, points):
    page = show(report(points()))
    settled(page)
    page.get_by_role("button", name="Show the rows of group 2").click()
    assert page.get_by_role("heading", name="100 rows selected").is_visible()


def test_zoom_and_pan(show, report, points):
    page = show(report(points()))
    settled(page)
    ends = "document.querySelector('.scatter').scatter.view.ends()"
    before = page.evaluate(ends)
    box = page.locator(".stage").bounding_box()
    page.mouse.move(box["x"] + 200, box["y"] + 200)
    page.mouse.wheel(0, -300)  # of a plot not clicked yet: the page's
    page.wait_for_timeout(100)
    assert page.evaluate(ends) == before
    page.get_by_role("button", name="Zoom in").click()
    page.wait_for_function(f"{ends}[1][1] < 0.7")
    page.mouse.move(box["x"] + 200, box["y"] + 200)
    page.mouse.down()
    page.mouse.move(box["x"] + 260, box["y"] + 200, steps=4)
    page.mouse.up()
    page.wait_for_timeout(100)
    assert page.evaluate(ends)[0][0] < -0.6 * box["width"] / box["height"]
    page.locator(".stage").press("-")
    page.wait_for_function(f"{ends}[1][1] > 0.99")
    page.locator(".stage").press("ArrowUp")
    page.wait_for_function(f"{ends}[1][1] > 1.19")


def test_without_webgl_it_says_so(show, report, points):
    page = show(report(points()), webgl=False)
    settled(page)
    assert page.get_by_text("Drawn without WebGL").is_visible()
    x, y = place(page, 10)
    page.mouse.move(x, y)
    page.get_by_role("tooltip").get_by_text("penguin").wait_for()
    page.mouse.wheel(0, -200)
    page.get_by_role("button", name="Zoom in").click()


def test_without_scripts_there_is_the_picture(show, report, points):
    page = show(report(points()), java_script_enabled=False)
    assert page.locator(".still").is_visible()


def test_the_theme_changes_under_the_points(show, report, points):
    page = show(report(points(k=12)), color_scheme="light")
    settled(page)
    light = set(drawn_colours(page))
    page.get_by_role("button", name="Dark theme").click()
    page.wait_for_timeout(300)
    assert set(drawn_colours(page)) != light
