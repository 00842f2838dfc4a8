"""Files that are either the old ones or the new ones, never half of each."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """A binary file to write to; it takes the place of `path` when the block ends well, else it is removed."""
    target = Path(path)
    handle, name = tempfile.mkstemp(prefix=f".{target.name}.", suffix=".part", dir=target.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        settle(name, target)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def settle(temporary: str | os.PathLike[str], target: str | os.PathLike[str]) -> None:
    """Give a finished temporary file its name, with the usual permissions, and make the new name survive a power cut."""
    umask = os.umask(0)
    os.umask(umask)
    os.chmod(temporary, 0o666 & ~umask)
    os.replace(temporary, target)
    folder = os.open(Path(target).parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
