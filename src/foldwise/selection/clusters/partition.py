"""Figures of the partitions themselves, compared with those of references without clusters."""

from __future__ import annotations

from typing import Any

import numpy as np

from foldwise.data.arrays import ArraySource
from foldwise.data.block import Floats
from foldwise.fold.passes import Passes
from foldwise.models.kmeans.geometry import EUCLIDEAN
from foldwise.selection.cluster_moments import grouped
from foldwise.selection.clusters.criterion import Judgement, vote
from foldwise.selection.clusters.references import REFERENCES, reference_names, reference_rows, reference_size
from foldwise.selection.clusters.resampling import agreement_after_resampling
from foldwise.selection.clusters.rows import Rows
from foldwise.selection.clusters.sweep import Labels, Sweep, Task, log_inertia, nearest
from foldwise.selection.separation import calinski_harabasz_of, davies_bouldin_of, radii
from foldwise.selection.silhouette import silhouette_of

_CLEAR = 3.0  # standard deviations of the references above their mean
_SILHOUETTE_ROWS = 1_000  # evaluated, each against all others; all up to 4,000
_REFERENCE_SILHOUETTES = 300
_MOST = 1e12  # figures are infinite where all rows of each cluster are equal


class _OfPartition:
    """The number with the best figure, if that is clearly better than what references have; otherwise 1."""

    name = label = ""
    weight = 1.0
    sign = 1.0  # -1 if lower is better
    best = "largest"

    @staticmethod
    def growth(ks: Floats, rows: float, reference_rows: float) -> Floats:
        """By what the figure of references grows if they had as many rows as the data."""
        return np.ones(len(ks))

    def figure(self, rows: Rows, labels: Labels, k: int, seed: int, *, reference: bool) -> tuple[float, float]:
        """The figure, and its standard error."""
        raise NotImplementedError

    def tasks(self, sweep: Sweep) -> list[Task]:
        """The figures of the rows, and those of the references."""
        own = [Task(f"{self.name} {k}", lambda k=k: self._run(sweep, k)) for k in sweep.several]  # type: ignore[misc]
        return [*own, *reference_tasks(sweep)]

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
        weight = float(sweep.rows.weight.sum())
        growth = self.growth(
            np.array(ks), weight, float(sweep.rows.at_most(reference_size(sweep), sweep.seed).weight.sum())
        )
        for kind in REFERENCES:
            found = np.array([sweep.state[f"{self.name} of {name}"] for name in reference_names(kind)]) * growth
            mean, spread = found.mean(axis=0), found.std(axis=0, ddof=1)
            above = np.minimum(above, self.sign * (values - mean) / np.maximum(spread, 1e-12))
            null = np.where(self.sign * (mean - null) > 0, mean, np.where(np.isnan(null), mean, null))
            figures[kind] = mean
        at = int(np.argmax(self.sign * values))
        as_good = [ks[i] for i in range(len(ks)) if abs(values[i] - values[at]) <= 2 * np.hypot(errors[i], errors[at])]
        if above[at] < _CLEAR:
            reason = (
                f"{self.best} at {ks[at]} ({values[at]:.3g}), not clearly better than without clusters ({null[at]:.3g})"
            )
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
        found = silhouette_of(
            _passes(rows), labels.astype(np.int32), tuple(range(k)), geometry=EUCLIDEAN, sample_size=size, seed=seed
        )
        return found.mean, found.standard_error


class CalinskiHarabasz(_OfPartition):
    """The variance ratio."""

    name, label, weight = "calinski-harabasz", "variance ratio (Calinski-Harabasz)", 0.5

    @staticmethod
    def growth(ks: Floats, rows: float, reference_rows: float) -> Floats:
        """In proportion to the degrees of freedom within clusters."""
        return np.asarray((rows - ks) / (reference_rows - ks))

    def figure(self, rows: Rows, labels: Labels, k: int, seed: int, *, reference: bool) -> tuple[float, float]:
        """Variance between clusters over that within."""
        groups, _ = grouped(_passes(rows), labels, k)
        if np.count_nonzero(groups.weight) < 2 or groups.weight.sum() <= k:
            return 0.0, 0.0
        return min(calinski_harabasz_of(groups), _MOST), 0.0


class DaviesBouldin(_OfPartition):
    """The Davies-Bouldin index."""

    name, label, weight = "davies-bouldin", "Davies-Bouldin index", 0.5
    sign, best = -1.0, "smallest"

    def figure(self, rows: Rows, labels: Labels, k: int, seed: int, *, reference: bool) -> tuple[float, float]:
        """The mean, over clusters, of the largest ratio of radii to the distance between two centres."""
        passes = _passes(rows)
        known = grouped(passes, labels, k)
        if np.count_nonzero(known[0].weight) < 2:
            return _MOST, 0.0
        return min(davies_bouldin_of(known[0], radii(passes, labels, known)), _MOST), 0.0


def _passes(rows: Rows) -> Passes:
    return Passes(ArraySource(rows.x, weights=rows.weights), n_threads=1)


PARTITION: tuple[_OfPartition, ...] = (Silhouette(), CalinskiHarabasz(), DaviesBouldin())


def reference_tasks(sweep: Sweep) -> list[Task]:
    """The fits to references, and all that criteria want to know of them."""
    names = [(kind, number, name) for kind in REFERENCES for number, name in enumerate(reference_names(kind))]
    return [
        Task(f"reference {name}", lambda kind=kind, number=number, name=name: _of_reference(sweep, kind, number, name))  # type: ignore[misc]
        for kind, number, name in names
    ]


def _of_reference(sweep: Sweep, kind: str, number: int, name: str) -> dict[str, Any]:
    rows = reference_rows(sweep.rows.at_most(reference_size(sweep), sweep.seed), kind, number, sweep.seed)
    found: dict[str, list[float]] = {
        what: [] for what in (*(one.name for one in PARTITION), "log inertia", "stability")
    }
    for place, k in enumerate(sweep.ks):
        centres = sweep.quick(rows, k, 10, number, place)
        found["log inertia"].append(log_inertia(rows, centres))
        if k == 1:
            continue
        labels = nearest(rows.x, centres)
        for one in PARTITION:
            found[one.name].append(one.figure(rows, labels, k, sweep.seed, reference=True)[0])
        found["stability"].append(agreement_after_resampling(sweep, rows, labels, k, 100 + number))
    return {f"{what} of {name}": np.array(values) for what, values in found.items()}
