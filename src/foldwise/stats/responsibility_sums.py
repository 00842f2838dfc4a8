"""The result of an E-step: the weight of each component, and the moments of the rows about its mean."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from foldwise.data.block import Block, Floats
from foldwise.kernels.mixture import Components
from foldwise.kernels.mixture_gaps import GapComponents

# A power of two: weights beyond it are scaled to about one, since their products could leave the range of float32.
_COMFORT = 30


@dataclass(frozen=True)
class ResponsibilitySums:
    """For each component: the sums of w r, of w r (x - mean) and of w r (x - mean)(x - mean)', with responsibilities r.

    `mean` is the component's mean before the step, so that nothing cancels at large offsets. `scatter` is (k, d, d),
    pooled (d, d), diagonals (k, d) or, if not needed, empty. `log_likelihood` is the weighted sum of log densities.
    """

    log_likelihood: float
    counts: Floats
    shift: Floats
    scatter: Floats

    @cached_property
    def safe_counts(self) -> Floats:
        """The weights of the components, safe to divide by."""
        return np.maximum(self.counts, np.finfo(np.float64).tiny)

    @cached_property
    def moves(self) -> Floats:
        """How far each component's mean moves."""
        return np.asarray(self.shift / self.safe_counts[:, None])

    @classmethod
    def empty(cls, kind: str, n_components: int, n_columns: int) -> ResponsibilitySums:
        """The identity of `merge`; `kind` is the kind of squares summed: full, tied, diag or none."""
        k, d = n_components, n_columns
        shape = {"full": (k, d, d), "tied": (d, d), "diag": (k, d), "none": (0,)}[kind]
        return cls(0.0, np.zeros(k), np.zeros((k, d)), np.zeros(shape))

    @classmethod
    def of(cls, block: Block, components: Components | GapComponents) -> ResponsibilitySums:
        """The sums over a block's rows; where cells are missing, the expected sums."""
        found = cls.empty(components.scatter, *components.means.shape)
        scatter = None if components.scatter == "none" else found.scatter
        weights, power = block.weights, 0
        if weights is not None:
            power = math.frexp(float(weights.max(initial=0.0)))[1]
            power = 0 if abs(power) <= _COMFORT else max(power, -1000)
            weights = weights if power == 0 else weights * math.ldexp(1.0, -power)
        value = components.step(block.unchecked, weights, found.counts, found.shift, scatter)
        if power == 0:
            return cls(value, found.counts, found.shift, found.scatter)
        back = math.ldexp(1.0, power)
        with np.errstate(over="ignore", under="ignore"):
            return cls(value * back, found.counts * back, found.shift * back, found.scatter * back)

    @classmethod
    def given(cls, block: Block, kind: str, means: Floats, shares: Floats) -> ResponsibilitySums:
        """The same for known responsibilities (rows, components), about any `means`."""
        found = cls.empty(kind, *means.shape)
        rows = block.dense().astype(np.float64)
        weighted = shares if block.weights is None else shares * block.weights[:, None]
        for j, mean in enumerate(means):
            some = np.flatnonzero(weighted[:, j])
            part, w = rows[some] - mean, weighted[some, j]
            found.counts[j], found.shift[j] = w.sum(), w @ part
            _add(found.scatter, kind, j, part, w)
        return found

    def merge(self, other: ResponsibilitySums) -> ResponsibilitySums:
        """The sums over both sets of rows."""
        return ResponsibilitySums(
            self.log_likelihood + other.log_likelihood,
            self.counts + other.counts,
            self.shift + other.shift,
            self.scatter + other.scatter,
        )


def _add(scatter: Floats, kind: str, j: int, part: Floats, w: NDArray[Any]) -> None:
    if kind == "full":
        scatter[j] = (part * w[:, None]).T @ part
    elif kind == "tied":
        scatter += (part * w[:, None]).T @ part
    elif kind == "diag":
        scatter[j] = w @ part**2
