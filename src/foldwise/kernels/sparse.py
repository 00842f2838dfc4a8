"""Targets for sparse rows: products over the stored values only."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from foldwise.kernels import _core
from foldwise.kernels.targets import Floats, Grid, Labels, Rescaling


class SparseTargets:
    """The interface of DenseTargets for CSR rows without duplicate entries; only the targets are dense."""

    observed = False

    def __init__(self, points: NDArray[Any], rescaling: Rescaling) -> None:
        self.points, self.rescaling = points, rescaling
        self._core = _core.SparseTargets(points, rescaling.scale)

    def __reduce__(self) -> tuple[Any, ...]:
        return SparseTargets, (self.points, self.rescaling)  # repacked when unpickled

    def nearest(
        self, rows: Any, labels: Labels, near: NDArray[Any] | None = None, next_: NDArray[Any] | None = None
    ) -> tuple[int, int, int, int]:
        """Write each row's exact nearest target to `labels`; ties go to the lowest number."""
        return self._core.nearest(*_parts(rows), labels, near, next_)

    def move_rows(
        self,
        rows: Any,
        weights: Floats | None,
        weight_scale: float,
        before: Labels | None,
        after: Labels,
        slots: Labels,
        grid: Grid,
        sums: tuple[Floats, Floats, Floats],
    ) -> None:
        """Move rows whose label changed from the sums of one cluster to those of another."""
        self._core.move_rows(*_parts(rows), weights, weight_scale, before, after, slots, grid.coarse, grid.fine, *sums)

    def residuals(self, rows: Any, weights: Floats | None, labels: Labels, each: Floats | None = None) -> Floats:
        """The weighted squared distances, times scale squared, from each target to its rows."""
        total = np.zeros(len(self.points))
        self._core.residuals(*_parts(rows), weights, labels, total, each)
        return total

    def update_closest(
        self, rows: Any, weights: Floats | None, taken: int, closest: NDArray[Any]
    ) -> tuple[float, Floats]:
        """Seeding: update `closest` with the first `taken` targets as new seeds, and try each of the others."""
        potential = np.empty(len(self.points) - taken)
        return self._core.update_closest(*_parts(rows), weights, taken, closest, potential), potential

    def distances(self, rows: Any) -> NDArray[Any]:
        """The distance of every row to every target, in the rows' dtype."""
        out = np.empty((rows.shape[0], len(self.points)), dtype=rows.dtype)
        self._core.distances(*_parts(rows), out)
        return out


def _parts(rows: Any) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """The three arrays of a CSR matrix; the two index arrays in one dtype."""
    columns, starts = rows.indices, rows.indptr
    if columns.dtype != starts.dtype or columns.dtype not in (np.int32, np.int64):
        columns, starts = columns.astype(np.int64), starts.astype(np.int64)
    return rows.data, columns, starts


def unit_rows(rows: Any) -> tuple[Any, int]:
    """A CSR matrix with its rows divided by their lengths, and the number of zero rows."""
    out = np.empty_like(rows.data)
    without = _core.unit_rows(rows.data, rows.indptr.astype(np.int64), rows.shape[1], out)
    return type(rows)((out, rows.indices, rows.indptr), shape=rows.shape), without


def scatter_product(
    rows: Any, weights: Floats | None, centre: Floats, factor: Floats | None, basis: Floats, *, wide: bool
) -> Floats:
    """The product of `kernels.scatter_product` for a CSR matrix without duplicate entries."""
    out = np.empty(basis.shape)
    _core.sparse_product(*_parts(rows), weights, centre, factor, basis, wide, out)
    return out


def project(rows: Any, weights: Floats | None, centre: Floats, factor: Floats | None, basis: Floats) -> Floats:
    """Z `basis` for the rows Z = (x - centre) * factor times the roots of their weights."""
    out = np.empty((rows.shape[0], basis.shape[1]))
    _core.sparse_project(*_parts(rows), weights, centre, factor, basis, out)
    return out


def project_back(rows: Any, weights: Floats | None, centre: Floats, factor: Floats | None, codes: Floats) -> Floats:
    """Z' `codes` for the same rows."""
    out = np.empty((rows.shape[1], codes.shape[1]))
    _core.sparse_back(*_parts(rows), weights, centre, factor, codes, out)
    return out
