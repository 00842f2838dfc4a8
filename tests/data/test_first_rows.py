"""The first rows of a text file, by which its columns are judged."""

from __future__ import annotations

from pathlib import Path

import duckdb
import numpy as np
import pytest

import foldwise as fw
from foldwise.data.first_rows import Cells, own_aggregates, text_aggregates
from foldwise.errors import DataError

WIDE, LATE = 30, 21_000  # columns, and a row beyond those that are judged


def test_stacked_columns_of_text_have_the_aggregates_of_columns_side_by_side() -> None:
    columns = ", ".join(f"CASE WHEN i % {j + 2} = 0 THEN NULL ELSE (i % {j + 5})::VARCHAR END AS c{j}" for j in range(15))
    relation = duckdb.connect().sql(f"SELECT {columns} FROM range(1000) t(i)")
    cells = [Cells(f"c{j}", "trim({x})") for j in range(15)]
    wanted = ("count({x})", "max({x})", "count(*) FILTER ({x} = '3')", "histogram({x})")
    side_by_side = own_aggregates(relation, cells, [wanted] * 15)
    assert side_by_side[0][0] == 500
    assert text_aggregates(relation, cells, wanted) == side_by_side
    assert text_aggregates(relation, cells[:3], wanted) == side_by_side[:3]


def written(path: Path, cell: str) -> tuple[Path, np.ndarray]:
    rows = np.random.default_rng(0).integers(-9, 9, (21_500, WIDE)) / 2.0
    lines = [",".join(f"c{j}" for j in range(WIDE)), *(",".join(map(repr, row)) for row in rows.tolist())]
    lines[LATE + 1] = lines[LATE + 1].rsplit(",", 1)[0] + f",{cell}"
    path.write_text("\n".join(lines) + "\n")
    return path, rows


def test_what_comes_after_the_rows_that_are_judged(tmp_path: Path) -> None:
    path, rows = written(tmp_path / "x.csv", "1.5")
    rows[LATE, -1] = 1.5
    found = np.concatenate([piece.load().dense() for piece in fw.scan(path).pieces()])
    np.testing.assert_array_equal(found, rows)
    path, _ = written(tmp_path / "y.csv", "oops")
    with pytest.raises(DataError, match=rf"oops.*row {LATE}\b|row {LATE}\b.*oops"):
        fw.PCA(2).fit(path)
    path, _ = written(tmp_path / "z.csv", "NA")
    with pytest.raises(DataError, match=rf"row {LATE}\b"):
        fw.PCA(2).fit(path)
    assert fw.PCA(2, missing="model").fit(path).n_samples_ == len(rows)


def test_a_column_of_a_wide_table_that_is_empty_for_long(tmp_path: Path) -> None:
    rows = np.random.default_rng(0).normal(size=(7_500, 60)).round(3)
    cells = [list(map(repr, row)) for row in rows.tolist()]
    for row in cells[:-50]:
        row[2] = ""
    (tmp_path / "x.csv").write_text("\n".join(",".join(row) for row in [[f"c{j}" for j in range(60)], *cells]) + "\n")
    model = fw.KMeans(1, missing="model").fit(tmp_path / "x.csv")
    np.testing.assert_allclose(model.cluster_centers_[0, :3], [*rows[:, :2].mean(axis=0), rows[-50:, 2].mean()])
