"""The fits behind the inertia curve: each number of clusters from its own start and from the centres of its neighbours."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from foldwise.data.block import Floats
from foldwise.errors import warn
from foldwise.fold.outcome import Reason
from foldwise.models.kmeans import KMeans
from foldwise.models.kmeans.assignment import Assignment
from foldwise.models.kmeans.centre_model import FewerClustersWarning, check_count
from foldwise.models.kmeans.descent import find_clusters
from foldwise.models.kmeans.label_order import ordered
from foldwise.models.kmeans.local_search import breathe_out, errors
from foldwise.models.kmeans.observed_data import data_of
from foldwise.models.kmeans.parameters import BOUNDS
from foldwise.models.session import Session
from foldwise.selection.silhouette import silhouette_of

_OFFSET = 0.01  # of a new centre from its parent, in root mean square distances of the parent's rows
_ROUGH = 1e-3  # tol of the descents that are compared; the best of them goes on to the tol asked for
_PROMISING = 1e-4  # a rough descent goes on if its inertia is at most this much, relatively, above the best
_SEARCHED_ROWS = 2_000  # up to this many rows, every start is followed by a search
_EXACT_ROWS, _SAMPLE_SIZE = 4_000, 300  # for the silhouettes


@dataclass(frozen=True)
class Fit:
    """The best fit so far for one number of clusters; the inertia is in units of the rescaled data."""

    centres: NDArray[Any]
    inertia: float
    converged: bool


@dataclass(frozen=True)
class CurvePoint:
    """The figures of one number of clusters, in the units of the data."""

    n_clusters: int
    centres: NDArray[Any]
    inertia: float
    silhouette: float
    silhouette_error: float
    converged: bool


class CurveFits:
    """All fits share one session: the data are prepared and summarised once."""

    def __init__(self, fit: Session, X: Any, parameters: dict[str, Any]) -> None:
        self.fit, self.X, self.parameters = fit, X, parameters
        model: KMeans = fit.model
        self.data = data_of(fit, model.geometry)
        few = self.data.n <= _SEARCHED_ROWS
        plain = model.search == "auto" and model.n_init != "auto"  # counted starts are just those
        self.search: str = parameters.get("search", "breathing" if few else "none" if plain else model.search)
        self.search_from_neighbours = self.search if few else "none"
        self.geometry, self.starts = model.geometry, model._n_starts()
        self.assignment = Assignment(self.data, bounds=BOUNDS[model.algorithm])
        self.best: dict[int, Fit] = {}
        self._distinct: tuple[int, int] | None = None

    def check_count(self, most: int) -> None:
        """Refuse fewer rows than clusters."""
        check_count(most, self.data.n, self.data.counted, self.fit.where)

    def improve(self, numbers: tuple[int, ...]) -> bool:
        """Fit all numbers, upwards and then downwards; whether Ctrl-C ended it with some of them finished."""
        try:
            for k in numbers:
                found = self._own(k)
                if self.best:
                    found = min(found, self._grown(max(self.best), k), key=_inertia)
                self.best[k] = self._settled(found)
            for fewer, more in reversed(list(itertools.pairwise(numbers))):
                if fewer > 1:
                    found = self._shrunk(more, fewer)
                    if found.inertia < self.best[fewer].inertia * (1 + _PROMISING):
                        self.best[fewer] = min(self.best[fewer], self._settled(found), key=_inertia)
        except KeyboardInterrupt:
            if not self.best:
                raise
            return True
        return False

    def points(self) -> tuple[list[CurvePoint], bool]:
        """The figures of all finished numbers; whether Ctrl-C ended this early with some of them finished."""
        found: list[CurvePoint] = []
        try:
            for k in sorted(self.best):
                found.append(self._point(k))  # noqa: PERF401  (what was found before Ctrl-C is kept)
        except KeyboardInterrupt:
            if not found:
                raise
            return found, True
        return found, False

    def warn_of_empty(self) -> None:
        """Warn if there were fewer distinct points than clusters."""
        if self._distinct is not None:
            found, k = self._distinct
            warn(
                f"Number of distinct clusters ({found}) found smaller than n_clusters ({k}). "
                "Possibly due to duplicate points in X.",
                FewerClustersWarning,
            )

    # ------------------------------------------------------------ starts

    def _own(self, k: int) -> Fit:
        """From the number's own start, as KMeans would."""
        make_start = KMeans(k, **self.parameters)._make_start(self.data, self.X, self.fit.seed)
        plusplus = isinstance(self.fit.model.init, str) and self.fit.model.init == "k-means++"
        return self._descend(k, make_start, self.starts, self.search, rough=True, plusplus=plusplus)

    def _grown(self, known: int, k: int) -> Fit:
        """From the centres of fewer clusters, and new ones beside those of the clusters with the largest inertias."""
        assignment, data, centres = self._assigned(known), self.data, self.best[known].centres
        inertias, weights = assignment.residuals(centres), np.maximum(assignment.cluster_weights, 1e-300)
        points, rng, new = data.rescaling.apply(centres), np.random.default_rng([k, known]), []
        for _ in range(k - known):
            worst = int(np.argmax(inertias))
            step = rng.standard_normal(data.d)
            length = _OFFSET * np.sqrt(inertias[worst] / weights[worst]) / max(float(np.linalg.norm(step)), 1e-300)
            new.append(points[worst] + step * length)
            inertias[worst] /= 2
        return self._from(np.concatenate([centres, data.rescaling.undo(np.array(new), data.dtype)]))

    def _shrunk(self, known: int, k: int) -> Fit:
        """From the centres of more clusters, without those whose removal costs least."""
        centres = self.best[known].centres
        stays = breathe_out(self.data, centres, errors(self.data, centres), known - k)
        return self._from(centres[stays])

    def _settled(self, found: Fit) -> Fit:
        """The rest of a descent that was only rough."""
        return self._descend(len(found.centres), lambda number: found.centres, 1, "none", rough=False)

    def _from(self, centres: NDArray[Any]) -> Fit:
        start = np.ascontiguousarray(self.geometry.projected(centres))
        return self._descend(len(start), lambda number: start, 1, self.search_from_neighbours, rough=True)

    def _descend(
        self,
        k: int,
        make_start: Callable[[int], NDArray[Any]],
        starts: int,
        search: str,
        *,
        rough: bool,
        plusplus: bool = False,
    ) -> Fit:
        model: KMeans = self.fit.model
        found = find_clusters(
            self.assignment,
            k,
            make_start,
            starts=starts,
            max_iter=model.max_iter,
            tol=max(model.tol, _ROUGH) if rough else model.tol,
            search=search,
            plusplus=plusplus,
            seed=self.fit.seed,
            geometry=self.geometry,
            keep_sums=True,
        )
        if found.outcome.reason is Reason.INTERRUPTED:  # Ctrl-C ends the whole curve, not only the current fit
            raise KeyboardInterrupt
        return Fit(found.centres, self.assignment.inertia(found.centres), found.outcome.converged)

    # ------------------------------------------------------------ figures

    def _assigned(self, k: int) -> Assignment:
        """The rows assigned to the best centres of this number."""
        assignment, centres = self.assignment, self.best[k].centres
        if assignment.centres is None or not np.array_equal(assignment.centres, centres):
            assignment.assign(centres)
        return assignment

    def _point(self, k: int) -> CurvePoint:
        best, assignment, data = self.best[k], self._assigned(k), self.data
        centres = best.centres
        if isinstance(self.fit.model.init, str):
            centres = ordered(assignment, centres, self.geometry)
        inertia = data.unscaled(float(assignment.residuals(centres).sum()))
        labels = assignment.labels
        distinct = int(np.count_nonzero(np.bincount(labels[labels >= 0], minlength=k)))
        if distinct < k:
            self._distinct = distinct, k
        silhouette, error = self._silhouette(labels, k, assignment.cluster_weights)
        return CurvePoint(k, centres, inertia, silhouette, error, best.converged)

    def _silhouette(self, labels: NDArray[np.int32], k: int, weights: Floats) -> tuple[float, float]:
        if np.count_nonzero(weights) < 2:
            return float("nan"), float("nan")
        size = None if self.data.n <= _EXACT_ROWS else _SAMPLE_SIZE
        found = silhouette_of(
            self.fit.passes,
            labels,
            tuple(range(k)),
            geometry=self.geometry,
            sample_size=size,
            seed=self.fit.seed,
            observed=self.data.observed,
        )
        return found.mean, found.standard_error


def _inertia(fit: Fit) -> float:
    return fit.inertia
