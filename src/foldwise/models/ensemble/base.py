"""The base clusterings of an ensemble: how each differs from the others, how it is found, and how it labels rows to come."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import has_fit_parameter

from foldwise.data.block import Block, Floats
from foldwise.data.mapped import TakeColumns, only_columns
from foldwise.data.source import Source
from foldwise.errors import DataError, FoldwiseWarning, ParameterError
from foldwise.fold.iterate import Figures, State
from foldwise.kernels.targets import Labels
from foldwise.models.hashing import scrambled
from foldwise.models.kmeans.bisecting import only_rows
from foldwise.models.kmeans.centre_model import CentreModel
from foldwise.models.kmeans.estimator import KMeans
from foldwise.models.seeded import seeded
from foldwise.models.session import Session

DIVERSITIES = ("restarts", "k-range", "subsample", "features")
_SUBSAMPLE = 0.8  # of the rows
_FEATURES = 0.5  # of the columns
_MOST_BASE_CLUSTERS = 50


@dataclass(frozen=True)
class Plan:
    """One base clustering: its number of clusters, its seed, and the columns (None: all) and share of rows it sees."""

    k: int
    seed: int
    columns: NDArray[np.intp] | None = None
    share: float = 1.0


def plan_for(diversity: str, number: int, k: int, seed: int, *, d: int, weight: float, most: int) -> Plan:
    """What base clustering `number` is to be; `weight` is that of all rows, `most` the largest number of clusters."""
    rng = np.random.default_rng([seed, 13, number])
    own = int(rng.integers(2**31 - 1))
    if diversity == "k-range":
        low, high = base_range(k, weight)
        k = int(rng.integers(low, high + 1))
    columns = None
    if diversity == "features" and d > 1:
        columns = np.sort(rng.choice(d, max(int(np.ceil(_FEATURES * d)), 1), replace=False))
    return Plan(max(min(k, most), 1), own, columns, _SUBSAMPLE if diversity == "subsample" else 1.0)


def base_range(k: int, weight: float) -> tuple[int, int]:
    """The numbers of base clusters for diversity="k-range": more than k, so that clusters of any shape can be put together.

    With few rows no more than a third of them, since clusters of single rows say nothing.

    >>> base_range(3, 150.0), base_range(3, 1e6), base_range(50, 5000.0), base_range(2, 4.0)
    ((6, 12), (25, 50), (100, 150), (2, 2))
    """
    root, most = float(np.sqrt(weight)), max(k, int(weight / 3))
    low = int(max(2 * k, min(root / 2, _MOST_BASE_CLUSTERS / 2)))
    return min(low, most), min(int(max(3 * k, min(root, _MOST_BASE_CLUSTERS))), most)


def sampled(numbers: NDArray[Any], share: float, seed: int) -> NDArray[np.bool_]:
    """Which rows are in a sample, by their numbers and the seed alone."""
    mixed = scrambled(scrambled(numbers.astype(np.uint64) + np.uint64(0x9E3779B97F4A7C15)) ^ np.uint64(seed * 2 + 1))
    return np.asarray(mixed < np.uint64(int(share * 2.0**64)))


class BaseFits:
    """Finds the base clusterings, one in each step; the state holds the labels and centres found so far."""

    def __init__(self, model: Any, fit: Session, k: int, *, n: int, counted: int, weight: float) -> None:
        self.model, self.fit, self.k, self.n, self.counted, self.weight = model, fit, k, n, counted, weight
        given = model.diversity
        self.listed: Sequence[Any] | None = None if isinstance(given, str) else list(given)
        self.diversity = given if self.listed is None else "restarts"
        self.count = model.n_base if self.listed is None else len(self.listed)
        self.fitted: dict[int, Any] = {}  # estimators other than our own k-means
        if self.own is False and model.checkpoint is not None:
            raise ParameterError(
                "checkpoint: only ensembles of k-means (base=None) can be resumed, since other estimators cannot be kept in it."
            )

    @property
    def own(self) -> bool:
        """Whether all are k-means of our own, which is known by its centres."""
        return self.model.base is None and self.listed is None

    def plan(self, number: int) -> Plan:
        """What a base clustering is to be."""
        k = self.k
        return plan_for(
            self.diversity, number, k, self.fit.seed, d=self.fit.source.n_columns, weight=self.weight, most=self.counted
        )

    def start(self) -> State:
        """The first base clustering: without one there is nothing to keep."""
        return self.step({"done": np.array(0)})[0]

    def step(self, state: State) -> tuple[State, Figures]:
        """One more base clustering."""
        number = int(state["done"])
        plan = self.plan(number)
        made, labels = self._find(number, plan)
        new: State = {**state, "done": np.array(number + 1), f"labels.{number:04}": labels}
        if self.own:
            new[f"centres.{number:04}"] = made.cluster_centers_
        else:
            self.fitted[number] = made
        clusters = int(labels.max(initial=-1)) + 1
        return new, {
            "base": float(number),
            "clusters": float(clusters),
            "inertia": float(getattr(made, "inertia_", np.nan)),
        }

    def done(self, state: State) -> bool:
        """Whether all are there."""
        return int(state["done"]) >= self.count

    def results(
        self, state: State
    ) -> tuple[NDArray[np.int32], tuple[int, ...], list[Any], list[NDArray[np.intp] | None]]:
        """Labels (n x T), numbers of clusters, estimators that label rows to come, and the columns that each sees."""
        numbers = range(int(state["done"]))
        labels = [state[f"labels.{number:04}"] for number in numbers]
        columns = [self.plan(number).columns for number in numbers]
        if not self.own:
            sizes = tuple(max(int(one.max(initial=-1)) + 1, 1) for one in labels)
            return np.column_stack(labels), sizes, [self.fitted[number] for number in numbers], columns
        models = [self._known(self.plan(number), state[f"centres.{number:04}"]) for number in numbers]
        return np.column_stack(labels), tuple(len(one.cluster_centers_) for one in models), models, columns

    # ------------------------------------------------------------ one of them

    def _find(self, number: int, plan: Plan) -> tuple[Any, Labels]:
        whole = only_columns(self.fit.source, plan.columns)
        made = self._estimator(number, plan)
        with warnings.catch_warnings(), self._some_rows(whole, plan) as part:
            warnings.simplefilter("ignore", FoldwiseWarning)  # fewer clusters, or not quite converged: one vote of many
            self._fit(made, part)
            if getattr(getattr(made, "outcome_", None), "reason", None) == "interrupted":
                raise KeyboardInterrupt  # half a base clustering would not be found again
            everything = part is whole and hasattr(made, "labels_")
            labels = made.labels_ if everything else self._predict(made, whole)
        if hasattr(made, "manifest_"):
            self.fit.passes.counter.passes += made.manifest_.passes
        labels = np.asarray(labels)
        if labels.shape != (self.n,) or labels.dtype.kind not in "iu":
            raise DataError(
                f"{type(made).__name__} gave labels {labels.dtype} of shape {labels.shape} for {self.n} rows"
            )
        return made, np.maximum(labels, -1).astype(np.int32)

    def _estimator(self, number: int, plan: Plan) -> Any:
        if self.own:
            return self._kmeans(plan)
        made = seeded(self.listed[number] if self.listed is not None else self.model.base, plan.seed)
        if self.listed is None:
            known = made.get_params(deep=True)
            own = {"random_state": plan.seed, "n_clusters": plan.k, "n_components": plan.k}
            made.set_params(**{name: value for name, value in own.items() if name in known})
        return made

    def _kmeans(self, plan: Plan) -> KMeans:
        missing = "model" if self.fit.missing is not None or self.model.missing == "model" else "error"
        return KMeans(plan.k, random_state=plan.seed, search="none", missing=missing, n_threads=self.model.n_threads)

    def _known(self, plan: Plan, centres: NDArray[Any]) -> KMeans:
        """K-means with these centres: all that rows to come are compared with."""
        made = self._kmeans(plan)
        made.cluster_centers_, made.n_features_in_, made.mean_, made.scale_ = centres, centres.shape[1], None, None
        return made

    @contextmanager
    def _some_rows(self, source: Source, plan: Plan) -> Iterator[Source]:
        if plan.share >= 1.0:
            yield source
            return
        which = np.flatnonzero(sampled(np.arange(self.n), plan.share, plan.seed))
        if len(which) < min(plan.k, self.counted) or (self.counted < self.n and self.counted < 2 * plan.k):
            yield source  # so few rows that a sample would not do
            return
        with only_rows(source, which, self.n) as part:
            yield part

    def _fit(self, made: Any, part: Source) -> None:
        if type(made).__module__.startswith("foldwise."):
            made.fit(part)
            return
        rows, weights = _in_memory(part)
        if weights is None:
            made.fit(rows)
        elif has_fit_parameter(made, "sample_weight"):
            made.fit(rows, sample_weight=weights)
        else:
            raise ParameterError(
                f"{type(made).__name__} takes no weights: leave sample_weight out, or use another base."
            )

    def _predict(self, made: Any, whole: Source) -> Labels:
        if not hasattr(made, "predict"):
            raise ParameterError(
                f"{type(made).__name__} has no predict, so rows outside its sample have no label: use diversity='restarts', "
                "'k-range' or 'features' with it."
            )
        if type(made).__module__.startswith("foldwise."):
            return np.asarray(made.predict(whole))
        return np.asarray(made.predict(_in_memory(whole)[0]))


def _in_memory(source: Source) -> tuple[Any, Floats | None]:
    import scipy.sparse as sp

    blocks = [piece.load() for piece in source.pieces()]
    rows = (
        sp.vstack([block.rows for block in blocks])
        if source.sparse
        else np.concatenate([block.dense() for block in blocks])
    )
    weights = None if blocks[0].weights is None else np.concatenate([block.weights for block in blocks])
    return rows, weights


# ---------------------------------------------------------------- rows to come


@dataclass(frozen=True)
class ByPredict:
    """The labels of a block by an estimator's `predict`."""

    estimator: Any

    def __call__(self, block: Block) -> Labels:
        """One label for each row."""
        return np.asarray(self.estimator.predict(block.rows))


@dataclass(frozen=True)
class BaseLabels:
    """The labels of a block's rows in all base clusterings: rows x T."""

    labellers: tuple[Any, ...]
    columns: tuple[NDArray[np.intp] | None, ...]
    sizes: tuple[int, ...]

    def __call__(self, block: Block) -> NDArray[np.int32]:
        """One row of labels for each row."""
        found = np.empty((block.n_rows, len(self.labellers)), dtype=np.int32)
        for t, (labeller, columns) in enumerate(zip(self.labellers, self.columns, strict=True)):
            labels = labeller(block if columns is None else TakeColumns(columns)(block))
            found[:, t] = np.where(labels < self.sizes[t], np.maximum(labels, -1), -1)
        return found


def base_labels(
    models: Sequence[Any], columns: Sequence[NDArray[np.intp] | None], sizes: tuple[int, ...], source: Source
) -> BaseLabels:
    """A task that labels blocks of this source by all base clusterings."""
    labellers = []
    for model, chosen in zip(models, columns, strict=True):
        if isinstance(model, CentreModel) and getattr(model, "scale_", None) is None and model.metric == "euclidean":
            seen = only_columns(source, chosen)
            labellers.append(model._labeller(model._targets(seen)))
        elif hasattr(model, "predict"):
            labellers.append(ByPredict(model))
        else:
            raise ParameterError(
                f"{type(model).__name__} has no predict, so this ensemble cannot label new rows; labels_ has those of the fit."
            )
    return BaseLabels(tuple(labellers), tuple(columns), sizes)
