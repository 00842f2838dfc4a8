"""The simplest engine: one block after the other, in this thread."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

from foldwise.data.block import Block
from foldwise.data.source import Piece

T = TypeVar("T")


def run(
    pieces: Iterable[Piece], work: Callable[[Block], T], take: Callable[[int, T], None], n_threads: int = 1
) -> None:
    """Call `take(number, work(block))` for every piece."""
    for number, piece in enumerate(pieces):
        take(number, work(piece()))
