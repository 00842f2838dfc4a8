"""Numbers of components and covariance types in one call."""

from __future__ import annotations

import math
import pickle
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import foldwise as fw
from foldwise.errors import DataError, FoldwiseWarning, NotFinishedWarning, ParameterError
from foldwise.fold import events
from foldwise.models.mixture.estimator import CollapsedWarning


def rows(seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    long = rng.standard_normal((150, 2)) @ np.array([[3.0, 2.0], [0.0, 0.3]])
    return np.concatenate([long, rng.standard_normal((100, 2)) + np.array([0.0, 9.0])])


def test_it_finds_what_was_planted_and_keeps_the_table() -> None:
    found = fw.choose_mixture(rows(), range(1, 5))
    assert (found.best.covariance_type, found.best.n_components) == ("full", 2)
    assert len(found.entries) == 16
    assert found.table.shape == (16, 6)
    assert found.grid().shape == (4, 4)
    best = found.best_model
    assert best.bic(rows()) == pytest.approx(found.best.bic, rel=1e-12)
    assert found.best.bic == min(entry.bic for entry in found.entries)
    for entry in found.entries:
        n, p = 250, entry.parameters
        assert entry.bic == pytest.approx(-2 * entry.log_likelihood + p * math.log(n), rel=1e-12)
        assert entry.aic == pytest.approx(-2 * entry.log_likelihood + 2 * p, rel=1e-12)
        assert entry.icl >= entry.bic
        assert entry.outcome == "converged"
    lines = str(found).splitlines()
    assert lines[0].split() == ["components", "full", "tied", "diag", "spherical"]
    assert lines[2].split()[1].endswith("*")


def test_richer_models_are_never_worse(table: Callable[[str], np.ndarray]) -> None:
    """More components, and richer families with as many, start from the results of simpler ones, among others."""
    found = fw.choose_mixture(table("iris"), range(1, 6))
    likelihood = found.grid("log_likelihood")
    assert (np.diff(likelihood.values, axis=0) > -0.5).all()
    for k in likelihood.rows:
        full, tied, diag, spherical = (likelihood[k, kind] for kind in ("full", "tied", "diag", "spherical"))
        assert full >= max(tied, diag) - 1e-3
        assert diag >= spherical - 1e-3


def test_criteria_may_differ(table: Callable[[str], np.ndarray]) -> None:
    """Old Faithful: three Gaussians by BIC, two clusters that lie apart by ICL."""
    x = table("faithful")
    assert fw.choose_mixture(x, range(1, 5), "tied").best.n_components == 3
    assert fw.choose_mixture(x, range(1, 5), "tied", "icl").best.n_components == 2
    assert fw.choose_mixture(x, range(1, 5), "tied", "aic").best.n_components >= 3


def test_files_weights_and_one_of_each(tmp_path: Path) -> None:
    x = rows()
    np.save(tmp_path / "x.npy", x)
    one, two = fw.choose_mixture(x, [2], ["diag"]), fw.choose_mixture(tmp_path / "x.npy", 2, "diag")
    assert one.best.bic == two.best.bic
    np.testing.assert_array_equal(one.best_model.means_, two.best_model.means_)
    doubled = fw.choose_mixture(x, 2, "diag", sample_weight=np.full(len(x), 2.0)).best
    assert doubled.log_likelihood == pytest.approx(2 * one.best.log_likelihood, rel=1e-9)
    assert doubled.bic == pytest.approx(-2 * doubled.log_likelihood + doubled.parameters * math.log(500), rel=1e-12)


def test_collapsed_fits_are_in_the_table_but_not_chosen() -> None:
    rng = np.random.default_rng(0)
    x = np.concatenate([rng.standard_normal((60, 2)), np.zeros((60, 2))])
    found = fw.choose_mixture(x, range(1, 3), ("full",))
    collapsed = {entry.n_components: entry.collapsed for entry in found.entries}
    assert collapsed == {1: False, 2: True}
    assert found.best.n_components == 1
    assert found.entries[1].bic < found.entries[0].bic
    assert "!" in str(found)


def test_fits_that_fail_are_in_the_table() -> None:
    x = np.repeat([[0.0, 1.0], [2.0, 3.0], [5.0, 1.0]], 4, axis=0)
    found = fw.choose_mixture(x, [1, 3], ("full",), reg_covar=0)
    assert found.entries[1].outcome == "failed"
    assert math.isnan(found.entries[1].bic)
    assert found.best.n_components == 1
    with pytest.raises(DataError, match="ill-defined"):
        fw.choose_mixture(x, [3], ("full",), reg_covar=0)


def test_refusals() -> None:
    x = rows()
    with pytest.raises(ParameterError, match="whole numbers of at least 1"):
        fw.choose_mixture(x, [0, 1])
    with pytest.raises(ParameterError, match="give one or more of full"):
        fw.choose_mixture(x, [1], ["round"])
    with pytest.raises(ParameterError, match="give one of bic"):
        fw.choose_mixture(x, [1], criterion="bad")
    with pytest.raises(ParameterError, match="means_init cannot be passed"):
        fw.choose_mixture(x, [1], means_init=[[0.0, 0.0]])
    with pytest.raises(DataError, match="n_components = 300"):
        fw.choose_mixture(x, [300], ["full"])
    for numbers in ([1.7, 2.9], [True], ["2"]):
        with pytest.raises(ParameterError, match=r"give whole numbers\.$"):
            fw.choose_mixture(x, numbers)


def test_ctrl_c_ends_it() -> None:
    def stop(event: object) -> None:
        if isinstance(event, events.StepDone):
            raise KeyboardInterrupt

    with events.listening(stop), pytest.raises(KeyboardInterrupt):
        fw.choose_mixture(rows(), [2, 3])


def test_ctrl_c_keeps_what_is_finished() -> None:
    seen = []

    def stop(event: object) -> None:
        if isinstance(event, events.StepDone):
            seen.append(event)
            if len(seen) == 12:
                raise KeyboardInterrupt

    with events.listening(stop), pytest.warns(NotFinishedWarning, match="interrupted after"):
        found = fw.choose_mixture(rows(), range(1, 6), ("full", "spherical"))
    assert found.interrupted
    assert 0 < len(found.entries) < 10
    assert found.best in found.entries
    assert found.best_model.n_components == found.best.n_components
    assert "the best" in str(found)


def test_numbers_that_cannot_be_are_in_the_table() -> None:
    found = fw.choose_mixture(rows()[:7], covariance_types=("spherical",))
    assert [e.outcome == "failed" for e in found.entries] == [False] * 7 + [True] * 2
    assert "n_components = 8, n_samples = 7" in found.entries[7].reason
    found = fw.choose_mixture(rows()[:, :1], [1], ("spherical", "ppca"))
    assert found.best.covariance_type == "spherical"
    assert "too few for ppca" in found.entries[1].reason


def test_failed_ppca_has_its_parameters() -> None:
    """Six points span all four columns, so that one component is sure to fit; three of them have two points each."""
    x = np.repeat(np.random.default_rng(0).standard_normal((6, 4)), 2, axis=0)
    failed = fw.choose_mixture(x, [1, 3], ("ppca",), reg_covar=0).entries[1]
    assert failed.outcome == "failed"
    assert failed.parameters == 3 * (4 * 2 - 1 + 1) + 3 * 4 + 2


def test_a_random_state_is_drawn_from_once() -> None:
    x = np.random.default_rng(0).standard_normal((100, 2))
    seed = int(np.random.RandomState(7).randint(2**31 - 1))
    options = {"init_params": "random_from_data", "max_iter": 3, "tol": 0.0}
    with pytest.warns(NotFinishedWarning):
        one = fw.choose_mixture(x, [4], ("full",), random_state=np.random.RandomState(7), **options)
    with pytest.warns(NotFinishedWarning):
        other = fw.choose_mixture(x, [4], ("full",), random_state=seed, **options)
    with pytest.warns(NotFinishedWarning):
        third = fw.choose_mixture(x, [4], ("full",), random_state=0, **options)
    assert one.best.bic == other.best.bic != third.best.bic


def test_a_tied_covariance_that_is_flat_is_not_chosen() -> None:
    rng = np.random.default_rng(0)
    rows = np.column_stack([rng.standard_normal((500, 2)), rng.integers(0, 2, 500)])
    found = fw.choose_mixture(rows, range(1, 3), ("tied", "diag"))
    assert not found.best.collapsed
    assert found.best.n_components == 1
    with pytest.warns(CollapsedWarning):
        assert fw.GaussianMixture(2, covariance_type="tied", search="none").fit(rows).collapsed_


def test_columns_that_do_not_vary_change_no_choice() -> None:
    rng = np.random.default_rng(0)
    x = np.concatenate([rng.standard_normal((150, 2)), np.array([4.0, 1.0]) + rng.standard_normal((100, 2))])
    wide = np.column_stack([x, np.ones((250, 3))])
    plain = fw.choose_mixture(x, range(1, 4), ("full", "tied", "diag"))
    with pytest.warns(UserWarning, match="3 column.* one value in all rows"):
        padded = fw.choose_mixture(wide, range(1, 4), ("full", "tied", "diag"))
    assert (padded.best.covariance_type, padded.best.n_components) == (
        plain.best.covariance_type,
        plain.best.n_components,
    )
    assert padded.best.parameters - plain.best.parameters == 0


def test_a_choice_can_be_pickled_saved_and_loaded(tmp_path: Path) -> None:
    x = rows()
    found = fw.choose_mixture(x, range(1, 4), ("diag", "spherical"))
    fw.save(found, tmp_path / "choice.fw")
    for again in (pickle.loads(pickle.dumps(found)), fw.load(tmp_path / "choice.fw")):
        assert isinstance(again, fw.MixtureChoice)
        assert again.entries == found.entries
        assert again.best == found.best
        assert str(again) == str(found)
        np.testing.assert_array_equal(again.best_model.predict_proba(x), found.best_model.predict_proba(x))


def test_a_choice_takes_an_engine() -> None:
    x = rows()
    one, other = (fw.choose_mixture(x, [1, 2], "full", engine=engine) for engine in ("serial", None))
    assert one.best.bic == other.best.bic


def test_weights_that_are_shares_are_told() -> None:
    x = np.random.default_rng(0).normal(size=(100, 2))
    with pytest.warns(FoldwiseWarning, match="add up to 1 for 100 rows"):
        fw.choose_mixture(x, [1, 2], ("diag",), sample_weight=np.full(100, 0.01))
    with pytest.warns(FoldwiseWarning, match="add up to 1 for 100 rows"):
        fw.fit_distribution(x[:, 0], "normal", sample_weight=np.full(100, 0.01))
