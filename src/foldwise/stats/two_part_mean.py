"""Means that keep their digits: a centre is a mean in two parts, rounded value and remainder, stacked.

At an offset of 1e8 a float64 has eight digits left for what differs between two blocks. The distance between their means is all
that a merge needs, and in two parts it is known to full precision.
"""

from __future__ import annotations

import numpy as np

from foldwise.data.block import Floats
from foldwise.kernels.reference import two_parts


def distance(left: Floats, right: Floats) -> Floats:
    """right - left."""
    return np.asarray((right[0] - left[0]) + (right[1] - left[1]))


def moved(centre: Floats, step: Floats) -> Floats:
    """The centre, `step` further on."""
    total = two_parts(centre[0], step)
    return two_parts(total[0], total[1] + centre[1])
