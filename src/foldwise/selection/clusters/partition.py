"""Figures of the partitions themselves, compared with those of references without clusters."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from foldwise.data.arrays import ArraySource
from foldwise.data.block import Floats
from foldwise.fold.passes import Passes
from foldwise.models.kmeans.geometry import EUCLIDEAN
from foldwise.selection.clusters.criterion import Criterion, Judgement, vote
from foldwise.selection.clusters.references import REFERENCES, reference_names, reference_rows
from foldwise.selection.clusters.rows import Rows
from foldwise.selection.clusters.sweep import Labels, Sweep, Task, nearest
from foldwise.selection.silhouette import silhouette_of

_CLEAR = 3.0  # standard deviations of the references above their mean
_SILHOUETTE_ROWS = 1_000  # evaluated, each against all others; all up to 4,000
_REFERENCE_SILHOUETTES = 300


class _OfPartition:
    """The number with the best figure, if that is clearly better than what references have; otherwise 1."""

    name = label = ""
    weight = 1.0
    sign = 1.0  # -1 if lower is better
    best = "largest"

    def figure(self, rows: Rows, labels: Labels, k: int, seed: int, *, reference: bool) -> tuple[float, float]:
        """The figure, and its standard error."""
        raise NotImplementedError

    def tasks(self, sweep: Sweep) -> list[Task]:
        """The figures of the rows; those of the references are `references.py`'s."""
        return [Task(f"{self.name} {k}", lambda k=k: self._run(sweep, k)) for k in sweep.several]  # type: ignore[misc]

    def _run(self, sweep: Sweep, k: int) -> dict[str, Any]:
        found = self.figure(sweep.rows, sweep.labels(k), k, sweep.seed, reference=False)
        return {f"{self.name} {k}": np.array(found)}

    def judge(self, sweep: Sweep) -> Judgement:
        """The vote."""
        ks = sweep.several
        values, errors = np.array([sweep.state[f"{self.name} {k}"] for k in ks]).T
        null = np.full(len(ks), np.nan)
        figures: dict[str, Floats] = {}
        above = np.full(len(ks), np.inf)
        for kind in REFERENCES:
            found = np.array([sweep.state[f"{self.name} of {name}"] for name in reference_names(kind)])
            mean, spread = found.mean(axis=0), found.std(axis=0, ddof=1)
            above = np.minimum(above, self.sign * (values - mean) / np.maximum(spread, 1e-12))
            null = np.where(self.sign * (mean - null) > 0, mean, np.where(np.isnan(null), mean, null))
            figures[kind] = mean
        at = int(np.argmax(self.sign * values))
        as_good = [ks[i] for i in range(len(ks)) if abs(values[i] - values[at]) <= 2 * np.hypot(errors[i], errors[at])]
        if above[at] < _CLEAR:
            reason = f"{self.best} at {ks[at]} ({values[at]:.3g}), but rows without clusters have {null[at]:.3g}"
            return Judgement(vote(self, 1, reason), ks, values, errors, null, figures)
        reason = f"{self.best} at {ks[at]}: {values[at]:.3g}, where rows without clusters have {null[at]:.3g}"
        return Judgement(vote(self, ks[at], reason, as_good), ks, values, errors, null, figures)


class Silhouette(_OfPartition):
    """The mean silhouette, the classical one."""

    name, label = "silhouette", "mean silhouette"

    def figure(self, rows: Rows, labels: Labels, k: int, seed: int, *, reference: bool) -> tuple[float, float]:
        """From all rows, or from a sample of them compared with all others."""
        if len(np.unique(labels)) < 2:
            return -1.0, 0.0
        size = _REFERENCE_SILHOUETTES if reference else None if rows.n <= 4_000 else _SILHOUETTE_ROWS
        passes = Passes(ArraySource(rows.x, weights=rows.weights), n_threads=1)
        found = silhouette_of(
            passes, labels.astype(np.int32), tuple(range(k)), geometry=EUCLIDEAN, sample_size=size, seed=seed
        )
        return found.mean, found.standard_error


class CalinskiHarabasz(_OfPartition):
    """The variance ratio."""

    name, label, weight = "calinski-harabasz", "variance ratio (Calinski-Harabasz)", 0.5

    def figure(self, rows: Rows, labels: Labels, k: int, seed: int, *, reference: bool) -> tuple[float, float]:
        """Variance between clusters over that within."""
        weights, means, within = _moments(rows, labels, k)
        total = weights.sum()
        middle = weights @ means / total
        between = float(weights @ np.square(means - middle).sum(axis=1))
        inside = float(within.sum())
        some = int(np.count_nonzero(weights))
        if some < 2 or total <= some:
            return 0.0, 0.0
        return between / (some - 1) / max(inside / (total - some), 1e-300), 0.0


class DaviesBouldin(_OfPartition):
    """The Davies-Bouldin index."""

    name, label, weight = "davies-bouldin", "Davies-Bouldin index", 0.5
    sign, best = -1.0, "smallest"

    def figure(self, rows: Rows, labels: Labels, k: int, seed: int, *, reference: bool) -> tuple[float, float]:
        """The mean, over clusters, of the largest ratio of radii to the distance between two centres."""
        weights, means, _ = _moments(rows, labels, k)
        far = np.sqrt(np.square(rows.x - means[labels]).sum(axis=1))
        some = weights > 0
        if np.count_nonzero(some) < 2:
            return 1e6, 0.0
        radius = np.bincount(labels, far * rows.weight, minlength=k)[some] / weights[some]
        apart = np.sqrt(np.square(means[some][:, None] - means[some]).sum(axis=2))
        np.fill_diagonal(apart, np.inf)
        return float(((radius[:, None] + radius) / np.maximum(apart, 1e-300)).max(axis=1).mean()), 0.0


def _moments(rows: Rows, labels: Labels, k: int) -> tuple[Floats, Floats, Floats]:
    """The weight, the mean and the sum of squares of each cluster."""
    weight = rows.weight
    weights = np.bincount(labels, weight, minlength=k)
    sums = np.zeros((k, rows.x.shape[1]))
    np.add.at(sums, labels, rows.x * weight[:, None])
    means = sums / np.maximum(weights, 1e-300)[:, None]
    squares = np.square(rows.x - means[labels]).sum(axis=1) * weight
    return weights, means, np.bincount(labels, squares, minlength=k)


PARTITION: tuple[_OfPartition, ...] = (Silhouette(), CalinskiHarabasz(), DaviesBouldin())


def reference_figures(rows: Rows, fits: Callable[[int], Floats], ks: tuple[int, ...], seed: int) -> dict[str, Floats]:
    """The figures of all partition criteria for a reference."""
    found: dict[str, list[float]] = {one.name: [] for one in PARTITION}
    for k in ks:
        labels = nearest(rows.x, fits(k))
        for one in PARTITION:
            found[one.name].append(one.figure(rows, labels, k, seed, reference=True)[0])
    return {name: np.array(values) for name, values in found.items()}


__all__ = ["PARTITION", "CalinskiHarabasz", "Criterion", "DaviesBouldin", "Silhouette", "reference_figures", "reference_rows"]
