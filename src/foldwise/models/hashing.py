"""Numbers from the bits of rows, so that chance depends on what a row holds and not on where it stands."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def scrambled(x: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Numbers in which each bit depends on all bits of those given (the mixer of SplitMix64)."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(x ^ (x >> np.uint64(31)))
