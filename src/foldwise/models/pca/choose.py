"""Which solver `auto` takes, by what each would cost. Nothing else knows or decides this."""

from __future__ import annotations

from typing import Literal, TypeAlias

Solver: TypeAlias = Literal["full", "covariance_eigh", "gram", "krylov", "power"]

# Flops per second, one core, in units of the dense float32 scatter kernel's; only ratios matter.
_EIGEN_ALL, _EIGEN_SOME = (
    9.0 / 0.2,
    3.0 / 0.2,
)  # d^3 factors of a full and a partial diagonalisation, at a fifth of the speed
_PRODUCT = 4.0 / 0.25  # a block product with its transpose, in float64, with centring
_STEPS = 12  # passes that Krylov usually takes
_OVERSAMPLING = 8
_SQUARE_MATRIX_BYTES = 8 << 30


def choose(n_rows: int | None, n_columns: int, n_components: int | None, *, sparse: bool, fill: float = 1.0) -> Solver:
    """The cheapest solver for the `n_components` leading directions (None: all of them).

    >>> choose(1_000_000, 50, None, sparse=False), choose(100, 20_000, 10, sparse=False)
    ('covariance_eigh', 'gram')
    >>> choose(200_000, 784, 10, sparse=False), choose(100_000, 50_000, 10, sparse=True, fill=1e-3)
    ('covariance_eigh', 'krylov')
    """
    n = float(n_rows) if n_rows is not None else 1e9
    d = float(n_columns)
    most = min(n, d)
    some = n_components is not None and n_components < most / 4
    eigen = _EIGEN_SOME if some else _EIGEN_ALL
    costs: dict[Solver, float] = {"covariance_eigh": n * d * d * fill**2 + eigen * d**3}
    if 8 * d * d > _SQUARE_MATRIX_BYTES:
        costs["covariance_eigh"] = float("inf")
    if n < d and not sparse:
        costs["gram"] = 2 * n * n * d + eigen * n**3 + (4 * n * d * (n_components or n))
    if (n_components is not None and n_components < most / 2) or not any(c < float("inf") for c in costs.values()):
        width = (n_components or most) + _OVERSAMPLING
        steps = _STEPS * _PRODUCT * n * d * fill * width
        costs["krylov"] = steps + _STEPS * _STEPS * 4 * d * width**2
    return min(costs, key=lambda solver: costs[solver])
