"""Text to the terminal, or to a pipe, the same."""

from __future__ import annotations


def show(text: str) -> None:
    """Print to standard output."""
    print(text, flush=True)
