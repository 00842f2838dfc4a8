"""A recipe reads the same table alike, whichever file or frame holds it; and what users ask of columns is done or refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import foldwise as fw
from foldwise.errors import DataError


def rows_of(source: Any) -> Any:
    return np.concatenate([piece.load().unchecked for piece in source.pieces()])


def written(path: Path, header: str, rows: list[str]) -> str:
    path.write_text("\n".join([header, *rows]) + "\n")
    return str(path)


def test_dask_frames_are_fitted_as_they_are_and_not_prepared() -> None:
    dd = pytest.importorskip("dask.dataframe")
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.normal(size=60), "y": rng.normal(size=60)})
    there = dd.from_pandas(frame, npartitions=2)
    model = fw.KMeans(2, prepare="auto", random_state=0).fit(there)
    wanted = fw.KMeans(2, random_state=0).fit(frame)
    np.testing.assert_array_equal(model.cluster_centers_, wanted.cluster_centers_)
    prepared = fw.KMeans(2, prepare="auto", random_state=0).fit(frame)
    np.testing.assert_array_equal(prepared.predict(there), prepared.labels_)
    with pytest.raises(DataError, match=r"Dask collection.*x\.compute\(\)"):
        fw.prepare(there)
