"""The scratch folder of this process: made on first use, removed when the process ends, or by the next one if it was killed."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile

from foldwise.data.atomic import explained
from foldwise.data.environment import scratch_folder
from foldwise.data.leftovers import claim, lock, names_in

_PREFIX = "foldwise-scratch-"
_open: dict[tuple[int, str], tuple[str, int]] = {}  # by process and place: the folder and its lock


def folder() -> str:
    """A folder that only this process uses."""
    key = (os.getpid(), scratch_folder())  # a forked child must not use, or remove, the folder of its parent
    if key in _open and not os.path.isdir(_open[key][0]):  # somebody tidied up
        os.close(_open.pop(key)[1])
    if key not in _open:
        with explained(key[1]):
            _tidy(key[1])
            made = _create(key[1])
        if _open.setdefault(key, made) is not made:  # another thread was faster
            _discard(*made)
    return _open[key][0]


def _create(where: str) -> tuple[str, int]:
    while True:
        path = tempfile.mkdtemp(prefix=_PREFIX, dir=where)
        number = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        if lock(number, path):
            return path, number
        os.close(number)  # another process took it for a leftover, in the instant before it was locked


def _tidy(where: str) -> None:
    """Remove the folders of killed processes."""
    for path in (os.path.join(where, name) for name in names_in(where) if name.startswith(_PREFIX)):
        number = claim(path)
        if number is not None:
            _discard(path, number)


def _discard(path: str, number: int) -> None:
    shutil.rmtree(path, ignore_errors=True)
    os.close(number)


@atexit.register
def _remove() -> None:
    for process, where in list(_open):
        path, number = _open.pop((process, where))
        if process == os.getpid():
            _discard(path, number)
