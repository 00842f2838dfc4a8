"""Where EM starts."""

from __future__ import annotations

from dataclasses import dataclass

from foldwise.data.block import Floats


@dataclass(frozen=True)
class Start:
    """Weights, means and covariances of the model's type to start from, in the units of the fit.

    `within` are the variances that the ridge is taken from, if the start has found them.
    """

    weights: Floats
    means: Floats
    covariances: Floats
    within: Floats | None = None
