"""The best of several descents: restarts, iteration limit, budget, checkpoint and Ctrl-C in one place.

Lloyd's algorithm, EM, annealing and kernel k-means are all `Descent`s: they define the starts and a single step.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Protocol, TypeAlias

import numpy as np

from foldwise.fold.checkpoint import Checkpoint
from foldwise.fold.iterate import Figures, State, iterate
from foldwise.fold.outcome import Outcome, Reason

Value: TypeAlias = tuple[float, ...]

UNLIMITED = 1 << 30


class Descent(Protocol):
    """An iterative minimisation. States are dicts of arrays, never modified in place; each step returns a new one."""

    @property
    def kept(self) -> Iterable[str] | None:
        """The arrays to keep of the best state; None for all."""

    def start(self, number: int, before: State | None) -> State:
        """The initial state of start `number`; `before` is the final state of the previous start."""

    def step(self, state: State) -> tuple[State, Figures]:
        """The next state, and figures for the trace."""

    def value(self, state: State) -> Value:
        """The value to minimise."""

    def ended(self, state: State) -> Reason | None:
        """Why this descent ended (converged, or capped if it gave up), or None if it continues."""


class Search(Protocol):
    """Attempts to improve on the best of the starts: each is an initial state for a descent."""

    counts_on: bool  # whether an attempt continues the best start, so that its steps are counted with it

    def begin(self, best: State, best_value: Value, last: State, run: int, *, capped: bool) -> State | None:
        """The first attempt, or None; `last` is the final state of the last start, `run` the number of that descent."""

    def after(self, ended: State, best: State, best_value: Value, run: int) -> tuple[State | None, bool]:
        """The next attempt, or None, and whether the descent that just ended is the best so far."""


@dataclass(frozen=True)
class Best:
    """The best descent: its state, value, start and number of steps, and the outcome of the whole fit."""

    state: State
    value: Value
    outcome: Outcome
    resumed_at: int
    start: int
    iterations: int
    last: State  # the state of the latest descent, with all its arrays


@dataclass
class _Cursor:
    """The progress of the whole fit, as integers stored in one array of the state."""

    start: int = 0
    iteration: int = 0
    run: int = 0
    searching: int = 0
    done: int = 0
    has_best: int = 0
    best_start: int = 0
    best_iterations: int = 0
    capped: int = 0  # whether the best descent reached max_iter, or gave up


def best_of(
    descent: Descent,
    starts: int,
    max_iter: int | None,
    *,
    then: Search | None = None,
    time_budget: float | None = None,
    checkpoint: Checkpoint | None = None,
) -> Best:
    """Descend from every start for at most `max_iter` steps, then search further with `then`; returns the best descent.

    With a single start, reaching `max_iter` ends the fit, which can be resumed with a higher limit.
    """
    whole = _Whole(descent, starts, max_iter, then)
    limit = max_iter if whole.alone and max_iter is not None else UNLIMITED
    state, outcome, resumed_at = iterate(
        whole.begin, whole.step, whole.done, max_iter=limit, time_budget=time_budget, checkpoint=checkpoint
    )
    cursor = _cursor(state)
    if outcome.converged and cursor.capped:
        outcome = replace(outcome, reason=Reason.CAPPED)
    here, value = _inner(state), descent.value(_inner(state))
    # Stopped early: the current descent may be better than the previous ones.
    if not cursor.has_best or (not cursor.done and value < tuple(state["best_value"].tolist())):
        return Best(here, value, outcome, resumed_at, cursor.start, cursor.iteration, here)
    best_value = tuple(state["best_value"].tolist())
    return Best(_best(state), best_value, outcome, resumed_at, cursor.best_start, cursor.best_iterations, here)


class _Whole:
    """All descents as a single loop of steps."""

    def __init__(self, descent: Descent, starts: int, max_iter: int | None, then: Search | None) -> None:
        self.descent, self.starts, self.max_iter, self.then = descent, starts, max_iter, then
        self.alone = starts == 1 and then is None

    def begin(self) -> State:
        state, beside, cursor = self.descent.start(0, None), State(), _Cursor()
        if self.descent.ended(state) is not None:  # already at its start
            state, beside = self._ended(state, beside, cursor, capped=False)
        return {**state, **_outer(cursor, beside)}

    def done(self, state: State) -> bool:
        return bool(_cursor(state).done)

    def step(self, state: State) -> tuple[State, Figures]:
        cursor = _cursor(state)
        now, figures = self.descent.step(_inner(state))
        cursor.iteration += 1
        figures = {"start": float(cursor.start), "run": float(cursor.run), **figures}
        reason = self.descent.ended(now)
        if reason is None and not self.alone and self.max_iter is not None and cursor.iteration >= self.max_iter:
            reason = Reason.CAPPED
        beside = {name: array for name, array in state.items() if name[:4] == "best"}
        if reason is not None:
            now, beside = self._ended(now, beside, cursor, capped=reason is Reason.CAPPED)
        return {**now, **_outer(cursor, beside)}, figures

    def _ended(self, ended: State, beside: State, cursor: _Cursor, *, capped: bool) -> tuple[State, State]:
        """What follows a descent: the next start, a search attempt, or nothing."""
        now: State | None
        if cursor.searching:
            assert self.then is not None
            known = tuple(beside["best_value"].tolist())
            now, keep = self.then.after(ended, _best(beside), known, cursor.run)
        else:
            value = self.descent.value(ended)
            keep = not cursor.has_best or value < tuple(beside["best_value"].tolist())
        if keep:
            beside = self._keep(ended, cursor, capped)
        if not cursor.searching:
            cursor.start += 1
            if cursor.start < self.starts:
                now = self.descent.start(cursor.start, ended)
            else:
                cursor.start, cursor.searching = cursor.best_start, 1
                now = None
                if self.then is not None:
                    value = tuple(beside["best_value"].tolist())
                    now = self.then.begin(_best(beside), value, ended, cursor.run, capped=bool(cursor.capped))
        if now is None:
            cursor.done = 1
            return ended, beside
        cursor.run += 1
        cursor.iteration = (
            cursor.best_iterations if cursor.searching and self.then is not None and self.then.counts_on else 0
        )
        return now, beside

    def _keep(self, ended: State, cursor: _Cursor, capped: bool) -> State:
        cursor.has_best, cursor.capped = 1, int(capped)
        cursor.best_iterations = cursor.iteration
        if not cursor.searching:
            cursor.best_start = cursor.start
        names = self.descent.kept if self.descent.kept is not None else ended
        value = np.array(self.descent.value(ended), dtype=np.float64)
        return {"best_value": value, **{f"best.{name}": ended[name] for name in names}}


def _cursor(state: State) -> _Cursor:
    return _Cursor(*state["cursor"].tolist())


def _outer(cursor: _Cursor, beside: State) -> State:
    return {**beside, "cursor": np.array(list(vars(cursor).values()), dtype=np.int64)}


def _inner(state: State) -> State:
    return {name: array for name, array in state.items() if name[:4] != "best" and name != "cursor"}


def _best(state: State) -> State:
    return {name.removeprefix("best."): array for name, array in state.items() if name.startswith("best.")}
