"""Tasks that find the consensus clusters of a block's rows."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from foldwise.data.block import Block, Floats
from foldwise.kernels.targets import Labels
from foldwise.models.ensemble.base import BaseLabels
from foldwise.models.ensemble.clusterings import Clusterings
from foldwise.models.ensemble.label_rows import Scoring


@dataclass(frozen=True)
class ConsensusLabels:
    """The cluster of each row: as that of a known label row, or the one with the highest score."""

    base: BaseLabels
    scoring: Scoring
    sizes: tuple[int, ...]
    known_rows: NDArray[np.int32] | None = None
    known_labels: Labels | None = None

    def __call__(self, block: Block) -> Labels:
        """One label for each row."""
        return self.of(self.base(block))

    def of(self, values: NDArray[np.int32]) -> Labels:
        """The clusters of rows with these base labels."""
        labels = self.scoring.labels(self.given(values), values)
        if self.known_rows is not None:
            known = self._known
            seen = [known.get(row.tobytes(), -2) for row in np.ascontiguousarray(values, dtype=np.int32)]
            labels = np.where(np.array(seen) > -2, seen, labels).astype(np.int32)
        return labels

    def given(self, values: NDArray[np.int32]) -> Clusterings:
        """The base labels of some rows as clusterings."""
        return Clusterings(values, self.sizes)

    @cached_property
    def _known(self) -> dict[bytes, int]:
        assert self.known_rows is not None
        assert self.known_labels is not None
        rows = np.ascontiguousarray(self.known_rows, dtype=np.int32)
        return {row.tobytes(): int(label) for row, label in zip(rows, self.known_labels, strict=True)}


@dataclass(frozen=True)
class MeanCoassociation:
    """The mean co-association of each row with the rows of each cluster."""

    labels: ConsensusLabels
    sums: Floats
    weights: Floats

    def __call__(self, block: Block) -> Floats:
        """Rows x clusters."""
        return self.of(self.labels.base(block))

    def of(self, values: NDArray[np.int32]) -> Floats:
        """Of rows with these base labels."""
        table = self.sums / np.maximum(self.weights, 1e-300)[:, None] / len(self.labels.sizes)
        return np.asarray(self.labels.given(values).memberships() @ np.ascontiguousarray(table.T))


@dataclass(frozen=True)
class ClusterAndConfidence(MeanCoassociation):
    """Records of the cluster and its share in the row's mean co-association with all; NaN for a row without a cluster."""

    dtype: ClassVar[np.dtype[np.void]] = np.dtype([("cluster", np.int32), ("confidence", np.float64)])

    def __call__(self, block: Block) -> NDArray[np.void]:  # type: ignore[override]
        """One record for each row."""
        values = self.labels.base(block)
        labels, told = self.labels.of(values), np.empty(block.n_rows, self.dtype)
        told["cluster"], told["confidence"] = labels, confidence(self.of(values), labels)
        return told


@dataclass(frozen=True)
class KnownLabels:
    """Records of the rows of a fit."""

    labels: Labels
    confidence: Floats

    def __call__(self, block: Block) -> NDArray[np.void]:
        """One record for each row."""
        here, told = slice(block.start, block.start + block.n_rows), np.empty(block.n_rows, ClusterAndConfidence.dtype)
        told["cluster"], told["confidence"] = self.labels[here], self.confidence[here]
        return told


def confidence(means: Floats, labels: Labels) -> Floats:
    """The share of each row's own cluster in its mean co-association with all clusters."""
    own, total = means[np.arange(len(labels)), np.maximum(labels, 0)], means.sum(axis=1)
    found = np.full(len(labels), np.nan)
    return np.asarray(np.divide(own, total, out=found, where=(labels >= 0) & (total > 0)))
