"""Who runs it: a fold hands every block of a source to a statistic and merges the results in a fixed order."""

from __future__ import annotations

from collections.abc import Callable

from foldwise.data.block import Block
from foldwise.data.source import Source
from foldwise.fold.passes import Engine, Passes, S


def fold(source: Source, of: Callable[[Block], S], engine: Engine | None = None, *, n_threads: int | None = None) -> S:
    """Merge `of(block)` over all blocks of `source`: the same bits for any number of threads.

    >>> import foldwise as fw
    >>> from foldwise.stats.column_moments import ColumnMoments
    >>> fold(fw.scan([[1.0, 2.0], [3.0, 6.0]]), ColumnMoments.of).mean
    array([2., 4.])
    """
    return Passes(source, n_threads=n_threads, engine=engine).fold(of)
