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
from foldwise.store.encode import MODELS, decode, decode_model, encode, encode_model

_FORMAT = 1
# Results that are records as a whole, without parameters and attributes of a fit.
_RESULTS = {
    "Comparison": "foldwise.models.likelihood",
    "FittedDistribution": "foldwise.models.likelihood",
    "MixtureChoice": "foldwise.selection.choose_mixture",
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
    if MODELS.get(kind) is None or type(model) is not _class(kind):
        known = ", ".join(sorted(MODELS | _RESULTS))
        raise StoreError(f"a {kind} cannot be saved; models that can: {known}.")
    arrays: dict[str, Any] = {}
    _write(path, arrays, {**_header(kind), **encode_model(model, arrays)})


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
    if kind not in MODELS:
        raise StoreError(f"{target}: holds a {kind!r}, which this version of Foldwise does not know. Update foldwise.")
    try:
        return decode_model(kind, header, arrays)
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        if isinstance(error, StoreError):
            raise
        raise StoreError(f"{target}: this file is damaged ({error!r}).") from error


def _class(kind: str) -> Any:
    return getattr(importlib.import_module((MODELS | _RESULTS)[kind]), kind)
