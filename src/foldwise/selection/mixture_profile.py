"""Profiles of mixture clusters: sizes, means in the units of the data, distinguishing columns, and certainty."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from foldwise.data.block import Block, Floats
from foldwise.data.source import Source
from foldwise.fold.passes import Passes
from foldwise.models.mixture.predict import Posterior, most_probable, probabilities
from foldwise.selection.cluster_moments import grouped, has_gaps
from foldwise.selection.profile import as_fitted
from foldwise.stats.array_sum import ArraySum
from foldwise.stats.two_part_mean import distance

BINS = 20
DOUBT = 0.8  # a row is in doubt if the probability of its cluster is below this


@dataclass(frozen=True)
class MixtureProfile:
    """Figures of k clusters in d columns; rows belong to their most probable cluster. Figures of empty clusters are NaN.

    `means`, `mean` and `deviation` are in the units of the data; `differences` is (cluster mean - overall mean) /
    overall deviation, `separation` the between-cluster share of each column's variance. `sureness` is the mean probability
    of a row's own cluster, `histogram` the weight of rows by that probability (20 equal bins from 0 to 1), `in_doubt` the
    share of rows where it is below 0.8. With missing="model", means and deviations are of observed cells.
    """

    labels: NDArray[np.int32]
    rows: NDArray[np.int64]
    weights: Floats
    means: Floats
    mean: Floats
    deviation: Floats
    differences: Floats
    separation: Floats
    sureness: Floats
    histogram: Floats
    in_doubt: float
    criteria: dict[str, float]


def mixture_profile(model: Any, source: Source) -> MixtureProfile:
    """Profile a fitted GaussianMixture, merged or not; `source` has the rows it was fitted to. Takes three passes.

    >>> import foldwise as fw
    >>> source = fw.scan([[1.0, 5.0], [3.0, 6.0], [2.0, 7.0], [11.0, 6.0], [13.0, 7.0]])
    >>> mixture_profile(fw.GaussianMixture(2, covariance_type="spherical").fit(source), source).means
    array([[ 2. ,  6. ],
           [12. ,  6.5]])
    """
    source = as_fitted(model, source)
    passes, posterior = Passes(model.as_compared(source), n_threads=model.n_threads), model.posterior(source.dtype)
    k = posterior.n_clusters
    rows = passes.fold(partial(_Sureness.of, posterior))
    labels, found = np.concatenate(rows.labels), rows.sums.value
    plain = Passes(source, n_threads=model.n_threads)
    raw, scale = grouped(plain, labels, k, observed=getattr(model, "missing", "error") == "model" and has_gaps(plain))
    whole, some = raw.whole(), raw.weight > 0
    deviation = np.sqrt(whole.squares / whole.weight)
    gaps = distance(whole.centre[:, None, :], raw.centre)
    differences = np.divide(gaps, deviation, out=np.zeros_like(gaps), where=deviation > 0)
    within = np.divide(raw.squares.sum(axis=0), whole.squares, out=np.ones_like(deviation), where=whole.squares > 0)
    weights = np.where(some, raw.weight, np.nan)
    known = some[:, None] if raw.cells is None else raw.cells > 0
    return MixtureProfile(
        labels=labels,
        rows=raw.rows,
        weights=raw.weight,
        means=np.where(known, raw.mean / scale, np.nan),
        mean=whole.mean / scale,
        deviation=deviation / scale,
        differences=np.where(known, differences, np.nan),
        separation=1.0 - within,
        sureness=found[:k] / weights,
        histogram=found[k : k + BINS],
        in_doubt=float(found[-1] / raw.weight.sum()),
        criteria=model.criteria(source),
    )


@dataclass(frozen=True)
class _Sureness:
    """Labels of rows, and sums over rows: the probability of their own cluster, by cluster; its histogram; rows in doubt."""

    labels: tuple[NDArray[np.int32], ...]
    sums: ArraySum

    @classmethod
    def of(cls, posterior: Posterior, block: Block) -> _Sureness:
        """The figures of a block."""
        shares = probabilities(posterior, block)
        own, surest = most_probable(shares), shares.max(axis=1)
        w = np.ones(block.n_rows) if block.weights is None else block.weights
        bins = np.minimum((surest * BINS).astype(np.intp), BINS - 1)
        parts = np.bincount(own, w * surest, shares.shape[1]), np.bincount(bins, w, BINS), [w @ (surest < DOUBT)]
        return cls((own,), ArraySum(np.concatenate(parts)))

    def merge(self, other: _Sureness) -> _Sureness:
        """The figures of both sets of rows, in order."""
        return _Sureness(self.labels + other.labels, self.sums.merge(other.sums))
