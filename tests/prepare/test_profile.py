"""Profiles of columns: parts merge to the whole, DuckDB computes what the plain form does, and a case by hand."""

from __future__ import annotations

import datetime as dt
import math
from dataclasses import replace
from typing import Any

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from foldwise.data.first_rows import FirstRows
from foldwise.data.tables import open_table
from foldwise.prepare.decide import plan
from foldwise.prepare.profile import ColumnProfile, Histogram, profile

numbers = st.one_of(st.none(), st.integers(-5, 5), st.floats(-1e6, 1e6).map(lambda x: round(x, 3)))
words = st.one_of(st.none(), st.sampled_from(["a", "b c", "longer text here", "z"]))
days = st.one_of(st.none(), st.dates(dt.date(1990, 1, 1), dt.date(2030, 1, 1)))


def close(a: ColumnProfile, b: ColumnProfile) -> None:
    for name in ("mean", "squares"):
        x, y = getattr(a, name), getattr(b, name)
        assert (x is None) == (y is None)
        assert x is None or math.isclose(x, y, rel_tol=1e-9, abs_tol=1e-6)
    ignored = {"mean": None, "squares": None, "distinct": 0, "exact": True}
    if a.present == 0 == b.present:
        ignored["holds"] = "numbers"
    assert replace(a, **ignored) == replace(b, **ignored)


@given(st.sampled_from([numbers, words, days]).flatmap(lambda cells: st.lists(cells, max_size=30)), st.data())
def test_any_split_is_the_whole(cells: list[Any], data: st.DataObject) -> None:
    a, b = sorted((data.draw(st.integers(0, len(cells))), data.draw(st.integers(0, len(cells)))))
    holds = ColumnProfile.of(cells).holds
    bins = (-10.0, 10.0) if holds == "numbers" else None
    whole = ColumnProfile.of(cells, bins)
    parts = [replace(ColumnProfile.of(part, bins), holds=holds) for part in (cells[:a], cells[a:b], cells[b:])]
    left, right = parts[0].merge(parts[1]).merge(parts[2]), parts[0].merge(parts[1].merge(parts[2]))
    close(left, whole)
    close(right, whole)
    close(ColumnProfile.empty(holds).merge(whole), whole)
    close(whole.merge(ColumnProfile.empty(holds)), whole)
    assert left.distinct <= whole.distinct
    assert not left.exact or left.distinct == whole.distinct


def test_running_numbers_run_on() -> None:
    one, two = ColumnProfile.of([1, 2, 3]), ColumnProfile.of([4, 5])
    assert one.merge(two).running
    assert not two.merge(one).running
    assert not ColumnProfile.of([1, 2, None, 3]).running
    assert not ColumnProfile.of([1.5, 2.5]).running


def test_histograms_of_other_bins_do_not_merge() -> None:
    assert Histogram(0, 1, (1, 2)).merge(Histogram(0, 2, (1, 2))) is None
    assert Histogram(0, 1, (1, 2)).merge(Histogram(0, 1, (1, 2))) == Histogram(0, 1, (2, 4))


@given(st.lists(st.tuples(numbers, words, days, st.one_of(st.none(), st.booleans())), min_size=1, max_size=40))
def test_duckdb_computes_the_same(rows: list[tuple[Any, ...]]) -> None:
    columns = [list(column) for column in zip(*rows, strict=True)]
    frame = pd.DataFrame(
        {
            "n": pd.array(columns[0], dtype="Float64"),
            "w": pd.array(columns[1], dtype="string"),
            "d": pd.to_datetime(pd.Series(columns[2], dtype=object)),
            "b": pd.array(columns[3], dtype="boolean"),
        }
    )
    table = open_table(frame)
    with FirstRows(table) as first:
        plans = [plan(column, None) if column.type != "VARCHAR" else _words(column) for column in table.columns]
        found = profile(first, plans)
    for made, cells in zip(found, columns, strict=True):
        wanted = ColumnProfile.of([dt.datetime(c.year, c.month, c.day) if isinstance(c, dt.date) else c for c in cells])
        assert (made.rows, made.missing) == (wanted.rows, wanted.missing)
        if not wanted.present:
            continue
        assert made.distinct == wanted.distinct
        assert made.exact
        close(replace(made, running=wanted.running, histogram=None), replace(wanted, histogram=None))
        if made.histogram is not None:
            assert sum(made.histogram.counts) == made.present


def _words(column: Any) -> Any:
    from foldwise.data.column_text import WordFormat
    from foldwise.data.text_columns import TextColumn

    return plan(column, TextColumn(WordFormat(())))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_case_by_hand(dtype: str) -> None:
    frame = pd.DataFrame({"x": pd.Series([1, 2, 2, 5, None], dtype=dtype)})
    table = open_table(frame)
    with FirstRows(table) as first:
        (found,) = profile(first, [plan(column, None) for column in table.columns])
    assert (found.rows, found.missing, found.distinct, found.minimum, found.maximum, found.whole) == (
        5,
        1,
        3,
        1,
        5,
        True,
    )
    assert found.mean == 2.5
    assert found.squares == 2.25 + 0.25 + 0.25 + 6.25
    assert found.deviation == 1.5
    assert found.histogram == Histogram(0.5, 5.5, (1, 2, 0, 0, 1))
    assert found.histogram.line == "▄█  ▄"


def test_right_at_a_large_offset() -> None:
    frame = pd.DataFrame({"x": [1e9 + k for k in range(5)]})
    table = open_table(frame)
    with FirstRows(table) as first:
        (found,) = profile(first, [plan(column, None) for column in table.columns])
    assert found.deviation == pytest.approx(math.sqrt(2), rel=1e-9)
