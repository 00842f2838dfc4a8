"""Resolving paths, patterns and lists of paths to files; their format, and whether they have changed since."""

from __future__ import annotations

import glob
import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from foldwise.errors import DataError, MissingFileError, SourceChangedError

FORMATS = {
    ".csv": "csv",
    ".tsv": "csv",
    ".txt": "csv",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".jsonl": "json",
    ".ndjson": "json",
    ".json": "json",
    ".npy": "npy",
}
_SUPPORTED = ".csv, .tsv, .txt, .jsonl, .ndjson, .json (each also with .gz), .parquet, .npy"


class Stamp(NamedTuple):
    """Figures that reveal a change to a file."""

    size: int
    time: int


def stamp(path: str) -> Stamp:
    """The current stamp of a file."""
    status = os.stat(path)
    return Stamp(status.st_size, status.st_mtime_ns)


def unchanged(paths: Sequence[str], stamps: Sequence[Stamp]) -> None:
    """Raise if a file changed after it was opened."""
    for path, old in zip(paths, stamps, strict=True):
        try:
            same = stamp(path) == old
        except FileNotFoundError:
            same = False
        if not same:
            raise SourceChangedError(
                "the file changed after it was opened", where=path, advice="Scan it again once it is complete"
            )


@dataclass(frozen=True)
class Files:
    """Files of one format, sorted by name."""

    paths: tuple[str, ...]
    kind: str
    stamps: tuple[Stamp, ...]

    @property
    def where(self) -> str:
        """How messages refer to them."""
        return self.paths[0] if len(self.paths) == 1 else f"{self.paths[0]} and {len(self.paths) - 1} more file(s)"

    def check_unchanged(self) -> None:
        """Raise if one of them changed."""
        unchanged(self.paths, self.stamps)


def format_of(path: str) -> str:
    """The format of a file, from its name."""
    base = path.lower()
    gz = base.endswith(".gz")
    kind = FORMATS.get(os.path.splitext(base.removesuffix(".gz"))[1])
    if kind is None or (gz and kind in ("parquet", "npy")):
        raise DataError("unknown file format", where=path, advice=f"Supported: {_SUPPORTED}")
    return kind


def matching(given: str | os.PathLike[str]) -> list[str]:
    """The files that a path or a pattern refers to; a path without a pattern refers to itself, whether it exists or not."""
    text = os.path.expanduser(os.fspath(given))
    if os.path.exists(text) or not glob.has_magic(text):
        return [text]
    return sorted(path for path in glob.glob(text, recursive=True) if not os.path.isdir(path))


def find(given: str | os.PathLike[str] | Sequence[str | os.PathLike[str]]) -> Files:
    """The files that a path, a pattern or a list of paths refers to."""
    asked = [given] if isinstance(given, (str, os.PathLike)) else list(given)
    paths: list[str] = []
    for one in asked:
        matches = matching(one)
        if not matches:
            raise MissingFileError("no file matches this pattern", where=os.path.expanduser(os.fspath(one)))
        paths.extend(matches)
    for path in paths:
        _usable(path)
    kinds = {path: format_of(path) for path in paths}
    kind = kinds[paths[0]]
    for path in paths:
        if kinds[path] != kind:
            raise DataError(f"{paths[0]} and {path} have different formats", advice="Pass files of one format")
    return Files(tuple(paths), kind, tuple(stamp(path) for path in paths))


def _usable(path: str) -> None:
    if os.path.isdir(path):
        raise DataError(
            "this is a folder",
            where=path,
            advice=f"Name its files with a pattern, such as {os.path.join(path, '*.parquet')!r}",
        )
    if not os.path.exists(path):
        raise MissingFileError("there is no such file", where=path, advice=f"The current folder is {os.getcwd()}")
    format_of(path)
    if not os.path.isfile(path):
        raise DataError(
            "this is a pipe, a socket or a device, which can be read only once",
            where=path,
            advice="Write what it gives to a file first",
        )
    if os.path.getsize(path) == 0:
        raise DataError("the file is empty (0 bytes): 0 sample(s)", where=path)
