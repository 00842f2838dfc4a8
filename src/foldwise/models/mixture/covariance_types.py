"""The shapes that a component may have: what the M-step makes of the sums, and what a density is worked out from.

Each family has covariances of one layout (`covariances_` of scikit-learn), and reads one kind of scatter.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg.lapack import dtrtri

from foldwise.data.block import Floats
from foldwise.kernels.mixture import Components
from foldwise.stats.responsibility_sums import ResponsibilitySums

# The squares that each family's M-step reads, and the layout that densities are worked out in.
SCATTER: dict[str, Any] = {"full": "full", "ppca": "full", "tied": "tied", "diag": "diag", "spherical": "diag"}
LAYOUT: dict[str, Any] = {"full": "full", "ppca": "full", "tied": "tied", "diag": "diag", "spherical": "spherical"}


@dataclass(frozen=True)
class CovarianceType:
    """A covariance type for d columns; `n_latent` is for ppca alone."""

    name: str
    d: int
    n_latent: int = 0

    @property
    def scatter(self) -> Any:
        """Which squares the M-step needs."""
        return SCATTER[self.name]

    @property
    def layout(self) -> Any:
        """How the covariances are laid out."""
        return LAYOUT[self.name]

    def n_parameters(self, k: int) -> int:
        """How many numbers are free: weights, means and covariances."""
        d, q = self.d, self.n_latent
        shape = {
            "full": k * d * (d + 1) // 2,
            "tied": d * (d + 1) // 2,
            "diag": k * d,
            "spherical": k,
            "ppca": k * (d * q - q * (q - 1) // 2 + 1),
        }[self.name]
        return shape + k * d + k - 1

    def least_rows(self) -> int:
        """Fewer rows than this cannot determine a component's covariance."""
        return {"full": self.d + 1, "ppca": self.n_latent + 2, "tied": 1, "diag": 2, "spherical": 2}[self.name]

    # ------------------------------------------------------------ the M-step

    def raw(self, found: ResponsibilitySums) -> tuple[Floats, Floats]:
        """How far each mean moves, and the covariances about the new means, without any ridge."""
        counts = found.counts
        safe = np.maximum(counts, np.finfo(np.float64).tiny)
        moves = found.shift / safe[:, None]
        if self.scatter == "full":
            return moves, found.scatter / safe[:, None, None] - moves[:, :, None] * moves[:, None, :]
        if self.scatter == "tied":
            return moves, (found.scatter - (moves * counts[:, None]).T @ moves) / counts.sum()
        squares = np.maximum(found.scatter / safe[:, None] - moves**2, 0.0)  # less is rounding
        return moves, squares if self.name == "diag" else squares.mean(axis=1)

    def with_ridge(self, raw: Floats, ridge: Floats) -> Floats:
        """Covariances with the variances in `ridge` (one a column) added, and for ppca brought to their form."""
        if self.layout == "full":
            ridged = raw + np.diag(ridge)
            ridged = (ridged + ridged.transpose(0, 2, 1)) / 2
            return np.stack([_ppca(one, self.n_latent) for one in ridged]) if self.name == "ppca" else ridged
        if self.layout == "tied":
            return np.asarray((raw + raw.T) / 2 + np.diag(ridge))
        return raw + ridge if self.layout == "diag" else raw + ridge.mean()

    # ------------------------------------------------------------ densities

    def whiten(self, covariances: Floats) -> Floats:
        """What turns x - mean into independent unit normals (`precisions_cholesky_`); LinAlgError if there is none."""
        if self.layout == "full":
            return _inverse_factors(covariances)
        if self.layout == "tied":
            return np.asarray(_inverse_factors(covariances[None])[0])
        if not (covariances > 0).all():
            raise np.linalg.LinAlgError("a variance is not above zero")
        return np.asarray(1.0 / np.sqrt(covariances))

    def log_determinants(self, whiten: Floats) -> Floats:
        """The log-determinant of each component's `whiten` (for tied one for all)."""
        if self.layout == "full":
            return np.asarray(np.log(np.diagonal(whiten, axis1=1, axis2=2)).sum(axis=1))
        if self.layout == "tied":
            return np.asarray(np.log(np.diagonal(whiten)).sum())
        return np.asarray(np.log(whiten).sum(axis=1) if self.layout == "diag" else self.d * np.log(whiten))

    def traces(self, whiten: Floats, ridge: Floats) -> Floats:
        """The trace of ridge times precision for each component (for tied one for all)."""
        if self.layout == "full":
            return np.asarray(np.einsum("kij,i->k", whiten**2, ridge))
        if self.layout == "tied":
            return np.asarray(np.einsum("ij,i->", whiten**2, ridge))
        return whiten**2 @ ridge if self.layout == "diag" else np.asarray(whiten**2 * self.d * ridge.mean())

    def components(
        self,
        weights: Floats,
        means: Floats,
        whiten: Floats,
        pivot: Floats,
        dtype: np.dtype[Any],
        *,
        ridge: Floats | None = None,
        scatter: Any = "none",
        narrow: bool = True,
    ) -> Components:
        """What rows are compared with; `ridge` lowers each density as the fit's lower bound has it."""
        with np.errstate(divide="ignore"):  # a weight of zero is a log of minus infinity, and that is right
            logs = np.log(weights) + self.log_determinants(whiten) - self.d / 2 * math.log(2 * math.pi)
        if ridge is not None:
            logs = logs - self.traces(whiten, ridge) / 2
        logs = np.ascontiguousarray(np.broadcast_to(logs, weights.shape), dtype=np.float64)
        means, whiten = np.ascontiguousarray(means), np.ascontiguousarray(whiten)
        return Components(self.layout, logs, means, whiten, pivot, dtype, scatter=scatter, narrow=narrow)

    def precisions(self, whiten: Floats) -> Floats:
        """The inverses of the covariances."""
        return whiten @ np.swapaxes(whiten, -1, -2) if self.layout in ("full", "tied") else whiten**2

    # ------------------------------------------------------------ between families and units

    def each(self, covariances: Floats, k: int) -> Floats:
        """Any layout as k full matrices."""
        if self.layout == "full":
            return covariances
        if self.layout == "tied":
            return np.broadcast_to(covariances, (k, self.d, self.d))
        wide = covariances if self.layout == "diag" else np.repeat(covariances[:, None], self.d, axis=1)
        return np.asarray(wide[:, :, None] * np.eye(self.d))

    def of_each(self, matrices: Floats, weights: Floats) -> Floats:
        """The covariances of this family nearest to k full matrices."""
        if self.layout == "full":
            return np.stack([_ppca(one, self.n_latent) for one in matrices]) if self.name == "ppca" else matrices
        if self.layout == "tied":
            return np.asarray(np.einsum("k,kij->ij", weights / weights.sum(), matrices))
        variances = np.diagonal(matrices, axis1=1, axis2=2)
        return np.array(variances) if self.layout == "diag" else variances.mean(axis=1)

    def scaled(self, covariances: Floats, factor: Floats) -> Floats:
        """Covariances of columns that are multiplied by `factor` (for spherical the same for all)."""
        if self.layout in ("full", "tied"):
            return np.asarray((covariances * factor) * factor[:, None])
        return covariances * factor * factor if self.layout == "diag" else covariances * factor[0] * factor[0]


def _ppca(covariance: Floats, q: int) -> Floats:
    """The covariance with its q largest variances kept and the others made equal (Tipping and Bishop 1999)."""
    values, vectors = np.linalg.eigh(covariance)
    d = len(values)
    noise = float(values[: d - q].mean())
    top = vectors[:, d - q :]
    found = (top * (values[d - q :] - noise)) @ top.T
    found[np.diag_indices(d)] += noise
    return np.asarray((found + found.T) / 2)


def _inverse_factors(covariances: Floats) -> Floats:
    """For each matrix U, upper triangular, with U U' the inverse."""
    variances = np.diagonal(covariances, axis1=1, axis2=2)
    if not (np.isfinite(variances).all() and (variances > 0).all()):
        raise np.linalg.LinAlgError("a variance is not above zero")
    size = np.sqrt(variances)
    lower = np.linalg.cholesky(
        covariances / size[:, :, None] / size[:, None, :]
    )  # of correlations: units do not matter
    found = np.stack([dtrtri(one, lower=1)[0].T for one in lower])
    return np.ascontiguousarray(found / size[:, :, None])


def collapsed(family: CovarianceType, raw: Floats, ridge: Floats, whole: Floats) -> list[bool]:
    """Whether each component is flat in some direction in which the data as a whole are not.

    Flat is less variance than the ridge. A direction in which no data vary, as with columns that add up to a constant, is
    nobody's collapse, nor is one in which they vary by no more than rounding leaves. A tied covariance is one matrix.
    """
    if family.layout == "spherical":
        mean = float(whole.mean())
        return [bool(one < ridge.mean() and mean > 4 * ridge.mean()) for one in raw]
    if family.layout == "diag":
        return [bool(((one < ridge) & (whole > 4 * ridge)).any()) for one in raw]
    found = []
    size = np.sqrt(ridge)
    if family.name == "ppca":  # what counts is the noise, of which there is one for all directions left over
        raw = np.stack([_ppca(one, family.n_latent) for one in raw])
    for one in raw:  # in units of the ridge: a variance below 1 is flat
        values, vectors = np.linalg.eigh(one / size / size[:, None])
        flat = vectors[:, values < 1.0]
        seen = whole / size / size[:, None]
        spread = np.einsum("ij,ik,kj->j", flat, seen, flat)
        found.append(bool((spread > max(4.0, 1e-15 * float(np.trace(seen)))).any()))
    return found
