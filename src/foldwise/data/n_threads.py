"""The number of threads to use."""

from __future__ import annotations

import os

from foldwise.errors import ParameterError

_MOST = 10_000


def count(n_threads: int | None = None) -> int:
    """The number of threads: the argument, or FOLDWISE_THREADS, or the number of cores available to this process."""
    if n_threads is not None:
        chosen, origin = n_threads, "n_threads"
    elif text := os.environ.get("FOLDWISE_THREADS", ""):
        try:
            chosen, origin = int(text), "FOLDWISE_THREADS"
        except ValueError:
            raise ParameterError(f"FOLDWISE_THREADS={text!r} is not a whole number.") from None
    else:
        return _cores()
    if chosen < 1:
        raise ParameterError(f"{origin}={chosen} must be at least 1; leave it out to use all {_cores()} cores.")
    if chosen > _MOST:
        raise ParameterError(
            f"{origin}={chosen} is more than {_MOST} threads; leave it out to use all {_cores()} cores."
        )
    return chosen


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
