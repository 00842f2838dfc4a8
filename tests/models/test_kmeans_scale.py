"""KMeans(scale=True): the answer of a pipeline with a StandardScaler, for rows in their own units."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.preprocessing import StandardScaler

import foldwise as fw
from foldwise.errors import DataError


@pytest.fixture
def rows():
    rng = np.random.default_rng(0)
    x = np.concatenate([rng.standard_normal((60, 3)), rng.standard_normal((40, 3)) + 5]) * [1.0, 1000.0, 0.01]
    return np.column_stack([x, np.full(len(x), 7.0)])  # a column that does not vary


def test_it_is_a_pipeline_with_a_scaler(rows):
    scaled = StandardScaler().fit_transform(rows)
    ours, plain = fw.KMeans(4, scale=True).fit(rows), fw.KMeans(4).fit(scaled)
    np.testing.assert_array_equal(ours.labels_, plain.labels_)
    np.testing.assert_allclose(ours.cluster_centers_, plain.cluster_centers_, atol=1e-12)
    assert ours.inertia_ == pytest.approx(plain.inertia_)
    np.testing.assert_allclose(ours.scale_, [*rows.std(axis=0)[:3], 1.0])
    np.testing.assert_allclose(ours.transform(rows), plain.transform(scaled), rtol=1e-9)
    means = [rows[ours.labels_ == i].mean(axis=0) for i in range(4)]
    np.testing.assert_allclose(fw.KMeans(4, scale=True, tol=0).fit(rows).centers_in_data_units(), means, rtol=1e-9)
    assert plain.scale_ is None
    assert ours.score(rows) == pytest.approx(-ours.inertia_)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("parameters", [{}, {"metric": "cosine"}])
def test_predict_is_labels_and_survives_the_file(rows, dtype, parameters, tmp_path):
    x = rows.astype(dtype)
    model = fw.KMeans(5, scale=True, **parameters).fit(x)
    np.testing.assert_array_equal(model.predict(x), model.labels_)
    fw.save(model, tmp_path / "m.fw")
    np.testing.assert_array_equal(fw.load(tmp_path / "m.fw").predict(x), model.labels_)


@pytest.mark.parametrize(("dtype", "offset"), [(np.float32, 1e4), (np.float64, 1e8)])
def test_digits_survive_an_offset(dtype, offset):
    rng = np.random.default_rng(1)
    x = (np.concatenate([rng.standard_normal((50, 2)), rng.standard_normal((50, 2)) + 6]) + offset).astype(dtype)
    exact = x.astype(np.float64) - offset
    assert fw.KMeans(2, scale=True).fit(x).inertia_ == pytest.approx(
        fw.KMeans(2, scale=True).fit(exact).inertia_, rel=1e-6 if dtype == np.float32 else 1e-9
    )


def test_sparse_stays_sparse_and_weights_repeat(rows):
    x = np.where(np.abs(rows) > 1, rows, 0.0)
    sparse, dense = fw.KMeans(3, scale=True).fit(sp.csr_array(x)), fw.KMeans(3, scale=True).fit(x)
    assert sparse.mean_ is None
    np.testing.assert_array_equal(sparse.predict(sp.csr_array(x)), sparse.labels_)
    np.testing.assert_allclose(sparse.scale_, dense.scale_)
    weights = np.random.default_rng(2).integers(1, 4, len(x))
    once = fw.KMeans(3, scale=True, init=dense.cluster_centers_).fit(x, sample_weight=weights)
    again = fw.KMeans(3, scale=True, init=dense.cluster_centers_).fit(np.repeat(x, weights, axis=0))
    np.testing.assert_allclose(once.scale_, again.scale_)
    assert once.inertia_ == pytest.approx(again.inertia_)


def test_a_variance_out_of_range_is_told_and_a_failed_fit_changes_nothing(rows):
    model = fw.KMeans(2, scale=True)
    with pytest.raises(DataError, match=r"column 1.*range of float64"):
        model.fit(rows * [1, 1e170, 1, 1])
    assert not hasattr(model, "scale_")
