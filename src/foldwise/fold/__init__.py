"""Execution: a fold computes a statistic of every block of a source and merges the results in a fixed order."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

from foldwise.data.block import Block
from foldwise.data.source import Source
from foldwise.fold.engine import use
from foldwise.fold.passes import Passes, S


def fold(source: Source, of: Callable[[Block], S], engine: Any = None, *, n_threads: int | None = None) -> S:
    """Merge `of(block)` over all blocks of `source`; bit-identical for any number of threads and any engine.

    >>> import foldwise as fw
    >>> from foldwise.stats.column_moments import ColumnMoments
    >>> fw.fold(fw.scan([[1.0, 2.0], [3.0, 6.0]]), ColumnMoments.of).mean
    array([2., 4.])
    """
    with use(engine):
        return Passes(source, n_threads=n_threads).fold(of)


class _CallableModule(ModuleType):
    """Makes the package callable: `foldwise.fold` is both a package and a function, and Python binds the one imported last."""

    __call__ = staticmethod(fold)


sys.modules[__name__].__class__ = _CallableModule
