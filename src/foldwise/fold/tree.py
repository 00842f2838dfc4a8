"""The fixed merge tree: which partial results are merged, and in which order, depends on block numbers alone."""

from __future__ import annotations

from threading import Lock
from typing import Any, Generic, Protocol, TypeVar


class Mergeable(Protocol):
    """A partial result."""

    def merge(self, other: Any, /) -> Any:
        """This part followed by the other."""


S = TypeVar("S", bound=Mergeable)


class Tree(Generic[S]):
    """Collects the results of blocks 0, 1, 2, ... in any order, from any thread, and always merges them in the same way.

    Nodes 2i and 2i+1 of a level merge into node i of the level above as soon as both are present, so that only about
    log2(blocks) results are held at a time. Those left at the end are merged from the right.

    If the tree is the only `owner` of what is added, results that have a method `absorb` are merged in their own memory.
    """

    def __init__(self, *, owner: bool = False) -> None:
        self._owner = owner
        self._nodes: dict[tuple[int, int], S] = {}
        self._lock = Lock()

    def add(self, number: int, value: S, level: int = 0) -> None:
        """Add the result of block `number`, or node `number` of a higher level, merged on another machine."""
        while True:
            with self._lock:
                mate = self._nodes.pop((level, number ^ 1), None)
                if mate is None:
                    self._nodes[level, number] = value
                    return
            # Merge outside the lock, because for wide data it takes time.
            value = self._merged(value, mate) if number % 2 == 0 else self._merged(mate, value)
            del mate  # it may be large
            level, number = level + 1, number // 2

    def nodes(self) -> list[tuple[int, int, S]]:
        """The nodes not yet merged, as (level, number, value)."""
        return [(level, number, value) for (level, number), value in sorted(self._nodes.items(), key=lambda n: n[0])]

    def copy(self) -> Tree[S]:
        """An independent copy."""
        twin: Tree[S] = Tree()
        twin._nodes.update(self._nodes)
        return twin

    def __getstate__(self) -> dict[tuple[int, int], S]:
        return dict(self._nodes)  # a lock cannot be pickled

    def __setstate__(self, nodes: dict[tuple[int, int], S]) -> None:
        self._nodes, self._lock, self._owner = dict(nodes), Lock(), False

    def result(self) -> S | None:
        """The merged result so far, provided that no block in between is missing; None if there were no blocks."""
        total: S | None = None
        for place in sorted(self._nodes):  # lowest level first, that is, rightmost first
            node = self._nodes.pop(place) if self._owner else self._nodes[place]
            total = node if total is None else self._merged(node, total)
        return total

    def _merged(self, left: S, right: S) -> S:
        merge = getattr(left, "absorb", left.merge) if self._owner else left.merge
        merged: S = merge(right)
        return merged
