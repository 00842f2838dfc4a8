"""The public ClusterEnsemble estimator."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.utils._param_validation import HasMethods
from sklearn.utils.validation import check_is_fitted

from foldwise.data.arrays import ArraySource
from foldwise.data.block import Floats
from foldwise.data.check import weights as checked_weights
from foldwise.data.mapped import standardised, widened
from foldwise.data.source import Source
from foldwise.errors import DataError, ParameterError, warn
from foldwise.fold import blas
from foldwise.fold.iterate import iterate
from foldwise.fold.outcome import Outcome, Reason
from foldwise.fold.passes import Passes
from foldwise.kernels.targets import Labels
from foldwise.models.base import KnownParameters, RowOutput, open_for_use, warn_of_shares
from foldwise.models.ensemble.agreement import agreement_of, pac_of, pair_distribution
from foldwise.models.ensemble.base import DIVERSITIES, BaseFits, base_labels
from foldwise.models.ensemble.choose import ConsensusChoice, choose_from_labels, choose_number
from foldwise.models.ensemble.clusterings import Clusterings, distinct_rows, read_clusterings
from foldwise.models.ensemble.consensus import CONSENSUS, function_consensus
from foldwise.models.ensemble.label_rows import LabelRows, Scoring
from foldwise.models.ensemble.predict import (
    ClusterAndConfidence,
    ConsensusLabels,
    KnownLabels,
    MeanCoassociation,
    confidence,
)
from foldwise.models.fitted_rows import ShownModel
from foldwise.models.kmeans.centre_model import FewerClustersWarning, check_count
from foldwise.models.kmeans.geometry import EUCLIDEAN
from foldwise.models.kmeans.observed_data import data_of
from foldwise.models.parameters import Parameter, constraints, seed_of, shared, whole, words
from foldwise.models.session import session

PARAMETERS: dict[str, Parameter] = {
    "n_clusters": whole(1, None),
    "base": Parameter((HasMethods("fit"), None)),
    "n_base": whole(),
    "consensus": Parameter((words(*CONSENSUS), callable)),
    "diversity": Parameter((words(*DIVERSITIES), list, tuple)),
    **shared("scale", "missing", "prepare", "random_state", "time_budget", "checkpoint", "n_threads"),
}


class ClusterEnsemble(ShownModel, KnownParameters, ClusterMixin, BaseEstimator):  # type: ignore[misc]
    """Several clusterings of the same rows, and the one clustering that they agree on.

    What counts is M(i, j), the share of the base clusterings in which rows i and j are together. It is never formed: time and
    memory grow with the rows, not with their square. `coassociation_` gives it as an operator, `fw.coassociation` that of any
    labels.

    Parameters
    ----------
    n_clusters : the number of clusters of the result. None chooses it (`choice_`), up to 30 and a quarter of the rows, on a
        sample of at most 600: clusterings of subsamples must agree more than on data of the same extent without clusters;
        else the answer is 1, all rows together, and `choice_.found` is False.
    base : an estimator that is cloned for each base clustering, with its own seed and number of clusters; None is k-means.
    n_base : the number of base clusterings.
    consensus : "spectral" clustering of M; "kmeans" on the rows of M; "average" linkage of M, exact for up to 3,000 distinct
        label rows (more are first gathered into 500 groups); or a function (M, n_clusters, weights) that labels the distinct
        label rows, where M is a `fw.Coassociation` (`M.toarray()` if it is small).
    diversity : how the base clusterings differ, besides their seeds. "k-range": by their numbers of clusters, from half to one
        root of the number of rows (25 to 50 at most), and from 2 to 3 n_clusters at least, so that clusters need not be round;
        "restarts": only by the seeds; "subsample": by the rows they see (80 %, drawn by row number; the others get the label
        of the nearest centre); "features": by the columns they see (half); or a list of estimators.
    scale, missing, prepare, random_state, n_threads : as for KMeans. With missing="model", a row of which a base clustering
        sees nothing has no label in it.
    time_budget (seconds), checkpoint (a file) : a fit that is stopped keeps the base clusterings so far; with a checkpoint,
        which needs base=None, it resumes after the last one.

    Attributes: `labels_` (-1 for rows without any label), `n_clusters_`, `item_consensus_` (the mean of M over the other rows
    of a row's cluster), `confidence_` (see `predict_confidence`), `cluster_consensus_` (over the pairs of a cluster),
    `cluster_weights_`, `pac_` (the share of pairs with 0.1 < M < 0.9; of 2,000 rows drawn by weight if more label rows are
    distinct), `consensus_cdf_` (the share of pairs with M of at most 0, 0.01, ..., 1), `inertia_` (of k-means on the rows of
    M), `base_labels_`, `base_sizes_`, `n_distinct_` (how many label rows differ), `estimators_`, `choice_`, `outcome_`,
    `manifest_`, `trace_`. If labels are missing, item and cluster consensus are exact for up to 2,000 distinct label
    rows, and beyond that estimated as if labels were missing at random.

    >>> import foldwise as fw
    >>> rows = [[0.0], [1.0], [2.0], [10.0], [11.0], [12.0], [30.0], [31.0]]
    >>> ensemble = fw.ClusterEnsemble(3).fit(rows)
    >>> ensemble.labels_, ensemble.predict([[29.0]])
    (array([0, 0, 0, 1, 1, 1, 2, 2], dtype=int32), array([2], dtype=int32))
    """

    choice_: ConsensusChoice | None
    estimators_: list[Any] | None
    base_columns_: list[NDArray[np.intp] | None] | None
    known_rows_: NDArray[Any] | None
    known_labels_: Labels | None

    PARAMETERS: ClassVar[dict[str, Parameter]] = PARAMETERS
    _parameter_constraints: ClassVar[dict[str, Any]] = constraints(PARAMETERS)

    def __init__(
        self,
        n_clusters: int | None = None,
        *,
        base: Any = None,
        n_base: int = 20,
        consensus: Any = "spectral",
        diversity: Any = "k-range",
        scale: bool = False,
        missing: str = "error",
        prepare: str | None = None,
        random_state: Any = None,
        time_budget: float | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
        n_threads: int | None = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.base = base
        self.n_base = n_base
        self.consensus = consensus
        self.diversity = diversity
        self.scale = scale
        self.missing = missing
        self.prepare = prepare
        self.random_state = random_state
        self.time_budget = time_budget
        self.checkpoint = checkpoint
        self.n_threads = n_threads

    # ---------------------------------------------------------------- fitting

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, *, engine: Any = None) -> Self:
        """Find the base clusterings and their consensus; a row with `sample_weight` w counts as w equal rows."""
        with session(self, X, sample_weight, engine=engine) as fit, blas.single():
            data = data_of(fit, EUCLIDEAN)
            check_count(self.n_clusters or 1, data.n, data.counted, fit.where)
            weight = float(data.n if data.weights is None else data.weights.sum())
            _refuse_shares(weight, data.counted, fit.where)
            choice = choose_number(fit.passes, fit.seed, weights=data.weights) if self.n_clusters is None else None
            k = self.n_clusters if choice is None else choice.n_clusters
            assert k is not None
            bases = BaseFits(self, fit, k, n=data.n, counted=data.counted, weight=weight)
            state, outcome, resumed_at = iterate(
                bases.start,
                bases.step,
                bases.done,
                max_iter=bases.count,
                time_budget=self.time_budget,
                checkpoint=fit.checkpoint(*data.figures),
            )
            labels, sizes, models, columns = bases.results(state)
            given = Clusterings(labels, sizes)
            try:
                outcome, notes = self._combine(given, data.weights, k, fit.seed, fit.passes, outcome)
            except KeyboardInterrupt:  # only the consensus remains; a second Ctrl-C gives it up
                outcome = replace(outcome, reason=Reason.INTERRUPTED)
                outcome, notes = self._combine(given, data.weights, k, fit.seed, fit.passes, outcome)
            self.choice_, self.estimators_, self.base_columns_ = choice, models, columns
            self.mean_, self.scale_, self.trace_ = fit.mean, fit.scale, outcome.trace
            if choice is not None:
                notes = (choice.reason, *notes)
            if given.count < bases.count:
                notes = (f"{given.count} of {bases.count} base clusterings", *notes)
            kind = self.diversity if isinstance(self.diversity, str) else "given estimators"
            fit.finish(
                outcome,
                f"ensemble of {given.count} clusterings ({kind}), {_name(self.consensus)} consensus",
                data.counted if self.missing == "drop" else data.n,
                resumed_at=resumed_at,
                notes=notes,
                warning=f"ClusterEnsemble (with {given.count} of {bases.count} base clusterings)",
            )
        return self

    def fit_labels(self, labels: Any, *, soft: bool = False, sample_weight: Any = None) -> Self:
        """Find the consensus of ready-made clusterings, given as for `fw.coassociation`; there is no `predict` then.

        >>> import foldwise as fw
        >>> fw.ClusterEnsemble(2).fit_labels([[1, 7], [1, 7], [1, 8], [2, 9], [2, 9]]).labels_
        array([0, 0, 0, 1, 1], dtype=int32)
        """
        self._validate_params()
        given, seed = read_clusterings(labels, soft=soft), seed_of(self.random_state)
        weights = None if sample_weight is None else checked_weights(sample_weight, "labels", given.n_rows)
        check_count(
            self.n_clusters or 1, given.n_rows, given.n_rows if weights is None else int((weights > 0).sum()), None
        )
        if weights is not None:
            _refuse_shares(float(weights.sum()), int((weights > 0).sum()), None)
        passes = Passes(ArraySource(np.zeros((given.n_rows, 1), dtype=np.float32)), n_threads=self.n_threads)
        with blas.single():
            outcome, notes = self._combine(
                given, weights, self.n_clusters, seed, passes, Outcome(Reason.CONVERGED, 0, 0.0)
            )
        if self.choice_ is not None:
            notes = (self.choice_.reason, *notes)
        self.estimators_, self.base_columns_, self.trace_ = None, None, ()
        self.mean_ = self.scale_ = None
        algorithm = f"consensus of {given.count} given clusterings, {_name(self.consensus)} consensus"
        manifest = passes.manifest(algorithm, rows=given.n_rows, notes=notes)
        self.manifest_ = replace(manifest, source="labels", columns=given.count)
        self.outcome_ = replace(outcome, seconds=passes.seconds)
        self.outcome_.warn("ClusterEnsemble")
        return self

    def _combine(
        self, given: Clusterings, weights: Floats | None, k: int | None, seed: int, passes: Passes, outcome: Outcome
    ) -> tuple[Outcome, tuple[str, ...]]:
        """The consensus of the clusterings; sets all that follows from it."""
        distinct, counted, inverse = distinct_rows(given, weights)
        rows = LabelRows(distinct, counted, passes)
        if not rows.counted:
            raise DataError("no row with a weight has a label in any clustering")
        self.choice_ = None
        if k is None:
            self.choice_ = choose_from_labels(rows, seed)
            k = self.choice_.n_clusters
        strategy = CONSENSUS[self.consensus] if isinstance(self.consensus, str) else function_consensus(self.consensus)
        found = strategy(rows, min(k, rows.counted), seed)
        agreement = agreement_of(rows, found.labels, found.n_clusters)
        self._warn_of_empty(int(np.count_nonzero(agreement.weights)), k)
        cdf = pair_distribution(rows, seed)
        self.labels_ = np.ascontiguousarray(found.labels[inverse])
        self.item_consensus_ = agreement.items[inverse]
        means = rows.times(np.ascontiguousarray((agreement.sums / np.maximum(agreement.weights, 1e-300)[:, None]).T))
        self.confidence_ = confidence(means, found.labels)[inverse]
        self.n_clusters_, self.n_distinct_ = found.n_clusters, rows.n
        self.cluster_consensus_, self.cluster_weights_ = agreement.clusters, agreement.weights
        self.cluster_sums_ = agreement.sums
        self.consensus_cdf_, self.pac_ = cdf, pac_of(cdf)
        self.inertia_ = found.inertia
        self.base_sizes_, self.base_labels_, self.soft_ = given.sizes, given.values, given.soft
        scoring = found.scoring
        self.table_, self.offset_, self.directions_, self.merged_ = (
            scoring.table,
            scoring.offset,
            scoring.directions,
            scoring.merged,
        )
        self.known_rows_, self.known_labels_ = (distinct.values, found.labels) if found.known else (None, None)
        if found.reason is Reason.INTERRUPTED or outcome.converged:
            outcome = replace(outcome, reason=found.reason)
        return outcome, found.notes

    def _warn_of_empty(self, found: int, k: int) -> None:
        if found < k:
            warn(
                f"Number of distinct clusters ({found}) found smaller than n_clusters ({k}): the base clusterings tell no more "
                "groups of rows apart. Use more clusters in them (diversity='k-range').",
                FewerClustersWarning,
            )

    # ---------------------------------------------------------------- rows

    def fit_predict(self, X: Any, y: Any = None, sample_weight: Any = None, *, engine: Any = None) -> Labels:
        """Fit, and return the labels."""
        return np.asarray(self.fit(X, sample_weight=sample_weight, engine=engine).labels_)

    def predict(self, X: Any) -> Labels:
        """The clusters of rows: labelled by the base clusterings, then as the rows of the fit with these labels.

        A combination of labels that did not occur in the fit goes to the nearest centre (kmeans, spectral), or to the cluster
        with whose rows it is together most often.
        """
        source = self._opened(X)
        return Passes(source, n_threads=self.n_threads).rows(self._task(source))

    def predict_consensus(self, X: Any) -> Floats:
        """The mean co-association of rows with the rows of each cluster of the fit: rows x clusters."""
        source = self._opened(X)
        return Passes(source, n_threads=self.n_threads).rows(MeanCoassociation(self._task(source), *self._clusters()))

    def predict_confidence(self, X: Any) -> Floats:
        """How clearly each row belongs to its cluster: the share of that cluster in the row's mean co-association with all.

        1 if no base clustering puts it with rows of another cluster, 1 / n_clusters_ if it is everywhere alike.
        """
        source = self._opened(X)
        task = ClusterAndConfidence(self._task(source), *self._clusters())
        return np.asarray(Passes(source, n_threads=self.n_threads).rows(task)["confidence"])

    def row_output(self, source: Source) -> RowOutput:
        """For streamed output: the cluster of each row, and its confidence (see `predict_confidence`)."""
        check_is_fitted(self, "labels_")
        if self.estimators_ is None:  # the rows are those of the fit: there are no others
            known = KnownLabels(self.labels_, self.confidence_)
            return RowOutput(source, ("cluster", "confidence"), ClusterAndConfidence.dtype, known)
        seen = self._compared(source)
        task = ClusterAndConfidence(self._task(seen), *self._clusters())
        return RowOutput(seen, ("cluster", "confidence"), task.dtype, task)

    @property
    def coassociation_(self) -> Any:
        """M of the rows of the fit, as an operator."""
        from foldwise.models.ensemble.consensus_matrix import Coassociation

        check_is_fitted(self, "labels_")
        return Coassociation(self.clusterings)

    @property
    def clusterings(self) -> Clusterings:
        """The base clusterings of the rows of the fit."""
        return Clusterings(self.base_labels_, tuple(self.base_sizes_), bool(self.soft_))

    def as_compared(self, source: Source) -> Source:
        """The rows as the base clusterings see them: standardised with scale=True."""
        return standardised(source, getattr(self, "mean_", None), getattr(self, "scale_", None))

    def _clusters(self) -> tuple[Floats, Floats]:
        return self.cluster_sums_, self.cluster_weights_

    def _opened(self, X: Any) -> Source:
        check_is_fitted(self, "labels_")
        if self.estimators_ is None:
            raise ParameterError(
                "this ensemble was fitted to labels, so it has no base clusterings for new rows; labels_ has those of the fit."
            )
        return self._compared(open_for_use(self, X))

    def _compared(self, source: Source) -> Source:
        assert self.estimators_ is not None
        kinds = [getattr(one, "cluster_centers_", np.empty(0, np.float32)).dtype for one in self.estimators_]
        return self.as_compared(widened(source, np.result_type(source.dtype, *kinds)))

    def _task(self, source: Source) -> ConsensusLabels:
        assert self.estimators_ is not None
        assert self.base_columns_ is not None
        sizes = tuple(self.base_sizes_)
        scoring = Scoring(self.table_, self.offset_, self.directions_, self.merged_)
        base = base_labels(self.estimators_, self.base_columns_, sizes, source)
        return ConsensusLabels(base, scoring, sizes, self.known_rows_, self.known_labels_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def _name(consensus: Any) -> str:
    return consensus if isinstance(consensus, str) else getattr(consensus, "__name__", type(consensus).__name__)


def _refuse_shares(weight: float, rows: int, where: str | None) -> None:
    """Weights are repetition: of a single row there are no pairs that could be together."""
    if rows > 1 and weight <= 1.001:
        raise DataError(
            f"the weights of {rows} rows add up to {weight:.4g}, as if they were one row",
            where=where,
            advice="Weights mean repetition: scale them to add up to the number of rows",
        )
    warn_of_shares(weight, rows, "shares of pairs, and the number of clusters, are those of so few rows")
