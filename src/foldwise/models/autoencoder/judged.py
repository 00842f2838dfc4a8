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
    part = joined([one for one, _, _ in found])
    outside, residuals = (np.concatenate([one[place] for one in found]) for place in (1, 2))
    squares = np.nansum(np.square(part.inputs, dtype=np.float64), axis=1) * inputs.factor
    outside_mean, pca_error, within = (_mean(values, part) for values in (outside, residuals, squares))
    return Judged(part, outside_mean, pca_error, within + outside_mean)


def _mean(values: Floats, part: Part) -> float:
    return float(np.average(values, weights=part.weights))


@dataclass(frozen=True)
class _TakeJudged:
    split: Split
    inputs: Inputs
    pca_residuals: Any

    def __call__(self, block: Block) -> tuple[Part, Floats, Floats]:
        which = np.flatnonzero(self.split.held_out(block))
        some = block.take(which)
        if not len(which):
            return Part(np.empty((0, self.inputs.width), np.float32), some.weights), np.empty(0), np.empty(0)
        outside = self.inputs.outside(some)
        left = np.zeros(len(which)) if outside is None else outside
        return Part(self.inputs.of(some), some.weights), left, self.pca_residuals(some)
