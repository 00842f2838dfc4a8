"""What a model keeps about missing cells belongs to its last fit that succeeded."""

from __future__ import annotations

import numpy as np
import pytest

import foldwise as fw
from foldwise.errors import DataError, FoldwiseWarning


def test_a_failed_fit_keeps_the_fill_of_the_one_before() -> None:
    rows = np.array([[1.0, 2.0], [np.nan, 3.0], [5.0, 4.0], [6.0, 4.5]])
    model = fw.KMeans(2, missing="mean").fit(rows)
    before = model.fill_values_.copy()
    with pytest.raises(DataError):
        model.fit(np.full((4, 2), np.nan))
    np.testing.assert_array_equal(model.fill_values_, before)
    assert before.tolist() == [4.0, 3.375]


def test_a_stream_does_not_keep_the_fill_of_another_fit() -> None:
    rng = np.random.default_rng(0)
    pca = fw.PCA(2, missing="mean").fit(rng.normal(100, 1, (50, 3)))
    assert hasattr(pca, "fill_values_")
    with pytest.warns(FoldwiseWarning, match="starts anew"):
        pca.partial_fit(rng.normal(0, 1, (50, 3)))
    assert not hasattr(pca, "fill_values_")


@pytest.mark.parametrize("policy", ["drop", "mean", "model"])
def test_dask_collections_with_missing_cells(policy: str) -> None:
    dask_array = pytest.importorskip("dask.array")
    rng = np.random.default_rng(1)
    rows = rng.normal(size=(300, 3))
    rows[rng.random(rows.shape) < 0.1] = np.nan
    parts = dask_array.from_array(rows, chunks=(70, 3))
    for model in (fw.KMeans(3, missing=policy), fw.PCA(2, missing=policy)):
        ours = model.fit(parts)
        wanted = type(model)(**model.get_params()).fit(rows)
        name = "cluster_centers_" if isinstance(model, fw.KMeans) else "components_"
        np.testing.assert_array_equal(getattr(ours, name), getattr(wanted, name))
    with pytest.raises(DataError, match="Input contains NaN"):
        fw.KMeans(2).fit(parts)
