"""Accurate means: a centre is a mean in two parts, the rounded value and the remainder, stacked.

At an offset of 1e8, a float64 has eight digits left for the difference between two blocks. A merge needs only the distance
between their means, and in two parts it is known to full precision.
"""

from __future__ import annotations

import numpy as np

from foldwise.data.block import Floats
from foldwise.kernels.reference import two_parts


def distance(left: Floats, right: Floats) -> Floats:
    """right - left."""
    return np.asarray((right[0] - left[0]) + (right[1] - left[1]))


def moved(centre: Floats, step: Floats) -> Floats:
    """The centre moved by `step`."""
    total = two_parts(centre[0], step)
    return two_parts(total[0], total[1] + centre[1])
