"""Who wants to know how far a fit has come: listeners get small records; nobody here draws anything."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class RowsRead:
    """A pass over the data has handed out rows up to `done`; `total` is None where it is not known yet."""

    done: int
    total: int | None
    number_of_pass: int


@dataclass(frozen=True, slots=True)
class StepDone:
    """A multi-pass fit has finished a step."""

    number: int
    max_iter: int
    figures: dict[str, float]


Event: TypeAlias = RowsRead | StepDone
Listener: TypeAlias = Callable[[Event], None]

_listeners: list[Listener] = []


@contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Send events to `listener` while the block runs."""
    _listeners.append(listener)
    try:
        yield
    finally:
        _listeners.remove(listener)


def emit(event: Event) -> None:
    """Tell every listener."""
    for listener in tuple(_listeners):
        listener(event)


def heard() -> bool:
    """Whether anybody listens (so that nothing is built for nobody)."""
    return bool(_listeners)
