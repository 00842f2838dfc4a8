"""Solver `krylov`: a few leading directions of data with many columns, by block Lanczos (`lanczos.py`).

Each step is one pass that multiplies the scatter matrix with a block of vectors; the matrix itself is never formed, and
sparse rows stay sparse. Residuals are known at every step and are the stopping rule: no guess about convergence.

Where "auto" has taken it, float32 rows are multiplied in float32 until the variances are known to one part in a million, and
once more with what was found: variances and residuals are of that last pass, so they cover rounding, too. Its variances are
formed in float64; its residuals, of which two digits are enough, in float32, with an allowance for what that may hide.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from foldwise.data.block import Floats
from foldwise.data.source import Source, count_rows
from foldwise.errors import ParameterError
from foldwise.fold import blas
from foldwise.fold.iterate import Figures, State, iterate
from foldwise.fold.passes import Passes
from foldwise.models.pca import costs, sample_start, sparse_start, tall
from foldwise.models.pca.covariance import CovarianceEigh
from foldwise.models.pca.early import Early, InFloat32, early_way, folded
from foldwise.models.pca.gram import Gram
from foldwise.models.pca.lanczos import (
    Ritz,
    by_weight,
    closed,
    completed,
    condensed,
    empty,
    enlarged,
    random_block,
    refilled,
    rehearsed,
)
from foldwise.models.pca.row_side import RowSide
from foldwise.models.pca.solver import EPS, Solver, SolverOptions, floor_of_products, rounding_of
from foldwise.models.pca.spectrum import Spectrum
from foldwise.models.pca.units import in_range, units
from foldwise.stats.column_moments import ColumnMoments
from foldwise.stats.scatter_product import ScatterProduct

# Asked for by name: residual relative to the variance itself; the error of a variance is about its square over the gap.
_RESIDUAL = 1e-10
# Chosen by "auto": error of a variance relative to itself, in the end and before the last pass, which adds a little.
_ERROR, _EARLY_ERROR = 9e-7, 8e-7
_MAX_ITER = 300
_TRIAL = 0.12  # of what another solver costs: it may give up after as many steps,
_LEAST_TRIAL = 3  # or after these, one less from a sample of the rows,
_PATIENCE = 1.5  # if more steps are to be expected than this times what another solver costs: their pace grows
_FIRST_STEPS = 2  # whatever they seem to show: one block of random vectors may have missed a direction
_WITHIN_REACH = 1e-2  # errors so large are brought to what is asked for by no guess of the next step
_LAST_STEP = 1.5  # times what is asked for: a guess of the next step falls faster than the errors by which that is told
_IN_FLOAT32 = 1e-5  # of the largest: of smaller variances, residuals in float32 prove too little
_KEPT = ("basis", "block", "raw", "guess", "ahead", "before")  # of a state, since the version that wrote it last
_SMALL = 256  # columns: few steps span all of the space, and narrower blocks take smaller ones


class Krylov(Solver):
    """One pass for the means, then one for each step; "randomized" and "arpack" of scikit-learn mean this, too."""

    name = "krylov"
    names = ("krylov", "randomized", "arpack")

    def count(self, asked: str, n_components: Any, source: Source) -> int | None:
        """A number of components is needed; as in scikit-learn, "arpack" leaves out at least one direction."""
        if asked == "auto":
            return super().count(asked, n_components, source)
        if isinstance(n_components, str):
            raise ParameterError(f"n_components={n_components!r} cannot be a string with svd_solver={asked!r}")
        if isinstance(n_components, float) or (n_components == 0 and asked != "krylov"):
            raise ParameterError(
                f"n_components={n_components} must be between 1 and min(n_samples, n_features) with "
                f"svd_solver={asked!r}: a share of variance needs all of the variances"
            )
        if asked != "arpack" or source.n_rows is None:
            return super().count(asked, n_components, source)
        most = min(source.n_rows, source.n_columns)
        if n_components == most:
            raise ParameterError(
                f"n_components={n_components} must be strictly less than min(n_samples, n_features)={most} with "
                "svd_solver='arpack'"
            )
        return most - 1 if n_components is None else int(n_components)

    def reads_again(self, *, checkpoint: bool) -> bool:
        """At every step."""
        return True

    def solve(self, passes: Passes, options: SolverOptions) -> Spectrum:
        """Enlarge a basis by a block of vectors a step, until all directions are good enough."""
        d, quick = passes.source.n_columns, options.solver == "auto" and not options.tol
        start, raw, columns = None, None, None
        if quick and (passes.source.slow or passes.source.n_rows is None):
            columns = passes.fold(ColumnMoments.of)  # a pass that keeps what it decodes, or counts rows
        if quick:
            start = _sampled(passes, options, options.n_components)
        if start is not None:
            if start.flat:
                return _otherwise(passes, options, count_rows(passes.source), int(options.n_components or 0))
            columns, raw = start.opened(passes)
        elif columns is None:
            columns = passes.fold(ColumnMoments.of)
        scale, k = options.resolve(columns)
        if options.checkpoint is not None:
            options.checkpoint.bind(columns.weight, columns.centre, columns.squares)
        unit, factor = units(columns, scale, options.ddof)
        narrow = quick and options.arithmetic(passes.source) == np.float32 and in_range(columns, factor, unit)
        opening = None
        if start is not None and raw is not None and start.wide != narrow:
            opening = start.first_step(columns, factor, raw)
            start = start if opening is None else replace(start, block=opening.block)
        product = partial(ScatterProduct.of, centre=columns.centre, factor=factor)
        search = _Search(
            k,
            passes,
            product,
            divisor=columns.weight - options.ddof,
            total=options.total_variance(columns) * unit * unit,
            unit=unit,
            residual=None if quick else options.tol or _RESIDUAL,
            early=early_way(passes, columns, product, narrow=narrow),
            patience=_patience(passes, columns.rows, k, narrow=narrow) if quick else np.inf,
            seed=options.seed,
            first=_first(passes, columns, scale, start),
            opening=opening,
        )
        state, outcome, resumed_at = iterate(
            search.start,
            search.step,
            search.done,
            max_iter=options.max_iter or _MAX_ITER,
            time_budget=options.time_budget,
            checkpoint=options.checkpoint,
            needs=_KEPT,
        )
        if search.hopeless(state) and outcome.converged:
            return _otherwise(passes, options, columns.rows, k)
        state = search.finished(state)
        with blas.single():
            ritz = Ritz.of(state, passes.n_threads)
            directions = tall.times(state["basis"], ritz.vectors[:, :k], passes.n_threads).T
        square = unit * unit
        total = options.total_variance(columns)
        arithmetic = np.float32 if narrow else np.float64
        rounding = rounding_of(np.float32 if narrow and state["early"] else np.float64, max(passes.block_rows, d))
        largest = float(ritz.values.max(initial=0.0)) / square
        return Spectrum.of(
            columns,
            options,
            variances=np.maximum(ritz.values[:k], 0.0) / square,
            directions=directions,
            residuals=ritz.residuals[:k] / square,
            errors=ritz.errors(k)[-1] / square if k else np.zeros(0),
            rounding=rounding * total,
            floor=max(d * EPS * largest, floor_of_products(arithmetic, d, largest)),
            outcome=outcome,
            resumed_at=resumed_at,
        )


def _sampled(passes: Passes, options: SolverOptions, k: int | None) -> sample_start.Start | None:
    """A start from some of the rows, where that is worth it."""
    d, n = passes.source.n_columns, passes.source.n_rows
    if not k or n is None or d <= _SMALL or not sample_start.worth_it(passes, options.ddof):
        return None
    there_are_others = _patience(passes, n, k, narrow=True) < np.inf
    return sample_start.found(passes, options, k, _width(k, d), judge=there_are_others)


def _otherwise(passes: Passes, options: SolverOptions, rows: int, k: int) -> Spectrum:
    """By the solver that is quicker where many variances are alike."""
    source, before = passes.source, passes.counter.passes
    fill = float(getattr(source, "fill", 1.0))
    name, _ = costs.fallback(rows, source.n_columns, k, sparse=source.sparse, fill=fill)
    solver: Solver = Gram() if name == Gram.name else CovarianceEigh()
    spent = f"after {before} pass{'es' * (before != 1)}" if before else "before the first pass"
    alike = f"the variances near the {k}th are too alike for few steps"
    note = f"krylov gave up {spent}: {alike}; {name} found the directions"
    return replace(solver.solve(passes, options), algorithm=name, notes=(note,))


@dataclass(frozen=True)
class _Search:
    """The steps: by the `early` way first, if there is one, then from what that has found, in float64 over the columns."""

    k: int
    passes: Passes
    product: partial[ScatterProduct]
    divisor: float
    total: float  # variance, of all columns
    unit: float
    residual: float | None  # relative to the variance; None: the error of a variance is what counts
    early: Early | None
    patience: float  # steps that cost as much as another solver
    seed: int
    first: Callable[[int, int], Floats] | None = None  # the first block for k components; None: random
    opening: sample_start.FirstStep | None = None  # the product with the first block, if the opening pass has formed it
    last: dict[str, Any] = field(default_factory=dict)  # what was found from the last state, for the step that turns

    def start(self) -> State:
        length = self.passes.source.n_columns if self.early is None else self.early.length
        if self.first is not None:
            block = self.first(self.k, self.seed)
        else:
            width = RowSide.WIDTH if isinstance(self.early, RowSide) else _width(self.k, length)
            block = random_block(length, min(width, length), self.seed)
        known = {"values": np.zeros(0), "residuals": np.zeros(0), "errors": np.full(self.k, np.inf)}
        known["before"], known["ahead"] = known["errors"], np.array(np.inf)
        return {**empty(block), "early": np.array(self.early is not None), "steps": np.array(0), **known}

    def step(self, state: State) -> tuple[State, Figures]:
        with blas.single():
            if "blur" in state:  # a product in float32 has proved too little
                state = {**state, **empty(state["basis"], float(state["beyond"]))}
            state = completed(state, self.n_threads)
            turning = bool(state["early"]) and self._good(state)
            if turning:
                state = self._over_columns(state)
            if state["block"].shape[1] == 0:  # the rank is below k
                state = refilled(state, max(self.k - state["basis"].shape[1], 1), self.seed)
            early, values = self.early if state["early"] else None, state["values"]
            largest = float(values.max(initial=0.0))
            times = self._times if early is None else lambda block: early.times(block) / self.divisor
            if self.opening is not None and state["steps"] == 0 and np.array_equal(state["block"], self.opening.block):
                product = self.opening.product
                times = lambda _: product / self.divisor  # noqa: E731
            if turning and isinstance(self.early, InFloat32) and values.min(initial=np.inf) > _IN_FLOAT32 * largest:
                found = self.early.with_form(state["block"])
                new = closed(state, found.value / self.divisor, found.form / self.divisor, self.total, self.n_threads)
            else:
                state, few = (state, None) if turning else self._narrowed(state)
                new = enlarged(state, times, self.n_threads, raw=turning, few=few)
            ritz = Ritz.of(new, self.n_threads)
            values, residuals = ritz.values[: self.k], ritz.residuals[: self.k]
            errors = ritz.errors(self.k)[-1] if self.k else values
            near = early is not None and self.residual is None and _worst(ritz, self.k) < _WITHIN_REACH
            new = new if turning else rehearsed(new, state, self.k, near=near)
            ahead = self._ahead(ritz, new) if near else None
            self.last.clear()
            if near:
                self.last.update(of=new["small"], ritz=ritz, ahead=ahead)
            new = condensed(new, ritz, self.k, self.n_threads)
        figures = {
            "variance": float(values[0]) / self.unit**2 if self.k else 0.0,
            "residual": float(residuals.max(initial=0.0)) / self.unit**2,
            "basis": float(new["basis"].shape[1]),
        }
        known = {"values": values, "residuals": residuals, "errors": errors, "before": state["errors"]}
        known["ahead"] = np.array(np.inf if ahead is None else _worst(ahead, self.k))
        return {**new, "early": state["early"], "steps": state["steps"] + 1, **known}, figures

    def finished(self, state: State) -> State:
        """The state with as many directions as asked for, also if the steps were cut short."""
        if state["early"] and self.early is not None and self.early.length != self.passes.source.n_columns:
            with blas.single():
                state = self._over_columns(state)
        while state["basis"].shape[1] < self.k:
            state, _ = self.step(state)
        return state

    def done(self, state: State) -> bool:
        return (not state["early"] and self._good(state)) or self.hopeless(state)

    def hopeless(self, state: State) -> bool:
        """Whether the variances are so alike that, at the pace of the last step, another solver is quicker."""
        trial = max(_LEAST_TRIAL - (self.first is not None), _TRIAL * self.patience)
        if self.patience == np.inf or state["steps"] < trial:
            return False
        worst, last = self._progress(state)
        if not worst > _ERROR or not np.isfinite(last):
            return False
        pace = np.log(last / worst)
        steps = state["steps"] + (np.log(worst / _ERROR) / pace if pace > 0 else np.inf)
        return bool(steps > _PATIENCE * self.patience)

    @property
    def n_threads(self) -> int:
        return self.passes.n_threads

    def _times(self, block: Floats) -> Floats:
        product = folded(self.passes, self.product, block) if self.early is None else self.early.over_columns(block)
        return product / self.divisor

    def _progress(self, state: State) -> tuple[float, float]:
        """The largest error relative to its value, after the last step and before it; infinite if that is not known."""
        now, before, values = state["errors"], state["before"], np.abs(state["values"])
        if len(now) != len(before) or len(values) < self.k:
            return np.inf, np.inf
        return float((now / values).max(initial=0.0)), float((before / values).max(initial=0.0))

    def _narrowed(self, state: State) -> tuple[State, int | None]:
        """The same with a block that may be multiplied in part, and with how many of its vectors; None: with all of them.

        That takes less time, but the error falls less. So it is done if the next step is likely to be the last one in float32.
        """
        worst, last = self._progress(state)
        if not (isinstance(self.early, InFloat32) and state["early"] and 0 < worst < last < np.inf):
            return state, None
        if self.residual is not None or state["values"].min() <= 0:
            return state, None
        if not state["ahead"] * (worst / last) < _LAST_STEP * _EARLY_ERROR:
            return state, None
        ritz = self.last["ritz"] if self.last.get("of") is state["small"] else Ritz.of(state)
        return by_weight(state, ritz, self.k, worst / last)

    def _over_columns(self, state: State) -> State:
        """A start from the vectors found so far: as many as are needed to know how far off the first k are."""
        assert self.early is not None
        if state["basis"].shape[1] == 0:
            return {**state, **empty(self.early.directions(state["block"])), "early": np.array(False)}
        known = self.last if self.last.get("of") is state["small"] else None
        ritz, basis = known["ritz"] if known else Ritz.of(state), state["basis"]
        k = min(self.k, len(ritz.values))
        ahead = known["ahead"] if known else self._ahead(ritz, state)
        if ahead is not None and _worst(ahead, k) < _worst(ritz, k):
            ritz, basis = ahead, np.hstack([basis, state["block"]])
        good = np.asarray(self._known(ritz.values[:k], ritz.errors(k), early=True).all(axis=1))
        enough = np.flatnonzero(good[max(k - 1, 0) :])
        count = k + int(enough[0]) if len(enough) else k
        block = self.early.directions(tall.times(basis, ritz.vectors[:, :count], self.n_threads))
        return {**state, **empty(block, float(ritz.edges[count - 1])), "early": np.array(False)}

    def _ahead(self, ritz: Ritz, state: State) -> Ritz | None:
        """The guess of the next step, where it can be had and may be good enough."""
        if self.residual is not None or state["raw"] or not state["block"].shape[1] or len(ritz.values) < self.k:
            return None
        return ritz.ahead(state) if np.isfinite(state["guess"]).all() else None

    def _known(self, values: Floats, errors: Floats, *, early: bool) -> NDArray[np.bool_]:
        """Which values are good enough: each to its own scale, or known to be nothing but rounding of the largest.

        What float32 products cannot tell from rounding is left to the passes in float64.
        """
        largest, limit = float(values.max(initial=0.0)), _EARLY_ERROR if early else _ERROR
        in_float32 = early and isinstance(self.early, InFloat32)
        rounding = floor_of_products(np.float32 if in_float32 else np.float64, 16, largest)
        return np.asarray(
            (errors <= limit * np.abs(values) + 16 * EPS * largest) | (np.abs(values) + errors <= rounding)
        )

    def _good(self, state: State) -> bool:
        values = state["values"]
        if state["basis"].shape[1] < self.k or len(values) < self.k:
            return False
        if state["block"].shape[1] == 0:  # the basis is invariant: nothing new can come
            return True
        if self.residual is None:
            early = bool(state["early"])
            if early and state["steps"] >= _FIRST_STEPS and state["ahead"] <= _EARLY_ERROR:
                return True
            return bool(state["steps"] >= _FIRST_STEPS and np.all(self._known(values, state["errors"], early=early)))
        largest = float(values.max(initial=0.0))
        limits = self.residual * np.abs(values)
        if state["early"]:  # residuals grow, at most by this, from vectors of rows to directions
            limits = limits * np.sqrt(np.abs(values) / largest) / 2 if largest > 0 else limits
        return bool(np.all(state["residuals"] <= limits + 16 * EPS * largest))


def _worst(ritz: Ritz, k: int) -> float:
    """The largest error of the first k values, relative to the value itself."""
    values = np.abs(ritz.values[:k])
    return float((ritz.errors(k)[-1] / np.where(values > 0, values, 1.0)).max(initial=0.0))


def _first(
    passes: Passes, columns: ColumnMoments, scale: Floats | None, sample: sample_start.Start | None
) -> Callable[[int, int], Floats] | None:
    if sparse_start.is_wide(passes):
        width = passes.source.n_columns
        return lambda k, seed: sparse_start.directions(passes, columns.mean, scale, min(width, k + 8), seed)
    return None if sample is None else lambda k, seed: sample.block


def _width(k: int, d: int) -> int:
    usual = costs.width(k)
    return min(d, usual, k + 8) if d <= _SMALL else usual


def _patience(passes: Passes, rows: int, k: int, *, narrow: bool) -> float:
    """How many steps cost as much as another solver would."""
    source, n = passes.source, max(rows, 1)
    fill = float(getattr(source, "fill", 1.0))
    _, cost = costs.fallback(n, source.n_columns, k, sparse=source.sparse, fill=fill)
    return cost / (
        n * costs.step_cost(source.n_columns, k, wide=not narrow) * max(fill, 1e-9)
    )  # a table may hold nothing
