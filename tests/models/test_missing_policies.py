"""What is common to all models with `missing=`: rows left out, cells filled, and nothing changed where nothing is missing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone

import foldwise as fw
from foldwise.errors import DataError

MODELS = [
    lambda **o: fw.KMeans(3, **o),
    lambda **o: fw.GaussianMixture(2, covariance_type="tied", **o),
    lambda **o: fw.PCA(2, **o),
]


def figures(model: Any) -> np.ndarray:
    return np.asarray(getattr(model, "cluster_centers_", getattr(model, "means_", getattr(model, "components_", None))))


@pytest.fixture
def rows() -> np.ndarray:
    rng = np.random.default_rng(0)
    x = rng.standard_normal((300, 4)) + 5
    x[rng.random(x.shape) < 0.1] = np.nan
    return x


@pytest.mark.parametrize("make", MODELS)
@pytest.mark.parametrize("scale", [False, True])
def test_mean_fills_with_the_column_means(make: Any, scale: bool, rows: np.ndarray) -> None:
    filled = np.where(np.isnan(rows), np.nanmean(rows, axis=0), rows)
    model = make(missing="mean", scale=scale).fit(rows)
    np.testing.assert_allclose(figures(model), figures(make(scale=scale).fit(filled)), rtol=1e-9, atol=1e-9)
    assert "filled with the column means" in model.manifest_.notes[-1]


@pytest.mark.parametrize("make", MODELS)
def test_drop_leaves_rows_out(make: Any, rows: np.ndarray) -> None:
    complete = ~np.isnan(rows).any(axis=1)
    model, without = make(missing="drop").fit(rows), make().fit(rows[complete])
    np.testing.assert_allclose(figures(model), figures(without), rtol=1e-9, atol=1e-9)
    if hasattr(model, "labels_"):
        np.testing.assert_array_equal(model.labels_[complete], without.labels_)


@pytest.mark.parametrize("make", MODELS)
@pytest.mark.parametrize("policy", ["drop", "mean", "model"])
@pytest.mark.parametrize("scale", [False, True])
def test_with_nothing_missing_the_bits_are_those_without(make: Any, policy: str, scale: bool, rows: np.ndarray) -> None:
    full = np.nan_to_num(rows, nan=1.0)
    np.testing.assert_array_equal(
        figures(make(missing=policy, scale=scale).fit(full)), figures(make(scale=scale).fit(full))
    )


@pytest.mark.parametrize("policy", ["drop", "mean", "model"])
def test_frames_and_files_give_the_same_bits(policy: str, rows: np.ndarray, tmp_path: Path) -> None:
    frame = pd.DataFrame(rows, columns=list("abcd"))
    frame.to_parquet(tmp_path / "x.parquet")
    pl.from_pandas(frame).write_parquet(tmp_path / "null.parquet")
    with_nulls = pl.from_pandas(frame).with_columns(pl.all().fill_nan(None))
    wanted = figures(fw.KMeans(3, missing=policy).fit(rows))
    for data in (frame, frame.convert_dtypes(), with_nulls, tmp_path / "x.parquet", tmp_path / "null.parquet"):
        np.testing.assert_array_equal(figures(fw.KMeans(3, missing=policy).fit(data)), wanted)


def test_errors(rows: np.ndarray) -> None:
    with pytest.raises(DataError, match=r"row .*Input contains NaN.*missing='model'"):
        fw.KMeans(2).fit(rows)
    infinite = rows.copy()
    infinite[7, 1] = np.inf
    with pytest.raises(DataError, match=r"row 7 .*column 1.*infinity"):
        fw.KMeans(2, missing="mean").fit(infinite)
    blank = rows.copy()
    blank[:, 2] = np.nan
    for policy in ("drop", "mean", "model"):
        with pytest.raises(DataError, match=r"column 2.*every cell of this column is missing"):
            fw.KMeans(2, missing=policy).fit(blank)
    spoilt = rows.copy()
    spoilt[:, 1] = np.where(np.arange(300) % 2, np.nan, 1.0)
    spoilt[:, 2] = np.where(np.arange(300) % 2, 1.0, np.nan)
    with pytest.raises(DataError, match=r"each of the 300 rows has a missing cell"):
        fw.KMeans(2, missing="drop").fit(spoilt)


@pytest.mark.parametrize("policy", ["drop", "mean", "model"])
@pytest.mark.parametrize("model", [fw.PCA(2), fw.KMeans(2, random_state=0), fw.FeatureSelector(2)])
def test_a_missing_cell_in_a_row_without_weight_does_not_matter(policy: str, model: Any) -> None:
    """It was taken for none, and its NaN for a value."""
    x = np.random.default_rng(0).standard_normal((20, 3))
    gaps, weights = x.copy(), np.ones(20)
    gaps[3, 1], weights[3] = np.nan, 0.0
    one = clone(model).set_params(missing=policy).fit(gaps, sample_weight=weights)
    other = clone(model).fit(np.delete(x, 3, axis=0))
    name = {"PCA": "explained_variance_", "KMeans": "cluster_centers_", "FeatureSelector": "score_"}[
        type(model).__name__
    ]
    # A covariance that is fitted to observed cells by EM is shrunk a little, whatever is missing.
    within = 0.1 if policy == "model" and not isinstance(model, fw.KMeans) else 1e-9
    np.testing.assert_allclose(getattr(one, name), getattr(other, name), rtol=within)
