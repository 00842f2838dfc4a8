"""Points in a page: few bytes, nothing lost that shows, and texts that cannot break out."""

import json
import re
from base64 import b64decode
from dataclasses import replace

import numpy as np
import pytest

from foldwise.report.html import as_html
from foldwise.report.scatter import pack
from foldwise.report.values import Report, Scatter
from foldwise.selection.explore.result import Points

KINDS = {"u8": "u1", "u16": "<u2", "u32": "<u4", "f4": "<f4", "list": "<f4"}


def points(n=500, columns=3, components=5):
    rng = np.random.default_rng(1)
    return Points(
        rows=np.arange(0, 3 * n, 3),
        total=3 * n,
        scores=rng.normal(size=(n, components)) * [1000.0, 1, 1e-6, 1, 1][:components],
        columns=tuple(f"c{j}" for j in range(columns)),
        values=rng.normal(size=(n, columns)),
        labels=rng.integers(-1, 300, n).astype(np.int32),
        confidence=rng.uniform(0, 1, n),
        t2=np.zeros(n),
        residual=np.zeros(n),
        categories=(("sex", ("f", "m")),),
        codes=rng.integers(-1, 2, (n, 1)).astype(np.int32),
        id_names=("row", "code"),
        ids=tuple((str(3 * i), f"id-{i}") for i in range(n)),
    )


def scatter(of):
    return Scatter("Rows", of, [f"PC{j}" for j in range(of.scores.shape[1])], [f"group {i}" for i in range(300)])


def numbers(piece, kind):
    return np.frombuffer(b64decode(piece[kind]), KINDS[kind])


def test_what_is_packed_comes_back():
    given = points()
    given.values[:, 0] = np.round(given.values[:, 0])  # few values: a list of them is shorter
    given.values[5] = np.nan
    told = json.loads(pack(scatter(given), 6_000_000).text)
    assert (told["n"], told["total"]) == (500, 1500)
    for j, piece in enumerate(told["components"]):
        x = piece["offset"] + piece["scale"] * numbers(piece, "u16")
        np.testing.assert_allclose(x, given.scores[:, j], atol=0.51 * np.ptp(given.scores[:, j]) / 65535)
        assert x.min() == pytest.approx(given.scores[:, j].min())
        assert x.max() == pytest.approx(given.scores[:, j].max())
    np.testing.assert_array_equal(numbers(told["labels"], "u16").astype(int) - 1, given.labels)
    np.testing.assert_allclose(numbers(told["confidence"], "u8") / 250, given.confidence, atol=0.0021)
    few, many = told["columns"][:2]
    np.testing.assert_array_equal(numbers(few, "list")[numbers(few, "u8")], given.values[:, 0].astype("f4"))
    np.testing.assert_array_equal(numbers(many, "f4"), given.values[:, 1].astype("f4"))
    np.testing.assert_array_equal(numbers(told["categories"][0], "u8").astype(int) - 1, given.codes[:, 0])
    assert told["ids"][0]["first"] == 0
    np.testing.assert_array_equal(np.cumsum(numbers(told["ids"][0], "u8")), given.rows)
    assert told["ids"][1]["texts"][7] == "id-7"


@pytest.mark.parametrize(
    "ids", [["-1", "2", "3"], ["007", "8", "9"], ["5000000000", "1", "2"], ["1²", "2", "3"], ["9", "", "x"]]
)
def test_ids_that_only_look_like_numbers_stay_texts(ids):
    given = replace(points(3), ids=tuple((text, "x") for text in ids))
    assert json.loads(pack(scatter(given), 10**6).text)["ids"][0]["texts"] == ids


def test_falling_ids_are_kept_in_order():
    given = replace(points(3), ids=(("70000", "x"), ("5", "x"), ("4000000", "x")))
    assert numbers(json.loads(pack(scatter(given), 10**6).text)["ids"][0], "u32").tolist() == [70000, 5, 4000000]


@pytest.mark.parametrize("room", [30_000, 100_000, 400_000])
def test_columns_give_way_before_rows_and_the_page_says_so(room):
    given = points(2000, columns=100)
    packed = pack(scatter(given), room)
    told = json.loads(packed.text)
    assert len(packed.text) <= room
    kept = len(told["columns"])
    assert [piece["name"] for piece in told["columns"]] == [f"c{j}" for j in range(kept)]
    assert kept < 100
    if told["n"] < 2000:
        assert kept == 0
    assert (f"Shown are {told['n']:,} of 2,000 rows" in packed.note) == (told["n"] < 2000)
    assert f"{kept:,} of 100 columns can be chosen" in packed.note


def test_the_same_rows_are_left_out_each_time():
    given = points(5000)
    assert pack(scatter(given), 30_000) == pack(scatter(given), 30_000)


def test_texts_cannot_end_the_script():
    hostile = "</script><script>alert(1)</script><!-- & \u2028 \ud800"
    given = replace(points(9, columns=1), columns=(hostile,), id_names=("row", hostile))
    text = pack(scatter(given), 10**6).text
    assert not re.search("[<>&\u2028]", text)
    assert json.loads(text)["columns"][0]["name"] == hostile


def test_long_texts_are_cut():
    given = replace(points(9, columns=1), columns=("x" * 10_000,), ids=tuple(("1", "y" * 10_000) for _ in range(9)))
    assert len(pack(scatter(given), 10**6).text) < 30_000


def test_points_that_are_not_finite():
    given = points(9)
    given.scores[0, 0], given.scores[1, 0], given.values[2, 0], given.confidence[:] = np.nan, np.inf, np.inf, np.nan
    told = json.loads(pack(scatter(given), 10**6).text)
    assert "confidence" not in told
    assert np.isnan(numbers(told["columns"][0], "f4")[2])


def test_a_notebook_shows_the_picture_and_no_script():
    part = replace(scatter(points(9)), fallback=lambda: "<svg>still</svg>")
    shown = as_html(Report("Rows", parts=[part]), page=False)
    assert "<svg>still</svg>" in shown
    assert "<script" not in shown
    assert len(shown) < 20_000
    assert "9 rows as points" in as_html(Report("Rows", parts=[scatter(points(9))]), page=False)


def test_two_scatters_share_the_room():
    part = scatter(points(100_000, columns=10))
    assert len(as_html(Report("Rows", parts=[part, replace(part, title="Again")])).encode()) <= 8_000_000
