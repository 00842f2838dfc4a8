"""The format of a file, told by its content: for standard input, pipes, and files whose name says nothing."""

from __future__ import annotations

import gzip
import zipfile
import zlib

from foldwise.errors import DataError

_SEEN = 1 << 16  # bytes
_MAGIC = (
    (b"PAR1", ".parquet"),
    (b"\x93NUMPY", ".npy"),
    (b"SQLite format 3\0", ".sqlite"),
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", ".xls"),
    (b"ARROW1", ".arrow"),
    (b"FEA1", ".feather"),
    (b"\xff\xff\xff\xff", ".arrow"),
    (b"\x89PNG\r\n\x1a\n", ".png"),
    (b"\xff\xd8\xff", ".jpg"),
    (b"GIF87a", ".gif"),
    (b"GIF89a", ".gif"),
    (b"II*\0", ".tif"),
    (b"MM\0*", ".tif"),
)
# The types of values in an IDX file, by their bytes.
IDX_TYPES = {b"\x08": "u1", b"\x09": "i1", b"\x0b": ">i2", b"\x0c": ">i4", b"\x0d": ">f4", b"\x0e": ">f8"}
_MARKS = (b"\xff\xfe", b"\xfe\xff", b"\xef\xbb\xbf")  # of UTF-16 and UTF-8


def ending(path: str) -> str:
    """The ending that the name of a file with this content should have, such as `.csv.gz`."""
    with open(path, "rb") as file:
        head = file.read(_SEEN)
    for magic, found in _MAGIC:
        if head.startswith(magic):
            return found
    if head.startswith(b"RIFF") and head[8:12] == b"WEBP":
        return ".webp"
    if is_idx(head):
        return ".idx"
    if head[8:12] == b"DUCK":
        return ".duckdb"
    if head.startswith(b"PK\x03\x04"):
        return _of_archive(path)
    if head.startswith(b"\x1f\x8b"):
        unzipped = _unzipped(path)
        return ".idx.gz" if is_idx(unzipped) else f"{_of_text(unzipped, path)}.gz"
    if head.startswith(b"\x28\xb5\x2f\xfd"):
        return f"{_of_text(_first_of_zstd(path), path)}.zst"
    return _of_text(head, path)


def is_idx(head: bytes) -> bool:
    """Whether a file that begins so is in the IDX format of the MNIST digits: two zeros, a type, a number of dimensions."""
    return head[:2] == b"\0\0" and head[2:3] in IDX_TYPES and 1 <= head[3] <= 4 and len(head) >= 4 + 4 * head[3]


def is_packed_idx(path: str) -> bool:
    """Whether a file is in the IDX format and compressed by gzip, whatever its name."""
    try:
        with gzip.open(path) as file:
            return is_idx(file.read(32))
    except (OSError, EOFError, zlib.error):
        return False


def _of_archive(path: str) -> str:
    try:
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
    except (zipfile.BadZipFile, OSError, ValueError) as problem:
        raise DataError(f"the file is damaged ({problem})", where=path, advice="Copy or write it again") from None
    if "xl/workbook.bin" in names:
        return ".xlsb"
    if any(name.startswith("xl/") for name in names):
        return ".xlsx"
    if "content.xml" in names:
        return ".ods"
    if names and all(name.endswith(".npy") for name in names):
        return ".npz"
    raise DataError(f"a zip archive of {len(names)} file(s)", where=path, advice="Unpack it, and name the table in it")


def _of_text(head: bytes, path: str) -> str:
    if b"\0" in head and not head.startswith(_MARKS):
        raise DataError(
            "unknown file format: neither text nor a known kind of binary file",
            where=path,
            advice="If it holds a table, write it as CSV or Parquet",
        )
    text = head.removeprefix(_MARKS[2]).replace(b"\0", b"").lstrip(b"\xff\xfe \t\r\n")
    if text[:1] == b"{":
        return ".jsonl" if b"}" in text.split(b"\n", 1)[0] else ".json"
    return ".json" if text[:1] == b"[" and text[1:].lstrip()[:1] in (b"{", b"[", b"]") else ".csv"


def _unzipped(path: str) -> bytes:
    try:
        with gzip.open(path) as file:
            return file.read(_SEEN)
    except (gzip.BadGzipFile, EOFError, zlib.error) as problem:
        raise DataError(
            f"the compressed file is damaged ({problem})", where=path, advice="Copy or compress it again"
        ) from None


def _first_of_zstd(path: str) -> bytes:
    """The first line of a file compressed by zstd, which DuckDB decompresses."""
    import duckdb

    from foldwise.data.duckdb_connection import Database, literal

    sql = (
        f"FROM read_csv({literal(path)}, compression='zstd', columns={{'line': 'VARCHAR'}}, header=false, "
        r"auto_detect=false, delim='', quote='', escape='', max_line_size=16000000) LIMIT 1"
    )
    try:
        rows = Database((path,)).query(sql)
    except duckdb.Error as problem:
        if "decompress" in str(problem).lower() or "zstd" in str(problem).lower():
            raise DataError("the compressed file is damaged", where=path, advice="Copy or compress it again") from None
        return b""  # a line that is none in this reading: taken for text with delimiters
    return str(rows[0][0]).encode() if rows else b""
