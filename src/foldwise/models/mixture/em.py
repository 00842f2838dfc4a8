"""EM as a descent: steps from several starts, collapsed components restarted on the way.

What EM climbs. With a ridge, covariances are S + ridge after each M-step, as everywhere. That is the exact M-step of the lower
bound sum_n w_n log sum_j pi_j N(x_n | m_j, C_j) exp(-tr(ridge C_j^-1) / 2), the likelihood with each density lowered by what
the ridge costs it; the E-step here belongs to the same bound. So it never falls, with any ridge, and without one it is the
likelihood. An automatic ridge is taken from the widths of components in the first start. Where these turn out much narrower
than they started, EM goes on with a lower ridge once it has settled: the same model then has a higher bound.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from foldwise.data.block import Floats
from foldwise.errors import DataError
from foldwise.fold.iterate import Figures, State
from foldwise.fold.multistart import Value
from foldwise.fold.outcome import Reason
from foldwise.models.mixture import collapse
from foldwise.models.mixture.fit_data import FitData, Ridge
from foldwise.models.mixture.start import Start
from foldwise.models.mixture.starts import Starts

_REPAIRS = 5  # in one start: then the components are left as they are, and the model says so
_PATIENT = 20  # steps that gain less than tol, after which a start ends however slowly their gains fall
_NARROWER = 1 / 16  # of the variances that the ridge was taken from: below, it is taken anew

ILL_DEFINED = (
    "Fitting the mixture model failed because some components have ill-defined empirical covariance (for instance caused by "
    "singleton or collapsed samples). Try to decrease the number of components, increase reg_covar, or scale the input data."
)


class EM:
    """A `Descent`. Its states hold, besides weights, means, covariances and `whiten`:

    `within`, the variances that the ridge is taken from, and with it `ridge` and `flat`; `bound`, the lower bound that the last
    step found, and `before`, what the next one is compared with (NaN after a repair); `number` of the start; `run` (a repair
    begins a new one); `repairs` in this start; `ill`, whether components are collapsed; `atoms`, whether some sit on many rows
    that are alike; `rough`, whether a coarse tolerance will do; `gain` of the last step and how many in a row were `small`;
    `settled`.
    """

    kept: Iterable[str] | None = None

    def __init__(
        self,
        data: FitData,
        starts: Starts | Start,
        tol: float,
        seed: int,
        *,
        rough: float = 0.0,
        before: float = math.nan,
    ) -> None:
        """`tol` and `rough` are of the lower bound for each row, `before` what a warm start had reached for the same rows."""
        self.data, self.starts, self.seed, self.before = data, starts, seed, before
        self.tol, self.rough = tol, max(tol, rough)

    def start(self, number: int, before: State | None) -> State:
        """The state of a start; the first one settles the ridge for all, since their bounds are compared."""
        data = self.data
        within = None if before is None else before["within"]
        begin = self.starts if isinstance(self.starts, Start) else self.starts.make(data, number, within)
        if within is None:
            within = begin.within
        if within is None:
            within = data.widths(begin.covariances, begin.weights * data.weight)
        run = 0 if before is None else int(before["run"]) + 1
        return {
            **_of_start(begin, self._whiten(begin.covariances)),
            **self._within(within),
            **_numbers(bound=self.before, before=self.before),
            **_numbers(gain=math.nan, small=0),
            **_numbers(number=number, run=run, repairs=0, ill=False, atoms=False, rough=True, settled=False),
        }

    def value(self, state: State) -> Value:
        """Collapsed models last, then the higher bound."""
        return float(state["ill"]), -float(state["bound"])

    def ended(self, state: State) -> Reason | None:
        """When the bound has settled."""
        return Reason.CONVERGED if state["settled"] else None

    def step(self, state: State) -> tuple[State, Figures]:
        """E-step, M-step, and repairs if components have collapsed."""
        data, covariance = self.data, self.data.covariance
        within, before, ridge = state["within"], float(state["before"]), Ridge(state["ridge"], state["flat"])
        found = data.expected(state["weights"], state["means"], state["whiten"], ridge)
        bound = found.log_likelihood / data.weight
        if not np.isfinite(bound):
            raise DataError(ILL_DEFINED)
        raw = covariance.raw(found)
        covariances, whiten = data.factorised(covariance.with_ridge(raw, ridge.added), ridge)
        new = Start(found.counts / found.counts.sum(), state["means"] + found.moves, covariances)
        bad, left = collapse.ill(data, ridge, found.counts, raw, whiten)
        mend, repairs, run = bad & ~left, int(state["repairs"]), int(state["run"])
        figures = {
            "start": float(state["number"]),
            "run": float(run),
            "lower_bound": bound,
            "change": np.inf if np.isnan(before) else bound - before,
            "least_weight": float(found.counts.min()),
            "collapsed": float(bad.sum()),
        }
        # What seems flat beside a ridge taken from too wide a start may be no more than narrow.
        narrower = self._narrower(within, raw, found.counts) if bad.any() else None
        mended = narrower is None and bool(mend.any()) and not mend.all() and repairs < _REPAIRS
        figures["restarted"] = float(mend.sum()) if mended else 0.0
        if mended:
            rng = np.random.default_rng([self.seed, 2, int(state["number"]), repairs])
            try:
                new = collapse.restarted(data, ridge, new, mend, rng)
            except np.linalg.LinAlgError:  # the others have no density either
                raise DataError(ILL_DEFINED) from None
            whiten, repairs = data.try_whiten(new.covariances), repairs + 1
        if whiten is None:  # a model that has no density is not handed out
            raise DataError(ILL_DEFINED)
        gain = bound - before
        small = int(state["small"]) + 1 if gain < self.tol else 0
        settled = not mended and narrower is None and self._settled(state, gain, small)
        if settled:
            narrower = self._narrower(within, raw, found.counts)
        fresh = mended or narrower is not None  # bounds are not to be compared across
        after = {
            **state,
            **_of_start(new, whiten),
            **({} if narrower is None else self._within(narrower)),
            **_numbers(bound=bound, before=math.nan if fresh else bound, run=run + fresh, repairs=repairs),
            **_numbers(gain=math.nan if fresh else gain, small=0 if fresh else small),
            **_numbers(ill=bool(mend.any()) and not fresh, atoms=left.any(), settled=settled and not fresh),
        }
        return after, figures

    def _settled(self, state: State, gain: float, small: int) -> bool:
        """Whether all further steps together would gain less than tol, if gains go on falling as they just did (Aitken).

        On a plateau each step gains little, but the next one hardly less, or more.
        """
        if gain <= 0:  # a bound that does not rise any more has reached what rounding allows
            return True
        if state["rough"] and self.rough > self.tol:
            return gain < self.rough
        if not gain < self.tol:
            return False
        last = float(state["gain"])
        if math.isnan(last):  # there is nothing to project from; a warm start has been judged before
            return math.isfinite(self.before) or gain < self.tol / 10
        return small >= _PATIENT or (gain < last and gain * gain / (last - gain) < self.tol)

    def _within(self, within: Floats) -> State:
        ridge = self.data.ridge(within)
        return {"within": within, "ridge": ridge.added, "flat": ridge.flat}

    def _narrower(self, within: Floats, raw: Floats, counts: Floats) -> Floats | None:
        """What to take a lower ridge from, if components are much narrower than where it was taken from."""
        now = self.data.widths(raw, counts)
        lower = (now > 0) & (now < _NARROWER * within)
        if not lower.any():
            return None
        new = np.where(lower, now, within)
        before = self.data.ridge(within).added
        return new if (self.data.ridge(new).added < _NARROWER * before).any() else None

    def _whiten(self, covariances: Floats) -> Floats:
        found = self.data.try_whiten(covariances)
        if found is None:
            raise DataError(ILL_DEFINED)
        return found


class Polish:
    """A `Search`: the best of rough starts goes on to a finer tolerance, with the ridge that the last start had."""

    counts_on = True

    def begin(self, best: State, best_value: Value, last: State, run: int, *, capped: bool) -> State | None:
        """The best start, unless it was stopped at max_iter."""
        if capped:
            return None
        gone_on = {name: last[name] for name in ("within", "ridge", "flat", "repairs")}
        run = int(last["run"]) + 1
        return {
            **best,
            **gone_on,
            **_numbers(before=float(best["bound"]), run=run, rough=False, gain=math.nan, small=0, settled=False),
        }

    def after(self, ended: State, best: State, best_value: Value, run: int) -> tuple[State | None, bool]:
        """Nothing more."""
        return None, True


def _of_start(start: Start, whiten: Floats) -> State:
    return {"weights": start.weights, "means": start.means, "covariances": start.covariances, "whiten": whiten}


def _numbers(**values: Any) -> State:
    return {name: np.array(value) for name, value in values.items()}
