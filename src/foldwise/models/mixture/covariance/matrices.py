"""Types whose covariances are matrices: what they have in common."""

from __future__ import annotations

from abc import abstractmethod

import numpy as np
from scipy.linalg.lapack import dtrtri

from foldwise.data.block import Floats
from foldwise.fold.passes import Passes
from foldwise.models.mixture.covariance.base import CovarianceType
from foldwise.stats.moments import Moments

_SPREAD = 4.0  # in units of the ridge: a direction that varies less in the whole cannot be flat in a component
_ROUNDED = 0.5  # of the ridge: rounding does not lift a flat direction from here to above 1
_UNSURE = 2 * float(np.finfo(np.float64).eps)  # for each column: eigenvalues of correlations below are mere rounding
_VALUES = 1 << 16  # of matrices that are factorised together: they stay in the cache


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
        """The ridge is small beside the variances of a component much wider than others. Rounding of its sums is not.

        What has a density by rounding alone is lifted just above that, and no further: EM would lose what it has gained.
        """
        least = floor = share
        try:
            if not self.is_rounding(covariances, self.whiten(covariances)):
                return covariances
            least, floor = self.d * _UNSURE, 2 * self.d * _UNSURE
        except np.linalg.LinAlgError:
            pass
        out = np.array(covariances)
        for one in self.stacked(out):
            variances = np.maximum(np.diagonal(one), ridge)
            size = np.sqrt(np.full(self.d, variances.mean()) if self.compares_columns else variances)
            values, vectors = np.linalg.eigh(one / size / size[:, None])
            if values[0] < least:
                one[:] = ((vectors * np.maximum(values, floor)) @ vectors.T) * size * size[:, None]
        return out

    def is_rounding(self, covariances: Floats, whiten: Floats) -> bool:
        """Whether the least eigenvalue of some correlations is below that of rounding.

        The trace of their inverse is between the inverse of that eigenvalue and d times as much: it clears most of them.
        """
        least = self.d * _UNSURE
        inverse = np.einsum("kij,ki->k", self.stacked(whiten) ** 2, self.variances(covariances))
        for one in self.stacked(covariances)[inverse * least > 1.0]:
            size = np.sqrt(np.diagonal(one))
            try:
                np.linalg.cholesky(one / size / size[:, None] - least * np.eye(self.d))
            except np.linalg.LinAlgError:
                return True
        return False

    def collapsed(self, raw: Floats, ridge: Floats, whole: Floats) -> list[bool]:
        """By eigenvalues, in units of the ridge: a variance below 1 is flat."""
        found = []
        size = np.sqrt(ridge)
        seen = whole / size / size[:, None]
        spread, total = np.diagonal(seen), float(np.trace(seen))
        least = max(_SPREAD, 1e-15 * total)
        vary = np.flatnonzero(np.diagonal(whole) > 0)
        vary_both = None if len(vary) == self.d else np.ix_(vary, vary)
        for one in self.formed(raw):
            scaled = one / size / size[:, None]
            if _is_flat_in_a_column(np.diagonal(scaled), spread, total, least):
                found.append(True)
            elif _exceeds_one(scaled if vary_both is None else scaled[vary_both]):
                found.append(False)  # as most do, and a Cholesky factor takes a fraction of the eigenvectors' time
            else:
                values, vectors = np.linalg.eigh(scaled)
                flat = vectors[:, values < 1.0]
                found.append(bool((np.einsum("ij,ij->j", flat, seen @ flat) > least).any()))
        return found


def _is_flat_in_a_column(variances: Floats, spread: Floats, total: float, least: float) -> bool:
    """Whether a column alone shows what the eigenvectors would: that some flat one of them has more spread than `least`.

    Let a be the variance of column j in the component, and s and S those of the column and of all columns in the whole. At
    most a of the squared length of the unit vector e_j lies along eigenvectors that are not flat, and what lies there has at
    most a S of spread. So where a S < s / 4, the flat rest of it has a spread above s / 4, and one of at most d eigenvectors
    above s / (4 d).
    """
    certain = (variances < _ROUNDED) & (variances * total < spread / 4) & (spread > 4 * len(spread) * least)
    return bool(certain.any())


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
    size, found = np.sqrt(variances), np.empty(covariances.shape)
    together = max(1, _VALUES // covariances[0].size)
    for start in range(0, len(found), together):
        some = slice(start, start + together)
        across, along = size[some, :, None], size[some, None, :]
        correlations = covariances[some] / across / along  # so that units do not matter
        inverses = [dtrtri(one, lower=1)[0].T for one in np.linalg.cholesky(correlations)]
        np.divide(inverses[0] if together == 1 else np.stack(inverses), across, out=found[some])
    return found
