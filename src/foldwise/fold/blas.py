"""One BLAS thread at a time: parallelism comes from the fold, and bits must not depend on how a library splits a product."""

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
    """A context in which BLAS runs on one thread.

    `work` is the number of multiplications about to be done: below some hundred thousand no BLAS starts threads, and the
    context, which costs some 50 microseconds, is left out.
    """
    if work < 100_000:
        return nullcontext()
    context: AbstractContextManager[Any] = _controller().limit(limits=1, user_api="blas")
    return context
