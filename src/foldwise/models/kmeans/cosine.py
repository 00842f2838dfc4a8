"""Cosine similarity as distance on the sphere: for rows and centres of length 1, |x - c|^2 = 2 - 2 cos."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from foldwise.data.mapped import MappedSource, UnitRows
from foldwise.data.source import Source


def on_the_sphere(source: Source) -> Source:
    """The source with every row divided by its length; a row of zeros has no direction and is refused."""
    return MappedSource(source, UnitRows(source.where))


def project(centres: NDArray[Any]) -> NDArray[Any]:
    """Centres at length 1; one of length 0 stays."""
    wide = centres.astype(np.float64)
    lengths = np.sqrt(np.einsum("ij,ij->i", wide, wide))
    lengths[lengths == 0.0] = 1.0
    return np.asarray((wide / lengths[:, None]).astype(centres.dtype))
