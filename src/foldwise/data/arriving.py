"""Data that arrive once, by standard input or a named pipe: written to a scratch file, which can be read as often as needed."""

from __future__ import annotations

import os
import shutil
import stat
import sys
import tempfile
import time
from typing import Any

from foldwise.data import scratch, sniff
from foldwise.data.atomic import explained
from foldwise.errors import DataError

_CHUNK = 1 << 20  # bytes
_PATIENCE = 1.5  # seconds, until somebody must have opened a pipe for writing
_kept: list[tuple[int, Any, str]] = []  # process, stream and file: standard input is used up by the first who reads it


def standard_input() -> str:
    """A file with what standard input gives; the same for every caller in this process."""
    stream = getattr(sys.stdin, "buffer", sys.stdin)
    for process, kept, path in _kept:
        if process == os.getpid() and kept is stream and os.path.exists(path):
            return path
    if stream is None or sys.stdin.isatty():
        raise DataError(
            "there is nothing to read: standard input is a terminal",
            where="standard input",
            advice="Send a table into the command: cat data.csv | foldwise ... -",
        )
    path = _written(stream, "standard-input", "standard input")
    _kept.append((os.getpid(), stream, path))
    return path


def is_pipe(path: str) -> bool:
    """Whether this is a named pipe, such as the shell makes of <(command)."""
    try:
        return stat.S_ISFIFO(os.stat(path).st_mode)
    except OSError:
        return False


def pipe(path: str) -> str:
    """A file with what a named pipe gives."""
    number = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    with open(number, "rb", buffering=0) as stream:
        first = _first_bytes(number, path)
        os.set_blocking(number, True)
        return _written(_Joined(first, stream), "pipe", path)


def _first_bytes(number: int, path: str) -> bytes:
    """What comes first, if there is anybody who writes; opening a pipe in the usual way would wait for ever."""
    end = time.monotonic() + _PATIENCE
    while True:
        try:
            if found := os.read(number, _CHUNK):
                return found
        except BlockingIOError:  # somebody is there, who has not written yet
            return b""
        if time.monotonic() > end:
            raise DataError(
                "this is a pipe, and nobody writes to it",
                where=path,
                advice="Start the program that writes to it first, or write what it gives to a file",
            )
        time.sleep(0.02)


class _Joined:
    """Bytes at hand, and a stream that goes on."""

    def __init__(self, first: bytes, stream: Any) -> None:
        self._first, self._stream = first, stream

    def read(self, size: int = -1) -> bytes:
        """The next bytes."""
        first, self._first = self._first, b""
        return first or self._stream.read(size) or b""


def _written(stream: Any, name: str, where: str) -> str:
    folder = tempfile.mkdtemp(dir=scratch.folder())
    path = os.path.join(folder, name)
    with explained(path), open(path, "wb") as file:
        shutil.copyfileobj(stream, file, _CHUNK)
    if os.path.getsize(path) == 0:
        raise DataError("nothing came: 0 sample(s)", where=where)
    named = path + sniff.ending(path)
    os.rename(path, named)
    return named
