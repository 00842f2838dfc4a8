"""How stable clusters are: whether fits to other rows of the same kind would find them again."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from foldwise.data.arrays import ArraySource
from foldwise.data.block import Floats, join
from foldwise.data.source import Source
from foldwise.errors import DataError, NotFinishedWarning, ParameterError, warn
from foldwise.fold.iterate import Figures, State, iterate
from foldwise.fold.passes import Passes
from foldwise.models.parameters import is_whole, seed_of
from foldwise.models.session import open_checkpoint, open_passes
from foldwise.selection.cluster_moments import row_weights
from foldwise.selection.one_group import KINDS, OneGroup
from foldwise.selection.refit import Refit, count_of
from foldwise.selection.resample import Draw, effective_rows
from foldwise.selection.stability_result import LOST, Stability
from foldwise.stats.contingency import Contingency

METHODS = {"bootstrap": 1 / 2, "subsample": 1 / 3}  # the share that is drawn; why: `effective_rows`
_MOST_DRAWN, _LEAST_DRAWN, _CELLS = 100_000, 5_000, 10_000_000
_TABLES = 5  # without clusters, of each kind
_MOST_COLUMNS = 2_000  # of which principal axes are worked out


def stability(
    model: Any,
    X: Any,
    *,
    method: str = "bootstrap",
    n_repeats: int = 100,
    correct: bool = True,
    sample_size: int | str = "auto",
    random_state: Any = None,
    sample_weight: Any = None,
    time_budget: float | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    n_threads: int | None = None,
    engine: Any = None,
) -> Stability:
    """Fit a model again and again to rows drawn at random, and see which clusters, and which rows in them, stay.

    `model` is any clustering with `fit` and `predict`, of Foldwise or scikit-learn, fitted to X or not (then a copy is fitted
    first). Each repeat starts afresh with a seed of its own, labels all rows, and is compared with the labels of the model:
    see `Stability` for the figures.

    Parameters
    ----------
    method : "bootstrap" draws half as many rows as there are, with replacement; "subsample" a third of the rows, without. Both
        make fits differ from the model's as much as fits to fresh data would, so that a confidence of 0.9 means that 9 of 10
        such rows would keep their cluster there.
    n_repeats : the number of fits.
    correct : whether to compare with tables of the same shape without clusters, which takes about as many fits again.
    sample_size : the largest number of rows that are drawn for a fit; "auto" is 100,000, or fewer with over 100 columns. With
        more rows, the result is that for a smaller table (`fresh_rows`); all rows are still labelled and counted.
    random_state : the seed; None is a fixed seed. Draws depend on it and on the numbers of the rows only.
    sample_weight : a weight counts as repetition of its row.
    time_budget (seconds), checkpoint (a file) : stop early, and resume. Ctrl-C keeps the repeats that are finished.

    >>> import foldwise as fw
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.standard_normal((100, 2)), [9.0, 0.0] + rng.standard_normal((100, 2))])
    >>> found = fw.stability(fw.KMeans(2), X, n_repeats=20)
    >>> found.verdicts
    ('very stable', 'very stable')
    """
    _check(method, n_repeats, sample_size, correct)
    refit = Refit.of(model, seed_of(random_state))
    with open_passes(refit.open(X, sample_weight), engine=engine, n_threads=n_threads) as passes:
        whole = refit.model if refit.fitted else refit.fit(passes.source, None)
        labels = refit.labels(whole, passes)
        weights = row_weights(passes)
        repeats = _Repeats.of(refit, passes, labels, weights, count_of(labels, whole, refit.ours), method, sample_size)
        tables = repeats.one_group(int(n_repeats)) if correct else None
        run = _Run(repeats, int(n_repeats), tables)
        place = None
        if checkpoint is not None:
            about = {"settings": refit.settings(), "method": method, "n_repeats": int(n_repeats)}
            about |= {"correct": correct, "rate": repeats.rate, "seed": refit.seed, "merged": refit.n_clusters}
            kind = f"stability {type(model).__name__}"
            place = open_checkpoint(
                checkpoint, kind, about, passes.source, labels, weights if weights is not None else 0
            )
        state, outcome, _ = iterate(
            run.start, run.step, run.done, max_iter=run.steps, time_budget=time_budget, checkpoint=place
        )
    if not len(state["overlaps"]):
        if outcome.reason == "interrupted":
            raise KeyboardInterrupt
        if run.problem is not None:
            raise run.problem
        raise DataError("the time budget was over before the first repeat was finished", advice="Raise time_budget")
    if not outcome.converged:
        done = f"{len(state['overlaps'])} of {n_repeats} repeats and {len(state['one_group'])} tables without clusters"
        warn(f"stability: {outcome.reason}; the result is from {done}.", NotFinishedWarning)
    return repeats.result(state, outcome, method, int(n_repeats), () if tables is None else tables.notes)


def _check(method: str, n_repeats: Any, sample_size: Any, correct: Any) -> None:
    if method not in METHODS:
        raise ParameterError(f"method={method!r}: give one of {', '.join(METHODS)}.")
    if not is_whole(n_repeats) or n_repeats < 1:
        raise ParameterError(f"n_repeats={n_repeats!r}: give a whole number of at least 1.")
    if not (sample_size == "auto" or (is_whole(sample_size) and sample_size >= 1)):
        raise ParameterError(f'sample_size={sample_size!r}: give a number of rows, or "auto".')
    if not isinstance(correct, bool):
        raise ParameterError(f"correct={correct!r}: give True or False.")


# ---------------------------------------------------------------- repeats


@dataclass(frozen=True)
class _Repeats:
    """Fits to draws of some rows, compared with the labels of a fit to all of them."""

    refit: Refit
    passes: Passes
    labels: NDArray[np.int32]
    weights: Floats | None
    k: int
    replace: bool
    rate: float
    total: float  # weight

    @classmethod
    def of(
        cls,
        refit: Refit,
        passes: Passes,
        labels: NDArray[np.int32],
        weights: Floats | None,
        k: int,
        method: str,
        sample_size: int | str,
    ) -> _Repeats:
        """Repeats for these labels."""
        if k < 2:
            raise ParameterError("stability compares clusters, so there must be at least two.")
        total = float(len(labels) if weights is None else weights.sum())
        most = sample_size
        if most == "auto":
            most = max(_LEAST_DRAWN, min(_MOST_DRAWN, _CELLS // passes.source.n_columns))
        rate = min(METHODS[method], int(most) / total)
        if rate * total < 2 * k:
            raise DataError(
                f"about {rate * total:.3g} rows would be drawn for each fit of {k} clusters",
                advice="Fewer clusters, more rows or a larger sample_size are needed; weights are numbers of repetitions",
            )
        return cls(refit, passes, labels, weights, k, method == "bootstrap", rate, total)

    def draw(self, number: int) -> Draw:
        """The rows of a repeat."""
        return Draw(self.replace, self.rate, self.refit.seed, number)

    def repeat(self, number: int) -> tuple[Contingency, NDArray[np.int32]]:
        """The labels of a fit to drawn rows, and their table with those of the model."""
        model = self.refit.fit(self.draw(number).rows(self.passes), number)
        found = self.refit.labels(model, self.passes)
        shape = self.k, count_of(found, model, self.refit.ours)
        return Contingency.of(self.labels, found, shape, self.weights), found

    def one_group(self, n_repeats: int) -> _OneGroupTables:
        """Tables of the same shape without clusters, if there can be any."""
        source, why = self.passes.source, ""
        if source.sparse:
            why = "rows are sparse"
        elif getattr(source, "indicators", None):
            why = "columns stand for categories"
        elif source.n_columns > _MOST_COLUMNS:
            why = f"there are more than {_MOST_COLUMNS:,} columns"
        if why:
            return _OneGroupTables(
                (), (f"not corrected: no table of the same shape without clusters is made if {why}",)
            )
        n_rows = round(min(self.total, self.rate * self.total * (2 if self.replace else 3)))
        seen: Source = source
        if len(self.labels) > 2 * n_rows:
            seen = Draw(True, n_rows / self.total, self.refit.seed, 1 << 40).rows(self.passes)
        block = join([piece.load() for piece in seen.pieces()], 0)
        rows = block.unchecked
        kinds = KINDS[1:] if np.isnan(rows).any() else KINDS
        shapes = tuple(OneGroup.of(rows, block.weights, kind) for kind in kinds)
        return _OneGroupTables(shapes, (), n_rows, max(2, n_repeats // (len(KINDS) * _TABLES)))

    def result(self, state: State, outcome: Any, method: str, asked: int, notes: tuple[str, ...]) -> Stability:
        """The figures of all finished repeats."""
        overlaps, repeats = state["overlaps"], len(state["overlaps"])
        known = self.labels >= 0
        none = state["one_group"]
        kinds = [none[none[:, 0] == kind, 1:].mean(axis=0).tolist() for kind in np.unique(none[:, 0])]
        one_group, its_share = max(kinds, default=(float("nan"), float("nan")))
        counts = np.bincount(
            self.labels[known], None if self.weights is None else self.weights[known], minlength=self.k
        )
        return Stability(
            method=method,
            labels=self.labels,
            weights=counts.astype(np.float64),
            jaccard=overlaps.mean(axis=0),
            by_chance=state["chances"].mean(axis=0),
            one_group=one_group,
            one_group_share=its_share,
            dissolved=(overlaps < LOST).mean(axis=0),
            confidence=np.where(known, state["kept"] / repeats, np.nan),
            overlaps=overlaps,
            drawn=self.rate * self.total,
            fresh_rows=effective_rows(self.replace, self.rate, self.total),
            asked=asked,
            failed=int(state["failed"][0]),
            outcome=outcome,
            notes=notes,
            row_weights=self.weights,
        )


def overlaps_of(table: Contingency) -> tuple[Floats, Floats]:
    """The Jaccard of each cluster of the first labeling with the most similar of the second; the same for random rows.

    >>> found, by_chance = overlaps_of(Contingency.of_table(np.array([[6.0, 2.0], [0.0, 4.0]])))
    >>> found, by_chance.round(3)
    (array([0.75      , 0.66666667]), array([0.4 , 0.25]))
    """
    both, (first, second) = table.table(), table.margins
    n = max(float(table.counts.sum()), 1.0)

    def best(shared: Floats) -> Floats:
        either = first[:, None] + second - shared
        return np.asarray(np.divide(shared, either, out=np.zeros(shared.shape), where=either > 0).max(axis=1))

    return best(both), best(first[:, None] * second / n)


def matched(table: Contingency) -> NDArray[np.int32]:
    """For each cluster of the second labeling its counterpart in the first, so that most rows agree; -2 for none."""
    from scipy.optimize import linear_sum_assignment

    first, second = linear_sum_assignment(table.table(), maximize=True)
    out = np.full(table.shape[1] + 1, -2, dtype=np.int32)  # the last is for rows in no cluster
    out[second] = first
    return out


@dataclass(frozen=True)
class _OneGroupTables:
    """Tables without clusters, in which as many are forced."""

    shapes: tuple[OneGroup, ...]
    notes: tuple[str, ...]
    n_rows: int = 0
    repeats: int = 0

    @property
    def count(self) -> int:
        return len(self.shapes) * _TABLES

    def most_stable(self, number: int, of: _Repeats) -> tuple[float, float, float]:
        """Of table `number`: its kind, and the Jaccard of its most stable cluster and the share of the rows that it has."""
        kind = number % len(self.shapes)
        rng = np.random.default_rng([of.refit.seed, 1, number])
        rows = self.shapes[kind].sample(self.n_rows, rng, of.passes.source.dtype)
        source = ArraySource(rows, names=of.passes.source.names)
        here = of.passes.over(source, here=True)
        first = 1_000_000 * (number + 1)  # numbers of seeds that no other fit has
        whole = of.refit.fit(source, first)
        labels = of.refit.labels(whole, here)
        rate = METHODS["bootstrap" if of.replace else "subsample"]
        inside = _Repeats(of.refit, here, labels, None, of.k, of.replace, rate, float(self.n_rows))
        found = np.mean([overlaps_of(inside.repeat(first + 1 + i)[0])[0] for i in range(self.repeats)], axis=0)
        best = int(np.argmax(found))
        return float(kind), float(found[best]), float(np.mean(labels == best))


@dataclass
class _Run:
    """All repeats, and then all tables without clusters, as steps of one loop."""

    repeats: _Repeats
    n_repeats: int
    tables: _OneGroupTables | None
    problem: DataError | None = None  # of a repeat

    @property
    def steps(self) -> int:
        return self.n_repeats + (self.tables.count if self.tables is not None else 0)

    def start(self) -> State:
        k = self.repeats.k
        return {
            "number": np.zeros(1, dtype=np.int64),
            "kept": np.zeros(len(self.repeats.labels), dtype=np.int32),
            "overlaps": np.zeros((0, k)),
            "chances": np.zeros((0, k)),
            "one_group": np.zeros((0, 3)),  # kind, Jaccard and share of the most stable cluster
            "failed": np.zeros(1, dtype=np.int64),
        }

    def done(self, state: State) -> bool:
        return int(state["number"][0]) >= self.steps

    def step(self, state: State) -> tuple[State, Figures]:
        """One repeat, or one table without clusters."""
        number, now = int(state["number"][0]), {**state, "number": state["number"] + 1}
        if number >= self.n_repeats:
            assert self.tables is not None
            best = self.tables.most_stable(number - self.n_repeats, self.repeats)
            now["one_group"] = np.vstack([state["one_group"], best])
            return now, {"repeat": float(number), "jaccard": best[1]}
        try:
            table, labels = self.repeats.repeat(number)
        except DataError as problem:  # too few distinct rows were drawn, say
            self.problem = problem
            now["failed"] = state["failed"] + 1
            return now, {"repeat": float(number), "jaccard": float("nan")}
        found, by_chance = overlaps_of(table)
        now["kept"] = state["kept"] + (matched(table)[labels] == self.repeats.labels)
        now["overlaps"] = np.vstack([state["overlaps"], found])
        now["chances"] = np.vstack([state["chances"], by_chance])
        return now, {"repeat": float(number), "jaccard": float(found.mean())}
