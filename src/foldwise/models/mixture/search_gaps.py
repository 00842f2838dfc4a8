"""The search for a start where cells are missing: the search for complete rows, on rows completed by what was found before.

Round 0 completes the sample by draws from one normal distribution (`gaps.py`), which blurs clusters; each of the next rounds by
draws from the best mixture so far, which does not. What a round finds, and what plain k-means does, takes up to `_STEPS` exact
steps of EM over the sample as it is, with its missing cells, and the mixture with the highest bound is the start; collapsed
ones come last. All of it is in memory, on at most the rows that `search_rows.sample_size` says.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from foldwise.data.arrays import ArraySource
from foldwise.data.block import Floats
from foldwise.kernels.mixture_gaps import GapComponents
from foldwise.models.mixture import collapse
from foldwise.models.mixture.fit_data import FitData
from foldwise.models.mixture.gaps import completing, noise
from foldwise.models.mixture.search import MixtureSearch
from foldwise.models.mixture.search_rows import KINDS, SearchRows, chosen, taken
from foldwise.models.mixture.start import Start

_ROUNDS = 3
_STEPS, _TOL = 30, 1e-4  # of EM over the sample, for each round


def searched_start_with_gaps(data: FitData, k: int, seed: int, number: int, within: Floats | None) -> Start | None:
    """Start `number`; None if there are no compiled runs for this kind of covariance, or all rounds fail."""
    if k == 1 or data.covariance.name not in KINDS:
        return None
    which, share = chosen(data, k, seed)
    rows, weights = taken(data.passes, which)
    sample, source = _Sample.of(data, rows, weights), completing(data)
    best: _Found | None = None
    for turn in range(number * _ROUNDS, (number + 1) * _ROUNDS):
        for found in _round(sample, source, k, share, seed, turn, within):
            if best is None or found.value < best.value:
                best = found
            within = found.start.within
        if best is None:
            return None
        source = sample.components(best.start)
    return best.start if best is not None else None


@dataclass(frozen=True)
class _Found:
    value: tuple[bool, float]
    start: Start


@dataclass(frozen=True)
class _Sample:
    """Some rows with missing cells, in memory, and the data as if these were all."""

    data: FitData
    rows: NDArray[Any]
    weights: Floats | None

    @classmethod
    def of(cls, data: FitData, rows: NDArray[Any], weights: Floats | None) -> _Sample:
        total = float(len(rows)) if weights is None else float(weights.sum())
        extent = replace(data.extent, count=len(rows), columns=replace(data.extent.columns, weight=total))
        passes = data.passes.over(ArraySource(rows, weights=weights), here=True)
        return cls(replace(data, passes=passes, extent=extent), rows, weights)

    def components(self, start: Start) -> GapComponents:
        covariance = self.data.covariance
        whiten = covariance.whiten(start.covariances)
        made = covariance.components(start.weights, start.means, whiten, self.data.pivot, self.data.dtype, gaps=True)
        assert isinstance(made, GapComponents)
        return made


def _round(
    sample: _Sample, source: GapComponents, k: int, share: float, seed: int, turn: int, within: Floats | None
) -> Iterator[_Found]:
    completed = source.drawn(sample.rows, *noise(sample.rows, turn))
    rows = SearchRows.made(sample.data, completed, sample.weights, k, share)
    if len(rows.x) < 2 * k or rows.has_atom:
        return
    search = MixtureSearch(rows, seed, turn)
    for look in (search.start, search.plain_start):
        try:
            start = look(sample.data, within)
            if start is not None:
                within = start.within
                yield _settled(sample.data, start)
        except np.linalg.LinAlgError:  # covariances that no run could use
            continue


def _settled(data: FitData, start: Start) -> _Found:
    """After some exact steps over the sample, and the bound that they reach."""
    covariance, before, bad = data.covariance, -np.inf, False
    assert start.within is not None
    ridge = data.ridge(start.within)
    for _ in range(_STEPS):
        whiten = covariance.whiten(start.covariances)
        found = data.expected(start.weights, start.means, whiten, ridge)
        bound = found.log_likelihood / data.weight
        if not np.isfinite(bound):
            return _Found((True, np.inf), start)
        raw = covariance.raw(found)
        bad = bool(collapse.ill(data, ridge, found.counts, raw, None)[0].any())
        covariances = data.with_ridge(raw, ridge)
        start = Start(found.counts / found.counts.sum(), start.means + found.moves, covariances, start.within)
        if bound - before < _TOL:
            break
        before = bound
    return _Found((bad, -bound), start)
