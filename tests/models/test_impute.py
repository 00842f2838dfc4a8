"""fw.impute: completed tables."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.exceptions import NotFittedError

import foldwise as fw
from foldwise.errors import DataError, ParameterError


def table(dtype: Any = np.float64) -> np.ndarray:
    rng = np.random.default_rng(0)
    x = rng.standard_normal((200, 3)) @ rng.standard_normal((3, 5)) + 0.3 * rng.standard_normal((200, 5)) + 10
    x[rng.random(x.shape) < 0.1] = np.nan
    return x.astype(dtype)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_observed_cells_are_as_they_were(dtype: Any) -> None:
    x = table(dtype)
    done = fw.impute(fw.PCA(missing="model").fit(x), x)
    gaps = np.isnan(x)
    np.testing.assert_array_equal(done.missing, gaps)
    np.testing.assert_array_equal(done.values[~gaps], x[~gaps])
    assert done.values.dtype == dtype
    assert np.isfinite(done.values).all()
    assert (done.deviations[gaps] > 0).all()
    assert (done.deviations[~gaps] == 0).all()
    np.testing.assert_array_equal(np.asarray(done), done.values)


def test_deviations_are_those_of_the_errors() -> None:
    rng = np.random.default_rng(1)
    x = rng.standard_normal((3000, 2)) @ rng.standard_normal((2, 6)) + 0.5 * rng.standard_normal((3000, 6))
    y = np.where(rng.random(x.shape) < 0.2, np.nan, x)
    done = fw.impute(fw.PCA(missing="model").fit(y), y)
    off = (done.values - x)[done.missing] / done.deviations[done.missing]
    assert abs(np.sqrt(np.mean(off**2)) - 1) < 0.05
    assert abs(np.mean(np.abs(off) < 1.96) - 0.95) < 0.02


def test_frames_keep_names_and_index() -> None:
    frame = pd.DataFrame(table(), columns=list("abcde"), index=[f"r{i}" for i in range(200)])
    done = fw.impute(fw.PCA(missing="model").fit(frame), frame)
    back = done.frame()
    assert list(back.columns) == list("abcde")
    assert list(back.index) == list(frame.index)
    pd.testing.assert_frame_equal(back.where(frame.notna()), frame)


def test_files_and_other_rows(tmp_path: Path) -> None:
    frame = pd.DataFrame(table(), columns=list("abcde"))
    frame.to_csv(tmp_path / "x.csv", index=False, float_format="%.17g")
    model = fw.PCA(missing="model").fit(frame)
    np.testing.assert_array_equal(fw.impute(model, str(tmp_path / "x.csv")).values, fw.impute(model, frame).values)
    np.testing.assert_array_equal(fw.impute(model, frame.iloc[:7]).values, fw.impute(model, frame).values[:7])


@pytest.mark.parametrize("missing", ["error", "drop", "mean", "model"])
def test_any_pca_fills(missing: str) -> None:
    x = table()
    model = fw.PCA(2, missing=missing).fit(np.nan_to_num(x, nan=10.0) if missing == "error" else x)
    done = fw.impute(model, x)
    assert np.isfinite(done.values).all()
    np.testing.assert_array_equal(done.missing, np.isnan(x))


def test_a_full_model_of_complete_rows_regresses() -> None:
    rng = np.random.default_rng(2)
    x = rng.standard_normal((50, 3)) @ rng.standard_normal((3, 3))
    y = np.array([[0.3, np.nan, -1.0]])
    found = fw.impute(fw.PCA().fit(x), y).values[0, 1]
    design = np.column_stack([np.ones(50), x[:, [0, 2]]])
    wanted = np.array([1.0, 0.3, -1.0]) @ np.linalg.lstsq(design, x[:, 1], rcond=None)[0]
    np.testing.assert_allclose(found, wanted, rtol=1e-8)


@pytest.mark.parametrize("scale", [False, True])
def test_k_means_fills_from_the_nearest_centre(scale: bool) -> None:
    rng = np.random.default_rng(3)
    x = rng.standard_normal((120, 2))
    x[60:] += [40.0, 400.0]
    model = fw.KMeans(2, scale=scale, random_state=0).fit(x)
    y = x.copy()
    y[3, 1] = y[70, 0] = np.nan
    y[5] = np.nan
    done = fw.impute(model, y)
    np.testing.assert_allclose(done.values[3, 1], x[:60, 1].mean(), rtol=1e-6)
    np.testing.assert_allclose(done.values[70, 0], x[60:, 0].mean(), rtol=1e-6)
    assert 0.7 < done.deviations[3, 1] < 1.3
    np.testing.assert_allclose(done.values[5], x.mean(axis=0), rtol=1e-6)
    assert done.deviations[5, 1] > 100


def test_the_printed_form() -> None:
    x = np.array([[1.0, 2.0], [2.0, np.nan], [3.0, 5.0], [4.0, 9.0]])
    text = repr(fw.impute(fw.PCA(missing="model").fit(x), x))
    assert text.startswith("4 x 2 values, 1 of them filled by PCA, in 1 rows\n  x1: 1 filled, give or take ")


def test_nothing_to_fill() -> None:
    x = np.nan_to_num(table())
    done = fw.impute(fw.PCA(missing="model").fit(x), x)
    np.testing.assert_array_equal(done.values, x)
    assert not done.missing.any()


def test_what_is_refused() -> None:
    x = table()
    with pytest.raises(NotFittedError):
        fw.impute(fw.PCA(), x)
    model = fw.PCA(missing="model").fit(x)
    with pytest.raises(DataError, match="sparse"):
        fw.impute(model, sp.csr_matrix(np.nan_to_num(x)))
    with pytest.raises(DataError):
        fw.impute(model, np.where(np.isnan(x), np.inf, x))
    with pytest.raises(DataError, match="features"):
        fw.impute(model, x[:, :3])
    with pytest.raises(ParameterError, match="cosine"):
        fw.impute(fw.KMeans(2, metric="cosine").fit(np.nan_to_num(x)), x)
