"""What a model with centres says of the rows of a block: the cluster, the distance to its centre, distances to all."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from foldwise.data.block import Block, Floats
from foldwise.kernels.targets import Labels


@dataclass(frozen=True)
class NearestCentre:
    """The cluster of each row: exactly the nearest centre, and the lowest number among equals."""

    targets: Any

    def __call__(self, block: Block) -> Labels:
        """One label for each row."""
        labels = np.full(block.n_rows, -1, dtype=np.int32)
        self.targets.nearest(block.rows, labels)
        return labels


@dataclass(frozen=True)
class DistancesToCentres:
    """The distance of each row to every centre."""

    targets: Any

    def __call__(self, block: Block) -> NDArray[Any]:
        """One line for each row."""
        return np.asarray(self.targets.distances(block.rows))


@dataclass(frozen=True)
class SquaredDistance:
    """The squared distance of each row to the centre of its cluster, in units of the rescaled data, times its weight."""

    targets: Any
    label: Any

    def __call__(self, block: Block) -> Floats:
        """One number for each row."""
        each = np.empty(block.n_rows)
        self.targets.residuals(block.rows, None, self.label(block), each)
        return each if block.weights is None else each * block.weights


@dataclass(frozen=True)
class ClusterAndDistance:
    """Records of cluster and distance to its centre."""

    targets: Any
    label: Any
    dtype: np.dtype[Any]

    def __call__(self, block: Block) -> NDArray[Any]:
        """One record for each row."""
        told, squares = np.empty(block.n_rows, self.dtype), np.empty(block.n_rows)
        labels = self.label(block)
        self.targets.residuals(block.rows, None, labels, squares)
        told["cluster"], told["distance"] = labels, np.sqrt(squares) / self.targets.rescaling.scale
        return told
