"""The selector of columns that users meet."""

from __future__ import annotations

import os
from collections.abc import Callable
from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.feature_selection import SelectorMixin
from sklearn.utils.validation import check_is_fitted

from foldwise.data.block import Floats
from foldwise.data.mapped import TakeColumns
from foldwise.data.missing import UnknownIfBlank, allow_missing
from foldwise.data.source import Source
from foldwise.errors import ParameterError
from foldwise.fold import blas
from foldwise.fold.passes import Passes
from foldwise.models.base import KnownParameters, RowOutput, open_as_given
from foldwise.models.fitted_rows import ShownModel
from foldwise.models.parameters import Parameter, constraints
from foldwise.models.pca.rank import RankChoice
from foldwise.models.session import session
from foldwise.selection.features.column_tasks import Reconstruct, SquaredError, TakeDense
from foldwise.selection.features.find_by_models import criterion_name, find_by_models
from foldwise.selection.features.find_by_variance import find_by_variance
from foldwise.selection.features.found import Found
from foldwise.selection.features.parameters import CLUSTER_SCORES, PARAMETERS


class FeatureSelector(ShownModel, KnownParameters, SelectorMixin, BaseEstimator):  # type: ignore[misc]
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
        `cv` and `scoring` as there; seeds that it leaves open are `random_state`). Or a function from the rows of the chosen
        columns, an array, to a number, the higher the better. The last two keep the rows in memory. The score of the best of
        many subsets is optimistic: judge it on rows that had no part in the choice.
    n_clusters, estimator, cv, scoring : for "cluster" and "wrapper", see there.
    scale : columns are divided by their standard deviation first: for columns in different units. `transform` gives the
        columns as they are. These are deviations of all rows, also of those that a "wrapper" tests with: to standardise
        within its folds, give it a pipeline with a StandardScaler instead.
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
    (array([0, 1]), 1.0)
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
        self._check_together()
        with session(self, X, sample_weight, engine=engine, spool=self._reads_again) as opened, blas.single():
            d = opened.source.n_columns
            if isinstance(self.n_features, Integral) and self.n_features > d:
                raise ParameterError(f"n_features={self.n_features} must not exceed the number of columns, {d}.")
            found = find_by_variance(self, opened) if self._direct else find_by_models(self, opened, y)
            self._set(found, opened.data)
            what = f"{self.search} search, {criterion_name(self)}"
            opened.finish(found.outcome, what, found.rows, resumed_at=found.resumed_at, warning="FeatureSelector")
        return self

    def _check_together(self) -> None:
        """Refuse parameters that make no sense with the criterion."""
        name = criterion_name(self)
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

    def _set(self, found: Found, source: Source) -> None:
        """Turn what was found into the attributes that users know."""
        path, size = found.path, found.size
        order, step = path.best(size), path.by_size()[size]
        self.support_ = np.zeros(source.n_columns, dtype=bool)
        self.support_[list(order)] = True
        names, chosen = source.names, np.flatnonzero(self.support_).tolist()
        self.selected_ = np.array(order) if names is None else np.array([names[j] for j in order], dtype=object)
        self.n_features_, self.score_, self.bound_ = size, step.score, step.bound
        self.path_, self.choice_, self.n_compared_ = path, found.choice, found.compared
        self.mean_, self.scale_, self.trace_ = found.mean, found.scale, found.outcome.trace
        by = found.by_variance
        self.explained_ = None if by is None else by.explained(order)
        self.coefficients_ = None if by is None else by.coefficients(chosen)
        self.correlations_ = None if by is None else by.correlations(chosen)
        self.losses_ = None if by is None else by.losses(chosen)

    # ---------------------------------------------------------------- rows

    def transform(self, X: Any) -> Any:
        """The chosen columns of rows, as they are; sparse rows stay sparse."""
        source = self._opened(X, needed=self.columns_needed)
        chosen = self._places(source)
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
        return Passes(self._opened(X), n_threads=self.n_threads).rows(UnknownIfBlank(SquaredError(self._reconstruct())))

    def row_output(self, source: Source) -> RowOutput:
        """For streamed output: the chosen columns of each row."""
        check_is_fitted(self, "support_")
        names = tuple(map(str, self.get_feature_names_out()))
        return RowOutput(source, names, source.dtype, TakeDense(self._places(source)))

    @property
    def columns_needed(self) -> tuple[str, ...] | None:
        """The columns that `transform` reads of a file; None: all, as they have no names or are levels of categories."""
        check_is_fitted(self, "support_")
        names = getattr(self, "feature_names_in_", None)
        if names is None or getattr(self, "indicators_", None) is not None:
            return None
        return tuple(map(str, names[self.support_]))

    def _places(self, source: Source) -> NDArray[np.intp]:
        """Where the chosen columns are in a source, which may have no others."""
        only = source.n_columns == self.n_features_ and self.columns_needed is not None
        return np.arange(self.n_features_) if only else np.flatnonzero(self.support_)

    def _reconstruct(self) -> Reconstruct:
        if self.coefficients_ is None:
            raise ParameterError(
                "only criterion='variance-explained' has a regression of all columns on the chosen ones."
            )
        assert self.mean_ is not None
        return Reconstruct(np.flatnonzero(self.support_), self.coefficients_, self.mean_, self.scale_)

    def _opened(self, X: Any, needed: tuple[str, ...] | None = None) -> Source:
        check_is_fitted(self, "support_")
        source = open_as_given(self, X, needed=needed)
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
