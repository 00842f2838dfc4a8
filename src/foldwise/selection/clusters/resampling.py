"""Do other samples give the same clusters? Prediction strength, from halves of the rows, and stability, by the bootstrap."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from foldwise.data.block import Floats
from foldwise.selection.agreement import adjusted_rand_of
from foldwise.selection.clusters.criterion import Judgement, gathered, vote
from foldwise.selection.clusters.references import reference_names
from foldwise.selection.clusters.rows import Rows
from foldwise.selection.clusters.sweep import Labels, Sweep, Task, contingency, nearest
from foldwise.stats.contingency import Contingency

_REPEATS = 5
_STRONG = 0.8  # Tibshirani and Walther 2005 advise 0.8 to 0.9
_CLEAR = 2.0  # standard deviations of what clusters forced on references have
_ROWS, _ROWS_PER_CLUSTER = 2_000, 60


def resampled_rows(sweep: Sweep) -> Rows:
    """The rows that are resampled: a sample of those that are judged."""
    most = max(_ROWS, _ROWS_PER_CLUSTER * sweep.ks[-1])
    rows: Rows = sweep.remember("resampled rows", lambda: sweep.rows.at_most(most, sweep.seed))
    return rows


class PredictionStrength:
    """The largest number for which the clusters of one half of the rows predict those of the other."""

    name, label, weight = "prediction strength", "prediction strength", 2.0

    def tasks(self, sweep: Sweep) -> list[Task]:
        """One for each cut in halves."""
        return [Task(f"halves {r}", lambda r=r: self._run(sweep, r)) for r in range(_REPEATS)]  # type: ignore[misc]

    def _run(self, sweep: Sweep, repeat: int) -> dict[str, Any]:
        rows = resampled_rows(sweep)
        half = np.random.default_rng([sweep.seed, 11, repeat]).permutation(rows.n) % 2 == 0
        one, other = rows.take(half), rows.take(~half)
        found = []
        for place, k in enumerate(sweep.ks):
            enough = min(one.n, other.n) > k
            found.append(_strength(sweep, one, other, k, repeat, place) if enough and k > 1 else float(k == 1))
        return {f"halves {repeat}": np.array(found)}

    def judge(self, sweep: Sweep) -> Judgement:
        """The largest number whose strength, give or take a standard error, reaches 0.8."""
        found = gathered(sweep, [f"halves {repeat}" for repeat in range(_REPEATS)])
        mean, error = found.mean(axis=0), found.std(axis=0, ddof=1) / np.sqrt(_REPEATS)
        reaches = [k for k, high in zip(sweep.ks, mean + error, strict=True) if high >= _STRONG]
        surely = [k for k, low in zip(sweep.ks, mean - error, strict=True) if low >= _STRONG]
        chosen = max(reaches)
        at = sweep.ks.index(chosen)
        if chosen == 1:
            best = mean[1:].max(initial=0.0)
            reason = (
                f"two halves of the rows agree on no number of clusters ({best:.2f} at the best, {_STRONG:g} is enough)"
            )
        else:
            sure = f"{mean[at]:.2f} give or take {error[at]:.2f}, {_STRONG:g} is enough"
            reason = f"the most clusters on which two halves of the rows agree ({sure})"
        return Judgement(vote(self, chosen, reason, [max(surely)]), sweep.ks, mean, error)


def _strength(sweep: Sweep, one: Rows, other: Rows, k: int, repeat: int, place: int) -> float:
    """Of the worst cluster of the second half: the share of its pairs of rows that the first half puts together."""
    first = sweep.quick(one, k, 12, repeat, place)
    own, told = (nearest(other.x, centres) for centres in (sweep.quick(other, k, 13, repeat, place), first))
    table = contingency(own, told, k, other.weight)
    sizes = table.sum(axis=1)
    together = (table * (table - 1.0)).sum(axis=1) / np.maximum(sizes * (sizes - 1.0), 1e-300)
    pairs = sizes > 1.5
    return float(np.clip(together[pairs], 0.0, 1.0).min()) if pairs.any() else 0.0


class Stability:
    """The number whose clusters come again when rows are drawn anew; agreement is corrected for the sizes of clusters."""

    name, label, weight = "stability", "stability (bootstrap)", 0.5

    def tasks(self, sweep: Sweep) -> list[Task]:
        """One for each sample with replacement, and the references."""
        from foldwise.selection.clusters.partition import reference_tasks

        own = [Task(f"bootstrap {r}", lambda r=r: self._run(sweep, r)) for r in range(_REPEATS)]  # type: ignore[misc]
        return [*own, *reference_tasks(sweep)]

    def _run(self, sweep: Sweep, repeat: int) -> dict[str, Any]:
        rows = resampled_rows(sweep)
        found = [
            agreement_after_resampling(sweep, rows, nearest(rows.x, sweep.centres(k)), k, repeat) for k in sweep.several
        ]
        return {f"bootstrap {repeat}": np.array(found)}

    def judge(self, sweep: Sweep) -> Judgement:
        """The largest agreement, if it is clearly above that of clusters forced on references."""
        ks = sweep.several
        found = gathered(sweep, [f"bootstrap {repeat}" for repeat in range(_REPEATS)])
        forced = gathered(sweep, [f"stability of {name}" for name in reference_names("radial")])
        mean, error = found.mean(axis=0), found.std(axis=0, ddof=1) / np.sqrt(_REPEATS)
        null, spread = forced.mean(axis=0), forced.std(axis=0, ddof=1)
        at = int(np.argmax(mean))
        as_good = [k for k, high in zip(ks, mean + 2 * error, strict=True) if high >= mean[at]]
        if mean[at] <= null[at] + _CLEAR * spread[at] / np.sqrt(_REPEATS):
            reason = f"most stable at {ks[at]} ({mean[at]:.2f} of 1), not clearly more than one group cut up ({null[at]:.2f})"
            return Judgement(vote(self, 1, reason), ks, mean, error, null)
        reason = f"most stable at {ks[at]}: {mean[at]:.2f} of 1, where one group cut up has {null[at]:.2f}"
        return Judgement(vote(self, ks[at], reason, as_good), ks, mean, error, null)


def agreement_after_resampling(sweep: Sweep, rows: Rows, labels: Labels, k: int, repeat: int) -> float:
    """The adjusted Rand index between labels and those of clusters found in a bootstrap sample, over all rows."""
    rng = np.random.default_rng([sweep.seed, 14, repeat])
    share = rows.weight / rows.weight.sum()
    counts: Floats = rng.multinomial(rows.n, share).astype(np.float64)
    drawn = counts > 0
    if np.count_nonzero(drawn) <= k:
        return 0.0
    found = sweep.quick(replace(rows.take(drawn), weights=counts[drawn]), k, 15, repeat, k)
    return adjusted_rand_of(Contingency.of(labels, nearest(rows.x, found), (k, k), rows.weights))
