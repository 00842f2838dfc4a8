"""The number of clusters: what the votes say of planted clusters and of noise, and how a run ends."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse
from sklearn.metrics import calinski_harabasz_score, davies_bouldin_score, silhouette_score

import foldwise as fw
from foldwise.errors import DataError, FoldwiseWarning, NotFinishedWarning, ParameterError
from foldwise.fold.outcome import Reason
from foldwise.selection.clusters.choose import _decided
from foldwise.selection.clusters.criteria import CRITERIA
from foldwise.selection.clusters.dip import n_groups, neighbours, separated
from foldwise.selection.clusters.references import reference_rows
from foldwise.selection.clusters.rows import Rows
from foldwise.selection.clusters.sweep import fitted, nearest


def three(n=40, d=2, seed=0):
    rng = np.random.default_rng(seed)
    centres = np.zeros((3, d))
    centres[1, 0], centres[2, 1] = 8.0, 8.0
    return np.concatenate([rng.standard_normal((n, d)) + centre for centre in centres])


@pytest.fixture(scope="module")
def found():
    return fw.choose_clusters(three(), range(1, 7))


def test_planted(found):
    assert found.n_clusters == 3
    assert found.found
    assert found.strength > 0.75
    assert found.sentence.startswith("There are clearly 3 clusters")
    assert [one.rule for one in found.votes] == list(CRITERIA)
    assert found.outcome.converged
    assert {one.rule: one.chosen for one in found.votes if one.rule in ("dip", "bic", "silhouette", "gap")} == {
        "dip": 3,
        "bic": 3,
        "silhouette": 3,
        "gap": 3,
    }


def test_figures_are_scikit_learns(found):
    x = three()
    table = found.table
    for k in (2, 3, 5):
        labels = nearest(x - x.mean(axis=0), found.centers[k] * _unit(x, found))
        assert table[str(k), "silhouette"] == pytest.approx(silhouette_score(x, labels), abs=1e-9)
        assert table[str(k), "calinski-harabasz"] == pytest.approx(calinski_harabasz_score(x, labels), rel=1e-9)
        assert table[str(k), "davies-bouldin"] == pytest.approx(davies_bouldin_score(x, labels), rel=1e-9)


def _unit(x, found):
    """The power of two that the judged rows were divided by."""
    reach = np.abs(x - x.mean(axis=0)).max()
    return 2.0 ** np.frexp(reach)[1]


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("kind", ["cube", "round", "long", "skewed", "heavy"])
def test_noise_has_no_clusters(kind, seed):
    rng = np.random.default_rng([seed, 5])
    normal = rng.standard_normal((300, 3))
    x = {
        "cube": rng.random((300, 3)),
        "round": normal,
        "long": normal * [5.0, 1.0, 1.0],
        "skewed": rng.gamma(2.0, size=(300, 3)),
        "heavy": normal / np.sqrt(rng.chisquare(3, (300, 1)) / 3),
    }[kind]
    answer = fw.choose_clusters(x, range(1, 9), "dip")
    assert answer.n_clusters == 1
    assert not answer.found
    assert answer.sentence.startswith("No clusters found")


def test_noise_by_all_criteria():
    answer = fw.choose_clusters(np.random.default_rng(3).random((200, 4)), range(1, 6))
    assert answer.n_clusters == 1
    assert answer.runner_up is None or answer.runner_up > 1


@pytest.mark.parametrize("d", [2, 10])
def test_touching(d):
    rng = np.random.default_rng(d)
    x = rng.standard_normal((300, d))
    x[::2, 0] += 4.0
    assert fw.choose_clusters(x, range(1, 6), ["dip", "prediction strength"]).n_clusters == 2


@pytest.mark.parametrize(
    ("votes", "number"),
    [
        ("dip 1, a 2, b 2, c 2, d 2, e 2, f 2", 2),  # nearly all others agree: a small group without a gap
        ("dip 1, a 2, b 2, c 2, d 2, e 3, f 4", 1),
        ("dip 1, a 2, b 2", 1),  # too few to overrule
        ("dip 2, a 1, b 1, c 1, d 1, e 2, f 2", 1),  # a gap by chance
        ("dip 2, a 1, b 1, c 1, d 3, e 2, f 3", 2),
        ("dip 3, a 1, b 4, c 4, d 4, e 2, f 2", 4),  # the most votes among those above 1
        ("a 2, b 1, c 1", 1),
        ("dip 1", 1),
    ],
)
def test_what_the_votes_decide(votes, number):
    cast = [fw.Vote(*one.split()[:1], *[int(one.split()[1])] * 3, "") for one in votes.split(", ")]
    cast = [replace(one, weight=2.0) if one.rule == "dip" else one for one in cast]
    found, strength, runner_up = _decided(cast)
    assert found == number
    assert 0 < strength <= 1
    assert runner_up != number


def test_rounded_columns_have_no_gaps():
    rng = np.random.default_rng(0)
    x = rng.integers(1, 6, (400, 3)).astype(float)  # answers on a scale of five
    assert fw.choose_clusters(x, range(1, 7), "dip").n_clusters == 1
    both = np.concatenate([x, x + 12])
    assert fw.choose_clusters(both, range(1, 7), "dip").n_clusters == 2


@pytest.mark.parametrize("change", ["float32", "offset", "scale", "order", "columns"])
def test_what_does_not_matter(change):
    x = three(d=3)
    moved = {
        "float32": x.astype(np.float32),
        "offset": x + 1e8,
        "scale": x * 1e-150,
        "order": x[np.random.default_rng(1).permutation(len(x))],
        "columns": np.column_stack([x, x[:, :1] * 2.0, np.ones(len(x))]),  # collinear, and constant
    }[change]
    assert fw.choose_clusters(moved, range(1, 6)).n_clusters == 3


def test_same_bits_for_threads_and_files(tmp_path):
    x = three(seed=2)
    np.save(tmp_path / "x.npy", x)
    one = fw.choose_clusters(x, range(1, 5), n_threads=1)
    read = fw.choose_clusters(str(tmp_path / "x.npy"), range(1, 5))
    for other in (fw.choose_clusters(x, range(1, 5), n_threads=3), read):
        assert other.votes == one.votes
        assert np.array_equal(other.table.values, one.table.values, equal_nan=True)


def test_equal_weights_change_nothing_but_counts():
    x = three(seed=3)
    plain = fw.choose_clusters(x, range(1, 5), ["dip", "silhouette"])
    weighted = fw.choose_clusters(x, range(1, 5), ["dip", "silhouette"], sample_weight=np.ones(len(x)))
    assert np.array_equal(plain.table.values, weighted.table.values, equal_nan=True)
    extra = np.concatenate([x, np.random.default_rng(0).random((30, 2)) * 50])
    left_out = np.concatenate([np.ones(len(x)), np.zeros(30)])
    without = fw.choose_clusters(extra, range(1, 5), ["dip", "silhouette"], sample_weight=left_out)
    assert np.array_equal(plain.table.values, without.table.values, equal_nan=True)


def test_partition_figures_take_weights_as_repetition():
    rng = np.random.default_rng(4)
    x, w = three(seed=4), rng.integers(1, 4, 120)
    labels = nearest(x, fitted(Rows(x, None, len(x)), 3, 0, "auto"))
    for name in ("silhouette", "calinski-harabasz", "davies-bouldin"):
        rows, repeated = Rows(x, w.astype(float), 120), Rows(np.repeat(x, w, axis=0), None, int(w.sum()))
        one = CRITERIA[name].figure(rows, labels, 3, 0, reference=False)[0]
        other = CRITERIA[name].figure(repeated, np.repeat(labels, w), 3, 0, reference=False)[0]
        assert one == pytest.approx(other, rel=1e-10)


def test_sample_of_many_rows():
    x = three(n=800)
    answer = fw.choose_clusters(x, range(1, 5), ["dip", "silhouette"], max_rows=500)
    assert answer.n_clusters == 3
    assert (answer.rows, answer.judged_rows) == (2400, 500)
    assert "sample of 500 of 2,400 rows" in answer.notes[0]


def test_sparse_and_wide():
    rng = np.random.default_rng(0)
    x = rng.random((120, 300)) * (rng.random((120, 300)) < 0.1)
    x[:60, :40] += 1.0
    for given in (x, scipy.sparse.csr_matrix(x)):
        answer = fw.choose_clusters(given, range(1, 4), ["dip", "silhouette"])
        assert answer.n_clusters == 2
        assert any("principal components" in note for note in answer.notes)


def test_cosine():
    rng = np.random.default_rng(1)
    way = np.concatenate([np.tile([5.0, 1, 1], (60, 1)), np.tile([1.0, 5, 1], (60, 1))])
    x = (way + rng.standard_normal((120, 3)) * 0.4) * rng.uniform(0.1, 10, (120, 1))
    assert fw.choose_clusters(x, range(1, 4), ["dip", "silhouette"], metric="cosine").n_clusters == 2


def test_missing_cells():
    x = three(n=60, d=4, seed=5)
    x[np.random.default_rng(0).random(x.shape) < 0.05] = np.nan
    with pytest.raises(DataError):
        fw.choose_clusters(x, range(1, 4))
    answer = fw.choose_clusters(x, range(1, 5), ["dip", "silhouette"], missing="model")
    assert answer.n_clusters == 3
    assert any("missing cells" in note for note in answer.notes)


def test_clusters_without_width_and_duplicates():
    x = np.repeat([[0.0, 0.0], [5.0, 5.0], [9.0, 0.0]], 20, axis=0)
    assert fw.choose_clusters(x, range(1, 5)).n_clusters in (1, 3)
    assert fw.choose_clusters(np.ones((30, 2)), range(1, 4)).n_clusters == 1


@pytest.mark.parametrize("n", [2, 3, 5, 9])
def test_tiny_tables(n):
    assert fw.choose_clusters(np.random.default_rng(n).random((n, 2))).n_clusters == 1


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"ks": []}, "whole numbers"),
        ({"ks": [0, 1]}, "whole numbers"),
        ({"ks": [1]}, "above 1"),
        ({"ks": 2.5}, "ks"),
        ({"criteria": "elbow"}, "elbow"),
        ({"criteria": []}, "criteria"),
        ({"max_rows": 10}, "max_rows"),
    ],
)
def test_bad_parameters(options, words):
    with pytest.raises(ParameterError, match=words):
        fw.choose_clusters(three(), **options)


def test_interrupt_keeps_what_is_finished(monkeypatch):
    def stop(self, sweep, repeat):
        raise KeyboardInterrupt

    monkeypatch.setattr(type(CRITERIA["stability"]), "_run", stop)
    with pytest.warns(NotFinishedWarning, match="stability"):
        answer = fw.choose_clusters(three(), range(1, 5))
    assert answer.n_clusters == 3
    assert answer.interrupted
    assert "stability" in answer.unfinished
    assert "dip" in [one.rule for one in answer.votes]


def test_resumes_with_the_same_bits(tmp_path, monkeypatch):
    x, place = three(), tmp_path / "votes.ck"
    whole = fw.choose_clusters(x, range(1, 5))
    kind = type(CRITERIA["gap"])
    keep = kind._inertias
    with monkeypatch.context() as patch:
        patch.setattr(kind, "_inertias", staticmethod(lambda sweep: (_ for _ in ()).throw(KeyboardInterrupt)))
        with pytest.warns(NotFinishedWarning):
            fw.choose_clusters(x, range(1, 5), checkpoint=place)
    assert place.exists()
    assert kind._inertias is keep
    done: list[str] = []
    dip = type(CRITERIA["dip"])
    monkeypatch.setattr(dip, "_run", lambda *_: done.append("dip"))
    again = fw.choose_clusters(x, range(1, 5), checkpoint=place)
    assert not done  # not computed a second time
    assert again.votes == whole.votes
    assert not place.exists()


def test_time_budget():
    with pytest.warns(NotFinishedWarning):
        answer = fw.choose_clusters(three(), range(1, 5), time_budget=1e-9)
    assert answer.n_clusters is None
    assert not answer.found
    assert answer.unfinished == tuple(CRITERIA)
    assert answer.sentence.startswith("Not finished: out of time")


def test_ctrl_c_within_a_fit_is_not_lost(monkeypatch, tmp_path):
    """A fit that Ctrl-C ends keeps its best so far and says nothing; the sweep must not take that for its result."""
    fit, count = fw.KMeans.fit, []

    def cut_short(self, *args, **options):
        fit(self, *args, **options)
        count.append(1)
        if len(count) == 6:
            self.outcome_ = replace(self.outcome_, reason=Reason.INTERRUPTED)
        return self

    monkeypatch.setattr(fw.KMeans, "fit", cut_short)
    with pytest.warns(NotFinishedWarning):
        answer = fw.choose_clusters(three(), range(1, 4), ["dip"], n_threads=1)
    assert answer.interrupted
    assert answer.unfinished == ("dip",)


def test_the_checkpoint_knows_its_rows(tmp_path):
    """Rows that differ only in the middle of a large table."""
    x, place = three(n=50), tmp_path / "votes.ck"
    with pytest.warns(NotFinishedWarning):
        fw.choose_clusters(x, range(1, 4), "dip", checkpoint=place, time_budget=1e-9)
    other = x.copy()
    other[70], other[71] = x[71], x[70]
    other[72] += 0.5
    with pytest.raises(fw.errors.StoreError, match="other data"):
        fw.choose_clusters(other, range(1, 4), "dip", checkpoint=place)


def test_copies_of_rows_are_no_evidence():
    noise = np.random.default_rng(0).standard_normal((150, 3))
    assert fw.choose_clusters(noise, range(1, 7), "dip", sample_weight=np.full(150, 50.0)).n_clusters == 1
    assert fw.choose_clusters(np.repeat(noise, 20, axis=0), range(1, 7), "dip").n_clusters == 1
    assert fw.choose_clusters(np.repeat(three(), 20, axis=0), range(1, 7), "dip").n_clusters == 3


def test_weights_that_are_shares_are_refused():
    with pytest.raises(DataError, match="repetitions"):
        fw.choose_clusters(three(), range(1, 4), sample_weight=np.full(120, 1 / 120))


def test_the_variance_ratio_is_compared_with_as_many_rows():
    """It grows with the number of rows, of which references have fewer."""
    x = np.random.default_rng(0).random((3000, 2))
    answer = fw.choose_clusters(x, range(1, 6), "calinski-harabasz")
    assert answer.n_clusters == 1


def test_groups_at_very_different_distances():
    rng = np.random.default_rng(0)
    for far in (1e5, 1e9):
        x = np.concatenate([rng.standard_normal((60, 2)) + np.array([at, 0.0]) for at in (0.0, 15.0, far, far + 15.0)])
        assert fw.choose_clusters(x, range(1, 7), "dip").n_clusters == 4


def test_the_largest_number_tried_is_told():
    answer = fw.choose_clusters(three(), range(1, 4), ["dip", "silhouette"])
    assert "3 is the most that was tried" in answer.sentence


def test_saved_and_loaded(found, tmp_path):
    fw.save(found, tmp_path / "votes.fw")
    again = fw.load(tmp_path / "votes.fw")
    assert again.votes == found.votes
    assert again.sentence == found.sentence


# ---------------------------------------------------------------- parts


def test_gaps_join_what_belongs_together():
    x = three(n=100)
    rows = Rows(x - x.mean(axis=0), None, len(x))
    for k in (3, 4, 5, 6):
        assert separated(rows, fitted(rows, k, 0, "auto"), 0)[0] <= 3
    groups, chance = separated(rows, fitted(rows, 3, 0, "auto"), 0)
    assert groups == 3
    assert chance < 1e-6


def test_groups_by_hand():
    pairs, chances = [(0, 1), (1, 2), (0, 2)], np.array([0.5, 0.001, 0.02])
    assert n_groups(3, pairs, chances, 0.05) == 2
    assert n_groups(3, pairs, chances, 0.01) == 1
    assert n_groups(3, [], np.zeros(0), 0.05) == 3


def test_neighbours_by_hand():
    centres = np.array([[0.0], [1.0], [5.0]])
    assert neighbours(np.array([[0.2], [4.0]]), centres) == [(0, 1), (1, 2)]


@pytest.mark.parametrize("kind", ["box", "radial"])
def test_references(kind):
    rng = np.random.default_rng(0)
    x = rng.standard_normal((500, 3)) @ np.diag([3.0, 1.0, 0.2])
    rows = Rows(x, None, 500)
    made = reference_rows(rows, kind, 0, 0)
    assert made.x.shape == x.shape
    if kind == "radial":
        assert np.cov(made.x.T).diagonal() == pytest.approx(np.cov(x.T).diagonal(), rel=0.25)
    else:
        reach = np.linalg.norm(np.abs(x).max(axis=0))
        assert np.abs(made.x).max() <= reach * 1.1
    assert not np.array_equal(made.x, reference_rows(rows, kind, 1, 0).x)
    assert np.array_equal(made.x, reference_rows(rows, kind, 0, 0).x)


def test_repr_lists_the_votes(found):
    text = repr(found)
    assert "criterion" in text.splitlines()[2]
    assert "prediction strength" in text


def test_no_warning_of_single_fits(recwarn):
    fw.choose_clusters(np.repeat(three(n=4), 8, axis=0), range(1, 5), "dip")
    assert not [one for one in recwarn if issubclass(one.category, FoldwiseWarning)]
