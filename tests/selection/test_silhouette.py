"""Both silhouettes against scikit-learn's, which looks at all pairs."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.metrics import silhouette_samples, silhouette_score

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


KINDS = pytest.mark.parametrize(
    ("silhouette", "metric"), [(fw.silhouette, "euclidean"), (fw.squared_silhouette, "sqeuclidean")]
)


def test_by_hand():
    """0 and 2 against 5: a = 2, b = 5 and 3; 5 is alone."""
    found = fw.silhouette([[0.0], [2.0], [5.0]], ["x", "x", "y"], values=True)
    np.testing.assert_allclose(found.values, [1 - 2 / 5, 1 - 2 / 3, 0.0], rtol=1e-15)
    assert (found.clusters, found.exact, found.standard_error) == (("x", "y"), True, 0.0)
    assert found.mean == pytest.approx((3 / 5 + 1 / 3) / 3)
    squared = fw.squared_silhouette([[0.0], [2.0], [5.0]], ["x", "x", "y"], values=True)
    np.testing.assert_allclose(squared.values, [1 - 4 / 25, 1 - 9 / 9 + 5 / 9 - 0.0, 0.0], rtol=1e-15)


@KINDS
@pytest.mark.parametrize("scale", [1.0, 1e-25, 1e20, 1e-170, 1e160, 1e307])
def test_values_are_those_of_all_pairs(rows, scale, silhouette, metric):
    x, labels = rows
    found = silhouette(x * scale, labels, values=True)
    expected = silhouette_samples(x, labels, metric=metric)
    np.testing.assert_allclose(found.values, expected, rtol=0, atol=1e-12)
    assert found.mean == pytest.approx(expected.mean(), abs=1e-12)
    assert found.clusters == (1, 2, 3, 7)
    for name, mean in zip(found.clusters, found.cluster_means, strict=True):
        assert mean == pytest.approx(expected[labels == name].mean(), abs=1e-12)
    assert found.table["7", "silhouette"] == 0.0
    assert silhouette(x * scale, labels).values is None


@KINDS
@pytest.mark.parametrize(("dtype", "offset"), [(np.float32, 0), (np.float32, 1e4), (np.float64, 1e8)])
def test_digits_survive_an_offset(rows, dtype, offset, silhouette, metric):
    x, labels = rows
    stored = (x + offset).astype(dtype)
    expected = silhouette_samples(stored.astype(np.float64) - offset, labels, metric=metric)
    np.testing.assert_allclose(silhouette(stored, labels, values=True).values, expected, rtol=0, atol=1e-9)


@KINDS
def test_small_clusters_far_apart_keep_their_digits(silhouette, metric):
    rng = np.random.default_rng(1)
    x = np.concatenate([rng.standard_normal((40, 3)) * 1e-6, 1 + rng.standard_normal((40, 3)) * 1e-6])
    x[0] = x[40]  # in the wrong cluster
    labels = np.repeat([0, 1], 40)
    values = silhouette(x, labels, values=True).values
    # scikit-learn's Euclidean distances are differences of products: they keep half of the digits here.
    gaps = np.square(x[:, None] - x).sum(axis=2)
    gaps = np.sqrt(gaps) if metric == "euclidean" else gaps
    np.testing.assert_allclose(values, silhouette_samples(gaps, labels, metric="precomputed"), rtol=1e-9)


@KINDS
def test_weights_repeat_and_sparse_is_the_same(rows, silhouette, metric):
    x, labels = rows
    weights = np.random.default_rng(2).integers(1, 4, len(x))
    found = silhouette(x, labels, sample_weight=weights, values=True)
    again = silhouette_samples(np.repeat(x, weights, axis=0), np.repeat(labels, weights), metric=metric)
    atol = 1e-12 if metric == "sqeuclidean" else 1e-8  # scikit-learn's distances between equal rows are not quite 0
    np.testing.assert_allclose(np.repeat(found.values, weights), again, rtol=0, atol=atol)
    assert found.mean == pytest.approx(again.mean(), abs=atol)
    repeated = silhouette(np.repeat(x, weights, axis=0), np.repeat(labels, weights), values=True)
    np.testing.assert_allclose(np.repeat(found.values, weights), repeated.values, rtol=0, atol=1e-12)
    sparse = silhouette(sp.csr_array(x), labels, values=True).values
    np.testing.assert_allclose(sparse, silhouette(x, labels, values=True).values, rtol=0, atol=1e-12)
    none = np.append(weights, 0)
    with_none = silhouette(np.vstack([x, x[:1] + 100]), np.append(labels, 1), sample_weight=none)
    assert with_none.mean == pytest.approx(found.mean, abs=1e-12)


@KINDS
def test_bits_do_not_depend_on_threads_or_place(tmp_path, silhouette, metric):
    x = np.random.default_rng(3).standard_normal((120_000, 6)).astype(np.float32) + 1000
    labels = np.random.default_rng(4).integers(0, 5, len(x))
    np.save(tmp_path / "x.npy", x)
    one, two, file = (silhouette(X, labels, n_threads=n) for X, n in [(x, 1), (x, 2), (str(tmp_path / "x.npy"), 2)])
    assert one.mean == two.mean == file.mean
    assert one.cluster_means.tobytes() == file.cluster_means.tobytes()


@pytest.mark.parametrize("parameters", [{}, {"scale": True}, {"metric": "cosine"}])
def test_of_a_model_in_the_space_it_compares_rows_in(rows, parameters):
    x = rows[0] * [1, 10, 100, 1, 1] + 20
    model = fw.KMeans(3, **parameters).fit(x)
    seen = x
    if "scale" in parameters:
        seen = (x - x.mean(axis=0)) / x.std(axis=0)
    metric = parameters.get("metric", "euclidean")
    expected = silhouette_samples(seen, model.labels_, metric=metric)
    np.testing.assert_allclose(fw.silhouette(x, model, values=True).values, expected, rtol=0, atol=1e-9)
    if metric == "cosine":
        seen = x / np.linalg.norm(x, axis=1)[:, None]
    expected = silhouette_samples(seen, model.labels_, metric="sqeuclidean")
    np.testing.assert_allclose(fw.squared_silhouette(x, model, values=True).values, expected, rtol=0, atol=1e-9)


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
    with pytest.raises(ParameterError, match="metric='manhattan': give one of euclidean, cosine"):
        fw.silhouette(x, labels, metric="manhattan")
    with pytest.raises(ParameterError, match="its own metric"):
        fw.silhouette(x, fw.KMeans(2).fit(x), metric="cosine")
    for size in (0, -1, 2.5, "all"):
        with pytest.raises(ParameterError, match="sample_size"):
            fw.silhouette(x, labels, sample_size=size)


def test_equal_rows_are_not_divided_by_zero():
    for silhouette in (fw.silhouette, fw.squared_silhouette):
        assert silhouette(np.ones((6, 2)), [0, 0, 0, 1, 1, 1]).mean == 0.0


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
    assert found.mean == pytest.approx(silhouette_score(seen, model.predict(x)))


def test_of_a_merged_mixture(rows):
    x = rows[0]
    merged = fw.GaussianMixture(6).fit(x).merge(x, 3)
    assert len(fw.silhouette(x, merged).clusters) == 3


def test_a_precomputed_kernel_has_no_rows(rows):
    kernel = rows[0] @ rows[0].T
    model = fw.KernelKMeans(3, kernel="precomputed").fit(kernel)
    with pytest.raises(ParameterError, match="precomputed"):
        fw.silhouette(kernel, model)


# ---------------------------------------------------------------- the word alone means the classical one


def noise(n):
    """Rows without clusters, cut into three by k-means."""
    x = np.random.default_rng(8).random((n, 2))
    return x, fw.KMeans(3).fit(x).labels_


def test_the_word_alone_means_euclidean_distances():
    """Of noise, the silhouette of squared distances was 0.60 under this name; the classical one is 0.4."""
    x, labels = noise(2_000)
    assert fw.silhouette(x, labels).mean == pytest.approx(silhouette_score(x, labels), abs=1e-10)
    assert fw.squared_silhouette(x, labels).mean > fw.silhouette(x, labels).mean + 0.15
    assert fw.inertia_curve(x, [3]).silhouettes[0] == pytest.approx(silhouette_score(x, labels), abs=1e-2)


@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
def test_labels_with_a_metric(rows, metric):
    x, labels = rows
    for given in (x, sp.csr_array(np.where(x > 1, x, 0.0) + 0.1 * np.eye(5)[0])):
        found = fw.silhouette(given, labels, metric=metric, values=True).values
        np.testing.assert_allclose(found, silhouette_samples(given, labels, metric=metric), rtol=0, atol=1e-10)


@pytest.mark.parametrize("k", [2, 7, 500])
def test_queries_in_several_passes(monkeypatch, k):
    """As many rows at a time as have room: the values are the same."""
    from foldwise.selection import silhouette as module

    x = np.random.default_rng(1).standard_normal((3_000, 3))
    labels = np.random.default_rng(2).integers(0, k, len(x))
    whole = fw.silhouette(x, labels, values=True)
    monkeypatch.setattr(module, "_SUMS_AT_ONCE", 1)
    parts = fw.silhouette(x, labels, values=True)
    assert whole.values.tobytes() == parts.values.tobytes()
    np.testing.assert_allclose(whole.values, silhouette_samples(x, labels), rtol=0, atol=1e-10)


# ---------------------------------------------------------------- a sample, and its error bar


def test_a_sample_with_its_error_bar():
    """Over twenty seeds, the estimates scatter about the truth as their standard errors say."""
    x, labels = noise(3_000)
    true = fw.silhouette(x, labels)
    found = [fw.silhouette(x, labels, sample_size=200, random_state=seed) for seed in range(20)]
    errors = np.array([one.standard_error for one in found])
    away = (np.array([one.mean for one in found]) - true.mean) / errors
    assert 0.5 < np.sqrt(np.mean(away**2)) < 1.6
    assert abs(away.mean()) < 4 / np.sqrt(20)
    assert (errors > 0).all()
    assert (errors < 0.03).all()
    one = found[0]
    assert not one.exact
    assert one.table.columns == ("silhouette", "weight", "standard error")
    again = fw.silhouette(x, labels, sample_size=200, random_state=0, values=True)
    assert again.mean == one.mean
    np.testing.assert_array_equal(again.rows, one.rows)
    every = fw.silhouette(x, labels, values=True).values
    np.testing.assert_allclose(again.values, every[again.rows], rtol=0, atol=1e-12)


def test_a_sample_has_rows_of_every_cluster():
    x = np.random.default_rng(0).standard_normal((4_000, 2))
    labels = np.zeros(4_000, dtype=int)
    labels[:7], labels[7:60] = 1, 2
    found = fw.silhouette(x, labels, sample_size=100)
    assert np.bincount(labels[found.rows]).tolist() == [98, 7, 10]
    assert found.cluster_errors[1] == 0.0
    exact = fw.silhouette(x, labels)
    assert np.abs(found.cluster_means - exact.cluster_means).max() < 4 * found.cluster_errors.max()


def test_a_weighted_sample():
    x, labels = noise(2_000)
    weights = np.random.default_rng(0).choice([0.0, 1.0, 9.0], len(x))
    true = fw.silhouette(x, labels, sample_weight=weights)
    found = fw.silhouette(x, labels, sample_weight=weights, sample_size=300)
    assert (weights[found.rows] > 0).all()
    assert abs(found.mean - true.mean) < 4 * found.standard_error
    assert fw.silhouette(x, labels, sample_weight=np.full(len(x), 3.0), sample_size=300).mean == pytest.approx(
        fw.silhouette(x, labels).mean, abs=0.05
    )


def test_many_rows_are_sampled_and_all_values_are_all(monkeypatch):
    from foldwise.selection import silhouette as module

    monkeypatch.setattr(module, "EXACT_ROWS", 1_000)
    monkeypatch.setattr(module, "SAMPLE_SIZE", 150)
    x, labels = noise(1_001)
    assert not fw.silhouette(x, labels).exact
    assert fw.silhouette(x[:1_000], labels[:1_000]).exact
    assert fw.silhouette(x, labels, sample_size=None).exact
    assert fw.silhouette(x, labels, sample_size=5_000).exact
    every = fw.silhouette(x, labels, values=True)
    assert every.exact
    assert len(every.values) == 1_001


def test_weights_that_are_shares_are_told() -> None:
    from foldwise.errors import FoldwiseWarning

    x = np.random.default_rng(0).normal(size=(60, 2))
    labels = (x[:, 0] > 0).astype(int)
    with pytest.warns(FoldwiseWarning, match="number of repetitions"):
        fw.silhouette(x, labels, sample_weight=np.full(60, 1 / 60))
