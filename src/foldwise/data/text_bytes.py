"""From bytes to lines: the encoding of a text file, its beginning and its end."""

from __future__ import annotations

import codecs
import io
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from foldwise.errors import DataError

HEAD = 1 << 18  # bytes from which the layout is determined
_SMALL = 1 << 20  # a file up to this size is looked at as a whole
_MOST = 1 << 25  # bytes, if lines are so long that few fit into the head
_FEW = 40  # lines
TAIL = 1 << 16
_LATIN = "foldwise-latin-1"  # bytes that Windows-1252 leaves undefined are read as Latin-1 defines them
_SEVERAL = re.compile(rb"[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3}")
_CONTROL = bytes(range(9)) + bytes(range(14, 26)) + bytes(range(28, 32))
_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),  # begins like that of UTF-16, so comes first
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_SHOWN = {"utf-8": "UTF-8", "utf-8-sig": "UTF-8", "utf-16": "UTF-16", "utf-32": "UTF-32"}
ADVICE = "Give its encoding, for instance encoding='latin-1', or convert it with iconv"


def _as_latin(problem: UnicodeError) -> tuple[str, int]:
    if not isinstance(problem, UnicodeDecodeError):
        raise problem
    return problem.object[problem.start : problem.end].decode("latin-1"), problem.end


codecs.register_error(_LATIN, _as_latin)


@dataclass(frozen=True)
class Encoding:
    """How bytes become characters."""

    codec: str
    guessed: bool = False  # the file does not say so itself

    @property
    def shown(self) -> str:
        """What people call it."""
        if self.codec == "cp1252":
            return "Latin-1 (Windows-1252)" if self.guessed else "Windows-1252"
        return _SHOWN.get(self.codec, self.codec)

    @property
    def errors(self) -> str:
        """What is done about bytes that are not defined."""
        return _LATIN if self.codec == "cp1252" else "strict"

    @property
    def is_utf8(self) -> bool:
        """Whether DuckDB reads it."""
        return self.codec in ("utf-8", "utf-8-sig", "ascii")

    def decode(self, data: bytes, *, whole: bool) -> str:
        """The text of these bytes; if they are not `whole`, the last character may be cut."""
        return codecs.getincrementaldecoder(self.codec)(self.errors).decode(data, final=whole)


@dataclass(frozen=True)
class Ends:
    """The beginning and the end of a text file."""

    encoding: Encoding
    head: str  # only complete lines
    whole: bool  # whether the head is the whole file
    tail: str  # the last lines, if the head is not the whole file


def ends(path: str, shown: str, asked: str | None) -> Ends:
    """Look at the beginning and the end of a file that is not compressed; messages call it `shown`."""
    size = os.path.getsize(path)
    with open(path, "rb") as file:
        head = file.read(size if size <= _SMALL else HEAD)
        while len(head) < min(size, _MOST) and head.count(b"\n") + head.count(b"\r") < _FEW:
            head += file.read(HEAD)
        whole = len(head) >= size
        tail = b""
        if not whole:
            file.seek(max(size - TAIL, 0))
            tail = file.read()
    encoding = _asked(asked, shown) if asked else _found(head, whole, shown)
    try:
        text = encoding.decode(head, whole=whole)
    except UnicodeError as problem:
        raise _undecodable(encoding, head, problem, shown) from None
    text = text.removeprefix("\ufeff")
    if whole:
        text = text.rstrip("\x1a")  # the mark at the end of files of old systems
    nul = text.find("\x00")
    if nul >= 0:
        raise DataError(
            f"this is not a text file, or it is damaged: there is a NUL byte in line {line_at(text, nul)}",
            where=shown,
            advice="If it is text, give its encoding, for instance encoding='utf-16'",
        )
    if not whole:
        text = text[: max(text.rfind("\n"), text.rfind("\r")) + 1] or text
    return Ends(encoding, text, whole, _last_lines(tail, encoding))


def line_at(text: str, position: int) -> int:
    """The number of the line, from 1, in which a position is."""
    before = text[:position]
    return 1 + before.count("\n") + before.count("\r") - before.count("\r\n")


def _last_lines(tail: bytes, encoding: Encoding) -> str:
    if not tail or not (encoding.is_utf8 or encoding.codec == "cp1252"):
        return ""
    text = tail.decode("utf-8" if encoding.is_utf8 else encoding.codec, errors="replace")
    cut = re.search(r"\r\n|\n|\r", text)
    return text[cut.end() :] if cut else ""


def _asked(name: str, shown: str) -> Encoding:
    try:
        found = codecs.lookup(name).name
        "".encode(found)
    except (LookupError, ValueError):
        advice = "Use a name that Python knows, such as utf-8, latin-1, cp1252, utf-16, shift_jis"
        raise DataError(f"encoding={name!r} is not known", where=shown, advice=advice) from None
    return Encoding({"utf-8": "utf-8-sig", "iso8859-1": "cp1252"}.get(found, found))


def _found(head: bytes, whole: bool, shown: str) -> Encoding:
    for mark, codec in _MARKS:
        if head.startswith(mark):
            return Encoding(codec)
    if b"\x00" in head:
        even, odd = head[::2].count(0), head[1::2].count(0)
        half = max(len(head) // 2, 1)
        if odd > 0.4 * half and even < 0.05 * half:
            return Encoding("utf-16-le", guessed=True)
        if even > 0.4 * half and odd < 0.05 * half:
            return Encoding("utf-16-be", guessed=True)
    odd_bytes = len(head) - len(head.translate(None, _CONTROL))
    if odd_bytes > max(0.01 * len(head), 3):
        kind = next((name for start, name in _OTHERS if head.startswith(start)), "")
        advice = (
            f"It looks like {kind}: give it the ending that it should have"
            if kind
            else "Is it compressed, or of a program?"
        )
        raise DataError("this is not a text file", where=shown, advice=advice)
    try:
        Encoding("utf-8").decode(head, whole=whole)
    except UnicodeDecodeError as problem:
        if _is_damaged(head):
            raise _undecodable(Encoding("utf-8"), head, problem, shown) from None
        return Encoding("cp1252", guessed=True)
    return Encoding("utf-8")


_OTHERS = (
    (b"PK\x03\x04", "an Excel or zip file"),
    (b"\x1f\x8b", "a .gz file"),
    (b"(\xb5/\xfd", "a .zst file"),
    (b"PAR1", "a Parquet file"),
    (b"\xd0\xcf\x11\xe0", "an old Excel file (.xls)"),
    (b"SQLite format 3", "an SQLite file"),
    (b"%PDF", "a PDF file"),
)


def _is_damaged(data: bytes) -> bool:
    """Whether bytes that are not UTF-8 are the exception among characters that are; otherwise it is another encoding."""
    good = len(_SEVERAL.findall(data))
    return 0 < good >= data.decode("utf-8", errors="replace").count("\ufffd")


def _undecodable(encoding: Encoding, data: bytes, problem: UnicodeError, shown: str) -> DataError:
    start = problem.start if isinstance(problem, UnicodeDecodeError) else 0
    before = data[:start].decode(encoding.codec, errors="replace")
    reason = getattr(problem, "reason", str(problem))
    line = line_at(before, len(before))
    return DataError(f"the file is not {encoding.shown} text (line {line}: {reason})", where=shown, advice=ADVICE)


@contextmanager
def lines_of(path: str, encoding: Encoding, shown: str) -> Iterator[Iterator[str]]:
    """The lines of a file that is not compressed, each with its end, as a stream."""
    with open(path, "rb") as raw, io.TextIOWrapper(raw, encoding.codec, encoding.errors, newline="") as text:
        yield _decoded(path, encoding, text, shown)


def _decoded(path: str, encoding: Encoding, text: io.TextIOWrapper, shown: str) -> Iterator[str]:
    try:
        yield from text
    except UnicodeError:
        raise first_undecodable(path, encoding, shown) from None


def first_undecodable(path: str, encoding: Encoding, shown: str) -> DataError:
    """The error that names the first line with bytes that are not of this encoding."""
    decoder = codecs.getincrementaldecoder(encoding.codec)(encoding.errors)
    lines, pending = 0, b""
    with open(path, "rb") as file:
        while True:
            chunk = file.read(1 << 20)
            try:
                text = decoder.decode(chunk, final=not chunk)
            except UnicodeError as problem:
                start = problem.start if isinstance(problem, UnicodeDecodeError) else 0
                data = problem.object if isinstance(problem, UnicodeDecodeError) else pending + chunk
                before = data[:start].decode(encoding.codec, errors="replace")
                lines += line_at(before, len(before))
                reason = getattr(problem, "reason", str(problem))
                return DataError(
                    f"the file is not {encoding.shown} text (line {lines}: {reason})", where=shown, advice=ADVICE
                )
            if not chunk:
                return DataError(f"the file is not {encoding.shown} text", where=shown, advice=ADVICE)
            lines += line_at(text, len(text)) - 1
            pending = chunk[-8:]


def is_other_encoding(path: str) -> bool:
    """Whether a file that begins as UTF-8, and is not, is in another encoding rather than damaged."""
    good = bad = 0
    decoder = codecs.getincrementaldecoder("utf-8")("replace")  # a character may be cut by the end of a chunk
    with open(path, "rb") as file:
        while chunk := file.read(1 << 20):
            good += len(_SEVERAL.findall(chunk))
            bad += decoder.decode(chunk).count("\ufffd")
    return good < bad or not good
