"""Stability: draws, tables without clusters, and what becomes of clusters that are there and of those that are not."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import scipy.sparse as sp
import scipy.stats
import sklearn.cluster
import sklearn.compose
import sklearn.mixture
import sklearn.pipeline
import sklearn.preprocessing
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linear_sum_assignment

import foldwise as fw
from foldwise.errors import DataError, NotFinishedWarning, ParameterError
from foldwise.fold import events
from foldwise.selection.one_group import OneGroup
from foldwise.selection.refit import Refit
from foldwise.selection.resample import Draw, _binomial, _poisson
from foldwise.selection.stability import matched, overlaps_of
from foldwise.stats.contingency import Contingency


def blobs(n=240, apart=9.0, d=2, seed=0):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n, d)) + apart * (np.arange(n) % 3)[:, None] * np.eye(1, d)


# ---------------------------------------------------------------- draws


@given(
    st.lists(st.floats(0.001, 0.999), min_size=1, max_size=20),
    st.floats(0.01, 200.0),
    st.integers(0, 300),
    st.floats(0.05, 0.6),
)
def test_numbers_of_draws_are_quantiles(chances, mean, trials, rate):
    u = np.array(chances)
    poisson = scipy.stats.poisson(mean)
    found = _poisson(u, np.full(len(u), mean))
    assert (poisson.cdf(found) >= u - 1e-9).all()
    assert (poisson.cdf(found - 1) <= u + 1e-9).all()
    binomial = scipy.stats.binom(trials, rate)
    found = _binomial(u, np.full(len(u), float(trials)), rate)
    assert (binomial.cdf(found) >= u - 1e-9).all()
    assert (binomial.cdf(found - 1) <= u + 1e-9).all()


@pytest.mark.parametrize("replace", [True, False])
def test_draws_depend_on_the_row_number_only(replace):
    draw = Draw(replace, 1 / 3, 7, 4)
    whole = draw.counts(0, 5000, None)
    parts = [draw.counts(start, 1250, None) for start in range(0, 5000, 1250)]
    np.testing.assert_array_equal(np.concatenate(parts), whole)
    assert abs(whole.mean() - 1 / 3) < 0.03
    assert abs(whole.var() - (1 / 3 if replace else 2 / 9)) < 0.04
    assert not np.array_equal(whole, Draw(replace, 1 / 3, 7, 5).counts(0, 5000, None))
    assert not np.array_equal(whole, Draw(replace, 1 / 3, 8, 4).counts(0, 5000, None))
    assert abs(np.corrcoef(whole[:-1], whole[1:])[0, 1]) < 0.05


@pytest.mark.parametrize("replace", [True, False])
@pytest.mark.parametrize("weight", [2.0, 30.0, 5000.0, 2.5])
def test_a_weight_is_drawn_like_repeated_rows(replace, weight):
    found = Draw(replace, 1 / 2, 0, 0).counts(0, 4000, np.full(4000, weight))
    variance = weight / 2 if replace else np.floor(weight) / 4 + (weight % 1) ** 2 / 4
    assert found.mean() == pytest.approx(weight / 2, abs=5 * np.sqrt(variance / 4000))
    assert found.var() == pytest.approx(variance, rel=0.15)
    assert (found >= 0).all()
    assert replace or (found <= weight).all()
    assert not Draw(replace, 1 / 2, 0, 0).counts(0, 10, np.zeros(10)).any()


@pytest.mark.parametrize("rate", [0.01, 0.2, 1 / 3, 0.5, 0.9])
@pytest.mark.parametrize("weight", [1.0, 7.0, 300.0, 499.0, 501.0, 600.0, 749.0, 800.0, 2400.0, 20_000.0])
def test_large_weights_are_drawn_as_often_as_they_say(rate, weight):
    even = (np.arange(2000) + 0.5) / 2000  # each quantile once: means and variances without chance
    for found, theirs in (
        (_binomial(even, np.full(2000, weight), rate), scipy.stats.binom(weight, rate)),
        (_poisson(even, np.full(2000, weight * rate)), scipy.stats.poisson(weight * rate)),
    ):
        assert found.mean() == pytest.approx(theirs.mean(), abs=0.02 * theirs.std() + 1e-9)
        assert found.std() == pytest.approx(theirs.std(), rel=0.02)


@pytest.mark.parametrize("replace", [True, False])
def test_weights_of_one_are_no_weights(replace):
    draw = Draw(replace, 1 / 3, 7, 4)
    np.testing.assert_array_equal(draw.counts(9, 3000, np.ones(3000)), draw.counts(9, 3000, None))


# ---------------------------------------------------------------- tables without clusters


def modes(values):
    """How often a histogram rises again after it has fallen, by more than chance."""
    counts, _ = np.histogram(values, 12, np.quantile(values, [0.01, 0.99]))
    peak = int(np.argmax(counts))
    slack = 4 * np.sqrt(counts.max())
    return 1 + int((np.diff(counts[: peak + 1]) < -slack).sum() + (np.diff(counts[peak:]) > slack).sum())


@pytest.mark.parametrize("kind", ["principal axes", "columns"])
@pytest.mark.parametrize(("dtype", "offset"), [(np.float64, 1e8), (np.float32, 0.0)])
def test_one_group_has_one_mode_and_the_same_spread(kind, dtype, offset):
    x = (blobs(1200, apart=6.0) + offset).astype(dtype)
    assert modes(x[:, 0]) > 1
    rows = OneGroup.of(x, None, kind).sample(20_000, np.random.default_rng(0), x.dtype)
    assert rows.dtype == dtype
    assert modes(rows[:, 0]) == 1
    np.testing.assert_allclose((rows - offset).mean(axis=0), (x - offset).mean(axis=0), atol=0.3)
    np.testing.assert_allclose((rows - offset).std(axis=0), (x - offset).std(axis=0), rtol=0.02)


@pytest.mark.parametrize("family", ["normal", "uniform", "gamma"])
def test_one_group_of_one_group_is_the_same(family):
    rng = np.random.default_rng(1)
    x = {"normal": rng.standard_normal, "uniform": rng.random, "gamma": lambda n: rng.gamma(2.0, 1.0, n)}[family](3000)
    rows = OneGroup.of(x[:, None], None, "columns").sample(3000, rng, x.dtype)
    assert scipy.stats.ks_2samp(x, rows[:, 0]).statistic < 0.05


@pytest.mark.parametrize("inside", [False, True])
def test_scikit_learn_without_a_seed_gives_the_same_every_time(inside):
    x = np.random.default_rng(0).standard_normal((300, 2))  # no clusters: each start ends elsewhere

    def model(seed=None):
        found = sklearn.cluster.KMeans(6, n_init=1, max_iter=3, random_state=seed)
        return sklearn.pipeline.make_pipeline(sklearn.preprocessing.StandardScaler(), found) if inside else found

    def asked(one, **more):
        return fw.stability(one, x, n_repeats=4, correct=False, **more)

    first, again = asked(model()), asked(model())
    np.testing.assert_array_equal(first.labels, again.labels)
    np.testing.assert_array_equal(first.overlaps, again.overlaps)
    assert len({tuple(row) for row in first.overlaps}) > 1
    own = model(5)
    np.testing.assert_array_equal(asked(own).labels, model(5).fit(x).predict(x))  # a seed that is given is kept
    assert (own[-1] if inside else own).random_state == 5
    repeats = [Refit.of(own, 0).fit(fw.scan(x), number) for number in (0, 1)]
    seeds = {(one[-1] if inside else one).random_state for one in repeats}
    assert len(seeds - {5}) == 2


def test_one_group_keeps_correlations_weights_and_gaps():
    rng = np.random.default_rng(2)
    x = rng.standard_normal((2000, 2)) @ np.array([[2.0, 1.8], [0.0, 0.5]])
    rows = OneGroup.of(x, None, "principal axes").sample(4000, rng, x.dtype)
    assert np.corrcoef(rows.T)[0, 1] == pytest.approx(np.corrcoef(x.T)[0, 1], abs=0.02)
    weights = rng.integers(0, 4, len(x)).astype(float)
    for kind in ("principal axes", "columns"):
        weighted, repeated = (
            OneGroup.of(x, weights, kind),
            OneGroup.of(np.repeat(x, weights.astype(int), axis=0), None, kind),
        )
        for (a, f), (b, g) in zip(weighted.quantiles, repeated.quantiles, strict=True):
            at = np.linspace(0.05, 0.95, 10)
            np.testing.assert_allclose(np.interp(at, f, a), np.interp(at, g, b), atol=0.2)
    x[:500, 0] = np.nan
    rows = OneGroup.of(x, None, "columns").sample(4000, rng, x.dtype)
    assert np.isnan(rows[:, 0]).mean() == pytest.approx(0.25, abs=0.03)
    constant = OneGroup.of(np.ones((5, 2)), None, "principal axes").sample(3, rng, x.dtype)
    np.testing.assert_allclose(constant, 1.0)


# ---------------------------------------------------------------- comparing two fits


def test_overlaps_and_matches_by_hand():
    """Of 5 + 5 rows in two clusters, the repeat has 6 and 4: one row goes over."""
    table = Contingency.of_table(np.array([[0.0, 5.0], [4.0, 1.0]]))
    found, by_chance = overlaps_of(table)
    np.testing.assert_allclose(found, [5 / 6, 4 / 5])
    # At random, a cluster of 5 shares 5 * 6 / 10 rows with the one of 6, which is more than 2 of 7 with the one of 4.
    np.testing.assert_allclose(by_chance, [3 / 8, 3 / 8])
    assert matched(table).tolist() == [1, 0, -2]


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 4)), min_size=1, max_size=60))
def test_overlaps_are_those_of_sets(rows):
    a, b = (np.array([row[i] for row in rows]) for i in (0, 1))
    found, _ = overlaps_of(Contingency.of(a, b, (4, 5)))
    for i in range(4):
        inside = set(np.flatnonzero(a == i))
        others = [set(np.flatnonzero(b == j)) for j in range(5)]
        expected = max((len(inside & one) / len(inside | one) if inside | one else 0.0) for one in others)
        assert found[i] == pytest.approx(expected)


# ---------------------------------------------------------------- what is found


def test_clusters_that_are_there_and_one_too_many():
    x = blobs()
    found = fw.stability(fw.KMeans(3), x, n_repeats=30)
    assert found.verdicts == ("very stable",) * 3
    assert found.jaccard.min() > 0.99
    assert found.corrected.min() > 0.9
    assert (found.confidence > 0.9).mean() > 0.99
    assert found.n_repeats == found.asked == 30
    assert found.fresh_rows == pytest.approx(240)
    assert found.drawn == pytest.approx(120)
    assert (
        found.sentence
        == "The clusters are very stable; 100% of the rows keep their cluster with a confidence of 0.9 or more."
    )
    more = fw.stability(fw.KMeans(5), x, n_repeats=30)
    assert sorted(more.verdicts).count("very stable") < 5
    assert min(more.jaccard) < 0.75
    assert (
        str(more.n_clusters - sorted(more.verdicts).count("very stable")) in more.sentence
        or "not found" in more.sentence
    )


@pytest.mark.parametrize("kind", ["long Gaussian", "square", "round"])
def test_clusters_forced_on_noise(kind):
    """A long cloud is cut in two at the same place every time, and a square in four: the plain Jaccard proves nothing."""
    rng, k = np.random.default_rng(3), 4 if kind == "square" else 2
    x = rng.random((600, 2)) if kind == "square" else rng.standard_normal((600, 2)) * ([6, 1] if "long" in kind else 1)
    found = fw.stability(fw.KMeans(k), x, n_repeats=40)
    if kind != "round":
        assert found.jaccard.max() > 0.85
    assert found.corrected.max() < 0.6
    assert set(found.verdicts) <= {"could be noise", "dissolves"}


def test_confidence_is_calibrated():
    """Rows on the border: of those with confidence c, about c keep their cluster in fits to fresh rows."""
    said, kept = [], []
    for seed in range(6):
        rng = np.random.default_rng(seed)

        def draw(rng=rng):
            return rng.standard_normal((300, 2)) + 2.2 * (rng.random(300) < 0.4)[:, None] * [1.0, 0.0]

        x = draw()
        found = fw.stability(fw.KMeans(2), x, n_repeats=60, correct=False, random_state=seed)
        share = np.zeros(len(x))
        for _ in range(15):
            fresh = fw.KMeans(2).fit(draw()).predict(x)
            table = np.array([[np.sum((found.labels == i) & (fresh == j)) for j in (0, 1)] for i in (0, 1)])
            place = linear_sum_assignment(-table)[1]
            share += place[found.labels] == fresh
        said.append(found.confidence)
        kept.append(share / 15)
    c, m = np.concatenate(said), np.concatenate(kept)
    unsure = (c > 0.6) & (c < 0.97)
    assert unsure.sum() > 200
    assert abs(c[unsure].mean() - m[unsure].mean()) < 0.04
    assert m[c >= 0.97].mean() > 0.98


MODELS = [
    fw.KMeans(3),
    fw.KMeans(3, scale=True, search="breathing"),
    fw.MiniBatchKMeans(3),
    fw.BisectingKMeans(3),
    fw.SoftKMeans(3),
    fw.GaussianMixture(3),
    fw.KernelKMeans(3, kernel="rbf"),
    sklearn.cluster.KMeans(3, n_init=3),
    sklearn.mixture.GaussianMixture(3),
]


@pytest.mark.parametrize(
    "model", MODELS, ids=lambda model: f"{type(model).__module__.split('.')[0]} {type(model).__name__}"
)
def test_any_model_with_predict(model):
    x = blobs(150)
    found = fw.stability(model, x, n_repeats=8, correct=False)
    assert found.jaccard.min() > 0.8
    assert np.isnan(found.one_group)
    assert not hasattr(model, "n_features_in_")  # the model itself is left alone
    assert found.verdicts == tuple(
        "very stable" if j >= 0.85 else "stable" for j in found.jaccard
    )  # by the plain value


def test_a_fitted_model_is_judged_by_its_own_labels():
    x = blobs()
    model = fw.KMeans(3, init=x[:3], n_init=1).fit(x)
    found = fw.stability(model, x, n_repeats=5, correct=False)
    np.testing.assert_array_equal(found.labels, model.labels_)
    merged = fw.GaussianMixture(5, random_state=1).fit(x).merge(x, 3)
    found = fw.stability(merged, x, n_repeats=5, correct=False)
    assert found.n_clusters == 3
    assert found.jaccard.min() > 0.7


@pytest.mark.parametrize("method", ["bootstrap", "subsample"])
def test_bits_do_not_depend_on_threads_or_place(tmp_path, method):
    x = blobs(20_000, apart=4.0, d=40).astype(np.float32)  # several blocks
    np.save(tmp_path / "x.npy", x)
    one, two, file = (
        fw.stability(fw.KMeans(3), X, n_repeats=3, correct=X is not x, sample_size=2000, method=method, n_threads=n)
        for X, n in [(x, 1), (x.copy(), 2), (str(tmp_path / "x.npy"), 2)]
    )
    assert one.confidence.tobytes() == two.confidence.tobytes() == file.confidence.tobytes()
    assert one.overlaps.tobytes() == two.overlaps.tobytes() == file.overlaps.tobytes()
    assert two.one_group == file.one_group
    assert one.drawn == 2000
    assert one.fresh_rows == pytest.approx(2000 * 20_000 / (18_000 if method == "bootstrap" else 16_000))


def test_weights_repeat():
    x = blobs(200, apart=3.5)
    twice = fw.stability(fw.KMeans(3), x, n_repeats=60, sample_weight=np.full(200, 2.0))
    repeated = fw.stability(fw.KMeans(3), np.repeat(x, 2, axis=0), n_repeats=60)
    assert twice.fresh_rows == repeated.fresh_rows == 400
    np.testing.assert_array_equal(twice.weights, repeated.weights)
    np.testing.assert_allclose(twice.jaccard, repeated.jaccard, atol=0.05)
    assert twice.one_group == pytest.approx(repeated.one_group, abs=0.1)
    assert np.abs(np.repeat(twice.confidence, 2) - repeated.confidence).mean() < 0.04
    # Rows of weight 0 are labelled, but neither drawn nor counted.
    more = np.concatenate([x, x[:40] + 0.5])
    with_none = fw.stability(
        fw.KMeans(3), more, n_repeats=10, sample_weight=np.repeat([1.0, 0.0], [200, 40]), correct=False
    )
    without = fw.stability(fw.KMeans(3), x, n_repeats=10, sample_weight=np.ones(200), correct=False)
    np.testing.assert_array_equal(with_none.overlaps, without.overlaps)
    np.testing.assert_array_equal(with_none.confidence[:200], without.confidence)
    assert len(with_none.confidence) == 240
    # A model that takes no weights has its rows repeated.
    for weights in (np.full(200, 2.0), np.full(200, 1.5)):
        assert fw.stability(
            sklearn.cluster.KMeans(3, n_init=1), x, n_repeats=3, sample_weight=weights, correct=False
        ).jaccard.all()


def test_rows_count_by_their_weights_in_means_and_words(tmp_path):
    """Three rows of confidence 1, 0.5 and 0.9 in cluster 0, one in no cluster, and weights as repetition of them."""
    found = fw.stability(fw.KMeans(2), blobs(60), n_repeats=2, correct=False)
    labels, w = np.array([0, 0, 0, -1, 1], dtype=np.int32), np.array([1.0, 6.0, 1.0, 5.0, 2.0])
    confidence = np.array([1.0, 0.5, 0.9, np.nan, 1.0])
    weighted = dataclasses.replace(found, labels=labels, confidence=confidence, row_weights=w)
    assert weighted.table["0", "confidence"] == pytest.approx((1.0 + 6 * 0.5 + 0.9) / 8)
    assert "40% of the rows keep" in weighted.sentence
    times = w.astype(int)
    repeated = dataclasses.replace(found, labels=np.repeat(labels, times), confidence=np.repeat(confidence, times))
    assert repeated.table["0", "confidence"] == pytest.approx(weighted.table["0", "confidence"])
    assert repeated.sentence == weighted.sentence
    given = fw.stability(fw.KMeans(3), blobs(60), n_repeats=3, sample_weight=np.arange(60) % 4, correct=False)
    np.testing.assert_array_equal(given.row_weights, np.arange(60) % 4)
    fw.save(given, tmp_path / "s.fw")
    assert repr(fw.load(tmp_path / "s.fw")) == repr(given)


def test_offset_missing_cells_and_sparse_rows():
    x = blobs()
    plain = fw.stability(fw.KMeans(3), x, n_repeats=10)
    far = fw.stability(fw.KMeans(3), (x + 1e4).astype(np.float32), n_repeats=10)
    np.testing.assert_allclose(far.jaccard, plain.jaccard, atol=0.02)
    assert far.one_group == pytest.approx(plain.one_group, abs=0.05)
    gaps = np.column_stack([x, x[:, 0] + np.random.default_rng(1).standard_normal(len(x))])
    gaps[::7, 0] = np.nan
    gaps[3] = np.nan
    found = fw.stability(fw.KMeans(3, missing="model"), gaps, n_repeats=10)
    assert np.isnan(found.confidence[3])
    assert np.isfinite(np.delete(found.confidence, 3)).all()
    assert found.verdicts == ("very stable",) * 3
    for policy in ("mean", "drop"):
        assert fw.stability(fw.KMeans(3, missing=policy), gaps, n_repeats=3).n_repeats == 3
    with pytest.raises(DataError, match="row 0"):
        fw.stability(fw.KMeans(3), gaps, n_repeats=3)
    sparse = fw.stability(fw.KMeans(3), sp.csr_array(x), n_repeats=10)
    np.testing.assert_allclose(sparse.jaccard, plain.jaccard, atol=0.02)
    assert sparse.notes == ("not corrected: no table of the same shape without clusters is made if rows are sparse",)
    assert np.isnan(sparse.corrected).all()
    assert sparse.verdicts == ("very stable",) * 3


def test_frames_keep_their_names(recwarn):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(blobs(), columns=["a", "b"])
    found = fw.stability(fw.KMeans(3).fit(frame), frame, n_repeats=4)
    assert found.jaccard.min() > 0.9
    assert not recwarn.list


# ---------------------------------------------------------------- stopping, resuming, keeping


class Stop:
    """Stands in for Ctrl-C during the fit of one repeat."""

    def __init__(self, monkeypatch, at):
        self.at, self.real = at, Refit.fit
        monkeypatch.setattr(Refit, "fit", lambda refit, rows, number: self(refit, rows, number))

    def __call__(self, refit, rows, number):
        if number == self.at:
            raise KeyboardInterrupt
        return self.real(refit, rows, number)


def test_ctrl_c_keeps_finished_repeats_and_a_checkpoint_resumes(monkeypatch, tmp_path):
    x, place = blobs(), tmp_path / "stability.checkpoint"
    whole = fw.stability(fw.KMeans(3), x, n_repeats=10)
    with monkeypatch.context() as patched:
        Stop(patched, 6)
        with pytest.warns(NotFinishedWarning, match="interrupted; the result is from 6 of 10 repeats and 0 tables"):
            part = fw.stability(fw.KMeans(3), x, n_repeats=10, checkpoint=place)
    assert part.interrupted
    np.testing.assert_array_equal(part.overlaps, whole.overlaps[:6])
    with pytest.raises(fw.errors.StoreError, match="other data or other parameters"):
        fw.stability(fw.KMeans(2), x, n_repeats=10, checkpoint=place)
    again = fw.stability(fw.KMeans(3), x, n_repeats=10, checkpoint=place)
    assert again.confidence.tobytes() == whole.confidence.tobytes()
    assert again.one_group == whole.one_group
    assert not place.exists()
    with monkeypatch.context() as patched:
        Stop(patched, 0)
        with pytest.raises(KeyboardInterrupt):
            fw.stability(fw.KMeans(3), x, n_repeats=10)
    with pytest.raises(DataError, match="time budget"):
        fw.stability(fw.KMeans(3), x, time_budget=0.0)


def pipeline(k=3, jobs=None):
    scaled = sklearn.compose.ColumnTransformer([("all", sklearn.preprocessing.StandardScaler(), [0, 1])], n_jobs=jobs)
    return sklearn.pipeline.make_pipeline(scaled, sklearn.cluster.KMeans(k))


@pytest.mark.parametrize(
    ("model", "same", "other"),
    [
        (
            fw.KMeans(3, n_threads=1),
            fw.KMeans(3, n_threads=2, algorithm="lloyd", verbose=False),
            fw.KMeans(3, max_iter=7),
        ),
        (pipeline(), pipeline(jobs=1), pipeline(k=2)),
    ],
)
def test_a_checkpoint_is_tied_to_what_affects_the_result(monkeypatch, tmp_path, model, same, other):
    x, place = blobs(), tmp_path / "stability.checkpoint"
    whole = fw.stability(model, x, n_repeats=4, correct=False)
    with monkeypatch.context() as patched:
        Stop(patched, 2)
        with pytest.warns(NotFinishedWarning, match="2 of 4 repeats"):
            fw.stability(model, x, n_repeats=4, correct=False, checkpoint=place)
    with pytest.raises(fw.errors.StoreError, match="other data or other parameters"):
        fw.stability(other, x, n_repeats=4, correct=False, checkpoint=place)
    resumed = fw.stability(same, x, n_repeats=4, correct=False, checkpoint=place)
    assert not place.exists()
    np.testing.assert_array_equal(resumed.overlaps, whole.overlaps)


def test_progress_is_told_by_repeats():
    heard = []
    with events.listening(heard.append):
        fw.stability(fw.KMeans(3), blobs(), n_repeats=4, correct=False)
    steps = [event.number for event in heard if isinstance(event, events.StepDone)]
    assert steps[-4:] == [1, 2, 3, 4]


def test_a_result_is_saved(tmp_path):
    found = fw.stability(fw.KMeans(3), blobs(), n_repeats=4)
    fw.save(found, tmp_path / "s.fw")
    again = fw.load(tmp_path / "s.fw")
    assert repr(again) == repr(found)
    np.testing.assert_array_equal(again.confidence, found.confidence)
    assert "very stable" in repr(found)
    assert found.table["0", "jaccard"] == found.jaccard[0]


def test_what_cannot_be_judged():
    x = blobs()
    for wrong, words in [
        ({"method": "jackknife"}, "bootstrap, subsample"),
        ({"n_repeats": 0}, "at least 1"),
        ({"n_repeats": 2.5}, "whole number"),
        ({"sample_size": 0}, "number of rows"),
        ({"correct": "yes"}, "True or False"),
    ]:
        with pytest.raises(ParameterError, match=words):
            fw.stability(fw.KMeans(3), x, **wrong)
    with pytest.raises(ParameterError, match="at least two"):
        fw.stability(fw.KMeans(1), x)
    with pytest.raises(
        ParameterError, match="AgglomerativeClustering: stability needs a clustering with fit and predict"
    ):
        fw.stability(sklearn.cluster.AgglomerativeClustering(3), x)
    with pytest.raises(ParameterError, match="KMeans: stability needs"):
        fw.stability(fw.KMeans, x)
    with pytest.raises(ParameterError, match="precomputed"):
        fw.stability(fw.KernelKMeans(2, kernel="precomputed"), x @ x.T)
    with pytest.raises(DataError, match="about 5 rows would be drawn for each fit of 3 clusters"):
        fw.stability(fw.KMeans(3), x[:10])
    with pytest.raises(DataError, match="repetitions"):
        fw.stability(fw.KMeans(3), x, sample_weight=np.full(len(x), 1 / len(x)))
    with pytest.raises(DataError, match="features"):
        fw.stability(fw.KMeans(3).fit(x), x[:, :1])
