"""Sums of terms of each value, and weights by bin: the statistics of a pass at given parameters."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from foldwise.data.block import Block, Floats
from foldwise.kernels.reference import two_parts
from foldwise.stats.univariate import values_and_weights

_AT_ONCE = 16384  # values processed at a time, so that their terms stay in the cache


@dataclass(frozen=True)
class TermSums:
    """Sums in two parts (2, terms): pairwise within a block, with the rounding error kept between blocks."""

    sums: Floats

    @classmethod
    def empty(cls, n: int) -> TermSums:
        """The identity of `merge`."""
        return cls(np.zeros((2, n)))

    @classmethod
    def of(cls, block: Block, terms: Callable[[Floats], list[Floats]], n: int) -> TermSums:
        """The (weighted) sums of `n` terms of each value."""
        x, w, _ = values_and_weights(block)
        return cls.of_values(x, w, terms, n)

    @classmethod
    def of_values(cls, x: Floats, w: Floats | None, terms: Callable[[Floats], list[Floats]], n: int) -> TermSums:
        """The same, from arrays of values and weights."""
        parts = [np.zeros(n)]
        for start in range(0, len(x), _AT_ONCE):
            some = slice(start, start + _AT_ONCE)
            found = terms(x[some])
            parts.append(np.array([term.sum() if w is None else (term * w[some]).sum() for term in found]))
        while len(parts) > 1:  # pairwise here too
            parts = [np.add(*parts[i : i + 2]) if i + 1 < len(parts) else parts[i] for i in range(0, len(parts), 2)]
        return cls(np.stack([parts[0], np.zeros(n)]))

    def merge(self, other: TermSums) -> TermSums:
        """The sums over both sets of values."""
        with np.errstate(invalid="ignore", over="ignore"):  # the likelihood at an extreme trial may not be finite
            high, low = two_parts(self.sums[0], other.sums[0])
        return TermSums(np.stack([high, np.where(np.isfinite(high), low, 0.0) + self.sums[1] + other.sums[1]]))

    @property
    def value(self) -> Floats:
        """The sums."""
        return np.asarray(self.sums[0] + self.sums[1])


@dataclass(frozen=True)
class BinWeights:
    """The weight of values below the first edge, between successive edges, and from the last edge upwards."""

    weights: Floats

    @classmethod
    def empty(cls, n_edges: int) -> BinWeights:
        """The identity of `merge`."""
        return cls(np.zeros(n_edges + 1))

    @classmethod
    def of(cls, block: Block, edges: Floats) -> BinWeights:
        """The weights of a block's values; a value equal to an edge counts as above it."""
        x, w, _ = values_and_weights(block)
        cells = np.searchsorted(edges, x, side="right")
        return cls(np.bincount(cells, w, minlength=len(edges) + 1).astype(np.float64))

    def merge(self, other: BinWeights) -> BinWeights:
        """The weights of both sets of values."""
        return BinWeights(self.weights + other.weights)
