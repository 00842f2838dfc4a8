"""The rows by whose error a training is judged, and what PCA makes of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from foldwise.data.block import Block, Floats
from foldwise.fold.passes import Passes
from foldwise.models.autoencoder.inputs import Inputs, Part, Split, joined


@dataclass(frozen=True)
class Judged:
    """Rows in hand, and means over them: what lies outside of the inputs, PCA's error, and the error of the mean."""

    part: Part
    outside: float
    pca_error: float
    variance: float


def judged_rows(passes: Passes, split: Split, inputs: Inputs, pca_residuals: Any) -> Judged:
    """The held-out rows of a split; `pca_residuals(block)` are the errors of PCA."""
    found = [one for one in passes.each(_TakeJudged(split, inputs, pca_residuals)) if len(one[0].inputs)]
    figures = np.concatenate([figures for _, figures in found], axis=1)
    parts = [part for part, _ in found]
    del found
    part = joined(parts)
    outside, pca_error, within = (_mean(values, part) for values in figures)
    return Judged(part, outside, pca_error, within + outside)


def _mean(values: Floats, part: Part) -> float:
    return float(np.average(values, weights=part.weights))


@dataclass(frozen=True)
class _TakeJudged:
    split: Split
    inputs: Inputs
    pca_residuals: Any

    def __call__(self, block: Block) -> tuple[Part, Floats]:
        which = np.flatnonzero(self.split.held_out(block))
        some = block.take(which)
        if not len(which):
            return Part(np.empty((0, self.inputs.width), np.float32), some.weights), np.empty((3, 0))
        whole, missing = self.inputs.completed(some)
        found, outside = self.inputs.of(whole), self.inputs.outside(whole)
        gaps = self.inputs.gaps(whole, missing)
        left = np.zeros(len(which)) if outside is None else outside
        squares = np.square(found, dtype=np.float64).sum(axis=1) * self.inputs.factor
        if gaps is not None:  # of which all cells are looked at, whether the directions see them or not
            left[gaps.which] = 0.0
            squares[gaps.which] = gaps.squares(-found[gaps.which]) * self.inputs.factor
        return Part(found, some.weights, gaps=gaps), np.stack([left, self.pca_residuals(some), squares])
