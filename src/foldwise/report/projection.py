"""What pages of clusterings share: the rows on their first two principal components, and bars of what sets clusters apart."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from foldwise.data.block import Block, Floats
from foldwise.data.source import Source
from foldwise.fold.passes import Passes
from foldwise.models.pca import PCA
from foldwise.report.charts import difference_bars
from foldwise.report.cluster import strongest
from foldwise.report.run_header import counted
from foldwise.report.scatter_plot import Cloud
from foldwise.report.svg_primitives import colour
from foldwise.report.tables import percent


@dataclass(frozen=True)
class Plane:
    """The rows in the plane, and how other things are put there."""

    cloud: Cloud
    labels: tuple[str, str]
    mean: Floats
    directions: Floats

    def place(self, points: Floats) -> Floats:
        """Points in the plane."""
        return np.asarray((points - self.mean) @ self.directions.T)

    def seen(self, covariance: Floats) -> Floats:
        """A covariance as it is seen in the plane."""
        return np.asarray(self.directions @ covariance @ self.directions.T)


def plane(model: Any, source: Source, labels: NDArray[Any], groups: int) -> Plane | None:
    """The rows, as the model compares them, on their first two principal components; None if there are no two."""
    compared = model.as_compared(source)
    if source.n_columns < 2 or len(labels) < 2:
        return None
    pca = PCA(2, n_threads=model.n_threads).fit(compared)
    directions = np.asarray(pca.components_, dtype=np.float64)
    run = Passes(compared, n_threads=model.n_threads)

    def scores(block: Block) -> NDArray[np.float64]:
        return block.times(directions.T, pca.mean_)

    def labelled(block: Block) -> tuple[NDArray[np.float64], NDArray[np.int32]]:
        return scores(block), labels[block.start : block.start + block.n_rows]

    reach = 2.8 * np.sqrt(pca.explained_variance_)
    if len(labels) <= Cloud.MOST_POINTS:
        reach = 1.03 * np.abs(run.rows(scores)).max(axis=0)
    cloud = Cloud(float(reach[0]), float(reach[1]), groups=groups)
    run.in_order(labelled, lambda told: cloud.add(*told))
    first, second = (
        f"component {i} ({percent(float(ratio))})" for i, ratio in enumerate(pca.explained_variance_ratio_)
    )
    return Plane(cloud, (first, second), pca.mean_, directions)


def panels(found: Any, names: Sequence[str], most: int, bars: int) -> list[dict[str, Any]]:
    """Bars of each cluster's largest differences, all on one scale."""
    made = []
    reach = float(np.nanmax(np.abs(found.differences), initial=0.0))
    for i, differences in enumerate(found.differences[:most]):
        columns = strongest(differences, bars)
        drawn = difference_bars([names[j] for j in columns], [float(differences[j]) for j in columns], reach, colour(i))
        rows = counted(int(found.rows[i]), "row")
        made.append(
            {"number": i, "colour": colour(i), "rows": rows, "bars": drawn if columns else "near the mean of all"}
        )
    return made
