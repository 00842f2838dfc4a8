"""Autoencoders of several sizes against PCA, on held-out rows."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone

import foldwise as fw
from foldwise.errors import DataError, NotFinishedWarning, ParameterError, StoreError
from foldwise.selection.compare_codes import _Split

QUICK = fw.Autoencoder(encoder=[16], max_iter=40, random_state=0)


def ring(n: int = 300, noise: float = 0.05, dtype: Any = np.float64) -> np.ndarray:
    """A curve that fills three dimensions, in six columns."""
    rng = np.random.default_rng(0)
    turn = rng.uniform(0, 2 * np.pi, n)
    curve = np.column_stack([np.cos(turn), np.sin(turn), np.cos(2 * turn)]) @ rng.normal(size=(3, 6))
    return (curve + noise * rng.normal(size=curve.shape)).astype(dtype)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("scale", [False, True])
def test_errors_are_those_of_the_models_on_rows_they_have_not_seen(dtype: Any, scale: bool) -> None:
    x = ring(dtype=dtype)
    found = fw.compare_codes(x, [1, 3], autoencoder=QUICK, scale=scale)
    which = _Split.of(fw.scan(x), 0.2, 0).which
    assert len(which) == found.held_out_rows == 60
    assert found.rows == 240
    test, train = x[which].astype(float), np.delete(x, which, axis=0).astype(float)
    spread = train.std(axis=0, ddof=1) if scale else 1.0
    seen, known = (test - train.mean(axis=0)) / spread, (train - train.mean(axis=0)) / spread
    variance = (seen**2).sum(axis=1).mean()
    assert found.total_variance == pytest.approx(variance, rel=1e-5)
    directions = np.linalg.svd(known)[2]
    for k, error in enumerate(found.pca_curve):
        rest = seen - seen @ directions[:k].T @ directions[:k]
        assert error == pytest.approx((rest**2).sum(axis=1).mean() / variance, rel=1e-3, abs=1e-6)
    np.testing.assert_allclose(found.pca_errors, found.pca_curve[[1, 3]], rtol=1e-12)
    model = fw.Autoencoder(3, encoder=[16], max_iter=40, random_state=0, scale=scale).fit(np.delete(x, which, axis=0))
    rest = (test - model.reconstruct(x[which])) / spread
    # A fit to the same rows in other blocks is not the same to the last bit, but as good.
    assert found.autoencoder_errors[1] == pytest.approx((rest**2).sum(axis=1).mean() / variance, rel=0.3)
    assert found.autoencoder_errors[1] < 1.05 * found.pca_errors[1]


def test_a_curve_needs_fewer_numbers_than_components() -> None:
    found = fw.compare_codes(ring(600), [1, 2], autoencoder=fw.Autoencoder(max_iter=250, random_state=0))
    assert found.autoencoder_errors[0] < 0.7 * found.pca_errors[0]
    assert found.better[0]
    assert found.autoencoder_errors[1] < 0.3 * found.pca_errors[1]
    assert re.match(r"[12] numbers? of an autoencoder (lose|reconstruct)s?", found.sentence)
    table = found.table
    assert table.rows == ("1", "2")
    assert table["1", "autoencoder"] == found.autoencoder_errors[0]
    assert table["1", "as good as components"] == found.equivalents[0]
    assert found.sentence in str(found)
    assert found.sentence in found._repr_html_()


def test_a_plane_is_no_better() -> None:
    x = np.random.default_rng(1).normal(size=(200, 2)) @ np.random.default_rng(2).normal(size=(2, 5))
    x += 0.3 * np.random.default_rng(3).normal(size=x.shape)
    found = fw.compare_codes(x, [1, 2, 3], autoencoder=QUICK)
    np.testing.assert_allclose(found.autoencoder_errors, found.pca_errors, rtol=1e-5)  # PCA of the same rows
    assert found.better == (False, False, False)
    assert "no better than" in found.sentence


def test_default_sizes_are_below_the_number_of_columns() -> None:
    found = fw.compare_codes(ring(), autoencoder=fw.Autoencoder(encoder=[4], max_iter=2))
    assert found.sizes == (1, 2, 4)
    assert len(found.pca_curve) == 7
    assert found.pca_curve[0] == pytest.approx(1.0)
    assert (np.diff(found.pca_curve) <= 0).all()


def test_the_standard_error_is_that_of_paired_differences() -> None:
    x = ring()
    found = fw.compare_codes(x, [1], autoencoder=QUICK)
    split = _Split.of(fw.scan(x), 0.2, 0)
    model = fw.Autoencoder(1, encoder=[16], max_iter=40, random_state=0).fit(split.training)
    pca = fw.PCA(1).fit(split.training)
    apart = (
        model.reconstruction_error(x[split.which]) - pca.reconstruction_error(x[split.which])
    ) / found.total_variance
    assert found.standard_errors[0] == pytest.approx(apart.std(ddof=1) / np.sqrt(len(apart)), rel=1e-6)
    assert found.autoencoder_errors[0] - found.pca_errors[0] == pytest.approx(apart.mean(), rel=1e-6)


def test_weights_of_one_change_nothing_and_rows_without_weight_do_not_count() -> None:
    x = ring()
    plain = fw.compare_codes(x, [2], autoencoder=QUICK)
    weighted = fw.compare_codes(x, [2], autoencoder=QUICK, sample_weight=np.ones(len(x)))
    assert weighted.autoencoder_errors[0] == pytest.approx(plain.autoencoder_errors[0], rel=1e-6)
    assert weighted.standard_errors[0] == pytest.approx(plain.standard_errors[0], rel=1e-6)
    strange = x.copy()
    weights = np.ones(len(x))
    strange[::10], weights[::10] = 1e6, 0.0
    other = fw.compare_codes(strange, [2], autoencoder=QUICK, sample_weight=weights)
    assert other.total_variance < 100
    assert other.autoencoder_errors[0] < 1


def test_sparse_rows_and_missing_cells() -> None:
    x = np.where(np.abs(ring()) > 0.5, ring(), 0.0)
    dense = fw.compare_codes(x, [2], autoencoder=QUICK)
    sparse = fw.compare_codes(sp.csr_array(x), [2], autoencoder=QUICK)
    np.testing.assert_allclose(sparse.pca_curve, dense.pca_curve, rtol=1e-9, atol=1e-12)
    gaps = ring()
    gaps[np.random.default_rng(5).random(gaps.shape) < 0.05] = np.nan
    for missing, rows in (("mean", gaps), ("model", gaps), ("drop", np.vstack([gaps, ring()]))):
        prototype = fw.Autoencoder(encoder=[16], max_iter=250, missing=missing)
        found = fw.compare_codes(rows, [2], autoencoder=prototype)
        assert 0 < found.autoencoder_errors[0] < (0.6 if missing == "mean" else 0.3) * found.pca_errors[0]
        assert found.better[0]
    with pytest.raises(DataError, match="missing"):
        fw.compare_codes(gaps, [2], autoencoder=QUICK)


def test_missing_cells_favour_no_one() -> None:
    """What PCA makes of missing cells depends on the number of its components: PCA of each size is the one to beat."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(300, 3)) @ rng.normal(size=(3, 8)) + 0.3 * rng.normal(size=(300, 8))
    x[rng.random(x.shape) < 0.15] = np.nan
    still = fw.Autoencoder(encoder=[16], max_iter=1, learning_rate=1e-30, missing="model")
    found = fw.compare_codes(x, [1, 2, 4], autoencoder=still)
    np.testing.assert_allclose(found.autoencoder_errors, found.pca_errors, rtol=1e-5)
    np.testing.assert_allclose(found.pca_errors, found.pca_curve[[1, 2, 4]], rtol=1e-12)
    assert found.better == (False, False, False)
    split = _Split.of(fw.scan(x), 0.2, 0)
    pca = fw.PCA(2, missing="model").fit(np.delete(x, split.which, axis=0))
    error = pca.reconstruction_error(x[split.which]).mean() / found.total_variance
    assert found.pca_errors[1] == pytest.approx(error, rel=1e-6)


@pytest.mark.parametrize("by", ["weight", "drop"])
def test_rows_that_do_not_count_are_not_split(by: str) -> None:
    """A row without weight, or with a gap that drops it, is neither held out nor counted; the others are split as if alone."""
    x, out = ring(), np.zeros(300, dtype=bool)
    out[::3] = True
    alone = fw.compare_codes(x[~out], [2], autoencoder=QUICK)
    if by == "weight":
        found = fw.compare_codes(x, [2], autoencoder=QUICK, sample_weight=(~out).astype(float))
    else:
        x[out, 1] = np.nan
        found = fw.compare_codes(x, [2], autoencoder=clone(QUICK).set_params(missing="drop"))
    assert (found.rows, found.held_out_rows) == (alone.rows, alone.held_out_rows) == (160, 40)
    np.testing.assert_allclose(found.pca_curve, alone.pca_curve, rtol=1e-9, atol=1e-12)
    assert found.total_variance == pytest.approx(alone.total_variance, rel=1e-9)


def test_sizes_up_to_the_number_of_training_rows() -> None:
    """Six rows span five directions; the sixth number of a code is of no use, and no reason to fail."""
    x = np.random.default_rng(0).normal(size=(8, 20))
    found = fw.compare_codes(x, [2, 6], autoencoder=fw.Autoencoder(encoder=[4], max_iter=2))
    assert found.rows == 6
    assert len(found.pca_curve) == 6
    assert found.pca_errors[1] == pytest.approx(found.pca_curve[5])
    with pytest.raises(ParameterError, match="6 training rows"):
        fw.compare_codes(x, [7])


def test_a_checkpoint_of_other_rows_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Also where the fingerprint of the data, made in no time, does not see the difference."""
    x, place = ring(), tmp_path / "comparison.checkpoint"
    monkeypatch.setattr("foldwise.data.arrays.ArraySource.fingerprint", lambda self: "the same")
    with monkeypatch.context() as patch:
        interrupted_after(patch, 1)
        with pytest.warns(NotFinishedWarning, match="1 of 2 sizes"):
            fw.compare_codes(x, [1, 2], autoencoder=QUICK, checkpoint=place)
    other = x.copy()
    other[3, 2] += 1.0
    with pytest.raises(StoreError):
        fw.compare_codes(other, [1, 2], autoencoder=QUICK, checkpoint=place)
    assert fw.compare_codes(x, [1, 2], autoencoder=QUICK, checkpoint=place).sizes == (1, 2)


def test_what_of_the_prototype_counts(tmp_path: Path) -> None:
    place = tmp_path / "training.checkpoint"
    prototype = clone(QUICK).set_params(n_components=5, checkpoint=place, time_budget=1e-9, random_state=3)
    found = fw.compare_codes(ring(), [1], autoencoder=prototype)
    assert found.sizes == (1,)
    assert found.cut_short == ()
    assert not place.exists()
    assert prototype.checkpoint == place
    same = fw.compare_codes(ring(), [1], autoencoder=QUICK, random_state=3)
    np.testing.assert_array_equal(found.autoencoder_errors, same.autoencoder_errors)


def interrupted_after(monkeypatch: pytest.MonkeyPatch, fits: int) -> None:
    done, fit = [], fw.Autoencoder.fit

    def until(self: Any, *given: Any, **options: Any) -> Any:
        if len(done) == fits:
            raise KeyboardInterrupt
        done.append(1)
        return fit(self, *given, **options)

    monkeypatch.setattr(fw.Autoencoder, "fit", until)


def test_ctrl_c_keeps_what_is_finished_and_a_checkpoint_resumes_after_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    x, place = ring(), tmp_path / "comparison.checkpoint"
    whole = fw.compare_codes(x, [1, 2, 3], autoencoder=QUICK)
    with monkeypatch.context() as patch:
        interrupted_after(patch, 2)
        with pytest.warns(NotFinishedWarning, match="2 of 3 sizes"):
            part = fw.compare_codes(x, [1, 2, 3], autoencoder=QUICK, checkpoint=place)
    assert part.interrupted
    assert part.sizes == (1, 2)
    np.testing.assert_array_equal(part.autoencoder_errors, whole.autoencoder_errors[:2])
    with monkeypatch.context() as patch:
        interrupted_after(patch, 1)  # one more is all that it needs
        rest = fw.compare_codes(x, [1, 2, 3], autoencoder=QUICK, checkpoint=place)
    assert not rest.interrupted
    np.testing.assert_array_equal(rest.autoencoder_errors, whole.autoencoder_errors)
    np.testing.assert_array_equal(rest.standard_errors, whole.standard_errors)
    assert not place.exists()
    with monkeypatch.context() as patch:
        interrupted_after(patch, 0)
        with pytest.raises(KeyboardInterrupt):
            fw.compare_codes(x, [1], autoencoder=QUICK)


def test_a_time_budget_is_shared_by_the_sizes() -> None:
    found = fw.compare_codes(
        ring(), [1, 2], autoencoder=fw.Autoencoder(max_iter=100_000, patience=100_000), time_budget=0.6
    )
    assert found.sizes == found.cut_short == (1, 2)
    assert found.seconds.sum() < 5


def test_saved_and_loaded(tmp_path: Path) -> None:
    found = fw.compare_codes(ring(), [1, 2], autoencoder=fw.Autoencoder(encoder=[4], max_iter=2))
    fw.save(found, tmp_path / "found.fw")
    loaded = fw.load(tmp_path / "found.fw")
    assert str(loaded) == str(found)
    assert loaded.sizes == found.sizes


def test_words() -> None:
    base = fw.CodeComparison(
        sizes=(1, 2),
        pca_errors=np.array([0.6, 0.3]),
        autoencoder_errors=np.array([0.25, 0.05]),
        standard_errors=np.array([0.01, 0.01]),
        pca_curve=np.array([1.0, 0.6, 0.3, 0.2, 0.1]),
        total_variance=2.0,
        rows=80,
        held_out_rows=20,
        seconds=np.ones(2),
    )
    assert base.equivalents == (2, 4)
    assert base.sentence == (
        "1 number of an autoencoder reconstructs held-out rows as well as 2 principal components, and loses 25.0 % of "
        "their variance, where 1 component loses 60.0 %."
    )
    many = replace(base, autoencoder_errors=np.array([0.6, 0.05]))
    assert many.sentence == (
        "2 numbers of an autoencoder reconstruct held-out rows as well as at least 4 principal components, and lose 5.0 % of "
        "their variance, where 2 components lose 30.0 %. With 1 there is no sure difference."
    )
    few = replace(base, autoencoder_errors=np.array([0.2, 0.15]))
    assert few.equivalents == (3, 3)
    assert few.sentence == (
        "1 number of an autoencoder reconstructs held-out rows as well as 3 principal components, and loses 20.0 % of "
        "their variance, where 1 component loses 60.0 %."
    )
    # Better than one component and worse than two is as good as one.
    assert replace(base, autoencoder_errors=np.array([0.4, 0.3])).sentence == (
        "1 number of an autoencoder loses 40.0 % of the held-out variance, where 1 component loses 60.0 %. With 2 there is no "
        "sure difference."
    )
    assert replace(base, autoencoder_errors=np.array([0.4, 0.4])).sentence.endswith("60.0 %. With 2 PCA loses less.")
    assert replace(base, autoencoder_errors=base.pca_errors).sentence.endswith("straight directions say it all.")
    assert replace(base, autoencoder_errors=np.array([1.2, 1.1])).equivalents == (0, 0)


def test_bad_input() -> None:
    x = ring(50)
    for sizes in ([0], [], [1.5], "2", [7]):
        with pytest.raises(ParameterError, match="sizes="):
            fw.compare_codes(x, sizes)
    with pytest.raises(ParameterError, match="test_fraction=1"):
        fw.compare_codes(x, [1], test_fraction=1.0)
    with pytest.raises(ParameterError, match="give an Autoencoder"):
        fw.compare_codes(x, [1], autoencoder=fw.PCA())
    with pytest.raises(DataError, match="none can be held out"):
        fw.compare_codes(x[:2], [1])
    with pytest.raises(DataError, match="do not vary"):
        fw.compare_codes(np.ones((20, 3)), [1])
