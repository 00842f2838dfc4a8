"""The inertia as a function of the number of clusters, and its knee."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from foldwise.data.block import Floats
from foldwise.errors import DataError, NotFinishedWarning, ParameterError, warn
from foldwise.models.kmeans import KMeans
from foldwise.models.labelled_matrix import LabelledMatrix
from foldwise.models.parameters import is_whole
from foldwise.models.session import session
from foldwise.reportable import Reportable
from foldwise.selection.curve_fits import CurveFits


def _nothing() -> Floats:
    return np.zeros(0)


@dataclass(frozen=True)
class InertiaCurve(Reportable):
    """For each number of clusters: the inertia, the mean silhouette (NaN for one cluster), and the centres.

    `silhouette_errors` are standard errors, or 0 where the silhouette was computed from all rows. `depths` is the depth of the
    curve below the chord between its ends, with both axes scaled to [0, 1], and `knee` is the number where it is largest (None
    for fewer than three numbers, or a curve that is nowhere below the chord). This is a rule of thumb: data without clusters
    also have a knee, and it depends on the range of numbers considered.
    """

    n_clusters: tuple[int, ...]
    inertias: Floats
    silhouettes: Floats
    depths: Floats
    knee: int | None
    centers: tuple[NDArray[Any], ...]
    converged: bool
    parameters: dict[str, Any]  # passed to KMeans
    silhouette_errors: Floats = field(default_factory=_nothing)
    interrupted: bool = False  # by Ctrl-C: only finished numbers are listed

    @property
    def table(self) -> LabelledMatrix:
        """One row per number of clusters."""
        values = np.column_stack([self.inertias, self.silhouettes, self.depths])
        return LabelledMatrix(values, tuple(str(k) for k in self.n_clusters), ("inertia", "silhouette", "below chord"))


def inertia_curve(
    X: Any, n_clusters: int | Iterable[int], *, sample_weight: Any = None, engine: Any = None, **parameters: Any
) -> InertiaCurve:
    """The inertia for each number of clusters in `n_clusters`; it never increases with the number.

    Each number is fitted from its own start and from the best centres of the previous number, with one more beside the centre
    of the cluster with the largest inertia; then, downwards, from those of the next number without the least useful one. The
    best of the three is kept, since a poor optimum would look like a knee (they are compared at tol=1e-3, and only the best
    goes on). Other parameters are those of `KMeans`; `search` applies to each number's own start; up to 2000 rows it
    applies to all three and defaults to "breathing".

    The silhouettes are those of `fw.silhouette`, from all rows if there are at most 4000, otherwise from a sample of 300.
    After Ctrl-C the curve has the numbers that were finished, if any (`interrupted`).

    >>> import foldwise as fw
    >>> X = [[0.0, 0.0], [0.0, 1.0], [10.0, 0.0], [10.0, 1.0], [5.0, 9.0], [5.0, 10.0]]
    >>> curve = fw.inertia_curve(X, range(1, 6))
    >>> curve.knee
    3
    >>> curve.table
        inertia  silhouette  below chord
    1  209.5000         nan       0.0000
    2  101.5000      0.5127       0.2667
    3    1.5000      0.9005       0.4952
    4    1.0000      0.5981       0.2476
    5    0.5000      0.2990       0.0000
    """
    given = [n_clusters] if isinstance(n_clusters, (int, np.integer)) else list(n_clusters)
    if not all(is_whole(k) for k in given) or not given or min(given) < 1:
        raise ParameterError(f"n_clusters={given}: give whole numbers of at least 1.")
    numbers = tuple(sorted({int(k) for k in given}))
    wrong = {"checkpoint", "time_budget"} & set(parameters)
    if wrong:
        raise ParameterError(f"{', '.join(sorted(wrong))} cannot be passed to inertia_curve, which fits many models.")
    model = KMeans(numbers[-1], **parameters)
    geometry = model.geometry
    with session(model, X, sample_weight, engine=engine, view=geometry.view, centre=geometry.translates) as fit:
        fits = CurveFits(fit, X, parameters)
        fits.check_count(numbers[-1])
        interrupted = fits.improve(numbers)
        points, cut_short = fits.points()
    interrupted |= cut_short
    if not all(np.isfinite(point.inertia) for point in points):
        raise DataError("the inertia leaves the range of float64", advice="Divide the data by a constant")
    _warn(len(points), len(numbers), fits, interrupted=interrupted, converged=all(p.converged for p in points))
    found = tuple(point.n_clusters for point in points)
    # Centres are rounded, so equal inertias may differ in the last digit.
    falling = np.minimum.accumulate([point.inertia for point in points])
    depths = depths_below_chord(np.array(found, dtype=np.float64), falling)
    return InertiaCurve(
        n_clusters=found,
        inertias=falling,
        silhouettes=np.array([point.silhouette for point in points]),
        depths=depths,
        knee=found[int(np.argmax(depths))] if len(found) > 2 and depths.max() > 0 else None,
        centers=tuple(point.centres for point in points),
        converged=all(point.converged for point in points),
        parameters={**parameters, "search": fits.search},
        silhouette_errors=np.array([point.silhouette_error for point in points]),
        interrupted=interrupted,
    )


def _warn(finished: int, asked: int, fits: CurveFits, *, interrupted: bool, converged: bool) -> None:
    if interrupted:
        message = f"inertia_curve: interrupted; the curve has {finished} of {asked} numbers of clusters."
        warn(message, NotFinishedWarning)
    if not converged:
        message = "inertia_curve: some of the fits stopped before they converged; raise max_iter, or loosen tol."
        warn(message, NotFinishedWarning)
    fits.warn_of_empty()


def depths_below_chord(numbers: Floats, inertias: Floats) -> Floats:
    """The depth below the chord, with both axes scaled to [0, 1]."""
    fall = inertias[0] - inertias[-1]
    if len(numbers) < 2 or not fall > 0:
        return np.zeros(len(numbers))
    across = (numbers - numbers[0]) / (numbers[-1] - numbers[0])
    return np.asarray(1.0 - across - (inertias - inertias[-1]) / fall)
