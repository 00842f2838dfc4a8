"""The simplest engine: one block after another, in this thread."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

P = TypeVar("P")


def run(
    pieces: Iterable[P], work: Callable[[int, P], Any], take: Callable[[int, Any], None], n_threads: int = 1
) -> None:
    """Call `take(number, work(number, piece))` for every piece."""
    for number, piece in enumerate(pieces):
        take(number, work(number, piece))
