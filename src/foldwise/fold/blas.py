"""One BLAS thread during a fit: parallelism comes from the fold, and results must not depend on how a library splits work."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import lru_cache
from threading import get_ident
from typing import Any, NamedTuple

from foldwise import forks

_users: dict[int, int] = {}  # the number of open contexts of each thread
_before: list[int] = []


class _Library(NamedTuple):
    """How the number of threads of a BLAS is read and set."""

    threads: Callable[[], Any]
    set_threads: Callable[[int], Any]


@lru_cache(maxsize=1)
def _libraries() -> list[_Library]:
    import scipy.linalg  # noqa: F401  (loads its own BLAS, so that it is listed too)
    from threadpoolctl import ThreadpoolController

    return [_functions_of(one) for one in ThreadpoolController().select(user_api="blas").lib_controllers]


def _functions_of(library: Any) -> _Library:
    if library.internal_api == "openblas" and getattr(library, "threading_layer", "openmp") != "openmp":
        # threadpoolctl looks these up by name at each call, which takes several times as long as the call.
        find = getattr(library, "_get_symbol", lambda name: None)
        threads, set_threads = find("openblas_get_num_threads"), find("openblas_set_num_threads")
        if threads is not None and set_threads is not None:
            return _Library(threads, set_threads)
    # From version 3.8, threadpoolctl lets only one thread of the process set OpenBLAS's limit and silently ignores the others.
    # Ours is set under our own lock, so it bypasses that.
    return _Library(library.get_num_threads, getattr(library, "_real_set_num_threads", library.set_num_threads))


def _set(library: _Library, n_threads: int) -> None:
    library.set_threads(n_threads)


def single(work: float = float("inf")) -> AbstractContextManager[None]:
    """A context in which BLAS runs on one thread.

    `work` is the number of multiplications to follow: below 500 no BLAS starts threads, and the context, which costs some 5
    microseconds, is skipped. OpenBLAS multiplies triangular matrices of 8 rows in several threads already; a fork by another
    thread of the process ends those threads, and the caller would wait for them for ever.
    """
    return nullcontext() if work < 500 or get_ident() in _users else _Limited()


def single_for(n_rows: int | None, n_columns: int) -> AbstractContextManager[None]:
    """The same for products of a table and what is solved with them; fewer columns than 8 take larger products for threads."""
    if n_rows is not None and n_columns < 8 and n_rows * n_columns**2 < 100_000:
        return nullcontext()
    return single()


class _Limited:
    """The limit applies to the whole process: the first of several concurrent fits sets it, the last one removes it."""

    __slots__ = ("_thread",)

    def __enter__(self) -> None:
        self._thread = thread = get_ident()
        with forks.limits:
            if not _users:
                _limit()
            _users[thread] = _users.get(thread, 0) + 1

    def __exit__(self, *problem: object) -> None:
        thread = self._thread
        with forks.limits:
            _users[thread] -= 1
            if not _users[thread]:
                del _users[thread]
            if not _users:
                _restore()


def _limit() -> None:
    _before[:] = [library.threads() for library in _libraries()]
    for library in _libraries():
        _set(library, 1)


def _restore() -> None:
    for library, n_threads in zip(_libraries(), _before, strict=True):
        _set(library, n_threads)


def _forget_other_threads() -> None:
    """In a forked child, only this thread is left: the others will never end their fits, and lift the limit."""
    others = _users.keys() - {get_ident()}
    for thread in others:
        del _users[thread]
    if others and not _users:
        _restore()


forks.in_child(_forget_other_threads)
