"""Tasks for prediction on a block: each row's cluster, the distance to its centre, and the distances to all centres."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from foldwise.data.block import Block, Floats
from foldwise.kernels.targets import Labels, observed_cells


@dataclass(frozen=True)
class NearestCentre:
    """The cluster of each row: its exact nearest centre; ties go to the lowest number."""

    targets: Any

    def __call__(self, block: Block) -> Labels:
        """One label per row."""
        labels = np.full(block.n_rows, -1, dtype=np.int32)
        self.targets.nearest(block.rows, labels)
        return labels


@dataclass(frozen=True)
class DistancesToCentres:
    """The distance of each row to every centre."""

    targets: Any

    def __call__(self, block: Block) -> NDArray[Any]:
        """One row of distances per row of data."""
        return np.asarray(self.targets.distances(block.rows))


@dataclass(frozen=True)
class SquaredDistance:
    """The squared distance of each row to the centre of its cluster, in units of the rescaled data, times its weight."""

    targets: Any
    label: Any

    def __call__(self, block: Block) -> Floats:
        """One number per row."""
        each = np.empty(block.n_rows)
        self.targets.residuals(block.rows, None, self.label(block), each)
        return each if block.weights is None else each * block.weights


@dataclass(frozen=True)
class ClusterAndDistance:
    """Records of the cluster and the distance to its centre."""

    targets: Any
    label: Any
    dtype: np.dtype[Any]

    def __call__(self, block: Block) -> NDArray[Any]:
        """One record per row."""
        told, squares = np.empty(block.n_rows, self.dtype), np.empty(block.n_rows)
        labels = self.label(block)
        self.targets.residuals(block.rows, None, labels, squares)
        if self.targets.observed:  # as if the missing cells were as far away, on average, as the observed ones
            squares *= block.n_columns / np.maximum(observed_cells(block.rows), 1)
        told["cluster"], told["distance"] = labels, np.sqrt(squares) / self.targets.rescaling.scale
        return told
