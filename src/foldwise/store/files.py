"""Models to files and back."""

from __future__ import annotations

import importlib
import json
import os
from pathlib import Path
from typing import Any

import numpy as np

import foldwise
from foldwise.errors import StoreError
from foldwise.fold.checkpoint import write_tensors
from foldwise.store.encode import decode, encode

_FORMAT = 1
_MODELS = {
    "BisectingKMeans": "foldwise.models.kmeans",
    "GaussianMixture": "foldwise.models.mixture",
    "KMeans": "foldwise.models.kmeans",
    "KernelKMeans": "foldwise.models.kernel",
    "MiniBatchKMeans": "foldwise.models.kmeans",
    "PCA": "foldwise.models.pca",
    "SoftKMeans": "foldwise.models.mixture",
}
# Results that are records as a whole, without parameters and attributes of a fit.
_RESULTS = {
    "Comparison": "foldwise.models.likelihood",
    "FittedDistribution": "foldwise.models.likelihood",
}


def save(model: Any, path: str | os.PathLike[str]) -> None:
    """Write a fitted model to one file, whole or not at all.

    >>> import os, tempfile
    >>> import foldwise as fw
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     fw.save(fw.PCA(1).fit([[0.0, 1.0], [2.0, 5.0], [4.0, 9.0]]), os.path.join(folder, "m.fw"))
    ...     fw.load(os.path.join(folder, "m.fw")).n_components_
    1
    """
    kind = type(model).__name__
    if kind in _RESULTS and type(model) is _class(kind):
        parts: dict[str, Any] = {}
        _write(path, parts, {**_header(kind), "record": encode(model, parts)})
        return
    if _MODELS.get(kind) is None or type(model) is not _class(kind):
        known = ", ".join(sorted(_MODELS | _RESULTS))
        raise StoreError(f"a {kind} cannot be saved; models that can: {known}.")
    getattr(model, "components_", None)  # a model fed by partial_fit is worked out when it is asked
    fitted = {name: value for name, value in vars(model).items() if name.endswith("_") and not name.startswith("_")}
    if not set(fitted) - {"n_features_in_", "feature_names_in_"}:  # those are there even after a fit that failed
        raise StoreError(f"this {kind} is not fitted yet. Call fit first.")
    arrays: dict[str, Any] = {}
    parameters = encode(model.get_params(deep=False), arrays)
    _write(path, arrays, {**_header(kind), "parameters": parameters, "fitted": encode(fitted, arrays)})


def _header(kind: str) -> dict[str, Any]:
    return {"format": _FORMAT, "model": kind, "version": foldwise.__version__}


def _write(path: str | os.PathLike[str], arrays: dict[str, Any], header: dict[str, Any]) -> None:
    target = Path(path)
    if not target.parent.is_dir():
        raise StoreError(f"{target}: the folder {target.parent} does not exist. Make it, or give another place.")
    write_tensors(target, arrays, header)


def load(path: str | os.PathLike[str]) -> Any:
    """Read a model that `save` wrote; no code from the file is run."""
    from safetensors import safe_open

    target = Path(path)
    if not target.is_file():
        raise StoreError(f"{target}: there is no such file.")
    try:
        with safe_open(target, framework="numpy") as file:
            header = json.loads((file.metadata() or {})["foldwise"])
            arrays = {name: np.array(file.get_tensor(name)) for name in file.keys()}  # noqa: SIM118
        kind, version = header["model"], int(header["format"])
    except Exception as error:
        raise StoreError(f"{target}: this is not a model saved by Foldwise, or it is damaged ({error}).") from error
    if version > _FORMAT:
        raise StoreError(
            f"{target}: written by Foldwise {header['version']} in format {version}; this version reads up to {_FORMAT}. "
            "Update foldwise."
        )
    if kind in _RESULTS:
        try:
            return decode(header["record"], arrays)
        except (KeyError, TypeError, AttributeError) as error:
            raise StoreError(f"{target}: this file is damaged ({error!r}).") from error
    if kind not in _MODELS:
        raise StoreError(f"{target}: holds a {kind!r}, which this version of Foldwise does not know. Update foldwise.")
    make = _class(kind)
    known = make().get_params()
    try:
        parameters = decode(header["parameters"], arrays)
        model = make(**{name: value for name, value in parameters.items() if name in known})
        for name, value in decode(header["fitted"], arrays).items():
            setattr(model, name, value)
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        if isinstance(error, StoreError):
            raise
        raise StoreError(f"{target}: this file is damaged ({error!r}).") from error
    return model


def _class(kind: str) -> Any:
    return getattr(importlib.import_module((_MODELS | _RESULTS)[kind]), kind)
