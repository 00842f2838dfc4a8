"""Profiles of consensus clusters: sizes, means in the units of the data, and distinguishing columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from foldwise.data.block import Floats
from foldwise.data.source import Source
from foldwise.fold.passes import Passes
from foldwise.models.base import n_clusters_of
from foldwise.selection.cluster_moments import grouped
from foldwise.selection.profile import as_fitted
from foldwise.stats.two_part_mean import distance


@dataclass(frozen=True)
class EnsembleProfile:
    """Figures of k clusters in d columns, as in `Profile`; of observed cells if some are missing."""

    rows: NDArray[np.int64]
    weights: Floats
    means: Floats
    mean: Floats
    deviation: Floats
    differences: Floats
    separation: Floats


def ensemble_profile(model: Any, source: Source) -> EnsembleProfile:
    """Profile a fitted ClusterEnsemble, or any model with labels; `source` has the rows it was fitted to. Takes one pass.

    >>> import foldwise as fw
    >>> source = fw.scan([[1.0, 5.0], [3.0, 5.0], [11.0, 6.0], [13.0, 6.0]])
    >>> ensemble_profile(fw.ClusterEnsemble(2).fit(source), source).means
    array([[ 2.,  5.],
           [12.,  6.]])
    """
    passes = Passes(as_fitted(model, source), n_threads=model.n_threads)
    observed = bool((model.labels_ < 0).any()) or getattr(model, "missing", "error") == "model"
    raw, scale = grouped(passes, model.labels_, n_clusters_of(model), observed=observed and not source.sparse)
    whole, some = raw.whole(), raw.weight > 0
    deviation = np.sqrt(whole.squares / whole.weight)
    gaps = distance(whole.centre[:, None, :], raw.centre)
    differences = np.divide(gaps, deviation, out=np.zeros_like(gaps), where=deviation > 0)
    within = np.divide(raw.squares.sum(axis=0), whole.squares, out=np.ones_like(deviation), where=whole.squares > 0)
    known = some[:, None] if raw.cells is None else raw.cells > 0
    return EnsembleProfile(
        rows=raw.rows,
        weights=raw.weight,
        means=np.where(known, raw.mean / scale, np.nan),
        mean=whole.mean / scale,
        deviation=deviation / scale,
        differences=np.where(known, differences, np.nan),
        separation=1.0 - within,
    )
