"""Arrays in this process with one entry per row (labels, say), read by tasks along with the rows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from numpy.typing import NDArray

from foldwise.data.block import Block


@dataclass(frozen=True)
class WithRowArray:
    """The task `task(block, ..., part)`, where `part` is the block's slice of an array (a view, on this machine).

    A remote engine sends each machine `for_rows(...)` of its own blocks, so that no other entries are transferred.
    """

    task: Any
    array: NDArray[Any]
    start: int = 0  # the row of the data at which the array begins

    @property
    def keeps_state(self) -> bool:
        """Whether the task keeps block state."""
        return getattr(self.task, "keeps_state", False)

    def __call__(self, block: Block, *state: Any) -> Any:
        """The result of the task for a block."""
        first = block.start - self.start
        return self.task(block, *state, self.array[first : first + block.n_rows])

    def for_rows(self, start: int, stop: int) -> WithRowArray:
        """The same task with only the entries of rows `start` to `stop` - 1."""
        return replace(self, array=self.array[start - self.start : stop - self.start], start=start)


def for_blocks(task: Any, first: int, last: int, block_rows: int) -> Any:
    """A task as sent to the worker that holds blocks `first` to `last` - 1."""
    return task.for_rows(first * block_rows, last * block_rows) if hasattr(task, "for_rows") else task
