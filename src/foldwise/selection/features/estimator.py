"""The selector of columns that users meet."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from math import comb
from numbers import Integral
from time import perf_counter
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.feature_selection import SelectorMixin
from sklearn.utils.validation import check_is_fitted

from foldwise.data.block import Floats
from foldwise.data.mapped import TakeColumns
from foldwise.data.missing import allow_missing
from foldwise.data.source import Source, count_rows
from foldwise.errors import DataError, ParameterError
from foldwise.fold import blas
from foldwise.fold.iterate import iterate
from foldwise.fold.multistart import UNLIMITED
from foldwise.fold.outcome import Outcome, Reason
from foldwise.fold.passes import Passes
from foldwise.models.base import KnownParameters, RowOutput, open_as_given
from foldwise.models.parameters import Parameter, constraints
from foldwise.models.pca.rank import RankChoice
from foldwise.models.session import Session, session
from foldwise.selection.features.branch_and_bound import BranchAndBound, check_exhaustive, listed
from foldwise.selection.features.column_tasks import Reconstruct, SquaredError, TakeDense
from foldwise.selection.features.evaluated import (
    ClusterQuality,
    Evaluation,
    FunctionOfRows,
    Judge,
    TaskScore,
    rows_in_memory,
)
from foldwise.selection.features.explained import ExplainedVariance
from foldwise.selection.features.number import Target, auto_target, nearly_as_good, share_target, within_one_error
from foldwise.selection.features.parameters import CLUSTER_SCORES, PARAMETERS
from foldwise.selection.features.path import SelectionPath
from foldwise.selection.features.scatter import Scatter, scatter_of
from foldwise.selection.features.search import SEARCHES, Search, Walk, exhaustive_of_one_size
from foldwise.stats.extent import Extent

_MOST_EVALUATED = 100_000  # subsets, each with a fit of its own


class FeatureSelector(KnownParameters, SelectorMixin, BaseEstimator):  # type: ignore[misc]
    """Chooses columns that stand for all: a subset, found by a search, that is best by a criterion.

    Parameters
    ----------
    n_features : how many columns to keep; a share such as 0.9 (the fewest that explain so much of the variance); or "auto":
        with "variance-explained" the fewest that explain as much as the principal components that stand out from noise, with
        "wrapper" the fewest within one standard error of the best score, with "between-variance" those with 95 % of it, else
        the best. `choice_` has the range that the rule would also defend.
    search : "forward" adds the best column, again and again; "backward" removes the worst from all; "floating" goes forward,
        and back where that pays; "swap" goes forward and exchanges columns while that helps; "exhaustive" compares all subsets.
    criterion : "variance-explained", the share of the variance of all columns that regression on the chosen ones explains:
        worked out from the covariance, so that the rows are read once, whatever the search, and "exhaustive" is exact
        by branch and bound, for up to about 30 columns. "cluster", how good the clusters are that are found in the chosen
        columns alone (by `estimator`, or k-means with `n_clusters`): scoring="between-variance", the default, is the share of
        the variance of all columns that lies between them, "silhouette" their mean silhouette in the chosen columns.
        "wrapper", the cross-validated score of `estimator` on a final task, `y` (as scikit-learn's SequentialFeatureSelector;
        `cv` and `scoring` as there). Or a function from the rows of the chosen columns, an array, to a number, the higher the
        better. The last two keep the rows in memory.
    n_clusters, estimator, cv, scoring : for "cluster" and "wrapper", see there.
    scale : columns are divided by their standard deviation first: for columns in different units. `transform` gives the
        columns as they are.
    missing : cells that are missing: "error", "drop" their rows, fill with the "mean", or leave them to the "model": the
        covariance of a normal distribution fitted to the observed cells, k-means on observed cells, or an estimator that takes
        NaN.
    prepare, random_state, n_threads : as for PCA. Results do not depend on n_threads.
    time_budget (seconds), checkpoint (a file) : for searches that take long; a search that was killed goes on from its
        checkpoint, and one that is stopped keeps the columns so far.

    Attributes: `support_` (a mask), `selected_` (names, or positions, in the order of their choice), `n_features_`, `score_`,
    `path_` (every step with its score), `bound_` (with "variance-explained": what so many principal components explain, so that
    no other subset of this size can explain more), `explained_` (of each column, the share that the chosen ones explain),
    `coefficients_` (of the regression of all columns on the chosen ones), `correlations_` (of the chosen ones with all),
    `losses_` (of each chosen one, the share that would not be explained without it), `n_compared_` (subsets that were
    compared one by one), `choice_`, `outcome_`, `manifest_`, `trace_`.

    Citation: Pudil and others, Floating search methods in feature selection, 1994 (floating); Narendra and Fukunaga, A branch
    and bound algorithm for feature subset selection, 1977 (exhaustive).

    >>> import numpy as np
    >>> import foldwise as fw
    >>> rng = np.random.default_rng(0)
    >>> a, b = rng.standard_normal((2, 100))
    >>> selector = fw.FeatureSelector(2).fit(np.column_stack([a, a + b, b, a - b]))
    >>> selector.get_support(indices=True), round(selector.score_, 6)
    (array([1, 3]), 1.0)
    """

    PARAMETERS: ClassVar[dict[str, Parameter]] = PARAMETERS
    UNSAVED: ClassVar[tuple[str, ...]] = ("estimator", "criterion", "cv", "scoring")  # if they are objects
    GIVES_CELLS: ClassVar[bool] = True
    _parameter_constraints: ClassVar[dict[str, Any]] = constraints(PARAMETERS)

    choice_: RankChoice | None
    mean_: Floats | None
    scale_: Floats | None
    explained_: Floats | None
    coefficients_: Floats | None
    correlations_: Floats | None
    losses_: Floats | None

    def __init__(
        self,
        n_features: int | float | str = "auto",
        *,
        search: str = "forward",
        criterion: str | Callable[[Any], float] = "variance-explained",
        n_clusters: int | None = None,
        estimator: Any = None,
        cv: Any = 5,
        scoring: Any = None,
        scale: bool = False,
        missing: str = "error",
        prepare: str | None = None,
        random_state: Any = None,
        time_budget: float | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
        n_threads: int | None = None,
    ) -> None:
        self.n_features = n_features
        self.search = search
        self.criterion = criterion
        self.n_clusters = n_clusters
        self.estimator = estimator
        self.cv = cv
        self.scoring = scoring
        self.scale = scale
        self.missing = missing
        self.prepare = prepare
        self.random_state = random_state
        self.time_budget = time_budget
        self.checkpoint = checkpoint
        self.n_threads = n_threads

    @property
    def standardises(self) -> bool:
        """Whether rows are scaled; by variance explained, scale=True scales the covariance instead."""
        return not self._direct

    @property
    def _direct(self) -> bool:
        return isinstance(self.criterion, str) and self.criterion == "variance-explained"

    # ---------------------------------------------------------------- fitting

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, *, engine: Any = None) -> Self:
        """Choose the columns; `y` is the target of a "wrapper". `sample_weight` counts a row as that many equal rows."""
        self._validate_params()
        self._check_together(y)
        with session(self, X, sample_weight, engine=engine, spool=self._reads_again) as opened, blas.single():
            d = opened.source.n_columns
            if isinstance(self.n_features, Integral) and self.n_features > d:
                raise ParameterError(f"n_features={self.n_features} must not exceed the number of columns, {d}.")
            if self._direct:
                outcome, resumed_at, rows = self._fit_direct(opened, d)
            else:
                outcome, resumed_at, rows = self._fit_evaluated(opened, y, d)
            self.trace_ = outcome.trace
            opened.finish(
                outcome,
                f"{self.search} search, {self._criterion_name}",
                rows,
                resumed_at=resumed_at,
                warning="FeatureSelector",
            )
        return self

    @property
    def _growing(self) -> bool:
        """Whether the score tends to grow with every column, so that its peak says nothing."""
        return self.criterion == "cluster" and self.scoring in (None, "between-variance")

    @property
    def _meaning(self) -> str:
        """What the scores are."""
        if self.criterion == "cluster":
            return "share of the variance of all columns between the clusters" if self._growing else "mean silhouette"
        return "cross-validated score" if self.criterion == "wrapper" else self._criterion_name

    def _check_together(self, y: Any) -> None:
        """Refuse parameters that make no sense with the criterion."""
        name = self._criterion_name
        if self.criterion == "cluster" and (self.n_clusters is None) == (self.estimator is None):
            raise ParameterError(
                "criterion='cluster': give n_clusters, or an estimator that finds clusters, but not both."
            )
        if self.criterion == "wrapper" and self.estimator is None:
            raise ParameterError("criterion='wrapper': give the estimator of the final task, and y if it has a target.")
        if self.criterion == "cluster" and self.scoring not in (None, *CLUSTER_SCORES):
            raise ParameterError(
                f"scoring={self.scoring!r}: clusters are judged by {' or '.join(map(repr, CLUSTER_SCORES))}."
            )
        if not self._direct and isinstance(self.n_features, float):
            raise ParameterError(
                f"n_features={self.n_features}: a share is of explained variance; with {name} give a number."
            )
        if self.criterion not in ("wrapper", "cluster") and self.estimator is not None:
            raise ParameterError(f"estimator: criterion={name!r} has no use for it; use criterion='wrapper'.")

    def _reads_again(self, source: Source) -> bool:
        return not self._direct or self.missing == "model"

    @property
    def _criterion_name(self) -> str:
        if isinstance(self.criterion, str):
            return self.criterion
        return str(getattr(self.criterion, "__name__", type(self.criterion).__name__))

    # ---------------------------------------------------------------- by variance explained

    def _fit_direct(self, opened: Session, d: int) -> tuple[Outcome, int, int]:
        scatter = scatter_of(opened, self.scale, self.missing)
        criterion = ExplainedVariance(scatter.matrix)
        target = self._target(scatter)
        walk = Walk(lambda step: target is not None and step.score >= target.high)
        most = d if target is not None else int(self.n_features)
        outcome, resumed_at, self.n_compared_ = Outcome(Reason.CONVERGED, 1, 0.0), 0, 0
        if self.search == "exhaustive" and not listed(d):
            outcome, resumed_at = self._branch_and_bound(opened, criterion, scatter, target, walk)
        elif self.search == "backward":
            _backward(criterion, target.low if target is not None else None, most, walk)
        else:
            search = SEARCHES[self.search]
            if self.search == "exhaustive":
                check_exhaustive(d, most if target is None else d // 2)
                search = search if target is not None else exhaustive_of_one_size
            search(criterion, most, walk)
        sizes = [step.size for step in walk.steps]
        bounds = criterion.bounds(max(sizes))
        steps = tuple(replace(step, bound=max(float(bounds[step.size - 1]), step.score)) for step in walk.steps)
        path = SelectionPath(steps, opened_names(opened.data), "share of the variance of all columns that is explained")
        self.choice_ = None if target is None else target.choice(path)
        size = most if self.choice_ is None else self.choice_.chosen
        self._set_chosen(path, size, opened.data)
        chosen = np.flatnonzero(self.support_)
        self.mean_, self.scale_ = scatter.mean, scatter.scale
        self.explained_ = criterion.explained(self._order)
        self.coefficients_ = criterion.coefficients(chosen.tolist())
        self.correlations_, self.losses_ = criterion.correlations(chosen.tolist()), criterion.losses(chosen.tolist())
        return replace(outcome, seconds=opened.passes.seconds), resumed_at, scatter.rows

    def _target(self, scatter: Scatter) -> Target | None:
        if isinstance(self.n_features, Integral):
            return None
        return auto_target(scatter.spectrum) if self.n_features == "auto" else share_target(float(self.n_features))

    def _branch_and_bound(
        self, opened: Session, criterion: ExplainedVariance, scatter: Scatter, target: Target | None, walk: Walk
    ) -> tuple[Outcome, int]:
        """The best subsets of the size asked for, or of all sizes at which the target could be reached."""
        if target is None:
            sizes = [int(self.n_features)]
        else:
            bounds = criterion.bounds(criterion.d)
            first = int(np.argmax(bounds >= target.low - 1e-9)) + 1
            rough = Walk(lambda step: step.score >= target.high)
            SEARCHES["swap"](criterion, criterion.d, rough)
            sizes = list(range(first, max(first, rough.steps[-1].size) + 1))
        for size in sizes:
            check_exhaustive(criterion.d, size)
        share = np.inf if target is None else target.high
        tree = BranchAndBound(criterion, sizes, share, opened.passes.n_threads)
        state, outcome, resumed_at = iterate(
            tree.start,
            tree.step,
            tree.done,
            max_iter=UNLIMITED,
            time_budget=self.time_budget,
            checkpoint=opened.checkpoint(scatter.matrix),
        )
        tree.path(state, walk)
        self.n_compared_ = int(state["compared"])
        return outcome, resumed_at

    # ---------------------------------------------------------------- by a model of each subset

    def _fit_evaluated(self, opened: Session, y: Any, d: int) -> tuple[Outcome, int, int]:
        # Subsets are taken of rows that nobody checks again; what is found here also ties a checkpoint to them.
        gaps = opened.missing
        seen = None if gaps is None else (gaps.weight, gaps.centre, gaps.squares)
        figures = opened.passes.fold(Extent.of).figures if seen is None else seen
        judge, rows = self._judge(opened, y)
        auto = self.n_features == "auto"
        size = (1 if self.search == "backward" else d) if auto else int(self.n_features)
        search: Search = SEARCHES[self.search]
        if self.search == "exhaustive":
            self._check_evaluated(judge, d, size, auto=auto)
            search = search if auto else exhaustive_of_one_size
        evaluation = Evaluation(judge, search, size, d, opened.passes.n_threads, lambda step: False)
        state, outcome, resumed_at = iterate(
            evaluation.start,
            evaluation.step,
            evaluation.done,
            max_iter=UNLIMITED,
            time_budget=self.time_budget,
            checkpoint=opened.checkpoint(*figures, target=None if y is None else np.asarray(y)),
        )
        walk, known = evaluation.walk(state)
        if not walk.steps:  # stopped within the first step: the best subset so far
            if not known:
                if outcome.reason is Reason.INTERRUPTED:
                    raise KeyboardInterrupt
                known = evaluation.walk(evaluation.step(state)[0])[1]
            best = max(known, key=lambda subset: known[subset][0])
            walk.step(known[best][0], len(best), added=best)
        path = SelectionPath(tuple(walk.steps), opened_names(opened.data), self._meaning)
        errors = [known.get(tuple(sorted(subset)), (0.0, np.nan))[1] for subset in path.subsets()]
        path = replace(path, steps=tuple(replace(step, error=e) for step, e in zip(path.steps, errors, strict=True)))
        self.choice_ = (nearly_as_good if self._growing else within_one_error)(path) if auto else None
        self.n_compared_ = len(known)
        wanted = size if self.choice_ is None else self.choice_.chosen
        reached = min(path.sizes, key=lambda each: abs(each - wanted))  # of a search that was stopped, the nearest
        self._set_chosen(path, reached, opened.data)
        self.mean_, self.scale_ = opened.mean, opened.scale
        self.explained_ = self.coefficients_ = self.correlations_ = self.losses_ = None
        return outcome, resumed_at, rows

    def _judge(self, opened: Session, y: Any) -> tuple[Judge, int]:
        """What scores a subset, and how many rows it looks at."""
        if self.criterion == "cluster":
            scoring = self.scoring or CLUSTER_SCORES[0]
            quality = ClusterQuality(opened, self.n_clusters or 2, self.estimator, scoring, self.missing)
            return quality, count_rows(opened.source)
        rows, weights = rows_in_memory(opened.source)
        target = None if y is None else np.asarray(y)
        if target is not None and len(target) != rows.shape[0]:
            raise DataError(f"y has {len(target)} entries, but there are {rows.shape[0]} rows", where=opened.where)
        if weights is not None and not weights.all():
            some = weights > 0
            rows, weights, target = rows[some], weights[some], None if target is None else target[some]
        if weights is not None and (weights == 1.0).all():
            weights = None
        if callable(self.criterion):
            return FunctionOfRows(self.criterion, rows), rows.shape[0]
        return TaskScore(target, self.estimator, self.cv, self.scoring, rows, weights), rows.shape[0]

    def _check_evaluated(self, judge: Judge, d: int, size: int, *, auto: bool) -> None:
        """Refuse more subsets than anybody waits for, with the time that they would take."""
        many = 2**d - 1 if auto else comb(d, size)
        if many <= _MOST_EVALUATED:
            return
        began = perf_counter()
        judge(tuple(range(size)))
        hours = many * (perf_counter() - began) / 3600
        raise ParameterError(
            f"search='exhaustive': there are {many:,} subsets, each with a fit of its own: about {hours:,.0f} hours. "
            "Use search='floating' or 'forward', or fewer columns."
        )

    def _set_chosen(self, path: SelectionPath, size: int, source: Source) -> None:
        self.path_, self._order = path, path.best(size)
        step = path.by_size()[size]
        self.support_ = np.zeros(source.n_columns, dtype=bool)
        self.support_[list(self._order)] = True
        self.n_features_, self.score_, self.bound_ = size, step.score, step.bound
        names = source.names
        self.selected_ = (
            np.array(self._order) if names is None else np.array([names[j] for j in self._order], dtype=object)
        )

    # ---------------------------------------------------------------- rows

    def transform(self, X: Any) -> Any:
        """The chosen columns of rows, as they are; sparse rows stay sparse."""
        source = self._opened(X)
        chosen = np.flatnonzero(self.support_)
        passes = Passes(source, n_threads=self.n_threads)
        if not source.sparse:
            return passes.rows(TakeDense(chosen))
        from scipy.sparse import vstack

        return vstack([block.unchecked for block in passes.each(TakeColumns(chosen))], format="csr")

    def reconstruct(self, X: Any) -> NDArray[Any]:
        """All columns as regression on the chosen ones predicts them; by variance explained only."""
        return Passes(self._opened(X), n_threads=self.n_threads).rows(self._reconstruct())

    def reconstruction_error(self, X: Any) -> Floats:
        """The squared distance of each row from what the chosen columns predict, in the (scaled) space of the fit.

        Over the rows of the fit, its sum is 1 - `score_` of that of the mean alone, if nothing is missing.
        """
        return Passes(self._opened(X), n_threads=self.n_threads).rows(SquaredError(self._reconstruct()))

    def row_output(self, source: Source) -> RowOutput:
        """For streamed output: the chosen columns of each row."""
        check_is_fitted(self, "support_")
        names = tuple(map(str, self.get_feature_names_out()))
        return RowOutput(source, names, source.dtype, TakeDense(np.flatnonzero(self.support_)))

    def _reconstruct(self) -> Reconstruct:
        if self.coefficients_ is None:
            raise ParameterError(
                "only criterion='variance-explained' has a regression of all columns on the chosen ones."
            )
        assert self.mean_ is not None
        return Reconstruct(np.flatnonzero(self.support_), self.coefficients_, self.mean_, self.scale_)

    def _opened(self, X: Any) -> Source:
        check_is_fitted(self, "support_")
        source = open_as_given(self, X)
        return source if self.missing == "error" else allow_missing(source)

    def _get_support_mask(self) -> NDArray[np.bool_]:
        check_is_fitted(self, "support_")
        return np.asarray(self.support_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = self.missing != "error"
        tags.target_tags.required = False
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def opened_names(source: Source) -> tuple[str, ...]:
    """The names of the columns, x0, x1, ... if they have none."""
    return tuple(source.names) if source.names is not None else tuple(f"x{j}" for j in range(source.n_columns))


def _backward(criterion: ExplainedVariance, share: float | None, size: int, walk: Walk) -> None:
    """From all columns down to `size`, or to the fewest that explain `share`, with all scores from one elimination."""
    order = criterion.backward_order()
    scores = criterion.nested(order[::-1])  # of the last 1, 2, ... to go
    many = len(order)
    walk.step(scores[-1], many, added=tuple(range(many)))
    for left, column in zip(range(many - 1, 0, -1), order, strict=False):
        if left < size if share is None else scores[left - 1] < share:
            return
        walk.step(scores[left - 1], left, removed=(column,))
