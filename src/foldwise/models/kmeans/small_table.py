"""Small tables: many descents in one compiled call, where a single pass over blocks would take longer than a descent.

The best of the descents is only a start: labels, centres and inertia come from exact steps, as for any other table.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from foldwise.kernels import _core
from foldwise.models.kmeans.fit_data import KMeansData
from foldwise.models.kmeans.geometry import Geometry
from foldwise.models.parameters import compiled_seed

_TINY = 12_000  # rows x columns x clusters: a search takes no longer than the fit around it


@dataclass(frozen=True)
class Effort:
    """How long to search: the number of starts, and of consecutive failures to improve on them after which to stop.

    Where rows x columns x clusters exceed 20,000, `patience` shrinks with their root. `spare` divided by the number of values
    in the table is the number of further failures allowed, at most 200. The search is only made if rows x columns x clusters
    are at most `comparisons`.
    """

    comparisons: int
    starts: int
    patience: int
    spare: int

    @classmethod
    def thorough(cls, k: int, work: int) -> Effort:
        """For search="breathing"; more clusters have more optima."""
        return cls(1 << 19, 8, 50 + min(k * k, 40), int(1e5 * (1 - 2 / k)))

    @classmethod
    def brief(cls, k: int, work: int) -> Effort:
        """For search="auto": about as long as one start of a plain implementation."""
        if work > _TINY:
            return cls(1 << 15, 2, 6, 0)
        return cls(1 << 15, 3, 4 + min(k * k, 16), int(1e4 * (1 - 2 / k)))


EFFORTS = {"auto": Effort.brief, "breathing": Effort.thorough}


def effort_for(search: str, data: KMeansData, k: int) -> Effort | None:
    """How long to search this table, or None if it is not small; depends on nothing but the sizes."""
    if search not in EFFORTS or not 1 < k < data.counted:
        return None
    work = data.counted * data.d * k
    effort = EFFORTS[search](k, work)
    return effort if work <= effort.comparisons else None


def best_start(
    data: KMeansData,
    k: int,
    effort: Effort,
    seed: int,
    geometry: Geometry,
    given: Callable[[int], NDArray[Any]] | None = None,
) -> Callable[[int], NDArray[Any]]:
    """A function that returns the centres found from start `number`, which is `given`, or else greedy k-means++."""
    # A power of two, so nothing is rounded; rows of length 1 need none.
    scale = 1.0 if geometry.project is not None else data.rescaling.scale
    rows: list[NDArray[np.float64]] = []

    def scaled(points: NDArray[Any]) -> NDArray[np.float64]:
        return np.ascontiguousarray(np.multiply(points, scale, dtype=np.float64))

    def make(number: int) -> NDArray[Any]:
        if not rows:
            rows.append(scaled(data.passes.whole()))
        found = np.empty((k, data.d))
        _core.search_small_table(
            rows[0],
            None if data.weights is None else data.weights * data.weight_scale,
            None if given is None else scaled(given(number)),
            geometry.project is not None,
            compiled_seed(seed, 2, number),
            effort.starts,
            effort.patience,
            effort.spare,
            data.passes.n_threads,
            found,
        )
        return geometry.projected((found / scale).astype(data.dtype))

    return make
