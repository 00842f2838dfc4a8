"""Rows by number: the same whatever their order, the kind of rows and the number of threads."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from foldwise.data.scan import scan
from foldwise.fold.passes import Passes


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rows_by_number(dtype: Any, threads: int) -> None:
    rng = np.random.default_rng(0)
    x = rng.standard_normal((9000, 300)).astype(dtype)  # several blocks
    passes = Passes(scan(x), n_threads=threads)
    assert passes.block_rows < 4500
    rising = np.sort(rng.integers(0, 9000, 4000))  # some more than once
    for numbers in (rising, rng.permutation(rising), rising[:1], rising[:0], np.array([8999]), [5, 3, 5]):
        found = passes.take(numbers)
        assert found.dtype == dtype
        np.testing.assert_array_equal(found, x[np.asarray(numbers, dtype=np.intp)])


def test_rows_of_a_file_and_sparse_rows_by_number(tmp_path: Any) -> None:
    rng = np.random.default_rng(0)
    x = rng.standard_normal((20_000, 40)) * (rng.random((20_000, 40)) < 0.2)
    np.save(tmp_path / "x.npy", x)
    numbers = np.arange(3, 20_000, 7)
    for given in (str(tmp_path / "x.npy"), sp.csr_array(x)):
        np.testing.assert_array_equal(Passes(scan(given), n_threads=2).take(numbers), x[numbers])
