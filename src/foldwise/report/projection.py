"""The rows of a table on their first two principal components."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from foldwise.data.block import Block, Floats
from foldwise.data.source import Source
from foldwise.fold.passes import Passes
from foldwise.models.pca import PCA
from foldwise.report.formats import percent
from foldwise.report.scatter_plot import ScatterPlot


@dataclass(frozen=True)
class Projection:
    """The rows in the plane of two components, and how other things are put there."""

    plot: ScatterPlot
    pca: Any
    directions: Floats

    def points(self, points: Floats) -> Floats:
        """Points in the plane."""
        return np.asarray((points - self.pca.mean_) @ self.directions.T)

    def covariance(self, matrix: Floats) -> Floats:
        """A covariance as it is seen in the plane."""
        return np.asarray(self.directions @ matrix @ self.directions.T)


def project(pca: Any, source: Source, labels: NDArray[Any] | None = None, groups: int = 1) -> Projection:
    """The rows on the first two components of a fitted PCA, in the colours of their groups if there are any."""
    directions = np.asarray(pca.components_[:2], dtype=np.float64)
    run = Passes(source, n_threads=pca.n_threads)

    def scores(block: Block) -> NDArray[np.float64]:
        return block.times(directions.T, pca.mean_, pca.scale_)

    def labelled(block: Block) -> tuple[NDArray[np.float64], NDArray[np.int32] | None]:
        return scores(block), None if labels is None else labels[block.start : block.start + block.n_rows]

    reach = 2.8 * np.sqrt(pca.explained_variance_[:2])
    if pca.manifest_.rows <= ScatterPlot.MOST_POINTS:
        reach = 1.03 * np.abs(run.rows(scores)).max(axis=0)
    shares = zip(pca.get_feature_names_out()[:2], pca.explained_variance_ratio_, strict=False)
    first, second = (f"{name} ({percent(float(share))})" for name, share in shares)
    plot = ScatterPlot(float(reach[0]), float(reach[1]), first, second, groups=groups)
    run.in_order(labelled, lambda told: plot.add(*told))
    return Projection(plot, pca, directions)


def project_clusters(model: Any, source: Source, labels: NDArray[Any], groups: int) -> Projection | None:
    """The rows, as the model compares them, on their first two principal components; None if there are no two."""
    if source.n_columns < 2 or len(labels) < 2:
        return None
    compared = model.as_compared(source)
    return project(PCA(2, n_threads=model.n_threads).fit(compared), compared, labels, groups)
