"""Atomic file replacement, for everything that Foldwise writes: readers see the old file or the new one, never half of one."""

from __future__ import annotations

import errno
import hashlib
import os
import re
import secrets
import stat
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from foldwise.data.leftovers import claim, lock, names_in
from foldwise.errors import OutputError

_PART = re.compile(r"\..+\.[0-9a-f]{12}\.foldwise-part")
_IN_TEXTS = (errno.ENOSPC, errno.EDQUOT, errno.EACCES, errno.EROFS, errno.EFBIG, errno.EIO)
_FILE = re.compile(r'file \\?"([^"\\]+)')
_LARGE = 1000  # a folder with more files is searched for leftovers only once by each process
_searched: set[tuple[int, str]] = set()


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """A binary file to write to; it replaces `path` if the `with` block succeeds and is removed otherwise."""
    new = Replacement(path)
    try:
        with explained(path):
            with open(new.temporary, "wb") as file:
                yield file
            new.settle()
    finally:
        new.close()


@contextmanager
def replacing_all(contents: Mapping[Path, bytes]) -> Iterator[Callable[[], None]]:
    """Files that belong together: all are written before the block, and take their places when what it is given is called.

    If one cannot be written, or the block ends early, all old files stay.
    """
    with ExitStack() as stack:
        made = []
        for path, content in contents.items():
            new = Replacement(path)
            stack.callback(new.close)
            with explained(path), open(new.temporary, "wb") as file:
                file.write(content)
            made.append(new)

        def settle() -> None:
            for new in made:
                with explained(new.path):
                    new.settle()

        yield settle


class Replacement:
    """A temporary file beside `path`, which takes its place when `settle` is called; `close` removes what was not settled.

    It has the mode and, where the system allows it, the owner of the file that it replaces; a new file heeds the umask. If
    `path` is a link, the file that it refers to is replaced. The temporary file is locked while it is in use, so that the
    next process that writes to this folder can remove it if this one is killed.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.fspath(path)
        with explained(path):
            self.target, self._before = check_target(path)
            _tidy(os.path.dirname(self.target))
            # What replaces a file is private until it gets the mode of that file.
            self.temporary, self._lock = _create(self.target, 0o666 if self._before is None else 0o600)

    def settle(self) -> None:
        """Rename the finished file to its target, and sync both file and folder so that it survives a power cut."""
        if self._before is not None:
            _take_over(self._lock, self._before)
        os.fsync(self._lock)
        os.replace(self.temporary, self.target)
        self.temporary = ""
        with suppress(OSError):  # not every folder can be opened or synced, and the file is in its place
            folder = os.open(os.path.dirname(self.target), os.O_RDONLY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)

    def close(self) -> None:
        """Release the lock, and remove the temporary file unless it was settled."""
        if self.temporary:
            with suppress(FileNotFoundError):
                os.unlink(self.temporary)
            self.temporary = ""
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1


def check_target(path: str | os.PathLike[str]) -> tuple[str, os.stat_result | None]:
    """The file that writing to `path` would replace, and its status, if it exists; an OSError if it cannot be replaced."""
    target = os.path.realpath(path)
    folder = os.path.dirname(target)
    if not os.path.isdir(folder):
        raise FileNotFoundError(errno.ENOENT, f"the folder {folder} does not exist; create it first")
    try:
        before = os.stat(target)
    except FileNotFoundError:
        before = None
    if before is not None and stat.S_ISDIR(before.st_mode):
        raise IsADirectoryError(errno.EISDIR, "it is a folder; give the name of a file")
    if before is not None and not stat.S_ISREG(before.st_mode):  # renaming over a device would remove it
        raise OSError(errno.EINVAL, "it is a device or a pipe, not a file")
    if before is not None and not os.access(target, os.W_OK):  # a rename would ignore that
        raise PermissionError(errno.EACCES, "the file is read-only, or belongs to somebody else")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise PermissionError(errno.EACCES, f"no permission to write to the folder {folder}")
    return target, before


@contextmanager
def explained(path: str | os.PathLike[str], *others: type[Exception]) -> Iterator[None]:
    """Errors of the system (and `others`) as an OutputError that names the file."""
    kinds: tuple[type[Exception], ...] = (OSError, *others)
    try:
        yield
    except OutputError:
        raise
    except kinds as error:
        if "KeyboardInterrupt" in str(error):  # DuckDB makes an error of it
            raise KeyboardInterrupt from error
        raise cannot_write(path, error) from error


def cannot_write(path: str | os.PathLike[str], error: Exception) -> OutputError:
    """The error for a file that could not be written, with the number of the system's error."""
    code, why = _reason(error)
    kept = " The old file is unchanged." if os.path.isfile(path) else ""
    said = OutputError(f"{os.fspath(path)}: cannot be written: {why}.{kept}")
    said.errno = code
    return said


def _reason(error: Exception) -> tuple[int | None, str]:
    """The number of the system's error, and what it means; errors of DuckDB have them somewhere in their text."""
    if isinstance(error, OSError):
        return error.errno, error.strerror or str(error)
    text = " ".join(str(error).split())
    code = next((code for code in _IN_TEXTS if os.strerror(code) in text), None)
    if code is None:
        return None, text
    place = _FILE.search(text)  # in the scratch folder, perhaps, which may be on another disk
    elsewhere = f", in {place[1]}" if place is not None and not _PART.fullmatch(os.path.basename(place[1])) else ""
    return code, os.strerror(code) + elsewhere


def _create(target: str, mode: int) -> tuple[str, int]:
    """A new, locked file beside `target`."""
    folder, name = os.path.split(target)
    if len(os.fsencode(name)) > 180:  # with what is added, it must stay below the usual limit of 255 bytes
        name = hashlib.sha256(os.fsencode(name)).hexdigest()
    while True:
        temporary = os.path.join(folder, f".{name}.{secrets.token_hex(6)}.foldwise-part")
        number = os.open(temporary, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
        if lock(number, temporary):
            return temporary, number
        os.close(number)  # another process took it for a leftover, in the instant before it was locked


def _take_over(number: int, before: os.stat_result) -> None:
    """Give an open file the owner and the mode of another; the owner first, since changing it resets parts of the mode."""
    now = os.fstat(number)
    for owner, group in ((before.st_uid, -1), (-1, before.st_gid)):
        if (owner, group) not in ((now.st_uid, -1), (-1, now.st_gid)):
            with suppress(OSError):  # only root may give files away
                os.fchown(number, owner, group)
    os.fchmod(number, stat.S_IMODE(before.st_mode))


def _tidy(folder: str) -> None:
    """Remove what killed processes left in a folder."""
    if (os.getpid(), folder) in _searched:
        return
    names = names_in(folder)
    if len(names) > _LARGE:
        _searched.add((os.getpid(), folder))
    for path in (os.path.join(folder, name) for name in names if _PART.fullmatch(name)):
        number = claim(path)
        if number is not None:
            with suppress(OSError):
                os.unlink(path)
            os.close(number)
