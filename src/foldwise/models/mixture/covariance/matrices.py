"""Types whose covariances are matrices: what they have in common."""

from __future__ import annotations

from abc import abstractmethod

import numpy as np
from scipy.linalg.lapack import dtrtri

from foldwise.data.block import Floats
from foldwise.fold.passes import Passes
from foldwise.models.mixture.covariance.base import CovarianceType
from foldwise.stats.moments import Moments


class MatrixType(CovarianceType):
    """Covariances as matrices, one for each component or one for all."""

    def of_all_rows(self, passes: Passes) -> tuple[Floats, Floats]:
        """The mean and the covariance matrix of all rows."""
        moments = passes.fold(Moments.of)
        upper = np.triu(moments.scatter) / moments.weight
        return moments.mean, upper + np.triu(upper, 1).T

    @abstractmethod
    def formed(self, matrices: Floats) -> Floats:
        """Matrices of any form brought to that of this type."""

    def variances(self, covariances: Floats) -> Floats:
        """The diagonals."""
        return np.diagonal(self.stacked(covariances), axis1=1, axis2=2)

    def whiten(self, covariances: Floats) -> Floats:
        """Upper triangular U with U U' the inverse."""
        found = inverse_factors(self.stacked(covariances))
        return np.asarray(found[0]) if self.shared else found

    def log_determinants(self, whiten: Floats) -> Floats:
        """From the diagonals."""
        return np.asarray(np.log(np.diagonal(whiten, axis1=-2, axis2=-1)).sum(axis=-1))

    def traces(self, whiten: Floats, ridge: Floats) -> Floats:
        """The squares of each line of `whiten` times its ridge."""
        return np.asarray(np.einsum("...ij,i->...", whiten**2, ridge))

    def precisions(self, whiten: Floats) -> Floats:
        """U U'."""
        return np.asarray(whiten @ np.swapaxes(whiten, -1, -2))

    def draw(self, normals: Floats, covariance: Floats) -> Floats:
        """By the Cholesky factor."""
        return np.asarray(normals @ np.linalg.cholesky(covariance).T)

    def scaled(self, covariances: Floats, factor: Floats) -> Floats:
        """Lines and columns times the factor."""
        return np.asarray((covariances * factor) * factor[:, None])

    def scaled_whiten(self, whiten: Floats, factor: Floats) -> Floats:
        """Lines times the factor."""
        return whiten * factor[:, None]

    def invert(self, precisions: Floats) -> Floats:
        """Of positive definite matrices."""
        for one in self.stacked(precisions):
            if not np.allclose(one, one.T) or not (np.linalg.eigvalsh(one) > 0).all():
                raise self._refuse_precisions("symmetric, positive-definite")
        return np.asarray(np.linalg.inv(precisions), dtype=np.float64)

    def broad(self, whole: Floats, share: float, ridge: Floats) -> Floats:
        """The shape of all rows."""
        return np.asarray(self.formed((whole * share + np.diag(ridge))[None])[0])

    def sound(self, covariances: Floats, ridge: Floats, share: float) -> Floats:
        """The ridge is small beside the variances of a component much wider than others. Rounding of its sums is not."""
        try:
            self.whiten(covariances)
        except np.linalg.LinAlgError:
            out = np.array(covariances)
            for one in self.stacked(out):
                variances = np.maximum(np.diagonal(one), ridge)
                size = np.sqrt(np.full(self.d, variances.mean()) if self.compares_columns else variances)
                values, vectors = np.linalg.eigh(one / size / size[:, None])
                if values[0] < share:
                    one[:] = ((vectors * np.maximum(values, share)) @ vectors.T) * size * size[:, None]
            return out
        return covariances

    def collapsed(self, raw: Floats, ridge: Floats, whole: Floats) -> list[bool]:
        """By eigenvalues, in units of the ridge: a variance below 1 is flat."""
        found = []
        size = np.sqrt(ridge)
        vary = np.ix_(*[np.flatnonzero(np.diagonal(whole) > 0)] * 2)
        for one in self.formed(raw):
            scaled = one / size / size[:, None]
            if _exceeds_one(scaled[vary]):  # as most do, and a Cholesky factor takes a fraction of the eigenvectors' time
                found.append(False)
                continue
            values, vectors = np.linalg.eigh(scaled)
            flat = vectors[:, values < 1.0]
            seen = whole / size / size[:, None]
            spread = np.einsum("ij,ik,kj->j", flat, seen, flat)
            found.append(bool((spread > max(4.0, 1e-15 * float(np.trace(seen)))).any()))
        return found


def _exceeds_one(matrix: Floats) -> bool:
    """Whether all eigenvalues are clearly above 1; they are if there are none."""
    try:
        np.linalg.cholesky(matrix - 1.01 * np.eye(len(matrix)))
    except np.linalg.LinAlgError:
        return False
    return True


def inverse_factors(covariances: Floats) -> Floats:
    """For each matrix U, upper triangular, with U U' the inverse."""
    variances = np.diagonal(covariances, axis1=1, axis2=2)
    if not (np.isfinite(variances).all() and (variances > 0).all()):
        raise np.linalg.LinAlgError("a variance is not above zero")
    size = np.sqrt(variances)
    correlations = covariances / size[:, :, None] / size[:, None, :]  # so that units do not matter
    found = np.stack([dtrtri(one, lower=1)[0].T for one in np.linalg.cholesky(correlations)])
    return np.ascontiguousarray(found / size[:, :, None])
