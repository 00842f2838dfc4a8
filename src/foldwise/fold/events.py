"""Progress events: listeners receive small records; drawing is left to them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class RowsRead:
    """A pass over the data has read `done` rows; `total` is None if not known yet."""

    done: int
    total: int | None
    number_of_pass: int


@dataclass(frozen=True, slots=True)
class StepDone:
    """A multi-pass fit has finished a step."""

    number: int
    max_iter: int
    figures: dict[str, float]


@dataclass(frozen=True, slots=True)
class Stage:
    """A part of something longer begins: what it does, its number and how many there are."""

    name: str
    number: int
    of: int


Event: TypeAlias = RowsRead | StepDone | Stage
Listener: TypeAlias = Callable[[Event], None]

_listeners: list[Listener] = []
_silent: ContextVar[bool] = ContextVar("foldwise_silent", default=False)  # each thread has its own


@contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Send events to `listener` while the block runs."""
    _listeners.append(listener)
    try:
        yield
    finally:
        _listeners.remove(listener)


@contextmanager
def muted() -> Iterator[None]:
    """Send no events from this thread while the block runs: for fits inside a step of something larger, which tells of itself.

    Threads that the engine starts for it are silent as well; what other threads do is heard as before.
    """
    before = _silent.set(True)
    try:
        yield
    finally:
        _silent.reset(before)


def emit(event: Event) -> None:
    """Send an event to every listener."""
    if _silent.get():
        return
    for listener in tuple(_listeners):
        listener(event)


def heard() -> bool:
    """Whether there are listeners, so that events need not be built otherwise."""
    return bool(_listeners) and not _silent.get()
