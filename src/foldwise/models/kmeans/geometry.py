"""How rows are compared: the view of the data, and the surface on which centres lie. A new geometry is one instance."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from foldwise.data.mapped import MappedSource, UnitRows
from foldwise.data.source import Source


@dataclass(frozen=True)
class Geometry:
    """Compares rows with centres by squared Euclidean distance, after applying `view` to rows and `project` to centres."""

    name: str
    view: Callable[[Source], Source] | None = None
    project: Callable[[NDArray[Any]], NDArray[Any]] | None = None
    label: str | None = None  # what reports call it, if it has to be said
    similarity: str | None = None  # what 1 - (mean squared distance) / 2 is, if it is anything
    translates: bool = True  # whether distances are translation-invariant
    squared: bool = False  # whether the distance is half the squared Euclidean one, rather than the Euclidean one

    def projected(self, centres: NDArray[Any]) -> NDArray[Any]:
        """The centres projected onto the surface of this geometry."""
        return centres if self.project is None else self.project(centres)


def unit_rows(source: Source) -> Source:
    """The source with every row divided by its length; a row of zeros has no direction and raises."""
    return MappedSource(source, UnitRows(source.where))


def unit_centres(centres: NDArray[Any]) -> NDArray[Any]:
    """Centres divided by their lengths; a centre of length 0 is unchanged."""
    wide = centres.astype(np.float64)
    lengths = np.sqrt(np.einsum("ij,ij->i", wide, wide))
    lengths[lengths == 0.0] = 1.0
    return np.asarray((wide / lengths[:, None]).astype(centres.dtype))


EUCLIDEAN = Geometry("euclidean")
# For rows and centres of length 1, |x - c|^2 = 2 - 2 cos.
COSINE = Geometry("cosine", unit_rows, unit_centres, "cosine", "mean cosine", translates=False, squared=True)

GEOMETRIES = {geometry.name: geometry for geometry in (EUCLIDEAN, COSINE)}
