"""Soft k-means: the lecture's algorithm, what becomes of its guarantee, and annealing."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

import foldwise as fw
from foldwise.errors import DataError, NotFinishedWarning
from foldwise.models.kmeans.centre_model import FewerClustersWarning


def blobs(dtype: Any = np.float64) -> np.ndarray:
    rng = np.random.default_rng(0)
    return np.concatenate([rng.standard_normal((120, 2)) + c for c in ([0, 0], [5, 0], [0, 7])]).astype(dtype)


def test_one_step_by_hand() -> None:
    """Rows 0 and 2, centres 0 and 2, beta = log(3) / 4: squared distances 0 and 4, so shares are 3/4 and 1/4."""
    with pytest.warns(NotFinishedWarning):
        soft = fw.SoftKMeans(2, beta=np.log(3) / 4, init=np.array([[0.0], [2.0]]), max_iter=1).fit([[0.0], [2.0]])
    np.testing.assert_allclose(soft.cluster_centers_.ravel(), [0.5, 1.5], rtol=1e-14)
    assert soft.trace_[0]["free_energy"] == pytest.approx(-2 * np.log(1 + 1 / 3) / (np.log(3) / 4), rel=1e-12)


@pytest.mark.parametrize("beta", [0.05, 0.5, 5.0])
def test_it_is_em_for_equal_spherical_gaussians(beta: float) -> None:
    """Variance 1 / (2 beta), equal weights, written out here in NumPy."""
    x = blobs()
    soft = fw.SoftKMeans(3, beta=beta, init=x[[0, 130, 300]], tol=0, max_iter=3000).fit(x)
    means, variance = x[[0, 130, 300]].copy(), 1 / (2 * beta)
    likelihoods = []
    for _ in range(len(soft.trace_)):
        logs = -((x[:, None] - means) ** 2).sum(axis=2) / (2 * variance) - np.log(2 * np.pi * variance) - np.log(3)
        top = logs.max(axis=1, keepdims=True)
        total = top + np.log(np.exp(logs - top).sum(axis=1, keepdims=True))
        likelihoods.append(total.sum())
        shares = np.exp(logs - total)
        means = (shares.T @ x) / shares.sum(axis=0)[:, None]
    np.testing.assert_allclose(soft.cluster_centers_, means, atol=1e-10)
    np.testing.assert_allclose(soft.predict_proba(x), shares, atol=1e-9)
    # its log-likelihood is minus beta times the free energy, and a constant
    constant = len(x) * (np.log(2 * np.pi * variance) + np.log(3))
    free = np.array([step["free_energy"] for step in soft.trace_])
    np.testing.assert_allclose(-beta * free - constant, likelihoods, rtol=1e-10)


@given(seed=st.integers(0, 500), beta=st.floats(0.01, 20.0))
def test_the_free_energy_never_rises_and_brackets_the_inertia(seed: int, beta: float) -> None:
    rng = np.random.default_rng(seed)
    x, k = rng.standard_normal((40, 2)) * 2, 4
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        soft = fw.SoftKMeans(k, beta=beta, random_state=seed, tol=0).fit(x)
    free = np.array([step["free_energy"] for step in soft.trace_])
    assert (np.diff(free) <= 1e-11 * (np.abs(free[:-1]) + 1)).all()
    np.testing.assert_allclose(soft.predict_proba(x).sum(axis=1), 1.0, rtol=1e-12)
    slack = 1e-6 * (1 + soft.inertia_)
    assert free[-1] <= soft.inertia_ + slack
    assert soft.inertia_ <= free[-1] + len(x) * np.log(k) / beta + slack


def test_stiff_is_k_means() -> None:
    x = blobs()
    start = x[[3, 4, 200]]
    hard = fw.KMeans(3, init=start, tol=0).fit(x)
    soft = fw.SoftKMeans(3, beta=1e4, init=start, tol=0).fit(x)
    np.testing.assert_allclose(soft.cluster_centers_, hard.cluster_centers_, atol=1e-9)
    np.testing.assert_array_equal(soft.labels_, hard.labels_)
    assert soft.inertia_ == pytest.approx(hard.inertia_, rel=1e-12)


def test_slack_puts_all_centres_in_the_mean() -> None:
    """Below 1 / (2 l), l the largest variance, and not above."""
    x = blobs()
    critical = 1 / (2 * np.linalg.eigvalsh(np.cov(x.T, bias=True))[-1])
    low = fw.SoftKMeans(2, beta=0.9 * critical, tol=0, max_iter=2000).fit(x)
    np.testing.assert_allclose(low.cluster_centers_, [x.mean(axis=0)] * 2, atol=1e-6)
    high = fw.SoftKMeans(2, beta=1.3 * critical, tol=0, max_iter=5000).fit(x)
    assert np.linalg.norm(np.diff(high.cluster_centers_, axis=0)) > 0.5


# ------------------------------------------------------------------ annealing


def test_annealing_leaves_a_bad_start_behind(shared_data: Path) -> None:
    """Published sets whose optimum k-means++ often misses: annealing reaches it, whatever the seed."""
    for name, k in (("s1", 15), ("a1", 20), ("unbalance", 8)):
        with gzip.open(shared_data / "benchmark2d" / f"{name}.data.gz") as file:
            x = np.loadtxt(file)
        best = fw.KMeans(k, search="breathing").fit(x).inertia_
        plain = np.mean([fw.KMeans(k, random_state=i, init="random", n_init=1).fit(x).inertia_ for i in range(5)])
        for seed in (0, 1):
            annealed = fw.SoftKMeans(k, random_state=seed).fit(x)
            assert annealed.inertia_ <= best * (1 + 1e-4)
            assert annealed.inertia_ < plain


def test_annealing_ends_in_an_optimum_of_k_means() -> None:
    x = np.random.default_rng(0).standard_normal((400, 3))
    soft = fw.SoftKMeans(6).fit(x)
    betas = [step["beta"] for step in soft.trace_]
    assert betas == sorted(betas)
    assert betas[-1] == soft.beta_ > 100 * betas[0]
    again = fw.KMeans(6, init=soft.cluster_centers_, tol=0).fit(x)
    np.testing.assert_allclose(again.cluster_centers_, soft.cluster_centers_, atol=1e-12)
    np.testing.assert_array_equal(soft.predict(x), soft.labels_)
    for before, after in zip(soft.trace_, soft.trace_[1:], strict=False):
        if before["beta"] == after["beta"]:
            assert after["free_energy"] <= before["free_energy"] + 1e-11 * abs(before["free_energy"])


def test_annealing_with_few_distinct_rows() -> None:
    x = np.repeat([[0.0, 1.0], [5.0, 5.0]], 10, axis=0)
    with pytest.warns(FewerClustersWarning):
        soft = fw.SoftKMeans(3).fit(x)
    assert soft.inertia_ == pytest.approx(0.0, abs=1e-12)
    with pytest.warns(FewerClustersWarning):
        assert fw.SoftKMeans(2).fit(np.ones((5, 2))).inertia_ == 0.0


# ------------------------------------------------------------------ manners


@pytest.mark.parametrize("beta", [0.3, "anneal"])
def test_weights_are_repetition(beta: Any) -> None:
    x = blobs()
    w = np.random.default_rng(1).integers(0, 4, len(x)).astype(float)
    one = fw.SoftKMeans(3, beta=beta).fit(x, sample_weight=w)
    two = fw.SoftKMeans(3, beta=beta).fit(np.repeat(x, w.astype(int), axis=0))
    np.testing.assert_allclose(one.cluster_centers_, two.cluster_centers_, rtol=1e-9, atol=1e-9)
    assert one.inertia_ == pytest.approx(two.inertia_, rel=1e-9)


@pytest.mark.parametrize(("dtype", "offset"), [(np.float32, 1e4), (np.float64, 1e8)])
def test_offsets(dtype: Any, offset: float) -> None:
    x = blobs()
    far, near = (fw.SoftKMeans(3, beta=0.3).fit(v) for v in ((x + offset).astype(dtype), x))
    np.testing.assert_allclose(far.cluster_centers_ - dtype(offset), near.cluster_centers_, atol=5e-3)
    assert (far.labels_ == near.labels_).mean() > 0.99


def test_refusals_and_files(tmp_path: Path, table: Callable[[str], np.ndarray]) -> None:
    with pytest.raises(DataError, match=r"sparse data was passed.*KMeans"):
        fw.SoftKMeans(2).fit(sp.csr_array(blobs()))
    with pytest.raises(ValueError, match="beta"):
        fw.SoftKMeans(2, beta=-1.0).fit(blobs())
    with pytest.raises(ValueError, match="should be >= n_clusters"):
        fw.SoftKMeans(9).fit(blobs()[:4])
    x = table("iris")
    soft = fw.SoftKMeans(3, scale=True).fit(x)
    fw.save(soft, tmp_path / "s.fw")
    again = fw.load(tmp_path / "s.fw")
    np.testing.assert_array_equal(again.predict_proba(x), soft.predict_proba(x))
    np.testing.assert_array_equal(again.predict(x), soft.labels_)


@pytest.mark.parametrize("factor", [1e-60, 1e-44, 1e45])
@pytest.mark.parametrize("beta", [0.2, "anneal"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_unit_of_weights_does_not_matter(dtype, beta, factor):
    rng = np.random.default_rng(0)
    rows = np.concatenate([rng.standard_normal((200, 2)), rng.standard_normal((100, 2)) + 6.0]).astype(dtype)
    w = rng.uniform(0.5, 2.0, 300)
    one, other = (fw.SoftKMeans(2, beta=beta).fit(rows, sample_weight=v) for v in (w, w * factor))
    np.testing.assert_allclose(other.cluster_centers_, one.cluster_centers_, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(other.beta_, one.beta_)


def test_weights_that_differ_by_more_than_float32_has_room_for():
    rows = np.random.default_rng(0).standard_normal((300, 3)).astype(np.float32)
    rows[200:] += 15
    w = np.where(rows[:, 0] > 7.5, 1e-50, 1.0)
    init = [[0.0] * 3, [15.0] * 3]
    found = [fw.SoftKMeans(2, beta=0.5, init=init).fit(x, sample_weight=w) for x in (rows, rows.astype(float))]
    np.testing.assert_allclose(found[0].cluster_centers_, found[1].cluster_centers_, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("beta", [0.2, "anneal"])
@pytest.mark.parametrize("power", [-500, -400, -260, 260, 400, 500])
def test_the_unit_of_rows_does_not_matter(power, beta):
    """Powers of two, so that rows have the same digits: centres must have them, too."""
    rows, factor = blobs(), 2.0**power
    init = rows[[0, 130, 250]]
    one = fw.SoftKMeans(3, beta=beta, init=init).fit(rows)
    units = beta if beta == "anneal" else beta / factor / factor
    other = fw.SoftKMeans(3, beta=units, init=init * factor).fit(rows * factor)
    np.testing.assert_allclose(other.cluster_centers_ / factor, one.cluster_centers_, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(other.beta_ * factor * factor, one.beta_, rtol=1e-12)
    np.testing.assert_allclose(other.predict_proba(rows * factor), one.predict_proba(rows), atol=1e-9)
    np.testing.assert_array_equal(other.labels_, one.labels_)
    np.testing.assert_allclose(other.inertia_ / factor / factor, one.inertia_, rtol=1e-12)
    np.testing.assert_allclose(
        other.trace_[-1]["free_energy"] / factor / factor, one.trace_[-1]["free_energy"], rtol=1e-9
    )


@pytest.mark.parametrize("power", [-120, -60, 60, 120])
def test_the_unit_of_float32_rows_does_not_matter(power):
    rows, factor = blobs(np.float32), np.float32(2.0**power)
    one, other = fw.SoftKMeans(3).fit(rows), fw.SoftKMeans(3).fit(rows * factor)
    np.testing.assert_allclose(other.cluster_centers_ / factor, one.cluster_centers_, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(other.predict_proba(rows * factor), one.predict_proba(rows), atol=1e-4)


@pytest.mark.parametrize(("factor", "beta"), [(1e200, "anneal"), (1e-200, "anneal"), (1e200, 0.1), (1e-200, 0.1)])
def test_a_stiffness_beyond_float64_is_refused(factor, beta):
    with pytest.raises(DataError, match="beta leaves the range of float64"):
        fw.SoftKMeans(3, beta=beta).fit(blobs() * factor)
