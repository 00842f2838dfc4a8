"""What a user may say about how a file is to be read."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Reading:
    """How to read a file; None means: find out."""

    header: bool | None = None
    delimiter: str | None = None
    decimal: str | None = None
    encoding: str | None = None
    missing_values: tuple[str, ...] | None = None
    sheet: str | None = None
    table: str | None = None
    skip: int | None = None
    comment: str | None = None
