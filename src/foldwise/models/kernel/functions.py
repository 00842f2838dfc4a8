"""What a kernel is between two sets of rows: one class for each, with rows prepared once and tiles computed when asked.

Values are float64 whatever the rows are. Kernels that only depend on differences see rows from a pivot near their mean.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from foldwise import kernels
from foldwise.data.block import Floats
from foldwise.errors import DataError, ParameterError
from foldwise.kernels.targets import Rescaling
from foldwise.models.kernel import centring

_HARMLESS = 1e-12  # an error of an exponent that changes nothing
_LARGEST = 2.0**450  # whose squares can be added up in float64, as those of its inverse can
_STEEPEST = 1e300  # gamma in units of the frame: above it, as at it, rows are like themselves alone
_DIVIDE = "Divide the data by a constant, so that values are nearer to 1"
_MULTIPLY = "Multiply the data by a constant, so that values are nearer to 1"


class Function(Protocol):
    """A kernel, ready for the rows of one fit."""

    def seen(self, rows: Any) -> Any:
        """Rows as `between` takes them: an array or a CSR matrix, one line a row."""

    def between(self, left: Any, right: Any) -> Floats:
        """The kernel of every row on the left with every row on the right; a new array."""

    def diagonal(self, seen: Any) -> Floats:
        """The kernel of every row with itself."""


class Linear:
    """x.y of rows from the pivot. Distances in feature space do not depend on it, and keep their digits at any offset.

    These are distances of the rows themselves: where their squares would leave float64, there is an error.
    """

    def __init__(self, frame: Rescaling) -> None:
        self._frame = frame

    def seen(self, rows: Any) -> Any:
        """Rows from the pivot."""
        y, scale = centring.seen(rows, self._frame), self._frame.scale
        largest = float(np.abs(y.data if _sparse(y) else y).max(initial=0.0))
        if largest > _LARGEST * scale:
            raise DataError("squares of the rows' distances leave the range of float64", advice=_DIVIDE)
        if largest > 0 and scale > _LARGEST:
            raise DataError("squares of the rows' distances are too small for float64", advice=_MULTIPLY)
        return y / scale

    def between(self, left: Any, right: Any) -> Floats:
        """All products."""
        return _products(left, right)

    def diagonal(self, seen: Any) -> Floats:
        """Squared lengths."""
        return _squares(seen)


class Polynomial:
    """(gamma x.y + coef0)^degree, of rows as they are: another origin is another kernel."""

    def __init__(self, gamma: float, degree: int, coef0: float) -> None:
        self._gamma, self._degree, self._coef0 = gamma, degree, coef0

    def seen(self, rows: Any) -> Any:
        """Rows in float64."""
        return _wide(rows)

    def between(self, left: Any, right: Any) -> Floats:
        """All values."""
        return self._of(_products(left, right))

    def diagonal(self, seen: Any) -> Floats:
        """The same of squared lengths."""
        return self._of(_squares(seen))

    def _of(self, products: Floats) -> Floats:
        with np.errstate(over="ignore", invalid="ignore"):
            values = np.asarray((self._gamma * products + self._coef0) ** self._degree)
        return _finite(values, "Use a smaller gamma or degree, or divide the data by a constant")


class Gaussian:
    """exp(-gamma |x - y|^2), the kernel "rbf".

    Dense rows carry two more columns, so that one product gives the exponent: 2 gamma x.y - gamma |x|^2 - gamma |y|^2.
    """

    def __init__(self, gamma: float, frame: Rescaling) -> None:
        self._frame = frame
        self._gamma = min(gamma / frame.scale / frame.scale, _STEEPEST)

    def seen(self, rows: Any) -> Any:
        """[y, 1, -gamma |y|^2] with y seen from the pivot; of sparse rows y."""
        y = centring.seen(rows, self._frame)
        if _sparse(y):
            return y
        return np.concatenate([y, np.ones((len(y), 1)), -self._gamma * _squares(y)[:, None]], axis=1)

    def between(self, left: Any, right: Any) -> Floats:
        """All values."""
        if _sparse(left):
            exponents = 2 * self._gamma * _products(left, right)
            exponents -= self._gamma * _squares(left)[:, None]
            exponents -= self._gamma * _squares(right)
        else:
            d = left.shape[1] - 2
            turned = np.concatenate([left[:, :d] * (2 * self._gamma), left[:, d + 1 :], left[:, d : d + 1]], axis=1)
            exponents = turned @ right.T
            self._settle(exponents, left, right)
        kernels.similarity(exponents)
        return np.asarray(exponents)

    def _settle(self, exponents: Floats, left: Floats, right: Floats) -> None:
        """Take differences first where the terms nearly cancel, if that can matter: with far rows or a large gamma."""
        d = left.shape[1] - 2
        largest = -float(left[:, -1].min(initial=0.0) + right[:, -1].min(initial=0.0))
        if 4e-16 * largest * (d + 2) < _HARMLESS:
            return
        size = -left[:, -1][:, None] - right[:, -1]
        row, column = np.nonzero(exponents > -1e-4 * size)
        for some in np.array_split(np.arange(len(row)), len(row) * d // 4_000_000 + 1):
            gap = left[row[some], :d] - right[column[some], :d]
            exponents[row[some], column[some]] = -self._gamma * np.einsum("ij,ij->i", gap, gap)

    def diagonal(self, seen: Any) -> Floats:
        """Ones."""
        return np.ones(seen.shape[0])


class Laplacian:
    """exp(-gamma sum |x - y|)."""

    def __init__(self, gamma: float, frame: Rescaling) -> None:
        self._frame, self._gamma = frame, min(gamma / frame.scale, _STEEPEST)

    def seen(self, rows: Any) -> Any:
        """Rows from the pivot."""
        if _sparse(rows):
            raise DataError(
                "kernel='laplacian' needs all differences of two rows, which sparse ones have not",
                advice="Pass rows.toarray() if that fits, or use kernel='rbf'",
            )
        return self._frame.seen(rows)

    def between(self, left: Any, right: Any) -> Floats:
        """All values."""
        from scipy.spatial.distance import cdist

        exponents = np.asarray(cdist(left, right, "cityblock"))
        exponents *= -self._gamma
        kernels.similarity(exponents)
        return exponents

    def diagonal(self, seen: Any) -> Floats:
        """Ones."""
        return np.ones(len(seen))


class Called:
    """A function of the user's: f(rows, other rows) gives their kernel matrix."""

    def __init__(self, function: Callable[[Any, Any], Any]) -> None:
        self._function = function

    def seen(self, rows: Any) -> Any:
        """Rows as they are."""
        return rows

    def between(self, left: Any, right: Any) -> Floats:
        """What the function gives, checked."""
        values = np.array(self._function(left, right), dtype=np.float64)
        wanted = (left.shape[0], right.shape[0])
        if values.shape != wanted:
            raise ParameterError(
                f"the kernel function returned shape {values.shape} for {wanted[0]} and {wanted[1]} rows; "
                f"it must return one value for each pair, shape {wanted}."
            )
        if kernels.finite(values) >= 0:
            raise ParameterError("the kernel function returned NaN or infinity.")
        return values

    def diagonal(self, seen: Any) -> Floats:
        """From small squares along the diagonal."""
        n = seen.shape[0]
        parts = [np.diagonal(self.between(seen[i : i + 32], seen[i : i + 32])) for i in range(0, n, 32)]
        return np.concatenate(parts) if parts else np.empty(0)


def make(kernel: Any, gamma: float, degree: int, coef0: float, frame: Rescaling) -> Function:
    """The kernel of that name, or of that function."""
    if callable(kernel):
        return Called(kernel)
    if kernel == "linear":
        return Linear(frame)
    if kernel == "poly":
        return Polynomial(gamma, degree, coef0)
    return Gaussian(gamma, frame) if kernel == "rbf" else Laplacian(gamma, frame)


def _sparse(rows: Any) -> bool:
    return not isinstance(rows, np.ndarray)


def _wide(rows: Any) -> Any:
    return rows.astype(np.float64)


def _products(left: Any, right: Any) -> Floats:
    return np.asarray((left @ right.T).toarray() if _sparse(left) else left @ right.T)


def _squares(rows: Any) -> Floats:
    if _sparse(rows):
        return np.asarray(rows.multiply(rows).sum(axis=1)).ravel()
    return np.asarray(np.einsum("ij,ij->i", rows, rows))


def _finite(values: NDArray[np.float64], advice: str) -> Floats:
    if not np.isfinite(values).all():
        raise DataError("the kernel leaves the range of float64", advice=advice)
    return values
