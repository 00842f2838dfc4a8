"""Saving models and results to files, and loading them."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np

import foldwise
from foldwise.errors import StoreError
from foldwise.fold.checkpoint import write_tensors
from foldwise.store.encode import MODELS, RESULTS, decode, decode_model, encode, encode_model, find

_FORMAT = 1


def save(model: Any, path: str | os.PathLike[str]) -> None:
    """Write a fitted model, or a result such as an `InertiaCurve`, to one file, atomically.

    >>> import os, tempfile
    >>> import foldwise as fw
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     fw.save(fw.PCA(1).fit([[0.0, 1.0], [2.0, 5.0], [4.0, 9.0]]), os.path.join(folder, "m.fw"))
    ...     fw.load(os.path.join(folder, "m.fw")).n_components_
    1
    """
    kind, target = type(model).__name__, Path(path)
    if kind not in MODELS | RESULTS or type(model) is not find(kind):
        raise StoreError(f"a {kind} cannot be saved; supported are {', '.join(sorted(MODELS | RESULTS))}.")
    arrays: dict[str, Any] = {}
    parts = encode_model(model, arrays) if kind in MODELS else {"record": encode(model, arrays)}
    if not target.parent.is_dir():
        raise StoreError(f"{target}: the folder {target.parent} does not exist. Create it, or choose another path.")
    write_tensors(target, arrays, {"format": _FORMAT, "model": kind, "version": foldwise.__version__, **parts})


def load(path: str | os.PathLike[str]) -> Any:
    """Read a file written by `save`; no code from the file is run."""
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
    if kind not in MODELS | RESULTS:
        raise StoreError(f"{target}: holds a {kind!r}, which this version of Foldwise does not know. Update foldwise.")
    try:
        return decode(header["record"], arrays) if kind in RESULTS else decode_model(kind, header, arrays)
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        if isinstance(error, StoreError):
            raise
        raise StoreError(f"{target}: this file is damaged ({error!r}).") from error
