"""When to keep the rows as integers of 16 bits between passes.

Comparing them takes half of the reading, and no rounding. They never change a label (cpp/nearest_int16.h), so the choice
may depend on how much memory there is.
"""

from __future__ import annotations

from functools import cached_property

from foldwise import kernels
from foldwise.data.cache import CachedSource
from foldwise.data.memory import available
from foldwise.fold.passes import Passes
from foldwise.kernels import _core
from foldwise.kernels.targets import VECTOR_ROWS

_PASSES = 2  # before the one that writes the integers, which takes about as long as it saves in some others
_MOST_CLUSTERS = 64  # with more, rounding the rows takes a small part of a pass,
_MOST_CLUSTERS_AVX512 = 16  # and, where that is quick, less than it takes to get
_MUCH = 32 << 20  # bytes of new memory
_SHARE = 0.25  # of the memory available


class IntegerRows:
    """The rows of one fit as integers; they are part of the state of the blocks."""

    def __init__(self, passes: Passes, n_rows: int, *, comparable: bool) -> None:
        """`comparable` if rows can be compared as integers at all."""
        source = passes.source
        self._columns, self._bytes = source.n_columns, n_rows * (2 * source.n_columns + 8)
        in_memory = isinstance(source, CachedSource) and not source.sparse and not passes.engine.remote
        self._possible = comparable and in_memory and passes.block_rows % VECTOR_ROWS == 0
        self.ready = False  # whether a whole pass has written them
        self._passes = 0

    def suit(self, k: int) -> bool:
        """Whether rows can be kept for passes with k centres, and it is of use."""
        much = self._bytes > _MUCH and kernels.instruction_set() == "avx512"
        most = _MOST_CLUSTERS_AVX512 if much else _MOST_CLUSTERS
        return self._possible and k <= most and _core.quick_int16(k, self._columns, True) and self._fit

    def for_pass(self, k: int, *, reads_rows: bool) -> bool | None:
        """Whether the integers are there already; None if this pass should do without, as one that reads all rows anyway."""
        if not self.suit(k):
            return None
        self._passes += 1
        return self.ready if self._passes > _PASSES and not reads_rows else None

    @cached_property
    def _fit(self) -> bool:
        """Whether there is memory for them. Asked last: the system takes half a millisecond to answer."""
        free = available()
        return free is None or self._bytes <= _SHARE * free
