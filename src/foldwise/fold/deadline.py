"""When a fit must end: checked between pieces of work, so that a time budget also holds inside long passes and starts."""

from __future__ import annotations

import time

now = time.perf_counter  # the clock of all budgets


class OutOfTimeError(Exception):
    """The time budget ran out in the middle of a pass or a start, which is thereby given up."""


class Deadline:
    """The end of a time budget in seconds, counted from `began` (by `now`); None never ends."""

    def __init__(self, seconds: float | None = None, began: float | None = None) -> None:
        self._seconds, self._began = seconds, now() if began is None else began

    @property
    def left(self) -> float | None:
        """The seconds that are left, 0 at least; None without a budget."""
        return None if self._seconds is None else max(self._seconds - (now() - self._began), 0.0)

    def check(self) -> None:
        """Raise OutOfTimeError if nothing is left."""
        if self._seconds is not None and now() - self._began >= self._seconds:
            raise OutOfTimeError

    def lift(self) -> None:
        """Check no longer: what is left must be done in any case."""
        self._seconds = None
