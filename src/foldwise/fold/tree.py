"""The fixed merge tree: which partial results meet, and in which order, is settled by block numbers alone."""

from __future__ import annotations

from threading import Lock
from typing import Any, Generic, Protocol, TypeVar


class Mergeable(Protocol):
    """A partial result."""

    def merge(self, other: Any, /) -> Any:
        """This part followed by the other."""


S = TypeVar("S", bound=Mergeable)


class Tree(Generic[S]):
    """Collects the results of blocks 0, 1, 2, ... in any order, from any thread, and always adds them up alike.

    Neighbours 2i and 2i+1 of a level merge into node i of the level above as soon as both are there, so that only some
    log2(blocks) results are held at a time. What is left at the end merges from the right.
    """

    def __init__(self) -> None:
        self._nodes: dict[tuple[int, int], S] = {}
        self._lock = Lock()

    def add(self, number: int, value: S, level: int = 0) -> None:
        """Put in the result of block `number`, or node `number` of a higher level, which a tree elsewhere has merged."""
        while True:
            with self._lock:
                mate = self._nodes.pop((level, number ^ 1), None)
                if mate is None:
                    self._nodes[level, number] = value
                    return
            # The merge itself runs outside the lock: for wide data it is real work.
            value = value.merge(mate) if number % 2 == 0 else mate.merge(value)
            level, number = level + 1, number // 2

    def nodes(self) -> list[tuple[int, int, S]]:
        """What could not be merged yet: level, number, value."""
        return [(level, number, value) for (level, number), value in sorted(self._nodes.items(), key=lambda n: n[0])]

    def copy(self) -> Tree[S]:
        """A tree that holds the same results and goes its own way."""
        twin: Tree[S] = Tree()
        twin._nodes.update(self._nodes)
        return twin

    def __getstate__(self) -> dict[tuple[int, int], S]:
        return dict(self._nodes)  # a lock cannot be pickled

    def __setstate__(self, nodes: dict[tuple[int, int], S]) -> None:
        self._nodes, self._lock = dict(nodes), Lock()

    def result(self) -> S | None:
        """Everything so far, provided that no block is missing in between; None if there was no block."""
        total: S | None = None
        for place in sorted(self._nodes):  # lowest level first, which is rightmost first
            node = self._nodes[place]
            total = node if total is None else node.merge(total)
        return total
