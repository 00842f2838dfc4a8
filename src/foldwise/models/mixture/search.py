"""The search for a start of EM: several short runs on a sample of rows in memory, the best improved by moves away from it.

Its effort follows from the shape of the table and from the first run, never from the clock. Let `m` be the rows of the sample
(`search_rows.sample_size`; all rows of a small table), and `f` the steps that EM takes from the first k-means until a step
gains less than 1e-3. The budget of steps over the sample is

    (f + 3) (2 n / m + _MORE / (max(m, 500) (1 + d^2 / 25)))

so that a search takes a few times as long as one plain fit where that is slow, and hardly any time where one run settles at
once. A fifth of it goes to further starts: k-means in each view of the rows (columns in equal units, in their own, without
correlations), for two components also one that is cut in two, then k-means of few steps from other seeds. Each runs for
max(4, f / 4) steps, and the best one to three go on. The rest goes to moves, each judged by 5 steps, or up to 32 while it may
still gain: splits and merges (Ueda and others 2000), and by turns with them two to four steps with densities to a power below
one (Ueda and Nakano 1998). The latter let go of rows that a start has bound to the wrong component; in many columns nearly
all rows are bound from the first step. It ends when twenty splits and three powers in a row have failed. The last run has at
most 3 (f + 10) steps. Where the first one settles in 4 and no other start is better, clusters are far apart, and no move is
tried.

Runs in which a component gets fewer than twice the rows that determine its covariance, or becomes flat, count as collapsed:
the likelihood of such spikes says nothing. But if the first run becomes flat with many rows in each component, many rows are
alike in some direction, as where columns are indicators or were cut off at a value. EM over all rows leaves such components
as they are (`collapse.py`), and so do all runs then: those that avoid them would only find less likely models. All of it is
done by one thread in this process, so that neither threads nor engines matter, and on rows that are sorted, equal ones as
one, so that neither order nor repetition matters either (but which rows a sample of a large table holds depends on their
numbers).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from foldwise.data.block import Floats
from foldwise.models.mixture.collapse import crowded
from foldwise.models.mixture.fit_data import FitData
from foldwise.models.mixture.search_rows import KINDS, Model, Runs, SearchRows
from foldwise.models.mixture.start import Start
from foldwise.stats.signs import signed

_LLOYD, _SWAPS = 10, 6  # of k-means in each view
_FEW = 3  # Lloyd steps of further starts, which are to differ
_FIRST, _ROUGH = 50, 1e-3  # steps and tolerance of the first run
_COLLAPSED = 20  # what a first run counts as if it collapses
_TOL, _FINE = 1e-5, 5e-6  # of the other runs, and of the last
_STARTS = 16  # further ones, at most
_AT_LEAST = 4  # if the first one collapses
_SHARE = 0.2  # of the budget for starts
_POLISH = 3  # times the steps of the first run: the last one
_SHORT = 0.25  # of the steps of the first run: those of further ones
_TIMES = 2.0  # passes over all rows for each step of the first run
_MORE, _SMALL = 6000, 150  # rows times passes besides, and the fewest rows that they are divided by
_QUICK = 4  # steps after which clusters are far apart
_PATIENCE = 20  # splits and merges that fail
_SOFT = ((0.1, 2), (0.3, 4), (0.03, 2))  # powers of the densities, and steps with them
_JUDGED = (3, 8, 16)  # steps of a split after the first five, while it gains
_CALLS = 2000  # rows times components: what a start or a split costs besides its steps
_AHEAD = 10  # steps over which its gain is projected
_GAIN = 1e-4  # in the bound of a row: less is not better


class MixtureSearch:
    """One search; `steps` counts those over the sample."""

    def __init__(self, rows: SearchRows, seed: int, number: int) -> None:
        self.rows, self.seed, self.number = rows, seed, number
        self.steps = self.each = 0.0
        self.views = rows.views

    def start(self, data: FitData, within: Floats | None) -> Start | None:
        """The best start found, in the units of the fit; None if all collapse, or there is no density at all."""
        rows, kind = self.rows, self.rows.covariance
        counts, means, matrices = self._kmeans(0)
        if within is None:
            within = data.widths(kind.of_matrices(matrices, counts), counts)
        runs = Runs.of(rows, data.ridge(within).added)
        if runs is None:
            return None
        begin = _model(runs, counts, means, matrices)
        best = self._search(runs, begin)
        if not np.isfinite(best.bound):  # all have collapsed: EM from a plain start knows how to mend that
            return None
        return Start(best.weights, best.means + rows.centre, best.covariances, within)

    def plain_start(self, data: FitData, within: Floats | None) -> Start:
        """What k-means finds, without any search."""
        kind, (counts, means, matrices) = self.rows.covariance, self._kmeans(0)
        if within is None:
            within = data.widths(kind.of_matrices(matrices, counts), counts)
        weights = np.maximum(counts, 1e-3 * counts.sum() / len(counts))
        covariances = data.with_ridge(kind.of_matrices(matrices, counts), data.ridge(within))
        return Start(weights / weights.sum(), means + self.rows.centre, covariances, within)

    def _search(self, runs: Runs, begin: Model) -> Model:
        rows, k, d = self.rows, self.rows.k, self.rows.covariance.d
        first = self._run(runs, begin, _FIRST, _ROUGH)
        taken = int(self.steps)
        if not np.isfinite(first.bound):
            flat = runs.with_flat()
            again = self._run(flat, begin, _FIRST, _ROUGH)
            if np.isfinite(again.bound):
                runs, first, taken = flat, again, int(self.steps) - taken
            else:
                taken = max(taken, _COLLAPSED)
        budget = (taken + 3) * (_TIMES * rows.share + _MORE / (max(len(rows.x), _SMALL) * (1 + d * d / 25)))
        short = max(4, int(taken * _SHORT))
        self.each = _CALLS / (max(len(rows.x), _SMALL) * k)
        further = int(min(_SHARE * budget / (short + 2 + self.each), _STARTS))
        if not np.isfinite(first.bound):
            further = max(further, _AT_LEAST)
        found = [first, *(self._run(runs, one, short, 10 * _TOL) for one in self._starts(runs, further))]
        order = np.argsort([-one.bound for one in found], kind="stable")
        some = [found[i] for i in order[: 1 + (further >= 2) + (further >= 8)]]
        best = max((self._better(runs, one, max(6, taken // 2)) for one in some), key=lambda one: one.bound)
        apart = taken <= _QUICK and best.bound <= first.bound + _GAIN
        bests = [best]
        if not apart and np.isfinite(best.bound):
            bests.append(self._improved(runs, best, budget * (1 - _SHARE)))
        for one in reversed(bests):  # the best that does not collapse in the end
            best = self._run(runs, one, _POLISH * (taken + 10), _FINE)
            if np.isfinite(best.bound):
                return best
        return bests[0]

    def _improved(self, runs: Runs, best: Model, budget: float) -> Model:
        effort: dict[str, Any] = {"budget": budget, "each": self.each, "patience": _PATIENCE, "powers": _SOFT}
        best, done = runs.improved(best, **effort, judged=_JUDGED, ahead=_AHEAD, gain=_GAIN, tol=_TOL)
        self.steps += done
        return best

    def _starts(self, runs: Runs, many: int) -> Iterator[Model]:
        views, d = len(self.views), self.rows.covariance.d
        cuts: tuple[int, ...] = ()
        if self.rows.k == 2:
            cuts = (0,) if self.rows.covariance.shared else (0, -1)
            cuts = (*cuts, 1) if d > 1 else cuts
        for number in range(many):
            if views - 1 <= number < views - 1 + len(cuts):
                yield self._cut(runs, cuts[number - views + 1])
            else:
                after = number >= views - 1
                yield _model(runs, *self._kmeans(number + 1 - (len(cuts) if after else 0)))

    def _cut(self, runs: Runs, how: int) -> Model:
        """One component for all rows, cut along its longest axis (0), the next (1), or into core and surroundings (-1)."""
        whole, mean = self.rows.whole, self.rows.mean
        if how < 0:
            return runs.model(np.full(2, 0.5), np.stack([mean, mean]), np.stack([0.3 * whole, 1.7 * whole]))
        values, vectors = np.linalg.eigh(whole)
        axis = signed(vectors[:, -1 - how][None])[0]  # whichever way round it was found
        along = axis * math.sqrt(max(float(values[-1 - how]), 0.0)) * 0.8
        less = whole - np.outer(along, along)
        return runs.model(np.full(2, 0.5), np.stack([mean + along, mean - along]), np.stack([less, less]))

    def _kmeans(self, number: int) -> tuple[Floats, Floats, Floats]:
        rng = np.random.default_rng([self.seed, 5, self.number, number])
        good, k = number < len(self.views), self.rows.k
        steps, swaps, trials = (_LLOYD, _SWAPS if number < 2 else 0, 2 + int(np.log(k))) if good else (_FEW, 0, 1)
        return self.rows.moments(self.rows.labels(self.views[number % len(self.views)], steps, swaps, trials, rng))

    def _run(self, runs: Runs, model: Model, steps: int, tol: float) -> Model:
        after, done = runs(model, steps, tol)
        self.steps += done
        return after

    def _better(self, runs: Runs, model: Model, steps: int) -> Model:
        """After more steps; as it is if they make it collapse."""
        after = self._run(runs, model, steps, _TOL)
        return after if np.isfinite(after.bound) else model


def _model(runs: Runs, counts: Floats, means: Floats, matrices: Floats) -> Model:
    weights = np.maximum(counts, 1e-3 * counts.sum() / len(counts))
    return runs.model(weights / weights.sum(), means, matrices)


def searched_start(data: FitData, k: int, seed: int, number: int, within: Floats | None) -> Start | None:
    """Start `number` by a search; None if there are no compiled runs for this kind of covariance.

    Nor for rows many of which are equal, where the likelihood has no bound: EM finds them from a plain start, and says so. Nor
    where there are so few rows that every run would collapse.
    """
    if k == 1 or data.covariance.name not in KINDS or crowded(data.covariance, data.weight, k):
        return None
    rows = SearchRows.of(data, k, seed)
    if len(rows.x) < 2 * k or rows.has_atom:
        return None
    try:
        return MixtureSearch(rows, seed, number).start(data, within)
    except np.linalg.LinAlgError:  # covariances that no run could use
        return None
