"""The inertia as a function of the number of clusters, and its knee."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from foldwise.data.block import Floats
from foldwise.data.scan import scan
from foldwise.data.source import Source
from foldwise.errors import DataError, NotFinishedWarning, ParameterError
from foldwise.fold.outcome import Reason
from foldwise.fold.passes import Passes
from foldwise.models.kmeans import KMeans
from foldwise.models.labelled_matrix import LabelledMatrix
from foldwise.models.session import open_passes
from foldwise.selection.silhouette import silhouette_of

_OFFSET = 0.01  # of a new centre from its parent, in root mean square distances of the parent's rows


@dataclass(frozen=True)
class InertiaCurve:
    """For each number of clusters: the inertia, the mean silhouette (NaN for one cluster), and the centres.

    `depths` is the depth of the curve below the chord between its ends, with both axes scaled to [0, 1], and `knee` is the
    number where it is largest (None for fewer than three numbers, or a curve that is nowhere below the chord). This is a rule
    of thumb: data without clusters also have a knee, and it depends on the range of numbers considered.
    """

    n_clusters: tuple[int, ...]
    inertias: Floats
    silhouettes: Floats
    depths: Floats
    knee: int | None
    centers: tuple[NDArray[Any], ...]
    converged: bool
    parameters: dict[str, Any]  # passed to KMeans

    @property
    def table(self) -> LabelledMatrix:
        """One row per number of clusters."""
        values = np.column_stack([self.inertias, self.silhouettes, self.depths])
        return LabelledMatrix(values, tuple(str(k) for k in self.n_clusters), ("inertia", "silhouette", "below chord"))


def inertia_curve(
    X: Any, n_clusters: int | Iterable[int], *, sample_weight: Any = None, engine: Any = None, **parameters: Any
) -> InertiaCurve:
    """The inertia for each number of clusters in `n_clusters`; it never increases with the number.

    Each number is fitted twice: from the centres of the previous number, with one more beside the centre of the cluster with
    the largest inertia, and from its own start; the better is kept. Other parameters are those of `KMeans`; `search` defaults
    to "breathing", because a poor optimum would look like a knee.

    >>> import foldwise as fw
    >>> X = [[0.0, 0.0], [0.0, 1.0], [10.0, 0.0], [10.0, 1.0], [5.0, 9.0], [5.0, 10.0]]
    >>> curve = fw.inertia_curve(X, range(1, 6))
    >>> curve.knee
    3
    >>> curve.table
        inertia  silhouette  below chord
    1  209.5000         nan       0.0000
    2  101.5000      0.5723       0.2667
    3    1.5000      0.9901       0.4952
    4    1.0000      0.6598       0.2476
    5    0.5000      0.3298       0.0000
    """
    given = [n_clusters] if isinstance(n_clusters, (int, np.integer)) else n_clusters
    numbers = tuple(sorted({int(k) for k in given}))
    if not numbers or numbers[0] < 1:
        raise ParameterError(f"n_clusters={list(numbers)}: give whole numbers of at least 1.")
    wrong = {"checkpoint", "time_budget"} & set(parameters)
    if wrong:
        raise ParameterError(f"{', '.join(sorted(wrong))} cannot be passed to inertia_curve, which fits many models.")
    parameters = {"search": "breathing", **parameters}
    inertias, silhouettes, centers = [], [], []
    best: KMeans | None = None
    converged = True
    source = scan(X, weights=sample_weight)
    with open_passes(source, engine=engine, n_threads=parameters.get("n_threads")) as passes:
        for k in numbers:
            fresh = _fitted(KMeans(k, **parameters), passes.source)
            best = fresh if best is None else _better(fresh, _fitted(_grown(best, k, parameters), passes.source))
            if not np.isfinite(best.inertia_):
                raise DataError("the inertia leaves the range of float64", advice="Divide the data by a constant")
            inertias.append(best.inertia_)
            centers.append(best.cluster_centers_)
            converged &= best.outcome_.converged
            silhouettes.append(_silhouette(best, passes))
    if not converged:
        message = "inertia_curve: some of the fits stopped before they converged; raise max_iter, or loosen tol."
        warnings.warn(message, NotFinishedWarning, stacklevel=2)
    falling = np.minimum.accumulate(inertias)  # centres are rounded, so equal inertias may differ in the last digit
    depths = _depths(np.array(numbers, dtype=np.float64), falling)
    knee = numbers[int(np.argmax(depths))] if len(numbers) > 2 and depths.max() > 0 else None
    return InertiaCurve(numbers, falling, np.array(silhouettes), depths, knee, tuple(centers), converged, parameters)


def _fitted(model: KMeans, source: Source) -> KMeans:
    """The fitted model; Ctrl-C ends the whole curve, not only the current fit."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotFinishedWarning)  # one warning is issued at the end
        model.fit(source)
    if model.outcome_.reason is Reason.INTERRUPTED:
        raise KeyboardInterrupt
    return model


def _better(one: KMeans, other: KMeans) -> KMeans:
    return other if other.inertia_ < one.inertia_ else one


def _grown(model: KMeans, k: int, parameters: dict[str, Any]) -> KMeans:
    """A model that starts from another's centres, plus new ones beside those of the clusters with the largest inertias."""
    centres, inertias = model.cluster_centers_.astype(np.float64), model.cluster_inertias_.copy()
    weights = np.maximum(model.cluster_weights_, 1e-300)
    rng = np.random.default_rng([k, len(centres)])
    new = []
    for _ in range(k - len(centres)):
        worst = int(np.argmax(inertias))
        step = rng.standard_normal(centres.shape[1])
        length = _OFFSET * np.sqrt(inertias[worst] / weights[worst]) / max(float(np.linalg.norm(step)), 1e-300)
        new.append(centres[worst] + step * length)
        inertias[worst] /= 2
    start = np.vstack([centres, *new]).astype(model.cluster_centers_.dtype)
    return KMeans(k, **{**parameters, "init": start, "n_init": 1})


def _silhouette(model: KMeans, passes: Passes) -> float:
    if np.count_nonzero(model.cluster_weights_) < 2:
        return float("nan")
    compared = passes.over(model.as_compared(passes.source))
    return silhouette_of(compared, model.labels_, tuple(range(model.n_clusters))).mean


def _depths(numbers: Floats, inertias: Floats) -> Floats:
    """The depth below the chord, with both axes scaled to [0, 1]."""
    fall = inertias[0] - inertias[-1]
    if len(numbers) < 2 or not fall > 0:
        return np.zeros(len(numbers))
    across = (numbers - numbers[0]) / (numbers[-1] - numbers[0])
    return np.asarray(1.0 - across - (inertias - inertias[-1]) / fall)
