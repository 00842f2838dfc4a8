"""The linear autoencoder: the span of the principal components, exactly by closed form and within 1e-3 rad by gradients."""

from __future__ import annotations

import gzip
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn.utils.estimator_checks import parametrize_with_checks

import foldwise as fw
from foldwise.errors import DataError, NotFinishedWarning, ParameterError
from foldwise.fold.iterate import iterate
from foldwise.models.autoencoder.linear_descent import LinearDescent

SOLVERS = ("closed-form", "gradient")


@parametrize_with_checks([fw.LinearAutoencoder(), fw.LinearAutoencoder(solver="gradient")])
def test_scikit_learn_contract(estimator: Any, check: Any) -> None:
    check(estimator)


def largest_angle(decoder: np.ndarray, directions: np.ndarray) -> float:
    """By an independent way: from the singular values of the product of two orthonormal bases."""
    from scipy.linalg import subspace_angles

    return float(subspace_angles(np.asarray(decoder, np.float64), np.asarray(directions, np.float64).T).max())


@pytest.fixture(scope="module")
def tables(shared_data: Path, table: Callable[[str], np.ndarray]) -> dict[str, np.ndarray]:
    found = {name: table(name) for name in ("iris", "wine", "fgl_glass", "decathlon")}
    with gzip.open(shared_data / "digits" / "optdigits_8x8.csv.gz", "rt") as file:
        found["optdigits"] = np.loadtxt(file, delimiter=",", skiprows=1)[:, :64]
    return found


@pytest.mark.parametrize("name", ["iris", "wine", "fgl_glass", "decathlon", "optdigits"])
@pytest.mark.parametrize("scale", [False, True])
def test_real_tables_are_within_a_thousandth_of_a_radian_of_pca(tables: Any, name: str, scale: bool) -> None:
    x = tables[name]
    seen = x - x.mean(axis=0)
    if scale:
        spread = seen.std(axis=0, ddof=1)
        seen = seen / np.where(spread > 0, spread, 1.0)
    for k in (1, 2, 3):
        directions = np.linalg.svd(seen, full_matrices=False)[2][:k]
        exact = fw.LinearAutoencoder(k, scale=scale).fit(x)
        assert largest_angle(exact.decoder_weights_, directions) < 1e-7
        for dtype in (np.float32, np.float64):
            trained = fw.LinearAutoencoder(k, solver="gradient", scale=scale).fit(x.astype(dtype))
            assert trained.outcome_.converged
            assert trained.decoder_weights_.dtype == trained.encoder_weights_.dtype == dtype
            assert largest_angle(trained.decoder_weights_, directions) < 1e-3
            # The encoder's rows span it as well, as far as the rows have variance in all directions.
            assert trained.angle_ < 1e-5
            np.testing.assert_allclose(trained.reconstruction_error_, exact.reconstruction_error_, rtol=1e-6)


def test_hand_worked() -> None:
    """Two columns that vary by 3 and by 1: one code keeps the first and loses the variance of the second."""
    x = np.array([[13.0, 21.0], [13.0, 19.0], [7.0, 21.0], [7.0, 19.0]])
    for solver in SOLVERS:
        model = fw.LinearAutoencoder(1, solver=solver).fit(x)
        np.testing.assert_allclose(model.decoder_weights_ @ model.encoder_weights_, [[1, 0], [0, 0]], atol=1e-5)
        np.testing.assert_allclose(model.reconstruct(x), [[13, 20], [13, 20], [7, 20], [7, 20]], atol=1e-4)
        np.testing.assert_allclose(model.reconstruction_error(x), np.ones(4), atol=1e-5)
        assert model.reconstruction_error_ == pytest.approx(1.0)
        assert model.score(x) == pytest.approx(-1.0)


def test_closed_form_is_pca() -> None:
    x = np.random.default_rng(0).normal(size=(60, 5)) * [5, 4, 3, 2, 1] + 7
    for scale in (False, True):
        model, pca = fw.LinearAutoencoder(3, scale=scale).fit(x), fw.PCA(3, scale=scale).fit(x)
        np.testing.assert_array_equal(model.encoder_weights_, pca.components_)
        np.testing.assert_array_equal(model.decoder_weights_, pca.components_.T)
        np.testing.assert_array_equal(model.transform(x), pca.transform(x))
        np.testing.assert_array_equal(
            model.inverse_transform(model.transform(x)), pca.inverse_transform(pca.transform(x))
        )
        np.testing.assert_allclose(model.reconstruction_error(x), pca.reconstruction_error(x), rtol=1e-9)
        assert model.angle_ == 0.0
        assert model.reconstruction_error_ == model.pca_error_ == pytest.approx(pca.reconstruction_error(x).mean())


def test_the_error_falls_at_every_step_and_ends_at_that_of_pca() -> None:
    x = np.random.default_rng(1).normal(size=(200, 12)) @ np.random.default_rng(2).normal(size=(12, 12))
    model = fw.LinearAutoencoder(4, solver="gradient").fit(x)
    errors = [figures["error"] for figures in model.trace_]
    assert len(errors) == model.n_iter_ > 10
    assert (np.diff(errors) <= 1e-14).all()
    share = model.pca_error_ / ((x - x.mean(axis=0)) ** 2).sum(axis=1).mean()
    assert errors[-1] == pytest.approx(share, rel=1e-8)
    assert model.trace_[-1]["angle"] == model.angle_ < model.trace_[0]["angle"]


def test_gradients_are_those_of_the_error() -> None:
    rng = np.random.default_rng(3)
    root = rng.normal(size=(6, 6))
    descent = LinearDescent(root @ root.T, 2, np.zeros((6, 0)), 0, 1e-6)
    W1, W2 = rng.normal(size=(2, 6)), rng.normal(size=(6, 2))

    def error(a: np.ndarray, b: np.ndarray) -> float:
        rest = np.eye(6) - b @ a
        return float(np.trace(rest @ descent.covariance @ rest.T))

    state = descent._state(W1, W2, {})
    assert float(state["error"]) == pytest.approx(error(W1, W2))
    for name, at in (("g1", W1), ("g2", W2)):
        for i, j in np.ndindex(at.shape):
            step = np.zeros_like(at)
            step[i, j] = 1e-6
            up, down = ((W1 + s * step, W2) if name == "g1" else (W1, W2 + s * step) for s in (1, -1))
            assert state[name][i, j] == pytest.approx((error(*up) - error(*down)) / 2e-6, rel=1e-5, abs=1e-6)


def test_where_rounding_hides_the_lowest_point_it_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """A step that cannot be worked out exactly is no sign of having arrived."""
    root = np.random.default_rng(3).normal(size=(6, 6))
    covariance = root @ root.T / np.trace(root @ root.T)
    principal = np.linalg.eigh(covariance)[1][:, ::-1][:, :2]
    descent = LinearDescent(covariance, 2, principal, 0, 1e-6)
    monkeypatch.setattr(np, "roots", lambda scaled: np.array([0.5 + 1e-8j, 0.5 - 1e-8j, -1.0]))
    state, outcome, _ = iterate(descent.start, descent.step, descent.done, max_iter=5000)
    assert outcome.converged
    assert len(outcome.trace) > 5
    assert float(state["angle"]) < 1e-4
    stuck = LinearDescent(covariance, 2, principal, 0, 1e-6)
    monkeypatch.setattr(LinearDescent, "_best_step", lambda *_: 0.0)
    _, outcome, _ = iterate(stuck.start, stuck.step, stuck.done, max_iter=3)
    assert not outcome.converged


def test_a_flat_start_is_the_end() -> None:
    """Without variance there is nothing to learn."""
    descent = LinearDescent(np.zeros((4, 4)), 2, np.zeros((4, 0)), 0, 0.0)
    _, outcome, _ = iterate(descent.start, descent.step, descent.done, max_iter=5)
    assert outcome.converged


def test_tags() -> None:
    assert not fw.LinearAutoencoder().__sklearn_tags__().input_tags.allow_nan
    for missing in ("drop", "mean", "model"):
        tags = fw.LinearAutoencoder(missing=missing).__sklearn_tags__()
        assert tags.input_tags.allow_nan
        assert tags.input_tags.sparse
    for model in (fw.LinearAutoencoder(1), fw.LinearAutoencoder(1, missing="model")):
        x = np.random.default_rng(0).normal(size=(30, 3))
        x[3, 1] = np.nan
        with nullcontext() if model.missing == "model" else pytest.raises(DataError, match="NaN"):
            model.fit(x)


@given(st.integers(0, 10**6), st.integers(2, 9), st.floats(0.0, 9.0), st.floats(-120.0, 120.0))
def test_any_spectrum_any_units(seed: int, d: int, decades: float, size: float) -> None:
    """However conditioned, and of whatever size: the angle to the leading eigenvectors is small where they stand out."""
    rng = np.random.default_rng(seed)
    turn, _ = np.linalg.qr(rng.normal(size=(d, d)))
    values = np.sort(10.0 ** -rng.uniform(0, decades, d))[::-1]
    k = int(rng.integers(1, d))
    values[k:] *= 0.5  # a gap, so that the span is defined
    S = (turn * values) @ turn.T
    S = (S + S.T) / 2 / np.trace(S)
    descent = LinearDescent(S, k, turn[:, :k], seed, 1e-6)
    state, outcome, _ = iterate(descent.start, descent.step, descent.done, max_iter=5000)
    assert outcome.converged
    assert float(state["angle"]) < 1e-3
    rows = np.sqrt(10.0**size) * rng.normal(size=(50, d)) * np.sqrt(values)
    trained = fw.LinearAutoencoder(k, solver="gradient").fit(rows)
    assert trained.reconstruction_error_ == pytest.approx(trained.pca_error_, rel=1e-6)


@pytest.mark.parametrize("solver", SOLVERS)
def test_weights_mean_repetition(solver: str) -> None:
    rng = np.random.default_rng(4)
    x, w = rng.normal(size=(40, 4)) * [4, 3, 2, 1], rng.integers(0, 4, 40)
    weighted = fw.LinearAutoencoder(2, solver=solver).fit(x, sample_weight=w)
    repeated = fw.LinearAutoencoder(2, solver=solver).fit(np.repeat(x, w, axis=0))
    np.testing.assert_allclose(weighted.mean_, repeated.mean_, rtol=1e-12)
    np.testing.assert_allclose(
        weighted.decoder_weights_ @ weighted.encoder_weights_,
        repeated.decoder_weights_ @ repeated.encoder_weights_,
        atol=1e-5,
    )
    assert weighted.reconstruction_error_ == pytest.approx(repeated.reconstruction_error_)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize(("dtype", "offset"), [(np.float64, 1e8), (np.float64, -1e12), (np.float32, 1e4)])
def test_an_offset_changes_nothing(solver: str, dtype: Any, offset: float) -> None:
    x = np.round(np.random.default_rng(5).normal(size=(80, 4)) * [40, 30, 20, 10] * 8) / 8
    near = fw.LinearAutoencoder(2, solver=solver).fit(x)
    far = fw.LinearAutoencoder(2, solver=solver).fit((x + offset).astype(dtype))
    exactly = (x + offset).astype(dtype).astype(np.float64) - offset  # as far as the dtype can hold it
    within = 1e-3 if dtype == np.float64 and offset == -1e12 else 1e-5
    np.testing.assert_allclose(
        far.decoder_weights_ @ far.encoder_weights_, near.decoder_weights_ @ near.encoder_weights_, atol=within
    )
    np.testing.assert_allclose(
        far.reconstruction_error((x + offset).astype(dtype)), near.reconstruction_error(exactly), rtol=1e-2, atol=1e-3
    )


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("size", [1e-20, 1e-100, 1e100])
def test_any_size_of_numbers(solver: str, size: float) -> None:
    x = np.random.default_rng(6).normal(size=(50, 3)) * [3, 2, 1]
    one, other = (fw.LinearAutoencoder(1, solver=solver).fit(rows) for rows in (x, x * size))
    np.testing.assert_allclose(
        other.decoder_weights_ @ other.encoder_weights_, one.decoder_weights_ @ one.encoder_weights_, atol=1e-6
    )
    assert other.reconstruction_error_ == pytest.approx(one.reconstruction_error_ * size**2)


@pytest.mark.parametrize("solver", SOLVERS)
def test_errors_are_the_distances_to_the_reconstructions(solver: str) -> None:
    rng = np.random.default_rng(7)
    x = rng.normal(size=(100, 6)) @ rng.normal(size=(6, 6)) + 5
    with pytest.warns(NotFinishedWarning) if solver == "gradient" else np.errstate():
        # Also of a model that is not trained to the end, of which decoder times encoder is no projection.
        model = fw.LinearAutoencoder(2, solver=solver, scale=True, max_iter=3).fit(x)
    spread = x.std(axis=0, ddof=1)
    apart = (x - model.reconstruct(x)) / spread
    np.testing.assert_allclose(model.reconstruction_error(x), (apart**2).sum(axis=1), rtol=1e-10)
    np.testing.assert_allclose(model.reconstruct(x), model.inverse_transform(model.transform(x)), rtol=1e-12)
    assert model.reconstruction_error_ == pytest.approx(model.reconstruction_error(x).mean(), rel=1e-9)
    sparse = sp.csr_array(np.where(np.abs(x) > 4, x, 0.0))
    np.testing.assert_allclose(
        model.reconstruction_error(sparse), model.reconstruction_error(sparse.toarray()), rtol=1e-9
    )


def test_sparse_rows_constant_columns_and_more_codes_than_rank() -> None:
    x = sp.random(200, 30, density=0.1, random_state=0, format="csr")
    for solver in SOLVERS:
        model = fw.LinearAutoencoder(3, solver=solver).fit(x)
        dense = fw.LinearAutoencoder(3, solver=solver).fit(x.toarray())
        assert model.reconstruction_error_ == pytest.approx(dense.reconstruction_error_, rel=1e-6)
        flat = np.random.default_rng(0).normal(size=(50, 2)) @ np.array([[1.0, 2.0, 0.0, 1.0], [0.0, 1.0, 0.0, -1.0]])
        model = fw.LinearAutoencoder(3, solver=solver).fit(flat + 3)  # of rank 2, with a constant column
        assert model.reconstruction_error(flat + 3).max() < 1e-12
        assert model.angle_ < 1e-5
        whole = fw.LinearAutoencoder(4, solver=solver).fit(flat)
        assert whole.reconstruction_error_ < 1e-12
        still = fw.LinearAutoencoder(2, solver=solver).fit(np.ones((5, 3)))
        np.testing.assert_array_equal(still.reconstruct(np.ones((2, 3))), np.ones((2, 3)))


@pytest.mark.parametrize("solver", SOLVERS)
def test_missing_cells(solver: str) -> None:
    rng = np.random.default_rng(8)
    x = rng.normal(size=(120, 2)) @ rng.normal(size=(2, 5)) + 0.1 * rng.normal(size=(120, 5))
    x[rng.random(x.shape) < 0.1] = np.nan
    for missing in ("drop", "mean", "model"):
        model = fw.LinearAutoencoder(2, solver=solver, missing=missing).fit(x)
        pca = fw.PCA(2, missing=missing).fit(x)
        assert largest_angle(model.decoder_weights_, pca.components_) < 1e-4
        np.testing.assert_allclose(model.reconstruction_error(x), pca.reconstruction_error(x), rtol=1e-3, atol=1e-5)
        assert model.transform(x).shape == (120, 2)
        if missing == "model":  # of the rows as they are, over the cells that they have
            weights = np.arange(120) % 3
            weighted = fw.LinearAutoencoder(2, solver=solver, missing=missing).fit(x, sample_weight=weights)
            for fitted, w in ((model, np.ones(120)), (weighted, weights)):
                errors = fitted.reconstruction_error(x)
                assert fitted.reconstruction_error_ == pytest.approx(w @ errors / w.sum(), rel=1e-9)
                pca = fw.PCA(2, missing=missing).fit(x, sample_weight=w)
                assert fitted.pca_error_ == pytest.approx(w @ pca.reconstruction_error(x) / w.sum(), rel=1e-6)
    with pytest.raises(DataError, match="missing"):
        fw.LinearAutoencoder(2, solver=solver).fit(x)


def test_bad_input() -> None:
    x = np.random.default_rng(0).normal(size=(10, 3))
    for solver in SOLVERS:
        with pytest.raises(ParameterError, match="n_components=4 must be between 0 and"):
            fw.LinearAutoencoder(4, solver=solver).fit(x)
    with pytest.raises(ParameterError, match="solver"):
        fw.LinearAutoencoder(2, solver="adam").fit(x)
    model = fw.LinearAutoencoder(2).fit(x)
    with pytest.raises(DataError, match="codes of this model have 2"):
        model.inverse_transform(x)
    with pytest.raises(DataError, match="NaN"):
        fw.LinearAutoencoder(2).fit(np.where(x > 1, np.nan, x))


def test_same_bits_from_memory_file_and_any_number_of_threads(tmp_path: Path) -> None:
    x = np.random.default_rng(9).normal(size=(20_000, 6)) * [6, 5, 4, 3, 2, 1]
    np.save(tmp_path / "rows.npy", x)
    one = fw.LinearAutoencoder(3, solver="gradient", n_threads=1).fit(x)
    for other in (
        fw.LinearAutoencoder(3, solver="gradient", n_threads=2).fit(x),
        fw.LinearAutoencoder(3, solver="gradient").fit(tmp_path / "rows.npy"),
    ):
        np.testing.assert_array_equal(one.encoder_weights_, other.encoder_weights_)
        np.testing.assert_array_equal(one.decoder_weights_, other.decoder_weights_)
    elsewhere = fw.LinearAutoencoder(3, solver="gradient", random_state=5).fit(x)
    assert np.abs(elsewhere.encoder_weights_ - one.encoder_weights_).max() > 0.01  # another mix of the same span
    assert largest_angle(elsewhere.decoder_weights_, one.pca_.components_) < 1e-5


@pytest.mark.parametrize("solver", SOLVERS)
def test_saved_and_loaded(solver: str, tmp_path: Path) -> None:
    x = np.random.default_rng(10).normal(size=(60, 4)) * [4, 3, 2, 1]
    model = fw.LinearAutoencoder(2, solver=solver).fit(x)
    fw.save(model, tmp_path / "model.fw")
    loaded = fw.load(tmp_path / "model.fw")
    np.testing.assert_array_equal(loaded.transform(x), model.transform(x))
    np.testing.assert_array_equal(loaded.reconstruction_error(x), model.reconstruction_error(x))
    assert loaded.trace_ == model.trace_
    assert loaded.angle_ == model.angle_
    assert list(loaded.get_feature_names_out()) == ["linearautoencoder0", "linearautoencoder1"]


def test_row_output_has_codes_and_errors() -> None:
    x = np.random.default_rng(11).normal(size=(30, 4)).astype(np.float32)
    model = fw.LinearAutoencoder(2).fit(x)
    output = model.row_output(fw.scan(x))
    told = output.of(next(iter(output.source.pieces())).load())
    assert output.names == ("linearautoencoder0", "linearautoencoder1", "error")
    np.testing.assert_array_equal(told["linearautoencoder1"], model.transform(x)[:, 1])
    np.testing.assert_array_equal(told["error"], model.reconstruction_error(x))


def test_a_stopped_fit_says_so_and_resumes(tmp_path: Path) -> None:
    x = np.random.default_rng(12).normal(size=(100, 8)) @ np.random.default_rng(13).normal(size=(8, 8))
    whole = fw.LinearAutoencoder(3, solver="gradient").fit(x)
    place = tmp_path / "fit.checkpoint"
    with pytest.warns(NotFinishedWarning, match="gradient"):
        fw.LinearAutoencoder(3, solver="gradient", max_iter=5, checkpoint=place).fit(x)
    assert place.exists()
    resumed = fw.LinearAutoencoder(3, solver="gradient", checkpoint=place).fit(x)
    assert resumed.manifest_.resumed_at == 5
    np.testing.assert_array_equal(resumed.decoder_weights_, whole.decoder_weights_)
    assert resumed.trace_ == whole.trace_
    assert not place.exists()


CHILD = """
import sys, time
import foldwise as fw
from foldwise.fold import events
path, checkpoint = sys.argv[1:]
with events.listening(lambda event: time.sleep(0.3) if isinstance(event, events.StepDone) else None):
    fw.LinearAutoencoder(3, solver="gradient", checkpoint=checkpoint).fit(path)
print("finished")
"""


def test_killed_and_resumed(tmp_path: Path) -> None:
    path, place = tmp_path / "rows.npy", tmp_path / "fit.checkpoint"
    np.save(path, np.random.default_rng(0).standard_normal((500, 20)) / np.sqrt(np.arange(1, 21)) + 100)
    undisturbed = fw.LinearAutoencoder(3, solver="gradient").fit(path)
    with subprocess.Popen(
        [sys.executable, "-c", CHILD, str(path), str(place)], stdout=subprocess.PIPE, text=True
    ) as child:
        deadline = time.monotonic() + 60
        while not place.exists() and child.poll() is None and time.monotonic() < deadline:
            time.sleep(0.01)
        os.kill(child.pid, signal.SIGKILL)
        assert "finished" not in (child.communicate()[0] or "")
    resumed = fw.LinearAutoencoder(3, solver="gradient", checkpoint=place).fit(path)
    assert 0 < resumed.manifest_.resumed_at < undisturbed.n_iter_
    for name in ("encoder_weights_", "decoder_weights_", "mean_"):
        np.testing.assert_array_equal(getattr(resumed, name), getattr(undisturbed, name))
    assert resumed.trace_ == undisturbed.trace_
