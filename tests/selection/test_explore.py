"""`fw.explore`: what it finds, what it keeps for new rows, and what it does when it is stopped."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from scipy.stats import chi2

import foldwise as fw
from foldwise.errors import DataError, NotFinishedWarning, OutputError, ParameterError, StoreError
from foldwise.models.kmeans import KMeans
from foldwise.selection.explore import steps
from foldwise.selection.explore.confidence import _ShareKept
from foldwise.selection.explore.outliers import _residual_limit, _t2_limit
from foldwise.selection.explore.rules import find_rule, holds, precision_and_recall, round_between
from foldwise.selection.explore.sample import coded
from foldwise.selection.explore.scaling import decide_scaling
from foldwise.selection.explore.summaries import names_of


@pytest.fixture(autouse=True)
def _few_repeats(monkeypatch):
    monkeypatch.setattr(steps, "_REPEATS", 6)


def explore(x, **options):
    return fw.explore(x, **{"max_clusters": 4, **options})


def blobs(n=60, k=3, d=3, apart=7.0, seed=0):
    rng = np.random.default_rng(seed)
    centres = np.eye(max(k, d))[:k, :d] * apart
    return np.concatenate([rng.normal(size=(n, d)) + centre for centre in centres])


# ---------------------------------------------------------------- rules


def test_rule_by_hand():
    values = np.array([[1.0, 9.0], [2.0, 8.0], [3.0, 1.0], [6.0, 9.0], [7.0, 9.0], [8.0, 2.0]])
    inside = np.array([True, True, False, False, False, False])
    rule = find_rule(inside, ["a", "b"], values)
    # a <= 2.5 picks exactly the two rows; any threshold from 2 up to below 3 does
    assert [(one.column, one.sign) for one in rule.conditions] == [("a", "<=")]
    assert 2.0 <= rule.conditions[0].value < 3.0
    assert (rule.precision, rule.recall) == (1.0, 1.0)


def test_rule_needs_two_conditions_for_a_corner():
    rng = np.random.default_rng(0)
    values = rng.random((400, 2))
    inside = (values[:, 0] > 0.5) & (values[:, 1] <= 0.5)
    rule = find_rule(inside, ["x", "y"], values)
    assert {(one.column, one.sign) for one in rule.conditions} == {("x", ">"), ("y", "<=")}
    assert rule.precision > 0.95
    assert rule.recall > 0.95


def test_rule_takes_a_level_and_knows_missing_cells():
    values = np.array([[np.nan], [1.0], [1.0], [np.nan]])
    inside = np.array([True, True, False, False])
    rule = find_rule(inside, ["x"], values, [("pet", ("cat", "dog"), np.array([0, 0, 1, -1], dtype=np.int32))])
    assert str(rule) == "pet = cat"
    assert (rule.precision, rule.recall) == (1.0, 1.0)


def test_no_rule_for_all_rows_or_none():
    values = np.arange(4.0)[:, None]
    assert find_rule(np.ones(4, dtype=bool), ["x"], values) is None
    assert find_rule(np.zeros(4, dtype=bool), ["x"], values) is None


@given(seed=st.integers(0, 10_000), n=st.integers(4, 60), d=st.integers(1, 4))
@settings(max_examples=60, deadline=None)
def test_rule_says_what_it_picks(seed, n, d):
    rng = np.random.default_rng(seed)
    values = rng.integers(0, 6, size=(n, d)).astype(float)
    values[rng.random((n, d)) < 0.1] = np.nan
    inside = rng.random(n) < 0.4
    weights = rng.integers(1, 4, size=n).astype(float)
    rule = find_rule(inside, [f"c{j}" for j in range(d)], values, weights=weights)
    if rule is None:
        return
    picked = holds(rule, [f"c{j}" for j in range(d)], values)
    assert (rule.precision, rule.recall) == pytest.approx(precision_and_recall(inside, picked, weights))
    # A weight counts as repetition.
    times = weights.astype(int)
    again = find_rule(np.repeat(inside, times), [f"c{j}" for j in range(d)], np.repeat(values, times, axis=0))
    assert again.precision == pytest.approx(rule.precision)
    assert again.recall == pytest.approx(rule.recall)


@given(low=st.floats(-1e6, 1e6), gap=st.floats(1e-9, 1e6))
@settings(max_examples=200, deadline=None)
def test_round_between_stays_between(low, gap):
    high = low + gap
    if high > low:
        assert low <= round_between(low, high) < high


# ---------------------------------------------------------------- decisions


def test_scaling_is_decided_with_a_reason():
    rng = np.random.default_rng(0)
    units = rng.normal(size=(50, 3)) * [1.0, 1000.0, 5.0]
    alike = rng.normal(size=(50, 3)) * [1.0, 2.0, 3.0]
    pixels = rng.integers(0, 256, size=(300, 9)) * (rng.random((300, 9)) < [0.02] * 4 + [0.9] * 5)
    pixels[0], pixels[1] = 0, 255
    names = tuple("abc")
    assert decide_scaling(units, names, "auto", "auto", categories=False).scale
    assert not decide_scaling(alike, names, "auto", "auto", categories=False).scale
    found = decide_scaling(pixels.astype(float), names, "auto", "auto", categories=False)
    assert (found.scale, "same range" in found.reason) == (False, True)
    found = decide_scaling(None, names, "auto", "auto", categories=False)
    assert (found.scale, found.metric) == (False, "cosine")
    assert "as asked" in decide_scaling(units, names, False, "auto", categories=False).reason


def test_levels_beyond_the_shown_are_other():
    cells = np.array([str(i % 40) for i in range(400)], dtype=object)
    levels, codes = coded(cells)
    assert levels[-1] == "(other)"
    assert codes.max() == len(levels) - 1


def test_names_are_all_different():
    from foldwise.selection.explore.result import Trait

    same = (Trait("a", 1.0, 0.0, 2.0), Trait("b", 1.0, 0.0, 1.0))
    third = (*same, Trait("c", 1.0, 0.0, 0.9))
    found = names_of([same, third, same], [(), (), ()])
    assert len(set(found)) == 3


# ---------------------------------------------------------------- outliers


def test_limits_hold_for_normal_rows():
    found, rows = 0, 0
    for seed in range(30):
        x = np.random.default_rng(seed).normal(size=(300, 6)) * [9, 5, 1, 1, 1, 1]
        pca = fw.PCA(6).fit(x)
        t2 = ((pca.scores(x)[:, :2] ** 2) / pca.explained_variance_[:2]).sum(axis=1)
        rest = (pca.scores(x)[:, 2:] ** 2).sum(axis=1)
        found += np.count_nonzero(t2 > _t2_limit(300, 2)) + np.count_nonzero(rest > _residual_limit(pca, 2))
        rows += 300
    assert 6 <= found <= 36  # 18 of the 9,000 rows are expected beyond one limit or the other


def test_t2_limit_is_chi_squared_for_many_rows():
    assert _t2_limit(10**7, 3) == pytest.approx(chi2.ppf(0.999, 3), rel=1e-4)


def test_outliers_are_found_with_their_column():
    x = np.random.default_rng(0).normal(size=(200, 4))
    x[17, 2] += 30.0
    found = explore(x)
    assert found.outliers.rows[0] == 17
    assert found.outliers.columns[0] == "x2"


# ---------------------------------------------------------------- the whole


def test_three_groups():
    x = blobs()
    found = explore(x)
    assert found.n_clusters == 3
    assert fw.adjusted_rand(np.repeat(range(3), 60), found.labels) > 0.98
    assert sorted(one.rows for one in found.summaries) == sorted(np.bincount(found.labels).tolist())
    for one in found.summaries:
        assert one.rule.precision > 0.9
        assert all(found.labels[row] == one.number for row in one.exemplars)
        assert one.verdict in ("stable", "very stable")
    assert found.ensemble_agreement > 0.95
    assert not found.unfinished
    assert found.points.rows.tolist() == list(range(180))


def test_one_cloud():
    found = explore(np.random.default_rng(3).normal(size=(150, 3)))
    assert found.n_clusters == 1
    assert found.clusters is None
    assert (found.labels == 0).all()
    assert (found.model.predict(np.zeros((4, 3))) == 0).all()


def test_same_bits_for_threads_and_blocks():
    x = blobs(seed=2)
    one, other = explore(x, n_threads=1), explore(x, n_threads=2)
    assert one.labels.tobytes() == other.labels.tobytes()
    assert one.confidence.tobytes() == other.confidence.tobytes()
    assert one.distances.tobytes() == other.distances.tobytes()


def test_file_and_array_agree(tmp_path):
    x = blobs(seed=4)
    path = tmp_path / "x.csv"
    np.savetxt(path, x, delimiter=",", header="a,b,c", comments="", fmt="%.17g")
    found, same = explore(str(path)), explore(x)
    assert np.array_equal(found.labels, same.labels)
    assert found.names == ("a", "b", "c")


def test_float32_finds_the_same_groups():
    x = blobs(seed=5)
    assert fw.adjusted_rand(explore(x).labels, explore(x.astype(np.float32)).labels) == 1.0


def test_weights_mean_repetition():
    x, times = blobs(n=40, seed=6), np.random.default_rng(0).integers(1, 4, size=120)
    found, repeated = explore(x, weights=times.astype(float)), explore(np.repeat(x, times, axis=0))
    assert found.n_clusters == repeated.n_clusters
    assert np.array_equal(np.repeat(found.labels, times), repeated.labels)
    assert found.pca.explained_variance_ == pytest.approx(repeated.pca.explained_variance_)


def test_sparse_rows_are_compared_by_direction():
    rng = np.random.default_rng(0)
    dense = rng.random((120, 30)) * (rng.random((120, 30)) < 0.2)
    dense[:60, :5] += rng.random((60, 5)) * 3
    dense[60:, 5:10] += rng.random((60, 5)) * 3
    found = explore(sparse.csr_array(dense), n_clusters=2)
    assert (found.metric, found.scale) == ("cosine", False)
    assert fw.adjusted_rand(np.repeat([0, 1], 60), found.labels) > 0.9
    assert all(found.labels[row] == one.number for one in found.summaries for row in one.exemplars)


def test_categories_alone_are_encoded():
    import pandas as pd

    rng = np.random.default_rng(0)
    kind = rng.integers(2, size=120)
    table = pd.DataFrame(
        {"a": np.where(kind, "x", "y"), "b": np.where(kind, "u", "v"), "c": rng.choice(list("pq"), 120)}
    )
    found = explore(table, n_clusters=2)
    assert found.scale
    assert fw.adjusted_rand(kind, found.labels) == 1.0


def test_missing_cells_and_rows_without_any():
    x = blobs(seed=7)
    rng = np.random.default_rng(0)
    x[rng.random(x.shape) < 0.1] = np.nan
    x[5] = np.nan
    found = explore(x)
    assert found.labels[5] == -1
    assert np.isnan(found.confidence[5])
    assert found.n_clusters == 3


def test_model_is_saved_and_applied(tmp_path):
    x = blobs(seed=8)
    found = explore(x)
    fw.save(found.model, tmp_path / "m.fw")
    loaded = fw.load(tmp_path / "m.fw")
    assert np.array_equal(loaded.predict(x), found.labels)
    assert np.array_equal(loaded.transform(x), found.pca.transform(x)[:, : loaded.n_components_])
    with pytest.raises(ParameterError, match="made by"):
        loaded.fit(x)


def test_larger_tables_use_a_sample_and_assign_every_row(monkeypatch):
    monkeypatch.setattr(steps, "_STABILITY_ROWS", 600)
    x = blobs(n=700, seed=9)
    found = explore(x, max_rows=1000)
    assert found.sampled_rows == 1000
    assert len(found.labels) == len(found.confidence) == len(x)
    assert np.array_equal(found.labels, found.clusters.predict(x))
    assert fw.adjusted_rand(np.repeat(range(3), 700), found.labels) > 0.98
    assert len(found.points.rows) >= 1000
    assert found.confidence.min() > 0.5


def test_shares_of_kept_clusters_by_products_are_those_of_predict():
    x = blobs(seed=10)
    x[3, 1] = np.nan
    fits = [KMeans(3, missing="model", scale=True, random_state=seed).fit(x) for seed in range(4)]
    labels = fits[0].labels_
    same = np.append(np.arange(3, dtype=np.int32), np.int32(-2))
    task = _ShareKept.of(fits, [same] * 4)
    from foldwise.data.missing import allow_missing

    block = next(iter(allow_missing(fw.scan(x)).pieces())).load()
    wanted = np.mean([one.predict(x) == labels for one in fits], axis=0)
    assert task(block, labels) == pytest.approx(wanted)


def test_groups_of_other_shapes_are_left_to_a_mixture():
    rng = np.random.default_rng(0)
    x = np.concatenate([rng.normal(size=(200, 2)) * [6, 0.3], rng.normal(size=(200, 2)) * [6, 0.3] + [0, 3]])
    found = explore(x, n_clusters=2, scale=False)
    assert found.comparison.chosen == "mixture"
    assert fw.adjusted_rand(np.repeat([0, 1], 200), found.labels) > 0.95
    assert isinstance(found.clusters, fw.GaussianMixture)


def test_a_row_far_out_does_not_become_a_group():
    x = np.concatenate(
        [np.random.default_rng(0).normal(size=(150, 3)), np.random.default_rng(1).normal(size=(150, 3)) + 8]
    )
    found = explore(np.vstack([x, [60.0, -60.0, 3.0]]))
    assert found.n_clusters == 2
    assert all(one.verdict in ("stable", "very stable") for one in found.summaries)
    assert "did not take part in the vote" in found.number.notes[-1]


@pytest.mark.parametrize("seed", [1, 2])
def test_the_order_of_rows_does_not_matter(seed):
    x = np.random.default_rng(20).normal(size=(120, 3)) * [3, 2, 1]
    x[:50] += [5, 3, 0]
    order = np.random.default_rng(seed).permutation(len(x))
    found, other = explore(x), explore(x[order])
    assert found.n_clusters == other.n_clusters
    assert [(vote.rule, vote.chosen) for vote in found.number.votes] == [(v.rule, v.chosen) for v in other.number.votes]
    assert fw.adjusted_rand(found.labels[order], other.labels) == 1.0
    assert found.comparison == other.comparison or found.comparison.gain == pytest.approx(other.comparison.gain)


def test_very_many_columns_need_no_square_matrix():
    x = np.random.default_rng(0).normal(size=(30, 12_000))
    found = explore(x, n_clusters=2)
    assert found.distances.shape == (30, 2)
    with pytest.raises(DataError, match="too many to fill"):
        found.pca.transform(np.where(np.arange(12_000) == 5, np.nan, x[:2]))


def test_fewer_different_rows_than_groups():
    with pytest.raises(DataError, match="fewer different rows"):
        explore(np.repeat([[1.0, 2.0], [3.0, 5.0]], 20, axis=0), n_clusters=5)


def test_one_verdict_for_each_group():
    found = explore(blobs(seed=14))
    from foldwise.report.explore import explore_report
    from foldwise.report.explore.summary import summary_of

    shown = str(summary_of(found)) + str(explore_report(found))
    assert "could be noise" not in shown or any(one.verdict == "could be noise" for one in found.summaries)


def test_weights_mean_repetition_in_the_overview():
    x = blobs(n=30, seed=15)
    times = np.where(np.arange(90) < 45, 5, 1)
    found = explore(x, weights=times.astype(float), n_clusters=2).overview
    same = explore(np.repeat(x, times, axis=0), n_clusters=2).overview
    assert [one.mean for one in found.columns] == pytest.approx([one.mean for one in same.columns])
    assert [one.deviation for one in found.columns] == pytest.approx([one.deviation for one in same.columns])
    assert found.correlation == pytest.approx(same.correlation)
    assert found.columns[0].counts == pytest.approx(same.columns[0].counts)


def test_rules_of_a_sample_are_measured_on_all_rows():
    x = blobs(n=700, apart=4.0, seed=16)
    found = explore(x, max_rows=1000, n_clusters=3)
    for one in found.summaries:
        picked = holds(one.rule, ["x0", "x1", "x2"], x)
        inside = found.labels == one.number
        wanted = precision_and_recall(inside, picked, np.ones(len(x)))
        assert (one.rule.precision, one.rule.recall) == pytest.approx(wanted)


def test_tables_of_many_columns_have_rules_and_values(tmp_path):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(80, 520))
    x[:40, :30] += 3.0
    path = tmp_path / "wide.csv"
    np.savetxt(path, x, delimiter=",", header=",".join(f"c{j}" for j in range(520)), comments="", fmt="%.5g")
    found = explore(str(path))
    assert found.n_clusters == 2
    assert all(one.rule is not None for one in found.summaries)
    assert len(found.points.columns) == 60
    assert found.overview.columns[3].low is not None


def test_a_mixture_leaves_rows_without_any_value_out():
    rng = np.random.default_rng(0)
    x = np.concatenate([rng.normal(size=(200, 2)) * [6, 0.3], rng.normal(size=(200, 2)) * [6, 0.3] + [0, 3]])
    x[7] = np.nan
    found = explore(x, n_clusters=2, scale=False)
    assert found.comparison.chosen == "mixture"
    assert found.labels[7] == -1
    assert sum(one.rows for one in found.summaries) == 399
    assert np.array_equal(found.model.predict(x), found.labels)


def test_its_models_know_their_rows():
    x = blobs(seed=17)
    found = explore(x)
    assert found.pca.report().lead
    assert found.kmeans.report().lead
    frame = found.frame()
    assert frame["cluster"].tolist() == found.labels.tolist()
    assert len(found.sentences) == 5
    assert found.sentences[0] in repr(found).replace("\n  ", " ")


# ---------------------------------------------------------------- stopping, and bad input


def test_a_stopped_stability_is_no_verdict(monkeypatch):
    from dataclasses import replace

    from foldwise.fold.outcome import Reason

    whole = steps.stability

    def stopped(*given, **options):
        made = whole(*given, **options)
        return replace(made, outcome=replace(made.outcome, reason=Reason.INTERRUPTED))

    monkeypatch.setattr(steps, "stability", stopped)
    with pytest.warns(NotFinishedWarning):
        found = explore(blobs(seed=18))
    assert found.stability is None
    assert not any(one.verdict for one in found.summaries)
    assert "found again" not in found.sentences[2]


@pytest.mark.parametrize("step", ["number_of_directions", "outliers", "number_of_groups", "groups", "stability"])
def test_ctrl_c_keeps_what_is_done(monkeypatch, step):
    def stop(self):
        raise KeyboardInterrupt

    monkeypatch.setattr(steps.Steps, step, stop)
    with pytest.warns(NotFinishedWarning, match="not done"):
        found = explore(blobs(seed=11))
    assert found.unfinished
    assert found.pca.n_components_ == 3
    assert found.points is not None
    from foldwise.report.explore import explore_report
    from foldwise.report.html import as_html

    assert "not" in " ".join(explore_report(found).lead)
    assert as_html(explore_report(found))


def test_resuming_gives_the_same_and_repeats_no_long_step(monkeypatch, tmp_path):
    x, place = blobs(seed=13), tmp_path / "kept"
    whole = explore(x)

    def stop(self):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(steps.Steps, "consensus", stop)
        with pytest.warns(NotFinishedWarning):
            explore(x, checkpoint=place)
    assert (place / "stability.fw").exists()
    with pytest.raises(StoreError, match="other data or other parameters"):
        explore(x[1:], checkpoint=place)

    def never(*_, **__):
        raise AssertionError

    with monkeypatch.context() as patch:
        for name in ("choose_clusters", "stability"):
            patch.setattr(steps, name, never)
        found = explore(x, checkpoint=place)
    assert not place.exists()
    assert found.labels.tobytes() == whole.labels.tobytes()
    assert found.confidence.tobytes() == whole.confidence.tobytes()
    assert found.number.votes == whole.number.votes


def test_a_folder_with_something_else_is_no_checkpoint(tmp_path):
    (tmp_path / "letter.txt").write_text("keep me")
    with pytest.raises(OutputError, match="no checkpoint"):
        explore(blobs(), checkpoint=tmp_path)
    assert (tmp_path / "letter.txt").read_text() == "keep me"


def test_ctrl_c_before_anything_is_done(monkeypatch):
    def stop(self):
        raise KeyboardInterrupt

    monkeypatch.setattr(steps.Steps, "directions", stop)
    with pytest.raises(KeyboardInterrupt):
        explore(blobs())


@pytest.mark.parametrize(
    ("x", "what"),
    [
        (np.ones((50, 3)), "constant"),
        (np.arange(20.0)[:, None], "only one column"),
        (np.random.default_rng(0).random((3, 4)), "too few"),
    ],
)
def test_nothing_to_explore(x, what):
    with pytest.raises(DataError, match=what):
        explore(x)


@pytest.mark.parametrize(
    "options",
    [
        {"scale": "maybe"},
        {"metric": "taxi"},
        {"n_clusters": 0},
        {"max_clusters": 1},
        {"max_rows": 5},
        {"columns": ["a"]},
    ],
)
def test_bad_options(options):
    with pytest.raises(ParameterError):
        explore(blobs(), **options)


def test_no_warnings():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        explore(blobs(seed=12))
