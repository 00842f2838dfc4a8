"""ONNX files give what the model gives, run by onnxruntime, which knows nothing of Foldwise."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import foldwise as fw
from foldwise.errors import MissingDependencyError, ParameterError, StoreError

onnxruntime = pytest.importorskip("onnxruntime")


def run(path: Path, rows: np.ndarray) -> np.ndarray:
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    return np.asarray(session.run(None, {"rows": rows})[0])


def expected(model: Any, rows: np.ndarray) -> dict[str, np.ndarray]:
    codes = model.transform(rows)
    return {
        "codes": codes,
        "reconstruction": model.inverse_transform(codes),
        "error": model.reconstruction_error(rows),
    }


def check(model: Any, rows: np.ndarray, folder: Path, within: float = 1e-5) -> None:
    """All three outputs, also of a single row and of none."""
    for output, truth in expected(model, rows).items():
        path = folder / f"{output}.onnx"
        fw.save_onnx(model, path, output)
        found = run(path, rows)
        assert found.shape == truth.shape
        assert found.dtype == truth.dtype
        spread = float(np.ptp(truth)) or 1.0
        np.testing.assert_allclose(
            found, truth, rtol=within if output != "reconstruction" else 1e-6, atol=within * spread
        )
        assert run(path, rows[:1]).shape == truth[:1].shape
        assert run(path, rows[:0]).shape == truth[:0].shape


def make(dtype: Any, offset: float = 0.0, n: int = 200) -> np.ndarray:
    rng = np.random.default_rng(0)
    return (rng.normal(size=(n, 3)) @ rng.normal(size=(3, 7)) + 0.2 * rng.normal(size=(n, 7)) + offset).astype(dtype)


LINEAR = {
    "pca": fw.PCA(3),
    "whitened": fw.PCA(3, whiten=True, scale=True),
    "closed form": fw.LinearAutoencoder(3),
    "gradient": fw.LinearAutoencoder(3, solver="gradient", scale=True),
}


@pytest.mark.parametrize("model", LINEAR.values(), ids=LINEAR)
@pytest.mark.parametrize(
    ("dtype", "offset"), [(np.float32, 0.0), (np.float32, 100.0), (np.float64, 0.0), (np.float64, 1e8)]
)
def test_linear_models(model: Any, dtype: Any, offset: float, tmp_path: Path) -> None:
    rows = make(dtype, offset)
    check(model.fit(rows), rows, tmp_path)


def test_missing_cells_are_filled_as_in_the_fit(tmp_path: Path) -> None:
    rows = make(np.float64)
    rows[np.random.default_rng(1).random(rows.shape) < 0.1] = np.nan
    check(fw.PCA(2, missing="mean").fit(rows), rows, tmp_path)
    check(fw.LinearAutoencoder(2, missing="drop").fit(rows), rows, tmp_path)


def test_columns_are_named_in_the_file(tmp_path: Path) -> None:
    import onnx
    import pandas as pd

    frame = pd.DataFrame(make(np.float64), columns=list("abcdefg"))
    fw.save_onnx(fw.PCA(2).fit(frame), tmp_path / "m.onnx")
    loaded = onnx.load(tmp_path / "m.onnx")
    assert {one.key: one.value for one in loaded.metadata_props}["columns"].split("\n") == list("abcdefg")
    assert loaded.producer_name == "foldwise"


def test_what_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = make(np.float64)
    pca = fw.PCA(2).fit(rows)
    with pytest.raises(StoreError, match="a KMeans cannot be written as ONNX; supported are"):
        fw.save_onnx(fw.KMeans(2).fit(rows), tmp_path / "m.onnx")
    with pytest.raises(ParameterError, match="'codes', 'reconstruction', 'error'"):
        fw.save_onnx(pca, tmp_path / "m.onnx", "scores")
    with pytest.raises(StoreError, match="no components"):
        fw.save_onnx(fw.PCA(0).fit(rows), tmp_path / "m.onnx")
    with pytest.raises(StoreError, match="nowhere"):
        fw.save_onnx(pca, tmp_path / "nowhere" / "m.onnx")
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(MissingDependencyError, match=r"pip install 'foldwise\[onnx\]'"):
        fw.save_onnx(pca, tmp_path / "m.onnx")
    assert not list(tmp_path.iterdir())


# ---------------------------------------------------------------- networks

QUICK = {"encoder": [16], "max_iter": 3, "random_state": 0}


@pytest.mark.parametrize("activation", ["relu", "elu", "silu", "gelu", "tanh", "sigmoid", "softplus"])
@pytest.mark.parametrize("linear", [True, False])
def test_every_activation(activation: str, linear: bool, tmp_path: Path) -> None:
    rows = make(np.float32)
    check(fw.Autoencoder(2, activation=activation, linear=linear, **QUICK).fit(rows), rows, tmp_path)


@pytest.mark.parametrize(
    ("dtype", "offset", "size"), [(np.float32, 100.0, 1.0), (np.float64, 1e8, 1.0), (np.float64, 0.0, 1e-20)]
)
@pytest.mark.parametrize("options", [{}, {"scale": True}, {"reduce_to": 4}, {"reduce_to": 4, "scale": True}], ids=str)
def test_autoencoders_at_any_offset_and_scale(
    dtype: Any, offset: float, size: float, options: dict[str, Any], tmp_path: Path
) -> None:
    rows = (make(np.float64) * size + offset).astype(dtype)
    check(fw.Autoencoder(3, **options, **QUICK).fit(rows), rows, tmp_path)


@pytest.mark.parametrize("linear", [True, False])
@pytest.mark.parametrize("reduce_to", [None, 4])
def test_autoencoders_with_missing_cells(linear: bool, reduce_to: int | None, tmp_path: Path) -> None:
    rows = make(np.float64)
    rows[np.random.default_rng(1).random(rows.shape) < 0.1] = np.nan
    options = {"linear": linear, "reduce_to": reduce_to, "activation": "relu", **QUICK}
    check(fw.Autoencoder(2, missing="mean", **options).fit(rows), rows, tmp_path)
    model = fw.Autoencoder(2, missing="model", **options).fit(rows)
    gap = np.isnan(rows).any(axis=1)
    check(model, rows[~gap], tmp_path)
    for output in ("codes", "reconstruction", "error"):  # conditional means are not part of the graph
        assert np.isnan(run(tmp_path / f"{output}.onnx", rows)[gap]).all()
