"""All rows of a source as one array."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import scipy.sparse

from foldwise.data.cache import cached
from foldwise.data.scan import scan
from foldwise.fold.passes import Passes


def test_rows_that_are_adjacent_in_memory_are_not_copied() -> None:
    for n in (5, 100_000):  # one block, and several
        x = np.random.default_rng(n).normal(size=(n, 8))
        passes = Passes(cached(scan(x)), n_threads=2)
        whole = passes.whole()
        assert np.shares_memory(whole, x)
        np.testing.assert_array_equal(whole, x)
        assert passes.counter.passes == 0


def test_other_rows_are_copied(tmp_path: Path) -> None:
    x = np.random.default_rng(0).normal(size=(300, 4)).round(2)
    np.savetxt(tmp_path / "x.csv", x, delimiter=",", header="a,b,c,d", comments="")
    for given in (x[::-1], np.asfortranarray(x), scipy.sparse.csr_array(x), x.tolist(), tmp_path / "x.csv"):
        expected = x[::-1] if given is not x and isinstance(given, np.ndarray) and given.base is x else x
        np.testing.assert_array_equal(Passes(cached(scan(given)), n_threads=2).whole(), expected)
