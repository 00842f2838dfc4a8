"""The labels of images: given as values, or by the name of a file or of an array in an .npz file."""

from __future__ import annotations

import os
import zipfile
import zlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

from foldwise.data.array_files import is_array_file
from foldwise.data.idx_file import idx_values
from foldwise.errors import DataError, MissingFileError, ParameterError

_ADVICE = "Save labels as whole numbers or texts: np.save(path, labels.astype(str))"
_TROUBLE = (OSError, ValueError, EOFError, zipfile.BadZipFile, zlib.error, NotImplementedError)


def given_labels(labels: Any) -> Any:
    """Labels, read from a file if they are named by one."""
    if not isinstance(labels, (str, os.PathLike)):
        return labels
    path = os.path.expanduser(os.fspath(labels))
    if not os.path.exists(path):
        raise MissingFileError("there is no such file of labels", where=path)
    if path.lower().endswith(".npy"):
        try:
            return np.load(path, allow_pickle=False)
        except _TROUBLE as problem:
            raise _unreadable(path, problem) from None
    if is_array_file(path):
        return idx_values(path)
    try:
        with open(path, encoding="utf-8-sig") as file:
            return np.array([line.strip() for line in file if line.strip()])
    except UnicodeDecodeError:
        raise DataError(
            "the labels are not a text in UTF-8", where=path, advice="Save them as UTF-8, one label in each line"
        ) from None
    except OSError as problem:
        raise _unreadable(path, problem) from None


def labels_in_archive(path: str, name: str) -> NDArray[Any]:
    """An array of an .npz file."""
    try:
        with np.load(path, allow_pickle=False) as archive:
            if name not in archive.files:
                raise ParameterError(f"{path} has no array {name!r}; it has {', '.join(archive.files)}.")
            found: NDArray[Any] = archive[name]
    except ParameterError:
        raise
    except _TROUBLE as problem:
        raise _unreadable(f"{path} ({name})", problem) from None
    return found


def _unreadable(where: str, problem: Exception) -> DataError:
    if "allow_pickle" in str(problem):
        return DataError("the labels are Python objects, which are not read from files", where=where, advice=_ADVICE)
    reason = " ".join(str(problem).split()) or type(problem).__name__
    return DataError(f"the labels cannot be read ({reason})", where=where, advice=_ADVICE)


def checked_labels(labels: Any, n: int, where: str) -> NDArray[Any] | None:
    """One label for each of `n` images, whole numbers or texts; none may be missing."""
    if labels is None:
        return None
    try:
        given = np.asarray(labels)
    except ValueError:
        raise DataError("the labels are no plain list", where=where, advice="Give one label per image") from None
    if given.shape != (n,):
        raise DataError(
            f"there are {n:,} images, but labels of shape {given.shape}", where=where, advice="Give one label per image"
        )
    missing = [one is None or one != one for one in given.tolist()] if given.dtype.kind in "fO" else []
    if any(missing):
        row = missing.index(True)
        raise DataError("the label is missing", where=where, row=row, advice="Give one label per image")
    if given.dtype.kind == "f" and (given == given.round()).all():
        given = given.astype(np.int64)
    return given if given.dtype.kind in "iu" else given.astype(str)
