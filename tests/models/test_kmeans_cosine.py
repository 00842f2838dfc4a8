"""Spherical k-means, and sparse rows in KMeans: against brute force, and on real documents and embeddings."""

from __future__ import annotations

import gzip
import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score
from sklearn.preprocessing import normalize

import foldwise as fw
from foldwise import kernels
from foldwise.errors import DataError


def directions(n: int, d: int, k: int, seed: int = 0, *, spread: float = 0.3) -> NDArray[np.float64]:
    """Rows of any length around k directions."""
    rng = np.random.default_rng(seed)
    axes = rng.standard_normal((k, d))
    rows = axes[rng.integers(k, size=n)] + spread * rng.standard_normal((n, d)) * np.linalg.norm(axes[0]) / d**0.5
    return rows * rng.lognormal(0, 2, (n, 1))


def cosines(x: NDArray[Any], centres: NDArray[Any]) -> NDArray[Any]:
    rows, points = x.astype(np.longdouble), centres.astype(np.longdouble)
    unit = points / np.sqrt((points**2).sum(axis=1, keepdims=True))
    return rows / np.sqrt((rows**2).sum(axis=1, keepdims=True)) @ unit.T


def check_spherical(model: fw.KMeans, x: NDArray[Any], digits: float) -> None:
    """Labels are of the largest cosine, and centres the directions of their rows' sums: a fixed point."""
    found = cosines(x, model.cluster_centers_)
    own = found[np.arange(len(x)), model.labels_]
    assert (found.max(axis=1) - own).max() <= digits
    unit = x.astype(float) / np.abs(x.astype(float)).max(axis=1, keepdims=True)
    unit /= np.linalg.norm(unit, axis=1, keepdims=True)
    sums = np.stack([unit[model.labels_ == c].sum(axis=0) for c in range(len(model.cluster_centers_))])
    sums /= np.linalg.norm(sums, axis=1, keepdims=True)
    np.testing.assert_allclose(model.cluster_centers_, sums, atol=digits)
    assert model.inertia_ == pytest.approx(2 * float((1 - own).sum()), rel=digits * 1e3)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize(("dtype", "digits"), [(np.float32, 3e-6), (np.float64, 1e-13)])
def test_spherical_fixed_point(sparse: bool, dtype: Any, digits: float) -> None:
    x = directions(600, 12, 5).astype(dtype)
    x[np.abs(x) < 0.3 * np.abs(x).max(axis=1, keepdims=True)] = 0
    model = fw.KMeans(5, metric="cosine", tol=0, random_state=1).fit(sp.csr_array(x) if sparse else x)
    assert model.outcome_.converged
    check_spherical(model, x, digits)
    assert np.array_equal(model.predict(sp.csr_array(x)), model.labels_)
    assert np.array_equal(model.predict(x), model.labels_)


@given(seed=st.integers(0, 1000), k=st.integers(1, 6), single=st.booleans(), sparse=st.booleans())
def test_labels_are_the_largest_cosine_of_the_unit_rows(seed: int, k: int, single: bool, sparse: bool) -> None:
    x = np.round(directions(60, 5, 3, seed) * 4)
    x = x[x.any(axis=1)].astype(np.float32 if single else np.float64)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = fw.KMeans(k, metric="cosine", max_iter=5, random_state=seed).fit(sp.csr_array(x) if sparse else x)
    # Centres have length 1 to rounding only, so nearest on the sphere is what ties are settled by.
    rows, points = kernels.unit_rows(x)[0].astype(np.longdouble), model.cluster_centers_.astype(np.longdouble)
    truth = ((rows[:, None] - points) ** 2).sum(axis=2)
    assert np.array_equal(model.labels_, truth.argmin(axis=1))
    found = cosines(rows, points)
    slack = 1e-6 if single else 1e-14
    assert (found.max(axis=1) - found[np.arange(len(x)), model.labels_]).max() <= slack


@pytest.mark.parametrize("sparse", [False, True])
def test_the_sum_of_distances_never_rises(sparse: bool) -> None:
    x = directions(2000, 20, 8, spread=2.0)
    model = fw.KMeans(15, metric="cosine", init="random", n_init=1, tol=0).fit(sp.csr_array(x) if sparse else x)
    figures = [v for step in model.trace_ for v in (step["inertia_after_e"], step["inertia"])]
    assert len(figures) > 10
    assert np.all(np.diff(figures) <= 1e-12 * figures[0])


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("scale", [1e-170, 1e-30, 1e30, 1e170])
def test_lengths_do_not_matter(scale: float, sparse: bool) -> None:
    x = directions(300, 6, 4)
    make = sp.csr_array if sparse else np.asarray
    plain = fw.KMeans(4, metric="cosine", tol=0).fit(make(x))
    scaled = fw.KMeans(4, metric="cosine", tol=0).fit(make(x * scale))
    assert np.array_equal(plain.labels_, scaled.labels_)
    np.testing.assert_allclose(plain.cluster_centers_, scaled.cluster_centers_, rtol=1e-12, atol=1e-14)
    mixed = x * np.where(np.arange(300) % 2, scale, 1.0)[:, None]
    assert np.array_equal(fw.KMeans(4, metric="cosine", tol=0).fit(make(mixed)).labels_, plain.labels_)


def test_a_row_of_zeros_is_refused_with_its_number() -> None:
    x = directions(50, 4, 2)
    x[17] = 0
    for rows in (x, sp.csr_array(x)):
        with pytest.raises(DataError, match=r"row 17.*zeros"):
            fw.KMeans(2, metric="cosine").fit(rows)
        weights = np.ones(50)
        weights[17] = 0
        model = fw.KMeans(2, metric="cosine").fit(rows, sample_weight=weights)
        assert model.cluster_weights_.sum() == 49
        with pytest.raises(DataError, match=r"row 17.*zeros"):
            model.predict(rows)


def test_weights_are_repetitions() -> None:
    x = directions(120, 6, 3, seed=4)
    counts = np.random.default_rng(0).integers(0, 4, 120)
    start = normalize(x[[0, 1, 2]])
    weighted = fw.KMeans(3, metric="cosine", init=start, tol=0).fit(x, sample_weight=counts)
    repeated = fw.KMeans(3, metric="cosine", init=start, tol=0).fit(np.repeat(x, counts, axis=0))
    np.testing.assert_allclose(weighted.cluster_centers_, repeated.cluster_centers_, rtol=1e-12, atol=1e-14)
    assert weighted.inertia_ == pytest.approx(repeated.inertia_, rel=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("weighted", [False, True])
def test_sparse_and_dense_agree(dtype: Any, weighted: bool) -> None:
    rng = np.random.default_rng(3)
    x = (rng.standard_normal((900, 25)) * (rng.random((900, 25)) < 0.2)).astype(dtype)
    weights = rng.integers(0, 3, 900).astype(float) if weighted else None
    start = x[:7]
    models = [
        fw.KMeans(7, init=start, tol=0).fit(rows, sample_weight=weights)
        for rows in (x, sp.csr_array(x), sp.csc_matrix(x), sp.coo_array(x))
    ]
    for other in models[1:]:
        assert np.array_equal(models[0].labels_, other.labels_)
        assert models[0].inertia_ == pytest.approx(other.inertia_, rel=1e-12 if dtype == np.float64 else 1e-7)
        np.testing.assert_allclose(
            models[0].cluster_centers_, other.cluster_centers_, rtol=0, atol=4 * np.finfo(dtype).eps
        )
        assert np.array_equal(other.predict(x), other.labels_)
        assert np.array_equal(other.predict(sp.csr_array(x)), other.labels_)
        np.testing.assert_allclose(
            other.transform(sp.csr_array(x)), models[0].transform(x), rtol=1e-5 if dtype == np.float32 else 1e-11
        )


def test_sparse_bits_do_not_depend_on_threads() -> None:
    rng = np.random.default_rng(5)
    x = sp.random_array((40_000, 60), density=0.1, rng=rng, format="csr")
    models = [fw.KMeans(9, n_threads=n, tol=0.01).fit(x) for n in (1, 2, 7)]
    for other in models[1:]:
        assert other.cluster_centers_.tobytes() == models[0].cluster_centers_.tobytes()
        assert other.labels_.tobytes() == models[0].labels_.tobytes()
        assert other.inertia_ == models[0].inertia_


# ---------------------------------------------------------------- real documents


@pytest.fixture(scope="module")
def documents(shared_data: Path) -> tuple[sp.csr_matrix, NDArray[Any]]:
    with gzip.open(shared_data / "text" / "20news_train.jsonl.gz", "rt") as file:
        posts = [json.loads(line) for line in file]
    vectoriser = TfidfVectorizer(max_df=0.2, min_df=5, stop_words="english", sublinear_tf=True)
    x = vectoriser.fit_transform(f"{post['subject']}\n{post['text']}" for post in posts)
    some = np.diff(x.indptr) > 0
    return x[some], np.array([post["group"] for post in posts])[some]


def test_topics_of_real_documents(
    documents: tuple[sp.csr_matrix, NDArray[Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    x, groups = documents
    k, before = 20, x.indices.tobytes()

    def guarded(kind: Any, name: str) -> None:
        plain = getattr(kind, name)

        def convert(self: Any, *args: Any, **kwargs: Any) -> Any:
            assert self.shape[0] * self.shape[1] <= 2 * k * x.shape[1], "something large was made dense"
            return plain(self, *args, **kwargs)

        monkeypatch.setattr(kind, name, convert)

    for kind in {cls for base in (sp.csr_matrix, sp.csr_array, sp.coo_array, sp.csc_array) for cls in base.__mro__}:
        for name in ("toarray", "todense"):
            if name in vars(kind):
                guarded(kind, name)
    model = fw.KMeans(k, metric="cosine", random_state=0).fit(x)
    chance = np.random.default_rng(0).integers(k, size=x.shape[0])
    assert normalized_mutual_info_score(groups, model.labels_) > 0.5
    assert adjusted_rand_score(groups, model.labels_) > 0.25
    assert abs(adjusted_rand_score(groups, chance)) < 0.01
    assert np.array_equal(model.predict(x), model.labels_)
    assert x.indices.tobytes() == before


def test_documents_have_length_one_so_plain_k_means_gives_the_same_first_labels(
    documents: tuple[sp.csr_matrix, NDArray[Any]],
) -> None:
    """TF-IDF rows have length 1 already; from unit centres the nearest by distance is the nearest by cosine."""
    x, _ = documents
    start = x[np.random.default_rng(1).choice(x.shape[0], 10, replace=False)].toarray()
    model = fw.KMeans(10, metric="cosine", init=start).fit(x)
    wide = (x[:300] @ model.cluster_centers_.T).argmax(axis=1)
    assert np.array_equal(model.labels_[:300], wide)
    normal = fw.KMeans(10, init=model.cluster_centers_, max_iter=300, tol=0).fit(normalize(x))
    assert normal.inertia_ <= model.inertia_


def test_topics_of_embeddings(shared_data: Path) -> None:
    with np.load(shared_data / "text" / "20news_train_minilm384.npz") as file:
        x, groups = file["embedding"].astype(np.float32), file["group"]
    model = fw.KMeans(20, metric="cosine", random_state=0).fit(x)
    assert normalized_mutual_info_score(groups, model.labels_) > 0.55
    assert adjusted_rand_score(groups, model.labels_) > 0.35
    check_spherical(fw.KMeans(20, metric="cosine", tol=0, max_iter=500, random_state=0).fit(x), x, 3e-6)
