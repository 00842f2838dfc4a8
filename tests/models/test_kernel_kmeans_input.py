"""What KernelKMeans refuses, and how it says so."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import NotFittedError
from sklearn.metrics.pairwise import rbf_kernel

import foldwise as fw
from foldwise.errors import DataError, NotFinishedWarning, ParameterError
from foldwise.models.kernel.exact import NotPositiveWarning
from foldwise.models.kernel.parameters import refusal

X = np.random.default_rng(0).standard_normal((40, 3))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"kernel": "precomputed", "approximation": "nystroem"}, "nothing to approximate"),
        ({"kernel": "poly", "approximation": "random-features"}, "random features are for kernel='rbf'"),
        ({"normalize": True, "approximation": "nystroem"}, "needs the exact kernel"),
        ({"normalize": True, "kernel": "linear"}, "without negative values"),
        ({"approximation": "nystroem", "init": np.zeros(40, dtype=int)}, "for exact fits"),
        ({"init": np.zeros(39, dtype=int)}, "40 whole numbers"),
        ({"init": np.zeros(40)}, "whole numbers, not float64"),
        ({"init": np.full(40, 3)}, "from 0 to 2"),
        ({"kernel": lambda a, b: np.zeros((2, 2))}, r"returned shape \(2, 2\) for 40 and 40 rows"),
        ({"kernel": lambda a, b: np.full((len(a), len(b)), np.nan)}, "NaN or infinity"),
        ({"kernel": lambda a, b: a @ (b * [1, 2, 3]).T + a[:, :1]}, "not symmetric"),
    ],
)
def test_parameters(options: dict[str, Any], words: str) -> None:
    with pytest.raises(ParameterError, match=words):
        fw.KernelKMeans(3, **options).fit(X)


@pytest.mark.parametrize(
    "options", [{"gamma": 0}, {"gamma": -1.0}, {"kernel": "cubic"}, {"n_clusters": 0}, {"tol": -1}]
)
def test_values_that_can_not_be_meant(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(options))):
        fw.KernelKMeans(**options).fit(X)


def test_precomputed_matrices() -> None:
    matrix = rbf_kernel(X)
    with pytest.raises(DataError, match="as many columns as rows, not 40 x 39"):
        fw.KernelKMeans(2, kernel="precomputed").fit(matrix[:, 1:])
    bad = matrix.copy()
    bad[3, 7] += 0.5
    with pytest.raises(DataError, match="not symmetric"):
        fw.KernelKMeans(2, kernel="precomputed").fit(bad)
    bad[3, 7] = np.nan
    with pytest.raises(DataError, match="NaN") as caught:
        fw.KernelKMeans(2, kernel="precomputed").fit(bad)
    assert (caught.value.row, caught.value.column) == (3, 7)
    with pytest.raises(DataError, match="must be dense"):
        fw.KernelKMeans(2, kernel="precomputed").fit(sp.csr_array(matrix))
    model = fw.KernelKMeans(2, kernel="precomputed").fit(matrix)
    with pytest.raises(DataError, match="one column for each row of the fit"):
        model.predict(matrix[:, 1:])
    with pytest.raises(ParameterError, match="kernel of each new row with itself"):
        model.transform(matrix[:5])


def test_a_precomputed_matrix_in_a_file(tmp_path: Path) -> None:
    matrix = rbf_kernel(X)
    np.save(tmp_path / "k.npy", matrix)
    one, two = (fw.KernelKMeans(3, kernel="precomputed").fit(given) for given in (matrix, tmp_path / "k.npy"))
    np.testing.assert_array_equal(one.labels_, two.labels_)
    assert one.inertia_ == two.inertia_


def test_a_matrix_of_no_space_is_told_and_ends() -> None:
    rng = np.random.default_rng(0)
    matrix = rng.standard_normal((60, 60))
    matrix += matrix.T
    with pytest.warns(NotPositiveWarning, match="not positive semi-definite"), pytest.warns(NotFinishedWarning):
        model = fw.KernelKMeans(4, kernel="precomputed", n_init=1).fit(matrix)
    assert model.outcome_.steps < 100  # it goes round in circles, and is stopped
    np.testing.assert_array_equal(model.predict(matrix), model.labels_)


def test_too_few_rows() -> None:
    with pytest.raises(DataError, match="n_samples=2 should be >= n_clusters=3"):
        fw.KernelKMeans(3).fit(X[:2])
    with pytest.raises(DataError, match="more than the 2 rows whose weight is not 0"):
        fw.KernelKMeans(3).fit(X, sample_weight=np.arange(40) < 2)


def test_laplacian_of_sparse_rows() -> None:
    with pytest.raises(DataError, match="toarray"):
        fw.KernelKMeans(2, kernel="laplacian", gamma=1.0).fit(sp.csr_array(X))


def test_what_would_take_too_long_is_refused_with_advice() -> None:
    problem = refusal(1_000_000, 10, 10, 2, 2**29, timed=False)
    assert problem is not None
    assert "minutes" in str(problem)
    assert "approximation='nystroem'" in str(problem)
    assert refusal(1_000_000, 10, 10, 2, 2**29, timed=True) is None  # whoever gives a time budget may try
    assert refusal(20_000, 50, 10, 2, 256e6, timed=False) is None
    crowded = refusal(10_000_000, 100, 10, 2, 2**29, timed=True)
    assert crowded is not None
    assert "memory_budget" in str(crowded)
    big = np.zeros((400_000, 1), dtype=np.float32)
    with pytest.raises(DataError, match="400,000 rows has"):
        fw.KernelKMeans(2).fit(big)


def test_auto_takes_landmarks_where_exact_would_not_do() -> None:
    x = np.random.default_rng(0).standard_normal((3000, 2))
    small = fw.KernelKMeans(2, approximation="auto").fit(x)
    assert "exact" in small.manifest_.algorithm
    x = np.random.default_rng(0).standard_normal((20_000, 8))
    large = fw.KernelKMeans(2, approximation="auto", n_features=20, memory_budget=2**20).fit(x)
    assert "nystroem" in large.manifest_.algorithm
    many = np.random.default_rng(0).standard_normal((400_000, 1)).astype(np.float32)
    with pytest.warns(NotFinishedWarning):  # a time budget is no wish for an exact fit
        timed = fw.KernelKMeans(2, approximation="auto", n_features=4, time_budget=0.0).fit(many)
    assert "nystroem" in timed.manifest_.algorithm


def test_names_and_counts_of_columns() -> None:
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    model = fw.KernelKMeans(2).fit(frame)
    np.testing.assert_array_equal(model.feature_names_in_, ["a", "b", "c"])
    np.testing.assert_array_equal(model.get_feature_names_out(), ["kernelkmeans0", "kernelkmeans1"])
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(frame[["b", "a", "c"]])
    with pytest.raises(DataError, match="expecting 3 features"):
        fw.KernelKMeans(2).fit(X).predict(X[:, :2])
    with pytest.raises(NotFittedError):
        fw.KernelKMeans(2).predict(X)


def test_a_failed_fit_leaves_the_model_as_it_was() -> None:
    model = fw.KernelKMeans(2).fit(X)
    before = model.labels_.copy()
    spoilt = X.copy()
    spoilt[5, 1] = np.inf
    with pytest.raises(DataError, match="row 5"):
        model.fit(spoilt)
    np.testing.assert_array_equal(model.labels_, before)


def test_ctrl_c_in_the_spectral_start_ends_the_fit() -> None:
    """It was swallowed there, and the fit said that it had converged."""
    from foldwise.fold import events

    def interrupt(event: events.Event) -> None:
        raise KeyboardInterrupt

    x = np.random.default_rng(0).normal(size=(200, 2))
    with events.listening(interrupt), pytest.raises(KeyboardInterrupt):
        fw.KernelKMeans(3).fit(x)
