"""One BLAS thread during a fit: parallelism comes from the fold, and results must not depend on how a library splits work."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import lru_cache
from threading import Lock
from typing import Any

_lock = Lock()
_users = 0
_before: list[int] = []


@lru_cache(maxsize=1)
def _libraries() -> list[Any]:
    import scipy.linalg  # noqa: F401  (loads its own BLAS, so that it is listed too)
    from threadpoolctl import ThreadpoolController

    return list(ThreadpoolController().select(user_api="blas").lib_controllers)


def _set(library: Any, n_threads: int) -> None:
    # From version 3.8, threadpoolctl lets only one thread of the process set OpenBLAS's limit and silently ignores the others.
    # Ours is set under our own lock, so it bypasses that.
    getattr(library, "_real_set_num_threads", library.set_num_threads)(n_threads)


def single(work: float = float("inf")) -> AbstractContextManager[None]:
    """A context in which BLAS runs on one thread.

    `work` is the number of multiplications to follow: below a few hundred thousand no BLAS starts threads, and the context,
    which costs some 50 microseconds, is skipped.
    """
    return nullcontext() if work < 100_000 else _limited()


@contextmanager
def _limited() -> Iterator[None]:
    """The limit applies to the whole process: the first of several concurrent fits sets it, the last one removes it."""
    global _users, _before
    with _lock:
        _users += 1
        if _users == 1:
            _before = [library.get_num_threads() for library in _libraries()]
            for library in _libraries():
                _set(library, 1)
    try:
        yield
    finally:
        with _lock:
            _users -= 1
            if _users == 0:
                for library, n_threads in zip(_libraries(), _before, strict=True):
                    _set(library, n_threads)
