"""Settings from the environment, checked where they are read."""

from __future__ import annotations

import os
import shutil
import tempfile

from foldwise.errors import ParameterError


def scratch_folder() -> str:
    """The folder for scratch files: FOLDWISE_SCRATCH, or that of the system."""
    asked = os.environ.get("FOLDWISE_SCRATCH")
    if not asked:
        return tempfile.gettempdir()
    if not os.path.isdir(asked):
        raise ParameterError(f"FOLDWISE_SCRATCH={asked!r} is not a folder. Create it, or name another one.")
    if not os.access(asked, os.W_OK | os.X_OK):
        raise ParameterError(f"FOLDWISE_SCRATCH={asked!r} cannot be written to. Name another folder.")
    return asked


def spool_limit() -> int:
    """The bytes that a scratch file may take: FOLDWISE_SPOOL_LIMIT, or half of the free disk space."""
    asked = os.environ.get("FOLDWISE_SPOOL_LIMIT")
    if not asked:
        return shutil.disk_usage(scratch_folder()).free // 2
    try:
        limit = int(asked)
    except ValueError:
        limit = -1
    if limit < 0:
        raise ParameterError(
            f"FOLDWISE_SPOOL_LIMIT={asked!r} is not a number of bytes. Give a whole number of at least 0, such as 1000000000."
        )
    return limit
