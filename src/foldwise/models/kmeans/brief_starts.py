"""Larger tables: several starts of a few steps each, on all rows or a sample of them in memory; the best is the start.

One start of k-means is a matter of luck. On rows in float32 and in one compiled call, several with a few steps each take less
time than one in passes over blocks. Labels, centres and inertia come from exact steps, as for any other start.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from foldwise.kernels import _core
from foldwise.models.kmeans.fit_data import KMeansData
from foldwise.models.kmeans.seeding import Distances
from foldwise.models.parameters import compiled_seed

STARTS = 6
_STEPS, _MORE_STEPS = 8, 20  # of each: at least, and at most where they take less time than all else
_CHEAP = 1 << 20  # rows x columns x clusters x steps that do
_WORK = 1 << 25  # rows x columns x clusters that a sample aims at,
_LEAST, _MOST, _EACH = 5000, 20_000, 50  # within these numbers of rows, and so many for each cluster
_TWICE = 1 << 22  # rows x columns x clusters up to which it may be twice as many: what is rare is missed less often
_TOO_MUCH = 1e8  # rows x columns x clusters of a sample: beyond, a single start in passes
_QUICK = 1 << 22  # below, the best start goes on to the end here: a step in passes takes longer
_FURTHER = 20  # steps of the best start of a sample
_LIKE = 1.05  # times the inertia of the sample's rows: others must not be farther from the centres


def brief_sample_size(data: KMeansData, k: int) -> int | None:
    """How many rows to look at, or None if the table is not for this; depends on nothing but the sizes."""
    n, d = data.n, data.d
    if data.source.sparse or data.observed or not 1 < k < data.counted:
        return None
    most = min(max(_TWICE // (d * k), _MOST), 2 * _MOST)
    size = max(min(_WORK // (d * k), most), _LEAST, _EACH * k)
    size = n if n <= 2 * size else size
    return None if float(size) * d * k > _TOO_MUCH else size


@dataclass
class BriefStart:
    """Called with the number of a start, returns its centres: those found on `size` rows, if they suit all rows.

    A sample misses what is rare. If all rows are farther from its centres than its own are, the start is `otherwise`.
    """

    data: KMeansData
    k: int
    size: int
    seed: int
    otherwise: Callable[[int], NDArray[Any]]
    suits: bool = True  # whether the centres found were taken

    def __call__(self, number: int) -> NDArray[Any]:
        """The centres of a start."""
        centres = self._found(number)
        self.suits = centres is not None
        return self.otherwise(number) if centres is None else centres

    def _found(self, number: int) -> NDArray[Any] | None:
        data, k, size, given = self.data, self.k, self.size, (self.seed, 3, number)
        weights = data.weights
        if size == data.n:
            rows, seed = data.passes.whole(), compiled_seed(*given)
        else:
            rng = np.random.default_rng(list(given))
            which = np.sort(rng.choice(data.n, size, replace=False))
            rows, seed = data.take(which), int(rng.integers(2**63))
            weights = None if weights is None else weights[which]
        weights = None if weights is None else np.ascontiguousarray(weights * data.weight_scale)
        if weights is not None and np.count_nonzero(weights) <= k:
            return None
        found = np.empty((k, data.d))
        quick = size == data.n and data.n * data.d * k <= _QUICK
        own = _core.brief_starts(
            np.ascontiguousarray(rows),
            weights,
            float(data.rescaling.scale),
            seed,
            STARTS,
            max(_STEPS, min(_MORE_STEPS, _CHEAP // (size * data.d * k))),
            300 if quick else 0 if size == data.n else _FURTHER,
            data.passes.n_threads,
            found,
        )
        centres = found.astype(data.dtype)
        if size < data.n:
            distances = Distances(data, "closest_brief")
            distances.update(centres, centres[:0])
            distances.forget()
            if not distances.total <= _LIKE * own * data.extent.columns.weight * data.weight_scale:
                return None
        return centres
