"""Nested batches, and rows that come in batches."""

from __future__ import annotations

import warnings
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils.estimator_checks import parametrize_with_checks

import foldwise as fw
from foldwise.data.npy import NpySource
from foldwise.errors import DataError, NotFinishedWarning
from foldwise.kernels import reference

BOTH = [fw.KMeans, fw.MiniBatchKMeans]


def blobs(n: int, d: int, k: int, seed: int = 0, *, apart: float = 6.0) -> tuple[NDArray[np.float64], NDArray[Any]]:
    rng = np.random.default_rng(seed)
    truth = rng.integers(k, size=n)
    return rng.standard_normal((k, d))[truth] * apart + rng.standard_normal((n, d)), truth


@parametrize_with_checks([fw.MiniBatchKMeans(n_clusters=3, random_state=0)])
def test_manners_of_an_estimator(estimator: Any, check: Any) -> None:
    check(estimator)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_labels_are_of_the_nearest_centres(dtype: Any) -> None:
    x = blobs(5000, 4, 6)[0].astype(dtype)
    model = fw.MiniBatchKMeans(6, batch_size=100).fit(x)
    assert np.array_equal(model.labels_, reference.nearest(x, model.cluster_centers_))
    assert np.array_equal(model.labels_, model.predict(x))
    gap = x.astype(float) - model.cluster_centers_[model.labels_].astype(float)
    assert model.inertia_ == pytest.approx(float((gap**2).sum()), rel=1e-12)
    assert np.array_equal(model.cluster_weights_, np.bincount(model.labels_, minlength=6))
    assert np.all(np.diff(model.cluster_weights_) <= 0)
    sizes = [step["rows"] for step in model.trace_]
    assert sizes[0] == 100
    assert sizes[-1] == 5000
    assert all(b in (a, 2 * a, 5000) for a, b in pairwise(sizes))
    assert model.cluster_centers_.dtype == dtype


def test_as_good_as_all_rows_at_once() -> None:
    """On average: every single start may end in a bad optimum, of batches as of all rows, so there must be many."""
    x = blobs(20_000, 8, 12, apart=1.5)[0]
    small = [fw.MiniBatchKMeans(12, batch_size=256, random_state=seed).fit(x).inertia_ for seed in range(30)]
    full = [fw.KMeans(12, search="none", random_state=seed).fit(x).inertia_ for seed in range(30)]
    assert np.mean(small) < 1.02 * np.mean(full)


def test_until_nothing_moves_it_is_a_fixed_point_of_k_means() -> None:
    x = blobs(3000, 3, 5, apart=2)[0]
    model = fw.MiniBatchKMeans(5, batch_size=100, max_no_improvement=None, max_iter=1000).fit(x)
    assert model.outcome_.converged
    means = np.stack([x[model.labels_ == c].mean(axis=0) for c in range(5)])
    np.testing.assert_allclose(model.cluster_centers_, means, rtol=1e-13)
    again = fw.KMeans(5, init=model.cluster_centers_, tol=0).fit(x)
    assert np.array_equal(again.labels_, model.labels_)


def test_bits_do_not_depend_on_threads_nor_on_the_run() -> None:
    x = blobs(60_000, 16, 9, apart=1)[0].astype(np.float32)
    models = [fw.MiniBatchKMeans(9, n_threads=n, random_state=3).fit(x) for n in (1, 2, 3, 7)]
    for other in models[1:]:
        assert other.cluster_centers_.tobytes() == models[0].cluster_centers_.tobytes()
        assert other.labels_.tobytes() == models[0].labels_.tobytes()
        assert other.inertia_ == models[0].inertia_


@pytest.mark.parametrize("parameters", [{}, {"scale": True}, {"metric": "cosine", "init": "random"}])
def test_a_file_gives_the_same_bits_as_memory(tmp_path: Path, parameters: dict[str, Any]) -> None:
    """Of a file, whole blocks were drawn: other bits, and up to 1.6 % more inertia where neighbouring rows are alike."""
    x = blobs(60_000, 16, 6)[0].astype(np.float32)
    x = x[np.argsort(x[:, 0])]  # a sorted file: its blocks are not like all of it
    np.save(tmp_path / "x.npy", x)
    weights = np.random.default_rng(0).integers(0, 3, len(x)).astype(float)
    for sample_weight in (None, weights):
        fits = [
            fw.MiniBatchKMeans(6, n_threads=n, **parameters).fit(source, sample_weight=sample_weight)
            for n, source in ((1, x), (3, x), (1, tmp_path / "x.npy"), (3, str(tmp_path / "x.npy")))
        ]
        for other in fits[1:]:
            assert other.cluster_centers_.tobytes() == fits[0].cluster_centers_.tobytes()
            assert other.labels_.tobytes() == fits[0].labels_.tobytes()
            assert other.inertia_ == fits[0].inertia_
            assert [step["rows"] for step in other.trace_] == [step["rows"] for step in fits[0].trace_]


def test_a_file_is_read_once_for_all_batches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    x = blobs(120_000, 16, 6)[0].astype(np.float32)
    np.save(tmp_path / "x.npy", x)
    read: list[int] = []
    plain = NpySource.load

    def load(self: Any, start: int, stop: int, file: Any) -> Any:
        read.append(start)
        return plain(self, start, stop, file)

    monkeypatch.setattr(NpySource, "load", load)
    with pytest.warns(NotFinishedWarning, match="capped"):
        model = fw.MiniBatchKMeans(6, max_iter=1, n_threads=1, compute_labels=False).fit(tmp_path / "x.npy")
    assert not hasattr(model, "labels_")
    assert read[:4] == [0, 32_768, 65_536, 98_304]
    small = [step for step in model.trace_ if step["rows"] < 120_000]
    assert len(small) > 4  # steps on batches, for which nothing more was read
    assert len(read) <= 4 * (1 + len(model.trace_) - len(small) + 3)


def test_batches_that_have_no_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What does not fit in the memory set aside is a fit to all rows, from memory as from a file."""
    from foldwise.models.kmeans import minibatch

    monkeypatch.setattr(minibatch, "_ROOM", 1)
    x = blobs(20_000, 4, 5)[0]
    np.save(tmp_path / "x.npy", x)
    here, there = (fw.MiniBatchKMeans(5, batch_size=200).fit(source) for source in (x, tmp_path / "x.npy"))
    sizes = sorted({step["rows"] for step in here.trace_})
    assert sizes[-1] == 20_000
    assert sizes[:-1] == [200.0 * 2**i for i in range(len(sizes) - 1)]
    assert sizes[-2] <= 1200  # twice the rows for initialisation
    assert here.cluster_centers_.tobytes() == there.cluster_centers_.tobytes()


def test_a_bad_value_in_a_batch_is_found_at_its_row(tmp_path: Path) -> None:
    """From memory, the row was that of the batch."""
    x = blobs(30_000, 4, 3)[0]
    x[15_000:, 2] = np.nan
    np.save(tmp_path / "x.npy", x)
    for source in (x, tmp_path / "x.npy"):
        with pytest.raises(DataError, match=r"row 15000 .*column 2"):
            fw.MiniBatchKMeans(3).fit(source)


def test_given_centres_are_tried_once_and_that_is_told() -> None:
    """n_init was ignored in silence."""
    x = blobs(500, 2, 3)[0]
    with pytest.warns(RuntimeWarning, match=r"performing only one init in MiniBatchKMeans instead of n_init=4") as told:
        model = fw.MiniBatchKMeans(3, init=x[:3], n_init=4).fit(x)
    assert told[0].filename == __file__
    assert np.array_equal(model.cluster_centers_, fw.MiniBatchKMeans(3, init=x[:3], n_init=1).fit(x).cluster_centers_)


def test_too_few_rows_for_initialisation_are_told() -> None:
    x = blobs(500, 2, 8)[0]
    with pytest.warns(RuntimeWarning, match=r"init_size=4 should be at least n_clusters=8: 24 rows are used") as told:
        model = fw.MiniBatchKMeans(8, init_size=4, batch_size=50).fit(x)
    assert told[0].filename == __file__
    same = fw.MiniBatchKMeans(8, init_size=24, batch_size=50).fit(x)
    assert model.cluster_centers_.tobytes() == same.cluster_centers_.tobytes()


def test_tables_whose_rows_must_be_counted(tmp_path: Path) -> None:
    x = blobs(3000, 2, 3)[0]
    path = tmp_path / "x.csv"
    np.savetxt(path, x, delimiter=",", header="a,b", comments="")
    model = fw.MiniBatchKMeans(3, batch_size=100).fit(path)
    assert np.array_equal(model.predict(path), model.labels_)
    assert model.feature_names_in_.tolist() == ["a", "b"]


@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
def test_sparse_rows(metric: str) -> None:
    rng = np.random.default_rng(0)
    x = blobs(4000, 12, 5)[0] * (rng.random((4000, 12)) < 0.6)
    x = x[x.any(axis=1)]
    model = fw.MiniBatchKMeans(5, batch_size=200, metric=metric).fit(sp.csr_array(x))
    assert np.array_equal(model.predict(sp.csr_array(x)), model.labels_)
    dense = fw.MiniBatchKMeans(5, batch_size=200, metric=metric).fit(x)
    assert model.inertia_ == pytest.approx(dense.inertia_, rel=0.05)


def test_weights_are_repetitions_once_all_rows_are_in() -> None:
    x = blobs(400, 3, 4)[0]
    counts = np.random.default_rng(1).integers(0, 4, 400)
    start = x[:4]
    weighted = fw.MiniBatchKMeans(4, init=start, batch_size=400, max_no_improvement=None).fit(x, sample_weight=counts)
    repeated = fw.KMeans(4, init=start, tol=0).fit(np.repeat(x, counts, axis=0))
    np.testing.assert_allclose(weighted.cluster_centers_, repeated.cluster_centers_, rtol=1e-12)
    assert weighted.inertia_ == pytest.approx(repeated.inertia_, rel=1e-12)


def test_rows_without_weight_at_the_start() -> None:
    x = blobs(1000, 2, 3)[0]
    weights = np.zeros(1000)
    weights[::50] = 1
    model = fw.MiniBatchKMeans(3, batch_size=10, init_size=10).fit(x, sample_weight=weights)
    assert model.cluster_weights_.sum() == 20


@pytest.mark.parametrize("init", ["random", "k-means||", "callable", "array"])
def test_starts(init: str) -> None:
    x = blobs(2000, 3, 4)[0]
    given: Any = {"callable": lambda X, k, random_state: X[:k], "array": x[:4]}.get(init, init)
    model = fw.MiniBatchKMeans(4, init=given, batch_size=100).fit(x)
    assert np.array_equal(model.predict(x), model.labels_)


def test_without_labels_and_bad_input() -> None:
    x = blobs(2000, 3, 4)[0]
    model = fw.MiniBatchKMeans(4, compute_labels=False).fit(x)
    assert not hasattr(model, "labels_")
    full = fw.MiniBatchKMeans(4).fit(x)
    assert model.inertia_ == pytest.approx(full.inertia_, rel=0.05)
    with pytest.raises(DataError, match="n_samples=3"):
        fw.MiniBatchKMeans(4).fit(x[:3])
    with pytest.raises(ValueError, match="batch_size"):
        fw.MiniBatchKMeans(4, batch_size=0).fit(x)
    x[1500, 1] = np.nan
    with pytest.raises(DataError, match="row 1500"):
        fw.MiniBatchKMeans(4).fit(x)


def test_fewer_distinct_rows_than_clusters() -> None:
    x = np.repeat([[0.0], [1.0], [5.0]], 100, axis=0)
    with pytest.warns(UserWarning, match="distinct clusters"):
        model = fw.MiniBatchKMeans(5, batch_size=10).fit(x)
    assert model.inertia_ == 0.0


def test_saved_and_loaded(tmp_path: Path) -> None:
    x = blobs(500, 3, 4)[0]
    model = fw.MiniBatchKMeans(4).fit(x)
    fw.save(model, tmp_path / "m.fw")
    assert np.array_equal(fw.load(tmp_path / "m.fw").predict(x), model.labels_)


# ---------------------------------------------------------------- partial_fit


@pytest.mark.parametrize("kind", BOTH)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_centres_are_the_means_of_what_they_were_given(kind: Any, dtype: Any) -> None:
    """Worked out again by hand: every row to the nearest centre of its time."""
    x = (blobs(1200, 3, 4, apart=2)[0] + 100).astype(dtype)
    model = kind(4).partial_fit(x[:200])
    owner = [model.labels_.copy()]
    sums = np.stack([x[:200][model.labels_ == c].astype(np.longdouble).sum(axis=0) for c in range(4)])
    counts = np.bincount(model.labels_, minlength=4)
    for start in range(200, 1200, 37):
        batch = x[start : start + 37]
        nearest = reference.nearest(batch, model.cluster_centers_)
        np.add.at(sums, nearest, batch.astype(np.longdouble))
        counts += np.bincount(nearest, minlength=4)
        assert model.partial_fit(batch) is model
        assert np.array_equal(model.labels_, model.predict(batch))
        owner.append(nearest)
    assert np.array_equal(model.cluster_weights_, counts)
    np.testing.assert_allclose(
        model.cluster_centers_, (sums / counts[:, None]).astype(float), rtol=2 * np.finfo(dtype).eps
    )


@pytest.mark.parametrize("kind", BOTH)
@given(sizes=st.lists(st.integers(1, 9), min_size=1, max_size=12), weighted=st.booleans())
def test_batches_of_any_size(kind: Any, sizes: list[int], weighted: bool) -> None:
    x = blobs(sum(sizes), 2, 3)[0]
    weights = np.random.default_rng(0).integers(1, 4, len(x)).astype(float) if weighted else None
    model, ends = kind(3), np.cumsum(sizes)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for start, stop in zip([0, *ends], ends, strict=False):
            model.partial_fit(x[start:stop], sample_weight=None if weights is None else weights[start:stop])
    assert hasattr(model, "cluster_centers_") == (len(x) >= 3)
    if len(x) >= 3:
        assert model.cluster_weights_.sum() == (len(x) if weights is None else weights.sum())


def test_weighted_batches_are_repeated_rows() -> None:
    x = blobs(300, 2, 3)[0]
    counts = np.random.default_rng(0).integers(1, 4, 300)
    start = np.array(x[:3])
    weighted, repeated = (fw.KMeans(3, init=start) for _ in range(2))
    for at in range(0, 300, 60):
        part = slice(at, at + 60)
        weighted.partial_fit(x[part], sample_weight=counts[part])
        repeated.partial_fit(np.repeat(x[part], counts[part], axis=0))
    np.testing.assert_allclose(weighted.cluster_centers_, repeated.cluster_centers_, rtol=1e-12)


def test_batches_after_a_fit_go_on_from_it_and_a_fit_starts_anew() -> None:
    x = blobs(400, 2, 3)[0]
    model = fw.KMeans(3).fit(x[:200]).partial_fit(x[200:])
    assert model.cluster_weights_.sum() == 400
    fresh = clone(model).fit(x)
    assert np.array_equal(model.fit(x).cluster_centers_, fresh.cluster_centers_)
    model.partial_fit(x[:50])
    assert model.cluster_weights_.sum() == 450


def test_batches_on_the_sphere_and_sparse() -> None:
    x = blobs(600, 6, 3)[0]
    dense, sparse = (fw.KMeans(3, metric="cosine", random_state=0) for _ in range(2))
    for at in range(0, 600, 100):
        dense.partial_fit(x[at : at + 100])
        sparse.partial_fit(sp.csr_array(x[at : at + 100]))
    np.testing.assert_allclose(np.linalg.norm(dense.cluster_centers_, axis=1), 1.0, rtol=1e-14)
    assert np.array_equal(dense.predict(x), fw.KMeans(3, metric="cosine", init=dense.cluster_centers_).fit(x).labels_)
    assert sparse.cluster_weights_.sum() == dense.cluster_weights_.sum() == 600


@pytest.mark.parametrize("kind", BOTH)
def test_batches_that_do_not_fit_are_refused(kind: Any) -> None:
    x = blobs(100, 3, 2)[0]
    for first in (x[:1], x):
        model = kind(2).partial_fit(first)
        with pytest.raises(ValueError, match="features"):
            model.partial_fit(x[:, :2])
        with pytest.raises(DataError, match="dtype"):
            model.partial_fit(x.astype(np.float32))
    with pytest.raises(DataError, match="sparse"):
        kind(2).partial_fit(x[:1]).partial_fit(sp.csr_array(x[:1]))
