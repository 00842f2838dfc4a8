"""Damaged files: a flipped bit or a cut is an error, wherever it is, and arrays that do not fit each other are refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array

import foldwise as fw
from foldwise.errors import NotFinishedWarning, OutputError, StoreError, UncheckedFileWarning
from foldwise.fold.checkpoint import Checkpoint, Saved
from foldwise.fold.tensor_file import read_tensors, write_tensors

X = np.random.default_rng(0).standard_normal((80, 5))
X[40:] += 6

MODELS: dict[str, Any] = {
    "pca": fw.PCA(2, scale=True),
    "kmeans": fw.KMeans(3, scale=True),
    "bisecting": fw.BisectingKMeans(4),
    "minibatch": fw.MiniBatchKMeans(3),
    "soft": fw.SoftKMeans(3),
    "kernel": fw.KernelKMeans(3),
    "precomputed": fw.KernelKMeans(3, kernel="precomputed"),
    "nystroem": fw.KernelKMeans(3, approximation="nystroem", n_features=20),
    "waves": fw.KernelKMeans(3, approximation="random-features", n_features=30),
    **{
        kind: fw.GaussianMixture(2, covariance_type=kind)
        for kind in ("full", "tied", "diag", "diag-tied", "spherical", "ppca")
    },
}


@pytest.fixture(params=["model", "checkpoint"])
def saved(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Path, Callable[[], Any]]:
    """A file, and how to read it."""
    path = tmp_path / "file"
    if request.param == "model":
        fw.save(fw.PCA(2, scale=True).fit(X), path)
        return path, lambda: fw.load(path)
    Checkpoint(path, "key").save(Saved(2, 1.5, {"x": X, "n": np.array(2)}, [{"size": 1.0}] * 2), now=True)
    return path, lambda: Checkpoint(path, "key").load()


def test_flipped_bits_are_errors(saved: tuple[Path, Callable[[], Any]]) -> None:
    path, read = saved
    whole, rng = path.read_bytes(), np.random.default_rng(0)
    for bit in rng.integers(8 * len(whole), size=60):
        damaged = bytearray(whole)
        damaged[bit // 8] ^= 1 << bit % 8
        path.write_bytes(damaged)
        with pytest.raises(StoreError, match="damaged"):
            read()
    path.write_bytes(whole)
    assert read() is not None


def test_cuts_and_additions_are_errors(saved: tuple[Path, Callable[[], Any]]) -> None:
    path, read = saved
    whole = path.read_bytes()
    for part in (*(whole[:length] for length in range(0, len(whole), 53)), whole[:-1], whole + b"\0", whole + whole):
        path.write_bytes(part)
        with pytest.raises(StoreError, match="damaged"):
            read()


def test_every_byte_before_the_arrays_counts(tmp_path: Path) -> None:
    """Names, numbers and spaces of the header, and the digest itself: where a flip could be taken for an older file."""
    path = tmp_path / "m.fw"
    write_tensors(path, {"a0": np.zeros(1)}, {"format": 2, "model": "PCA", "version": "0"})
    whole = path.read_bytes()
    for place in range(len(whole)):
        for bit in (0, 3, 5):
            path.write_bytes(whole[:place] + bytes([whole[place] ^ (1 << bit)]) + whole[place + 1 :])
            with pytest.raises(StoreError, match="damaged"):
                fw.load(path)


@pytest.mark.parametrize("name", MODELS)
def test_every_model_passes_its_own_checks(name: str, tmp_path: Path) -> None:
    rows = X @ X.T if name == "precomputed" else X
    fw.save(MODELS[name].fit(rows), tmp_path / "m.fw")
    again = fw.load(tmp_path / "m.fw")
    assert type(again) is type(MODELS[name])
    if hasattr(again, "predict"):
        np.testing.assert_array_equal(again.predict(rows), MODELS[name].predict(rows))


def with_other_array(path: Path, attribute: str, change: Any) -> None:
    """Change one array of a model, and write the file with a digest that is right."""
    content = read_tensors(path)
    fitted = dict(content.header["fitted"]["dict"])
    place = fitted[attribute]["array"]
    write_tensors(path, content.arrays | {place: change(content.arrays[place])}, content.header)


@pytest.mark.parametrize(
    ("model", "attribute", "change", "words"),
    [
        ("pca", "mean_", lambda a: a[:-1], r"mean_ of shape \(4,\) does not fit n_features_in_, which needs 5"),
        ("pca", "components_", lambda a: a[:1], r"does not fit"),
        ("pca", "components_", lambda a: a.ravel(), "1 dimensions instead of 2"),
        ("pca", "components_", lambda a: a.astype(int), "array of int64 instead of an array of floating-point"),
        ("kmeans", "cluster_centers_", lambda a: a.T.copy(), "does not fit"),
        ("kmeans", "labels_", lambda a: a.astype(float), "array of float64 instead of an array of whole"),
        ("bisecting", "tree_children_", lambda a: a[:, :1].copy(), r"tree_children_ of shape \(7, 1\)"),
        ("kernel", "rows_", lambda a: a[1:], r"does not fit members_, which needs 80"),
        ("full", "covariances_", lambda a: a[:, :3].copy(), "does not fit"),
        ("tied", "precisions_cholesky_", lambda a: np.stack([a, a]), "3 dimensions instead of 2"),
    ],
)
def test_arrays_that_do_not_fit_are_refused(
    tmp_path: Path, model: str, attribute: str, change: Any, words: str
) -> None:
    path = tmp_path / "m.fw"
    fw.save(MODELS[model].fit(X), path)
    with_other_array(path, attribute, change)
    with pytest.raises(StoreError, match=rf"m\.fw: .*{words}.*damaged"):
        fw.load(path)


@pytest.mark.parametrize("part", range(4))
def test_parts_of_sparse_rows_that_do_not_fit_are_refused(tmp_path: Path, part: int) -> None:
    path = tmp_path / "m.fw"
    sparse = csr_array(np.where(X > 3, X, 0.0))
    fw.save(fw.KernelKMeans(2).fit(sparse), path)
    assert fw.load(path).predict(sparse).shape == (80,)
    content = read_tensors(path)
    place = dict(content.header["fitted"]["dict"])["rows_"]["tuple"][part]["array"]
    write_tensors(path, content.arrays | {place: content.arrays[place][1:]}, content.header)
    with pytest.raises(StoreError, match=r"m\.fw: .*sparse KernelKMeans\.rows_ do not fit"):
        fw.load(path)


def as_written_before(path: Path, **changes: Any) -> None:
    """The file as a version without digests wrote it."""
    from safetensors.numpy import save_file

    content = read_tensors(path)
    save_file(content.arrays, path, metadata={"foldwise": json.dumps(content.header | changes)})


def test_older_checkpoints_still_resume_with_a_warning(tmp_path: Path) -> None:
    path = tmp_path / "c"
    with pytest.warns(NotFinishedWarning, match="capped"):
        fw.PCA(2, svd_solver="power", max_iter=3, checkpoint=path).fit(X)
    as_written_before(path, format="foldwise-checkpoint-1")
    with (
        pytest.warns(UncheckedFileWarning, match="c: written by an older version of Foldwise, without a digest"),
        pytest.warns(NotFinishedWarning, match="capped"),
    ):
        resumed = fw.PCA(2, svd_solver="power", max_iter=3, checkpoint=path).fit(X)
    assert resumed.manifest_.resumed_at == 3


def test_without_its_digest_a_new_file_is_damaged(tmp_path: Path) -> None:
    model, checkpoint = tmp_path / "m.fw", tmp_path / "c"
    fw.save(MODELS["pca"].fit(X), model)
    as_written_before(model)
    with pytest.raises(StoreError, match=r"damaged .*digest is missing"):
        fw.load(model)
    Checkpoint(checkpoint, "k").save(Saved(1, 0.0, {"x": X}, []), now=True)
    as_written_before(checkpoint)
    with pytest.raises(StoreError, match=r"damaged .*digest is missing"):
        Checkpoint(checkpoint, "k").load()


def test_arrays_other_than_the_header_lists_are_refused(tmp_path: Path) -> None:
    """Even if the format is that of a file without a digest."""
    path = tmp_path / "m.fw"
    fw.save(MODELS["pca"].fit(X), path)
    as_written_before(path, format=1, arrays={"a0": ["float64", [7]]})
    with pytest.raises(StoreError, match=r"damaged \(its arrays are not those that its header lists\)"):
        fw.load(path)


def test_a_damaged_checkpoint_is_told_and_kept(tmp_path: Path) -> None:
    path = tmp_path / "c"
    Checkpoint(path, "k").save(Saved(1, 0.0, {"x": X}, []), now=True)
    data = bytearray(path.read_bytes())
    data[-5] ^= 1
    path.write_bytes(data)
    with pytest.raises(StoreError, match=r"c: .*damaged \(its digest does not match its content\).*delete it"):
        Checkpoint(path, "k").load()
    assert path.read_bytes() == data


def test_a_checkpoint_that_cannot_be_written_is_told_before_the_fit(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match=r"cannot be written: it is a folder"):
        Checkpoint(tmp_path, "k")
