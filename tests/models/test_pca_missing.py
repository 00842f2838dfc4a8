"""PCA with missing="model": against references, and what must hold for any data."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import foldwise as fw
from foldwise.data.missing import allow_missing
from foldwise.data.scan import scan
from foldwise.errors import DataError, NotFinishedWarning, ParameterError, UnavailableError
from foldwise.fold.iterate import iterate
from foldwise.fold.passes import Passes
from foldwise.kernels import missing_cells
from foldwise.kernels.missing_cells import Units
from foldwise.models.pca import observed_em
from foldwise.models.pca.observed_em import ObservedEM, Problem, constrained
from foldwise.stats.completed_moments import CompletedMoments
from foldwise.testing import check_statistic

WORKED = Path(__file__).resolve().parents[3] / "shared" / "data" / "messy" / "worked"


def table(n: int = 120, d: int = 6, q: int = 2, share: float = 0.15, seed: int = 0, offset: float = 0.0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((n, q)) @ rng.standard_normal((q, d)) + 0.5 * rng.standard_normal((n, d))
    x[rng.random(x.shape) < share] = np.nan
    return x * np.arange(1, d + 1) + offset


def same(one: fw.PCA, other: fw.PCA) -> None:
    for name in ("components_", "explained_variance_", "mean_", "noise_variance_", "column_variances_"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)


def em_of(x: np.ndarray, *, strength: float | None, components: int | None = None, tol: float = 1e-12) -> ObservedEM:
    mean, deviation = np.nanmean(x, axis=0), np.nanstd(x, axis=0)
    cells = float((~np.isnan(x)).sum())
    problem = Problem(Units(mean, 1 / deviation), np.ones(x.shape[1]), cells, len(x), components, strength, tol)
    return ObservedEM(Passes(allow_missing(scan(x))), problem)


# ---------------------------------------------------------------- references


@pytest.mark.parametrize("small", [True, False])
def test_the_worked_normal_distribution_of_iris(small: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not WORKED.exists():
        pytest.skip("the worked cases are not here")
    wanted = json.loads((WORKED / "em_normal_iris.json").read_text())["result"]
    x = np.ascontiguousarray(pd.read_csv(WORKED / "iris_missing.csv")[wanted["columns"]].to_numpy(float))
    monkeypatch.setattr(observed_em, "_LEAST", 0.0)  # no prior at all
    monkeypatch.setattr(observed_em, "_SMALL", 1e9 if small else 0)
    em = em_of(x, strength=0.0)
    state, outcome, _ = iterate(em.start, em.step, em.done, max_iter=200)
    assert outcome.converged
    mean, deviation = np.nanmean(x, axis=0), np.nanstd(x, axis=0)
    np.testing.assert_allclose(mean + deviation * state["mean"], wanted["mean"], atol=1e-9)
    np.testing.assert_allclose(state["covariance"] * np.outer(deviation, deviation), wanted["covariance"], atol=1e-9)
    seen = ~np.isnan(x)
    constant = (seen @ np.log(deviation)).sum() + seen.sum() * np.log(2 * np.pi) / 2
    np.testing.assert_allclose(float(state["objective"]) - constant, wanted["loglik"], atol=1e-8)


def test_of_complete_rows_the_model_is_probabilistic_pca_in_closed_form() -> None:
    x = table(share=0.0)
    em = em_of(x, strength=1e-3, components=2)
    state, _, _ = iterate(em.start, em.step, em.done, max_iter=50)
    z = (x - x.mean(axis=0)) / x.std(axis=0)
    matrix = (z.T @ z + 1e-3 * np.eye(6)) / (len(z) + 1e-3)
    values, vectors = np.linalg.eigh(matrix)
    noise = values[:-2].mean()
    wanted = (vectors[:, -2:] * (values[-2:] - noise)) @ vectors[:, -2:].T + noise * np.eye(6)
    np.testing.assert_allclose(state["covariance"], wanted, atol=1e-12)
    assert state["steps"] <= 2


def test_one_missing_cell_is_filled_by_the_regression_on_the_others() -> None:
    x = table(n=60, share=0.0)
    y = x.copy()
    y[7, 2] = np.nan
    model = fw.PCA(missing="model", tol=1e-12).fit(y)
    done = fw.impute(model, y)
    mean, scale, precision = model.mean_, model.fill_scale_, model.fill_precision_
    rest = [0, 1, 3, 4, 5]
    covariance = np.linalg.inv(precision) * np.outer(scale, scale)
    slope = np.linalg.solve(covariance[np.ix_(rest, rest)], covariance[rest, 2])
    np.testing.assert_allclose(done.values[7, 2], mean[2] + slope @ (y[7, rest] - mean[rest]), rtol=1e-9)
    left = covariance[2, 2] - slope @ covariance[rest, 2]
    np.testing.assert_allclose(done.deviations[7, 2], np.sqrt(left), rtol=1e-9)


def test_the_covariance_is_that_of_the_observed_cells_where_missing_ones_say_nothing() -> None:
    # Columns without relation: the fitted variances are nearly those of the observed cells.
    rng = np.random.default_rng(5)
    x = rng.standard_normal((4000, 3)) * [1.0, 2.0, 3.0]
    x[rng.random(x.shape) < 0.2] = np.nan
    model = fw.PCA(missing="model").fit(x)
    np.testing.assert_allclose(model.column_variances_, np.nanvar(x, axis=0, ddof=1), rtol=0.01)
    np.testing.assert_allclose(model.mean_, np.nanmean(x, axis=0), atol=0.01)
    np.testing.assert_allclose(model.explained_variance_ratio_.sum(), 1.0)


# ---------------------------------------------------------------- what must hold


@pytest.mark.parametrize("n_components", [None, 2, 0.9, "mle", "parallel"])
@pytest.mark.parametrize("scale", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_with_nothing_missing_the_bits_are_the_same(n_components: Any, scale: bool, dtype: Any) -> None:
    x = table(share=0.0).astype(dtype)
    same(fw.PCA(n_components, scale=scale, missing="model").fit(x), fw.PCA(n_components, scale=scale).fit(x))


@pytest.mark.parametrize("n_components", [None, 2, "held-out"])
def test_complete_rows_are_projected_as_ever(n_components: Any) -> None:
    x = table(offset=100.0)
    model = fw.PCA(n_components, missing="model", scale=True).fit(x)
    complete = x[~np.isnan(x).any(axis=1)]
    wanted = (complete - model.mean_) / model.scale_ @ model.components_.T
    np.testing.assert_allclose(model.transform(complete), wanted, atol=1e-9)
    filled = fw.impute(model, x).values
    np.testing.assert_allclose(
        model.transform(x), (filled - model.mean_) / model.scale_ @ model.components_.T, atol=1e-9
    )
    np.testing.assert_allclose(model.fit_transform(x), model.transform(x), atol=1e-12)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10_000), st.floats(0.02, 0.5), st.sampled_from([None, 0, 1, 2]), st.booleans())
def test_the_objective_never_falls(seed: int, share: float, components: int | None, small: bool) -> None:
    x = table(n=40, d=5, share=share, seed=seed)
    x = x[~np.isnan(x).all(axis=1)]
    em = em_of(x, strength=0.5, components=components, tol=0.0)
    state, trace = em.start(), []
    if small:
        given = *em._rows(), em.problem.units, em.problem.prior, 0.5, state["mean"], state["covariance"]
        trace = [missing_cells.em_normal(*given, steps=steps, tol=0.0)[5] for steps in range(1, 30)]
    else:
        em.small = False
        for _ in range(29):
            state, _ = em.step(state)
            trace.append(float(state["objective"]))
    assert (np.diff(trace) >= -1e-9 * np.abs(trace[:-1])).all()
    assert components is not None or trace[-1] > trace[0]


@pytest.mark.parametrize("n_components", [None, 2, "held-out"])
@pytest.mark.parametrize("many", [False, True])
def test_weights_are_repetitions(n_components: Any, many: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if many:
        monkeypatch.setattr(observed_em, "_SMALL", 0)
    x = table(n=80)
    weights = np.random.default_rng(1).integers(0, 4, len(x))
    one = fw.PCA(n_components, missing="model", tol=1e-10).fit(x, sample_weight=weights)
    other = fw.PCA(n_components, missing="model", tol=1e-10).fit(np.repeat(x, weights, axis=0))
    assert one.n_components_ == other.n_components_
    assert one.shrinkage_ == other.shrinkage_
    np.testing.assert_allclose(one.explained_variance_, other.explained_variance_, rtol=1e-6)
    np.testing.assert_allclose(one.components_, other.components_, atol=1e-6)
    np.testing.assert_allclose(one.held_out_error_, other.held_out_error_, rtol=1e-6)


@pytest.mark.parametrize("n_components", [None, 2, "held-out"])
def test_threads_and_files_do_not_change_a_bit(
    n_components: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(observed_em, "_SMALL", 0)
    monkeypatch.setattr("foldwise.data.block_grid._BYTES", 4096)
    monkeypatch.setattr("foldwise.data.block_grid._WIDE_ROWS", 128)
    x = table(n=1500)
    first = fw.PCA(n_components, missing="model", n_threads=1).fit(x)
    same(first, fw.PCA(n_components, missing="model", n_threads=3).fit(x))
    np.save(tmp_path / "x.npy", x)
    same(first, fw.PCA(n_components, missing="model").fit(str(tmp_path / "x.npy")))
    pd.DataFrame(x, columns=list("abcdef")).to_csv(tmp_path / "x.csv", index=False, float_format="%.17g")
    same(first, fw.PCA(n_components, missing="model").fit(str(tmp_path / "x.csv")))


def test_one_way_and_the_other_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    x = table(n=300, share=0.3)
    small = fw.PCA(missing="model", tol=1e-11).fit(x)
    monkeypatch.setattr(observed_em, "_SMALL", 0)
    many = fw.PCA(missing="model", tol=1e-11).fit(x)
    assert small.shrinkage_ == many.shrinkage_
    np.testing.assert_allclose(small.explained_variance_, many.explained_variance_, rtol=1e-7)
    np.testing.assert_allclose(small.components_, many.components_, atol=1e-6)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("offset", [1e4, 1e8])
def test_offsets_do_not_cost_accuracy(dtype: Any, offset: float) -> None:
    x = (np.round(table() * 64) / 64 if dtype == np.float64 else np.round(table())).astype(np.float64)
    if dtype == np.float32:
        offset = min(offset, 2.0**14)
    plain = fw.PCA(missing="model", tol=1e-10).fit(x)
    moved = fw.PCA(missing="model", tol=1e-10).fit((x + offset).astype(dtype))
    np.testing.assert_allclose(moved.explained_variance_, plain.explained_variance_, rtol=1e-6)
    np.testing.assert_allclose(moved.mean_ - offset, plain.mean_, atol=1e-6 * max(1.0, offset * 1e-8))


def test_units_of_columns_do_not_matter_to_the_filled_cells() -> None:
    x, factors = table(), np.array([1e-3, 1.0, 1e5, 2.0, 7.0, 1e-8])
    one, other = fw.PCA(missing="model", tol=1e-10), fw.PCA(missing="model", tol=1e-10)
    a, b = fw.impute(one.fit(x), x), fw.impute(other.fit(x * factors), x * factors)
    np.testing.assert_allclose(b.values / factors, a.values, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(b.deviations / factors, a.deviations, rtol=1e-6, atol=1e-12)


def test_the_statistic_merges() -> None:
    x, precision = table(n=50, d=4), np.linalg.inv(np.cov(np.nan_to_num(table(n=50, d=4)).T))
    units = Units(np.nanmean(x, axis=0), 1 / np.nanstd(x, axis=0))
    mean = np.full(4, 0.1)

    def summary(found: CompletedMoments) -> np.ndarray:
        return np.concatenate([found.expected.ravel(), found.shift, [found.logs, found.moments.weight]])

    check_statistic(lambda block: CompletedMoments.of(block, units, mean, precision), x, summary=summary)


def test_rows_and_columns_in_another_order_give_the_same() -> None:
    x, rng = table(n=100), np.random.default_rng(2)
    rows, columns = rng.permutation(len(x)), rng.permutation(x.shape[1])
    one = fw.PCA("held-out", missing="model", tol=1e-10).fit(x)
    other = fw.PCA("held-out", missing="model", tol=1e-10).fit(np.ascontiguousarray(x[rows]))
    assert one.n_components_ == other.n_components_
    np.testing.assert_allclose(other.explained_variance_, one.explained_variance_, rtol=1e-8)
    third = fw.PCA(2, missing="model", tol=1e-10).fit(np.ascontiguousarray(x[:, columns]))
    fourth = fw.PCA(2, missing="model", tol=1e-10).fit(x)
    np.testing.assert_allclose(third.explained_variance_, fourth.explained_variance_, rtol=1e-6)


# ---------------------------------------------------------------- the number of components


@pytest.mark.parametrize("share", [0.0, 0.1])
@pytest.mark.parametrize("d", [8, 30])
def test_auto_finds_the_number_of_components(share: float, d: int) -> None:
    rng = np.random.default_rng(d)
    x = rng.standard_normal((800, 3)) @ rng.standard_normal((3, d)) * 2 + rng.standard_normal((800, d))
    x[rng.random(x.shape) < share] = np.nan
    model = fw.PCA("held-out", missing="model").fit(x)
    assert model.n_components_ == 3
    assert model.rank_.rule == "held-out"
    assert model.rank_.low <= 3 <= model.rank_.high
    assert model.components_.shape == (3, d)


def test_unrelated_columns_have_no_components() -> None:
    x = np.random.default_rng(0).standard_normal((400, 6))
    x[::7, 2] = np.nan
    assert fw.PCA("held-out", missing="model").fit(x).n_components_ == 0


def test_auto_needs_no_missing_cells_and_no_parameter() -> None:
    x = table(share=0.0)
    same(fw.PCA("held-out").fit(x), fw.PCA("held-out", missing="model").fit(x))


# ---------------------------------------------------------------- outputs


def test_rows_with_missing_cells_everywhere() -> None:
    x = table(offset=5.0)
    model = fw.PCA(2, missing="model", whiten=True).fit(x)
    assert np.isfinite(model.transform(x)).all()
    assert model.inverse_transform(model.transform(x)).shape == x.shape
    assert np.isfinite(model.cos2(x)).all()
    np.testing.assert_allclose(model.contributions(x).sum(axis=0), 1.0)
    blank = np.full((1, 6), np.nan)
    np.testing.assert_allclose(model.transform(blank), 0.0, atol=1e-12)
    assert np.isnan(model.reconstruction_error(blank)).all()  # nothing is known of it; 0 would be the most ordinary row
    errors = model.reconstruction_error(x)
    i = int(np.flatnonzero(np.isnan(x).any(axis=1))[0])
    filled = fw.impute(model, x[i : i + 1]).values[0] - model.mean_
    rest = (filled - filled @ model.components_.T @ model.components_)[~np.isnan(x[i])]
    np.testing.assert_allclose(errors[i], rest @ rest, rtol=1e-9)


def test_the_density_is_that_of_the_observed_cells() -> None:
    from scipy.stats import multivariate_normal

    x = table(n=40)
    model = fw.PCA(2, missing="model").fit(x)
    covariance = model.get_covariance()
    for i, found in enumerate(model.score_samples(x)):
        o = np.flatnonzero(~np.isnan(x[i]))
        wanted = multivariate_normal(model.mean_[o], covariance[np.ix_(o, o)]).logpdf(x[i, o])
        np.testing.assert_allclose(found, wanted, rtol=1e-9)
    complete = table(n=40, share=0.0)
    whole = fw.PCA(2).fit(complete)
    np.testing.assert_allclose(
        fw.PCA(2, missing="model").fit(complete).score_samples(complete), whole.score_samples(complete), rtol=1e-10
    )


def test_a_model_of_complete_rows_takes_rows_with_gaps() -> None:
    x = table(share=0.0)
    model = fw.PCA(2, missing="model").fit(x)
    y = x.copy()
    y[3, 1] = np.nan
    assert np.isfinite(model.transform(y)).all()
    np.testing.assert_array_equal(model.transform(y)[:3], model.transform(x)[:3])


def test_tasks_can_be_sent_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(observed_em, "_SMALL", 0)
    sent = []
    fold = Passes.fold

    def through_pickle(self: Passes, task: Any, **options: Any) -> Any:
        sent.append(pickle.dumps(task))
        return fold(self, pickle.loads(sent[-1]), **options)

    x = table()
    wanted = fw.PCA("held-out", missing="model").fit(x)
    monkeypatch.setattr(Passes, "fold", through_pickle)
    same(wanted, fw.PCA("held-out", missing="model").fit(x))
    assert len(sent) > 5


def test_it_is_saved(tmp_path: Path) -> None:
    x = table()
    model = fw.PCA("held-out", missing="model").fit(x)
    fw.save(model, tmp_path / "m.fw")
    np.testing.assert_array_equal(fw.load(tmp_path / "m.fw").transform(x), model.transform(x))


# ---------------------------------------------------------------- stops


@pytest.mark.parametrize("n_components", [None, 2])
def test_a_stopped_fit_goes_on_from_its_checkpoint(
    n_components: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(observed_em, "_SMALL", 0)
    x, file = table(share=0.4), tmp_path / "c"
    whole = fw.PCA(n_components, missing="model", tol=1e-8).fit(x)
    assert whole.n_iter_ > 6
    with pytest.warns(NotFinishedWarning):
        fw.PCA(n_components, missing="model", tol=1e-8, max_iter=4, checkpoint=file).fit(x)
    resumed = fw.PCA(n_components, missing="model", tol=1e-8, checkpoint=file).fit(x)
    same(whole, resumed)
    assert resumed.manifest_.resumed_at == 4


def test_no_time_still_gives_a_model() -> None:
    with pytest.warns(NotFinishedWarning):
        model = fw.PCA(2, missing="model", time_budget=0).fit(table())
    assert np.isfinite(model.components_).all()


# ---------------------------------------------------------------- difficult data


def test_constant_columns_and_blank_rows() -> None:
    x = table()
    x[:, 3] = 7.0
    x[5, 3] = np.nan
    x[9] = np.nan
    for options in ({}, {"scale": True}, {"n_components": 2}, {"n_components": "held-out"}):
        model = fw.PCA(missing="model", **options).fit(x)
        done = fw.impute(model, x)
        assert done.values[5, 3] == 7.0
        assert done.deviations[5, 3] == 0.0
        assert model.column_variances_[3] == 0.0
        np.testing.assert_allclose(done.values[9], model.mean_, rtol=1e-9)
        assert model.n_samples_ == len(x) - 1


def test_columns_that_depend_on_each_other() -> None:
    x = table(n=200, d=4)
    whole = table(n=200, d=4, share=0.0)
    x = np.column_stack([x, x[:, 0] * 2 + 1])
    x[0] = [np.nan, *whole[0, 1:], whole[0, 0] * 2 + 1]
    done = fw.impute(fw.PCA(missing="model").fit(x), x)
    assert abs(done.values[0, 0] - whole[0, 0]) < 0.02 * np.nanstd(x[:, 0])


def test_more_columns_than_rows() -> None:
    x = table(n=15, d=40, share=0.1)
    model = fw.PCA(missing="model").fit(x)
    assert model.components_.shape == (15, 40)
    assert np.isfinite(fw.impute(model, x).values).all()


def test_what_is_refused() -> None:
    x = table()
    with pytest.raises(DataError, match="every cell"):
        fw.PCA(missing="model").fit(np.column_stack([x, np.full(len(x), np.nan)]))
    with pytest.raises(DataError):
        fw.PCA(missing="model").fit(np.where(np.isnan(x), np.inf, x))
    stream = fw.PCA(missing="model").partial_fit(table(share=0.0))
    with pytest.raises(DataError):
        stream.partial_fit(x)
    with pytest.raises(DataError):
        fw.PCA(missing="model").partial_fit(x)
    with pytest.raises(ParameterError, match="dense"):
        fw.PCA("held-out").fit(sp.csr_matrix(np.eye(5)))
    with pytest.raises(UnavailableError, match="partial_fit"):
        _ = fw.PCA("held-out").partial_fit(table(share=0.0)).components_
    with pytest.raises(DataError, match="sample"):
        fw.PCA(missing="model").fit([[1.0, np.nan], [np.nan, 1.0]])


def test_the_constraint_keeps_the_trace() -> None:
    matrix = np.cov(table(share=0.0).T)
    for q in range(6):
        np.testing.assert_allclose(np.trace(constrained(matrix, q)), np.trace(matrix))
