"""Charts keep what they draw in their frames, say what lies beyond, and keep names readable."""

import re
from html import unescape
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

import foldwise as fw
from foldwise.models.pca import PCA
from foldwise.report import svg
from foldwise.report.charts import criterion_chart, density_chart, difference_bars, path_chart
from foldwise.report.heat_map import heat_map
from foldwise.report.labels import shortened, text_width, wrapped
from foldwise.report.legend import legend
from foldwise.report.plane import scatter
from foldwise.report.projection import Projection
from foldwise.report.svg import PALETTE, Plot, colour

TEMPLATES = Path(svg.__file__).parent / "templates"
SIZE = re.compile(r'<svg viewBox="0 0 ([\d.]+) ([\d.]+)"')
CIRCLE = re.compile(r'<circle cx="([-\d.]+)" cy="([-\d.]+)" r="3"')


def circles(drawn):
    return np.array(CIRCLE.findall(drawn), dtype=float)


def size(drawn):
    return np.array(SIZE.match(drawn).groups(), dtype=float)


# ---------------------------------------------------------------- frames


def test_a_scatter_draws_every_point_where_it_is_with_equal_scales():
    rng = np.random.default_rng(0)
    places = np.vstack([rng.standard_normal((50, 2)) * [3, 1], [[40.0, -2.0]]])
    drawn = scatter(places, None, [], "x", "y")
    found = circles(drawn)
    assert len(found) == 51
    steps = []
    # A point moved to the edge would not lie on the line through the others.
    for axis in (0, 1):
        step, start = np.polyfit(places[:, axis], found[:, axis], 1)
        assert np.allclose(start + step * places[:, axis], found[:, axis], atol=0.06)
        steps.append(abs(step))
    assert steps[0] == pytest.approx(steps[1], rel=0.01)
    assert ((found > 0) & (found < size(drawn))).all()
    assert "beyond" not in drawn


@pytest.mark.parametrize("shape", [(1.0, 0.0), (0.0, 1.0), (1.0, 1e-9), (1e-9, 1.0)])
def test_a_flat_or_a_tall_cloud_has_a_frame_too(shape):
    places = np.random.default_rng(1).standard_normal((30, 2)) * shape
    drawn = scatter(places, None, [], "x", "y")
    found = circles(drawn)
    assert ((found >= 0) & (found <= size(drawn))).all()
    assert 0.4 < np.divide(*size(drawn)[::-1]) < 1.4


def test_all_points_equal():
    assert len(circles(scatter(np.ones((4, 2)), None, [], "x", "y"))) == 4


def test_of_many_rows_those_far_out_are_arrows_and_counted():
    rng = np.random.default_rng(2)
    places = np.vstack([rng.standard_normal((3000, 2)), [[500.0, 0.0], [-400.0, 3.0]]])
    drawn = scatter(places, None, [], "x", "y")
    assert drawn.count('class="beyond"') == 2
    assert "2 beyond the frame" in drawn
    assert "beyond" not in scatter(places[:3000], None, [], "x", "y")


@pytest.mark.parametrize("rows", [200, 4000])
def test_a_projection_holds_rows_centres_ellipses_and_arrows(rows):
    rng = np.random.default_rng(3)
    source = fw.scan(rng.standard_normal((rows, 3)) * [3.0, 1.0, 0.3])
    seen = Projection(PCA(2).fit(source), source)
    wide = np.diag([400.0, 100.0])  # two standard deviations are 40 to each side, where the rows reach some 10
    drawn = seen.draw(
        arrows=[(1.0, 0.0, "one"), (0.0, -0.9, "two")],
        centres=np.array([[0.0, 0.0], [25.0, -25.0]]),
        ellipses=[(np.array([5.0, 5.0]), wide, 0)],
    )
    plot = seen._plot(np.array([-35.0, -25.0]), np.array([45.0, 25.0]))
    polygon = np.array([p.split(",") for p in re.search(r'<polygon points="([^"]+)"', drawn)[1].split()], dtype=float)
    assert len(polygon) == 61
    left, top, right, bottom = plot.box
    for places in (polygon, np.array(re.findall(r'<circle cx="([\d.]+)" cy="([\d.]+)" r="10"', drawn), dtype=float)):
        assert (places >= [left - 1, top - 1]).all()
        assert (places <= [right + 1, bottom + 1]).all()
    assert np.ptp(polygon[:, 0]) == pytest.approx(2 * np.ptp(polygon[:, 1]), rel=0.02)  # equal scales
    assert len(circles(drawn)) == (rows if rows == 200 else 0)
    assert "beyond" not in drawn


def test_scaled_columns_are_projected_like_their_rows():
    rng = np.random.default_rng(4)
    rows = rng.standard_normal((40, 3)) * [1000.0, 1.0, 0.01] + 5
    source = fw.scan(rows)
    pca = PCA(2, scale=True).fit(source)
    seen = Projection(pca, source)
    assert np.allclose(seen.points(rows), pca.transform(rows))
    assert np.allclose(seen.covariance(np.cov(rows.T)), np.cov(pca.transform(rows).T))


def test_lines_end_at_the_frame():
    plot = Plot((0, 10), (0, 1), "x")
    plot.line([0, 1, 2, 3, 4, 5], [0.5, 9.0, 9.0, 0.5, -7.0, np.nan], svg.BLUE)
    pieces = re.findall(r'<polyline points="([^"]+)"', plot.svg())
    assert len(pieces) == 2  # up and out; in, and out below
    for piece in pieces:
        ys = np.array([place.split(",")[1] for place in piece.split()], dtype=float)
        assert ys.min() >= plot.top - 0.1
        assert ys.max() <= plot.bottom + 0.1
    assert float(pieces[0].split()[-1].split(",")[1]) == pytest.approx(plot.top, abs=0.1)


def test_far_values_of_a_criterion_are_arrows():
    numbers = [1, 2, 3, 4, 5, 6]
    series = {"full": [100.0, 90.0, 91.0, 92.0, 93.0, 5000.0], "diag": [101.0, 95.0, np.nan, 96.0, 97.0, 98.0]}
    drawn = criterion_chart(numbers, series, ("full", 2))
    beyond = drawn.count('class="beyond"')
    assert beyond >= 1
    assert "full, 6: 5000.00" in drawn
    assert f"{beyond} beyond the frame" in drawn
    assert len(re.findall(r'r="3.5">', drawn)) + beyond == 11


def test_a_density_says_what_is_cut():
    edges = np.linspace(0.0, 1.0, 5)
    xs = np.linspace(0.0, 1.0, 9)
    flat, peak = np.ones(9), np.where(xs == 0.5, 50.0, 0.1)
    drawn = density_chart(edges, np.ones(4), [("flat", xs, flat), ("peaked", xs, peak)], "x", dots=False, beyond=(0, 7))
    assert drawn.count('class="beyond"') == 2
    assert "peaked: up to 50" in drawn
    assert "7 values" in drawn
    assert "8 beyond the frame" in drawn
    assert "beyond" not in density_chart(edges, np.ones(4), [("flat", xs, flat)], "x", dots=False)


def test_error_bars_end_at_the_frame():
    drawn = path_chart([1, 2], np.array([0.9, 0.95]), None, np.array([0.4, 0.4]), 2, ("score", ""), percent=True)
    ys = [float(p.split(",")[1]) for points in re.findall(r'points="([^"]+)"', drawn) for p in points.split()]
    assert min(ys) >= 0
    assert max(ys) <= size(drawn)[1]


# ---------------------------------------------------------------- names

LONG = "a very long name of a column that nobody can read at a glance <b>&amp;</b>"


def test_names_beside_bars_have_room_or_are_shortened_with_the_whole_name_at_hand():
    drawn = difference_bars(["od280_od315_of_diluted_wines", LONG, "x"], np.array([1.0, -2.0, 0.5]), 2.0, colour(0))
    assert "&lt;b&gt;&amp;amp;&lt;/b&gt;: -2.00</title>" in drawn
    assert "<b>" not in drawn
    for x, anchor, words in re.findall(r'<text x="([\d.]+)"[^>]*text-anchor="(\w+)"[^>]*>([^<]+)<', drawn):
        wide = text_width(unescape(words))
        assert float(x) - wide >= 0 if anchor == "end" else float(x) + wide <= 330
    assert "diluted_wines</text>" in drawn  # in two lines, as a whole
    short = difference_bars(["x"], np.array([1.0]), 1.0, colour(0))
    assert float(re.search(r'<text x="([\d.]+)"', short)[1]) < 30  # no more room than the longest name needs


def test_names_of_axes_are_shortened_to_the_chart():
    drawn = Plot((0, 1), (0, 1), LONG * 3, beside=LONG * 3).svg()
    for words in re.findall(r"</title>([^<]+)</text>", drawn):
        assert text_width(unescape(words)) <= 460
        assert "…" in words
    assert drawn.count("<title>") == 2


@pytest.mark.parametrize("room", [30.0, 80.0, 200.0])
def test_words_fit_their_room(room):
    for words in (LONG, "supercalifragilisticexpialidocious", "一二三四五六七八九十" * 5, "W" * 10_000):
        assert text_width(shortened(words, room)) <= room
        assert all(text_width(line) <= room for line in wrapped(words, room))
    assert shortened("ab", room) == "ab"


def test_names_of_arrows_are_whole_under_the_pointer():
    source = fw.scan(np.random.default_rng(5).standard_normal((30, 2)))
    drawn = Projection(PCA(2).fit(source), source).draw(arrows=[(1.0, 0.0, LONG), (0.9, 0.1, "short")])
    assert "&lt;b&gt;&amp;amp;&lt;/b&gt;</title>" in drawn
    assert ">short</text>" in drawn
    assert drawn.count(f"fill:{svg.ORANGE}") == 2  # heads


def test_a_legend_takes_as_many_lines_as_it_needs():
    few, low = legend([("a", colour(0)), ("b", colour(1))], 460)
    many, tall = legend([(f"a long name of a level {i}", colour(i)) for i in range(60)], 460)
    assert few.count("<circle") == 2
    assert tall > low
    assert "more" in many
    assert legend([], 460) == ("", 0.0)


# ---------------------------------------------------------------- colours and words


def values_of(name):
    found = dict(re.findall(r"--c(\d+): (#[0-9a-f]{6})", (TEMPLATES / f"{name}.css").read_text()))
    return [found[str(i)] for i in range(20)]


def test_colours_are_those_of_the_page():
    assert [re.fullmatch(r"var\(--c(\d+), (#\w{6})\)", one).groups() for one in PALETTE] == [
        (str(i), value) for i, value in enumerate(values_of("light"))
    ]
    assert colour(20) == colour(0)
    drawn = heat_map(np.eye(3), [0, 0, 1]) + Plot((0, 1), (0, 1), "x").svg() + scatter(np.eye(2), None, [], "x", "y")
    assert not re.search(r'(fill|stroke)="(#|rgb|var)', drawn)  # of attributes, not every program takes var()


def test_drawings_have_words_or_leave_them_to_the_page():
    assert 'role="img" aria-label="a &quot;b&quot; &lt;c&gt;"' in svg.start(1, 1, 'a "b" <c>')
    assert 'aria-hidden="true"' in svg.start(1, 1)
    assert 'aria-label="rows"' in Plot((0, 1), (0, 1), "x", alt="rows").svg()


def test_pieces_of_a_line_join():
    plot = Plot((0, 3), (0, 1), "x")
    plot.line([0, 1, 2, 3], [0.1, 0.2, 0.3, 0.4], svg.BLUE)
    (piece,) = re.findall(r'<polyline points="([^"]+)"', plot.svg())
    xs = [float(place.split(",")[0]) for place in piece.split()]
    assert len(xs) == 4
    assert all(a < b for a, b in pairwise(xs))
