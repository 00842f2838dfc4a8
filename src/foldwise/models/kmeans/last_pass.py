"""The last pass of a fit: labels for centres that stay, and the inertias, while a block is in the cache.

What a Lloyd step needs beyond that, the sums of the clusters, is left out: nothing moves any more.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from foldwise.data.block import Block, Floats
from foldwise.models.kmeans.tasks import Assign, Assigned


@dataclass(frozen=True)
class LastAssign:
    """Assigns dense rows without weights; returns the counts of `Assigned`, the inertias and the sizes of the clusters."""

    keeps_state: ClassVar[bool] = True

    task: Assign

    def __call__(self, block: Block, state: dict[str, Any]) -> tuple[tuple[int, int, int, int], Floats]:
        """Labels are written to the state."""
        task = self.task
        task.prepare(state, block.n_rows)
        labels, rows = state[task.name], block.unchecked
        found = np.zeros((2, len(task.targets.points)))
        return task.nearest(rows, labels, state, None, residuals=found), found


@dataclass
class LastFound:
    """What `LastAssignParts` finds: counts, and for each block its inertias and the sizes of its clusters."""

    counts: Assigned
    k: int
    block_rows: int
    blocks: dict[int, Floats] = field(default_factory=dict)  # by the first row of adjacent blocks: two lines for each

    def of(self, block: Block) -> Floats:
        """Where to write what is found in adjacent blocks; the same for all threads."""
        count = -(-block.n_rows // self.block_rows)
        return self.blocks.setdefault(block.start, np.zeros((2 * count, self.k)))

    def beside(self) -> LastFound:
        """The same, for another thread."""
        return LastFound(self.counts.beside(), self.k, self.block_rows, self.blocks)

    def add(self, other: LastFound) -> None:
        """Add the counts of another thread."""
        self.counts.add(other.counts)

    def in_order(self) -> Floats:
        """The lines of block after block."""
        return np.concatenate([lines for _, lines in sorted(self.blocks.items())])


@dataclass(frozen=True)
class LastAssignParts:
    """The same for adjacent blocks in memory, without bounds: the kernel goes from block to block by itself."""

    keeps_state: ClassVar[bool] = True
    takes_parts: ClassVar[bool] = True

    task: Assign

    def prepare(self, state: dict[str, Any], n: int) -> None:
        """Allocate the arrays of a state."""
        self.task.prepare(state, n)

    def __call__(self, block: Block, state: dict[str, Any], total: LastFound, parts: Any) -> None:
        """Labels are written to the state."""
        task = self.task
        counts = task.nearest(block.unchecked, state[task.name], state, None, residuals=total.of(block), parts=parts)
        total.counts.count(*counts)


@dataclass(frozen=True)
class SumClusters:
    """The sums of the clusters, from the labels in the state."""

    keeps_state: ClassVar[bool] = True

    task: Assign

    def __call__(self, block: Block, state: dict[str, Any], total: Assigned) -> None:
        """Add the rows of a block."""
        self.task.add_rows(block, None, state[self.task.name], total)
