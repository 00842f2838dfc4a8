"""Opening text files that may be compressed."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from foldwise.errors import DataError


@contextmanager
def opened(path: str, mode: str = "rb", **options: Any) -> Iterator[Any]:
    """The file, decompressed if its name ends in .gz; what cannot be decompressed is refused."""
    opener: Any = gzip.open if path.lower().endswith(".gz") else open
    with opener(path, mode, **options) as file:
        try:
            yield file
        except (gzip.BadGzipFile, EOFError, zlib.error) as problem:
            raise DataError(
                f"the compressed file is damaged ({problem})", where=path, advice="Copy or compress it again"
            ) from None
