"""fw.Autoencoder as users meet it: it begins as PCA, is never much worse, bends where rows do, and says what it did."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone

import foldwise as fw
from foldwise.errors import DataError, NotFinishedWarning, ParameterError
from foldwise.fold import events
from foldwise.fold.passes import Passes
from foldwise.models.autoencoder import inputs as inputs_module

torch = pytest.importorskip("torch")


def curve(n: int = 400, d: int = 6, noise: float = 0.05, seed: int = 0) -> np.ndarray:
    """Rows along a bent line in `d` columns."""
    rng = np.random.default_rng(seed)
    t = rng.uniform(-1, 1, n)
    mixing = np.random.default_rng(99).standard_normal((3, d))
    return np.column_stack([t, 2 * t**2, np.sin(4 * t)]) @ mixing + noise * rng.standard_normal((n, d))


def straight(n: int = 300, d: int = 5, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n, d)) @ np.diag(1.5 ** -np.arange(d)) + 3.0


def quick(k: int = 1, **options: Any) -> fw.Autoencoder:
    return fw.Autoencoder(k, **{"encoder": [16, 16], "max_iter": 30, "random_state": 0, **options})


def same(a: Any, b: Any) -> None:
    for mine, other in ((a.encoder_, b.encoder_), (a.decoder_, b.decoder_)):
        for layer, twin in zip(mine.layers, other.layers, strict=True):
            np.testing.assert_array_equal(layer.weights, twin.weights)
            np.testing.assert_array_equal(layer.bias, twin.bias)
    assert a.held_out_error_ == b.held_out_error_
    assert (a.best_epoch_, a.n_iter_) == (b.best_epoch_, b.n_iter_)
    assert a.trace_ == b.trace_


# ---------------------------------------------------------------- PCA is the start


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("scale", [False, True])
def test_without_training_it_is_pca(dtype: Any, scale: bool) -> None:
    """A learning rate next to nothing, so that the first epoch is not better for sure: codes, rows and errors are PCA's.

    The errors that are told are of the PCA that has not seen the held-out rows, and the result is PCA of all rows.
    """
    x = straight().astype(dtype)
    ae = quick(2, scale=scale, learning_rate=1e-30, max_iter=1, validation_fraction=0.2).fit(x)
    assert ae.best_epoch_ == 0
    assert ae.validation_share_ == 0.2
    split = inputs_module.Split(0, 0.2, len(x), (0, len(x)))
    held_out = split.held_out(inputs_module.DenseBlock(x))
    assert held_out.sum() == 60
    pca = fw.PCA(2, scale=scale).fit(x)
    size = np.abs(pca.transform(x)).max()
    np.testing.assert_allclose(ae.transform(x), pca.transform(x), atol=3e-6 * size)
    np.testing.assert_allclose(ae.reconstruct(x), pca.inverse_transform(pca.transform(x)), rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(ae.reconstruction_error(x), pca.reconstruction_error(x), rtol=1e-3, atol=1e-5)
    pca = fw.PCA(2, scale=scale).fit(x[~held_out])
    assert ae.held_out_error_ == pytest.approx(pca.reconstruction_error(x[held_out]).mean(), rel=1e-4)
    assert ae.pca_error_ == pytest.approx(pca.reconstruction_error(x[held_out]).mean(), rel=1e-5)
    spread = (x[held_out] - pca.mean_) / (1.0 if pca.scale_ is None else pca.scale_)
    assert ae.held_out_variance_ == pytest.approx((spread**2).sum(axis=1).mean(), rel=1e-5)


@settings(max_examples=12, deadline=None)
@given(n=st.integers(2, 60), d=st.integers(1, 5), k=st.integers(1, 6), seed=st.integers(0, 99), scale=st.booleans())
def test_never_worse_than_pca_where_it_is_judged(n: int, d: int, k: int, seed: int, scale: bool) -> None:
    x, k = np.random.default_rng(seed).standard_normal((n, d)) + 5, min(k, d)
    ae = quick(k, max_iter=4, random_state=seed, scale=scale).fit(x)
    assert ae.held_out_error_ <= ae.pca_error_ * (1 + 1e-4) + 1e-9 * ae.held_out_variance_
    assert ae.transform(x).shape == (n, k)
    assert ae.inverse_transform(ae.transform(x)).shape == x.shape
    if n < 20:
        assert any("no rows were held out" in note for note in ae.manifest_.notes)


def test_straight_rows_get_pca_back() -> None:
    ae = fw.Autoencoder(2, encoder=[32], max_iter=150).fit(straight(200))
    assert ae.best_epoch_ == 0
    assert ae.held_out_error_ == pytest.approx(ae.pca_error_, rel=1e-4)


def test_bent_rows_need_fewer_numbers() -> None:
    x, new = curve(), curve(seed=1)
    ae = fw.Autoencoder(1, encoder=[32, 32], max_iter=300).fit(x)
    error = ae.reconstruction_error(new).mean()
    assert error < 0.2 * fw.PCA(1).fit(x).reconstruction_error(new).mean()
    assert ae.held_out_error_ < 0.2 * ae.pca_error_ < ae.held_out_variance_
    assert 0 < ae.best_epoch_ <= ae.n_iter_ == len(ae.trace_)
    assert set(ae.trace_[0]) == {"epoch", "training_error", "held_out_error", "learning_rate"}
    best = min(figures["held_out_error"] for figures in ae.trace_)
    assert ae.trace_[ae.best_epoch_ - 1]["held_out_error"] == best
    assert ae.held_out_error_ == pytest.approx(best, rel=1e-3)
    assert ae.score(new) == pytest.approx(-error)
    assert ae.outcome_.converged
    away = ((new - ae.reconstruct(new)) ** 2).sum(axis=1)
    np.testing.assert_allclose(ae.reconstruction_error(new), away, rtol=1e-3, atol=1e-6)
    np.testing.assert_allclose(ae.inverse_transform(ae.transform(new)), ae.reconstruct(new), rtol=1e-4, atol=1e-4)


def test_the_textbook_network_learns_too() -> None:
    ae = fw.Autoencoder(1, encoder=[32, 32], max_iter=300, linear=False, activation="tanh").fit(curve())
    assert ae.encoder_.shortcut is None
    assert ae.held_out_error_ < 0.5 * ae.pca_error_


def test_patience_stops_early() -> None:
    ae = quick(3, max_iter=200, patience=3).fit(straight(100))
    assert ae.n_iter_ < 200
    assert ae.outcome_.converged


# ---------------------------------------------------------------- what rows may be


@pytest.mark.parametrize("factor", [2.0**-66, 2.0**50])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_units_do_not_matter(factor: float, dtype: Any) -> None:
    """By a power of two nothing is rounded, so that it is the same network, and all else is multiplied."""
    x = curve(200).astype(dtype)
    plain, scaled = quick(1).fit(x), quick(1).fit((x * factor).astype(dtype))
    np.testing.assert_array_equal(scaled.encoder_.layers[0].weights, plain.encoder_.layers[0].weights)
    np.testing.assert_array_equal(scaled.transform((x * factor).astype(dtype)), plain.transform(x) * dtype(factor))
    np.testing.assert_array_equal(
        scaled.inverse_transform((plain.transform(x) * factor).astype(dtype)),
        plain.inverse_transform(plain.transform(x)) * dtype(factor),
    )
    assert scaled.held_out_error_ == plain.held_out_error_ * factor**2


def test_units_beyond_float32() -> None:
    x = curve(200)
    tiny, plain = quick(1).fit(x * 2.0**-400), quick(1).fit(x)
    np.testing.assert_array_equal(tiny.transform(x * 2.0**-400), plain.transform(x) * 2.0**-400)
    assert tiny.held_out_error_ > 0


def test_a_large_offset_costs_no_digits() -> None:
    x = np.round(curve(200) * 2**20) / 2**20  # so that adding the offset is exact
    plain, moved = quick(1).fit(x), quick(1).fit(x + 2.0**27)
    np.testing.assert_allclose(moved.mean_ - 2.0**27, plain.mean_, atol=1e-7)
    assert moved.pca_error_ == pytest.approx(plain.pca_error_, rel=1e-6)
    # Training makes more of the rounding of the means; float32 could not hold a digit of these rows.
    assert moved.held_out_error_ == pytest.approx(plain.held_out_error_, rel=1e-2)
    np.testing.assert_allclose(moved.transform(x + 2.0**27), plain.transform(x), atol=2e-2)
    np.testing.assert_allclose(moved.reconstruct(x + 2.0**27) - 2.0**27, plain.reconstruct(x), atol=2e-2)


def test_columns_of_any_unit_with_scale() -> None:
    x = curve(200)
    factors = np.array([1e-6, 1, 1e3, 1e9, 5, 1e-12])
    plain, scaled = quick(1, scale=True).fit(x), quick(1, scale=True).fit(x * factors)
    assert scaled.held_out_error_ == pytest.approx(plain.held_out_error_, rel=1e-2)
    np.testing.assert_allclose(scaled.scale_, plain.scale_ * factors, rtol=1e-9)


def test_a_weight_is_a_repetition() -> None:
    """One batch per epoch, nothing held out: w = 2 is the row twice, up to the order of sums."""
    x = curve(60)
    weights = np.random.default_rng(0).integers(0, 4, size=60).astype(float)
    options = {"validation_fraction": 0.0, "batch_size": 1000, "max_iter": 20, "encoder": [8]}
    weighted = quick(1, **options).fit(x, sample_weight=weights)
    repeated = quick(1, **options).fit(np.repeat(x, weights.astype(int), axis=0))
    np.testing.assert_allclose(weighted.mean_, repeated.mean_, rtol=1e-12)
    np.testing.assert_allclose(weighted.transform(x), repeated.transform(x), atol=2e-2)  # rounding grows on the way
    assert weighted.held_out_error_ == pytest.approx(repeated.held_out_error_, rel=2e-4)
    for a, b in zip(weighted.trace_, repeated.trace_, strict=True):
        assert a["training_error"] == pytest.approx(b["training_error"], rel=2e-4)


def test_rows_without_weight_are_not_there() -> None:
    x = curve(100)
    far = np.vstack([x, np.full((5, 6), 1e6)])
    weights = np.r_[np.ones(100), np.zeros(5)]
    found = quick(1).fit(far, sample_weight=weights)
    assert np.abs(found.mean_).max() < 10
    assert found.held_out_variance_ < 100


@pytest.mark.parametrize("policy", ["drop", "mean", "model"])
def test_missing_cells(policy: str) -> None:
    x = curve(300)
    gaps = np.random.default_rng(3).random(x.shape) < 0.05
    holed = np.where(gaps, np.nan, x)
    with pytest.raises(DataError, match="NaN"):
        quick(1).fit(holed)
    ae = quick(1, missing=policy, max_iter=100).fit(holed)
    assert ae.held_out_error_ < 0.8 * ae.pca_error_
    assert np.isfinite(ae.transform(holed)).all()
    assert np.isfinite(ae.reconstruct(holed)).all()
    errors = ae.reconstruction_error(holed)
    assert np.isfinite(errors).all()
    assert "missing cell" in ae.manifest_.notes[-1]
    if policy == "model":
        row = holed[gaps.any(axis=1)][0]
        seen = ~np.isnan(row)
        rebuilt = ae.reconstruct(row[None])[0]
        expected = ((row - rebuilt)[seen] ** 2).sum()
        assert ae.reconstruction_error(row[None])[0] == pytest.approx(expected, rel=1e-4)
        filled = ae.pca_._normal().fill(row[None])[0][0]
        assert np.abs(filled - ae.mean_)[~seen].max() > 0.01
        np.testing.assert_allclose(ae.transform(row[None]), ae.transform(filled[None]), rtol=1e-5, atol=1e-5)


def holed(n: int = 300, d: int = 8) -> np.ndarray:
    x = curve(n, d) + 3.0
    x[np.random.default_rng(5).random(x.shape) < 0.15] = np.nan
    x[7] = np.nan
    return x


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("scale", [False, True])
def test_with_missing_cells_it_begins_as_pca_too(dtype: Any, scale: bool) -> None:
    x = holed().astype(dtype)
    ae = quick(2, missing="model", scale=scale, learning_rate=1e-30, max_iter=1).fit(x)
    pca = fw.PCA(2, missing="model", scale=scale).fit(x)
    assert ae.best_epoch_ == 0
    assert ae.held_out_error_ == pytest.approx(ae.pca_error_, rel=1e-4)
    np.testing.assert_allclose(ae.transform(x), pca.transform(x), atol=1e-5)
    np.testing.assert_allclose(ae.reconstruction_error(x), pca.reconstruction_error(x), rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("linear", [False, True])
def test_missing_cells_and_reduced_columns(linear: bool, tmp_path: Path) -> None:
    """One missing cell must not make all scores of its row NaN, nor errors count what is not there."""
    x = holed()
    ae = quick(2, missing="model", reduce_to=5, max_iter=60, linear=linear).fit(x)
    assert ae.encoder_.n_inputs == 5
    codes = ae.transform(x)
    assert len(np.unique(codes, axis=0)) == len(x)
    away = np.nansum((x - ae.reconstruct(x)) ** 2, axis=1)
    away[np.isnan(x).all(axis=1)] = np.nan
    np.testing.assert_allclose(ae.reconstruction_error(x), away, rtol=1e-4, atol=1e-6)
    # The trace judges epochs by the same errors as the result.
    best = min(figures["held_out_error"] for figures in ae.trace_)
    assert ae.best_epoch_ > 0
    assert ae.held_out_error_ == pytest.approx(best, rel=1e-3)
    assert ae.held_out_error_ < (0.9 * ae.pca_error_ if linear else 0.9 * ae.held_out_variance_)
    fw.save(ae, tmp_path / "ae.fw")
    np.testing.assert_array_equal(fw.load(tmp_path / "ae.fw").transform(x), codes)


@pytest.mark.parametrize("reduce_to", [None, 5])
def test_held_out_errors_are_of_observed_cells(reduce_to: int | None) -> None:
    x = holed()
    ae = quick(2, missing="model", reduce_to=reduce_to, max_iter=60, validation_fraction=0.2).fit(x)
    assert ae.best_epoch_ > 0
    held_out = inputs_module.Split(0, 0.2, len(x), (0, len(x))).held_out(inputs_module.DenseBlock(x))
    assert ae.held_out_error_ == pytest.approx(ae.reconstruction_error(x[held_out]).mean(), rel=1e-5)
    spread = np.nansum((x[held_out] - ae.mean_) ** 2, axis=1)
    assert ae.held_out_variance_ == pytest.approx(spread.mean(), rel=1e-5)


@pytest.mark.parametrize("reduce_to", [None, 3])
def test_completed_rows_from_a_scratch_file_are_the_same(
    reduce_to: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Several rounds: rows are completed whenever they are read, or once."""
    monkeypatch.setattr("foldwise.data.block_grid._BYTES", 10_000)
    monkeypatch.setattr("foldwise.data.block_grid._WIDE_ROWS", 128)
    monkeypatch.setattr("foldwise.models.autoencoder.training.ROOM", 6_000)
    x = holed(900, 9)
    options = {"missing": "model", "reduce_to": reduce_to, "noise": 0.1, "validation_fraction": 0.05, "max_iter": 3}
    computed = quick(2, **options, n_threads=1).fit(x)
    assert computed.outcome_.steps > 3
    monkeypatch.setattr("foldwise.models.autoencoder.fit.ROOM", 6_000)
    completed = []
    complete = inputs_module.Inputs.completed
    monkeypatch.setattr(
        inputs_module.Inputs, "completed", lambda self, block: completed.append(1) or complete(self, block)
    )
    same(quick(2, **options, n_threads=2).fit(x), computed)
    assert len(completed) <= 2 * len(list(fw.scan(x).pieces()))  # for the rows held out, and for all


def test_complete_rows_first_and_gaps_later() -> None:
    x = curve()
    ae = quick(2, missing="model").fit(x)
    same(ae, quick(2).fit(x))
    row = x[:1].copy()
    row[0, 2] = np.nan
    pca = fw.PCA(2, missing="model").fit(x)
    filled = ae.pca_._normal().fill(row)[0]
    assert np.abs(filled - x[:1]).max() < 3 * np.abs(pca._normal().fill(row)[0] - x[:1]).max()
    np.testing.assert_array_equal(ae.transform(row), ae.transform(filled))


# ---------------------------------------------------------------- which rows are held out


def test_small_blocks_hold_out_the_share_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """A hundredth of blocks of 128 or of 2 rows rounds to 1 or to 0 rows of each."""
    monkeypatch.setattr("foldwise.data.block_grid._BYTES", 1)
    for rows in (40, 2):
        monkeypatch.setattr("foldwise.data.block_grid._WIDE_ROWS", rows)
        x = curve(600)
        ae = quick(1, validation_fraction=0.01, max_iter=2).fit(x)
        assert ae.validation_share_ == 0.01
        split = replace(inputs_module.Split.over(Passes(fw.scan(x)), 0), share=0.01)
        found = [split.held_out(piece.load()) for piece in fw.scan(x).pieces()]
        assert len(found) > 10
        assert sum(int(one.sum()) for one in found) == split.n_held_out == 6


def test_one_row_with_weight_in_each_block(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("foldwise.data.block_grid._BYTES", 1)
    monkeypatch.setattr("foldwise.data.block_grid._WIDE_ROWS", 20)
    x = curve(800)
    weights = np.zeros(800)
    weights[::20] = 1.0
    ae = quick(1, max_iter=2).fit(x, sample_weight=weights)
    assert ae.manifest_.rows == 40
    assert ae.held_out_variance_ > 0
    split = replace(inputs_module.Split.over(Passes(fw.scan(x, weights=weights)), 0), share=ae.validation_share_)
    held_out = [split.held_out(piece.load()) for piece in fw.scan(x, weights=weights).pieces()]
    assert sum(int(one.sum()) for one in held_out) == split.n_held_out == 12
    assert all(weights[np.flatnonzero(np.concatenate(held_out))] == 1)


@settings(max_examples=30, deadline=None)
@given(
    counts=st.lists(st.integers(0, 9), min_size=1, max_size=30),
    share=st.floats(0, 1),
    seed=st.integers(0, 99),
)
def test_any_share_of_any_blocks(counts: list[int], share: float, seed: int) -> None:
    before = tuple(np.cumsum([0, *counts]).tolist())
    split = inputs_module.Split(seed, share, 10, before)
    found = 0
    for number, count in enumerate(counts):
        weights = np.zeros(10)
        weights[np.random.default_rng(number).permutation(10)[:count]] = 2.0
        which = split.held_out(inputs_module.DenseBlock(np.zeros((10, 1)), 10 * number, weights))
        assert (weights[which] > 0).all()
        assert abs(int(which.sum()) - share * count) <= 1 + 1e-9
        found += int(which.sum())
    assert found == split.n_held_out == round(share * sum(counts))


def test_nearly_all_rows_held_out() -> None:
    ae = quick(1, validation_fraction=0.99, max_iter=2).fit(curve(30))
    assert ae.validation_share_ == pytest.approx(28 / 30)


def test_dropped_rows_of_some_blocks_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only blocks with a missing cell get weights."""
    monkeypatch.setattr("foldwise.data.block_grid._BYTES", 10_000)
    monkeypatch.setattr("foldwise.data.block_grid._WIDE_ROWS", 128)
    x = curve(900)
    x[700, 3] = np.nan
    options = {"missing": "drop", "validation_fraction": 0.0, "batch_size": 1000, "max_iter": 5}
    found = quick(1, **options).fit(x)
    without = quick(1, **options).fit(np.delete(x, 700, axis=0))
    assert found.held_out_error_ == pytest.approx(without.held_out_error_, rel=1e-4)
    assert found.held_out_error_ < found.pca_error_


def test_sparse_rows_go_through_principal_scores() -> None:
    rng = np.random.default_rng(0)
    x = curve(300, 30) * (rng.random((300, 30)) < 0.4)
    ae = quick(2, reduce_to=10).fit(sp.csr_matrix(x))
    assert ae.pca_ is not None
    assert ae.encoder_.n_inputs == 10
    dense = quick(2, reduce_to=10).fit(x)
    np.testing.assert_allclose(ae.transform(sp.csr_matrix(x)), dense.transform(x), rtol=1e-2, atol=1e-2)
    rebuilt = ae.inverse_transform(ae.transform(sp.csr_matrix(x)))
    assert rebuilt.shape == x.shape
    # The error has two parts, in the space of the scores and outside of it: together the distance from the row.
    away = ((x - rebuilt) ** 2).sum(axis=1)
    np.testing.assert_allclose(ae.reconstruction_error(sp.csr_matrix(x)), away, rtol=1e-3)
    assert ae.held_out_error_ <= ae.pca_error_ * (1 + 1e-5)
    auto = quick(2).fit(sp.csr_matrix(x))
    assert auto.pca_ is not None
    assert auto.encoder_.n_inputs == 30


def test_many_columns_are_reduced() -> None:
    x = curve(60, 2100)
    ae = quick(1, max_iter=5).fit(x)
    assert ae.pca_ is not None
    assert ae.encoder_.n_inputs < 60
    assert ae.reconstruct(x).shape == x.shape
    whole = quick(1, max_iter=5, reduce_to=None).fit(x)
    assert whole.pca_ is None
    assert ae.pca_error_ == pytest.approx(whole.pca_error_, rel=1e-4)


def test_categories_and_names(tmp_path: Path) -> None:
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    group = rng.integers(3, size=200)
    frame = pd.DataFrame({"size": group * 2.0 + rng.random(200), "kind": np.array(["a", "b", "c"])[group]})
    ae = quick(1, prepare="auto").fit(frame)
    assert list(ae.get_feature_names_out()) == ["autoencoder0"]
    assert ae.transform(frame).shape == (200, 1)
    assert ae.held_out_error_ <= ae.pca_error_ * (1 + 1e-4)
    table = ae.set_output(transform="pandas").transform(frame)
    assert list(table.columns) == ["autoencoder0"]


def test_constant_rows_and_columns() -> None:
    ae = quick(1).fit(np.ones((30, 3)))
    np.testing.assert_array_equal(ae.reconstruct(np.ones((2, 3))), np.ones((2, 3)))
    assert ae.held_out_error_ == 0
    x = np.column_stack([curve(50, 2), np.full(50, 7.0)])
    np.testing.assert_allclose(quick(1).fit(x).reconstruct(x)[:, 2], 7.0, atol=0.5)


# ---------------------------------------------------------------- same bits


def test_same_bits_whatever_the_threads_and_the_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Several rounds of several blocks: from memory and from files, with any number of threads."""
    monkeypatch.setattr("foldwise.models.autoencoder.training.ROOM", 80_000)
    monkeypatch.setattr("foldwise.models.autoencoder.torch_network._SMALL", 0)
    monkeypatch.setattr("foldwise.data.block_grid._BYTES", 40_000)
    monkeypatch.setattr("foldwise.data.block_grid._WIDE_ROWS", 256)
    x = curve(3000, 10).astype(np.float32)
    np.save(tmp_path / "rows.npy", x)
    duckdb = pytest.importorskip("duckdb")
    names = ", ".join(f"column{j:02d} as c{j}" for j in range(10))
    np.savetxt(tmp_path / "rows.csv", x, delimiter=",", fmt="%.9g")
    source = f"read_csv('{tmp_path / 'rows.csv'}', header=false, columns={{"
    source += ", ".join(f"'column{j:02d}': 'FLOAT'" for j in range(10)) + "})"
    duckdb.sql(f"copy (select {names} from {source}) to '{tmp_path / 'rows.parquet'}' (format parquet)")

    def make(**options: Any) -> fw.Autoencoder:
        return quick(2, max_iter=3, noise=0.1, dropout=0.1, **options)

    first = make(n_threads=1).fit(x)
    assert first.outcome_.steps == 3 * 2  # two rounds of two blocks make an epoch
    assert first.best_epoch_ > 0
    same(make(n_threads=2).fit(x), first)
    same(make(n_threads=5).fit(tmp_path / "rows.npy"), first)
    same(make().fit(tmp_path / "rows.parquet"), first)
    np.testing.assert_array_equal(first.transform(tmp_path / "rows.npy"), first.transform(x))


def test_scores_from_a_scratch_file_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("foldwise.data.block_grid._SPARSE_ROWS", 128)
    x = sp.csr_matrix(curve(900, 30) * (np.random.default_rng(0).random((900, 30)) < 0.4))
    monkeypatch.setattr("foldwise.models.autoencoder.training.ROOM", 20_000)
    computed = quick(2, reduce_to=10, validation_fraction=0.05, max_iter=3).fit(x)
    monkeypatch.setattr("foldwise.models.autoencoder.fit.ROOM", 20_000)
    read = quick(2, reduce_to=10, validation_fraction=0.05, max_iter=3).fit(x)
    same(read, computed)


def test_other_seeds_give_other_networks() -> None:
    x = curve(200)
    a, b, c = (quick(1, random_state=seed).fit(x).encoder_.layers[0].weights for seed in (0, 0, 1))
    np.testing.assert_array_equal(a, b)
    assert not np.array_equal(a, c)


def test_torch_is_left_as_it_was() -> None:
    torch.manual_seed(5)
    before, threads, dtype = torch.random.get_rng_state(), torch.get_num_threads(), torch.get_default_dtype()
    quick(1, noise=0.1, dropout=0.1).fit(curve(100))
    assert torch.get_num_threads() == threads
    assert torch.get_default_dtype() is dtype
    assert torch.equal(torch.random.get_rng_state(), before)


def test_a_default_dtype_of_float64_does_not_matter() -> None:
    x = curve(100)
    plain = quick(1, noise=0.1).fit(x)
    torch.set_default_dtype(torch.float64)
    try:
        same(quick(1, noise=0.1).fit(x), plain)
    finally:
        torch.set_default_dtype(torch.float32)


# ---------------------------------------------------------------- saved, streamed, without torch


def test_saved_and_loaded(tmp_path: Path) -> None:
    x = curve(150)
    for number, ae in enumerate((quick(2).fit(x), quick(2, reduce_to=3).fit(x), quick(2, linear=False).fit(x))):
        fw.save(ae, tmp_path / f"{number}.fw")
        loaded = fw.load(tmp_path / f"{number}.fw")
        same(loaded, ae)
        np.testing.assert_array_equal(loaded.transform(x), ae.transform(x))
        np.testing.assert_array_equal(loaded.reconstruction_error(x), ae.reconstruction_error(x))
        np.testing.assert_array_equal(loaded.reconstruct(x), ae.reconstruct(x))
        assert loaded.manifest_ == ae.manifest_
        assert loaded.outcome_ == ae.outcome_


WITHOUT_TORCH = """
import sys
class Hidden:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "torch":
            raise ImportError(name)
sys.meta_path.insert(0, Hidden())
import numpy as np, foldwise as fw
from foldwise.errors import MissingDependencyError
x = np.load(sys.argv[2])
ae = fw.load(sys.argv[1])
np.save(sys.argv[3], np.column_stack([ae.transform(x), ae.reconstruct(x), ae.reconstruction_error(x)]))
try:
    ae.fit(x)
except MissingDependencyError as problem:
    print(problem)
"""


def test_applied_without_torch(tmp_path: Path) -> None:
    x = curve(150)
    x[5, 2] = np.nan
    ae = quick(2, missing="model").fit(x)
    fw.save(ae, tmp_path / "ae.fw")
    np.save(tmp_path / "x.npy", x)
    paths = [str(tmp_path / name) for name in ("ae.fw", "x.npy", "out.npy")]
    done = subprocess.run([sys.executable, "-c", WITHOUT_TORCH, *paths], capture_output=True, text=True, check=True)
    assert "pip install 'foldwise[torch]'" in done.stdout
    expected = np.column_stack([ae.transform(x), ae.reconstruct(x), ae.reconstruction_error(x)])
    np.testing.assert_array_equal(np.load(tmp_path / "out.npy"), expected)


def test_output_for_each_row() -> None:
    x = curve(150).astype(np.float32)
    ae = quick(2).fit(x)
    source = fw.scan(x)
    output = ae.row_output(source)
    assert output.names == ("autoencoder0", "autoencoder1", "error")
    found = output.of(next(iter(source.pieces())).load())
    assert found.dtype == output.dtype
    np.testing.assert_array_equal(found["autoencoder1"], ae.transform(x)[:, 1])
    np.testing.assert_array_equal(found["error"], ae.reconstruction_error(x))
    assert ae.transform(x).dtype == np.float32


# ---------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_components": 0}, "n_components"),
        ({"encoder": [16, 0]}, "widths of hidden layers"),
        ({"decoder": [2.5]}, "widths of hidden layers"),
        ({"activation": "swish"}, "activation"),
        ({"dropout": 1.0}, "dropout"),
        ({"noise": -1.0}, "noise"),
        ({"learning_rate": 0.0}, "learning_rate"),
        ({"max_iter": 0}, "max_iter"),
        ({"validation_fraction": 1.0}, "validation_fraction"),
        ({"batch_size": 0}, "batch_size"),
        ({"patience": 0}, "patience"),
        ({"reduce_to": 0}, "reduce_to"),
        ({"missing": "guess"}, "missing"),
        ({"linear": 1}, "linear"),
    ],
)
def test_bad_parameters(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        fw.Autoencoder(**options).fit(curve(50))


def test_bad_rows() -> None:
    with pytest.raises(DataError, match="1 sample"):
        quick(1).fit([[1.0, 2.0]])
    ae = quick(1).fit(curve(50))
    with pytest.raises(DataError, match="6 features"):
        ae.transform(np.zeros((3, 5)))
    with pytest.raises(DataError, match="codes of this model have 1"):
        ae.inverse_transform(np.zeros((3, 2)))
    with pytest.raises(DataError, match="range of float32"):
        ae.transform(np.full((1, 6), 1e200))


def test_a_failed_fit_changes_nothing() -> None:
    ae = quick(1).fit(curve(50))
    before = ae.encoder_
    with pytest.raises(DataError):
        ae.fit(np.full((30, 4), np.nan))
    assert ae.encoder_ is before
    assert ae.n_features_in_ == 6


# ---------------------------------------------------------------- stops


def test_out_of_time_and_interrupted() -> None:
    x = curve(200)
    with pytest.warns(NotFinishedWarning, match="out of time"):
        ae = quick(1, max_iter=100_000, time_budget=0.2).fit(x)
    assert ae.n_iter_ < 100_000
    assert ae.held_out_error_ <= ae.pca_error_ * (1 + 1e-4)

    def stop(event: Any) -> None:
        if isinstance(event, events.StepDone) and event.number == 5:
            raise KeyboardInterrupt

    with events.listening(stop), pytest.warns(NotFinishedWarning, match="interrupted"):
        ae = quick(1).fit(x)
    assert ae.n_iter_ == 5
    assert ae.transform(x).shape == (200, 1)


def test_clone_and_parameters() -> None:
    ae = clone(quick(3, encoder=[8], noise=0.1))
    assert ae.get_params()["encoder"] == [8]
    assert ae.fit(curve(50)).encoder_.layers[0].weights.shape == (8, 6)
    assert quick(1, encoder=[], max_iter=2).fit(curve(50)).encoder_.layers[0].weights.shape == (1, 6)
    assert (
        quick(1, encoder=[9], decoder=[5, 4])
        .fit(curve(50))
        .manifest_.algorithm.startswith("autoencoder 6-9-1-5-4-6 (silu)")
    )


def test_a_row_without_any_value_has_no_error() -> None:
    """It was 0, as if it were the most ordinary of all."""
    x = np.random.default_rng(0).standard_normal((60, 3))
    x[4] = np.nan
    for model in (
        fw.Autoencoder(1, missing="model", max_iter=5),
        fw.LinearAutoencoder(1, missing="model"),
        fw.PCA(1, missing="model"),
        fw.FeatureSelector(1, missing="model"),
    ):
        errors = model.fit(x).reconstruction_error(x)
        np.testing.assert_array_equal(np.flatnonzero(np.isnan(errors)), [4])
    assert np.isfinite(fw.Autoencoder(1, missing="model", max_iter=5).fit(x).score(x))


def test_few_rows_get_pca() -> None:
    """With nothing held out, the smallest error of training rows is that of the network that fits them too well."""
    x = np.random.default_rng(0).standard_normal((19, 5))
    model = fw.Autoencoder(2, max_iter=50).fit(x)
    assert (model.best_epoch_, model.n_iter_) == (0, 0)
    assert "the result is PCA" in model.manifest_.notes[-1]
    np.testing.assert_allclose(model.transform(x), fw.PCA(2).fit_transform(x), atol=1e-5)


def test_no_more_codes_than_columns() -> None:
    with pytest.raises(ParameterError, match="n_components=5 must not exceed the number of columns"):
        fw.Autoencoder(5).fit(np.random.default_rng(0).standard_normal((50, 4)))


def test_settings_of_torch_do_not_matter() -> None:
    import torch

    x = np.random.default_rng(0).standard_normal((60, 4))
    plain = fw.Autoencoder(2, max_iter=5).fit(x).transform(x)
    torch.set_default_device("meta")
    try:
        other = fw.Autoencoder(2, max_iter=5).fit(x).transform(x)
    finally:
        torch.set_default_device(None)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        third = fw.Autoencoder(2, max_iter=5).fit(x).transform(x)
    np.testing.assert_array_equal(plain, other)
    np.testing.assert_array_equal(plain, third)
