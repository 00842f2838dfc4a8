"""FeatureSelector by variance explained: against enumeration, by hand, its certificate, weights, dtypes, sources, bad input."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

import foldwise as fw
from foldwise.errors import DataError, ParameterError
from foldwise.selection.features.explained import ExplainedVariance

SEARCHES = ("forward", "backward", "floating", "swap", "exhaustive")


def share(X: np.ndarray, columns: Any, *, scale: bool = False, weights: np.ndarray | None = None) -> float:
    """The definition: least squares of all columns on some of them."""
    w = np.ones(len(X)) if weights is None else weights
    centred = (X - np.average(X, axis=0, weights=w)) * np.sqrt(w)[:, None]
    if scale:
        lengths = np.linalg.norm(centred, axis=0)
        centred = centred / np.where(lengths > 0, lengths, 1.0)
    chosen = centred[:, list(columns)]
    left = centred - chosen @ np.linalg.lstsq(chosen, centred, rcond=1e-9)[0]
    return float(1 - (left**2).sum() / (centred**2).sum())


def enumerated(X: np.ndarray, k: int, **options: Any) -> float:
    return max(share(X, columns, **options) for columns in itertools.combinations(range(X.shape[1]), k))


def greedy_forward(X: np.ndarray, k: int, **options: Any) -> list[int]:
    chosen: list[int] = []
    while len(chosen) < k:
        chosen.append(greedy_next(X, chosen, options))
    return chosen


def greedy_backward(X: np.ndarray, k: int, **options: Any) -> list[int]:
    chosen = list(range(X.shape[1]))
    while len(chosen) > k:
        gone = max(chosen, key=lambda j: (round(share(X, [i for i in chosen if i != j], **options), 9), j))
        chosen.remove(gone)
    return chosen


def floating_forward(X: np.ndarray, k: int, **options: Any) -> list[int]:
    """As Pudil and others describe it, with the definition for every score."""
    chosen: list[int] = []
    best: dict[int, tuple[float, list[int]]] = {}
    while len(chosen) < k:
        chosen = sorted([*chosen, new := greedy_next(X, chosen, options)])
        score = round(share(X, chosen, **options), 9)
        best[len(chosen)] = max(best.get(len(chosen), (-1.0, [])), (score, chosen), key=lambda each: each[0])
        while len(chosen) > 2:
            gone = max(chosen, key=lambda j: (round(share(X, [i for i in chosen if i != j], **options), 9), j))
            rest = [i for i in chosen if i != gone]
            score = round(share(X, rest, **options), 9)
            if gone == new or score <= best[len(rest)][0]:
                break
            chosen = rest
            best[len(rest)] = (score, rest)
            new = -1
    return best[k][1]


def greedy_next(X: np.ndarray, chosen: list[int], options: dict[str, Any]) -> int:
    others = [j for j in range(X.shape[1]) if j not in chosen]
    return max(others, key=lambda j: (round(share(X, [*chosen, j], **options), 9), -j))


def related(n: int, d: int, seed: int, rank: int | None = None) -> np.ndarray:
    rng = np.random.default_rng(seed)
    rank = d if rank is None else rank
    return rng.standard_normal((n, rank)) @ rng.standard_normal((rank, d)) + 0.3 * rng.standard_normal((n, d))


# ---------------------------------------------------------------- what is found


def test_by_hand():
    # Columns a, b, a + b of two unrelated columns of variance 1: a + b explains itself and half of each other: 2 + 2/4 + 2/4.
    a, b = np.array([1.0, 1.0, -1.0, -1.0]), np.array([1.0, -1.0, 1.0, -1.0])
    selector = fw.FeatureSelector(2).fit(np.column_stack([a, b, a + b]))
    first, second = selector.path_.steps
    assert (first.added, first.score) == ((2,), pytest.approx(0.75))
    assert (second.added, second.score) == ((0,), pytest.approx(1.0))  # a and b are equal: the first
    assert first.bound == pytest.approx(0.75)  # the scatter matrix has the eigenvalues 3, 1, 0
    assert second.bound == pytest.approx(1.0)
    np.testing.assert_array_equal(selector.support_, [True, False, True])
    np.testing.assert_array_equal(selector.selected_, [2, 0])
    np.testing.assert_allclose(selector.explained_, 1.0)
    np.testing.assert_allclose(selector.coefficients_, [[1, -1, 0], [0, 1, 1]], atol=1e-12)


@given(st.integers(2, 7), st.integers(0, 10_000), st.booleans(), st.data())
def test_enumeration(d, seed, scale, data):
    k, X = data.draw(st.integers(1, d)), related(30, d, seed)
    exhaustive = fw.FeatureSelector(k, search="exhaustive", scale=scale).fit(X)
    assert exhaustive.score_ == pytest.approx(enumerated(X, k, scale=scale), abs=1e-9)
    for search in SEARCHES:
        selector = fw.FeatureSelector(k, search=search, scale=scale).fit(X)
        assert selector.support_.sum() == selector.n_features_ == k
        chosen = np.flatnonzero(selector.support_)
        assert selector.score_ == pytest.approx(share(X, chosen, scale=scale), abs=1e-9)
        assert selector.score_ <= exhaustive.score_ + 1e-9 <= selector.bound_ + 2e-9
    forward = fw.FeatureSelector(k, scale=scale).fit(X)
    assert [step.added[0] for step in forward.path_.steps] == greedy_forward(X, k, scale=scale)
    backward = fw.FeatureSelector(k, search="backward", scale=scale).fit(X)
    assert sorted(np.flatnonzero(backward.support_)) == greedy_backward(X, k, scale=scale)
    swap = fw.FeatureSelector(k, search="swap", scale=scale).fit(X)
    assert swap.score_ >= forward.score_ - 1e-9
    floating = fw.FeatureSelector(k, search="floating", scale=scale).fit(X)
    assert sorted(np.flatnonzero(floating.support_)) == floating_forward(X, k, scale=scale)


@given(st.integers(3, 7), st.integers(0, 10_000), st.sampled_from(SEARCHES))
def test_columns_that_others_determine(d, seed, search):
    """More columns than rank: copies, sums, constants; nothing is divided by nothing."""
    rng = np.random.default_rng(seed)
    base = rng.standard_normal((25, 2))
    X = np.column_stack([base @ rng.integers(-2, 3, 2) for _ in range(d)])  # zeros and copies are among them
    if not X.any():
        return
    for k in range(1, d + 1):
        selector = fw.FeatureSelector(k, search=search).fit(X)
        assert selector.support_.sum() == k
        assert selector.score_ == pytest.approx(share(X, np.flatnonzero(selector.support_)), abs=1e-8)
        if search == "exhaustive":
            assert selector.score_ == pytest.approx(enumerated(X, k), abs=1e-8)


def test_more_columns_than_rows(planted):
    X = planted([3.0, 2.0, 1.0, 0.5, 0.2, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1], n=6)
    for search in SEARCHES:
        selector = fw.FeatureSelector(4, search=search).fit(X)
        assert selector.score_ == pytest.approx(share(X, np.flatnonzero(selector.support_)), abs=1e-9)
    five = fw.FeatureSelector(5, search="forward").fit(X)
    assert five.score_ == pytest.approx(1.0)  # six rows vary in five directions


def test_every_step_of_a_path_is_told(planted):
    X = planted([3.0, 2.0, 1.5, 1.0, 0.5, 0.3])
    forward = fw.FeatureSelector(4).fit(X).path_
    assert [step.size for step in forward.steps] == [1, 2, 3, 4]
    for columns, step in zip(forward.subsets(), forward.steps, strict=True):
        assert step.score == pytest.approx(share(X, columns), abs=1e-10)
        assert step.score <= step.bound + 1e-12
    backward = fw.FeatureSelector(2, search="backward").fit(X).path_
    assert [step.size for step in backward.steps] == [6, 5, 4, 3, 2]
    for columns, step in zip(backward.subsets(), backward.steps, strict=True):
        assert step.score == pytest.approx(share(X, columns), abs=1e-10)
    assert "without x" in str(backward)
    assert str(forward).splitlines()[1].split() == ["columns", "score", "at", "most", "step"]


def test_certificate_is_the_share_of_principal_components(planted):
    X = planted([3.0, 2.0, 1.5, 1.0, 0.5])
    selector = fw.FeatureSelector(3, scale=True).fit(X)
    cumulative = np.cumsum(fw.PCA(scale=True).fit(X).explained_variance_ratio_)
    np.testing.assert_allclose([step.bound for step in selector.path_.steps], cumulative[:3], rtol=1e-12)
    assert selector.bound_ == pytest.approx(cumulative[2])


def test_floating_escapes_where_forward_is_caught():
    """Forward first takes a sum that two other columns make useless; floating and swap drop it again."""
    rng = np.random.default_rng(0)
    a, b, c = rng.standard_normal((3, 2000))
    X = np.column_stack([a + b + c, 1.2 * a, 1.2 * b, 1.2 * c, 0.3 * rng.standard_normal(2000)])
    forward, floating, swap = (fw.FeatureSelector(3, search=one).fit(X) for one in ("forward", "floating", "swap"))
    best = fw.FeatureSelector(3, search="exhaustive").fit(X)
    assert forward.path_.steps[0].added == (0,)
    assert max(floating.score_, swap.score_) >= forward.score_
    assert swap.score_ == pytest.approx(best.score_)


# ---------------------------------------------------------------- how many


def test_share():
    X = related(200, 8, 3, rank=3)
    selector = fw.FeatureSelector(0.9).fit(X)
    scores = selector.path_.scores
    assert selector.score_ >= 0.9
    assert scores[selector.n_features_ - 2] < 0.9
    exact = fw.FeatureSelector(0.9, search="exhaustive").fit(X)
    assert exact.n_features_ == next(k for k in range(1, 9) if enumerated(X, k) >= 0.9)
    back = fw.FeatureSelector(0.9, search="backward").fit(X)
    assert back.score_ >= 0.9
    assert back.choice_.rule == "share 0.9"


@pytest.mark.parametrize("search", SEARCHES)
def test_auto_explains_as_much_as_the_components_that_stand_out(search):
    X = related(400, 10, 5, rank=3)
    selector = fw.FeatureSelector(search=search).fit(X)
    rank = fw.PCA("parallel").fit(X)
    assert rank.n_components_ == 3
    assert selector.score_ >= rank.explained_variance_ratio_.sum() - 1e-12
    choice = selector.choice_
    assert choice.low <= choice.chosen == selector.n_features_ <= choice.high
    assert "3 components that stand out" in choice.meaning
    assert selector.n_features_ >= 3


def test_auto_leaves_only_redundant_columns_out_where_nothing_stands_out():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((500, 4))
    assert fw.PCA("parallel").fit(X).n_components_ == 0
    selector = fw.FeatureSelector().fit(X)
    assert selector.n_features_ == 4
    assert "no component stands out" in selector.choice_.meaning


# ---------------------------------------------------------------- numbers


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("offset", [0.0, 1e3, 1e6])
def test_offsets(dtype, offset, planted):
    X = planted([3.0, 2.0, 1.0, 0.5, 0.3], offset=offset).astype(dtype)
    selector = fw.FeatureSelector(2, search="exhaustive").fit(X)
    assert selector.score_ == pytest.approx(enumerated(X.astype(np.float64), 2), rel=1e-7)
    assert selector.transform(X).dtype == dtype


@pytest.mark.parametrize("factor", [1e-130, 1e-20, 1e20, 1e130])
def test_units(factor, planted):
    X = planted([3.0, 2.0, 1.0, 0.5, 0.3])
    plain, scaled = fw.FeatureSelector(2).fit(X), fw.FeatureSelector(2).fit(X * factor)
    np.testing.assert_array_equal(plain.support_, scaled.support_)
    assert scaled.score_ == pytest.approx(plain.score_, rel=1e-9)


def test_an_offset_of_1e8(planted):
    X = planted([3.0, 2.0, 1.0, 0.5, 0.3], offset=1e8)
    selector = fw.FeatureSelector(2).fit(X)
    assert selector.score_ == pytest.approx(share(X - 1e8, np.flatnonzero(selector.support_)), rel=1e-6)


def test_weights_are_repetition():
    X = related(60, 6, 1)
    weights = np.random.default_rng(0).integers(0, 4, 60)
    for search in SEARCHES:
        given_, repeated = (
            fw.FeatureSelector(3, search=search, scale=True).fit(X, sample_weight=weights),
            fw.FeatureSelector(3, search=search, scale=True).fit(np.repeat(X, weights, axis=0)),
        )
        np.testing.assert_array_equal(given_.support_, repeated.support_)
        assert given_.score_ == pytest.approx(repeated.score_, rel=1e-12)


def test_same_bits_for_any_threads_memory_or_file(tmp_path):
    X = related(30_000, 12, 2)
    np.save(tmp_path / "x.npy", X)
    found = []
    for threads, data in ((1, X), (2, X), (7, X), (2, tmp_path / "x.npy")):
        one = fw.FeatureSelector(5, search="exhaustive", n_threads=threads).fit(data)
        found.append((one.support_.tolist(), one.score_, one.coefficients_.tobytes(), one.n_compared_))
    assert all(one == found[0] for one in found)


def test_sparse_stays_sparse():
    X = sp.random_array((400, 9), density=0.2, rng=np.random.default_rng(0), format="csr")
    sparse, dense = fw.FeatureSelector(4).fit(X), fw.FeatureSelector(4).fit(X.toarray())
    np.testing.assert_array_equal(sparse.support_, dense.support_)
    assert sparse.score_ == pytest.approx(dense.score_, rel=1e-10)
    out = sparse.transform(X)
    assert sp.issparse(out)
    np.testing.assert_array_equal(out.toarray(), dense.transform(X.toarray()))


# ---------------------------------------------------------------- rows


def test_reconstruction(planted):
    X = planted([3.0, 2.0, 1.0, 0.5], offset=50.0)
    for scale in (False, True):
        selector = fw.FeatureSelector(2, scale=scale).fit(X)
        rebuilt = selector.reconstruct(X)
        np.testing.assert_array_equal(rebuilt[:, selector.support_], X[:, selector.support_])
        spread = X.std(axis=0) if scale else 1.0
        total = (((X - X.mean(axis=0)) / spread) ** 2).sum()
        errors = selector.reconstruction_error(X)
        np.testing.assert_allclose(errors, (((X - rebuilt) / spread) ** 2).sum(axis=1), rtol=1e-9)
        assert errors.sum() == pytest.approx((1 - selector.score_) * total, rel=1e-9)


def test_names_go_in_and_come_out():
    import pandas as pd

    frame = pd.DataFrame(related(50, 4, 0), columns=["length", "width", "height", "mass"])
    selector = fw.FeatureSelector(2).set_output(transform="pandas").fit(frame)
    out = selector.transform(frame)
    chosen = list(frame.columns[selector.support_])
    assert list(out.columns) == list(selector.get_feature_names_out()) == chosen
    assert set(selector.selected_) == set(chosen)
    pd.testing.assert_frame_equal(out, frame[chosen], check_dtype=False)
    assert chosen[0] in str(selector.path_)


def test_scikit_learn_manners():
    X = related(50, 5, 0)
    selector = fw.FeatureSelector(3)
    np.testing.assert_array_equal(clone(selector).fit_transform(X), selector.fit(X).transform(X))
    np.testing.assert_array_equal(selector.get_support(indices=True), np.flatnonzero(selector.get_support()))
    back = selector.inverse_transform(selector.transform(X))
    np.testing.assert_array_equal(back[:, selector.support_], X[:, selector.support_])
    assert not back[:, ~selector.support_].any()
    assert make_pipeline(fw.FeatureSelector(2), fw.KMeans(2)).fit(X)[-1].n_features_in_ == 2


def test_files_and_recipes(tmp_path):
    lines = ["name,a,b,c", *(f"r{i},{i},{2 * i + i % 3},{(i * i) % 7}" for i in range(30))]
    (tmp_path / "t.csv").write_text("\n".join(lines))
    selector = fw.FeatureSelector(2, prepare="auto").fit(tmp_path / "t.csv")
    assert set(selector.get_feature_names_out()) <= {"a", "b", "c"}
    assert selector.transform(tmp_path / "t.csv").shape == (30, 2)


@pytest.mark.parametrize("missing", ["drop", "mean", "model"])
def test_missing_cells(missing):
    X = related(300, 6, 4, rank=2)
    gaps = X.copy()
    gaps[np.random.default_rng(0).random(X.shape) < 0.1] = np.nan
    selector = fw.FeatureSelector(2, missing=missing).fit(gaps)
    whole = fw.FeatureSelector(2, search="exhaustive").fit(X)
    assert share(X, np.flatnonzero(selector.support_)) > 0.9 * whole.score_
    np.testing.assert_array_equal(selector.transform(gaps), gaps[:, selector.support_])  # cells stay as they are
    complete, plain = fw.FeatureSelector(2, missing=missing).fit(X), fw.FeatureSelector(2).fit(X)
    assert complete.score_ == plain.score_
    with pytest.raises(DataError, match="NaN"):
        fw.FeatureSelector(2).fit(gaps)


def test_saved_and_loaded(tmp_path):
    X = related(50, 5, 0)
    selector = fw.FeatureSelector(3, scale=True).fit(X)
    fw.save(selector, tmp_path / "s.fw")
    loaded = fw.load(tmp_path / "s.fw")
    np.testing.assert_array_equal(loaded.transform(X), selector.transform(X))
    np.testing.assert_array_equal(loaded.reconstruct(X), selector.reconstruct(X))
    assert str(loaded.path_) == str(selector.path_)
    fw.save(selector.path_, tmp_path / "p.fw")
    assert repr(fw.load(tmp_path / "p.fw").steps) == repr(selector.path_.steps)


# ---------------------------------------------------------------- bad input


def test_bad_parameters():
    X = related(20, 3, 0)
    with pytest.raises(ParameterError, match="n_features=4 must not exceed the number of columns, 3"):
        fw.FeatureSelector(4).fit(X)
    with pytest.raises(ParameterError, match="'search' parameter"):
        fw.FeatureSelector(2, search="sideways").fit(X)
    with pytest.raises(ParameterError, match="give n_clusters"):
        fw.FeatureSelector(2, criterion="cluster").fit(X)
    with pytest.raises(ParameterError, match="give the estimator"):
        fw.FeatureSelector(2, criterion="wrapper").fit(X)
    with pytest.raises(ParameterError, match="has no use for it"):
        fw.FeatureSelector(2, estimator=fw.PCA()).fit(X)
    with pytest.raises(ParameterError, match="must not be a bool"):
        fw.FeatureSelector(True).fit(X)
    with pytest.raises(DataError, match="constant"):
        fw.FeatureSelector(1).fit(np.ones((5, 2)))
    with pytest.raises(ParameterError, match="share is of explained variance"):
        fw.FeatureSelector(0.5, criterion="cluster", n_clusters=2).fit(X)


def test_exhaustive_search_refuses_what_would_take_too_long():
    X = np.random.default_rng(0).standard_normal((50, 40))
    with pytest.raises(ParameterError, match=r"137,846,528,820 subsets of 20 of 40 columns.* days.*search='swap'"):
        fw.FeatureSelector(20, search="exhaustive").fit(X)
    assert fw.FeatureSelector(2, search="exhaustive").fit(X).support_.sum() == 2  # 780 subsets


def test_exhaustive_search_of_more_columns_than_a_word_has_bits():
    X = related(100, 70, 0, rank=3)
    found = fw.FeatureSelector(2, search="exhaustive").fit(X)
    criterion = ExplainedVariance(np.cov(X.T))
    assert found.score_ == pytest.approx(max(criterion.score(two) for two in itertools.combinations(range(70), 2)))
    assert found.n_compared_ == 2415


def test_one_column():
    X = np.arange(5.0)[:, None]
    for search in SEARCHES:
        selector = fw.FeatureSelector(1, search=search).fit(X)
        assert selector.score_ == 1.0
        assert fw.FeatureSelector(search=search).fit(X).n_features_ == 1


@pytest.mark.parametrize("search", SEARCHES)
def test_all_columns(search):
    X = related(40, 5, 0)
    assert fw.FeatureSelector(5, search=search).fit(X).score_ == pytest.approx(1.0)


@parametrize_with_checks(
    [fw.FeatureSelector(1), fw.FeatureSelector(1, criterion="cluster", n_clusters=2, scoring="silhouette")]
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def test_a_missing_cell_is_not_taken_for_a_perfect_one():
    X = related(60, 4, 2)
    selector = fw.FeatureSelector(2, missing="mean").fit(X)
    gaps, chosen = X[:3] * 50, int(np.flatnonzero(selector.support_)[0])
    gaps[0, chosen] = np.nan
    errors, rebuilt = selector.reconstruction_error(gaps), selector.reconstruct(gaps)
    assert errors[0] > 100
    assert np.isfinite(rebuilt).all()
    filled = gaps.copy()
    filled[0, chosen] = selector.mean_[chosen]
    np.testing.assert_allclose(rebuilt, selector.reconstruct(filled))


def test_new_files_need_only_the_chosen_columns(tmp_path):
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((40, 3)) @ rng.standard_normal((3, 5))
    header, lines = "a,b,c,d,e", [",".join(f"{value:.6f}" for value in row) for row in rows]
    (tmp_path / "t.csv").write_text("\n".join([header, *lines]))
    for options in ({"prepare": "auto"}, {}):
        selector = fw.FeatureSelector(2, **options).fit(tmp_path / "t.csv")
        names = list(selector.get_feature_names_out())
        places = ["abcde".index(name) for name in names]
        few = [",".join(reversed(names)), *(",".join(line.split(",")[j] for j in reversed(places)) for line in lines)]
        (tmp_path / "few.csv").write_text("\n".join(few))
        whole = selector.transform(tmp_path / "t.csv")
        np.testing.assert_array_equal(selector.transform(tmp_path / "few.csv"), whole)
        np.testing.assert_array_equal(whole, np.loadtxt(tmp_path / "t.csv", delimiter=",", skiprows=1)[:, places])


def test_a_path_as_a_sequence_and_as_a_frame():
    path = fw.FeatureSelector(3).fit(related(40, 5, 0)).path_
    assert len(path) == 3
    assert [step.size for step in path] == [1, 2, 3]
    frame = path.frame()
    assert list(frame["size"]) == [1, 2, 3]
    assert frame["step"][0] == f"x{path[0].added[0]}"
