"""Results that must not hang on the last digit of a product: the same with OpenBLAS's kernels for other processors."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

_SHOWN = """
import numpy as np
import foldwise as fw
rows = [[0.0], [1.0], [2.0], [10.0], [11.0], [12.0], [30.0], [31.0]]
for consensus in ("spectral", "kmeans", "average"):
    print(fw.ClusterEnsemble(3, consensus=consensus).fit(rows).labels_)
f = np.array([[1, 1, 2, 2, 2, 3, 3], [2, 3, 3, 2, 2, 1, 1], [3, 3, 1, 1, 1, 2, 2], [1, 3, 3, 4, 4, 2, 2]])
for consensus in ("spectral", "kmeans", "average"):
    print(fw.ClusterEnsemble(3, consensus=consensus).fit_labels(f.T).labels_)
wine = fw.scan("examples/wine.csv", columns="numeric")
kmeans = fw.KMeans(3, scale=True).fit(wine)
print(fw.stability(kmeans, wine, n_repeats=20))
print(fw.choose_clusters(np.concatenate([piece.load().dense() for piece in wine.pieces()]), range(1, 5), scale=True))
"""


def shown(core: str | None) -> str:
    """What a new process prints in which OpenBLAS takes the kernels for such a processor; None: for this one."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("OPENBLAS_")}
    if core is not None:
        env["OPENBLAS_CORETYPE"] = core
    return subprocess.run([sys.executable, "-c", _SHOWN], env=env, check=True, capture_output=True, text=True).stdout


@pytest.fixture(scope="module")
def by_default() -> str:
    return shown(None)


def test_equal_clusters_are_numbered_in_the_order_of_the_base_clusters(by_default: str) -> None:
    assert by_default.splitlines()[:3] == ["[0 0 0 1 1 1 2 2]"] * 3


@pytest.mark.parametrize("core", ["Haswell", "Prescott"])
def test_what_is_shown_does_not_depend_on_the_kernels_of_blas(by_default: str, core: str) -> None:
    assert shown(core) == by_default
