"""What was noticed while data were read or prepared, to be told to the user."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Note:
    """One thing that was noticed: its topic, such as "missing-tokens", and a sentence."""

    topic: str
    text: str

    def __str__(self) -> str:
        return self.text
