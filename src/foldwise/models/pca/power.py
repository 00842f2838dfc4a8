"""Solver `power`: the lecture's power iteration with deflation (SPEC A4). To read and to watch, not to be fast.

Multiply a vector by the covariance S and normalise, again and again: it turns towards the first direction, and its error
shrinks by about l2/l1 a step. Take that direction out (S := S - l v v') and start again for the next.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from foldwise.data.block import Floats
from foldwise.fold import blas
from foldwise.fold.iterate import Figures, State, iterate
from foldwise.fold.outcome import Reason
from foldwise.fold.passes import Passes
from foldwise.models.pca.covariance import folded
from foldwise.models.pca.solver import EPS, Solver, SolverOptions, floor_of_products, lengths, rounding_of
from foldwise.models.pca.spectrum import Spectrum
from foldwise.stats.column_moments import ColumnMoments

_TOLERANCE = 1e-12
_STEPS_PER_COMPONENT = 20_000


class Power(Solver):
    """One pass for the covariance, then steps on it until the vector stands still, for one component after the other."""

    name = "power"
    names = ("power",)

    def reads_again(self, *, checkpoint: bool) -> bool:
        """Only to make sure that a checkpoint belongs to the same rows."""
        return checkpoint

    def solve(self, passes: Passes, options: SolverOptions) -> Spectrum:
        """Iterate, deflate, and start again."""
        if options.checkpoint is not None:  # a cheap pass, by which the same rows are known again
            columns = passes.fold(ColumnMoments.of)
            options.checkpoint.bind(columns.weight, columns.centre, columns.squares)
        k_most = passes.source.n_columns if options.n_components is None else options.n_components
        iteration = _PowerIteration(passes, options)
        with blas.single():
            state, outcome, resumed_at = iterate(
                iteration.start,
                iteration.step,
                iteration.done,
                max_iter=options.max_iter or _STEPS_PER_COMPONENT * max(1, k_most),
                time_budget=options.time_budget,
                checkpoint=options.checkpoint,
            )
            if outcome.converged and state["steps"][1]:
                outcome = replace(outcome, reason=Reason.CAPPED)
            directions, variances = _all(state)
            residuals = lengths(state["S"] @ directions.T - directions.T * variances)
        arithmetic = options.arithmetic(passes.source)
        return Spectrum.of(
            ColumnMoments(float(state["weight"]), int(state["rows"]), state["centre"], state["squares"]),
            options,
            variances=variances,
            directions=directions,
            residuals=residuals,
            rounding=rounding_of(arithmetic) * float(np.trace(state["S"])),
            floor=floor_of_products(arithmetic, len(state["S"]), float(variances.max(initial=0.0))),
            outcome=outcome,
            resumed_at=resumed_at,
        )


@dataclass(frozen=True)
class _PowerIteration:
    """The steps on one vector, and from each component to the next."""

    passes: Passes
    options: SolverOptions

    def start(self) -> State:
        moments = folded(self.passes, self.options)
        scale, k = self.options.resolve(moments)
        S = moments.covariance(self.options.ddof)
        S = np.triu(S) + np.triu(S, 1).T
        if scale is not None:
            S = S / np.outer(scale, scale)
        d = len(S)
        guesses = np.random.default_rng(self.options.seed).standard_normal((k, d))
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

    def step(self, state: State) -> tuple[State, Figures]:
        v, found, S = state["v"], state["found"], state["deflated"]
        image = S @ v
        image = image - found.T @ (found @ image)  # deflation leaves rounding errors along what was found
        variance = float(lengths(image[:, None])[0])
        floor = EPS * np.trace(state["S"])
        # Where nothing is left, any direction at right angles to those found is as good as another.
        new = image / variance if variance > floor else _at_right_angles(v, found)
        change = float(np.linalg.norm(new - v))
        figures = {"component": float(len(found)), "variance": variance, "change": change}
        steps, given_up = state["steps"] + [1, 0]
        finished = change <= (self.options.tol or _TOLERANCE) or variance <= floor
        if not (finished or steps >= _STEPS_PER_COMPONENT):
            return {**state, "v": new, "steps": np.array([steps, given_up])}, figures
        # Also one that hardly moves is left: it must not keep the others waiting.
        found = np.vstack([found, new])
        exact = max(float(new @ state["S"] @ new), 0.0)
        return {
            **state,
            "v": _at_right_angles(state["guesses"][len(found)], found) if len(found) < len(state["guesses"]) else new,
            "steps": np.array([0.0, given_up + (not finished)]),
            "found": found,
            "variances": np.append(state["variances"], exact),
            "deflated": S - exact * np.outer(new, new),
        }, figures

    def done(self, state: State) -> bool:
        return len(state["found"]) == len(state["guesses"])


def _at_right_angles(v: Floats, found: Floats) -> Floats:
    for _ in range(2):
        v = v - found.T @ (found @ v)
    return np.asarray(v / np.linalg.norm(v))


def _all(state: State) -> tuple[Floats, Floats]:
    """What was found, and, if the loop was cut short, the vector it had come to and guesses for the rest."""
    found, variances = state["found"], state["variances"]
    while len(found) < len(state["guesses"]):
        v = state["v"] if len(found) == len(state["found"]) else state["guesses"][len(found)]
        found = np.vstack([found, _at_right_angles(v, found)])
        variances = np.append(variances, max(float(found[-1] @ state["S"] @ found[-1]), 0.0))
    order = np.argsort(-variances, kind="stable")
    return found[order], variances[order]
