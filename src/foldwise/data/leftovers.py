"""Locks that tell files and folders in use from those that a killed process left behind.

Whoever creates one keeps it open and locked. The system releases the lock when the process ends, however it ends, so that
what is not locked belongs to nobody. That holds for other users, containers and numbers of processes that are used again.
"""

from __future__ import annotations

import fcntl
import os
from contextlib import suppress


def names_in(folder: str) -> list[str]:
    """What a folder holds; nothing if it may not be listed, since one may be allowed to write to it all the same."""
    try:
        return os.listdir(folder)
    except PermissionError:
        return []


def lock(number: int, path: str) -> bool:
    """Lock an open file or folder; False if another owner has it, or if `path` is no longer the one that was opened."""
    try:
        fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # a file system without locks: nobody can claim it either, see `claim`
        return True
    try:
        return os.path.samestat(os.fstat(number), os.stat(path, follow_symlinks=False))
    except FileNotFoundError:
        return False


def claim(path: str) -> int | None:
    """An abandoned file or folder, opened and locked; None if it is in use, gone, not ours to open, or cannot be locked."""
    try:
        number = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)  # a pipe would wait
    except OSError:
        return None
    with suppress(OSError):
        fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.path.samestat(os.fstat(number), os.stat(path, follow_symlinks=False)):
            return number
    os.close(number)
    return None
