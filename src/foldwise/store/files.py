"""Saving models and results to files, and loading them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import foldwise
from foldwise.errors import StoreError
from foldwise.fold.tensor_file import read_tensors, write_tensors
from foldwise.store.encode import MODELS, RESULTS, decode, decode_model, encode, encode_model, find

_FORMAT = 2
_WITHOUT_DIGEST = 1


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
    write_tensors(target, arrays, {"format": _FORMAT, "model": kind, "version": foldwise.__version__, **parts})


def load(path: str | os.PathLike[str]) -> Any:
    """Read a file written by `save`; no code from the file is run, and a damaged file is an error."""
    target = Path(path)
    if not target.is_file():
        raise StoreError(f"{target}: there is no such file.")
    try:
        content = read_tensors(target)
        header, arrays = content.header, content.arrays
        kind, version = header["model"], int(header["format"])
        if _WITHOUT_DIGEST < version <= _FORMAT:
            content.require_digest()
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
        loaded = decode(header["record"], arrays) if kind in RESULTS else decode_model(kind, header, arrays)
    except StoreError as error:
        raise StoreError(f"{target}: {error}") from error
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise StoreError(f"{target}: this file is damaged ({error!r}).") from error
    if not content.digest:
        content.warn_unchecked(target, "Save it again with fw.save to add one.")
    return loaded
