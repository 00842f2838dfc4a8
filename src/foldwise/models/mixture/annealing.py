"""The steps of soft k-means: at one stiffness, or at a series of rising ones."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from foldwise.data.block import Floats
from foldwise.fold.iterate import Figures, State
from foldwise.fold.multistart import Value
from foldwise.fold.outcome import Reason
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


class _Soft:
    """What both descents share. States hold `centres`, `beta`, the `value` to be small, and whether it has `settled`."""

    kept: Iterable[str] | None = ("centres", "beta", "value")

    def __init__(self, assignment: Assignment, tol: float) -> None:
        """`tol` is of the summed squared movement."""
        self.assignment, self.data = assignment, assignment.data
        self.weight = self.data.extent.columns.weight
        self.deviation = np.sqrt(self.data.squares / self.weight) / self.data.rescaling.scale
        self.tol = max(tol, _LEAST * float((self.deviation**2).mean()))

    def value(self, state: State) -> Value:
        """Free energy; of annealing the inertia."""
        return (float(state["value"]),)

    def ended(self, state: State) -> Reason | None:
        """When nothing moves any more."""
        return Reason.CONVERGED if state["settled"] else None

    def em_step(self, state: State, masses: Floats | None) -> tuple[ResponsibilitySums, Floats, Floats, Figures]:
        """One pass: the sums, how far centres move, where to, and the figures of the step."""
        data, centres, beta = self.data, state["centres"], float(state["beta"])
        compared = components(centres, beta, data.rescaling.pivot, data.dtype, masses, narrow=data.extent.alike)
        found = data.passes.fold(partial(ResponsibilitySums.of, components=compared))
        some = found.counts[:, None] > 0
        moves = np.divide(found.shift, found.counts[:, None], out=np.zeros_like(centres), where=some)
        figures = {
            "beta": beta,
            "centres": float(len(centres)),
            "free_energy": -found.log_likelihood / beta,
            "shift": math.sqrt(float((moves**2).sum())),
        }
        return found, moves, centres + moves, figures


class FixedStiffness(_Soft):
    """A `Descent`: EM at one beta."""

    def __init__(
        self, assignment: Assignment, tol: float, beta: float, make_start: Callable[[int], NDArray[Any]]
    ) -> None:
        super().__init__(assignment, tol)
        self.beta, self.make_start = beta, make_start

    def start(self, number: int, before: State | None) -> State:
        """Centres as the user wants them."""
        centres = self.make_start(number).astype(np.float64)
        return {"centres": centres, "beta": np.array(self.beta), "value": np.array(np.inf), "settled": np.array(False)}

    def step(self, state: State) -> tuple[State, Figures]:
        """A step of EM."""
        _, moves, new, figures = self.em_step(state, None)
        settled = float((moves**2).sum()) <= self.tol
        value = figures["free_energy"]
        return {**state, "centres": new, "value": np.array(value), "settled": np.array(settled)}, figures


class Annealing(_Soft):
    """A `Descent`: EM at one stiffness after another, then k-means.

    Its states also hold the `masses` of the centres, the steps taken at this stiffness (`here`), how often it was raised
    (`level`), the `first` one, and the `number` of the start.
    """

    def __init__(self, assignment: Assignment, tol: float, k: int, max_iter: int, seed: int) -> None:
        super().__init__(assignment, tol)
        self.k, self.steps, self.seed = k, min(_STEPS, max_iter), seed

    def start(self, number: int, before: State | None) -> State:
        """One centre in the mean."""
        first = np.array(self._first() if self.deviation.any() else 0.0) if before is None else before["first"]
        return {
            "centres": np.array(self.data.extent.columns.mean[None]),
            "masses": np.ones(1),
            "beta": first,
            "first": first,
            "here": np.array(0),
            "level": np.array(0),
            "number": np.array(number),
            "value": np.array(np.inf),
            "settled": np.array(False),
        }

    def _first(self) -> float:
        """Half of the stiffness at which one centre first parts in two: 1 / (2 l), l the largest variance (Rose 1990)."""
        if self.data.d > _WIDE:
            largest = float(self.deviation @ self.deviation)
        else:
            moments = self.data.passes.fold(Moments.of)
            upper = np.triu(moments.scatter) / moments.weight
            largest = float(np.linalg.eigvalsh(upper + np.triu(upper, 1).T)[-1])
        return 1.0 / (4.0 * largest)

    def step(self, state: State) -> tuple[State, Figures]:
        """A step of EM; when the centres have settled, a higher stiffness, or the end."""
        beta = float(state["beta"])
        if beta == 0.0:  # rows that are all equal: there is nothing to anneal
            return self._polished(state, state["centres"]), {"beta": 0.0, "free_energy": 0.0, "shift": 0.0}
        found, moves, new, figures = self.em_step(state, state["masses"])
        here, level, free = int(state["here"]) + 1, int(state["level"]), figures["free_energy"]
        after = {**state, "centres": new, "masses": found.counts / self.weight, "here": np.array(here)}
        if float((moves**2).sum()) <= self.tol or here >= self.steps:
            near = self.weight * math.log(self.k) / beta <= _NEAR * free
            if (near and len(new) >= self.k) or level == _MOST:
                return self._polished(after, new), figures
            spread = np.divide(found.scatter.sum(axis=1), found.counts, out=np.zeros(len(new)), where=found.counts > 0)
            spread -= (moves**2).sum(axis=1)
            rng = np.random.default_rng([self.seed, 3, int(state["number"]), level + 1])
            after |= {"here": np.array(0), "level": np.array(level + 1)}
            after |= self._stiffer(new, after["masses"], spread, beta * _FACTOR, rng)
        return after, figures

    def _stiffer(self, centres: Floats, masses: Floats, spread: Floats, beta: float, rng: np.random.Generator) -> State:
        """Twins that did not part are one again; then centres whose rows spread too wide get a twin, as many as are left."""
        width = 1.0 / math.sqrt(2.0 * beta)
        centres, masses, spread = _joined(centres, masses, spread, _APART * width)
        free = self.k - len(centres)
        order = [j for j in np.argsort(-masses * spread, kind="stable") if spread[j] > width * width]
        twins = np.array(order[: max(free, 0)], dtype=np.intp)
        if len(twins):
            away = rng.standard_normal((len(twins), centres.shape[1])) * self.deviation
            away *= _NUDGE * width / 2 / np.maximum(np.linalg.norm(away, axis=1, keepdims=True), 1e-300)
            masses[twins] /= 2
            others = centres[twins] - away
            centres[twins] += away
            centres, masses = np.concatenate([centres, others]), np.concatenate([masses, masses[twins]])
        return {"centres": centres, "masses": masses, "beta": np.array(beta)}

    def _polished(self, state: State, centres: Floats) -> State:
        """The end of annealing is k-means: steps of Lloyd's until nothing moves, which also fill what is still empty."""
        final = filled(self.assignment, centres, self.k, lloyd.settle_down)
        self.assignment.assign(final)
        value = float(self.assignment.residuals(final).sum())
        return {
            **state,
            "centres": final.astype(np.float64),
            "value": np.array(value),
            "settled": np.array(True),
        }


def filled(
    assignment: Assignment, centres: Floats, k: int, descend: Callable[[Assignment, NDArray[Any]], NDArray[Any]]
) -> NDArray[Any]:
    """k centres after steps of k-means: those that are lacking begin as copies, which k-means finds empty and fills."""
    assignment.forget()
    known = centres.astype(assignment.data.dtype)
    lacking = np.repeat(known[:1], k - len(known), axis=0)
    return descend(assignment, np.ascontiguousarray(np.concatenate([known, lacking])))


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
