"""Solver `power`: the lecture's power iteration with deflation (SPEC A4). To read and to watch, not to be fast.

Multiply a vector by the covariance S and normalise, again and again: it turns towards the first direction, and its error
shrinks by about l2/l1 a step. Take that direction out (S := S - l v v') and start again for the next.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from foldwise.fold import blas
from foldwise.fold.iterate import Figures, State, iterate
from foldwise.fold.outcome import Reason
from foldwise.fold.passes import Passes
from foldwise.models.pca.spectrum import EPS, Plan, Spectrum, check, components, lengths, spread
from foldwise.stats.column_moments import ColumnMoments
from foldwise.stats.moments import Moments

_TOLERANCE = 1e-12
_STEPS_PER_COMPONENT = 20_000


def solve(run: Passes, plan: Plan) -> Spectrum:
    """One pass for the covariance, then steps on it until the vector stands still, for one component after the other."""
    tolerance = plan.tol or _TOLERANCE
    if plan.checkpoint is not None:  # a cheap pass that makes sure that a checkpoint goes on with the same rows
        columns = run.fold(ColumnMoments.of)
        plan.checkpoint.bind(columns.weight, columns.centre, columns.squares)
    rng = np.random.default_rng(plan.seed)

    def start() -> State:
        moments = run.fold(Moments.of)
        check(moments.weight, moments.rows, moments.squares, plan)
        S = moments.covariance(plan.ddof)
        S = np.triu(S) + np.triu(S, 1).T
        scale = spread(moments.weight, moments.squares, plan)
        if scale is not None:
            S = S / np.outer(scale, scale)
        d = len(S)
        k = components(plan, moments.rows, moments.weight, d)
        guesses = rng.standard_normal((k, d))
        return {
            "weight": np.array(moments.weight),
            "rows": np.array(moments.rows),
            "centre": moments.centre,
            "squares": moments.squares,
            "S": S,
            "deflated": S,
            "found": np.zeros((0, d)),
            "variances": np.zeros(0),
            "steps": np.zeros(2),  # on this component, and how many components were given up on
            "guesses": guesses,
            "v": guesses[0] / np.linalg.norm(guesses[0]) if k else np.zeros(d),
        }

    def step(state: State) -> tuple[State, Figures]:
        v, found, S = state["v"], state["found"], state["deflated"]
        image = S @ v
        image = image - found.T @ (found @ image)  # deflation leaves rounding errors along what was found
        variance = float(lengths(image[:, None])[0])
        floor = EPS * np.trace(state["S"])
        # Where nothing is left, any direction at right angles to those found is as good as another.
        new = image / variance if variance > floor else _at_right_angles(v, found)
        change = float(np.linalg.norm(new - v))
        figures = {"component": float(len(found)), "variance": variance, "change": change}
        state = {**state, "v": new}
        steps, given_up = state["steps"] + [1, 0]
        state["steps"] = np.array([steps, given_up])
        finished = change <= tolerance or variance <= floor
        if finished or steps >= _STEPS_PER_COMPONENT:  # one that hardly moves must not keep the others waiting
            state["steps"] = np.array([0.0, given_up + (not finished)])
            found = np.vstack([found, new])
            exact = max(float(new @ state["S"] @ new), 0.0)
            state |= {
                "found": found,
                "variances": np.append(state["variances"], exact),
                "deflated": S - exact * np.outer(new, new),
            }
            if len(found) < len(state["guesses"]):
                state["v"] = _at_right_angles(state["guesses"][len(found)], found)
        return state, figures

    def done(state: State) -> bool:
        return len(state["found"]) == len(state["guesses"])

    k_most = run.source.n_columns if plan.n_components is None else plan.n_components
    with blas.single():
        state, outcome, resumed_at = iterate(
            start,
            step,
            done,
            max_iter=plan.max_iter or _STEPS_PER_COMPONENT * max(1, k_most),
            time_budget=plan.time_budget,
            checkpoint=plan.checkpoint,
        )
        if outcome.converged and state["steps"][1]:
            outcome = replace(outcome, reason=Reason.CAPPED)
        directions, variances = _all(state)
        residuals = lengths(state["S"] @ directions.T - directions.T * variances)
    about = ColumnMoments(float(state["weight"]), int(state["rows"]), state["centre"], state["squares"])
    return Spectrum.of(
        about,
        plan,
        variances=variances,
        directions=directions,
        residuals=residuals,
        floor=len(state["S"]) * EPS * float(variances.max(initial=0.0)),
        outcome=outcome,
        resumed_at=resumed_at,
    )


def _at_right_angles(v: np.ndarray, found: np.ndarray) -> np.ndarray:
    for _ in range(2):
        v = v - found.T @ (found @ v)
    return np.asarray(v / np.linalg.norm(v))


def _all(state: State) -> tuple[np.ndarray, np.ndarray]:
    """What was found, and, if the loop was cut short, the vector in hand and guesses for the rest."""
    found, variances = state["found"], state["variances"]
    while len(found) < len(state["guesses"]):
        v = state["v"] if len(found) == len(state["found"]) else state["guesses"][len(found)]
        found = np.vstack([found, _at_right_angles(v, found)])
        variances = np.append(variances, max(float(found[-1] @ state["S"] @ found[-1]), 0.0))
    order = np.argsort(-variances, kind="stable")
    return found[order], variances[order]
