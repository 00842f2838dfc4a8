"""The steps of soft k-means, at one stiffness or at a series of rising ones, as a walk that can be stopped anywhere."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from foldwise.data.block import Block, Floats
from foldwise.fold.checkpoint import Checkpoint
from foldwise.fold.cursor import Place
from foldwise.fold.iterate import Figures, State, iterate
from foldwise.fold.outcome import Outcome, Reason
from foldwise.kernels.mixture import Components
from foldwise.models.kmeans import lloyd
from foldwise.models.kmeans.assignment import Assignment
from foldwise.stats.moments import Moments
from foldwise.stats.responsibility_sums import ResponsibilitySums

_FACTOR = 1.3  # from one stiffness to the next
_STEPS = 30  # at one stiffness on the way, at most
_NEAR = 0.05  # stop when the free energy is known to be this near to the inertia
_APART = 0.05  # twins further apart than this, in widths 1 / sqrt(2 beta), are two centres
_NUDGE = 0.1  # widths between twins at first
_WIDE = 1000  # columns: beyond this the largest variance is bounded and not worked out
_MOST = 300  # stiffnesses
_LEAST = 1e-26  # of the mean variance: less squared movement is rounding


@dataclass(frozen=True)
class Plan:
    """What was asked for; `beta` is None for annealing."""

    k: int
    beta: float | None
    starts: int
    max_iter: int
    tol: float  # of summed squared movement, in the units of the data
    seed: int
    make_start: Callable[[Assignment, int], NDArray[Any]]


@dataclass
class Cursor(Place):
    """Where in the plan the state stands."""

    start: int = 0
    iteration: int = 0
    here: int = 0  # steps at this stiffness
    level: int = 0  # how often it was raised
    done: int = 0
    capped: int = 0
    best_iterations: int = 0


@dataclass(frozen=True)
class Found:
    """How it ended."""

    centres: NDArray[Any]
    beta: float
    outcome: Outcome
    resumed_at: int
    iterations: int


def components(
    centres: Floats,
    beta: float,
    pivot: Floats,
    dtype: np.dtype[Any],
    masses: Floats | None = None,
    *,
    narrow: bool = True,
) -> Components:
    """Densities exp(-beta |x - m|^2), times masses: the responsibilities of soft k-means are theirs."""
    k = len(centres)
    return Components(
        "spherical",
        np.zeros(k) if masses is None else np.log(np.maximum(masses, 1e-300)),
        np.ascontiguousarray(centres),
        np.full(k, math.sqrt(2 * beta)),
        pivot,
        dtype,
        scatter="none" if masses is None else "diag",
        narrow=narrow,
    )


def search(
    rows: Assignment, plan: Plan, *, time_budget: float | None = None, checkpoint: Checkpoint | None = None
) -> Found:
    """Carry out the plan; afterwards labels in `rows` belong to the centres found."""
    if checkpoint is not None:
        columns = rows.extent.columns
        checkpoint.bind(columns.weight, columns.centre, columns.squares, rows.extent.low, rows.extent.high)
    walk = _Walk(rows, plan)
    limit = plan.max_iter * plan.starts if plan.beta is not None else 1 << 30
    state, outcome, resumed_at = iterate(
        walk.begin, walk.step, walk.done, max_iter=limit, time_budget=time_budget, checkpoint=checkpoint
    )
    cursor = Cursor.of(state)
    if outcome.converged and cursor.capped:
        outcome = replace(outcome, reason=Reason.CAPPED)
    best = len(state["best"]) > 0
    centres = (state["best"] if best else state["centres"]).astype(rows.dtype)
    beta = float(state["best_beta"] if best else state["beta"])
    rows.forget()
    if len(centres) < plan.k:  # annealing was cut short: one step of k-means fills what is not there yet
        centres = lloyd.step(rows, _padded(centres, plan.k)).centres
    rows.assign(np.ascontiguousarray(centres))
    return Found(centres, beta, outcome, resumed_at, cursor.best_iterations if best else cursor.iteration)


class _Walk:
    def __init__(self, rows: Assignment, plan: Plan) -> None:
        self.rows, self.plan = rows, plan
        self.weight = rows.extent.columns.weight
        self.deviation = np.sqrt(rows.squares / self.weight) / rows.frame.scale
        self.tol = max(plan.tol, _LEAST * float((self.deviation**2).mean()))

    def begin(self) -> State:
        annealing = self.plan.beta is None
        first = 0.0 if self.plan.beta is None else self.plan.beta
        if annealing and self.deviation.any():
            first = self._first()
        centres = self._start(0)
        return {
            "centres": centres,
            "masses": np.ones(len(centres)) if annealing else np.empty(0),
            "beta": np.array(first),
            "first": np.array(first),
            "best": np.empty((0, self.rows.d)),
            "best_value": np.array(np.inf),
            "best_beta": np.array(first),
            "cursor": Cursor().array(),
        }

    def _first(self) -> float:
        """Half of the stiffness at which one centre first parts in two: 1 / (2 l), l the largest variance (Rose 1990)."""
        if self.rows.d > _WIDE:
            largest = float(self.deviation @ self.deviation)
        else:
            moments = self.rows.run.fold(Moments.of)
            upper = np.triu(moments.scatter) / moments.weight
            largest = float(np.linalg.eigvalsh(upper + np.triu(upper, 1).T)[-1])
        return 1.0 / (4.0 * largest)

    def _start(self, number: int) -> Floats:
        if self.plan.beta is not None:
            return self.plan.make_start(self.rows, number).astype(np.float64)
        return np.array(self.rows.extent.columns.mean[None])

    def done(self, state: State) -> bool:
        return bool(Cursor.of(state).done)

    def step(self, state: State) -> tuple[State, Figures]:
        rows, plan, cursor = self.rows, self.plan, Cursor.of(state)
        centres, beta = state["centres"], float(state["beta"])
        annealing = plan.beta is None
        if beta == 0.0:  # rows that are all equal: there is nothing to anneal
            return self._polished(state, cursor, centres), {"beta": 0.0, "free_energy": 0.0, "shift": 0.0}
        masses = state["masses"] if annealing else None
        compared = components(centres, beta, rows.frame.pivot, rows.dtype, masses, narrow=rows.extent.alike)

        def of(block: Block) -> ResponsibilitySums:
            return ResponsibilitySums.of(block, compared, "diag" if annealing else "none", len(centres))

        found = rows.run.fold(of)
        some = found.counts[:, None] > 0
        moves = np.divide(found.shift, found.counts[:, None], out=np.zeros_like(centres), where=some)
        new, shift = centres + moves, float((moves**2).sum())
        free = -found.log_likelihood / beta
        cursor.iteration += 1
        cursor.here += 1
        figures = {
            "start": float(cursor.start),
            "beta": beta,
            "centres": float(len(centres)),
            "free_energy": free,
            "shift": math.sqrt(shift),
        }
        settled = shift <= self.tol
        after = {**state, "centres": new}
        if not annealing:
            if settled or (cursor.iteration >= plan.max_iter and plan.starts > 1):
                return self._ended(after, cursor, new, free, capped=not settled), figures
        else:
            after["masses"] = found.counts / self.weight
            if settled or cursor.here >= min(_STEPS, plan.max_iter):
                near = self.weight * math.log(plan.k) / beta <= _NEAR * free
                if (near and len(new) >= plan.k) or cursor.level == _MOST:
                    return self._polished(after, cursor, new), figures
                spread = np.divide(found.scatter.sum(axis=1), found.counts, out=np.zeros(len(new)), where=some[:, 0])
                spread -= (moves**2).sum(axis=1)
                cursor.level += 1
                cursor.here = 0
                after |= self._stiffer(new, after["masses"], spread, beta * _FACTOR, cursor)
        after["cursor"] = cursor.array()
        return after, figures

    def _stiffer(self, centres: Floats, masses: Floats, spread: Floats, beta: float, cursor: Cursor) -> State:
        """Twins that did not part are one again; then centres whose rows spread too wide get a twin, as many as are left."""
        width = 1.0 / math.sqrt(2.0 * beta)
        centres, masses, spread = _joined(centres, masses, spread, _APART * width)
        free = self.plan.k - len(centres)
        order = [j for j in np.argsort(-masses * spread, kind="stable") if spread[j] > width * width]
        twins = np.array(order[: max(free, 0)], dtype=np.intp)
        if len(twins):
            rng = np.random.default_rng([self.plan.seed, 3, cursor.start, cursor.level])
            away = rng.standard_normal((len(twins), centres.shape[1])) * self.deviation
            away *= _NUDGE * width / 2 / np.maximum(np.linalg.norm(away, axis=1, keepdims=True), 1e-300)
            halves = masses[twins] / 2
            masses = masses.copy()
            masses[twins] = halves
            others = centres[twins] - away
            centres = centres.copy()
            centres[twins] += away
            centres, masses = np.concatenate([centres, others]), np.concatenate([masses, halves])
        return {"centres": centres, "masses": masses, "beta": np.array(beta)}

    def _polished(self, state: State, cursor: Cursor, centres: Floats) -> State:
        """The end of annealing is k-means: steps of Lloyd's until nothing moves, which also fill what is still empty."""
        rows = self.rows
        rows.forget()
        final = lloyd.settle_down(rows, _padded(centres.astype(rows.dtype), self.plan.k))
        rows.assign(final)
        return self._ended(state, cursor, final.astype(np.float64), float(rows.residuals(final).sum()), capped=False)

    def _ended(self, state: State, cursor: Cursor, centres: Floats, value: float, *, capped: bool) -> State:
        state = dict(state)
        if not len(state["best"]) or value < float(state["best_value"]):
            state |= {"best": centres, "best_value": np.array(value), "best_beta": state["beta"]}
            cursor.capped, cursor.best_iterations = int(capped), cursor.iteration
        cursor.start += 1
        if cursor.start == self.plan.starts:
            cursor.done = 1
        else:
            cursor.iteration = cursor.here = cursor.level = 0
            centres = self._start(cursor.start)
            masses = np.ones(len(centres)) if self.plan.beta is None else np.empty(0)
            state |= {"centres": centres, "masses": masses, "beta": state["first"]}
        state["cursor"] = cursor.array()
        return state


def _padded(centres: NDArray[Any], k: int) -> NDArray[Any]:
    """As many centres as clusters: what is lacking are copies, which k-means finds empty and fills."""
    return np.ascontiguousarray(np.concatenate([centres, np.repeat(centres[:1], k - len(centres), axis=0)]))


def _joined(centres: Floats, masses: Floats, spread: Floats, apart: float) -> tuple[Floats, Floats, Floats]:
    """Centres nearer to each other than `apart` as one, the heaviest first."""
    kept: list[int] = []
    masses, centres = masses.copy(), centres.copy()
    for j in np.argsort(-masses, kind="stable"):
        for i in kept:
            if float(((centres[i] - centres[j]) ** 2).sum()) < apart * apart:
                both = masses[i] + masses[j]
                centres[i] += (centres[j] - centres[i]) * (masses[j] / both)
                masses[i] = both
                break
        else:
            kept.append(int(j))
    some = np.sort(kept)
    return centres[some], masses[some], spread[some]
