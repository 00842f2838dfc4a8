"""How many clusters: the number at which clusterings of subsamples agree most, compared with data that have no clusters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from foldwise.data.block import Floats
from foldwise.data.source import count_rows
from foldwise.fold import blas
from foldwise.fold.passes import Passes
from foldwise.kernels import _core
from foldwise.models.ensemble.agreement import distribution, pac_of
from foldwise.models.ensemble.consensus import normalised_spectrum
from foldwise.models.ensemble.label_rows import LabelRows, draw_repeated
from foldwise.reportable import Reportable
from foldwise.stats.signs import signed

_RANGES = ((15, 400), (30, 600))  # largest number tried, and rows sampled; the second if the first does not do
_CLUSTERINGS = 20  # of subsamples, for each number
_NULLS = 10  # of each kind: one Gaussian, and a box, with the principal axes of the data
_SHARE = 0.8
_MOST_SHUFFLED = 8000  # label rows in the null of given labels


@dataclass(frozen=True)
class ConsensusChoice(Reportable):
    """For each number of clusters: how ambiguous the consensus is (PAC), and how much less so than without clusters.

    `gain` is log(mean PAC of the null sets / PAC); `threshold` is the largest gain that any null set reaches at any number. If
    no number exceeds it, `found` is False: there is no evidence of clusters, and `n_clusters` is 1. `cdfs` has, for each,
    the share of pairs of rows that are together in at most each share (0, 0.01, ..., 1) of the clusterings. From given
    labels, numbers are judged by the gaps in the spectrum of M instead (`eigenvalues`); labels in random order are the null.
    """

    numbers: tuple[int, ...]
    n_clusters: int
    found: bool
    reason: str
    pac: Floats = field(repr=False)
    null_pac: Floats = field(repr=False)
    gain: Floats = field(repr=False)
    threshold: float = 0.0
    cdfs: Floats | None = field(default=None, repr=False)
    eigenvalues: Floats | None = field(default=None, repr=False)
    rows: int = 0


def choose_number(
    passes: Passes, seed: int, *, weights: Floats | None = None, numbers: Sequence[int] | None = None
) -> ConsensusChoice:
    """The number of clusters of rows, from 2 to 30 (and to a quarter of the rows), on a sample in which weights are repetition.

    Numbers up to 15 are tried first, on at most 400 rows. If none of them is clear, or the largest is the best, those up to 30
    are too, on at most 600. More clusters are not looked for: if 30 is the best, `reason` says that there may be more.
    """
    tried: list[_Tried] = []
    choice = None
    for most, size in _RANGES:
        x = _sample(passes, seed, weights, size)
        first = tried[-1].numbers[-1] + 1 if tried else 2
        asked = tuple(numbers or range(first, max(min(most, len(x) // 4), 1) + 1))
        if not asked:
            break
        with blas.single():
            tried.append(_try(x, asked, seed))
        choice = _chosen(tried)
        if numbers is not None or (choice.found and choice.n_clusters < asked[-1]):
            break
    if choice is None:
        nothing = np.empty(0)
        reason = f"{len(x)} rows are too few to look for clusters"
        return ConsensusChoice((), 1, False, reason, nothing, nothing, nothing, rows=len(x))
    return choice


@dataclass(frozen=True)
class _Tried:
    """Some numbers on one sample: the distributions of M, and PAC of the sample and of the null sets (sets x numbers)."""

    numbers: tuple[int, ...]
    rows: int
    cdfs: Floats
    pac: Floats
    nulls: Floats


def _try(x: Floats, asked: tuple[int, ...], seed: int) -> _Tried:
    cdfs = np.array([_cdf(x, k, seed) for k in asked])
    nulls = np.array([[pac_of(_cdf(other, k, seed + 1 + r)) for k in asked] for r, other in _null_sets(x, seed)])
    return _Tried(asked, len(x), cdfs, np.array([pac_of(cdf) for cdf in cdfs]), nulls)


def _chosen(tried: Sequence[_Tried]) -> ConsensusChoice:
    asked = tuple(k for one in tried for k in one.numbers)
    pac, nulls = np.concatenate([one.pac for one in tried]), np.concatenate([one.nulls for one in tried], axis=1)
    least = np.repeat([1.0 / one.rows for one in tried], [len(one.numbers) for one in tried])  # less is as good as none
    mean = np.log(nulls + least).mean(axis=0)
    gain = mean - np.log(pac + least)
    threshold = float((mean - np.log(nulls + least)).max())
    best = int(np.argmax(gain))
    found = bool(gain[best] > threshold)
    if found:
        best = _finest(asked, best, pac)
    reason = _reason(asked, best, found, float(pac[best]), nulls[:, best])
    k, cdfs = asked[best] if found else 1, np.concatenate([one.cdfs for one in tried])
    return ConsensusChoice(asked, k, found, reason, pac, nulls.mean(axis=0), gain, threshold, cdfs, rows=tried[-1].rows)


def _reason(asked: Sequence[int], best: int, found: bool, pac: float, nulls: Floats) -> str:
    last, k = len(asked) > 1 and best == len(asked) - 1, asked[best]
    null = f"{100 * nulls.mean():.1f} % in data without clusters"
    figures = f"{100 * pac:.1f} % of the pairs of rows are ambiguous, against {null}"
    if found:
        return f"{k} clusters{', the largest number tried, so there may be more' if last else ''}: {figures}"
    alike = f"with {k}, the best number, {figures}, a difference that chance makes too"
    if last:
        return f"undecided: the largest number tried is the best, so there may be more clusters, or none; {alike}"
    return f"no clusters found: {alike}"


def _finest(numbers: Sequence[int], best: int, pac: Floats) -> int:
    """Among the numbers that are as unambiguous as the best, the largest: it says the most."""
    # One of k equal clusters that is cut in two at random makes about 1 / (2 k^2) of the pairs ambiguous.
    alike = pac <= pac[best] + np.minimum(0.005, 0.25 / np.square(numbers))
    return int(np.flatnonzero(alike | (np.arange(len(pac)) == best))[-1])


def choose_from_labels(rows: LabelRows, seed: int) -> ConsensusChoice:
    """The number of clusters that ready-made clusterings agree on: before the largest gap in the spectrum of M.

    Only eigenvalues above those of clusterings with the same sizes that have nothing to do with each other count.
    """
    values = np.clip(normalised_spectrum(rows)[0][::-1], 0.0, 1.0)
    # As many rows as there are (weights count as rows), with labels drawn from each clustering on its own.
    n = int(np.clip(round(rows.weight), 2, _MOST_SHUFFLED))
    rng = np.random.default_rng([seed, 17])
    shares = np.where(rows.present, rows.weights, 0.0) / rows.weight
    tops = []
    for _ in range(_NULLS):
        drawn = [rng.choice(rows.n, n, p=shares) for _ in range(rows.clusterings.count)]
        tops.append(np.append(normalised_spectrum(_unrelated(rows, drawn))[0][::-1], 0.0)[1])
    threshold = float(min(max(tops), 1.0))
    gaps = values - np.append(values[1:], 0.0)
    allowed = (values > threshold + 1e-9) & (np.arange(len(values)) > 0)
    numbers = tuple(range(1, len(values) + 1))
    nothing = np.full(len(values), np.nan)
    if not allowed.any():
        reason = "no clusters found: the clusterings agree no more than clusterings in random order do"
        return ConsensusChoice(numbers, 1, False, reason, nothing, nothing, gaps, threshold, eigenvalues=values, rows=n)
    k = int(np.argmax(np.where(allowed, gaps, -1.0))) + 1
    after = values[k] if k < len(values) else 0.0
    reason = f"{k} clusters: the eigenvalues of the consensus matrix fall from {values[k - 1]:.2f} to {after:.2f} there"
    return ConsensusChoice(numbers, k, True, reason, nothing, nothing, gaps, threshold, eigenvalues=values, rows=n)


def _unrelated(rows: LabelRows, drawn: list[NDArray[np.intp]]) -> LabelRows:
    """Label rows put together from other rows in each clustering."""
    given = rows.clusterings
    ends = [*given.starts[1:], given.total]
    columns = [
        slice(a, b) if given.soft else slice(t, t + 1) for t, (a, b) in enumerate(zip(given.starts, ends, strict=True))
    ]
    values = np.column_stack([given.values[which, at] for which, at in zip(drawn, columns, strict=True)])
    return LabelRows(replace(given, values=values), np.ones(len(values)), rows.passes)


# ---------------------------------------------------------------- clusterings of subsamples


def _sample(passes: Passes, seed: int, weights: Floats | None, size: int) -> Floats:
    """Some rows in float64, centred, of size about 1; missing cells as the mean of the column."""
    total = count_rows(passes.source) if weights is None else max(round(float(weights.sum())), 1)
    which = draw_repeated(weights, total, size, [seed, 19])
    x = passes.take(which).astype(np.float64)
    x = x - np.nanmean(x, axis=0)
    x = np.nan_to_num(x, nan=0.0)
    return np.asarray(x / max(float(np.abs(x).max()), 1e-300))


def _null_sets(x: Floats, seed: int) -> list[tuple[int, Floats]]:
    """Sets with the principal axes of the data and no clusters: one Gaussian, or uniform in a box."""
    _, sizes, axes = np.linalg.svd(x, full_matrices=False)
    scores = x @ signed(axes).T
    low, high = scores.min(axis=0), scores.max(axis=0)
    made = []
    for r in range(2 * _NULLS):
        rng = np.random.default_rng([seed, 23, r])
        gaussian = rng.standard_normal(scores.shape) * sizes / np.sqrt(len(x))
        null = rng.uniform(low, high, scores.shape) if r % 2 else gaussian
        made.append((r, np.ascontiguousarray(null)))
    return made


def _cdf(x: Floats, k: int, seed: int) -> Floats:
    """The distribution of M over clusterings of subsamples; rows outside a subsample are with their nearest centre."""
    n, rng = len(x), np.random.default_rng([seed, 29, k])
    size = max(int(_SHARE * n), min(n, k + 1))
    together = np.zeros((n, n), dtype=np.uint8)
    for _ in range(_CLUSTERINGS):
        part = np.ascontiguousarray(x[np.sort(rng.choice(n, size, replace=False))])
        centres = np.empty((k, x.shape[1]))
        _core.search_small_table(part, None, None, False, int(rng.integers(2**62)), 1, 0, 0, 1, centres)
        labels = np.argmax(x @ centres.T - 0.5 * np.einsum("kj,kj->k", centres, centres), axis=1).astype(np.uint8)
        together += labels[:, None] == labels
    times = np.bincount(together.ravel(), minlength=_CLUSTERINGS + 1).astype(np.float64)
    times[-1] -= n  # rows with themselves
    return distribution(np.arange(_CLUSTERINGS + 1) / _CLUSTERINGS, times)
