"""The consensus of ready-made clusterings: the worked case, the identity, and what each kind of consensus must give."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.spatial.distance import pdist, squareform
from sklearn.cluster import KMeans, SpectralClustering
from sklearn.metrics import adjusted_rand_score

import foldwise as fw
from foldwise.errors import DataError, NotFinishedWarning, ParameterError
from foldwise.models.ensemble import consensus as consensus_module
from foldwise.models.ensemble.agreement import agreement_of, pac_of, pair_distribution
from foldwise.models.ensemble.clusterings import distinct_rows, read_clusterings
from foldwise.models.ensemble.consensus import root_of, spectral_directions
from foldwise.models.ensemble.label_rows import LabelRows, unit_rows
from foldwise.models.ensemble.linkage import average_linkage
from foldwise.models.kmeans.descent import cluster

# Seven instances, four clusterings.
WORKED = np.array([[1, 1, 2, 2, 2, 3, 3], [2, 3, 3, 2, 2, 1, 1], [3, 3, 1, 1, 1, 2, 2], [1, 3, 3, 4, 4, 2, 2]]).T
PAIRS = {(1, 2): 0.5, (2, 3): 0.5, (3, 4): 0.5, (3, 5): 0.5, (1, 4): 0.25, (1, 5): 0.25, (4, 5): 1.0, (6, 7): 1.0}
SOFT = np.array(
    [(1, 0, 0), (0.5, 0.5, 0), (0.33, 0.34, 0.33), (0.25, 0.5, 0.25), (0.6, 0.2, 0.2), (0.4, 0.4, 0.2), (0, 1, 0)]
)


def groups(labels) -> set[frozenset[int]]:
    return {frozenset(np.flatnonzero(labels == one) + 1) for one in np.unique(labels)}


def rows_of(labels, weights=None, soft=False):
    distinct, counted, inverse = distinct_rows(read_clusterings(labels, soft=soft), weights)
    return LabelRows(distinct, counted), inverse


def inertia(points, labels) -> float:
    return sum(((points[labels == one] - points[labels == one].mean(axis=0)) ** 2).sum() for one in np.unique(labels))


def weak_kmeans(*given, **settings):
    return cluster(*given, **{**settings, "search": "none", "max_iter": 1})


@pytest.mark.parametrize("kind", ["kmeans", "spectral"])
def test_a_consensus_that_was_stopped_says_so(kind, monkeypatch):
    monkeypatch.setattr(consensus_module, "_MAX_ITER", 1)
    monkeypatch.setattr(consensus_module, "cluster", weak_kmeans)
    labels = np.random.default_rng(0).integers(0, 4, (200, 6))
    with pytest.warns(NotFinishedWarning, match="capped"):
        found = fw.ClusterEnsemble(5, consensus=kind).fit_labels(labels)
    assert found.outcome_.reason == "capped"


# ---------------------------------------------------------------- the worked case


def test_the_matrix_of_the_worked_case():
    expected = np.eye(7)
    for (i, j), share in PAIRS.items():
        expected[i - 1, j - 1] = expected[j - 1, i - 1] = share
    m = fw.coassociation(WORKED)
    np.testing.assert_array_equal(m.toarray(), expected)
    np.testing.assert_allclose(m @ np.arange(7.0), expected @ np.arange(7.0), rtol=1e-15)
    np.testing.assert_allclose(m.T @ np.eye(7), expected, rtol=1e-15)
    assert m[0, 1] == 0.5
    np.testing.assert_array_equal(m[2], expected[2])
    np.testing.assert_array_equal(m[:, 3], expected[:, 3])
    np.testing.assert_array_equal(m[1:4, [0, 6]], expected[1:4][:, [0, 6]])
    assert m.shape == (7, 7)
    assert m.n_clusterings == 4


def test_both_outcomes_of_the_worked_case():
    m = fw.coassociation(WORKED).toarray()
    best = np.array([0, 0, 1, 1, 1, 2, 2])
    slide = np.array([0, 0, 0, 1, 1, 2, 2])
    assert inertia(m, best) == pytest.approx(1.1458, abs=5e-5)
    assert inertia(m, slide) == pytest.approx(1.4167, abs=5e-5)
    found = fw.ClusterEnsemble(3, consensus="kmeans").fit_labels(WORKED)
    assert groups(found.labels_) == groups(best)
    assert found.inertia_ == pytest.approx(1.1458333333333333, rel=1e-12)
    assert found.n_distinct_ == 5
    # Linkage has a tie at 1/2: whether 1 and 2 or 2 and 3 are merged first decides.
    linked = fw.ClusterEnsemble(3, consensus="average").fit_labels(WORKED)
    assert groups(linked.labels_) in (groups(best), groups(slide))
    given_labels = fw.ClusterEnsemble(3, consensus=lambda m, k, weights: np.array([0, 0, 0, 1, 2])).fit_labels(WORKED)
    assert len(given_labels.labels_) == 7


def test_soft_values_and_both_diagonals():
    formula = fw.coassociation([SOFT], soft=True, diagonal="formula")
    one = fw.coassociation([SOFT], soft=True)
    assert formula[0, 1] == 0.5
    assert formula[1, 3] == 0.375
    assert formula[1, 1] == 0.5
    assert one[1, 1] == 1.0
    np.testing.assert_allclose(formula.toarray(), SOFT @ SOFT.T, rtol=1e-15)
    np.testing.assert_allclose(one @ np.ones(7), one.toarray() @ np.ones(7), rtol=1e-14)
    np.testing.assert_array_equal(one.diagonal(), np.ones(7))
    two = fw.coassociation([SOFT, SOFT[::-1]], soft=True, diagonal="formula")
    np.testing.assert_allclose(two.toarray(), (SOFT @ SOFT.T + SOFT[::-1] @ SOFT[::-1].T) / 2, rtol=1e-14)


# ---------------------------------------------------------------- the identity


@given(st.integers(0, 10_000), st.integers(1, 6), st.integers(5, 40))
def test_the_identity(seed, count, n):
    """Distances of rows of M are those of B (B'B)^(1/2) / T, and the lazy products those of the dense matrix."""
    rng = np.random.default_rng(seed)
    labels = np.column_stack([rng.integers(0, rng.integers(1, 6), n) for _ in range(count)])
    m = fw.coassociation(labels).toarray()
    dense = np.mean([labels[:, [t]] == labels[:, t] for t in range(count)], axis=0)
    np.testing.assert_array_equal(m, dense)
    rows, inverse = rows_of(labels)
    points = rows.times(root_of(rows.gram) / count)[inverse]
    np.testing.assert_allclose(pdist(points), pdist(m), atol=1e-12)
    v = rng.standard_normal((n, 2))
    np.testing.assert_allclose(fw.coassociation(labels) @ v, m @ v, atol=1e-12)


def test_the_identity_for_soft_memberships():
    rng = np.random.default_rng(0)
    given_soft = [rng.dirichlet(np.ones(k), 30) for k in (2, 4, 3)]
    m = fw.coassociation(given_soft, soft=True, diagonal="formula").toarray()
    rows, inverse = rows_of(given_soft, soft=True)
    points = rows.times(root_of(rows.gram) / 3)[inverse]
    np.testing.assert_allclose(pdist(points), pdist(m), atol=1e-12)
    found = fw.ClusterEnsemble(3, consensus="kmeans").fit_labels(given_soft, soft=True)
    assert found.inertia_ == pytest.approx(inertia(m, found.labels_), rel=1e-10)


@pytest.mark.parametrize("seed", range(4))
def test_kmeans_consensus_is_kmeans_on_the_rows_of_m(seed):
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 4, (60, 7))
    m = fw.coassociation(labels).toarray()
    found = fw.ClusterEnsemble(4, consensus="kmeans").fit_labels(labels)
    assert found.inertia_ == pytest.approx(inertia(m, found.labels_), rel=1e-12)
    peer = KMeans(4, n_init=50, random_state=0).fit(m)
    assert found.inertia_ <= peer.inertia_ * (1 + 1e-9)
    means = np.array([m[found.labels_ == one].mean(axis=0) for one in range(4)])
    nearest = ((m[:, None] - means) ** 2).sum(axis=2)
    assert (nearest[np.arange(60), found.labels_] <= nearest.min(axis=1) + 1e-9).all()


def test_kmeans_consensus_of_a_sampled_start_is_a_fixed_point(monkeypatch):
    from foldwise.models.ensemble import consensus

    monkeypatch.setattr(consensus, "_SEARCHED", 3000)  # so that 150 of the distinct rows are searched
    monkeypatch.setattr(consensus, "_SETTLED", 0.0)
    rng = np.random.default_rng(5)
    truth = rng.integers(0, 3, 900)
    labels = np.column_stack([np.where(rng.random(900) < 0.3, rng.integers(0, 4, 900), truth) for _ in range(5)])
    found = fw.ClusterEnsemble(3, consensus="kmeans").fit_labels(labels)
    assert "searched on" in found.manifest_.notes[0]
    m = fw.coassociation(labels).toarray()
    means = np.array([m[found.labels_ == one].mean(axis=0) for one in range(3)])
    nearest = ((m[:, None] - means) ** 2).sum(axis=2)
    assert (nearest[np.arange(900), found.labels_] <= nearest.min(axis=1) + 1e-9).all()
    assert found.inertia_ == pytest.approx(inertia(m, found.labels_), rel=1e-9)


@pytest.mark.parametrize("k", [2, 3, 4])
def test_groups_with_nothing_in_common_do_not_depend_on_names(k):
    truth = np.repeat(np.arange(5), [10, 14, 19, 25, 33])
    halves = np.random.default_rng(0).integers(0, 2, (len(truth), 6))
    labels = 2 * truth[:, None] + halves
    rng, expected = np.random.default_rng(1), np.repeat([max(4 - g, 0) for g in range(5)], np.bincount(truth))
    expected = np.minimum(expected, k - 1)  # the smallest are put together
    for _ in range(5):
        renamed = np.column_stack([rng.permutation(10)[column] for column in labels.T])
        found = fw.ClusterEnsemble(k).fit_labels(renamed).labels_
        assert groups(found) == groups(expected)


def test_rows_that_the_fit_knows_nothing_of_are_nowhere_in_the_embedding():
    labels = np.array([[0, 0], [0, 0], [1, 1], [1, 1], [2, 2]])
    weights = np.array([1.0, 1.0, 1.0, 1.0, 0.0])
    rows, _ = rows_of(labels, weights)
    directions = spectral_directions(rows, 2)
    points = unit_rows(rows.times(directions), directions)
    np.testing.assert_allclose(np.linalg.norm(points, axis=1), [1.0, 1.0, 0.0])


@pytest.mark.parametrize("seed", range(3))
def test_spectral_consensus_is_spectral_clustering_of_m(seed):
    rng = np.random.default_rng(seed)
    truth = np.repeat([0, 1, 2], [40, 25, 35])
    labels = np.column_stack([np.where(rng.random(100) < 0.25, rng.integers(0, 5, 100), truth) for _ in range(9)])
    found = fw.ClusterEnsemble(3, consensus="spectral").fit_labels(labels)
    m = fw.coassociation(labels).toarray()
    peer = SpectralClustering(3, affinity="precomputed", random_state=0, assign_labels="kmeans").fit(m)
    assert adjusted_rand_score(found.labels_, peer.labels_) > 0.9
    assert adjusted_rand_score(found.labels_, truth) >= adjusted_rand_score(peer.labels_, truth) - 0.05


@given(st.integers(0, 10_000), st.integers(2, 5))
def test_average_linkage_is_scipys(seed, k):
    rng = np.random.default_rng(seed)
    points = rng.standard_normal((25, 2))
    apart = squareform(pdist(points))
    labels, heights = average_linkage(-apart, np.ones(25), k)
    tree = linkage(pdist(points), "average")
    assert adjusted_rand_score(labels, fcluster(tree, k, "maxclust")) == 1.0
    np.testing.assert_allclose(-heights, tree[:, 2], rtol=1e-10)


def test_average_linkage_counts_weights_as_repetition():
    rng = np.random.default_rng(1)
    points, times = rng.standard_normal((12, 2)), rng.integers(1, 4, 12)
    repeated = np.repeat(points, times, axis=0)
    labels, _ = average_linkage(-squareform(pdist(points)), times.astype(float), 3)
    peer = fcluster(linkage(pdist(repeated), "average"), 3, "maxclust")
    assert adjusted_rand_score(np.repeat(labels, times), peer) == 1.0


def test_many_distinct_rows_are_gathered_before_they_are_linked(monkeypatch):
    from foldwise.models.ensemble import consensus

    rng = np.random.default_rng(2)
    truth = np.repeat([0, 1, 2], 100)
    labels = np.column_stack([np.where(rng.random(300) < 0.2, rng.integers(0, 6, 300), truth) for _ in range(12)])
    exact = fw.ClusterEnsemble(3, consensus="average").fit_labels(labels)
    monkeypatch.setattr(consensus, "MOST_LINKED", 50)
    monkeypatch.setattr(consensus, "_GROUPS", 40)
    gathered = fw.ClusterEnsemble(3, consensus="average").fit_labels(labels)
    assert "gathered into" in gathered.manifest_.notes[0]
    assert adjusted_rand_score(gathered.labels_, exact.labels_) > 0.9


# ---------------------------------------------------------------- missing labels


def test_missing_labels_count_only_clusterings_in_which_both_are_present():
    labels = np.array([[0, 0, -1], [0, 1, 1], [1, np.nan, 1], [-1, -1, -1]], dtype=float)
    m = fw.coassociation(labels)
    assert m[0, 1] == 0.5
    assert m[1, 2] == 0.5
    assert m[0, 2] == 0.0
    assert m[0, 0] == 1.0
    np.testing.assert_array_equal(m[3], np.zeros(4))
    np.testing.assert_allclose(m @ np.arange(4.0), m.toarray() @ np.arange(4.0))
    found = fw.ClusterEnsemble(2).fit_labels(labels)
    assert found.labels_[3] == -1
    assert (found.labels_[:3] >= 0).all()


@pytest.mark.parametrize("consensus", ["kmeans", "spectral", "average"])
def test_the_groups_are_found_in_spite_of_missing_labels(consensus):
    rng = np.random.default_rng(3)
    truth = np.repeat([0, 1, 2], 50)
    labels = np.column_stack([rng.permutation(4)[truth] for _ in range(10)])
    labels[rng.random(labels.shape) < 0.3] = -1
    found = fw.ClusterEnsemble(3, consensus=consensus).fit_labels(labels)
    present = (labels >= 0).any(axis=1)
    assert adjusted_rand_score(found.labels_[present], truth[present]) == 1.0


def test_scaled_rows_are_exact_where_one_of_two_is_complete():
    rng = np.random.default_rng(4)
    labels = rng.integers(0, 3, (20, 6))
    labels[10:][rng.random((10, 6)) < 0.4] = -1
    given_labels = read_clusterings(labels)
    b = given_labels.memberships().toarray()
    np.testing.assert_allclose((b @ b.T / 6)[:10], fw.coassociation(labels).toarray()[:10], atol=1e-14)


# ---------------------------------------------------------------- agreement, weights, order


@given(st.integers(0, 10_000))
def test_weights_are_repetition_and_order_does_not_matter(seed):
    rng = np.random.default_rng(seed)
    labels, times = rng.integers(0, 3, (25, 4)), rng.integers(1, 4, 25)
    shuffled = rng.permutation(25)
    for consensus in ("kmeans", "spectral", "average"):
        one = fw.ClusterEnsemble(3, consensus=consensus).fit_labels(labels, sample_weight=times)
        many = fw.ClusterEnsemble(3, consensus=consensus).fit_labels(np.repeat(labels, times, axis=0))
        np.testing.assert_array_equal(np.repeat(one.labels_, times), many.labels_)
        np.testing.assert_array_equal(np.repeat(one.item_consensus_, times), many.item_consensus_)
        np.testing.assert_array_equal(one.cluster_consensus_, many.cluster_consensus_)
        assert one.pac_ == pytest.approx(many.pac_, abs=1e-12)
        other = fw.ClusterEnsemble(3, consensus=consensus).fit_labels(labels[shuffled], sample_weight=times[shuffled])
        np.testing.assert_array_equal(one.labels_[shuffled], other.labels_)


def test_item_and_cluster_consensus_by_hand():
    rng = np.random.default_rng(7)
    labels = rng.integers(0, 3, (30, 5))
    found = fw.ClusterEnsemble(3, consensus="kmeans").fit_labels(labels)
    m = fw.coassociation(labels).toarray()
    for c in range(3):
        inside = np.flatnonzero(found.labels_ == c)
        pairs = [m[i, j] for i, j in combinations(inside, 2)]
        assert found.cluster_consensus_[c] == pytest.approx(np.mean(pairs), rel=1e-12)
        for i in inside:
            others = inside[inside != i]
            assert found.item_consensus_[i] == pytest.approx(m[i, others].mean(), rel=1e-12)
    upper = m[np.triu_indices(30, 1)]
    assert found.pac_ == pytest.approx(np.mean((upper > 0.1) & (upper < 0.9)), abs=1e-12)
    assert found.consensus_cdf_[40] == pytest.approx(np.mean(upper <= 0.4 + 1e-12), abs=1e-12)
    means = np.array([[m[i, found.labels_ == c].mean() for c in range(3)] for i in range(30)])
    np.testing.assert_allclose(found.confidence_, means[np.arange(30), found.labels_] / means.sum(axis=1), rtol=1e-12)


def test_equal_soft_rows_are_as_ambiguous_as_they_say():
    found = fw.ClusterEnsemble(1).fit_labels([np.full((6, 2), 0.5)] * 2, soft=True)
    assert found.pac_ == 1.0
    probabilities = np.random.default_rng(0).dirichlet([0.3] * 3, 5)[[0, 1, 2, 3, 4, 4, 4, 2]]
    m = fw.coassociation([probabilities], soft=True).toarray()
    upper = m[np.triu_indices(8, 1)]
    found = fw.ClusterEnsemble(2).fit_labels([probabilities], soft=True)
    assert found.pac_ == pytest.approx(((upper > 0.1) & (upper < 0.9)).mean())


def test_pairs_are_drawn_by_weight():
    labels = np.array(np.unravel_index(np.arange(4096), (4,) * 6)).T
    labels = np.column_stack([labels, labels])
    weights = np.ones(4096)
    weights[[0, 1]] = 1e6  # of these, five clusterings of six are together
    for size in (4096, 3000):
        rows, _ = rows_of(labels[:size], weights[:size])
        assert pac_of(pair_distribution(rows)) == pytest.approx(0.5, abs=0.03)
    rows, _ = rows_of(labels, np.r_[np.ones(1500), np.zeros(2596)])
    few, _ = rows_of(labels[:1500])
    np.testing.assert_array_equal(pair_distribution(rows), pair_distribution(few))


@pytest.mark.parametrize("soft", [False, True])
def test_with_missing_labels_consensus_is_the_mean_of_m(soft):
    rng = np.random.default_rng(3)
    if soft:
        labels = [rng.dirichlet([0.3] * 3, 40) for _ in range(4)]
        for one in labels:
            one[rng.uniform(size=40) < 0.4] = np.nan
    else:
        labels = np.where(rng.uniform(size=(40, 5)) < 0.4, -1, rng.integers(0, 3, (40, 5)))
    times = rng.integers(1, 3, 40)
    found = fw.ClusterEnsemble(3).fit_labels(labels, soft=soft, sample_weight=times)
    m = np.repeat(np.repeat(fw.coassociation(labels, soft=soft, diagonal="formula").toarray(), times, 0), times, 1)
    np.fill_diagonal(m, 0.0)
    own = np.repeat(found.labels_, times)
    items = np.repeat(found.item_consensus_, times)
    for one in range(found.n_clusters_):
        part = m[own == one][:, own == one]
        np.testing.assert_allclose(items[own == one], part.sum(axis=1) / (len(part) - 1), atol=1e-12)
        assert found.cluster_consensus_[one] == pytest.approx(part.sum() / (len(part) * (len(part) - 1)))


def test_a_cluster_of_one_row_has_no_pairs():
    rows, _ = rows_of([[0], [1], [1]])
    found = agreement_of(rows, np.array([0, 1], dtype=np.int32), 2)
    assert np.isnan(found.clusters[0])
    assert np.isnan(found.items[0])
    assert found.clusters[1] == 1.0


def test_fewer_kinds_of_rows_than_clusters_is_told():
    with pytest.warns(UserWarning, match="Number of distinct clusters"):
        found = fw.ClusterEnsemble(4).fit_labels([[0], [0], [1], [1], [1]])
    assert found.n_clusters_ == 2


def test_the_number_is_chosen_from_labels_and_may_be_one():
    rng = np.random.default_rng(8)
    truth = np.repeat(np.arange(4), 30)
    agreeing = np.column_stack([np.where(rng.random(120) < 0.1, rng.integers(0, 6, 120), truth) for _ in range(10)])
    found = fw.ClusterEnsemble().fit_labels(agreeing)
    assert found.n_clusters_ == 4
    assert found.choice_.found
    unrelated = fw.ClusterEnsemble().fit_labels(rng.integers(0, 4, (120, 10)))
    assert unrelated.n_clusters_ == 1
    assert not unrelated.choice_.found
    assert "no clusters found" in unrelated.manifest_.notes[0]


# ---------------------------------------------------------------- input


def test_labels_of_any_kind():
    words = np.array([["a", "x"], ["a", "y"], ["b", "y"], [None, "x"]], dtype=object)
    numbers = np.array([[5, 1], [5, 2], [9, 2], [-1, 1]])
    np.testing.assert_array_equal(fw.coassociation(words).toarray(), fw.coassociation(numbers).toarray())
    assert fw.coassociation([1, 1, 2])[0, 1] == 1.0


def test_numbers_among_objects_are_numbers():
    def codes(*labels):
        return read_clusterings(np.array([[one] for one in labels], dtype=object)).values[:, 0].tolist()

    assert codes(1, 1.0, np.int64(1), np.float32(2), 10, None, np.nan, -1) == [0, 0, 0, 1, 2, -1, -1, -1]
    assert codes(1, 1.0, "a", "1", "", -1, None) == [0, 0, 1, 0, -1, -1, -1]
    assert codes(2**70, 2**70 + 1, 2**70) == [0, 1, 0]
    assert codes(None, np.nan) == [-1, -1]
    assert codes(2**60, 2**60 + 1) == [0, 1]


def test_nullable_columns_of_a_data_frame():
    pd = pytest.importorskip("pandas")
    plain = [[1, 5], [1, -1], [2, 5], [-1, 6]]
    frame = pd.DataFrame(
        {"a": pd.array([1, 1, 2, None], dtype="Int64"), "b": pd.array(["x", None, "x", "y"], dtype="string")}
    )
    np.testing.assert_array_equal(fw.coassociation(frame).toarray(), fw.coassociation(plain).toarray())
    np.testing.assert_array_equal(read_clusterings(frame["a"]).values[:, 0], [0, 0, 1, -1])
    np.testing.assert_array_equal(read_clusterings(frame["b"]).values[:, 0], [0, -1, 0, 1])


def test_a_file_of_labels(shared_data: Path):
    path = shared_data / "tables" / "clue_ckme_partitions.csv"
    table = np.loadtxt(path, delimiter=",", skiprows=1)
    m = fw.coassociation(path)
    assert m.shape == (1000, 1000)
    assert m.n_clusterings == 50
    assert m[3, 17] == np.mean(table[3] == table[17])
    a = fw.ClusterEnsemble(3).fit_labels(path)
    np.testing.assert_array_equal(a.labels_, fw.ClusterEnsemble(3).fit_labels(table).labels_)


@pytest.mark.parametrize(
    ("labels", "soft", "words"),
    [
        ([[0.5, 1], [1, 2]], False, "is not a label"),
        ([[np.inf, 1], [1, 2]], False, "is not a label"),
        ([[-2, 1], [1, 2]], False, "-2 is not a label"),
        ([[-2.0, 1], [1, 2]], False, "-2.0 is not a label"),
        (np.array([[-2, 1], [1, 2]], dtype=object), False, "-2 is not a label"),
        (np.empty((0, 3)), False, "shape"),
        (np.zeros((2, 2, 2)), False, "shape"),
        ([np.array([[0.5, 0.4], [0.5, 0.5]])], True, "does not sum to 1"),
        ([np.array([[0.5, 0.5]]), np.array([[0.5, 0.5], [1, 0]])], True, "shape"),
        ([], True, "list of matrices"),
    ],
)
def test_bad_labels(labels, soft, words):
    with pytest.raises(DataError, match=words):
        fw.coassociation(labels, soft=soft)


def test_text_columns_of_a_file_are_refused(tmp_path):
    (tmp_path / "labels.csv").write_text("a,b\n1,x\n2,y\n1,x\n")
    with pytest.warns(UserWarning, match="left out"), pytest.raises(DataError, match="must be numbers"):
        fw.coassociation(tmp_path / "labels.csv")


def test_a_large_matrix_is_refused_with_advice():
    m = fw.coassociation(np.zeros((30_000, 2), dtype=int))
    with pytest.raises(DataError, match="7 GB"):
        m.toarray()
    assert (m @ np.ones(30_000))[0] == 30_000
    with pytest.raises(ParameterError, match="diagonal"):
        fw.coassociation([[1], [2]], diagonal="two")


def test_other_bad_input():
    with pytest.raises(DataError, match="n_clusters=3"):
        fw.ClusterEnsemble(3).fit_labels([[0], [1]])
    with pytest.raises(DataError, match="label in any clustering"):
        fw.ClusterEnsemble(1).fit_labels([[-1], [-1]])
    with pytest.raises(DataError, match="consensus function"):
        fw.ClusterEnsemble(2, consensus=lambda m, k, w: [0.5]).fit_labels([[0], [1]])
    with pytest.raises(ParameterError, match="consensus"):
        fw.ClusterEnsemble(2, consensus="mean").fit_labels([[0], [1]])
    with pytest.raises(ParameterError, match="fitted to labels"):
        fw.ClusterEnsemble(2).fit_labels([[0], [1]]).predict([[0.0]])
