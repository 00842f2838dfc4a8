"""The scatter kernel on AVX-512 holds sums back until the next tile multiplies: none is lost, late or added twice."""

from __future__ import annotations

import hashlib
import subprocess
import sys

import numpy as np
import pytest

from foldwise import kernels
from foldwise.kernels import reference

# Rows: a few, less and more than the sums are held for, more than are packed at a time. Columns: one panel and several.
ROWS, COLUMNS = (256, 300, 303, 320, 511, 777, 1600), (20, 48, 49, 100, 145, 200)


def bits() -> str:
    """A hash of the moments of many shapes."""
    rng, found = np.random.default_rng(0), hashlib.sha256()
    for n in ROWS:
        for d in COLUMNS:
            x = (rng.standard_normal((n, d)) + 0.3).astype(np.float32)
            for weights in (None, rng.integers(0, 3, n) + 0.25):
                _, mean, scatter = kernels.scatter(x, weights)
                found.update(mean.tobytes() + scatter.tobytes())
    return found.hexdigest()


def test_the_same_bits_on_avx2_and_avx512(monkeypatch: pytest.MonkeyPatch) -> None:
    if kernels.instruction_set() != "avx512":
        pytest.skip("this processor, or FOLDWISE_ISA, has no AVX-512")
    monkeypatch.setenv("FOLDWISE_ISA", "avx2")
    command = [sys.executable, "-c", "from tests.kernels.test_scatter_bits import bits; print(bits())"]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    assert done.stdout.strip() == bits()


@pytest.mark.parametrize("n", ROWS)
@pytest.mark.parametrize("d", COLUMNS)
def test_as_the_reference(n: int, d: int) -> None:
    x = np.random.default_rng(n + d).standard_normal((n, d)).astype(np.float32)
    scatter, true = kernels.scatter(x, None)[2], reference.scatter(x, None)[2]
    np.testing.assert_allclose(np.triu(scatter), np.triu(true), atol=1e-6 * true.diagonal().max())
