"""What each solver costs, as measured (benchmarks/speed/pca.py): "auto" compares these, and Krylov gives up by them.

The unit is one multiplication of the dense float32 scatter kernel; only ratios matter.
"""

from __future__ import annotations

import math

FEW_COLUMNS = 64  # all ways are quick, and rows need not be counted

# Times d^3: a full and a partial diagonalisation, at a fifth of the speed.
_EIGEN_ALL, _EIGEN_SOME = 45.0, 15.0
_PRODUCT = 4.2  # a block product with its transpose; a step multiplies with `width` vectors
_WIDE = 2.2  # times as much in float64
_STEPS = 8  # that Krylov takes besides those in which its basis becomes as large as the number of components
_SPARSE = 12.0  # times as much for a stored value, which is somewhere in memory
_DIGITS = 1e10  # below this (some 60 ms) all the digits of directions are worth more than the time
_SQUARE_MATRIX_BYTES = 8 << 30


def width(n_components: int) -> int:
    """How many vectors a step of Krylov multiplies with: whole vector registers, more for many components."""
    return 16 if n_components < 64 else 32


def step_cost(n_columns: int, n_components: int, *, wide: bool) -> float:
    """Of one step of Krylov, per row."""
    return _PRODUCT * (_WIDE if wide else 1.0) * n_columns * width(n_components)


def _krylov(n_columns: int, n_components: int, *, wide: bool) -> tuple[float, float]:
    """What it costs per row, and once: its steps, the pass in float64, and keeping the basis orthonormal."""
    d, k, b = n_columns, n_components, width(n_components)
    steps = _STEPS + k / b
    each = steps * step_cost(d, k, wide=wide) + (0.0 if wide else _PRODUCT * _WIDE * d * k)
    return each, steps * steps * 6 * d * b * b + _DIGITS


def covariance(n_rows: float, n_columns: int, n_components: int | None, *, fill: float = 1.0) -> float:
    """By way of the d x d matrix."""
    d, most = float(n_columns), min(n_rows, n_columns)
    if 8 * d * d > _SQUARE_MATRIX_BYTES:
        return math.inf
    some = n_components is not None and n_components < most / 4
    return n_rows * d * d * fill**2 + (_EIGEN_SOME if some else _EIGEN_ALL) * d**3


def gram(n_rows: float, n_columns: int, n_components: int | None, *, sparse: bool) -> float:
    """By way of the n x n matrix."""
    n, d, most = float(n_rows), float(n_columns), min(n_rows, n_columns)
    if n >= d or sparse:
        return math.inf
    some = n_components is not None and n_components < most / 4
    return 2 * n * n * d + (_EIGEN_SOME if some else _EIGEN_ALL) * n**3 + 4 * n * d * (n_components or n)


def decisive_rows(n_columns: int, n_components: int | None) -> int:
    """The number of rows beyond which more make no difference to `cheapest`, for dense rows.

    A source that does not know how many it has is asked for no more, and the choice is that of one that knows.
    """
    d, k = n_columns, n_components
    if k is None:
        return d
    rows = max(d, 4 * k + 1)
    for wide in (False, True):
        each, once = _krylov(d, k, wide=wide)
        for eigen in (_EIGEN_SOME, _EIGEN_ALL):
            if each != d * d:
                rows = max(rows, math.ceil(abs((eigen * d**3 - once) / (each - d * d))) + 1)
    return rows


def cheapest(
    n_rows: int, n_columns: int, n_components: int | None, *, sparse: bool, fill: float = 1.0, wide: bool = False
) -> str:
    """The cheapest solver for the `n_components` leading directions (None: all of them); `wide` products are in float64.

    >>> cheapest(1_000_000, 50, None, sparse=False), cheapest(100, 20_000, 10, sparse=False)
    ('covariance_eigh', 'gram')
    >>> cheapest(200_000, 784, 10, sparse=False), cheapest(70_000, 784, 50, sparse=False)
    ('krylov', 'covariance_eigh')
    """
    n, d = float(n_rows), n_columns
    most = min(n, d)
    if d <= FEW_COLUMNS:
        return "covariance_eigh"
    costs = {
        "covariance_eigh": covariance(n, d, n_components, fill=fill),
        "gram": gram(n, d, n_components, sparse=sparse),
    }
    few = n_components is not None and (n_components < most / 2 or (sparse and n < d))  # there the d x d matrix is mostly null
    if few or not any(c < math.inf for c in costs.values()):
        each, once = _krylov(d, n_components or int(most), wide=wide or sparse)
        costs["krylov"] = n * each * (fill * _SPARSE if sparse else 1.0) + once
    return min(costs, key=lambda solver: costs[solver])


def fallback(n_rows: int, n_columns: int, n_components: int, *, sparse: bool, fill: float) -> tuple[str, float]:
    """The solver to turn to if Krylov converges too slowly, and what it costs."""
    costs = {
        "covariance_eigh": covariance(n_rows, n_columns, n_components, fill=fill),
        "gram": gram(n_rows, n_columns, n_components, sparse=sparse),
    }
    best = min(costs, key=lambda solver: costs[solver])
    return best, costs[best]
