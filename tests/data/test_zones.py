"""Columns of times with a zone, which are no numbers, are left out like all others that are none."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

import foldwise as fw
from foldwise.errors import LeftOutWarning


@pytest.mark.parametrize("name", ["zones.parquet", "zones.csv"])
def test_times_with_a_zone_are_left_out(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    duckdb.sql(f"copy (select i % 5 a, i * 0.5 b, now() t from range(200) r(i)) to '{path}'")
    with pytest.warns(LeftOutWarning):
        source = fw.scan(path)
    assert source.left_out == ("t",)
    assert fw.KMeans(2).fit(source).cluster_centers_.shape == (2, 2)
