"""How many threads BLAS uses is settled here: bits must not depend on how a library happens to split a product."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from functools import lru_cache
from typing import Any


@lru_cache(maxsize=1)
def _controller() -> Any:
    import scipy.linalg  # noqa: F401  (its own BLAS must be loaded before libraries are listed)
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def single(work: float = float("inf")) -> AbstractContextManager[Any]:
    """A context in which BLAS runs on one thread: inside a fold, which brings its own parallelism.

    `work` is the number of multiplications about to be done: below some hundred thousand no BLAS starts threads, and the
    context, which costs some 50 microseconds, is left out.
    """
    return _limited(1, work)


def pair(work: float = float("inf")) -> AbstractContextManager[Any]:
    """A context in which BLAS runs on two threads: for what finishes a model after the fold.

    Two, whatever the number of cores or the environment says, so that the same sums are formed everywhere.
    """
    return _limited(2, work)


def _limited(n_threads: int, work: float) -> AbstractContextManager[Any]:
    if work < 100_000:
        return nullcontext()
    context: AbstractContextManager[Any] = _controller().limit(limits=n_threads, user_api="blas")
    return context
