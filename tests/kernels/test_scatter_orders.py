"""Variances and covariances of float32 rows are right to 1e-6 in any order of the rows, at any size of block."""

from __future__ import annotations

import numpy as np
import pytest

from foldwise import kernels

SIZES = (1, 3, 128, 255, 256, 300, 1000, 4096, 40_000)


def hot(rng: np.random.Generator, n: int) -> np.ndarray:
    x = rng.normal(size=(n, 6))
    x[:128] *= 1e4
    return x


def far_row(rng: np.random.Generator, n: int) -> np.ndarray:
    x = rng.normal(size=(n, 6))
    x[0] = 1e6
    return x


DATA = {
    "a hot block": hot,
    "a far row": far_row,
    "sorted lognormal": lambda rng, n: np.sort(rng.lognormal(0, 2, (n, 6)), axis=0),
    "sorted Cauchy": lambda rng, n: np.sort(rng.standard_cauchy((n, 6)), axis=0),
    "two values": lambda rng, n: 0.1 * (rng.random((n, 6)) < 0.1),
    "two values, sorted": lambda rng, n: np.sort(0.1 * (rng.random((n, 6)) < 0.1), axis=0),
    "constant but for ten": lambda rng, n: np.where(np.arange(n)[:, None] < n - 10, 3.3, 1e4) + np.zeros(6),
    "an offset": lambda rng, n: rng.normal(size=(n, 6)) + 1000,
}


@pytest.mark.parametrize("name", DATA)
@pytest.mark.parametrize("weighted", [False, True])
def test_float32_scatter_does_not_depend_on_order(name: str, weighted: bool) -> None:
    rng = np.random.default_rng(0)
    for n in SIZES:
        rows = DATA[name](rng, n).astype(np.float32)
        for x in (rows, np.ascontiguousarray(rows[::-1]), rows[rng.permutation(n)]):
            w = rng.integers(1, 4, n).astype(np.float64) if weighted else None
            _, centre, scatter = kernels.scatter(x, w)
            exact = x.astype(np.longdouble)
            each = np.ones(n) if w is None else w
            mean = (each[:, None] * exact).sum(axis=0) / each.sum()
            away = exact - mean
            squares = (each[:, None] * away * away).sum(axis=0).astype(np.float64)
            width = np.sqrt(np.where(squares > 0, squares, 1.0))
            away = (away * np.sqrt(each)[:, None] / width).astype(np.float64)
            found = np.triu(scatter / width / width[:, None])
            np.testing.assert_allclose(found, np.triu(away.T @ away), atol=1e-6, err_msg=f"{n} rows")
            np.testing.assert_allclose(
                centre[0] + centre[1], mean.astype(np.float64), rtol=1e-6, atol=1e-6 * width.max()
            )


@pytest.mark.parametrize("weighted", [False, True])
def test_a_column_of_negative_zeros_is_one_of_zeros(weighted: bool) -> None:
    """It was taken for values too small for float32, and all columns were summed again in float64."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(1000, 20)).astype(np.float32)
    w = rng.integers(1, 4, 1000).astype(np.float64) if weighted else None
    x[:, 3] = 0.0
    zeros = kernels.scatter(x, w)
    x[:, 3] = -0.0
    negative = kernels.scatter(x, w)
    np.testing.assert_array_equal(negative[2], zeros[2])
    np.testing.assert_array_equal(negative[1], zeros[1])
    assert not np.array_equal(np.triu(zeros[2]), kernels.scatter(x.astype(np.float64), w)[2])  # it would be noticed
