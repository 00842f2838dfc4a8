"""The search for a start: optima that one start missed, the moves it makes, and what it must not depend on."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.mixture import GaussianMixture as Theirs

import foldwise as fw
from foldwise.fold.passes import Passes
from foldwise.models.mixture.covariance import COVARIANCE_TYPES
from foldwise.models.mixture.fit_data import FitData
from foldwise.models.mixture.search import MixtureSearch
from foldwise.models.mixture.search_rows import SearchRows, sample_size
from foldwise.stats.extent import Extent

KINDS = ("full", "tied", "diag", "spherical")


def grid() -> np.ndarray:
    rng = np.random.default_rng(9)
    centres = np.stack(np.meshgrid(np.arange(5), np.arange(5)), -1).reshape(-1, 2)
    return centres[rng.integers(25, size=2000)] + rng.normal(0, 0.17, (2000, 2))


def zigzag() -> np.ndarray:
    rng = np.random.default_rng(8)
    t = rng.uniform(0, 6, 1500)
    return np.column_stack([t, np.abs((t % 2) - 1) * 3]) + rng.normal(0, 0.08, (1500, 2))


def nested(d: int = 16) -> np.ndarray:
    """A dense core in the middle of a wide group: k-means cuts through both, and EM leaves that slowly."""
    rng = np.random.default_rng(3)
    return np.concatenate([rng.standard_normal((600, d)), 3 * rng.standard_normal((600, d))])


@pytest.mark.parametrize(("x", "k"), [(grid(), 25), (zigzag(), 6)], ids=["grid", "zigzag"])
def test_one_call_is_as_good_as_ten_starts_elsewhere(x: np.ndarray, k: int) -> None:
    ten = Theirs(k, n_init=10, random_state=0).fit(x).score(x)
    assert fw.GaussianMixture(k).fit(x).score(x) > ten - 1e-3
    assert fw.GaussianMixture(k, search="none").fit(x).score(x) < ten - 1e-3


def test_rows_bound_to_a_component_from_the_start_get_loose() -> None:
    """Two long-tailed groups in 16 columns: all starts from k-means stay where they begin, 1.6 a row below."""
    rng = np.random.default_rng(0)
    member, far = rng.integers(2, size=1000), np.abs(rng.standard_normal((1000, 1)))
    x = rng.standard_normal((1000, 16)) * far + 1.5 * member[:, None]
    assert fw.GaussianMixture(2).fit(x).score(x) > Theirs(2, n_init=10, random_state=0).fit(x).score(x) + 1.5


@pytest.mark.filterwarnings("ignore::foldwise.models.mixture.estimator.CollapsedWarning")
def test_components_that_are_flat_on_many_rows_are_no_reason_to_look_elsewhere() -> None:
    """Columns cut off at a value: every run has components that are flat there, and to avoid them costs 0.4 a row."""
    rng = np.random.default_rng(0)
    level = rng.standard_normal(2000)[:, None] * rng.uniform(0.5, 1.5, 12)
    x = level + 0.7 * rng.standard_normal((2000, 12))
    x = np.maximum(x, np.quantile(x, 0.2, axis=0))
    theirs = max(Theirs(6, random_state=seed).fit(x).score(x) for seed in range(3))
    assert fw.GaussianMixture(6, reg_covar=1e-6).fit(x).score(x) > theirs + 0.2


def test_mclusts_bic_is_reached(table: Any) -> None:
    """Mclust(iris[, 1:4], G, modelNames) and Mclust(galaxies / 1000, 4, "V") of mclust 6.0.0 in R: BIC as 2 log L - p log n."""
    x = table("iris")
    for kind, k, theirs in (("tied", 6, -609.854322), ("spherical", 7, -698.541343), ("spherical", 9, -700.027560)):
        assert -fw.GaussianMixture(k, covariance_type=kind).fit(x).bic(x) > theirs
    x = table("galaxies") / 1000
    assert -fw.GaussianMixture(4).fit(x).bic(x) > -446.99  # -446.98, "V" with 4


def rows_of(x: np.ndarray, k: int, kind: str) -> tuple[FitData, SearchRows]:
    passes = Passes(fw.scan(x))
    covariance = COVARIANCE_TYPES[kind].of_columns(x.shape[1], None)
    data = FitData.of(passes, covariance, "auto", passes.fold(Extent.of))
    return data, SearchRows.of(data, k, 0)


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_found_is_a_start_with_the_bound_it_has(kind: str) -> None:
    """The compiled runs climb the bound of EM itself: a step from their end changes next to nothing."""
    x = np.random.default_rng(1).standard_normal((400, 3)) @ np.diag([1.0, 5.0, 0.2])
    data, rows = rows_of(x, 3, kind)
    search = MixtureSearch(rows, 0, 0)
    start = search.start(data, None)
    assert start is not None
    assert search.steps > 0
    assert start.weights.sum() == pytest.approx(1.0)
    ridge = data.ridge(start.within)
    found = data.expected(start.weights, start.means, data.covariance.whiten(start.covariances), ridge)
    fitted = fw.GaussianMixture(3, covariance_type=kind, search="split-merge").fit(x)
    assert found.log_likelihood / len(x) == pytest.approx(fitted.lower_bounds_[0], abs=1e-12)
    assert fitted.lower_bounds_[-1] - fitted.lower_bounds_[0] < 1e-3


def test_a_large_table_is_searched_on_a_sample() -> None:
    assert sample_size(900, 3, 2) == 900
    assert sample_size(100_000, 3, 2) < 10_000
    assert sample_size(10**8, 100, 100) == 20_000
    x = np.random.default_rng(0).standard_normal((60_000, 2))
    _, rows = rows_of(x, 2, "full")
    assert len(rows.x) == sample_size(60_000, 2, 2)
    assert rows.share == pytest.approx(60_000 / len(rows.x))


@pytest.mark.filterwarnings("ignore::foldwise.models.mixture.estimator.CollapsedWarning")
def test_rows_of_weight_0_are_as_if_they_were_not_there() -> None:
    rng = np.random.default_rng(0)
    x, w = rng.normal(size=(50_000, 2)), np.zeros(50_000)
    w[rng.choice(50_000, 1500, replace=False)] = 1.0  # a sample of all rows would hold hardly any of these
    weighted, alone = fw.GaussianMixture(3).fit(x, sample_weight=w), fw.GaussianMixture(3).fit(x[w > 0])
    assert weighted.lower_bound_ == pytest.approx(alone.lower_bound_, abs=1e-9)
    w[np.flatnonzero(w)[6:]] = 0.0
    assert np.isfinite(fw.GaussianMixture(2).fit(x, sample_weight=w).lower_bound_)


@pytest.mark.filterwarnings("ignore::foldwise.models.mixture.estimator.CollapsedWarning")
def test_a_far_row_is_no_worse_than_without_a_search() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(60, 2))
    x[:30] += 4
    x[0] = 1e9
    plain = fw.GaussianMixture(2, search="none").fit(x)
    assert fw.GaussianMixture(2).fit(x).lower_bound_ >= plain.lower_bound_ - 1e-9
    x = np.random.default_rng(5).standard_cauchy(size=(200, 3))  # the best tied model has a component of one row
    plain = fw.GaussianMixture(2, covariance_type="tied", search="none").fit(x)
    assert fw.GaussianMixture(2, covariance_type="tied").fit(x).lower_bound_ >= plain.lower_bound_ - 1e-6


def test_weights_are_repetition_where_tails_are_heavy() -> None:
    rng = np.random.default_rng(36)
    x = rng.normal(size=(600, 2)) * np.abs(rng.standard_t(2, size=(600, 1))) + 4 * rng.integers(2, size=(600, 1))
    w = rng.integers(0, 4, 600)
    counted = fw.GaussianMixture(2, max_iter=500).fit(x, sample_weight=w.astype(float))
    repeated = fw.GaussianMixture(2, max_iter=500).fit(np.repeat(x, w, axis=0))
    assert counted.lower_bound_ == pytest.approx(repeated.lower_bound_, abs=1e-6)


def test_neither_order_nor_repetition_nor_threads_matter() -> None:
    x = zigzag()[:400]
    weights = np.random.default_rng(0).integers(0, 3, len(x)).astype(float)
    once = fw.GaussianMixture(4).fit(x, sample_weight=weights)
    for other in (np.repeat(x, weights.astype(int), axis=0), np.repeat(x, weights.astype(int), axis=0)[::-1]):
        again = fw.GaussianMixture(4, n_threads=2).fit(np.ascontiguousarray(other))
        np.testing.assert_allclose(again.means_, once.means_, atol=1e-4)
        assert again.lower_bound_ == pytest.approx(once.lower_bound_, abs=1e-6)


def test_plateaus_do_not_end_a_fit() -> None:
    """Steps that gain little, each hardly less than the last, are not the end."""
    x = nested(8)
    rng = np.random.default_rng(0)
    means = x.mean(axis=0) + 0.05 * rng.standard_normal((2, 8))
    options: dict[str, Any] = {"means_init": means, "weights_init": [0.5, 0.5], "precisions_init": [np.eye(8) / 5] * 2}
    theirs = Theirs(2, **options, max_iter=500).fit(x)
    ours = fw.GaussianMixture(2, **options, max_iter=500).fit(x)
    best = fw.GaussianMixture(2, **options, max_iter=5000, tol=1e-10).fit(x).score(x)
    assert best - ours.score(x) <= max(best - theirs.score(x), 1e-3)
    gains = np.diff(ours.lower_bounds_)
    assert (gains > -1e-12).all()
