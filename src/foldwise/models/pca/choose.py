"""Which solver runs: the one that svd_solver names or, for "auto", the cheapest. Nothing else decides this."""

from __future__ import annotations

import math
from numbers import Integral
from typing import Any

from foldwise.data.source import Source, count_rows
from foldwise.models.pca.solver import Solver
from foldwise.models.pca.solvers import BY_PARAMETER, SOLVERS

# Flops per second, one core, in units of the dense float32 scatter kernel's; only ratios matter.
_EIGEN_ALL, _EIGEN_SOME = (
    9.0 / 0.2,
    3.0 / 0.2,
)  # times d^3: a full and a partial diagonalisation, at a fifth of the speed
_PRODUCT = 4.0 / 0.25  # a block product with its transpose, in float64, with centring
_STEPS = 12  # passes that Krylov usually takes
_OVERSAMPLING = 8
_SQUARE_MATRIX_BYTES = 8 << 30
_FEW = 64  # columns: all ways are quick, and rows need not be counted


def solver_for(asked: str, n_components: Any, source: Source) -> Solver:
    """The solver that a PCA with svd_solver=`asked` runs on these data."""
    d = source.n_columns
    if asked == "auto":
        k, fill = int(n_components) if isinstance(n_components, Integral) else None, getattr(source, "fill", 1.0)
        n = d if d <= _FEW else count_rows(source, decisive_rows(d, k))
        return SOLVERS[cheapest(n, d, k, sparse=source.sparse, fill=fill)]
    if asked == "covariance_eigh" and not source.sparse and d > _FEW and count_rows(source, d) < d:
        return SOLVERS["gram"]  # the same decomposition seen from the smaller side
    return BY_PARAMETER[asked]


def decisive_rows(n_columns: int, n_components: int | None) -> int | None:
    """The number of rows beyond which more make no difference to `cheapest`, for dense rows; None if there is none.

    A source that does not know how many it has is asked for no more, and the choice is that of one that knows.
    """
    d, width = n_columns, (n_components or 0) + _OVERSAMPLING
    if n_components is None:
        return d
    each = _STEPS * _PRODUCT * d * width - d * d  # by how much a row costs Krylov more
    once = _EIGEN_SOME * d**3 - _STEPS * _STEPS * 4 * d * width**2  # what it saves in the end
    if each <= 0:
        return None if 8 * d * d <= _SQUARE_MATRIX_BYTES else d
    return max(d, 4 * n_components + 1, math.ceil(_EIGEN_ALL / _EIGEN_SOME * max(once, 0) / each) + 1)


def cheapest(n_rows: int, n_columns: int, n_components: int | None, *, sparse: bool, fill: float = 1.0) -> str:
    """The cheapest solver for the `n_components` leading directions (None: all of them).

    >>> cheapest(1_000_000, 50, None, sparse=False), cheapest(100, 20_000, 10, sparse=False)
    ('covariance_eigh', 'gram')
    >>> cheapest(200_000, 784, 10, sparse=False), cheapest(100_000, 50_000, 10, sparse=True, fill=1e-3)
    ('covariance_eigh', 'krylov')
    """
    n, d = float(n_rows), float(n_columns)
    most = min(n, d)
    some = n_components is not None and n_components < most / 4
    eigen = _EIGEN_SOME if some else _EIGEN_ALL
    if d <= _FEW:
        return "covariance_eigh"
    costs: dict[str, float] = {"covariance_eigh": n * d * d * fill**2 + eigen * d**3}
    if 8 * d * d > _SQUARE_MATRIX_BYTES:
        costs["covariance_eigh"] = float("inf")
    if n < d and not sparse:
        costs["gram"] = 2 * n * n * d + eigen * n**3 + (4 * n * d * (n_components or n))
    if (n_components is not None and n_components < most / 2) or not any(c < float("inf") for c in costs.values()):
        width = (n_components or most) + _OVERSAMPLING
        steps = _STEPS * _PRODUCT * n * d * fill * width
        costs["krylov"] = steps + _STEPS * _STEPS * 4 * d * width**2
    return min(costs, key=lambda solver: costs[solver])
