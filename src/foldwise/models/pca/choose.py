"""Which solver runs: the one that svd_solver names or, for "auto", the cheapest. Nothing else decides this."""

from __future__ import annotations

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
_WIDE = 1000  # columns


def solver_for(asked: str, n_components: Any, source: Source) -> Solver:
    """The solver that a PCA with svd_solver=`asked` runs on these data."""
    n, d = source.n_rows, source.n_columns
    if asked == "auto":
        k = int(n_components) if isinstance(n_components, Integral) else None
        if n is None and d > _WIDE:  # how many rows there are decides between ways that differ by gigabytes
            n = count_rows(source)
        return SOLVERS[cheapest(n, d, k, sparse=source.sparse, fill=getattr(source, "fill", 1.0))]
    if asked == "covariance_eigh" and n is not None and n < d and not source.sparse:
        return SOLVERS["gram"]  # the same decomposition seen from the smaller side
    return BY_PARAMETER[asked]


def cheapest(n_rows: int | None, n_columns: int, n_components: int | None, *, sparse: bool, fill: float = 1.0) -> str:
    """The cheapest solver for the `n_components` leading directions (None: all of them).

    >>> cheapest(1_000_000, 50, None, sparse=False), cheapest(100, 20_000, 10, sparse=False)
    ('covariance_eigh', 'gram')
    >>> cheapest(200_000, 784, 10, sparse=False), cheapest(100_000, 50_000, 10, sparse=True, fill=1e-3)
    ('covariance_eigh', 'krylov')
    """
    n = float(n_rows) if n_rows is not None else 1e9
    d = float(n_columns)
    most = min(n, d)
    some = n_components is not None and n_components < most / 4
    eigen = _EIGEN_SOME if some else _EIGEN_ALL
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
