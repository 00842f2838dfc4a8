"""Rows with missing cells: what `KMeansData` is for complete ones, over the cells that are observed."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from foldwise.data.block import Block, Floats
from foldwise.data.missing import allow_missing
from foldwise.data.scan import scan
from foldwise.data.source import Source
from foldwise.errors import DataError
from foldwise.fold.passes import Passes
from foldwise.kernels.targets import Rescaling
from foldwise.models.kmeans.fit_data import KMeansData, with_mean
from foldwise.models.kmeans.geometry import Geometry
from foldwise.models.session import Session
from foldwise.stats.observed import ObservedColumns
from foldwise.stats.observed_extent import ObservedExtent


@dataclass(frozen=True)
class _Summary:
    """The extent of the observed cells of some blocks, the weights of their rows, and the rows with nothing observed."""

    extent: ObservedExtent
    weights: tuple[Floats, ...]
    blank: tuple[NDArray[np.intp], ...]

    @classmethod
    def of(cls, block: Block, *, moments: bool = True) -> _Summary:
        blank = block.start + np.flatnonzero(np.isnan(block.dense()).all(axis=1))
        weights = () if block.weights is None else (np.array(block.weights),)
        return cls(ObservedExtent.of(block, moments=moments), weights, (blank,) if len(blank) else ())

    def merge(self, other: _Summary) -> _Summary:
        return _Summary(self.extent.merge(other.extent), self.weights + other.weights, self.blank + other.blank)


class ObservedData(KMeansData):
    """The data of a fit with missing cells.

    The inertia is the sum of w (x - c)^2 over observed cells. Rows with nothing observed are in no cluster and are never drawn.
    A row that becomes a centre gets the means of the columns for its missing cells, until the first step has moved it.
    """

    observed = True
    extent: ObservedExtent

    def __init__(
        self,
        passes: Passes,
        rescaling: Rescaling | None = None,
        *,
        whole: Passes | None = None,
        known: ObservedColumns | None = None,
    ) -> None:
        """`known` is what an earlier pass has found of these rows."""
        self._known = known
        super().__init__(passes, rescaling, whole=whole)

    def _summarise(self, passes: Passes) -> None:
        with np.errstate(over="ignore", invalid="ignore"):  # mended below
            found = passes.fold(partial(_Summary.of, moments=self._known is None))
        extent = found.extent if self._known is None else replace(found.extent, columns=self._known)
        self.extent = with_mean(extent, passes, ObservedColumns)
        self.weights = np.concatenate(found.weights) if found.weights else None
        self.blank = np.concatenate(found.blank) if found.blank else np.empty(0, dtype=np.intp)

    @property
    def counted(self) -> int:
        """The number of rows with non-zero weight and an observed cell."""
        return self.extent.columns.rows - self.extent.columns.blank

    @property
    def mean_variance(self) -> float:
        """The mean variance of the columns' observed cells, in units of the rescaled data; `tol` is relative to it."""
        weight = self.extent.columns.weight
        return float((self.squares / np.where(weight > 0, weight, 1.0)).mean())

    @cached_property
    def spread(self) -> float:
        """The inertia of all observed cells about the pivot."""
        columns, rescaling = self.extent.columns, self.rescaling
        offset = (columns.mean - rescaling.pivot) * rescaling.scale
        return float(self.squares.sum() + columns.weight @ (offset * offset))

    @cached_property
    def chances(self) -> Floats | None:
        """How often each row is drawn as a start: its weight, or 0 if nothing of it is observed."""
        if not len(self.blank):
            return self.weights
        chances = np.ones(self.n) if self.weights is None else self.weights.copy()
        chances[self.blank] = 0.0
        return chances

    def filled(self, rows: NDArray[Any]) -> NDArray[Any]:
        """Rows whose missing cells are the means of the columns."""
        return np.where(np.isnan(rows), self.extent.columns.mean.astype(rows.dtype), rows)

    def gaps(self, rows: NDArray[Any], points: NDArray[Any]) -> Floats:
        """The differences between some rows and some points, 0 where a row has no value."""
        gaps = super().gaps(rows, points)
        gaps[np.isnan(gaps)] = 0.0
        return gaps

    def _opened(self, rows: Any, weights: Floats | None) -> Source:
        return allow_missing(scan(rows, weights=weights))


def data_of(fit: Session, geometry: Geometry) -> KMeansData:
    """The data of a fit, with or without missing cells."""
    if fit.missing is None:
        return KMeansData(fit.passes)
    if geometry.view is not None:
        raise DataError(
            f"metric={geometry.name!r} needs whole rows, but {fit.missing.cells:,} cells are missing",
            where=fit.where,
            advice="Use metric='euclidean', or missing='mean' or 'drop'",
        )
    return ObservedData(fit.passes, known=fit.missing if fit.scale is None else None)
