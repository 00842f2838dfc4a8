"""Rows far from the others: along the directions kept (Hotelling's T2), and away from them (the residual)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from foldwise.data.image_shape import names_of_columns
from foldwise.data.source import Source
from foldwise.fold.passes import Passes
from foldwise.models.base import with_missing
from foldwise.models.exploration import distances_of
from foldwise.models.pca import PCA
from foldwise.selection.explore.result import Outliers

LEVEL = 0.999
_MOST_LISTED = 30


def distances(pca: PCA, source: Source, components: int) -> NDArray[np.float32]:
    """For every row T2 (over that many components) and the residual (squared distance from their plane), in one pass."""
    return Passes(with_missing(pca, source), n_threads=pca.n_threads).rows(distances_of(pca, components))


def find_outliers(pca: PCA, source: Source, found: NDArray[np.float32], components: int) -> Outliers:
    """The rows beyond the limits that few rows of one normal cloud exceed, the most extreme first."""
    n = round(float(pca.total_weight_))  # a weight counts as repetition
    t2_limit, residual_limit = _t2_limit(n, components), _residual_limit(pca, components)
    t2, residual = found[:, 0].astype(np.float64), found[:, 1].astype(np.float64)
    beyond = np.maximum(t2 / t2_limit, residual / residual_limit if residual_limit > 0 else 0.0)
    beyond = np.nan_to_num(beyond)
    out = np.flatnonzero(beyond > 1.0)
    listed = out[np.argsort(-beyond[out], kind="stable")[:_MOST_LISTED]]
    return Outliers(
        rows=listed.astype(np.int64),
        t2=t2[listed],
        residual=residual[listed],
        columns=_columns_apart(pca, source, listed),
        components=components,
        t2_limit=t2_limit,
        residual_limit=residual_limit,
        t2_count=int(np.count_nonzero(t2 > t2_limit)),
        residual_count=int(np.count_nonzero(residual > residual_limit)) if residual_limit > 0 else 0,
        level=LEVEL,
        expected=n * (1 - LEVEL),
        count=len(out),
    )


def _t2_limit(n: int, m: int) -> float:
    """What a row of a normal table exceeds with a chance of 1 - LEVEL; mean and variances are estimated with it.

    T2 of a row of the fit follows (n - 1)^2 / n times a beta distribution (Tracy, Young and Mason 1992).
    """
    from scipy.stats import beta, chi2

    if n > m + 2:
        return float((n - 1) ** 2 / n * beta.ppf(LEVEL, m / 2, (n - m - 1) / 2))
    return float(chi2.ppf(LEVEL, m))


def _residual_limit(pca: PCA, m: int) -> float:
    """The same for the residual, by the variances of the directions left out (Jackson and Mudholkar 1979); NaN if none are."""
    from scipy.stats import norm

    variances = np.asarray(pca.explained_variance_, dtype=np.float64)
    rest = max(float(np.sum(pca.column_variances_)) - float(variances.sum()), 0.0)
    more = pca.n_features_in_ - len(variances)
    total = float(np.sum(pca.column_variances_))
    first, second, third = (float((variances[m:] ** power).sum()) for power in (1, 2, 3))
    if more > 0 and rest > 0:  # not computed: taken for equal
        more = max(1, min(more, int(pca.total_weight_) - 1 - len(variances)))
        first, second, third = first + rest, second + rest**2 / more, third + rest**3 / more**2
    if first <= 1e-9 * total or second <= 0:
        return float("nan")
    h = 1 - 2 * first * third / (3 * second**2)
    h = h if abs(h) > 1e-3 else 1e-3
    inner = norm.ppf(LEVEL) * np.sqrt(2 * second * h**2) / first + 1 + second * h * (h - 1) / first**2
    return float(first * max(inner, 1e-12) ** (1 / h))


def _columns_apart(pca: PCA, source: Source, which: NDArray[np.intp]) -> tuple[str, ...]:
    """For each row the column in which it lies farthest from the mean, in standard deviations."""
    if not len(which):
        return ()
    passes = Passes(with_missing(pca, source), n_threads=pca.n_threads)
    rows = passes.take(which).astype(np.float64)
    deviation = np.sqrt(np.asarray(pca.column_variances_, dtype=np.float64))
    if pca.scale_ is not None:
        deviation = deviation * pca.scale_
    away = np.abs(rows - np.asarray(pca.mean_, dtype=np.float64)) / np.where(deviation > 0, deviation, np.inf)
    places = np.argmax(np.nan_to_num(away), axis=1)
    names = names_of_columns(source)
    return tuple(str(names[j]) for j in places)
