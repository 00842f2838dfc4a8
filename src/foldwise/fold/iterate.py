"""The only multi-pass loop: steps, checkpoint and resume, time budget, Ctrl-C, events."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any, TypeAlias

from numpy.typing import NDArray

from foldwise.fold import deadline, events
from foldwise.fold.checkpoint import Checkpoint, Saved
from foldwise.fold.deadline import OutOfTimeError
from foldwise.fold.outcome import Outcome, Reason

State: TypeAlias = dict[str, NDArray[Any]]
Figures: TypeAlias = dict[str, float]


def iterate(
    start: Callable[[], State],
    step: Callable[[State], tuple[State, Figures]],
    done: Callable[[State], bool],
    *,
    max_iter: int,
    time_budget: float | None = None,
    checkpoint: Checkpoint | None = None,
    needs: Collection[str] = (),
) -> tuple[State, Outcome, int]:
    """Repeat `step` until `done`; returns the state, the outcome, and the step at which a checkpoint was resumed.

    A state is a dict of arrays and is never modified in place, so an interrupted step leaves the previous state intact.
    Time spent before an interruption counts, and so does the start: the budget applies to the fit, not to the process. A step
    may also raise OutOfTimeError itself; raised by the start it reaches the caller, since there is no state yet.
    A checkpoint without the arrays that a step `needs`, from an older version, is refused.
    """
    began, saved = deadline.now(), checkpoint.load(needs) if checkpoint else None
    state, trace, number, before = (
        (saved.state, saved.trace, saved.step, saved.seconds) if saved else (start(), [], 0, 0.0)
    )
    resumed_at, reason = number, Reason.CONVERGED
    began -= before

    def seconds() -> float:
        return deadline.now() - began

    try:
        while not done(state):
            if number >= max_iter:
                reason = Reason.CAPPED
                break
            if time_budget is not None and seconds() >= time_budget:
                reason = Reason.OUT_OF_TIME
                break
            state, figures = step(state)
            number += 1
            trace.append(figures)
            if checkpoint:
                checkpoint.save(Saved(number, seconds(), state, trace))
            events.emit(events.StepDone(number, max_iter, figures))
    except KeyboardInterrupt:
        reason = Reason.INTERRUPTED
    except OutOfTimeError:
        reason = Reason.OUT_OF_TIME
    if checkpoint:
        if reason is Reason.CONVERGED:
            checkpoint.remove()
        else:
            checkpoint.save(Saved(number, 0.0, state, trace), now=True)  # a new call has a new budget
    return state, Outcome(reason, number, seconds(), tuple(trace)), resumed_at
