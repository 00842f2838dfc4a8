"""Shared by the tests of k-means: what must hold after every fit, however it ended."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from foldwise.kernels import reference


def _dense(x: Any) -> np.ndarray:
    return x.toarray() if hasattr(x, "toarray") else np.asarray(x)


def _check_consistent(km: Any, x: Any, weights: Any = None, *, brute: bool = True) -> None:
    """Labels are those of predict and of brute force, and the inertia is that of labels and centres in longdouble."""
    rows, centres = _dense(x), km.cluster_centers_
    if rows.dtype != np.float32:
        rows = rows.astype(np.float64)
    w = np.ones(len(rows)) if weights is None else np.asarray(weights, dtype=np.float64)
    assert centres.shape == (km.n_clusters, rows.shape[1])
    assert centres.dtype == rows.dtype
    assert km.labels_.dtype == np.int32
    np.testing.assert_array_equal(km.predict(x), km.labels_)
    if brute:
        np.testing.assert_array_equal(reference.nearest(rows, centres), km.labels_)
    gap = rows.astype(np.longdouble) - centres[km.labels_].astype(np.longdouble)
    each = (gap**2).sum(axis=1) * w
    true = each.sum()
    assert abs(km.inertia_ - true) <= 1e-12 * true
    by_cluster = np.array([float(each[km.labels_ == c].sum()) for c in range(km.n_clusters)])
    np.testing.assert_allclose(km.cluster_inertias_, by_cluster, rtol=1e-12)
    np.testing.assert_allclose(
        km.cluster_weights_, np.bincount(km.labels_, w, minlength=km.n_clusters), rtol=1e-12, atol=0
    )
    _check_descent(km.trace_, rows, w)


def _check_descent(trace: Any, rows: np.ndarray, w: np.ndarray) -> None:
    """Within a run, no E- and no M-half-step raises the inertia, beyond rounding of the whole spread."""
    mean = (rows.astype(np.longdouble) * w[:, None]).sum(axis=0) / w.sum()
    total = float((((rows.astype(np.longdouble) - mean) ** 2).sum(axis=1) * w).sum())
    run, last = -1.0, np.inf
    # Means are rounded to the dtype of the rows.
    unit = np.finfo(rows.dtype).eps * np.abs(rows).max()
    within = 1e-12 * total + float(w.sum()) * rows.shape[1] * float(unit) ** 2
    for figures in trace:
        if figures["run"] != run:
            run, last = figures["run"], np.inf
        for name in ("inertia_after_e", "inertia"):
            assert figures[name] <= last + within, (name, figures, last)
            last = figures[name]


def _check_means(km: Any, x: Any, weights: Any = None) -> None:
    """Centres are the means of their members, to rounding in their dtype."""
    rows = _dense(x)
    w = np.ones(len(rows)) if weights is None else np.asarray(weights, dtype=np.float64)
    for number, centre in enumerate(km.cluster_centers_):
        here = km.labels_ == number
        total = w[here].astype(np.longdouble).sum()
        if total > 0:
            mean = (rows[here].astype(np.longdouble) * w[here, None]).sum(axis=0) / total
            # A unit in the last place of the centre, and what the grid of exact sums (2^-60 of the range) leaves out.
            within = np.spacing(np.abs(centre)) + 1e-15 * np.ptp(rows.astype(np.float64), axis=0).max()
            assert np.all(np.abs(centre - mean) <= within)


@pytest.fixture(scope="session")
def check_consistent() -> Callable[..., None]:
    return _check_consistent


@pytest.fixture(scope="session")
def check_means() -> Callable[..., None]:
    return _check_means


@pytest.fixture(scope="session")
def blobs() -> Callable[..., np.ndarray]:
    """Rows about random centres."""

    def make(
        n: int = 400, d: int = 3, k: int = 5, *, spread: float = 0.3, dtype: Any = np.float64, seed: int = 0
    ) -> Any:
        rng = np.random.default_rng(seed)
        middles = rng.standard_normal((k, d)) * 3
        return (middles[rng.integers(k, size=n)] + spread * rng.standard_normal((n, d))).astype(dtype)

    return make


@pytest.fixture
def as_if_large(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small tables are treated as large ones: k-means makes all of its steps in passes over blocks."""
    monkeypatch.setattr("foldwise.models.kmeans.small_table.EFFORTS", {})
    monkeypatch.setattr("foldwise.models.kmeans.brief_starts._TOO_MUCH", 0)
