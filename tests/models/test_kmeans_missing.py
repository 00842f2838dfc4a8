"""KMeans with missing="model": least squares over the observed cells."""

from __future__ import annotations

import csv
import hashlib
import json
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import foldwise as fw
from foldwise.data.block_grid import rows_per_block
from foldwise.errors import DataError, NotFinishedWarning
from foldwise.fold import events
from foldwise.fold.outcome import Reason
from foldwise.kernels import reference


def holed(rows: np.ndarray, share: float = 0.15, seed: int = 1, *, blank: int = 0) -> np.ndarray:
    """The rows with some cells removed at random, the first of them entirely."""
    rng = np.random.default_rng(seed)
    out = rows.copy()
    out[rng.random(out.shape) < share] = np.nan
    out[:blank] = np.nan
    return out


def observed_inertias(x: np.ndarray, centres: np.ndarray, labels: np.ndarray, w: np.ndarray) -> np.ndarray:
    """The inertia of each cluster, in extended precision."""
    gaps = x.astype(np.longdouble) - centres[labels].astype(np.longdouble)
    each = np.nansum(gaps**2, axis=1) * w
    return np.array([float(each[labels == c].sum()) for c in range(len(centres))])


def check_trace(km: Any, x: np.ndarray, w: np.ndarray) -> None:
    """No half-step raises the inertia, beyond rounding (of the whole spread, and of centres to their dtype)."""
    spread = float(w @ np.nansum((x - np.nanmean(x, axis=0)) ** 2, axis=1))
    unit = float(np.finfo(x.dtype).eps) * float(np.nanmax(np.abs(x)))
    within, run, last = 1e-12 * spread + float(w.sum()) * x.shape[1] * unit**2, -1.0, np.inf
    for step in km.trace_:
        run, last = (step["run"], np.inf) if step["run"] != run else (run, last)
        for name in ("inertia_after_e", "inertia"):
            assert step[name] <= last + within
            last = step[name]


def check_consistent(km: Any, x: np.ndarray, weights: Any = None) -> None:
    """Labels are those of predict and of brute force; inertias are those of labels and centres."""
    w = np.ones(len(x)) if weights is None else np.asarray(weights, dtype=np.float64)
    blank = np.isnan(x).all(axis=1)
    np.testing.assert_array_equal(km.predict(x), km.labels_)
    np.testing.assert_array_equal(reference.nearest_observed(x, km.cluster_centers_), km.labels_)
    assert (km.labels_[blank] == -1).all()
    assert np.isfinite(km.cluster_centers_).all()
    true = observed_inertias(x, km.cluster_centers_, km.labels_, w)
    np.testing.assert_allclose(km.cluster_inertias_, true, rtol=1e-11, atol=1e-12 * true.sum())
    np.testing.assert_allclose(km.inertia_, true.sum(), rtol=1e-12)
    sizes = np.bincount(km.labels_[~blank], w[~blank], minlength=km.n_clusters)
    np.testing.assert_allclose(km.cluster_weights_, sizes, rtol=1e-12)
    np.testing.assert_allclose(-km.score(x, sample_weight=weights), km.inertia_, rtol=1e-12)
    check_trace(km, x, w)


def check_means(km: Any, x: np.ndarray, weights: Any = None) -> None:
    """At convergence every coordinate of a centre is the mean of the observed cells of its rows."""
    w = np.ones(len(x)) if weights is None else np.asarray(weights, dtype=np.float64)
    # What the rescaling of rows and the grid of exact sums leave out.
    within = 1e-15 * float(np.nanmax(x) - np.nanmin(x)) + float(np.spacing(np.abs(np.float64(np.nanmax(np.abs(x))))))
    for number, centre in enumerate(km.cluster_centers_):
        for j, value in enumerate(centre):
            here = (km.labels_ == number) & ~np.isnan(x[:, j])
            if w[here].sum() > 0:
                mean = float(w[here].astype(np.longdouble) @ x[here, j].astype(np.longdouble) / w[here].sum())
                assert abs(value - mean) <= np.spacing(np.abs(value)) + within


def bits(km: Any) -> str:
    parts = [km.cluster_centers_, km.labels_, np.array(km.inertia_), km.cluster_inertias_, km.cluster_weights_]
    return hashlib.sha256(b"".join(np.ascontiguousarray(part).tobytes() for part in parts)).hexdigest()


# ---------------------------------------------------------------- worked cases


@pytest.fixture(scope="module")
def worked(shared_data: Path) -> tuple[np.ndarray, dict[str, Any]]:
    """iris with 90 of its 600 cells missing, and what k-means does with it."""
    folder = shared_data / "messy" / "worked"
    if not folder.is_dir():
        pytest.skip("the worked cases (../shared/data/messy/worked) are not here")
    result = json.loads((folder / "kmeans_observed_iris.json").read_text())["result"]
    with (folder / "iris_missing.csv").open(newline="") as file:
        lines = list(csv.DictReader(file))
    x = np.array([[float(line[name] or "nan") for name in result["columns"]] for line in lines])
    assert np.isnan(x).sum() == 90
    return x, result


def test_worked_case_from_a_fixed_start(worked: tuple[np.ndarray, dict[str, Any]]) -> None:
    x, result = worked
    true = result["fixed_start"]
    km = fw.KMeans(3, init=x[result["start_rows"]], tol=0, missing="model").fit(x)
    np.testing.assert_array_equal(km.labels_, true["labels"])
    np.testing.assert_allclose(km.cluster_centers_, true["centers"], rtol=1e-14)
    assert km.inertia_ == pytest.approx(true["sse"], rel=1e-13)
    half_steps = [step[name] for step in km.trace_ for name in ("inertia_after_e", "inertia")]
    expected = true["sse_after_each_half_step"]
    np.testing.assert_allclose(half_steps[: len(expected)], expected, rtol=1e-10)
    np.testing.assert_allclose(half_steps[len(expected) :], true["sse"], rtol=1e-10)
    assert km.cluster_weights_.tolist() == true["sizes"]
    check_consistent(km, x)
    check_means(km, x)


@pytest.mark.parametrize(
    "options",
    [{}, {"n_init": 10}, {"search": "breathing"}, {"search": "split-merge"}, {"init": "random"}, {"init": "k-means||"}],
)
def test_worked_case_reaches_the_best_of_3000_starts(worked: Any, options: dict[str, Any]) -> None:
    x, result = worked
    km = fw.KMeans(3, missing="model", tol=0, **options).fit(x)
    assert km.inertia_ == pytest.approx(result["best"]["sse"], rel=1e-10)
    assert km.cluster_weights_.tolist() == sorted(result["best"]["sizes"], reverse=True)


def test_by_hand() -> None:
    """Centres (1, 10) and (9, 30): the third row has only its second cell, 28, and joins the second centre; (9, 29) then."""
    nan = np.nan
    x = np.array([[0.0, 10.0], [2.0, nan], [nan, 28.0], [9.0, 30.0], [nan, nan]])
    km = fw.KMeans(2, init=[[1.0, 10.0], [9.0, 30.0]], tol=0, missing="model").fit(x)
    assert km.labels_.tolist() == [0, 0, 1, 1, -1]
    np.testing.assert_array_equal(km.cluster_centers_, [[1.0, 10.0], [9.0, 29.0]])
    assert km.inertia_ == 1 + 1 + 1 + 1
    assert km.cluster_weights_.tolist() == [2.0, 2.0]
    # Of (2, -) one of two columns is observed, so its squared distance counts twice.
    np.testing.assert_allclose(km.transform(x)[1], np.sqrt(2) * np.array([1.0, 7.0]), rtol=1e-15)
    assert np.isnan(km.transform(x)[4]).all()
    assert km.predict([[nan, nan], [nan, 0.0]]).tolist() == [-1, 0]
    assert km.score(x) == -4.0


def test_a_coordinate_that_nobody_observed_keeps_its_value() -> None:
    nan = np.nan
    x = np.array([[0.0, 1.0], [1.0, 2.0], [50.0, nan], [52.0, nan]])
    km = fw.KMeans(2, init=[[0.0, 0.0], [50.0, -7.0]], tol=0, missing="model").fit(x)
    np.testing.assert_array_equal(km.cluster_centers_, [[0.5, 1.5], [51.0, -7.0]])


# ---------------------------------------------------------------- what must hold for any table


@st.composite
def tables(draw: st.DrawFn) -> tuple[np.ndarray, Any, int]:
    dtype = draw(st.sampled_from([np.float32, np.float64]))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    n, d, k = draw(st.integers(12, 80)), draw(st.integers(1, 6)), draw(st.integers(1, 5))
    if draw(st.booleans()):
        x = rng.integers(-3, 4, (n, d)).astype(dtype)
    else:
        x = (rng.standard_normal((n, d)) * 2 + draw(st.sampled_from([0.0, 100.0]))).astype(dtype)
    x[rng.random(x.shape) < draw(st.sampled_from([0.02, 0.2, 0.5]))] = np.nan
    x[0] = dtype(1)  # a complete row
    x[1, 0], x[1, 1:] = np.nan, 0
    weights = rng.integers(0, 4, n).astype(np.float64) if draw(st.booleans()) else None
    if weights is not None:
        weights[: 2 * k] = 1.0
    x[2 : 2 * k] = np.where(np.isnan(x[2 : 2 * k]), dtype(2), x[2 : 2 * k])
    return x, weights, k


@settings(deadline=None, max_examples=60)
@given(tables(), st.sampled_from(["k-means++", "random", "k-means||"]), st.sampled_from(["auto", "lloyd", "bounded"]))
def test_labels_centres_and_inertias(case: tuple[np.ndarray, Any, int], init: str, algorithm: str) -> None:
    x, weights, k = case
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # fewer distinct rows than clusters
        km = fw.KMeans(k, init=init, n_init=2, tol=0, missing="model", algorithm=algorithm).fit(
            x, sample_weight=weights
        )
    check_consistent(km, x, weights)
    check_means(km, x, weights)
    sizes = km.cluster_weights_
    assert (np.diff(sizes) <= 0).all() or km.trace_[-1]["near_ties"] > 0


@settings(deadline=None, max_examples=40)
@given(tables(), st.integers(0, 100))
def test_weights_repeat_rows_and_their_order_does_not_matter(case: tuple[np.ndarray, Any, int], seed: int) -> None:
    x, weights, k = case
    counts = np.random.default_rng(seed).integers(1, 4, len(x)) if weights is None else weights.astype(np.intp)
    start = np.nan_to_num(x[:k].astype(np.float64), nan=0.5) + np.arange(k)[:, None] * 0.37
    model = fw.KMeans(k, init=start, tol=0, missing="model")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        weighted = model.fit(x, sample_weight=counts.astype(float))
        expected = weighted.cluster_centers_, weighted.inertia_, weighted.labels_
        repeated = np.repeat(x, counts, axis=0)
        order = np.random.default_rng(seed).permutation(len(repeated))
        again = fw.KMeans(k, init=start, tol=0, missing="model").fit(np.ascontiguousarray(repeated[order]))
    digits = 1e-4 if x.dtype == np.float32 else 1e-9
    if any(step["filled"] or step["near_ties"] for step in (*weighted.trace_, *again.trace_)):
        return  # which of several equally far rows fills a cluster depends on their order
    np.testing.assert_allclose(again.cluster_centers_, expected[0], rtol=digits, atol=digits)
    assert again.inertia_ == pytest.approx(expected[1], rel=10 * digits, abs=1e-9)
    np.testing.assert_array_equal(again.labels_, np.repeat(expected[2], counts)[order])


@settings(deadline=None, max_examples=25)
@given(st.integers(0, 2**32), st.booleans())
def test_the_order_of_rows_does_not_change_the_start(seed: int, weighted: bool) -> None:
    """In a small table, seeds are drawn in an order of the rows' values, missing ones last."""
    rng = np.random.default_rng(seed)
    x = holed(rng.standard_normal((120, 3)), 0.2, seed, blank=1)
    weights = rng.random(120) + 0.5 if weighted else None
    order = rng.permutation(120)
    first, again = (
        fw.KMeans(4, tol=0, n_init=2, missing="model").fit(
            x[which], sample_weight=None if weights is None else weights[which]
        )
        for which in (np.arange(120), order)
    )
    np.testing.assert_array_equal(again.labels_, first.labels_[order])
    np.testing.assert_allclose(again.cluster_centers_, first.cluster_centers_, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    "options", [{}, {"scale": True}, {"search": "breathing"}, {"init": "random"}, {"algorithm": "lloyd"}]
)
def test_with_nothing_missing_the_bits_are_those_of_complete_rows(
    blobs: Callable[..., Any], dtype: Any, options: dict[str, Any]
) -> None:
    x = blobs(500, 4, 5, dtype=dtype, spread=1.5)
    plain, model = fw.KMeans(5, **options).fit(x), fw.KMeans(5, missing="model", **options).fit(x)
    assert bits(plain) == bits(model)
    assert plain.trace_ == model.trace_
    np.testing.assert_array_equal(plain.predict(x), model.predict(x))
    np.testing.assert_array_equal(plain.transform(x), model.transform(x))
    assert plain.score(x) == model.score(x)


def test_a_large_offset_costs_no_digits() -> None:
    x = holed(np.random.default_rng(0).standard_normal((400, 3)), 0.2)
    near = fw.KMeans(4, missing="model", tol=0).fit(x)
    far = fw.KMeans(4, missing="model", tol=0).fit(x + 1e8)
    np.testing.assert_array_equal(far.labels_, near.labels_)
    np.testing.assert_allclose(far.cluster_centers_ - 1e8, near.cluster_centers_, atol=1e-7)
    assert far.inertia_ == pytest.approx(near.inertia_, rel=1e-7)  # the rows themselves were rounded


@pytest.mark.parametrize("factor", [1e-200, 1e-30, 1e30, 1e200])
def test_any_scale(factor: float) -> None:
    x = holed(np.random.default_rng(0).standard_normal((300, 3)), 0.2)
    unit = fw.KMeans(3, missing="model", tol=0).fit(x)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the inertia may leave float64
        km = fw.KMeans(3, missing="model", tol=0).fit(x * factor)
    np.testing.assert_array_equal(km.labels_, unit.labels_)
    np.testing.assert_allclose(km.cluster_centers_ / factor, unit.cluster_centers_, rtol=1e-12)


# ---------------------------------------------------------------- sources, threads, engines


@pytest.fixture(scope="module", params=[np.float32, np.float64], ids=["float32", "float64"])
def several_blocks(request: pytest.FixtureRequest) -> np.ndarray:
    dtype, n, d = np.dtype(request.param), 27_648, 20
    assert rows_per_block(d, dtype) < n
    rng = np.random.default_rng(3)
    rows = rng.standard_normal((10, d))[rng.integers(10, size=n)] * 2 + rng.standard_normal((n, d)) + 100
    return holed(rows.astype(dtype), 0.1, blank=3)


OPTIONS = {"n_clusters": 14, "tol": 1e-3, "missing": "model"}


def test_the_same_bits_for_any_threads_and_shortcuts(several_blocks: np.ndarray) -> None:
    expected = fw.KMeans(**OPTIONS, n_threads=1, algorithm="lloyd").fit(several_blocks)
    for algorithm, threads in (("lloyd", 3), ("bounded", 1), ("bounded", 2), ("auto", 7)):
        assert bits(fw.KMeans(**OPTIONS, n_threads=threads, algorithm=algorithm).fit(several_blocks)) == bits(expected)
    assert max(step["pruned"] for step in fw.KMeans(**OPTIONS).fit(several_blocks).trace_) > len(several_blocks) / 2
    assert (expected.labels_[:3] == -1).all()
    assert (expected.labels_[3:] >= 0).all()
    check_means(fw.KMeans(**OPTIONS | {"tol": 0}).fit(several_blocks), several_blocks)


def test_the_same_bits_from_files_and_frames(several_blocks: np.ndarray, tmp_path: Path) -> None:
    expected = bits(fw.KMeans(**OPTIONS).fit(several_blocks))
    np.save(tmp_path / "rows.npy", several_blocks)
    names = [f"c{j}" for j in range(several_blocks.shape[1])]
    frame = pd.DataFrame(several_blocks, columns=names)
    pl.DataFrame(several_blocks, schema=names).fill_nan(None).write_parquet(tmp_path / "rows.parquet")
    for table in (tmp_path / "rows.npy", tmp_path / "rows.parquet", frame, np.asfortranarray(several_blocks)):
        assert bits(fw.KMeans(**OPTIONS).fit(table)) == expected


def test_other_starts_and_searches_over_several_blocks(several_blocks: np.ndarray) -> None:
    plain = fw.KMeans(**OPTIONS).fit(several_blocks)
    for options in ({"init": "k-means||"}, {"init": "random", "n_init": 1}, {"search": "breathing", "n_clusters": 10}):
        found = [bits(fw.KMeans(**OPTIONS | options, n_threads=threads).fit(several_blocks)) for threads in (1, 2)]
        assert found[0] == found[1]
    searched = fw.KMeans(**OPTIONS, search="breathing").fit(several_blocks)
    assert searched.inertia_ <= plain.inertia_


def test_on_a_cluster() -> None:
    distributed = pytest.importorskip("distributed")
    x = holed(np.random.default_rng(0).standard_normal((40_000, 12)), 0.1, blank=2)
    expected = bits(fw.KMeans(6, missing="model").fit(x))
    with distributed.Client(n_workers=2, threads_per_worker=1, processes=False, dashboard_address=None) as client:
        assert bits(fw.KMeans(6, missing="model").fit(x, engine=client)) == expected


# ---------------------------------------------------------------- the estimator


def test_scale_refers_to_observed_cells() -> None:
    rng = np.random.default_rng(0)
    x = holed(np.concatenate([rng.standard_normal((100, 2)), rng.standard_normal((100, 2)) + 6]) * [1.0, 1000.0], 0.2)
    x[np.isnan(x).all(axis=1), 0] = 0.0
    km = fw.KMeans(2, missing="model", scale=True, tol=0).fit(x)
    mean, deviation = np.nanmean(x, axis=0), np.nanstd(x, axis=0)
    np.testing.assert_allclose(km.mean_, mean, rtol=1e-12)
    np.testing.assert_allclose(km.scale_, deviation, rtol=1e-12)
    standardised = (x - km.mean_) / km.scale_
    np.testing.assert_array_equal(km.predict(x), km.labels_)
    true = observed_inertias(standardised, km.cluster_centers_, km.labels_, np.ones(200)).sum()
    assert km.inertia_ == pytest.approx(float(true), rel=1e-12)
    for number in range(2):
        mine = np.nanmean(x[km.labels_ == number], axis=0)
        np.testing.assert_allclose(np.asarray(km.centers_in_data_units())[number], mine, rtol=1e-12)


@pytest.mark.parametrize("weighted", [False, True])
def test_a_small_table_is_searched_in_memory(weighted: bool) -> None:
    """As good as the best of many starts, whatever the order of the rows, and rows repeated or weighted."""
    rng = np.random.default_rng(2)
    x = holed(rng.standard_normal((60, 5)), 0.1, blank=2)
    counts = rng.integers(1, 4, 60) if weighted else np.ones(60, np.intp)
    weights = counts.astype(float) if weighted else None
    many = fw.KMeans(4, missing="model", n_init=400, tol=0).fit(x, sample_weight=weights)
    km = fw.KMeans(4, missing="model", search="breathing", tol=0).fit(x, sample_weight=weights)
    assert "searched in memory" in km.manifest_.algorithm
    assert km.inertia_ <= many.inertia_ * (1 + 1e-9)
    check_consistent(km, x, weights)
    order = rng.permutation(int(counts.sum()))
    shuffled = np.ascontiguousarray(np.repeat(x, counts, axis=0)[order])
    again = fw.KMeans(4, missing="model", search="breathing", tol=0).fit(shuffled)
    np.testing.assert_array_equal(again.labels_, np.repeat(km.labels_, counts)[order])
    assert again.inertia_ == pytest.approx(km.inertia_, rel=1e-12)


def test_the_search_in_memory_finds_separate_groups() -> None:
    """Also where some columns of a cluster have hardly an observed cell."""
    rng = np.random.default_rng(0)
    x = np.repeat(rng.standard_normal((6, 8)) * 10, 12, axis=0) + rng.standard_normal((72, 8))
    x[rng.random(x.shape) < 0.6] = np.nan
    x[np.isnan(x).all(axis=1), 0] = 0.0
    km = fw.KMeans(6, missing="model").fit(x)
    many = fw.KMeans(6, missing="model", n_init=300).fit(x)
    assert km.inertia_ <= many.inertia_ * (1 + 1e-3)
    check_consistent(km, x)


@pytest.mark.parametrize("search", ["none", "breathing", "split-merge"])
def test_a_search_is_never_worse_than_plain(search: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("foldwise.models.kmeans.small_table.EFFORTS", {})  # one start, as in a large table
    x = holed(np.random.default_rng(5).standard_normal((600, 3)), 0.2)
    plain = fw.KMeans(12, missing="model", search="none").fit(x)
    km = fw.KMeans(12, missing="model", search=search).fit(x)
    assert km.inertia_ <= plain.inertia_
    check_consistent(km, x)
    assert len(km.cluster_centers_) == 12


def test_recovers_the_groups_better_than_filling_with_means(blobs: Callable[..., Any]) -> None:
    from sklearn.metrics import adjusted_rand_score

    scores = {"model": [], "mean": []}
    for seed in range(5):
        x = blobs(300, 6, 4, spread=0.8, seed=seed)
        truth = fw.KMeans(4).fit(x).labels_
        removed = holed(x, 0.3, seed)
        for policy, found in scores.items():
            found.append(adjusted_rand_score(truth, fw.KMeans(4, missing=policy).fit(removed).labels_))
    assert np.mean(scores["model"]) > np.mean(scores["mean"])


def test_empty_clusters_are_given_a_row() -> None:
    x = holed(np.random.default_rng(0).standard_normal((200, 3)), 0.2, blank=1)
    start = np.concatenate([np.zeros((2, 3)), np.full((3, 3), 1e6)])
    km = fw.KMeans(5, init=start, missing="model", tol=0).fit(x)
    assert sum(step["filled"] for step in km.trace_) >= 3
    assert (km.cluster_weights_ > 0).all()
    check_consistent(km, x)
    check_means(km, x)


def test_output_of_rows(tmp_path: Path) -> None:
    x = holed(np.random.default_rng(0).standard_normal((50, 4)), 0.3, blank=1)
    km = fw.KMeans(3, missing="model").fit(x)
    output = km.row_output(fw.data.missing.allow_missing(fw.scan(x)))
    [piece] = output.source.pieces()
    told = output.of(piece.load())
    np.testing.assert_array_equal(told["cluster"], km.labels_)
    assert np.isnan(told["distance"][0])
    distances = km.transform(x)
    np.testing.assert_allclose(told["distance"][1:], distances[np.arange(1, 50), km.labels_[1:]], rtol=1e-12)
    fw.save(km, tmp_path / "model")
    again = fw.load(tmp_path / "model")
    np.testing.assert_array_equal(again.predict(x), km.labels_)
    assert again.missing == "model"


def test_complete_rows_may_be_predicted_and_incomplete_ones_too() -> None:
    x = np.random.default_rng(0).standard_normal((60, 3))
    km = fw.KMeans(3, missing="model").fit(x)
    assert not (km.predict(holed(x, 0.3)) == km.predict(x)).all()
    with pytest.raises(DataError, match="NaN"):
        fw.KMeans(3).fit(x).predict(holed(x, 0.3))


def test_a_checkpoint_resumes_to_the_same_bits(tmp_path: Path) -> None:
    x = holed(np.random.default_rng(0).standard_normal((3000, 4)), 0.1)
    whole = fw.KMeans(9, missing="model", tol=0).fit(x)
    path = tmp_path / "fit.ckpt"
    with pytest.warns(NotFinishedWarning):
        fw.KMeans(9, missing="model", tol=0, max_iter=4, checkpoint=path).fit(x)
    again = fw.KMeans(9, missing="model", tol=0, checkpoint=path).fit(x)
    assert again.manifest_.resumed_at == 4
    assert bits(again) == bits(whole)


def test_ctrl_c_keeps_what_was_found() -> None:
    x = holed(np.random.default_rng(0).standard_normal((3000, 4)), 0.1)

    def stop(event: Any) -> None:
        if isinstance(event, events.StepDone):
            raise KeyboardInterrupt

    with events.listening(stop), pytest.warns(NotFinishedWarning):
        km = fw.KMeans(9, missing="model", tol=0).fit(x)
    assert km.outcome_.reason is Reason.INTERRUPTED
    check_consistent(km, x)


def test_a_time_budget() -> None:
    x = holed(np.random.default_rng(0).standard_normal((3000, 4)), 0.1)
    with pytest.warns(NotFinishedWarning):
        km = fw.KMeans(9, missing="model", tol=0, time_budget=0).fit(x)
    check_consistent(km, x)


# ---------------------------------------------------------------- what is refused


def test_cosine_needs_whole_rows() -> None:
    x = holed(np.random.default_rng(0).standard_normal((40, 3)) + 3, 0.2)
    with pytest.raises(DataError, match=r"metric='cosine' needs whole rows, but \d+ cells are missing") as told:
        fw.KMeans(2, missing="model", metric="cosine").fit(x)
    assert "missing='mean'" in str(told.value)


def test_too_few_rows_with_anything_observed() -> None:
    x = np.full((5, 2), np.nan)
    x[:2] = [[1.0, 2.0], [3.0, np.nan]]
    with pytest.raises(DataError, match="n_clusters=3"):
        fw.KMeans(3, missing="model").fit(x)
    assert fw.KMeans(2, missing="model").fit(x).labels_.tolist()[2:] == [-1, -1, -1]


def test_infinities_and_missing_centres_are_refused() -> None:
    x = holed(np.random.default_rng(0).standard_normal((40, 3)), 0.2)
    with pytest.raises(Exception, match="NaN or infinity"):
        fw.KMeans(2, init=[[np.nan, 1.0, 1.0], [0.0, 0.0, 0.0]], missing="model").fit(x)
    x[5, 1] = np.inf
    with pytest.raises(DataError, match="infinity"):
        fw.KMeans(2, missing="model").fit(x)


def test_what_was_done_is_told() -> None:
    x = holed(np.random.default_rng(0).standard_normal((50, 4)), 0.2)
    notes = fw.KMeans(3, missing="model").fit(x).manifest_.notes
    assert any("missing cells" in note and "left to the model" in note for note in notes)
