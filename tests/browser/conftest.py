"""Pages in a real Chromium: every test ends with the check that nothing was requested and nothing was complained about."""

import os
import shutil

import numpy as np
import pytest

from foldwise.report.html import write_html
from foldwise.report.values import Chart, Column, Fact, Note, Report, Scatter, Table
from foldwise.selection.explore.result import Points

STILL = '<svg viewBox="0 0 200 100" width="200" height="100"><rect width="200" height="100" fill="var(--c0)"/></svg>'
SOFTWARE_WEBGL = ["--use-gl=angle", "--use-angle=swiftshader", "--enable-unsafe-swiftshader"]


def _executable():
    names = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
    found = next(filter(None, map(shutil.which, names)), None)
    if found is None:
        message = "there is no Chromium; scripts/install-chromium installs it"
        pytest.fail(message) if os.environ.get("CI") == "true" else pytest.skip(message)
    return found


@pytest.fixture(scope="module")
def playwright():
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        yield playwright


def _launch(playwright, *arguments):
    quiet = ["--no-first-run", "--disable-quic", "--disable-background-networking", "--disable-component-update"]
    return playwright.chromium.launch(
        executable_path=_executable(), args=[*quiet, *arguments], chromium_sandbox=os.geteuid() != 0
    )


@pytest.fixture(scope="module")
def browser(playwright):
    browser = _launch(playwright, *SOFTWARE_WEBGL)
    yield browser
    browser.close()


@pytest.fixture(scope="module")
def browser_without_webgl(playwright):
    browser = _launch(playwright, "--disable-gpu", "--disable-3d-apis")
    yield browser
    browser.close()


def _of_the_page(text):
    """Not what the software renderer says of its own speed on a busy machine."""
    return "GL Driver Message" not in text


@pytest.fixture
def show(request, tmp_path):
    """Open the page of a report; afterwards, it must not have asked for anything nor written to the console."""
    contexts, requests, complaints = [], [], []

    def show(report, *, webgl=True, width=900, **options):
        path = tmp_path / "report.html"
        write_html(report, path)
        assert path.stat().st_size <= 8_000_000
        browser = request.getfixturevalue("browser" if webgl else "browser_without_webgl")
        context = browser.new_context(viewport={"width": width, "height": 1100}, reduced_motion="reduce", **options)
        context.set_default_timeout(20_000)
        contexts.append(context)
        page = context.new_page()
        page.on("request", lambda one: requests.append(one.url))
        page.on("console", lambda one: complaints.append(f"{one.type}: {one.text}") if _of_the_page(one.text) else None)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("dialog", lambda dialog: (complaints.append(f"dialog: {dialog.message}"), dialog.dismiss()))
        page.goto(path.as_uri())
        return page

    yield show
    for context in contexts:
        context.close()
    own = (tmp_path / "report.html").as_uri()
    assert all(url == own or url.startswith("blob:") for url in requests), requests
    assert complaints == []


@pytest.fixture
def points():
    """Rows in clusters that lie apart, on as many components; ids, two kinds of categories and some missing cells."""

    def points(n=300, k=3, columns=5, names=None, components=3):
        rng = np.random.default_rng(0)
        labels = np.arange(n, dtype=np.int32) % k
        scores = rng.normal(0, 8, (k, components))[labels] + rng.normal(size=(n, components))
        values = (10 * scores[:, np.arange(columns) % components] + rng.normal(size=(n, columns))).round(2)
        values[::50] = np.nan
        return Points(
            rows=np.arange(n),
            total=n,
            scores=scores,
            columns=tuple(names or (f"column {j}" for j in range(columns))),
            values=values,
            labels=labels,
            confidence=rng.uniform(0.5, 1, n),
            t2=np.zeros(n),
            residual=np.zeros(n),
            categories=(("island", ("Biscoe", "Dream")),),
            codes=(labels[:, None] % 3 - 1).astype(np.int32),
            id_names=("row", "name"),
            ids=tuple((str(i), f"penguin {i}") for i in range(n)),
        )

    return points


@pytest.fixture
def report(points):
    """A report with a scatter and all other kinds of parts."""

    def report(shown=None, clusters=None, **more):
        shown = points() if shown is None else shown
        k = int(shown.labels.max()) + 1
        names = clusters or [f"group {i}" for i in range(k)]
        sizes = np.bincount(shown.labels, minlength=k)
        components = [f"component {j + 1}" for j in range(shown.scores.shape[1])]
        scatter = Scatter(
            "The rows",
            shown,
            components,
            names,
            more.pop("fallback", lambda: STILL),
            "A caption.",
            "All rows.",
            wide=True,
        )
        return Report(
            more.pop("title", "Groups of penguins"),
            ["k-means"],
            [Fact("groups", k, str(k))],
            [
                scatter,
                Table(
                    "Groups",
                    [Column("group", names, left=True), Column("rows", sizes.tolist(), "{:,}".format)],
                    colours=[f"var(--c{i})" for i in range(k)],
                ),
                Chart("A picture", lambda: STILL, "Blue.", alt="A blue rectangle"),
                Table(
                    "Typical rows",
                    [
                        Column("name", [f"n{i}" for i in (3, 20, 100, 1, 5, 7)], left=True),
                        Column("weight", [5.0, np.nan, 30.0, 2.5, 1000.0, 7.0], "{:,.1f} kg".format),
                    ],
                    searchable=True,
                ),
                Note("A note."),
                Table("How it was made", [Column("what", ["seed"], left=True)], collapsed=True),
            ],
            ["penguins.csv"],
            more.pop("lead", ["There are groups.", "Be careful."]),
        )

    return report
