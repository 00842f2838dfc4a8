"""What k-means takes: weights as repetition, frames and names, files, sparse rows; and what it refuses, and how."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import foldwise as fw
from foldwise.errors import DataError, LeftOutWarning, NotFinishedWarning

Make = Callable[..., Any]


# ---------------------------------------------------------------- weights


@pytest.mark.parametrize("search", ["none", "split-merge"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("offset", [0.0, 1e5])
def test_weights_are_repetition(blobs: Make, dtype: Any, offset: float, search: str) -> None:
    x = (blobs(150, 3, 5, spread=1.0) + offset).astype(dtype)
    times = np.random.default_rng(0).integers(0, 4, 150)
    start = x[times > 0][:5]
    weighted = fw.KMeans(5, init=start, tol=0, search=search).fit(x, sample_weight=times)
    repeated = fw.KMeans(5, init=start, tol=0, search=search).fit(np.repeat(x, times, axis=0))
    np.testing.assert_array_equal(np.repeat(weighted.labels_, times), repeated.labels_)
    within = 1e-12 if dtype == np.float64 else 1e-6
    np.testing.assert_allclose(weighted.cluster_centers_, repeated.cluster_centers_, rtol=within)
    assert weighted.inertia_ == pytest.approx(repeated.inertia_, rel=1e-6)
    np.testing.assert_array_equal(weighted.cluster_weights_, repeated.cluster_weights_)


def test_rows_of_weight_zero_get_labels_but_do_not_count(blobs: Make) -> None:
    x = blobs(100, 2, 3)
    far = np.concatenate([x, np.full((5, 2), 1e6)])
    w = np.repeat([1.0, 0.0], [100, 5])
    for init in ("k-means++", "random", "k-means||", x[:3]):
        km = fw.KMeans(3, init=init, tol=0, random_state=1).fit(far, sample_weight=w)
        assert km.cluster_weights_.sum() == 100
        assert np.abs(km.cluster_centers_).max() < 100
        assert len(km.labels_) == 105
        np.testing.assert_array_equal(km.predict(far), km.labels_)
        alone = fw.KMeans(3, init=km.cluster_centers_, tol=0).fit(x)
        np.testing.assert_array_equal(alone.labels_, km.labels_[:100])
        assert km.inertia_ == pytest.approx(alone.inertia_, rel=1e-12)


@pytest.mark.parametrize("factor", [1e-12, 1e-3, 7.0, 1e12, 1e200])
def test_a_common_factor_of_weights_changes_nothing(blobs: Make, factor: float) -> None:
    x, w = blobs(200, 3, 4), np.random.default_rng(0).random(200)
    plain = fw.KMeans(4, tol=0).fit(x, sample_weight=w)
    scaled = fw.KMeans(4, tol=0).fit(x, sample_weight=w * factor)
    np.testing.assert_array_equal(scaled.labels_, plain.labels_)
    np.testing.assert_allclose(scaled.cluster_centers_, plain.cluster_centers_, rtol=1e-12)
    assert scaled.inertia_ == pytest.approx(plain.inertia_ * factor, rel=1e-12)


def test_equal_weights_are_none(blobs: Make) -> None:
    x = blobs(200, 3, 4)
    plain, ones = fw.KMeans(4).fit(x), fw.KMeans(4).fit(x, sample_weight=np.ones(200))
    np.testing.assert_array_equal(plain.labels_, ones.labels_)
    np.testing.assert_allclose(plain.cluster_centers_, ones.cluster_centers_, rtol=1e-13)


def test_bad_weights(blobs: Make) -> None:
    x = blobs(10, 2, 2)
    for wrong in ([1.0] * 9, [[1.0]] * 10, [-1.0] + [1.0] * 9, [np.nan] + [1.0] * 9, [0.0] * 10):
        with pytest.raises(ValueError, match=r"(?i)weight"):
            fw.KMeans(2).fit(x, sample_weight=wrong)
    with pytest.raises(ValueError, match="more than the 2 rows"):
        fw.KMeans(3).fit(x, sample_weight=[1.0, 1.0] + [0.0] * 8)


# ---------------------------------------------------------------- names and frames


def test_names_go_in_and_come_out(blobs: Make) -> None:
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(blobs(60, 2, 3), columns=["length", "width"])
    km = fw.KMeans(3).fit(frame)
    assert list(km.feature_names_in_) == ["length", "width"]
    assert list(km.get_feature_names_out()) == ["kmeans0", "kmeans1", "kmeans2"]
    np.testing.assert_array_equal(km.labels_, fw.KMeans(3).fit(frame.to_numpy()).labels_)
    with pytest.raises(ValueError, match="should match"):
        km.predict(frame.rename(columns={"width": "height"}))
    with pytest.raises(ValueError, match="same order"):
        km.predict(frame[["width", "length"]])
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        km.predict(frame.to_numpy())
    km.fit(frame.to_numpy())
    assert not hasattr(km, "feature_names_in_")


def test_pandas_output(blobs: Make) -> None:
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(blobs(60, 2, 3), columns=["length", "width"], index=range(5, 65))
    out = fw.KMeans(3).set_output(transform="pandas").fit_transform(frame)
    assert list(out.columns) == ["kmeans0", "kmeans1", "kmeans2"]
    assert list(out.index) == list(range(5, 65))


def test_other_frames(blobs: Make) -> None:
    x = blobs(60, 2, 3)
    expected = fw.KMeans(3).fit(x)
    columns = {"a": x[:, 0], "b": x[:, 1]}
    frames = [pytest.importorskip("polars").DataFrame(columns), pytest.importorskip("pyarrow").table(columns)]
    for frame in frames:
        km = fw.KMeans(3).fit(frame)
        assert km.cluster_centers_.tobytes() == expected.cluster_centers_.tobytes()
        np.testing.assert_array_equal(km.predict(frame), expected.labels_)


# ---------------------------------------------------------------- files


@pytest.mark.parametrize("suffix", ["npy", "csv", "parquet"])
def test_fit_and_predict_from_a_path(blobs: Make, tmp_path: Path, suffix: str) -> None:
    x = blobs(200, 3, 4)
    path = tmp_path / f"rows.{suffix}"
    if suffix == "npy":
        np.save(path, x)
    elif suffix == "csv":
        lines = ["a,b,c", *(",".join(map(repr, row)) for row in x.tolist())]
        path.write_text("\n".join(lines) + "\n")
    else:
        pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
        pq.write_table(pa.table(dict(zip("abc", x.T, strict=True))), path)
    expected = fw.KMeans(4).fit(x)
    for given in (path, str(path), fw.scan(path)):
        km = fw.KMeans(4).fit(given)
        assert km.cluster_centers_.tobytes() == expected.cluster_centers_.tobytes()
        np.testing.assert_array_equal(km.labels_, expected.labels_)
        assert km.inertia_ == expected.inertia_
        np.testing.assert_array_equal(km.predict(given), expected.labels_)
        assert km.score(given) == expected.score(x)
        assert path.name in km.manifest_.source
    if suffix != "npy":
        assert list(km.feature_names_in_) == ["a", "b", "c"]


def test_words_are_left_out_of_a_table_and_told(shared_data: Path, table: Any) -> None:
    path = shared_data / "tables" / "iris.csv"
    with pytest.warns(LeftOutWarning, match="Species"):
        km = fw.KMeans(3).fit(path)
    assert km.inertia_ == fw.KMeans(3).fit(table("iris")).inertia_
    assert km.manifest_.left_out == ("Species",)
    np.testing.assert_array_equal(km.predict(path), km.labels_)


def test_one_row_at_a_time_is_what_all_at_once_is(blobs: Make) -> None:
    x = blobs(40, 3, 4)
    km = fw.KMeans(4).fit(x)
    np.testing.assert_array_equal(np.concatenate([km.predict(row[None]) for row in x]), km.labels_)
    np.testing.assert_allclose(np.concatenate([km.transform(row[None]) for row in x]), km.transform(x), rtol=1e-12)


# ---------------------------------------------------------------- sparse rows


@pytest.mark.parametrize("kind", [sp.csr_array, sp.csc_array, sp.coo_array, sp.csr_matrix])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sparse_rows_are_clustered_like_dense_ones(blobs: Make, kind: Any, dtype: Any) -> None:
    x = blobs(300, 6, 4, dtype=dtype)
    x[np.random.default_rng(0).random(x.shape) < 0.5] = 0
    start = x[:7]
    for search in ("none", "breathing"):
        dense = fw.KMeans(7, init=start, tol=0, search=search).fit(x)
        sparse = fw.KMeans(7, init=start, tol=0, search=search).fit(kind(x))
        assert sparse.inertia_ == pytest.approx(dense.inertia_, rel=1e-5)
        if search == "none":
            np.testing.assert_array_equal(sparse.labels_, dense.labels_)
            np.testing.assert_allclose(sparse.cluster_centers_, dense.cluster_centers_, rtol=1e-5, atol=1e-6)
            np.testing.assert_allclose(sparse.transform(kind(x)), dense.transform(x), rtol=1e-4, atol=1e-5)
        np.testing.assert_array_equal(sparse.predict(x), sparse.labels_)  # fitted on sparse, asked about dense
        np.testing.assert_array_equal(dense.predict(kind(x)), dense.labels_)


# ---------------------------------------------------------------- refusals


def test_fewer_rows_than_clusters(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"n_samples=2 should be >= n_clusters=3\. Ask for fewer clusters"):
        fw.KMeans(3).fit(np.eye(2))
    np.save(tmp_path / "two.npy", np.eye(2))
    with pytest.raises(DataError, match=r"two\.npy"):
        fw.KMeans(3).fit(tmp_path / "two.npy")


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_bad_values_are_named_by_row_and_column(blobs: Make, bad: float, dtype: Any) -> None:
    x = blobs(50, 4, 3, dtype=dtype)
    km = fw.KMeans(3).fit(x)
    x[17, 2] = bad
    for call in (fw.KMeans(3).fit, km.predict, km.transform, km.score):
        with pytest.raises(DataError) as caught:
            call(x)
        assert (caught.value.row, caught.value.column) == (17, 2)


def test_a_failed_fit_changes_nothing(blobs: Make) -> None:
    x = blobs(50, 4, 3)
    km = fw.KMeans(3).fit(x)
    before = {name: value for name, value in vars(km).items() if name.endswith("_")}
    x = x[:, :3].copy()
    x[0, 0] = np.nan
    with pytest.raises(DataError):
        km.fit(x)
    after = {name: value for name, value in vars(km).items() if name.endswith("_")}
    assert before.keys() == after.keys()
    assert all(before[name] is after[name] for name in before)


def test_wrong_number_of_columns(blobs: Make) -> None:
    km = fw.KMeans(3).fit(blobs(50, 4, 3))
    for call in (km.predict, km.transform, km.score):
        with pytest.raises(ValueError, match="X has 3 features, but KMeans is expecting 4 features"):
            call(np.zeros((2, 3)))
    with pytest.raises(ValueError, match="2D array"):
        km.predict(np.zeros(4))


def test_max_iter_is_warned_about(blobs: Make) -> None:
    x = blobs(500, 2, 3, spread=2.0)
    with pytest.warns(NotFinishedWarning, match=r"KMeans \(n_clusters=12\) stopped .*\(capped after 1 steps\)"):
        fw.KMeans(12, max_iter=1, tol=0).fit(x)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fw.KMeans(12).fit(x)
