"""The normal distribution behind a PCA with missing cells: completed rows, and how sure each filled cell is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from foldwise.data.block import Block, Floats
from foldwise.errors import DataError
from foldwise.kernels import missing_cells
from foldwise.kernels.missing_cells import Units
from foldwise.models.pca.projection import Projection


@dataclass(frozen=True)
class NormalModel:
    """Rows are normal about `mean`; `precision` is that of (x - mean) / scale. A column of scale 0 is constant."""

    mean: Floats
    scale: Floats
    precision: Floats

    @property
    def units(self) -> Units:
        """In which the kernels see rows."""
        return Units(self.mean, inverse_of(self.scale))

    def completed(self, block: Block) -> Block:
        """The block with each missing cell at its conditional mean given the row's other cells; as it is if complete."""
        rows = block.dense()
        if not np.isnan(rows).any():
            return block
        return block.with_rows(self.fill(rows)[0])

    def fill(self, rows: NDArray[Any]) -> tuple[NDArray[Any], Floats]:
        """Rows with missing cells filled, observed ones as they are, and the deviation of each filled cell (0 elsewhere)."""
        missing = np.isnan(rows)
        if not missing.any():
            return rows, np.zeros(rows.shape)
        which = missing.any(axis=1)
        away, spread = missing_cells.fill(
            np.ascontiguousarray(rows[which]), self.units, np.zeros(len(self.mean)), self.precision
        )
        filled, deviations = rows.copy(), np.zeros(rows.shape)
        filled[which] = np.where(missing[which], away * self.scale + self.mean, rows[which])
        deviations[which] = spread
        return filled, deviations

    def log_density(self, rows: NDArray[Any]) -> Floats:
        """The log-density of the observed cells of each row."""
        which = np.isnan(rows)
        away, logs = missing_cells.log_determinants(rows, self.units, np.zeros(len(self.mean)), self.precision)
        _, log_precision = np.linalg.slogdet(self.precision)
        squares = np.einsum("ij,ij->i", away @ self.precision, away)
        observed = len(self.mean) - which.sum(axis=1)
        constant = (~which) @ np.log(np.where(self.scale > 0, self.scale, 1.0))
        return np.asarray((log_precision - logs - squares - observed * np.log(2 * np.pi)) / 2 - constant)


@dataclass(frozen=True)
class Completing:
    """A task on blocks whose missing cells are filled first."""

    normal: NormalModel
    task: Callable[[Block], NDArray[Any]]

    def __call__(self, block: Block) -> NDArray[Any]:
        """What the task says of the completed block."""
        return self.task(block if block.sparse else self.normal.completed(block))


@dataclass(frozen=True)
class RefuseMissing:
    """A task on blocks of so many columns that nothing can fill missing cells, unless the fit had some, too."""

    task: Callable[[Block], NDArray[Any]]

    def __call__(self, block: Block) -> NDArray[Any]:
        """What the task says of a block without missing cells."""
        if not block.sparse and np.isnan(block.dense()).any():
            raise DataError(
                f"cells are missing, but the fit had none, and {block.n_columns:,} columns are too many to fill them",
                advice="Use missing='mean', or fit to rows with missing cells",
            )
        return self.task(block)


@dataclass(frozen=True)
class ObservedResiduals:
    """The squared distance of each row from the plane of the directions, over the cells that it has."""

    normal: NormalModel
    projection: Projection

    def __call__(self, block: Block) -> Floats:
        """Distances of the rows of a block, of which NaN is missing."""
        missing = None if block.sparse else np.isnan(block.dense())
        if missing is None or not missing.any():
            return self.projection.residual_norms(block)
        rows = self.normal.completed(block).times(
            np.eye(len(self.normal.mean)), self.projection.mean, self.projection.scale
        )
        wide = np.asarray(self.projection.directions, dtype=np.float64)
        rest = np.where(missing, 0.0, rows - (rows @ wide.T) @ wide)
        return np.asarray(np.einsum("ij,ij->i", rest, rest))


@dataclass(frozen=True)
class ObservedDensities:
    """The log-density of each row's observed cells; `whole` is the task for a block without missing ones."""

    normal: NormalModel
    whole: Callable[[Block], Floats]

    def __call__(self, block: Block) -> Floats:
        """Densities of the rows of a block, of which NaN is missing."""
        if block.sparse or not np.isnan(block.dense()).any():
            return self.whole(block)
        return self.normal.log_density(block.dense())


def inverse_of(scale: Floats) -> Floats:
    """1 / scale; 0 for a column without variance."""
    return np.asarray(np.where(scale > 0, 1.0 / np.where(scale > 0, scale, 1.0), 0.0))


def inverse(matrix: Floats) -> tuple[Floats, float]:
    """The inverse of a positive definite matrix, and the logarithm of the matrix's determinant."""
    from scipy.linalg.lapack import dpotrf, dpotri

    factor, failed = dpotrf(matrix, lower=1)
    if failed:
        raise np.linalg.LinAlgError("the covariance is not positive definite")
    lower = np.tril(dpotri(factor, lower=1)[0])
    return np.ascontiguousarray(lower + np.tril(lower, -1).T), float(2 * np.log(np.diagonal(factor)).sum())
