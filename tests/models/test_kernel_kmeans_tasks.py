"""KernelKMeans: the registry of kernels, work that can be sent elsewhere, and what a checkpoint is tied to."""

from __future__ import annotations

import pickle
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import foldwise as fw
from foldwise.data.block import block_of
from foldwise.data.recut import RecutSource
from foldwise.data.row_pairs import rescaling_of
from foldwise.errors import NotFinishedWarning, ParameterError, StoreError
from foldwise.fold import events
from foldwise.fold.passes import Passes
from foldwise.models.kernel import functions, predict
from foldwise.models.kernel.functions import KERNELS, Gaussian, Kernel, kernel_class
from foldwise.models.kernel.kernel_matrix import ComputedMatrix, diagonal_of, kernel_sums, matrix_sums

ROWS = np.random.default_rng(0).standard_normal((600, 3)) + 5.0
FORMS: dict[str, Any] = {"dense": ROWS, "sparse": sp.csr_array(np.where(np.abs(ROWS) > 5.0, ROWS, 0.0))}


def sent(thing: Any) -> Any:
    return pickle.loads(pickle.dumps(thing))


# ---------------------------------------------------------------- the registry


@pytest.mark.parametrize("name", [name for name in KERNELS if not KERNELS[name].precomputed])
@pytest.mark.parametrize("form", FORMS)
def test_a_kernel_does_what_its_class_says(name: str, form: str) -> None:
    kind, x = KERNELS[name], FORMS[form]
    assert kind.formula in " ".join(str(fw.KernelKMeans.__doc__).split())
    tags = fw.KernelKMeans(kernel=name).__sklearn_tags__().input_tags
    assert (tags.sparse, tags.pairwise) == (kind.takes_sparse, False)
    if form == "sparse" and not kind.takes_sparse:
        with pytest.raises(ValueError, match=f"kernel='{name}' must be dense"):
            fw.KernelKMeans(3, kernel=name).fit(x)
        return
    model = fw.KernelKMeans(3, kernel=name).fit(x)
    assert (model.gamma_ is not None) == kind.has_gamma
    for options, allowed in (
        ({"normalize": True}, kind.can_normalize),
        ({"approximation": "random-features", "n_features": 20}, kind.has_random_features),
    ):
        other = fw.KernelKMeans(3, kernel=name, **options)
        if allowed:
            np.testing.assert_array_equal(other.fit(x).predict(x), other.labels_)
        else:
            with pytest.raises(ParameterError):
                other.fit(x)


def test_a_new_kernel_is_one_class(monkeypatch: pytest.MonkeyPatch) -> None:
    class Halved(Gaussian):
        """exp(-gamma |x - y|^2 / 2)."""

        @classmethod
        def of(cls, model: Any, gamma: float, rescaling: Any) -> Kernel:
            return cls(gamma / 2, rescaling)  # and its random features are those of half the gamma

    monkeypatch.setitem(functions.KERNELS, "halved", Halved)
    constraint = fw.KernelKMeans._parameter_constraints["kernel"][0]
    monkeypatch.setattr(constraint, "options", {*constraint.options, "halved"})  # read when the module is imported
    for options in ({}, {"approximation": "random-features"}, {"approximation": "nystroem"}):
        halved = fw.KernelKMeans(3, kernel="halved", gamma=1.0, **options).fit(ROWS)
        plain = fw.KernelKMeans(3, gamma=0.5, **options).fit(ROWS)
        assert halved.inertia_ == plain.inertia_
        np.testing.assert_array_equal(halved.predict(ROWS), plain.labels_)


# ---------------------------------------------------------------- work that is sent


def product(a: Any, b: Any) -> Any:
    return np.asarray((a @ b.T).toarray() if sp.issparse(a) else a @ b.T)


@pytest.mark.parametrize("kernel", [*(name for name in KERNELS if not KERNELS[name].precomputed), product])
@pytest.mark.parametrize("form", FORMS)
def test_tasks_of_a_fit_can_be_sent(kernel: Any, form: str) -> None:
    kind, rows = kernel_class(kernel), block_of(FORMS[form])
    if form == "sparse" and not kind.takes_sparse:
        pytest.skip("for dense rows only")
    made = kind.of(fw.KernelKMeans(kernel=kernel), 0.5, rescaling_of(rows))
    prepared, sides = made.prepare(rows), np.eye(3)[np.arange(600) % 3]
    task = partial(kernel_sums, made, prepared, sides)
    part = prepared.take(slice(100, 140))
    whole = made.matrix(prepared, prepared)
    np.testing.assert_allclose(sent(task)(sent(part)), whole[100:140] @ sides, rtol=1e-12, atol=1e-12)
    assert sent(task)(part).tobytes() == task(part).tobytes()
    block = block_of(whole[100:140], 100)
    np.testing.assert_allclose(sent(partial(matrix_sums, sides, None))(block), task(part), rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(sent(diagonal_of)(block), np.diagonal(whole)[100:140])


def test_stripes_go_through_the_engine() -> None:
    """The same sums kept or computed, for some columns or all; rows in memory, so none of it is a pass over the data."""
    passes = Passes(fw.scan(ROWS), n_threads=2)
    kernel, which = Gaussian(0.3, rescaling_of(block_of(ROWS))), np.array([3, 17, 590])
    kept, tiles = (ComputedMatrix(passes, kernel, block_of(ROWS)).keep(budget) for budget in (2**30, 0))
    assert (kept.held, tiles.held) == ("kept", "in tiles")
    before = passes.counter.passes
    for matrix in (kept, tiles):
        np.testing.assert_allclose(matrix.columns(which), matrix.times(np.eye(600))[:, which], rtol=1e-12)
        np.testing.assert_allclose(matrix.times(np.ones((3, 1)), which)[:, 0], matrix.columns(which).sum(axis=1))
        np.testing.assert_allclose(matrix.submatrix(which), matrix.columns(which)[which])
    assert passes.counter.passes == before


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("options", [{}, {"approximation": "nystroem"}, {"approximation": "random-features"}])
def test_tasks_of_a_fitted_model_can_be_sent(form: str, options: dict[str, Any]) -> None:
    x = FORMS[form]
    model = fw.KernelKMeans(3, n_features=40, **options).fit(x)
    output = predict.row_output(model, fw.scan(x))
    source, of = sent(output.source), sent(output.of)
    records = np.concatenate([of(piece.load()) for piece in source.pieces()])
    np.testing.assert_array_equal(records["cluster"], model.labels_)
    nearest = model.transform(x)[np.arange(600), model.labels_]
    np.testing.assert_allclose(records["distance"], nearest, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("in_file", [False, True])
def test_a_source_that_is_cut_anew(in_file: bool, tmp_path: Path) -> None:
    x = np.random.default_rng(1).standard_normal((20_000, 60))  # several blocks, of 4352 rows
    np.save(tmp_path / "x.npy", x)
    weights = np.arange(len(x), dtype=np.float64)
    source = sent(RecutSource(fw.scan(tmp_path / "x.npy" if in_file else x, weights=weights), 1000))
    blocks = [piece.load() for piece in source.pieces()]
    assert [(block.start, block.n_rows) for block in blocks] == [(1000 * i, 1000) for i in range(20)]
    np.testing.assert_array_equal(np.concatenate([block.dense() for block in blocks]), x)
    np.testing.assert_array_equal(np.concatenate([block.weights for block in blocks]), weights)
    some = [piece.load() for piece in source.pieces(7, 12)]
    assert [block.start for block in some] == [1000 * i for i in range(7, 12)]
    np.testing.assert_array_equal(np.concatenate([block.dense() for block in some]), x[7000:12_000])
    np.testing.assert_array_equal(Passes(source, n_threads=3).rows(first_column), x[:, 0])


def first_column(block: Any) -> Any:
    return block.dense()[:, 0]


# ---------------------------------------------------------------- checkpoints


def stop(event: events.Event) -> None:
    """Ctrl-C after the first step."""
    if isinstance(event, events.StepDone):
        raise KeyboardInterrupt


def test_a_cap_belongs_to_the_key_if_there_are_several_starts(tmp_path: Path) -> None:
    """n_init="auto" is ten starts here, each of which ends at the cap: under another cap they would be others."""
    options: dict[str, Any] = {"kernel": "linear", "checkpoint": tmp_path / "c"}
    with events.listening(stop), pytest.warns(NotFinishedWarning, match="interrupted"):
        fw.KernelKMeans(4, max_iter=3, **options).fit(ROWS)
    with pytest.raises(StoreError, match="other data or other parameters"):
        fw.KernelKMeans(4, max_iter=300, **options).fit(ROWS)
    with events.listening(stop), pytest.warns(NotFinishedWarning, match="interrupted"):
        fw.KernelKMeans(4, max_iter=3, **options).fit(ROWS)


def test_a_cap_does_not_belong_to_the_key_of_a_single_start(tmp_path: Path) -> None:
    """n_init="auto" is one start here."""
    options: dict[str, Any] = {"gamma": 0.5, "init": "spectral"}
    undisturbed = fw.KernelKMeans(5, **options).fit(ROWS)
    with pytest.warns(NotFinishedWarning, match="capped"):
        fw.KernelKMeans(5, max_iter=1, checkpoint=tmp_path / "c", **options).fit(ROWS)
    resumed = fw.KernelKMeans(5, checkpoint=tmp_path / "c", **options).fit(ROWS)
    assert resumed.manifest_.resumed_at == 1
    assert resumed.inertia_ == undisturbed.inertia_
    np.testing.assert_array_equal(resumed.labels_, undisturbed.labels_)


def test_a_checkpoint_of_another_function(tmp_path: Path) -> None:
    kernels = [partial(scaled_product, factor) for factor in (1.0, 2.0)]
    with events.listening(stop), pytest.warns(NotFinishedWarning):
        fw.KernelKMeans(4, kernel=kernels[0], checkpoint=tmp_path / "c").fit(ROWS)
    with pytest.raises(StoreError, match="other data or other parameters"):
        fw.KernelKMeans(4, kernel=kernels[1], checkpoint=tmp_path / "c").fit(ROWS)


def scaled_product(factor: float, a: Any, b: Any) -> Any:
    return factor * (a @ b.T)
