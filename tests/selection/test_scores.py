"""Scores of clusterings: by hand, against scikit-learn, and where scikit-learn is wrong."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn import metrics

import foldwise as fw
from foldwise.errors import DataError, ParameterError
from foldwise.selection.cluster_moments import grouped
from foldwise.selection.label_numbers import numbered
from foldwise.selection.separation import calinski_harabasz_of, davies_bouldin_of, radii
from foldwise.selection.silhouette_result import labelled_rows
from foldwise.stats.contingency import Contingency

GEOMETRIC = pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (fw.calinski_harabasz, metrics.calinski_harabasz_score),
        (fw.davies_bouldin, metrics.davies_bouldin_score),
        (fw.dunn, None),
    ],
)
COMPARISONS = [
    (fw.adjusted_rand, metrics.adjusted_rand_score),
    (fw.normalized_mutual_info, metrics.normalized_mutual_info_score),
    (fw.v_measure, metrics.v_measure_score),
    (fw.homogeneity, metrics.homogeneity_score),
    (fw.completeness, metrics.completeness_score),
]


def plain_davies_bouldin(x, labels):
    """The same: scikit-learn's distance of a row to itself need not be 0."""
    names = np.unique(labels)
    means = [x[labels == name].mean(axis=0) for name in names]
    sizes = [np.linalg.norm(x[labels == name] - mean, axis=1).mean() for name, mean in zip(names, means, strict=True)]
    k = len(names)
    ratios = [
        [(sizes[i] + sizes[j]) / np.linalg.norm(means[i] - means[j]) for j in range(k) if j != i] for i in range(k)
    ]
    return np.mean([max(row) for row in ratios])


def plain_dunn(x, labels):
    """The least distance of two means over the largest mean diameter, in so many words."""
    names = np.unique(labels)
    means = [x[labels == name].mean(axis=0) for name in names]
    largest = max(
        2 * np.linalg.norm(x[labels == name] - mean, axis=1).mean() for name, mean in zip(names, means, strict=True)
    )
    return min(np.linalg.norm(a - b) for i, a in enumerate(means) for b in means[:i]) / largest


@pytest.fixture
def rows():
    rng = np.random.default_rng(0)
    x = rng.standard_normal((300, 5))
    x[:100] += 4
    x[100:150] -= 3
    return x, np.repeat([3, 1, 2, 7], [100, 50, 149, 1])


def test_by_hand():
    """Means 1 and 11, 5 from their common mean: B = 4 * 25, W = 4; radii 1, distance 10."""
    x, labels = [[0.0], [2.0], [10.0], [12.0]], ["a", "a", "b", "b"]
    assert fw.calinski_harabasz(x, labels) == 100 / 1 / (4 / 2)
    assert fw.davies_bouldin(x, labels) == (1 + 1) / 10
    assert fw.dunn(x, labels) == 10 / 2
    # Pairs together: 2 of 6 in both, of which 1 in common; expected 2 * 2 / 6.
    assert fw.adjusted_rand([0, 0, 1, 1], [0, 0, 0, 1]) == pytest.approx((1 - 2 * 3 / 6) / ((2 + 3) / 2 - 2 * 3 / 6))
    assert fw.homogeneity([0, 0, 1, 1], [0, 0, 0, 1]) == pytest.approx(
        1 - 0.75 * (np.log(3) - 2 / 3 * np.log(2)) / np.log(2)
    )


@GEOMETRIC
@pytest.mark.parametrize("scale", [1.0, 1e-25, 1e20, 1e-170, 1e160])
def test_as_scikit_learn_at_any_scale(rows, ours, theirs, scale):
    x, labels = rows
    assert ours(x * scale, labels) == pytest.approx((theirs or plain_dunn)(x, labels), rel=1e-12)


@GEOMETRIC
@pytest.mark.parametrize(("dtype", "offset"), [(np.float32, 0), (np.float32, 1e5), (np.float64, 1e8)])
def test_digits_survive_an_offset(rows, ours, theirs, dtype, offset):
    x, labels = rows
    stored = (x + offset).astype(dtype)
    exact = stored.astype(np.float64) - offset
    plain = {fw.davies_bouldin: plain_davies_bouldin, fw.dunn: plain_dunn}.get(ours, theirs)
    assert ours(stored, labels) == pytest.approx(plain(exact, labels), rel=1e-12)


def test_right_where_scikit_learn_is_wrong():
    """float32 at 1e6: its index of Davies and Bouldin is many times too large."""
    rng, labels = np.random.default_rng(1), np.repeat([0, 1], 40_000)
    stored = (rng.standard_normal((80_000, 2)) + 3.0 * labels[:, None] + 1e6).astype(np.float32)
    exact = stored.astype(np.float64) - 1e6
    assert fw.davies_bouldin(stored, labels) == pytest.approx(metrics.davies_bouldin_score(exact, labels), rel=1e-12)
    assert metrics.davies_bouldin_score(stored, labels) > 2 * metrics.davies_bouldin_score(exact, labels)


def test_where_a_variance_or_a_distance_is_zero():
    same = [[0.0], [0.0], [1.0], [1.0]]
    assert fw.calinski_harabasz(same, [0, 0, 1, 1]) == np.inf  # scikit-learn: 1
    assert fw.dunn(same, [0, 0, 1, 1]) == np.inf
    assert fw.davies_bouldin(same, [0, 0, 1, 1]) == 0.0
    assert fw.davies_bouldin([[-1.0], [1.0], [-2.0], [2.0]], [0, 0, 1, 1]) == np.inf  # one mean; scikit-learn: 0
    assert fw.dunn([[-1.0], [1.0], [-2.0], [2.0]], [0, 0, 1, 1]) == 0.0


@GEOMETRIC
def test_weights_repeat_and_sparse_is_the_same(rows, ours, theirs):
    x, labels = rows
    weights = np.random.default_rng(2).integers(0, 4, len(x))
    repeated = ours(np.repeat(x, weights, axis=0), np.repeat(labels, weights))
    assert ours(x, labels, sample_weight=weights) == pytest.approx(repeated, rel=1e-12)
    assert ours(sp.csr_array(x), labels) == pytest.approx(ours(x, labels), rel=1e-10)


@GEOMETRIC
def test_bits_do_not_depend_on_threads_or_place(tmp_path, ours, theirs):
    x = np.random.default_rng(3).standard_normal((120_000, 6)).astype(np.float32) + 1000
    labels = np.random.default_rng(4).integers(0, 5, len(x))
    np.save(tmp_path / "x.npy", x)
    one, two, file = (ours(X, labels, n_threads=n) for X, n in [(x, 1), (x, 2), (str(tmp_path / "x.npy"), 2)])
    assert one == two == file


def test_of_a_model_in_the_space_it_compares_rows_in(rows):
    x = rows[0] * [1, 10, 100, 1, 1] + 20
    model = fw.KMeans(3, scale=True).fit(x)
    seen = (x - x.mean(axis=0)) / x.std(axis=0)
    assert fw.davies_bouldin(x, model) == pytest.approx(metrics.davies_bouldin_score(seen, model.labels_), rel=1e-9)
    assert fw.calinski_harabasz(x, model) == pytest.approx(
        metrics.calinski_harabasz_score(seen, model.labels_), rel=1e-9
    )


def test_from_moments_in_hand(rows):
    """What a sweep over the number of clusters uses: one fold, and one more for the radii."""
    x, labels = rows
    with labelled_rows(x, labels, None, None, None, None) as opened:
        known = grouped(opened.passes, opened.labels, 4)
        assert calinski_harabasz_of(known[0]) == fw.calinski_harabasz(x, labels)
        assert davies_bouldin_of(known[0], radii(opened.passes, opened.labels, known)) == fw.davies_bouldin(x, labels)


@GEOMETRIC
def test_what_cannot_be_judged(rows, ours, theirs):
    x, labels = rows
    with pytest.raises(ParameterError, match="at least two"):
        ours(x, np.zeros(len(x)))
    with pytest.raises(DataError, match="fewer labels than rows"):
        ours(x, labels[:-1])
    if ours is fw.calinski_harabasz:
        with pytest.raises(ParameterError, match="more rows than clusters"):
            ours(x[:3], [0, 1, 2])
    else:
        with pytest.raises(DataError, match="301 labels, but 300 rows"):
            ours(x, np.append(labels, 1))
    gaps = x.copy()
    gaps[0, 0] = np.nan
    with pytest.raises(DataError, match="whole rows"):
        ours(gaps, fw.KMeans(2, missing="model").fit(gaps))


# ---------------------------------------------------------------- two labelings


@given(
    st.lists(st.tuples(st.integers(-1, 4), st.integers(0, 3), st.integers(0, 3)), min_size=2, max_size=60).filter(
        lambda rows: any(weight for _, _, weight in rows)
    )
)
def test_comparisons_as_scikit_learn(rows):
    a, b, w = map(np.array, zip(*rows, strict=True))
    for ours, theirs in COMPARISONS:
        assert ours(a, b) == pytest.approx(theirs(a, b), abs=1e-12)
        assert ours(a, b, sample_weight=w) == pytest.approx(theirs(np.repeat(a, w), np.repeat(b, w)), abs=1e-12)
    for name in ("min", "max", "geometric"):
        expected = metrics.normalized_mutual_info_score(a, b, average_method=name)
        assert fw.normalized_mutual_info(a, b, average_method=name) == pytest.approx(expected, abs=1e-12)
    assert fw.v_measure(a, b, beta=2.0) == pytest.approx(metrics.v_measure_score(a, b, beta=2.0), abs=1e-12)


@given(st.lists(st.tuples(st.integers(-1, 5), st.integers(-1, 3)), max_size=50), st.integers(0, 50))
def test_the_table_merges(rows, cut):
    a, b = (np.array([row[i] for row in rows], dtype=np.int32) for i in (0, 1))
    whole = Contingency.of(a, b, (6, 4))
    left, right = Contingency.of(a[:cut], b[:cut], (6, 4)), Contingency.of(a[cut:], b[cut:], (6, 4))
    for merged in (left.merge(right), right.merge(left), Contingency.empty((6, 4)).merge(whole)):
        np.testing.assert_array_equal(merged.cells, whole.cells)
        np.testing.assert_array_equal(merged.counts, whole.counts)
    expected = np.zeros((6, 4))
    for i, j in rows:
        if i >= 0 and j >= 0:
            expected[i, j] += 1
    np.testing.assert_array_equal(whole.table(), expected)
    np.testing.assert_array_equal(whole.margins[0], expected.sum(axis=1))
    np.testing.assert_array_equal(Contingency.of_table(expected).cells, whole.cells)


def test_many_labels_stay_sparse_and_whole_numbers_exact():
    rng = np.random.default_rng(0)
    a, b = rng.integers(0, 30_000, 50_000), rng.integers(0, 30_000, 50_000)
    table = Contingency.of(a.astype(np.int32), b.astype(np.int32), (30_000, 30_000))
    assert len(table.cells) <= 50_000
    assert table.counts.sum() == 50_000
    for ours, theirs in COMPARISONS:
        assert ours(a, b) == pytest.approx(theirs(a, b), abs=1e-12)
    # 4e12 rows: pairs of them do not fit into 64 bits.
    huge = fw.adjusted_rand([0, 0, 1, 1], [0, 0, 0, 1], sample_weight=[1e12] * 4)
    small = fw.adjusted_rand([0, 0, 1, 1], [0, 0, 0, 1], sample_weight=[1e6] * 4)
    assert huge == pytest.approx(small, abs=1e-5)
    assert huge != small


def plain_weighted_rand(a, b, w):
    """The adjusted Rand index over all pairs of different rows, each weighted by the product of its weights."""
    pairs = [(i, j) for i in range(len(a)) for j in range(i)]
    product = np.array([w[i] * w[j] for i, j in pairs])
    same = [np.array([labels[i] == labels[j] for i, j in pairs]) for labels in (a, b)]
    both, first, second = ((product * one).sum() / product.sum() for one in (same[0] & same[1], *same))
    return (both - first * second) / ((first + second) / 2 - first * second)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_weights_that_are_not_whole_numbers(dtype):
    rng = np.random.default_rng(0)
    a, b = rng.integers(0, 3, 50), rng.integers(0, 4, 50)
    plain = fw.adjusted_rand(a, b)
    for equal in (0.02, 0.04, 0.5, 1.5, 1e-200):  # it was 2e15 with 0.04
        assert fw.adjusted_rand(a, b, sample_weight=equal) == pytest.approx(plain, abs=1e-12)
    w = rng.random(50).astype(dtype)
    found = fw.adjusted_rand(a, b, sample_weight=w)
    assert found == pytest.approx(plain_weighted_rand(a, b, w.astype(float)), abs=1e-12)
    assert fw.adjusted_rand(a, b, sample_weight=w * dtype(8)) == pytest.approx(found, abs=1e-12)
    assert fw.adjusted_rand(a, a, sample_weight=w) == pytest.approx(1.0, abs=1e-12)
    assert fw.adjusted_rand(range(50), range(50), sample_weight=w) == 1.0
    # Whole weights are repetitions, however large.
    assert fw.adjusted_rand(a, b, sample_weight=3.0) == fw.adjusted_rand(np.repeat(a, 3), np.repeat(b, 3))
    limit = fw.adjusted_rand(a, b, sample_weight=1e200)
    assert limit == pytest.approx(fw.adjusted_rand(a, b, sample_weight=1e9), abs=1e-8)


@given(
    st.lists(st.tuples(st.integers(0, 4), st.integers(0, 3), st.floats(0.01, 3.0)), min_size=2, max_size=30),
    st.integers(0, 30),
)
def test_weighted_tables_merge_and_stay_in_range(rows, cut):
    a, b, w = map(np.array, zip(*rows, strict=True))
    assert -1.0 <= fw.adjusted_rand(a, b, sample_weight=w) <= 1.0
    parts = [Contingency.of(a[part], b[part], (5, 4), w[part]) for part in (slice(cut), slice(cut, None))]
    whole, merged = Contingency.of(a, b, (5, 4), w), parts[0].merge(parts[1])
    assert merged.whole == whole.whole
    np.testing.assert_array_equal(merged.cells, whole.cells)
    np.testing.assert_allclose(merged.squares, whole.squares, rtol=1e-12)


@pytest.mark.parametrize("least", [2**63 - 1, 2**63, 2**64 - 3])
def test_labels_beyond_signed_numbers(least):
    labels = np.array([least, least + 2, least, least + 2], dtype=np.uint64)
    assert fw.adjusted_rand(labels, [0, 1, 0, 1]) == 1.0
    found = fw.silhouette([[0.0], [5.0], [0.1], [5.1]], labels)
    assert found.clusters == (least, least + 2)
    assert numbered(np.array([-(2**63), -(2**63) + 1]))[1].tolist() == [-(2**63), -(2**63) + 1]
    assert numbered(np.array([-128, 127], dtype=np.int8))[1].tolist() == [-128, 127]


def test_columns_of_pandas():
    pd = pytest.importorskip("pandas")
    kinds = {
        "Int64": [1, None, 2, 1],
        "string": ["a", None, "b", "a"],
        "boolean": [True, None, False, True],
        "category": ["a", None, "b", "a"],
        "datetime64[ns]": ["2020-01-01", None, "2021-01-01", "2020-01-01"],
    }
    for dtype, values in kinds.items():
        column = pd.Series(values).astype(dtype)
        for ignore in (float("nan"), pd.NA):
            assert fw.adjusted_rand(column, [0, 1, 1, 0], ignore=ignore) == 1.0, dtype
            scores = fw.scores([[0.0], [0.1], [5.0], [5.1]], [0, 0, 1, 0], column, ignore=ignore)
            assert scores.adjusted_rand == 1.0, dtype
        with pytest.raises(DataError, match=r"row 1 .*a label is missing"):
            fw.adjusted_rand(column, [0, 1, 1, 0])
        known = column.drop(1)
        assert fw.adjusted_rand(known, [0, 1, 0]) == 1.0, dtype


def test_labels_of_any_kind_and_missing_ones():
    assert fw.adjusted_rand(["x", "y", "x"], [2.5, -1.0, 2.5]) == 1.0
    assert fw.adjusted_rand([0, 0, -1, -1], [5, 5, 6, 7]) < 1.0
    assert fw.adjusted_rand([0, 0, 1, -1, 1], [5, 5, 6, 5, -1], ignore=-1) == 1.0
    assert fw.adjusted_rand(["a", None, "b"], [0, 0, 1], ignore=float("nan")) == 1.0
    with pytest.raises(DataError, match=r"row 1.*a label is missing"):
        fw.adjusted_rand(["a", None, "b"], [0, 0, 1])
    with pytest.raises(DataError, match="row 2"):
        fw.v_measure([0, 1, 1], [0.0, 1.0, np.nan])
    with pytest.raises(DataError, match="3 labels in the first labeling and 2"):
        fw.homogeneity([0, 0, 1], [0, 1])
    with pytest.raises(ParameterError, match="shape"):
        fw.completeness([[0, 1]], [0, 1])
    with pytest.raises(DataError, match="different types"):
        fw.adjusted_rand(np.array(["a", 1], dtype=object), [0, 1])
    with pytest.raises(DataError, match="no labels"):
        fw.adjusted_rand([], [])
    with pytest.raises(ParameterError, match="average_method"):
        fw.normalized_mutual_info([0, 1], [0, 1], average_method="mean")
    with pytest.raises(ParameterError, match="beta"):
        fw.v_measure([0, 1], [0, 1], beta=-1)
    # Far apart and of a narrow type: the range must not wrap around.
    assert fw.adjusted_rand(np.array([-128, 127, 127], dtype=np.int8), [0, 1, 1]) == 1.0
    assert fw.adjusted_rand(np.array([-(2**62), 2**62, 2**62]), [0, 1, 1]) == 1.0


# ---------------------------------------------------------------- all in one table


def test_the_table_of_scores(rows, tmp_path):
    x, labels = rows
    truth = np.where(labels == 7, 2, labels)
    found = fw.scores(x, labels, truth)
    for name in found.table.rows:
        if name in ("silhouette", "squared_silhouette"):
            expected = getattr(fw, name)(x, labels).mean
        else:
            expected = getattr(fw, name)(
                *((x, labels) if name in ("calinski_harabasz", "davies_bouldin", "dunn") else (truth, labels))
            )
        assert getattr(found, name) == found.table[name, "score"] == pytest.approx(expected, rel=1e-14), name
    assert len(found.table.rows) == 10
    assert "adjusted_rand" not in fw.scores(x, labels).table.rows
    fw.save(found, tmp_path / "scores.fw")
    assert repr(fw.load(tmp_path / "scores.fw")) == repr(found)


@pytest.mark.parametrize("weighted", [False, True])
def test_rows_without_a_cluster(rows, weighted, tmp_path):
    """With ignore=-1, the scores are those of the other rows."""
    x, labels = rows
    rng = np.random.default_rng(2)
    none = rng.random(len(x)) < 0.2
    given, truth = np.where(none, -1, labels), rng.permutation(labels)
    w = rng.integers(1, 3, len(x)) if weighted else None
    kept = {"sample_weight": None if w is None else w[~none]}
    expected = fw.scores(x[~none], labels[~none], truth[~none], **kept)
    assert repr(fw.scores(x, given, truth, ignore=-1, sample_weight=w)) == repr(expected)
    assert fw.scores(x, given, truth, sample_weight=w).n_clusters == expected.n_clusters + 1
    np.save(tmp_path / "x.npy", x)
    found = fw.scores(tmp_path / "x.npy", np.where(none, np.nan, labels), truth, ignore=np.nan, sample_weight=w)
    assert repr(found) == repr(expected)
    for one in (fw.calinski_harabasz, fw.davies_bouldin, fw.dunn):
        assert one(x, given, ignore=-1, sample_weight=w) == one(x[~none], labels[~none], **kept)
    for one in (fw.silhouette, fw.squared_silhouette):
        mine, theirs = (
            one(x, given, ignore=-1, sample_weight=w, values=True),
            one(x[~none], labels[~none], values=True, **kept),
        )
        assert mine.mean == theirs.mean
        np.testing.assert_array_equal(mine.values[~none], theirs.values)
        assert np.isnan(mine.values[none]).all()
    sample = fw.silhouette(x, given, ignore=-1, sample_weight=w, sample_size=50)
    assert (given[sample.rows] >= 0).all()
    with pytest.raises(DataError, match=r"a label is missing\. .*ignore"):
        fw.scores(x, np.where(none, np.nan, labels))
    with pytest.raises(DataError, match="301 labels, but 300 rows"):
        fw.scores(x, np.append(given, -1), ignore=-1)
    with pytest.raises(DataError, match="every row has the label -1"):
        fw.scores(x, np.full(len(x), -1), ignore=-1)


def test_weights_of_a_source_count_in_all_scores(rows, tmp_path):
    x, labels = rows
    rng = np.random.default_rng(1)
    w, truth = rng.integers(1, 4, len(x)), rng.permutation(labels)
    np.save(tmp_path / "x.npy", x)
    asked = fw.scores(x, labels, truth, sample_weight=w)
    assert repr(asked) == repr(fw.scores(fw.scan(x, weights=w), labels, truth))
    assert repr(asked) == repr(fw.scores(fw.scan(tmp_path / "x.npy", weights=w), labels, truth))
    assert asked.adjusted_rand == fw.adjusted_rand(np.repeat(truth, w), np.repeat(labels, w))


def test_scores_of_models_with_rows_in_no_cluster(rows):
    x, labels = rows
    x = x.copy()
    x[0] = np.nan
    model = fw.KMeans(3, missing="model").fit(x)
    found = fw.scores(x, model, labels)
    assert found.adjusted_rand == metrics.adjusted_rand_score(labels[1:], model.labels_[1:])
    assert np.isnan(found.davies_bouldin)
    assert np.isfinite(found.silhouette)
    weights = np.ones(len(x))
    weights[1:40] = 0
    found = fw.scores(rows[0], labels, np.where(labels == 7, -1, labels), ignore=-1, sample_weight=weights)
    assert found.adjusted_rand == 1.0
    assert (
        fw.scores(rows[0], np.zeros(len(x)), labels).table.rows[0] == "adjusted_rand"
    )  # one cluster has no separation
