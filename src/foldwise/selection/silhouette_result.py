"""What the silhouettes share: the record of the result, and opening rows with labels or a model."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from foldwise.data.block import Floats
from foldwise.data.missing import allow_missing
from foldwise.data.scan import scan
from foldwise.data.source import count_rows
from foldwise.data.subset import RowSubset
from foldwise.errors import DataError, ParameterError
from foldwise.fold.passes import Passes
from foldwise.models.base import n_clusters_of, open_for_use
from foldwise.models.kmeans.geometry import GEOMETRIES, Geometry
from foldwise.models.labelled_matrix import LabelledMatrix
from foldwise.models.session import open_passes
from foldwise.reportable import Reportable
from foldwise.selection.cluster_moments import has_gaps, without_blank
from foldwise.selection.label_numbers import not_ignored, numbered

TWO_CLUSTERS = "a silhouette compares clusters, so there must be at least two."


def _nothing() -> Floats:
    return np.zeros(0)


@dataclass(frozen=True)
class Silhouette(Reportable):
    """Silhouettes range from -1 (nearer to another cluster) through 0 (between two) to 1 (far from all others).

    `mean` is over all rows, `cluster_means` over the rows of each of `clusters`. If they were estimated from a sample,
    `standard_error` and `cluster_errors` are their standard errors and `rows` the numbers of the sampled rows; otherwise these
    are 0 and None. `values`, if requested, has one silhouette per row (of the sample, if there is one).
    """

    mean: float
    clusters: tuple[Any, ...]
    cluster_means: Floats
    cluster_weights: Floats
    values: Floats | None = None
    standard_error: float = 0.0
    cluster_errors: Floats = field(default_factory=_nothing)
    rows: NDArray[np.intp] | None = None

    @property
    def exact(self) -> bool:
        """Whether every row was evaluated."""
        return self.rows is None

    @property
    def table(self) -> LabelledMatrix:
        """One row per cluster."""
        figures = {"silhouette": self.cluster_means, "weight": self.cluster_weights}
        if not self.exact:
            figures["standard error"] = self.cluster_errors
        values = np.column_stack(list(figures.values()))
        return LabelledMatrix(values, tuple(str(name) for name in self.clusters), tuple(figures))


@dataclass(frozen=True)
class LabelledRows:
    """Passes over rows as they are compared, the cluster number of each, and the names of the clusters."""

    passes: Passes
    labels: NDArray[np.int32]
    names: tuple[Any, ...]
    geometry: Geometry
    observed: bool = False  # whether cells are missing; rows with nothing observed then have the label -1
    which: NDArray[np.intp] | None = None  # the numbers of these rows, if others were left out for their labels
    given: int = 0  # labels, also those left out

    def in_all(self, values: NDArray[Any], fill: float) -> NDArray[Any]:
        """Values of these rows among all rows, of which others have `fill`."""
        if self.which is None:
            return values
        out = np.full(self.given, fill, dtype=values.dtype)
        out[self.which] = values
        return out

    def numbered_in_all(self, found: Silhouette) -> Silhouette:
        """A result with the numbers of all rows, and NaN as the value of those left out."""
        if self.which is None:
            return found
        if found.rows is not None:
            return replace(found, rows=self.which[found.rows])
        return found if found.values is None else replace(found, values=self.in_all(found.values, np.nan))


@contextmanager
def labelled_rows(
    X: Any,
    labels: Any,
    metric: str | None,
    sample_weight: Any,
    engine: Any,
    n_threads: int | None,
    missing: str = "error",
    ignore: Any = None,
) -> Iterator[LabelledRows]:
    """Open rows with `labels`, one per row (without those that are `ignore`), or with those that a fitted model gives them."""
    if missing not in ("error", "model"):
        raise ParameterError(f'missing={missing!r}: give "error" or "model".')
    if metric is not None and metric not in GEOMETRIES:
        raise ParameterError(f"metric={metric!r}: give one of {', '.join(GEOMETRIES)}.")
    if hasattr(labels, "predict"):
        model = labels
        if model.__sklearn_tags__().input_tags.pairwise:
            raise ParameterError(
                "a precomputed kernel has no rows to compute distances from. Pass labels and the rows themselves."
            )
        if metric is not None:
            raise ParameterError("a model is judged by its own metric. Pass its labels_ to use another.")
        with open_passes(open_for_use(model, X, sample_weight), engine=engine, n_threads=n_threads) as passes:
            numbers = model.predict(passes.source)
            seen = model.as_compared(passes.source) if hasattr(model, "as_compared") else passes.source
            names: tuple[Any, ...] = tuple(range(n_clusters_of(model)))
            allowed = getattr(model, "missing", "error") == "model"
            yield _with_gaps(LabelledRows(passes.over(seen), numbers, names, geometry_of(model)), allowed)
        return
    given, geometry = np.asarray(labels), GEOMETRIES[metric or "euclidean"]
    if given.ndim != 1:
        raise ParameterError(f"labels of shape {given.shape}: pass one label per row, or a fitted model.")
    source, which = scan(X, weights=sample_weight), None
    source = source if missing == "error" else allow_missing(source)
    kept = not_ignored(given, ignore)
    if not kept.all():
        rows, which = count_rows(source), np.flatnonzero(kept)
        if len(given) != rows:
            raise DataError(f"there are {len(given)} labels, but {rows} rows", advice="Pass one label per row")
        if not len(which):
            raise DataError(f"every row has the label {ignore!r}, which is ignored")
        source = RowSubset(source, which)
    numbers, found = numbered(given[kept])
    with open_passes(source, engine=engine, n_threads=n_threads) as passes:
        seen = passes.source if geometry.view is None else geometry.view(passes.source)
        opened = LabelledRows(
            passes.over(seen), numbers, tuple(found.tolist()), geometry, which=which, given=len(given)
        )
        yield _with_gaps(opened, missing == "model")


def _with_gaps(opened: LabelledRows, allowed: bool) -> LabelledRows:
    """The rows, which may have missing cells if that is allowed; with none missing, everything is as for complete rows."""
    if not allowed or not has_gaps(opened.passes):
        return opened
    if opened.geometry.squared:
        raise DataError(
            "cosines need whole rows, but cells are missing", advice='Use metric="euclidean", or fill the cells first'
        )
    return replace(opened, labels=without_blank(opened.passes, opened.labels), observed=True)


def geometry_of(model: Any) -> Geometry:
    """How a model compares rows."""
    return GEOMETRIES[getattr(model, "metric", "euclidean")]
