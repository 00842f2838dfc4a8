"""Decompressed copies of text files: .gz with its checksum tested, .zst decoded by DuckDB and tested for being complete."""

from __future__ import annotations

import os
from typing import Any, BinaryIO

from foldwise.data.compressed import opened
from foldwise.data.duckdb_connection import duckdb_errors, literal
from foldwise.data.normalise_text import within
from foldwise.errors import DataError

_CHUNK = 1 << 20
_FRAME, _SKIPPABLE = 0xFD2FB528, 0x184D2A50
_ADVICE = "Copy or compress it again"


def is_compressed(path: str) -> bool:
    """Whether the name of a file says that it is compressed."""
    return path.lower().endswith((".gz", ".zst"))


def unpack(path: str, target: str, limit: int, database: Any) -> None:
    """Write the content of a compressed file to `target`; a damaged file is refused."""
    with open(target, "wb") as out:
        if path.lower().endswith(".gz"):
            with opened(path) as file:
                while chunk := file.read(_CHUNK):
                    out.write(chunk)
                    within(out.tell(), limit, path)
        else:
            _check_frames(path)
            _unpack_zst(path, out, limit, database)


def _unpack_zst(path: str, out: BinaryIO, limit: int, database: Any) -> None:
    # Each line is a cell: nothing is quoted, and the delimiter does not occur.
    query = (
        f"FROM read_csv([{literal(path)}], auto_detect=false, compression='zstd', delim='\x1f\x1e\x1f', quote='', escape='', "
        "header=false, columns={'line': 'VARCHAR'}, max_line_size=33554432, hive_partitioning=false)"
    )
    try:
        found = database.cursor().execute(query)
        while rows := found.fetchmany(10_000):
            out.write("".join((row[0] or "") + "\n" for row in rows).encode())
            within(out.tell(), limit, path)
    except duckdb_errors() as problem:
        raise DataError(
            f"the compressed file is damaged, or not UTF-8 text with one kind of line ends ({str(problem).splitlines()[0]})",
            where=path,
            advice=f"{_ADVICE}, or decompress it first (zstd -d)",
        ) from None


def _check_frames(path: str) -> None:
    """Refuse a .zst file that ends too early, of which DuckDB would read nothing, or a part, without a word.

    Only the headers of frames and blocks are read, as RFC 8878 describes them.
    """
    size = os.path.getsize(path)
    with open(path, "rb") as file:
        try:
            while file.tell() < size:
                _skip_frame(file)
                if file.tell() > size:
                    raise EOFError
        except EOFError:
            raise DataError("the compressed file is damaged: it ends too early", where=path, advice=_ADVICE) from None
        except ValueError:
            raise DataError("the compressed file is damaged, or no .zst file", where=path, advice=_ADVICE) from None


def _number(file: BinaryIO, count: int) -> int:
    found = file.read(count)
    if len(found) < count:
        raise EOFError
    return int.from_bytes(found, "little")


def _skip_frame(file: BinaryIO) -> None:
    magic = _number(file, 4)
    if magic & 0xFFFFFFF0 == _SKIPPABLE:
        file.seek(_number(file, 4), os.SEEK_CUR)
        return
    if magic != _FRAME:
        raise ValueError
    descriptor = _number(file, 1)
    single = descriptor >> 5 & 1
    content = (single, 2, 4, 8)[descriptor >> 6]
    dictionary = (0, 1, 2, 4)[descriptor & 3]
    file.seek(content + dictionary + (0 if single else 1), os.SEEK_CUR)
    last = 0
    while not last:
        block = _number(file, 3)
        last, kind, size = block & 1, block >> 1 & 3, block >> 3
        if kind == 3:
            raise ValueError
        file.seek(1 if kind == 1 else size, os.SEEK_CUR)
    file.seek(4 if descriptor & 4 else 0, os.SEEK_CUR)
