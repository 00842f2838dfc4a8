"""Mixtures of rows with missing cells: published figures, brute force, and what must hold for any rows."""

from __future__ import annotations

import csv
import json
import pickle
import signal
import subprocess
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import foldwise as fw
from foldwise.errors import DataError, NotFinishedWarning
from foldwise.kernels import reference
from foldwise.models.mixture.covariance import COVARIANCE_TYPES

TYPES = list(COVARIANCE_TYPES)


def groups(seed: int = 0, n: int = 240, share: float = 0.15, d: int = 4) -> np.ndarray:
    """Two groups of different shape, with cells missing at random."""
    rng = np.random.default_rng(seed)
    axes = rng.standard_normal((2, d, d)) * 0.4 + np.eye(d)
    x = np.concatenate(
        [rng.standard_normal((n // 2, d)) @ axes[0], rng.standard_normal((n - n // 2, d)) @ axes[1] + 3.0]
    )
    x[rng.random(x.shape) < share] = np.nan
    return x


def make(k: int = 2, **options: Any) -> Any:
    return fw.GaussianMixture(k, **{"missing": "model", **options})


def quiet(model: Any, x: Any, **options: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(x, **options)


# ---------------------------------------------------------------- published figures and brute force


def worked(shared_data: Path) -> tuple[np.ndarray, dict[str, Any]]:
    folder = shared_data / "messy" / "worked"
    if not folder.is_dir():
        pytest.skip("the worked cases (shared/data/messy/worked) are not here")
    with (folder / "iris_missing.csv").open(newline="") as file:
        _, *rows = csv.reader(file)
    x = np.array([[float(cell) if cell else np.nan for cell in row[:4]] for row in rows])
    return x, json.loads((folder / "em_normal_iris.json").read_text())["result"]


def test_one_normal_distribution_step_by_step(shared_data: Path) -> None:
    """From the start of the worked case, each step has its likelihood; it ends at its mean and covariance."""
    x, told = worked(shared_data)
    mean, variances = np.nanmean(x, axis=0), np.nanvar(x, axis=0)
    given: dict[str, Any] = {"weights_init": [1.0], "means_init": [mean], "precisions_init": [np.diag(1 / variances)]}
    gm = make(1, tol=1e-16, max_iter=200, reg_covar=0, **given).fit(x)
    steps = np.array(gm.lower_bounds_) * len(x)
    n = min(len(steps), len(told["loglik_steps"]))
    assert n > 20
    np.testing.assert_allclose(steps[:n], told["loglik_steps"][:n], rtol=0, atol=1e-8)
    np.testing.assert_allclose(gm.means_[0], told["mean"], rtol=0, atol=1e-9)
    np.testing.assert_allclose(gm.covariances_[0], told["covariance"], rtol=0, atol=1e-9)
    assert gm.score(x) * len(x) == pytest.approx(told["loglik"], abs=1e-8)


def test_one_normal_distribution_from_our_start(shared_data: Path) -> None:
    x, told = worked(shared_data)
    gm = make(1, tol=1e-13, max_iter=200).fit(x)
    np.testing.assert_allclose(gm.means_[0], told["mean"], rtol=0, atol=1e-7)
    assert gm.score(x) * len(x) == pytest.approx(told["loglik"], abs=1e-7)
    completed, deviations = gm._impute_block(x)
    for row, one, left in zip(x, completed, deviations, strict=True):
        _, expected, covariance = reference.mixture_gaps(row, gm.means_[0], gm.covariances_[0])
        np.testing.assert_allclose(one, expected, rtol=1e-9)
        np.testing.assert_allclose(left, np.sqrt(np.diag(covariance)), atol=1e-9)


@pytest.mark.parametrize("name", TYPES)
@pytest.mark.parametrize("k", [2, 3])
def test_one_step_is_that_of_brute_force(name: str, k: int) -> None:
    """E-step by the inverse of S_oo of each row, M-step by the formulas for each type, without a ridge."""
    rng = np.random.default_rng(k)
    x, d = groups(k, n=90, share=0.3), 4
    kind = COVARIANCE_TYPES[name].of_columns(d, 2)
    factor = rng.standard_normal((k, d, d)) * 0.3 + np.eye(d)
    weights, means = rng.dirichlet(np.full(k, 5.0)), 2 * rng.standard_normal((k, d))
    begin = kind.of_matrices(factor @ factor.transpose(0, 2, 1), weights)
    likelihood, counts, shift, spread = reference.mixture_gaps_step(
        x, None, weights, means, np.array(kind.matrices(begin, k)), "full"
    )
    each = spread / counts[:, None, None] - np.einsum("ki,kj->kij", shift / counts[:, None], shift / counts[:, None])
    pooled = np.einsum("k,kij->ij", counts / counts.sum(), each)
    told = {
        "full": each,
        "tied": pooled,
        "diag": np.diagonal(each, axis1=1, axis2=2),
        "diag-tied": np.diag(pooled),
        "spherical": np.trace(each, axis1=1, axis2=2) / d,
        "ppca": np.stack([_ppca(one, 2) for one in each]),
    }[name]
    precisions = np.linalg.inv(begin) if begin.ndim > 2 or name == "tied" else 1 / begin
    gm = make(k, covariance_type=name, n_latent=2, max_iter=1, reg_covar=0, weights_init=weights, means_init=means)
    gm = quiet(gm.set_params(precisions_init=precisions), x)
    assert gm.lower_bound_ * len(x) == pytest.approx(likelihood, rel=1e-10)
    np.testing.assert_allclose(gm.weights_, counts / counts.sum(), rtol=1e-10)
    np.testing.assert_allclose(gm.means_, means + shift / counts[:, None], rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(gm.covariances_, told, rtol=1e-9, atol=1e-9)


def _ppca(matrix: np.ndarray, q: int) -> np.ndarray:
    values, vectors = np.linalg.eigh(matrix)
    noise = values[:-q].mean()
    return (vectors[:, -q:] * (values[-q:] - noise)) @ vectors[:, -q:].T + noise * np.eye(len(matrix))


# ---------------------------------------------------------------- what must hold for any rows


@pytest.mark.parametrize("name", TYPES)
@settings(max_examples=12)
@given(seed=st.integers(0, 1000), share=st.sampled_from([0.05, 0.3, 0.6]), k=st.integers(1, 3), float32=st.booleans())
def test_the_bound_never_falls(name: str, seed: int, share: float, k: int, float32: bool) -> None:
    x = groups(seed, n=80, share=share).astype(np.float32 if float32 else np.float64)
    gm = quiet(make(k, covariance_type=name, max_iter=60, tol=1e-6, search="none"), x)
    assert np.diff(gm.lower_bounds_).min(initial=0.0) >= (-1e-6 if float32 else -1e-10)
    assert gm.score(x) >= gm.lower_bound_ - 1e-5


@settings(max_examples=10)
@given(seed=st.integers(0, 1000), name=st.sampled_from(TYPES))
@example(seed=160, name="tied")  # cells were drawn from a distribution that knew the number of rows, not their weight
@example(seed=108, name="tied")
def test_weights_are_repetition(seed: int, name: str) -> None:
    x = groups(seed, n=100)
    w = np.random.default_rng(seed).integers(0, 4, len(x))
    weighted = quiet(make(covariance_type=name, tol=1e-9, max_iter=300), x, sample_weight=w)
    repeated = quiet(make(covariance_type=name, tol=1e-9, max_iter=300), np.repeat(x, w, axis=0))
    assert weighted.lower_bound_ == pytest.approx(repeated.lower_bound_, abs=1e-6)
    np.testing.assert_allclose(weighted.means_, repeated.means_, atol=1e-3)


@pytest.mark.parametrize("name", TYPES)
def test_the_order_of_rows_does_not_matter(name: str) -> None:
    x = groups(7)
    order = np.random.default_rng(0).permutation(len(x))
    a = quiet(make(covariance_type=name, tol=1e-9, max_iter=500), x)
    b = quiet(make(covariance_type=name, tol=1e-9, max_iter=500), x[order])
    np.testing.assert_allclose(a.means_, b.means_, atol=1e-4)
    assert a.lower_bound_ == pytest.approx(b.lower_bound_, abs=1e-8)


@pytest.mark.parametrize("name", TYPES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_with_nothing_missing_the_bits_are_those_without(name: str, dtype: Any) -> None:
    x = groups(1, share=0.0).astype(dtype)
    a, b = make(covariance_type=name).fit(x), fw.GaussianMixture(2, covariance_type=name).fit(x)
    for part in ("weights_", "means_", "covariances_", "precisions_cholesky_"):
        np.testing.assert_array_equal(getattr(a, part), getattr(b, part))
    assert a.trace_ == b.trace_
    np.testing.assert_array_equal(a.predict_proba(x), b.predict_proba(x))
    np.testing.assert_array_equal(a.score_samples(x), b.score_samples(x))


@pytest.mark.parametrize("name", ["full", "diag", "tied"])
def test_threads_and_places_do_not_matter(name: str, tmp_path: Path) -> None:
    """Several blocks: any number of threads, from memory, .npy and Parquet."""
    import pandas as pd

    x = groups(3, n=230_000, share=0.1)
    np.save(tmp_path / "x.npy", x)
    pd.DataFrame(x, columns=list("abcd")).to_parquet(tmp_path / "x.parquet")
    found = set()
    for n, where in ((1, x), (2, x), (3, x), (2, tmp_path / "x.npy"), (2, tmp_path / "x.parquet")):
        gm = quiet(make(covariance_type=name, n_threads=n, max_iter=3, tol=0), where)
        found.add(b"".join(part.tobytes() for part in (gm.weights_, gm.means_, gm.covariances_)))
    assert len(found) == 1
    plain = quiet(make(covariance_type=name, max_iter=3, tol=0), x)
    assert (plain.predict(x) == plain.predict(tmp_path / "x.npy")).all()


@pytest.mark.parametrize("offset", [1e4, 1e8])
def test_an_offset_does_not_matter(offset: float) -> None:
    x = np.round(groups(2) * 2**20) / 2**20
    shifted = x + offset
    given: dict[str, Any] = {"weights_init": [0.5, 0.5], "means_init": np.array([[0.0] * 4, [3.0] * 4]), "tol": 1e-9}
    a = quiet(make(max_iter=300, **given), x)
    b = quiet(make(max_iter=300, **{**given, "means_init": given["means_init"] + offset}), shifted)
    lost = 1e-16 * offset
    np.testing.assert_allclose(b.covariances_, a.covariances_, rtol=1e-5 + 1e3 * lost, atol=1e-5 + 1e3 * lost)
    np.testing.assert_allclose(b.means_ - offset, a.means_, atol=1e-5 + 1e3 * lost)


@pytest.mark.parametrize("scale", [1e-140, 1e140])
def test_units_do_not_matter(scale: float) -> None:
    x = groups(2)
    a, b = make().fit(x), make().fit(x * scale)
    assert (a.predict(x) == b.predict(x * scale)).mean() > 0.99
    completed = b._impute_block(x * scale)
    np.testing.assert_allclose(completed[0] / scale, a._impute_block(x)[0], atol=0.2)
    assert np.isfinite(completed[1]).all()


# ---------------------------------------------------------------- rows of a fitted model


def test_rows_with_missing_cells_have_marginal_densities() -> None:
    x = groups(4, share=0.3)
    gm = make().fit(x)
    for row, density in zip(x[:40], gm.score_samples(x[:40]), strict=True):
        logs = [reference.mixture_gaps(row, m, s)[0] for m, s in zip(gm.means_, gm.covariances_, strict=True)]
        assert density == pytest.approx(np.logaddexp.reduce(np.log(gm.weights_) + logs), abs=1e-10)
    assert (gm.predict(x) == gm.predict_proba(x).argmax(axis=1)).all()
    criteria = gm.criteria(x)
    assert criteria["bic"] == pytest.approx(-2 * gm.score_samples(x).sum() + gm.n_parameters() * np.log(len(x)))
    assert gm.bic(x) == criteria["bic"]
    assert gm.icl(x) >= gm.bic(x)
    merged = gm.merge(x, n_clusters=1)
    assert set(merged.predict(x)) == {0}


def test_a_row_without_any_value_has_the_probabilities_of_the_components() -> None:
    x = groups(5)
    x[[3, 50]] = np.nan
    gm = make().fit(x)
    np.testing.assert_allclose(gm.predict_proba(x[[3]])[0], gm.weights_, rtol=1e-12)
    assert gm.score_samples(x[[3]])[0] == pytest.approx(0.0, abs=1e-12)
    completed, deviations = gm._impute_block(x[[3]])
    mean = gm.weights_ @ gm.means_
    variance = gm.weights_ @ (np.diagonal(gm.covariances_, axis1=1, axis2=2) + (gm.means_ - mean) ** 2)
    np.testing.assert_allclose(completed[0], mean, rtol=1e-10)
    np.testing.assert_allclose(deviations[0], np.sqrt(variance), rtol=1e-9)
    assert "2 of these rows have no value at all" in " ".join(gm.manifest_.notes)
    assert "drawn" in " ".join(gm.manifest_.notes)


def test_such_rows_change_no_other_row() -> None:
    """They say nothing: with them or without, the optimum is the same."""
    x = groups(6)
    blank = np.concatenate([x, np.full((20, 4), np.nan)])
    start = fw.GaussianMixture(2, missing="model").fit(x)
    given = {"weights_init": start.weights_, "means_init": start.means_, "precisions_init": start.precisions_}
    a, b = (quiet(make(tol=1e-13, max_iter=2000, **given), rows) for rows in (x, blank))
    np.testing.assert_allclose(a.means_, b.means_, atol=1e-4)
    np.testing.assert_allclose(a.covariances_, b.covariances_, atol=1e-3)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_imputation_is_in_the_units_of_the_data(dtype: Any) -> None:
    x = (groups(8) * [1, 10, 0.1, 100] + [5, 100, 0, -3]).astype(dtype)
    gm = make(scale=True).fit(x)
    completed, deviations = pickle.loads(pickle.dumps(gm))._impute_block(x)
    missing = np.isnan(x)
    np.testing.assert_array_equal(completed[~missing], x[~missing])
    assert (deviations[~missing] == 0).all()
    assert (deviations[missing] > 0).all()
    again = make(tol=1e-3).fit(x)._impute_block(x)[0]
    spread = np.nanstd(x, axis=0)
    assert np.abs((completed - again) / spread)[missing].mean() < 0.1


def test_imputation_beats_the_mean() -> None:
    rng = np.random.default_rng(0)
    full = groups(9, n=600, share=0.0)
    hidden = rng.random(full.shape) < 0.2
    x = np.where(hidden, np.nan, full)
    completed, deviations = make().fit(x)._impute_block(x)
    error = np.sqrt(np.mean((completed - full)[hidden] ** 2))
    by_mean = np.sqrt(np.mean((np.nanmean(x, axis=0) - full)[hidden] ** 2))
    assert error < 0.75 * by_mean
    # Deviations say how far off: the share within one is about two thirds.
    assert 0.6 < (np.abs(completed - full)[hidden] < deviations[hidden]).mean() < 0.76


def test_a_saved_model_says_the_same(tmp_path: Path) -> None:
    x = groups(10)
    gm = make().fit(x)
    fw.save(gm, tmp_path / "m.fw")
    again = fw.load(tmp_path / "m.fw")
    assert again.missing == "model"
    np.testing.assert_array_equal(again.predict_proba(x), gm.predict_proba(x))


# ---------------------------------------------------------------- fits


@pytest.mark.parametrize("init", ["kmeans", "k-means++", "random_from_data", "random"])
@pytest.mark.parametrize("search", ["split-merge", "none"])
def test_starts(init: str, search: str) -> None:
    x = groups(11)
    gm = quiet(make(init_params=init, search=search, n_init=2, max_iter=300), x)
    best = quiet(make(max_iter=300), x)
    assert gm.lower_bound_ <= best.lower_bound_ + 0.05
    assert gm.converged_


@pytest.mark.parametrize("name", ["full", "tied", "diag", "spherical"])
def test_the_start_is_as_good_as_that_from_the_truth(name: str) -> None:
    full = groups(12, n=400, share=0.0)
    x = np.where(np.random.default_rng(1).random(full.shape) < 0.25, np.nan, full)
    true = fw.GaussianMixture(2, covariance_type=name).fit(full)
    given = {"weights_init": true.weights_, "means_init": true.means_, "precisions_init": true.precisions_}
    from_truth = quiet(make(covariance_type=name, tol=1e-6, max_iter=500, **given), x)
    ours = quiet(make(covariance_type=name, tol=1e-6, max_iter=500), x)
    assert ours.lower_bound_ >= from_truth.lower_bound_ - 1e-3
    same = (ours.predict(x) == true.predict(full)).mean()
    assert max(same, 1 - same) > 0.9  # numbers go by weights, which are nearly equal


def test_warm_start_and_scale() -> None:
    x = groups(13)
    gm = quiet(make(max_iter=3, tol=0, warm_start=True, scale=True), x)
    before = gm.lower_bound_
    gm = gm.set_params(max_iter=200, tol=1e-6).fit(x)
    assert gm.lower_bound_ >= before


def test_collapsed_components_start_anew() -> None:
    """A component put on one far row is mended, with cells missing there too."""
    x = groups(14)
    x[0] = [50.0, np.nan, 50.0, 50.0]
    means = np.array([[0.0] * 4, [3.0] * 4, [50.0] * 4])
    gm = quiet(make(3, means_init=means, max_iter=200), x)
    assert np.isfinite(gm.lower_bound_)
    assert any("started anew" in line or "too few" in line for line in gm.manifest_.repairs)


@pytest.mark.parametrize("policy", ["model", "mean", "drop"])
def test_a_choice_of_mixtures(policy: str) -> None:
    x = groups(15, n=400, share=0.1)
    x[0] = np.nan
    found = fw.choose_mixture(x, range(1, 4), ("full", "diag"), missing=policy)
    assert found.best_model.missing == policy
    if policy != "mean":
        assert found.best.n_components == 2
    assert np.isfinite(found.table.values).all()


def test_a_choice_tells_of_collinear_columns() -> None:
    rng = np.random.default_rng(0)
    x = rng.standard_normal((300, 3))
    x = np.column_stack([x, x[:, 0] + x[:, 1]])
    x[rng.random(x.shape) < 0.05] = np.nan
    with pytest.warns(UserWarning, match="linear combinations"):
        found = fw.choose_mixture(x, [1, 2], ["full"], missing="model")
    assert found.collinear == ("x3",)


def test_what_is_refused() -> None:
    x = groups(16)
    with pytest.raises(DataError, match=r"NaN|missing"):
        fw.GaussianMixture(2).fit(x)
    with pytest.raises(DataError, match="every cell of this column"):
        make().fit(np.column_stack([x, np.full(len(x), np.nan)]))
    bad = x.copy()
    bad[5, 2] = np.inf
    with pytest.raises(DataError, match="infin"):
        make().fit(bad)
    gm = make().fit(x)
    with pytest.raises(DataError, match="infin"):
        gm.predict(bad)
    with pytest.raises(ValueError, match="missing"):
        make(missing="guess").fit(x)


def test_fewer_rows_than_columns() -> None:
    rng = np.random.default_rng(0)
    x = rng.standard_normal((12, 20))
    x[rng.random(x.shape) < 0.2] = np.nan
    for name in ("diag", "spherical", "full"):
        gm = quiet(make(2, covariance_type=name), x)
        assert np.isfinite(gm.score(x))


# ---------------------------------------------------------------- stopped and resumed

CHILD = """
import sys, time
import foldwise as fw
from foldwise.fold import events
path, checkpoint = sys.argv[1:]
with events.listening(lambda event: time.sleep(0.1) if isinstance(event, events.StepDone) else None):
    fw.GaussianMixture(3, missing="model", search="none", tol=1e-7, max_iter=400, checkpoint=checkpoint).fit(path)
"""


def test_a_killed_fit_goes_on_to_the_same_bits(tmp_path: Path) -> None:
    x = np.random.default_rng(0).standard_normal((500, 3))
    x[np.random.default_rng(1).random(x.shape) < 0.1] = np.nan
    np.save(tmp_path / "x.npy", x)
    checkpoint = tmp_path / "c.fw"
    child = subprocess.Popen([sys.executable, "-c", CHILD, str(tmp_path / "x.npy"), str(checkpoint)])
    until = time.monotonic() + 60
    while not checkpoint.exists() and time.monotonic() < until:
        time.sleep(0.02)
    time.sleep(0.3)
    child.send_signal(signal.SIGKILL)
    child.wait()
    options: dict[str, Any] = {"search": "none", "tol": 1e-7, "max_iter": 400}
    resumed = make(3, checkpoint=checkpoint, **options).fit(tmp_path / "x.npy")
    plain = make(3, **options).fit(tmp_path / "x.npy")
    assert resumed.manifest_.resumed_at > 0
    for part in ("weights_", "means_", "covariances_"):
        np.testing.assert_array_equal(getattr(resumed, part), getattr(plain, part))


def test_a_time_budget_is_heeded() -> None:
    with pytest.warns(NotFinishedWarning):
        gm = make(3, time_budget=0.0, tol=0).fit(groups(17))
    assert np.isfinite(gm.means_).all()


@pytest.mark.parametrize("policy", ["model", "mean", "drop"])
def test_a_profile_is_of_what_was_observed(policy: str) -> None:
    from foldwise.selection.mixture_profile import mixture_profile

    x = groups(18)
    gm = make(missing=policy).fit(x)
    found = mixture_profile(gm, fw.scan(x))
    counted = ~np.isnan(x).any(axis=1) if policy == "drop" else np.ones(len(x), dtype=bool)
    seen = x if policy == "model" else np.where(np.isnan(x), np.nanmean(x, axis=0), x)
    told = [np.nanmean(seen[counted & (found.labels == j)], axis=0) for j in range(2)]
    np.testing.assert_allclose(found.means, told, rtol=1e-10)
    np.testing.assert_allclose(found.deviation, np.nanstd(seen[counted], axis=0), rtol=1e-10)
    assert np.isfinite(found.separation).all()
    assert 0 <= found.in_doubt <= 1
