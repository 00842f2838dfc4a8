"""Shared by the tests of the kernels: how closely a kernel must agree with its twin in reference.py."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from foldwise import kernels
from foldwise.kernels import reference

Check = Callable[[NDArray[Any], "NDArray[np.float64] | None"], None]


def _counted(x: NDArray[Any], weights: NDArray[np.float64] | None) -> tuple[NDArray[Any], NDArray[np.float64] | None]:
    """Without the rows of weight 0: the twin shifts by the first row, which should be one that counts."""
    return (x, None) if weights is None else (x[weights > 0], weights[weights > 0])


def _check_scatter(x: NDArray[Any], weights: NDArray[np.float64] | None) -> None:
    """Entries of the scatter are compared in units of the spreads of their two columns."""
    total, mean, scatter = kernels.scatter(x, weights)
    true_total, true_mean, true_scatter = reference.scatter(*_counted(x, weights))
    # float32 products are summed in float32 over short runs only; float64 never is.
    digits = 2e-6 if x.dtype == np.float32 else 1e-12
    norms = np.sqrt(np.diag(true_scatter))
    assert np.isclose(total, true_total, rtol=1e-14)
    assert not np.tril(scatter, -1).any()
    assert np.all(np.abs(scatter - true_scatter) <= digits * np.outer(norms, norms))
    _check_mean(mean, true_mean, norms, true_total, 1e-7 if x.dtype == np.float32 else 1e-13)


def _check_columns(x: NDArray[Any], weights: NDArray[np.float64] | None) -> None:
    total, mean, squares = kernels.columns(x, weights)
    true_total, true_mean, true_squares = reference.columns(*_counted(x, weights))
    assert np.isclose(total, true_total, rtol=1e-14)
    np.testing.assert_allclose(squares, true_squares, rtol=1e-11, atol=0)
    _check_mean(mean, true_mean, np.sqrt(true_squares), true_total, 1e-13)


def _check_mean(
    mean: NDArray[np.float64],
    truth: NDArray[np.float64],
    norms: NDArray[np.float64],
    total: float,
    digits: float,
) -> None:
    spread = norms / np.sqrt(total) if total > 0 else norms
    # In two parts, so that at an offset the distance is known better than either mean alone could tell.
    apart = (mean[0] - truth[0]) + (mean[1] - truth[1])
    assert np.all(np.abs(apart) <= digits * spread)


@pytest.fixture(scope="session")
def check_scatter() -> Check:
    return _check_scatter


@pytest.fixture(scope="session")
def check_columns() -> Check:
    return _check_columns


@pytest.fixture(params=[np.float32, np.float64], ids=["float32", "float64"])
def dtype(request: pytest.FixtureRequest) -> Any:
    return request.param


@pytest.fixture
def rows(dtype: Any) -> NDArray[Any]:
    return (np.random.default_rng(0).standard_normal((1003, 29)) + 5).astype(dtype)


@pytest.fixture
def prints_by_isa(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], set[str]]:
    """What a program prints with the kernels for AVX2 and with those for AVX-512: one text if they have the same bits."""
    if kernels.instruction_set() != "avx512":
        pytest.skip("this processor, or FOLDWISE_ISA, has no AVX-512")

    def run(program: str) -> set[str]:
        seen = set()
        for isa in ("avx2", "avx512"):
            monkeypatch.setenv("FOLDWISE_ISA", isa)
            seen.add(subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True).stdout)
        return seen

    return run
