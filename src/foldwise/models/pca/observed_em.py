"""EM over observed cells: one normal distribution whose covariance is shrunk, or that of a probabilistic PCA.

The missing cells are what is integrated out; the scores are not. So a step needs the expected scatter of the complete rows (a
d x d matrix), after which the best mean and covariance are known in closed form, also for W W' + noise I (Tipping and Bishop
1999): the slowness of an EM that treats scores as missing, too, is avoided. The covariance is shrunk towards the diagonal, as
if `strength` rows with unrelated columns of the observed variances had been seen; the objective, the log-likelihood of the
observed cells and of this prior, never falls.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from foldwise.data.block import Block, Floats
from foldwise.fold import blas
from foldwise.fold.iterate import Figures, State
from foldwise.fold.passes import Passes
from foldwise.kernels import missing_cells
from foldwise.kernels.missing_cells import Units
from foldwise.models.pca import held_out
from foldwise.models.pca.normal_model import inverse
from foldwise.models.pca.rank import RankChoice
from foldwise.stats.completed_moments import CompletedMoments

_WARM = 12  # steps before the strength of the prior is chosen
_WARM_CHANGE = 1e-2
_SMALL = 20_000_000  # rows x columns^2 up to which rows are gathered, and many steps are made at a time
_WORK = 400_000_000  # multiplications in one call, so that Ctrl-C and a time budget are heeded,
_AT_ONCE = 200  # and steps
_LEAST = 1e-3  # rows: a prior that keeps matrices positive
_TOLERANCE = 1e-4  # the largest change of a correlation, or of a mean in standard deviations, at a step


@dataclass(frozen=True)
class Problem:
    """What is fitted: rows in `units`, to which the prior says variances `prior`; `components` None means all."""

    units: Units
    prior: Floats
    cells: float  # the weight of all observed cells
    rows: int
    components: int | None
    strength: float | None = None  # None: chosen by held-out cells
    tolerance: float = _TOLERANCE


class ObservedEM:
    """The steps; a state has mean and covariance in the units of the problem, and the expected scatter behind them."""

    def __init__(self, passes: Passes, problem: Problem) -> None:
        self.passes, self.problem = passes, problem
        d = len(problem.prior)
        self.small = problem.components is None and problem.rows * d * d <= _SMALL
        self._gathered: tuple[NDArray[Any], Floats | None] | None = None

    def start(self) -> State:
        """Columns unrelated, with their observed means and variances."""
        problem = self.problem
        d = len(problem.prior)
        known = problem.strength is not None
        strength = problem.strength if problem.strength is not None else d / 2
        covariance = np.diag(np.where(problem.prior > 0, problem.prior, 1.0))
        return {
            "mean": np.zeros(d),
            "covariance": covariance,
            "expected": np.zeros((d, d)),
            "weight": np.array(0.0),
            "strength": np.array(max(strength, _LEAST)),
            "chosen": np.array(known),
            "settled": np.array(False),
            "steps": np.array(0),
            "objective": np.array(-np.inf),
            "errors": np.zeros(0),
        }

    def done(self, state: State) -> bool:
        """Whether the last step changed next to nothing."""
        return bool(state["settled"])

    def step(self, state: State) -> tuple[State, Figures]:
        """One step of EM, or several where rows are few; after the first ones, the strength of the prior is chosen."""
        state = self._run(state) if self.small else self._fold(state)
        figures = {"objective": float(state["objective"]), "strength": float(state["strength"])}
        if not state["chosen"] and (state["settled"] or state["steps"] >= _WARM):
            state = self._with_strength(self.reached(state))
        return state, figures

    # ---------------------------------------------------------------- few rows

    def _rows(self) -> tuple[NDArray[Any], Floats | None]:
        if self._gathered is None:
            parts = self.passes.each(_with_weight)
            rows = np.concatenate([part for part, _ in parts])
            weighted = any(weights is not None for _, weights in parts)
            each = [np.ones(len(part)) if weights is None else weights for part, weights in parts]
            self._gathered = rows, np.concatenate(each) if weighted else None
        return self._gathered

    def _run(self, state: State) -> State:
        problem, (rows, weights) = self.problem, self._rows()
        chosen, d = bool(state["chosen"]), len(problem.prior)
        most = min(_AT_ONCE, max(1, _WORK // (max(1, len(rows)) * d * d)))
        mean, covariance, expected, steps, settled, objective = missing_cells.em_normal(
            rows,
            weights,
            problem.units,
            problem.prior,
            float(state["strength"]),
            state["mean"],
            state["covariance"],
            steps=most if chosen else min(most, _WARM),
            tol=problem.tolerance if chosen else max(problem.tolerance, _WARM_CHANGE),
        )
        return {
            **state,
            "mean": mean,
            "covariance": covariance,
            "expected": expected,
            "weight": np.array(_weight_of(rows, weights, problem.units.inverse > 0)),
            "settled": np.array(settled),
            "steps": state["steps"] + steps,
            "objective": np.array(objective),
        }

    # ---------------------------------------------------------------- many rows

    def _fold(self, state: State) -> State:
        """One E-step by a fold, then the M-step, and every third time an extrapolation (Varadhan and Roland 2008).

        An extrapolation is kept only if the objective there, which the next step finds, is no lower than before.
        """
        problem, strength = self.problem, float(state["strength"])
        with blas.single():
            precision, log_determinant = inverse(state["covariance"])
        task = partial(CompletedMoments.of, units=problem.units, mean=state["mean"], precision=precision)
        found = self.passes.fold(task)
        weight = found.moments.weight
        objective = (
            -(
                (weight + strength) * log_determinant
                + found.logs
                + found.squares(precision)
                + strength * float(problem.prior @ np.diagonal(precision))
            )
            / 2
        )
        if "safe_mean" in state and objective < float(state["objective"]):
            reach = np.array(max(2.0, float(state["reach"]) / 4))
            return {**self.reached(state), "reach": reach, "steps": state["steps"] + 1}
        expected = found.expected
        mean, covariance = state["mean"] + found.shift, self.best(expected, weight, strength)
        change = max(
            float(np.abs(found.shift).max(initial=0.0)),
            float(np.abs(covariance - state["covariance"]).max(initial=0.0)),
        )
        tolerance = problem.tolerance if state["chosen"] else max(problem.tolerance, _WARM_CHANGE)
        after = {
            **_plain(state),
            "mean": mean,
            "covariance": covariance,
            "expected": expected,
            "weight": np.array(weight),
            "settled": np.array(change <= tolerance),
            "steps": state["steps"] + 1,
            "objective": np.array(objective),
            "reach": state.get("reach", np.array(4.0)),
        }
        if "safe_mean" in state or "mean_0" not in state:
            return {**after, "mean_0": state["mean"], "covariance_0": state["covariance"]}
        return _extrapolated(after, state, problem.components)

    @staticmethod
    def reached(state: State) -> State:
        """The state without an extrapolation that is yet to be judged."""
        return {**_plain(state), **{n.removeprefix("safe_"): state[n] for n in state if n.startswith("safe_")}}

    def best(self, expected: Floats, weight: float, strength: float) -> Floats:
        """The covariance that maximises the objective if complete rows had this scatter."""
        problem = self.problem
        matrix = (expected + np.diag(strength * problem.prior)) / (weight + strength)
        with blas.single():
            return constrained(matrix, problem.components)

    # ---------------------------------------------------------------- choices by held-out cells

    def fit(self, state: State) -> held_out.Fit:
        """What the state says of the rows."""
        problem, weight = self.problem, float(state["weight"])
        observed = problem.cells / (weight * len(problem.prior))
        return held_out.Fit(
            problem.units, problem.prior, weight, observed, state["mean"], state["expected"], float(state["strength"])
        )

    def choose_components(self, state: State, scale: Floats, precision: Floats) -> RankChoice:
        """How many components predict held-out cells well; `scale` leads from the problem's units to the PCA's."""
        rows = self._rows() if self.small else None
        return held_out.choose_components(self.passes, self.fit(state), rows, scale, precision)

    def _with_strength(self, state: State) -> State:
        strength, errors = held_out.choose_strength(self.passes, self.fit(state), self._rows() if self.small else None)
        return {
            **_plain(state),
            "covariance": self.best(state["expected"], float(state["weight"]), strength),
            "strength": np.array(strength),
            "errors": errors,
            "chosen": np.array(True),
            "settled": np.array(False),
        }


def _with_weight(block: Block) -> tuple[NDArray[Any], Floats | None]:
    rows, weights = block.dense(), block.weights
    if weights is None or weights.all():
        return rows.copy(), weights
    return rows[weights > 0], weights[weights > 0]


def _weight_of(rows: NDArray[Any], weights: Floats | None, varies: NDArray[np.bool_]) -> float:
    """The weight of the rows with an observed cell in a column that varies; of all rows, if none does."""
    something = ~np.isnan(rows[:, varies]).all(axis=1) if varies.any() else np.ones(len(rows), dtype=bool)
    return float(np.count_nonzero(something)) if weights is None else float(weights[something].sum())


def _plain(state: State) -> State:
    """The state without what the extrapolation remembers, but for how far it may reach."""
    memory = ("mean_0", "covariance_0", "safe_mean", "safe_covariance", "safe_expected")
    return {name: array for name, array in state.items() if name not in memory}


def _extrapolated(after: State, before: State, components: int | None) -> State:
    """The state after two steps in a row, moved on along them; what was reached by EM itself is kept beside it."""
    names = ("mean", "covariance")
    moves = {name: before[name] - before[f"{name}_0"] for name in names}
    bends = {name: (after[name] - before[name]) - moves[name] for name in names}
    length, bend = (np.sqrt(sum(float((part[name] ** 2).sum()) for name in names)) for part in (moves, bends))
    far, reach = length / bend if bend > 0 else 1.0, float(after["reach"])
    step = min(far, reach)
    if after["settled"] or not step > 1:
        return after
    tried = {name: before[f"{name}_0"] + 2 * step * moves[name] + step**2 * bends[name] for name in names}
    try:
        with blas.single():
            tried["covariance"] = constrained(tried["covariance"], components)
            np.linalg.cholesky(tried["covariance"])
    except np.linalg.LinAlgError:
        return {**after, "reach": np.array(max(2.0, reach / 4))}
    safe = {f"safe_{name}": after[name] for name in (*names, "expected")}
    return {**after, **tried, **safe, "reach": np.array(reach * 4 if far >= reach else reach)}


def constrained(matrix: Floats, components: int | None) -> Floats:
    """The covariance of the probabilistic PCA nearest in likelihood: the smallest variances replaced by their mean."""
    d = len(matrix)
    if components is None or components >= d - 1:
        return matrix
    values, vectors = np.linalg.eigh(matrix)
    noise = float(values[: d - components].mean())
    kept = vectors[:, d - components :]
    result = (kept * (values[d - components :] - noise)) @ kept.T
    result[np.diag_indices(d)] += noise
    return np.asarray((result + result.T) / 2)
