"""What is said about how data were understood."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Note:
    """One thing that was decided about the data, and could have been decided otherwise."""

    topic: str
    text: str
