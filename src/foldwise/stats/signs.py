"""Which way round directions are: an eigenvector has no sign of its own, and libraries and processors give either."""

from __future__ import annotations

import numpy as np

from foldwise.data.block import Floats

_TOGETHER = 128  # directions that get their signs at a time


def signed(directions: Floats) -> Floats:
    """The directions (rows) with the sign convention applied.

    Of each the largest loading is positive; among loadings that are equal to one part in a million the first counts, so that
    rounding, which differs between solvers, does not decide.

    >>> signed(np.array([[0.6, -0.8], [-0.8, -0.6], [-0.5**0.5, 0.5**0.5]])).round(2)
    array([[-0.6 ,  0.8 ],
           [ 0.8 ,  0.6 ],
           [ 0.71, -0.71]])
    """
    if not directions.size:
        return directions
    found = np.empty_like(directions)
    for start in range(0, len(directions), _TOGETHER):  # of all at once, the sizes alone would double the memory
        here = directions[start : start + _TOGETHER]
        sizes = np.abs(here)
        leading = np.argmax(sizes >= sizes.max(axis=1, keepdims=True) * (1 - 1e-6), axis=1)
        negative = here[np.arange(len(leading)), leading] < 0
        found[start : start + _TOGETHER] = np.where(negative[:, None], -here, here)
    return found
