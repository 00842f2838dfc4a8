"""The numbers of the clusters of KernelKMeans: by size, and of equal sizes by what does not depend on the order of the rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.utils.estimator_checks import check_estimator

import foldwise as fw
from foldwise.data.block import block_of
from foldwise.models.kernel.numbering import by_size

CENTRES = np.array([[0.0, 0.0], [20.0, 3.0], [7.0, 25.0], [30.0, 30.0]])


def groups(seed: int, each: int = 10) -> np.ndarray:
    """Four groups of equal size."""
    return np.repeat(CENTRES, each, axis=0) + np.random.default_rng(seed).standard_normal((4 * each, 2))


OPTIONS: list[dict[str, Any]] = [
    {},
    {"normalize": True},
    {"kernel": "linear"},
    {"kernel": "laplacian"},
    {"init": "k-means++"},
    {"init": "spectral"},
    {"approximation": "nystroem", "n_features": 20},
    {"approximation": "random-features", "n_features": 200},
]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_permuted_rows_have_permuted_labels(options: dict[str, Any]) -> None:
    """Equal sizes were numbered by their first row."""
    x = groups(0)
    labels = fw.KernelKMeans(4, **options).fit_predict(x)
    assert len(np.unique(labels)) == 4
    for seed in range(3):
        order = np.random.default_rng(seed).permutation(len(x))
        np.testing.assert_array_equal(fw.KernelKMeans(4, **options).fit_predict(x[order]), labels[order])


@pytest.mark.parametrize("form", ["sparse", "precomputed", "weighted"])
def test_in_other_forms(form: str) -> None:
    x, order = groups(1), np.random.default_rng(1).permutation(40)
    weights = np.tile([1.0, 2.0, 0.5, 0.25, 3.0], 8) if form == "weighted" else None
    kernel = "precomputed" if form == "precomputed" else "rbf"

    def data(rows: np.ndarray) -> Any:
        return sp.csr_array(rows) if form == "sparse" else rbf_kernel(rows, gamma=0.01) if weights is None else rows

    one = fw.KernelKMeans(4, kernel=kernel).fit(data(x), sample_weight=weights)
    two = fw.KernelKMeans(4, kernel=kernel).fit(
        data(x[order]), sample_weight=None if weights is None else weights[order]
    )
    np.testing.assert_array_equal(two.labels_, one.labels_[order])


def test_by_hand() -> None:
    x = block_of(np.array([[5.0, 1], [5, 0], [1, 9], [1, 2], [0, 0], [3, 3], [1, 1]]))
    members = np.array([0, 0, 1, 1, 2, 3, 2], dtype=np.int32)
    # Three clusters of two rows, with least rows (5, 0), (1, 2) and (0, 0), and one of one row.
    np.testing.assert_array_equal(by_size(members, np.ones(7), 5, x), [2, 1, 0, 3, 4])
    # The row (0, 0) does not count: then cluster 2 has one row, (1, 1), which comes before (3, 3).
    np.testing.assert_array_equal(by_size(members, np.array([1.0, 1, 1, 1, 0, 1, 1]), 5, x), [1, 0, 2, 3, 4])
    # Without rows: the longest mean first, if they differ by more than rounding; else the first row decides.
    norms = np.array([0.5, 0.7 + 1e-15, 0.7, 0.1, 0.0])
    np.testing.assert_array_equal(by_size(members, np.ones(7), 5, None, norms), [1, 2, 0, 3, 4])


@given(st.integers(0, 2**31), st.integers(1, 5))
def test_any_order_gives_the_same_numbers(seed: int, k: int) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 20))
    x = rng.permutation(np.arange(-n, n, dtype=float))[:n][:, None]  # distinct
    members, weights = rng.integers(0, k, n).astype(np.int32), rng.choice([0.0, 0.1, 0.2, 1.0], n)
    order = rng.permutation(n)
    for rows in (x, sp.csr_array(x)):
        one = by_size(members, weights, k, block_of(rows))
        two = by_size(members[order], weights[order], k, block_of(rows[order]))
        used = np.unique(members[weights > 0])
        np.testing.assert_array_equal([c for c in one if c in used], [c for c in two if c in used])
        totals = np.bincount(members, weights, minlength=k)[one]
        assert (np.diff(totals) <= 1e-9).all()


def test_approximate_fits_are_numbered_by_their_own_sizes() -> None:
    """They had the numbers of the sample's clusters."""
    rng = np.random.default_rng(3)
    x = np.concatenate([rng.normal(0, 1, (900, 2)), rng.normal(9, 1, (920, 2)), rng.normal(-9, 1, (910, 2))])
    for seed in range(3):
        model = fw.KernelKMeans(3, approximation="nystroem", n_features=20, random_state=seed).fit(x)
        np.testing.assert_array_equal(model.cluster_weights_, [920, 910, 900])
        np.testing.assert_array_equal(model.predict(x), model.labels_)


@pytest.mark.filterwarnings("ignore")
def test_scikit_learns_checks_with_defaults() -> None:
    """With eight clusters of few rows, many sizes are equal: two checks of weights failed."""
    failed = [each for each in check_estimator(fw.KernelKMeans(), on_fail=None) if each["status"] == "failed"]
    assert not failed, [(each["check_name"], each["exception"]) for each in failed]
