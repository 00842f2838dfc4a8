"""The last pass of a fit: labels for centres that stay, and the inertias, while a block is in the cache.

What a Lloyd step needs beyond that, the sums of the clusters, is left out: nothing moves any more.
"""

from __future__ import annotations

from dataclasses import dataclass
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


@dataclass(frozen=True)
class SumClusters:
    """The sums of the clusters, from the labels in the state."""

    keeps_state: ClassVar[bool] = True

    task: Assign

    def __call__(self, block: Block, state: dict[str, Any], total: Assigned) -> None:
        """Add the rows of a block."""
        self.task.add_rows(block, None, state[self.task.name], total)
