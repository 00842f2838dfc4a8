"""Atomic file replacement: readers see either the old file or the new one, never a partial write."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from foldwise.errors import DataError


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """A binary file to write to; it replaces `path` if the `with` block succeeds and is removed otherwise."""
    name = begin(path)
    try:
        with open(name, "wb") as file:
            yield file
        settle(name, path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def begin(path: str | os.PathLike[str]) -> str:
    """An empty temporary file in the same folder as `path`."""
    target = Path(path).absolute()
    if not target.parent.is_dir():
        raise DataError("no such folder to write to", where=os.fspath(target.parent), advice="Create it first")
    handle, name = tempfile.mkstemp(prefix=f".{target.name}.", suffix=".part", dir=target.parent)
    os.close(handle)
    os.chmod(name, 0o666 & ~_UMASK)  # mkstemp creates private files
    return name


def settle(temporary: str | os.PathLike[str], path: str | os.PathLike[str]) -> None:
    """Rename a finished temporary file to `path`, and sync both file and folder so that it survives a power cut."""
    _sync(temporary)
    os.replace(temporary, path)
    _sync(Path(path).absolute().parent)


def _sync(path: str | os.PathLike[str]) -> None:
    number = os.open(path, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


_UMASK = _umask()  # read once: reading it means setting it, which would affect other threads
