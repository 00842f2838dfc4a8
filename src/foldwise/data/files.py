"""Resolving paths, patterns and lists of paths to files; their format, and whether they have changed since."""

from __future__ import annotations

import glob
import os
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

from foldwise.data import arriving, image_endings, sniff
from foldwise.errors import DataError, MissingFileError, SourceChangedError, warn

FORMATS = {
    ".csv": "csv",
    ".tsv": "csv",
    ".tab": "csv",
    ".txt": "csv",
    ".dat": "csv",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".jsonl": "json",
    ".ndjson": "json",
    ".json": "json",
    ".npy": "npy",
    ".npz": "npz",
    ".xlsx": "excel",
    ".xlsm": "excel",
    ".xlsb": "excel",
    ".xls": "excel",
    ".ods": "excel",
    ".sqlite": "sqlite",
    ".sqlite3": "sqlite",
    ".db": "database",  # of SQLite or of DuckDB: the content says which
    ".db3": "sqlite",
    ".duckdb": "duckdb",
    ".ddb": "duckdb",
    ".feather": "arrow",
    ".arrow": "arrow",
    ".ipc": "arrow",
    ".idx": "idx",
    **dict.fromkeys(image_endings.ENDINGS, "image"),
}
COMPRESSIONS = (".gz", ".zst")
_PACKED = {"csv", "json", "idx"}  # formats that may be compressed
_SUPPORTED = (
    ".csv, .tsv, .txt, .jsonl, .ndjson, .json (each also with .gz or .zst), .parquet, .feather, .arrow, .xlsx, .xls, .xlsb, "
    ".ods, .sqlite, .db, .duckdb, .npy, .npz, .idx, and images (.png, .jpg, .tif, ...)"
)
_WRITTEN = {"csv", "json", "parquet", "npy"}
_TO_WRITE = ".csv, .tsv, .txt, .jsonl, .ndjson, .json (each also with .gz), .parquet, .npy"
_DIGITS = re.compile("([0-9]+)")
_SINGLE = {"npy", "npz", "excel", "sqlite", "duckdb", "arrow", "idx"}  # formats of which one file is read at a time


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
    label: str | None = None  # what to call a file that was written here from something else

    @property
    def where(self) -> str:
        """How messages refer to them."""
        if self.label is not None:
            return self.label
        return self.paths[0] if len(self.paths) == 1 else f"{self.paths[0]} and {len(self.paths) - 1} more file(s)"

    def check_unchanged(self) -> None:
        """Raise if one of them changed."""
        unchanged(self.paths, self.stamps)


def without_compression(path: str) -> str:
    """The name of a file, in lower case, without the ending of its compression."""
    base = path.lower()
    return next((base.removesuffix(end) for end in COMPRESSIONS if base.endswith(end)), base)


def format_of(path: str) -> str:
    """The format of a file, from its name, or from its content if the name says nothing."""
    base = without_compression(path)
    kind = FORMATS.get(os.path.splitext(base)[1])
    packed = base != path.lower()
    other = image_endings.not_read(path)
    if other is not None:
        raise DataError(f"not an image that can be read: {other[0]}", where=path, advice=other[1])
    if kind == "database" or (kind is None and not packed and os.path.isfile(path)):
        kind = FORMATS.get(sniff.ending(path)) if os.path.getsize(path) else "csv"
    if kind is None and path.lower().endswith(".gz") and sniff.is_packed_idx(path):
        return "idx"
    if kind is None or (packed and kind not in _PACKED):
        raise DataError("unknown file format", where=path, advice=f"Supported: {_SUPPORTED}")
    return kind


def output_format_of(path: str) -> str:
    """The format to write a file in, from its name."""
    base = path.lower()
    kind = FORMATS.get(os.path.splitext(base.removesuffix(".gz"))[1])
    if kind not in _WRITTEN or (base.endswith(".gz") and kind not in _PACKED):
        raise DataError("unknown file format to write", where=path, advice=f"Supported: {_TO_WRITE}")
    return kind


def matching(given: str | os.PathLike[str]) -> list[str]:
    """The files that a path or a pattern refers to; a path without a pattern refers to itself, whether it exists or not.

    A folder refers to the images in it and in its subfolders, if there are any. Images are in natural order: 2 before 10.
    """
    text = os.path.expanduser(os.fspath(given))
    if os.path.isdir(text):
        return sorted(images_in(text), key=natural_order) or [text]
    if os.path.exists(text) or not glob.has_magic(text):
        return [text]
    found = sorted(path for path in glob.glob(text, recursive=True) if not os.path.isdir(path))
    if found and all(map(image_endings.has_image_ending, found)):
        found.sort(key=natural_order)
    return found


def images_in(folder: str) -> Iterator[str]:
    """The images in a folder and its subfolders; hidden ones, as some systems put beside each file, are not meant."""
    return (path for path in _visible(folder) if image_endings.has_image_ending(path))


def _visible(folder: str) -> Iterator[str]:
    for place, subfolders, names in os.walk(folder):
        subfolders[:] = sorted(name for name in subfolders if not name.startswith("."))
        yield from (os.path.join(place, name) for name in names if not name.startswith("."))


def say_left_out(folder: str) -> None:
    """Warn of images in a folder that are of no kind that is read."""
    missed = sorted(path for path in _visible(folder) if image_endings.is_left_out(path))
    if missed:
        what, advice = image_endings.not_read(missed[0]) or ("", "")
        they = "1 file is" if len(missed) == 1 else f"{len(missed):,} files are"
        warn(f"{folder}: {they} left out, such as {os.path.relpath(missed[0], folder)}: {what}. {advice}.")


def natural_order(path: str) -> tuple[Any, ...]:
    """What to sort paths by so that numbers in names count as numbers; folder by folder, each before its subfolders.

    >>> sorted(["img10.png", "img2.png", "b/1.png", "img2.PNG"], key=natural_order)
    ['img2.PNG', 'img2.png', 'img10.png', 'b/1.png']
    """
    folder, name = os.path.split(path)
    return _folder_order(folder), _name_order(name), path


@lru_cache(1024)
def _folder_order(folder: str) -> tuple[Any, ...]:
    return tuple(_name_order(part) for part in folder.split(os.sep))


def _name_order(name: str) -> tuple[Any, ...]:
    """Texts, each with the number behind it."""
    parts = _DIGITS.split(name.lower())
    return tuple(zip(parts[0::2], [int(number) for number in parts[1::2]] + [-1], strict=True))


def find(given: str | os.PathLike[str] | Sequence[str | os.PathLike[str]]) -> Files:
    """The files that a path, a pattern or a list of paths refers to; `-` is standard input."""
    asked = [given] if isinstance(given, (str, os.PathLike)) else list(given)
    if len(asked) == 1 and os.fspath(asked[0]) == "-":
        return _spooled(arriving.standard_input(), "standard input")
    paths: list[str] = []
    label = os.fspath(asked[0]) if len(asked) == 1 else None
    for one in asked:
        matches = matching(one)
        if not matches:
            advice = f"The current folder is {os.getcwd()}"
            raise MissingFileError(
                "no file matches this pattern", where=os.path.expanduser(os.fspath(one)), advice=advice
            )
        if os.path.isdir(folder := os.path.expanduser(os.fspath(one))) and matches != [folder]:
            say_left_out(folder)
        paths.extend(matches)
    if len(paths) == 1 and arriving.is_pipe(paths[0]):
        return _spooled(arriving.pipe(paths[0]), paths[0])
    for path in paths:
        _usable(path)
    kinds = {path: format_of(path) for path in paths}
    kind = kinds[paths[0]]
    for path in paths:
        if kinds[path] != kind:
            raise DataError(f"{paths[0]} and {path} have different formats", advice="Pass files of one format")
    if kind in _SINGLE and len(paths) > 1:
        ending = os.path.splitext(paths[0])[1]
        raise DataError(f"only one {ending} file can be read at a time", where=f"{paths[0]} and {len(paths) - 1} more")
    stamps = tuple(stamp(path) for path in paths)
    return Files(tuple(paths), kind, stamps, label if kind == "image" and len(paths) > 1 else None)


def _spooled(path: str, label: str) -> Files:
    return Files((path,), format_of(path), (stamp(path),), label)


def _is_folder(path: str) -> DataError:
    """An error with a pattern that the files in a folder match, those of the most frequent kind."""
    try:
        with os.scandir(path) as entries:
            names = sorted(one.name for one in entries if one.is_file() and not one.name.startswith("."))
    except OSError as error:
        return DataError(f"this is a folder, and cannot be read: {error.strerror}", where=path, advice="Name a file")
    endings = [name[len(os.path.splitext(without_compression(name))[0]) :] for name in names]
    known = Counter(one for one in endings if os.path.splitext(one.lower())[0] in FORMATS or one.lower() in FORMATS)
    if not names:
        return DataError("this is a folder without files", where=path, advice="Name a file, or files with a pattern")
    if not known:
        what = "this is a folder without files of a kind that is read"
        return DataError(what, where=path, advice=f"Name a file, or files with a pattern. Supported: {_SUPPORTED}")
    pattern = os.path.join(path, f"*{known.most_common(1)[0][0]}")
    return DataError("this is a folder", where=path, advice=f"Name its files with a pattern, such as {pattern!r}")


def _usable(path: str) -> None:
    if os.path.isdir(path):
        raise _is_folder(path)
    if not os.path.exists(path):
        raise MissingFileError("there is no such file", where=path, advice=f"The current folder is {os.getcwd()}")
    if not os.path.isfile(path):
        format_of(path)
        raise DataError(
            "this is a pipe, a socket or a device, which can be read only once",
            where=path,
            advice="Write what it gives to a file first",
        )
    if os.path.getsize(path) == 0:
        format_of(path)
        raise DataError("the file is empty (0 bytes): 0 sample(s)", where=path, advice="Was it written completely?")
