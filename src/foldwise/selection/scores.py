"""All scores of a clustering in one table."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from foldwise.models.labelled_matrix import LabelledMatrix
from foldwise.models.parameters import seed_of
from foldwise.reportable import Reportable
from foldwise.selection.agreement import (
    adjusted_rand_of,
    compared,
    completeness_of,
    homogeneity_of,
    normalized_mutual_info_of,
    v_measure_of,
)
from foldwise.selection.cluster_moments import grouped, row_weights
from foldwise.selection.label_numbers import is_missing, means_missing, one_per_row
from foldwise.selection.separation import calinski_harabasz_of, davies_bouldin_of, dunn_of, radii
from foldwise.selection.silhouette import silhouette_of
from foldwise.selection.silhouette_result import labelled_rows
from foldwise.selection.squared_silhouette import squared_silhouette_of

MEANINGS = {
    "silhouette": "-1 to 1, higher is better",
    "squared_silhouette": "-1 to 1, higher is better; compare only with itself",
    "calinski_harabasz": "higher is better",
    "davies_bouldin": "0 is best, lower is better",
    "dunn": "higher is better",
    "adjusted_rand": "1: the same groups, 0: chance",
    "normalized_mutual_info": "1: the same groups, 0: independent",
    "homogeneity": "1: each cluster has one true group",
    "completeness": "1: each true group is in one cluster",
    "v_measure": "1: the same groups, 0: independent",
}
_NAN = float("nan")


@dataclass(frozen=True, repr=False)
class ClusterScores(Reportable):
    """The scores of one clustering; NaN for those that do not apply.

    `silhouette_error` is the standard error of the silhouette if it was estimated from a sample of the rows, else 0.
    """

    n_clusters: int
    silhouette: float = _NAN
    silhouette_error: float = 0.0
    squared_silhouette: float = _NAN
    calinski_harabasz: float = _NAN
    davies_bouldin: float = _NAN
    dunn: float = _NAN
    adjusted_rand: float = _NAN
    normalized_mutual_info: float = _NAN
    homogeneity: float = _NAN
    completeness: float = _NAN
    v_measure: float = _NAN

    @property
    def table(self) -> LabelledMatrix:
        """One row per score that applies."""
        known = {one.name: float(getattr(self, one.name)) for one in fields(self) if one.name in MEANINGS}
        known = {name: value for name, value in known.items() if not np.isnan(value)}
        return LabelledMatrix(np.array(list(known.values())).reshape(-1, 1), tuple(known), ("score",))

    def __repr__(self) -> str:
        """The scores, and how each is read."""
        table = self.table
        cells = [f"{value:.4f}" for value in table.values[:, 0]]
        left, wide = max(map(len, table.rows), default=0), max(map(len, cells), default=0)
        lines = [f"scores of {self.n_clusters} cluster{'s' * (self.n_clusters != 1)}"]
        for name, cell in zip(table.rows, cells, strict=True):
            sampled = name == "silhouette" and self.silhouette_error > 0
            error = f" (standard error {self.silhouette_error:.1g})" if sampled else ""
            lines.append(f"  {name:<{left}}  {cell:>{wide}}  {MEANINGS[name]}{error}")
        return "\n".join(lines)


def scores(
    X: Any,
    labels: Any,
    truth: Any = None,
    *,
    ignore: Any = None,
    sample_size: int | str | None = "auto",
    random_state: Any = None,
    sample_weight: Any = None,
    n_threads: int | None = None,
    engine: Any = None,
) -> ClusterScores:
    """Every score that applies: of the clusters by themselves, and with `truth`, of their agreement with known groups.

    `labels` is one label per row, or a fitted model, which is judged in the space in which it compares rows. The silhouette
    (`sample_size`, `random_state`) is as by `fw.silhouette`: estimated from a sample beyond 10,000 rows. The other figures of
    the clusters are those of `fw.squared_silhouette`, `fw.calinski_harabasz`, `fw.davies_bouldin` and `fw.dunn`; where cells
    are missing (a model with missing="model"), only the silhouette applies. `truth` is one label per row.

    Every label is a cluster, also -1, as in scikit-learn. If -1 means that a row has none (as in DBSCAN and in the labels of
    `fw.ClusterEnsemble`), give `ignore=-1`: such rows are left out, and rows with that label in `truth` are left out of the
    comparison with it. So are rows that a model puts in no cluster. A weight counts as repetition of its row.

    >>> import foldwise as fw
    >>> fw.scores([[0.0], [2.0], [10.0], [12.0]], [0, 0, 1, 1], truth=["a", "a", "b", "b"])
    scores of 2 clusters
      silhouette               0.7980  -1 to 1, higher is better
      squared_silhouette       0.9592  -1 to 1, higher is better; compare only with itself
      calinski_harabasz       50.0000  higher is better
      davies_bouldin           0.2000  0 is best, lower is better
      dunn                     5.0000  higher is better
      adjusted_rand            1.0000  1: the same groups, 0: chance
      normalized_mutual_info   1.0000  1: the same groups, 0: independent
      homogeneity              1.0000  1: each cluster has one true group
      completeness             1.0000  1: each true group is in one cluster
      v_measure                1.0000  1: the same groups, 0: independent
    """
    known_groups = None if truth is None else one_per_row(truth, "truth")
    found: dict[str, Any] = {}
    with labelled_rows(X, labels, None, sample_weight, engine, n_threads, ignore=ignore) as opened:
        passes, numbers, names = opened.passes, opened.labels, opened.names
        known = grouped(passes, numbers, len(names), observed=opened.observed)
        k = int(np.count_nonzero(known[0].weight))
        if k > 1:
            classical = silhouette_of(
                passes,
                numbers,
                names,
                geometry=opened.geometry,
                sample_size=sample_size,
                seed=seed_of(random_state),
                known=known,
                observed=opened.observed,
            )
            found |= {"silhouette": classical.mean, "silhouette_error": classical.standard_error}
        if k > 1 and not opened.observed:
            sizes = radii(passes, numbers, known)
            found["squared_silhouette"] = squared_silhouette_of(passes, numbers, names, known=known).mean
            if known[0].weight.sum() > k:
                found["calinski_harabasz"] = calinski_harabasz_of(known[0])
            found |= {"davies_bouldin": davies_bouldin_of(known[0], sizes), "dunn": dunn_of(known[0], sizes)}
        if known_groups is not None:
            weights = row_weights(passes)
            weights = None if weights is None else opened.in_all(weights, 0.0)
            found |= _agreement(known_groups, opened.in_all(numbers, -1), weights, ignore)
    return ClusterScores(k, **found)


def _agreement(truth: Any, numbers: Any, weights: Any, ignore: Any) -> dict[str, float]:
    if len(truth) == len(numbers) and (numbers < 0).any():
        placed = numbers >= 0
        truth, numbers, weights = truth[placed], numbers[placed], None if weights is None else weights[placed]
    if ignore is not None and len(truth) == len(numbers):
        kept = (
            ~is_missing(truth) if means_missing(ignore) else truth != ignore
        )  # of the truth only: clusters are numbers
        truth, numbers, weights = truth[kept], numbers[kept], None if weights is None else weights[kept]
    table = compared(truth, numbers, weights)
    return {
        "adjusted_rand": adjusted_rand_of(table),
        "normalized_mutual_info": normalized_mutual_info_of(table),
        "homogeneity": homogeneity_of(table),
        "completeness": completeness_of(table),
        "v_measure": v_measure_of(table),
    }
