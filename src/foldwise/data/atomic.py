"""Files that are either the old ones or the new ones, never half of each."""

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
    """A binary file to write to; it takes the place of `path` when the block ends well, else it is removed."""
    name = begin(path)
    try:
        with open(name, "wb") as file:
            yield file
        settle(name, path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def begin(path: str | os.PathLike[str]) -> str:
    """An empty temporary file beside `path`."""
    target = Path(path).absolute()
    if not target.parent.is_dir():
        raise DataError("there is no such folder to write to", where=os.fspath(target.parent), advice="Make it first")
    handle, name = tempfile.mkstemp(prefix=f".{target.name}.", suffix=".part", dir=target.parent)
    os.close(handle)
    os.chmod(name, 0o666 & ~_UMASK)  # mkstemp's are private
    return name


def settle(temporary: str | os.PathLike[str], path: str | os.PathLike[str]) -> None:
    """Give a finished temporary file its name, and make both survive a power cut."""
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


_UMASK = _umask()  # read once: to read it is to change it, which would disturb other threads
