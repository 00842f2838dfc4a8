"""A bad row right where DuckDB begins its last stretch of a text file must be an error, not the end of the data."""

from __future__ import annotations

import numpy as np
import pytest
from data_helpers import rows

import foldwise as fw
from foldwise.data import scan
from foldwise.data.text_edges import STRETCH
from foldwise.errors import DataError

LINE = "1,2\n"
FULL = STRETCH // len(LINE) - 1  # rows up to the edge, below a header of the same length


def put(tmp_path, *parts):
    path = tmp_path / "x.csv"
    path.write_text("a,b\n" + "".join(parts))
    return path


@pytest.mark.parametrize("before", [0, 1, 2])
@pytest.mark.parametrize("after", [0, 3, 100_000])
def test_a_word_after_the_edge(tmp_path, before, after):
    path = put(tmp_path, LINE * (FULL + before), "3,oops\n", LINE * after)
    with pytest.raises(DataError, match="'oops' is not a number") as error:
        rows(scan(path))
    assert (error.value.where, error.value.row, error.value.column) == (str(path), FULL + before, "b")


@pytest.mark.parametrize("before", [0, 1, 2])
def test_a_word_after_the_edge_of_a_table_that_is_prepared(tmp_path, before):
    """As the command line reads it: the rows from there on were lost without a word."""
    lines = (LINE, "3,5\n", "6,1\n")
    path = put(tmp_path, *(lines[i % 3] for i in range(FULL + before)), "3,oops\n", "4,5\n" * 3)
    with pytest.raises(DataError, match="'oops' is not a number") as error:
        fw.KMeans(2, prepare="auto").fit(str(path))
    assert (error.value.row, error.value.column) == (FULL + before, "b")


@pytest.mark.parametrize("before", [0, 1, 2])
def test_a_missing_cell_after_the_edge_is_missing(tmp_path, before):
    path = put(tmp_path, LINE * (FULL + before), "3,NA\n", LINE * 5)
    found = np.vstack([piece.load().values for piece in scan(path).pieces()])
    assert len(found) == FULL + before + 6
    assert np.flatnonzero(np.isnan(found).any(axis=1)).tolist() == [FULL + before]


@pytest.mark.parametrize("before", [0, 1, 2])
def test_a_cell_too_few_after_the_edge(tmp_path, before):
    path = put(tmp_path, LINE * (FULL + before), "3\n", LINE * 5)
    with pytest.raises(DataError, match="cell"):
        rows(scan(path))


def test_text_within_quotes_across_the_edge(tmp_path):
    path = tmp_path / "x.csv"
    cell = '"one\ntwo, three"'
    start = "a,b\n" + "1,word\n" * ((STRETCH - 16) // 7)
    for shift in range(0, 24, 3):
        path.write_text(start + f"{'5' * (1 + shift)},{cell}\n" + "7,word\n" * 10)
        found = scan(path, columns=["a"])
        assert len(rows(found)) == (STRETCH - 16) // 7 + 11


def test_numbers_after_the_edge_are_read_with_types(tmp_path):
    path = put(tmp_path, LINE * FULL, "3,4\n" * 10)
    source = scan(path)
    assert source._table.pace.slow is None
    assert rows(source)[-11:].tolist() == [[1, 2], *[[3, 4]] * 10]
