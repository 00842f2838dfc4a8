"""The silhouette against scikit-learn's, which looks at all pairs."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.metrics import silhouette_samples

import foldwise as fw
from foldwise.errors import DataError, ParameterError
from foldwise.stats.group_moments import GroupMoments
from foldwise.testing import check_statistic


@pytest.fixture
def rows():
    rng = np.random.default_rng(0)
    x = rng.standard_normal((300, 5))
    x[:100] += 4
    x[100:150] -= 3
    return x, np.repeat([3, 1, 2, 7], [100, 50, 149, 1])  # the last one is alone


@pytest.mark.parametrize("scale", [1.0, 1e-25, 1e20, 1e-170, 1e160])
def test_values_are_those_of_all_pairs(rows, scale):
    x, labels = rows
    found = fw.silhouette(x * scale, labels, values=True)
    expected = silhouette_samples(x, labels, metric="sqeuclidean")
    np.testing.assert_allclose(found.values, expected, rtol=0, atol=1e-12)
    assert found.mean == pytest.approx(expected.mean(), abs=1e-12)
    assert found.clusters == (1, 2, 3, 7)
    for name, mean in zip(found.clusters, found.cluster_means, strict=True):
        assert mean == pytest.approx(expected[labels == name].mean(), abs=1e-12)
    assert found.table["7", "silhouette"] == 0.0
    assert fw.silhouette(x * scale, labels).values is None


@pytest.mark.parametrize(("dtype", "offset"), [(np.float32, 0), (np.float32, 1e4), (np.float64, 1e8)])
def test_digits_survive_an_offset(rows, dtype, offset):
    x, labels = rows
    stored = (x + offset).astype(dtype)
    expected = silhouette_samples(stored.astype(np.float64) - offset, labels, metric="sqeuclidean")
    np.testing.assert_allclose(fw.silhouette(stored, labels, values=True).values, expected, rtol=0, atol=1e-9)


def test_small_clusters_far_apart_keep_their_digits():
    rng = np.random.default_rng(1)
    x = np.concatenate([rng.standard_normal((40, 3)) * 1e-6, 1 + rng.standard_normal((40, 3)) * 1e-6])
    x[0] = x[40]  # in the wrong cluster
    labels = np.repeat([0, 1], 40)
    values = fw.silhouette(x, labels, values=True).values
    np.testing.assert_allclose(values, silhouette_samples(x, labels, metric="sqeuclidean"), rtol=1e-9)


def test_weights_repeat_and_sparse_is_the_same(rows):
    x, labels = rows
    weights = np.random.default_rng(2).integers(1, 4, len(x))
    found = fw.silhouette(x, labels, sample_weight=weights, values=True)
    again = silhouette_samples(np.repeat(x, weights, axis=0), np.repeat(labels, weights), metric="sqeuclidean")
    np.testing.assert_allclose(np.repeat(found.values, weights), again, rtol=0, atol=1e-12)
    assert found.mean == pytest.approx(again.mean(), abs=1e-12)
    sparse = fw.silhouette(sp.csr_array(x), labels, values=True).values
    np.testing.assert_allclose(sparse, fw.silhouette(x, labels, values=True).values, rtol=0, atol=1e-12)
    none = np.append(weights, 0)
    with_none = fw.silhouette(np.vstack([x, x[:1] + 100]), np.append(labels, 1), sample_weight=none)
    assert with_none.mean == pytest.approx(found.mean, abs=1e-12)


def test_bits_do_not_depend_on_threads_or_place(tmp_path):
    x = np.random.default_rng(3).standard_normal((120_000, 6)).astype(np.float32) + 1000
    labels = np.random.default_rng(4).integers(0, 5, len(x))
    np.save(tmp_path / "x.npy", x)
    one, two, file = (fw.silhouette(X, labels, n_threads=n) for X, n in [(x, 1), (x, 2), (str(tmp_path / "x.npy"), 2)])
    assert one.mean == two.mean == file.mean
    assert one.cluster_means.tobytes() == file.cluster_means.tobytes()


@pytest.mark.parametrize("parameters", [{}, {"scale": True}, {"metric": "cosine"}])
def test_of_a_model_in_the_space_it_compares_rows_in(rows, parameters):
    x = rows[0] * [1, 10, 100, 1, 1] + 20
    model = fw.KMeans(3, **parameters).fit(x)
    seen = x
    if "scale" in parameters:
        seen = (x - x.mean(axis=0)) / x.std(axis=0)
    if "metric" in parameters:
        seen = x / np.linalg.norm(x, axis=1)[:, None]
    expected = silhouette_samples(seen, model.labels_, metric="sqeuclidean")
    np.testing.assert_allclose(fw.silhouette(x, model, values=True).values, expected, rtol=0, atol=1e-9)


def test_what_cannot_be_judged(rows):
    x, labels = rows
    with pytest.raises(ParameterError, match="at least two"):
        fw.silhouette(x, np.zeros(len(x)))
    with pytest.raises(DataError, match="labels"):
        fw.silhouette(x, labels[:-1])
    with pytest.raises(DataError, match="labels"):
        fw.silhouette(x, np.append(labels, 1))
    with pytest.raises(ParameterError, match="shape"):
        fw.silhouette(x, x)


def test_equal_rows_are_not_divided_by_zero():
    assert fw.silhouette(np.ones((6, 2)), [0, 0, 0, 1, 1, 1]).mean == 0.0


def test_groups_obey_the_laws(rows):
    x, labels = rows
    numbers = np.unique(labels, return_inverse=True)[1].astype(np.int32)

    def of(block):
        return GroupMoments.of(block, numbers[block.start : block.start + block.n_rows], 5)

    check_statistic(of, x + 1e6, summary=lambda groups: np.hstack([groups.mean, groups.squares]))
    whole = of(fw.scan(x + 1e6).pieces().__iter__().__next__().load()).whole()
    np.testing.assert_allclose(whole.mean, x.mean(axis=0) + 1e6, rtol=1e-14)
    np.testing.assert_allclose(whole.squares, x.var(axis=0) * len(x), rtol=1e-8)


@pytest.mark.parametrize(
    "model",
    [
        fw.GaussianMixture(3),
        fw.GaussianMixture(3, scale=True),
        fw.SoftKMeans(3),
        fw.KernelKMeans(3),
        fw.MiniBatchKMeans(3),
    ],
)
def test_of_any_model_with_clusters(rows, model):
    x = rows[0]
    model.fit(x)
    found = fw.silhouette(x, model)
    assert found.clusters == (0, 1, 2)
    scaled = getattr(model, "scale_", None)
    seen = x if scaled is None else (x - x.mean(axis=0)) / x.std(axis=0)
    assert found.mean == pytest.approx(silhouette_samples(seen, model.predict(x), metric="sqeuclidean").mean())


def test_of_a_merged_mixture(rows):
    x = rows[0]
    merged = fw.GaussianMixture(6).fit(x).merge(x, 3)
    assert len(fw.silhouette(x, merged).clusters) == 3


def test_a_precomputed_kernel_has_no_rows(rows):
    kernel = rows[0] @ rows[0].T
    model = fw.KernelKMeans(3, kernel="precomputed").fit(kernel)
    with pytest.raises(ParameterError, match="precomputed"):
        fw.silhouette(kernel, model)
