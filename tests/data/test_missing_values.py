"""Words and numbers that the user says stand for missing cells, in files of every kind."""

from __future__ import annotations

import numpy as np
import pytest

import foldwise as fw


def cells(source):
    """All rows, with NaN where a cell is missing."""
    return np.concatenate([piece.load().unchecked for piece in source.pieces()])


@pytest.fixture
def put(tmp_path):
    def put(name, text):
        path = tmp_path / name
        path.write_text(text)
        return str(path)

    return put


def lines(rows):
    return "x,y\n" + "".join(f"{x},{y}\n" for x, y in rows)


@pytest.mark.parametrize("first", [0.5, "NA", "?"])  # without and with a reason to look closer
@pytest.mark.parametrize("way", [fw.scan, fw.prepare])
def test_number_for_missing_in_text(put, way, first):
    rows = [(first if i == 0 else i + 0.5, -9 if i % 4 == 1 else i * 1.5) for i in range(12)]
    found = cells(way(put("x.csv", lines(rows)), missing_values=["-9"]))
    assert np.isnan(found[:, 1]).tolist() == [i % 4 == 1 for i in range(12)]
    assert np.array_equal(found[2, :], [2.5, 3.0])


def test_number_for_missing_among_words(put):
    rows = [("-9" if i % 3 == 0 else "yes" if i % 2 else "no", i * 0.5) for i in range(24)]
    found = fw.look(put("x.csv", lines(rows)), missing_values=["-9"])["x"]
    assert found.kind == "boolean"
    assert found.profile.missing == 8


def test_word_for_missing_that_comes_late(put):
    path = put("x.csv", lines((i + 0.5, "unknown" if i == 25_000 else i) for i in range(30_000)))
    found = cells(fw.scan(path, missing_values=["unknown"]))
    assert np.flatnonzero(np.isnan(found[:, 1])).tolist() == [25_000]


@pytest.mark.parametrize("way", [fw.scan, fw.prepare])
@pytest.mark.parametrize(
    ("cell", "meant"), [("NA", np.nan), ("", np.nan), ("${}.50", 0.5), ("{}.5", 0.5), ("{}%", 0.0)]
)
@pytest.mark.parametrize("order", ["ab", "ba"])
def test_files_of_which_one_has_other_cells(put, tmp_path, way, cell, meant, order):
    put(f"{order[0]}.csv", lines((i * 0.5, i % 5 + 0.3) for i in range(20)))
    put(f"{order[1]}.csv", lines((cell.format(i + 1), i % 5 + 0.3) for i in range(20)))
    found = cells(way(str(tmp_path / "*.csv")))[:, 0]
    plain, others = (found[:20], found[20:]) if order == "ab" else (found[20:], found[:20])
    assert np.array_equal(plain, np.arange(20) * 0.5)
    assert np.array_equal(others, np.arange(20) + 1 + meant if meant == meant else np.full(20, np.nan), equal_nan=True)
