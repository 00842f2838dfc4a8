"""What `fw.explore` found, as plain records: the directions, the groups, how sure they are, and the rows to show."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from foldwise.data.block import Floats
from foldwise.errors import DataError
from foldwise.models.ensemble import ClusterEnsemble
from foldwise.models.exploration import ExplorationModel
from foldwise.models.kmeans import KMeans
from foldwise.models.mixture import GaussianMixture
from foldwise.models.pca import PCA
from foldwise.reportable import Reportable
from foldwise.selection.clusters.result import ClusterChoice
from foldwise.selection.components import ComponentChoice
from foldwise.selection.mixture_profile import MixtureProfile
from foldwise.selection.profile import Profile
from foldwise.selection.silhouette_result import Silhouette
from foldwise.selection.stability_result import Stability


@dataclass(frozen=True)
class ColumnSummary:
    """One column of the table as given: what it is, what is done with it and why, and what it holds.

    `role` is used, describing, label, identifier, weight or left out. Numbers have `low`, `mean`, `high`, `deviation` and a
    histogram (`counts` between `edges`); categories have `levels`, the most frequent first, with their counts.
    """

    name: str
    kind: str
    role: str
    why: str
    missing: int
    distinct: int | None = None
    low: float | None = None
    mean: float | None = None
    high: float | None = None
    deviation: float | None = None
    edges: Floats | None = None
    counts: NDArray[np.int64] | None = None
    levels: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True)
class Overview:
    """What the table holds: its columns, the correlations of those that are used, and notes on how it was understood.

    Figures are of `judged_rows` rows, all of them unless `rows` is larger. `correlation` is over the columns
    `correlated` (places among the used columns; with very many columns, those that vary most).
    """

    where: str
    rows: int
    judged_rows: int
    columns: tuple[ColumnSummary, ...]
    correlated: tuple[int, ...] = ()
    correlation: Floats | None = None
    lines: tuple[str, ...] = ()  # the recipe in words, as every command prints it
    notes: tuple[str, ...] = ()
    repeated: int = 0  # rows that are equal to an earlier one in all columns that are used


@dataclass(frozen=True)
class Comparison:
    """Whether k-means or a Gaussian mixture with as many clusters describes rows better that neither has seen.

    `kmeans` and `mixture` are mean log-densities of held-out rows (k-means as round clusters of equal size), `gain` is
    mixture minus k-means with its standard `error`; `agreement` is the adjusted Rand index of both labelings; `chosen` is
    "k-means" or "mixture", and `reason` says why in a sentence. `kmeans_stability` and `mixture_stability` are the mean
    corrected stabilities of their clusters, where these had to decide.
    """

    kmeans: float
    mixture: float
    gain: float
    error: float
    rows: int
    covariance_type: str
    agreement: float
    chosen: str
    reason: str
    kmeans_stability: float = float("nan")
    mixture_stability: float = float("nan")


@dataclass(frozen=True)
class Trait:
    """A column in which a cluster differs: means of cluster and table in units of the data; their difference in deviations."""

    column: str
    mean: float
    overall: float
    difference: float


@dataclass(frozen=True)
class Overrepresented:
    """A level of a category that a cluster has more often than the table: its shares in the cluster and overall."""

    column: str
    level: str
    share: float
    overall: float


@dataclass(frozen=True)
class Condition:
    """One test of a rule: a column above or below a number (`sign` is ">" or "<="), or with a level (`sign` is "=")."""

    column: str
    sign: str
    value: float | str

    def __str__(self) -> str:
        words = f"{self.value:g}" if isinstance(self.value, float) else str(self.value)
        return f"{self.column} {self.sign} {words}"


@dataclass(frozen=True)
class Rule:
    """A short rule that tells the rows of a cluster from the others; all its conditions must hold.

    `precision` is the share of the rows it picks that belong to the cluster, `recall` the share of the cluster's rows it picks.
    """

    conditions: tuple[Condition, ...]
    precision: float
    recall: float

    def __str__(self) -> str:
        return " and ".join(map(str, self.conditions))


@dataclass(frozen=True)
class ClusterSummary:
    """One cluster in words and figures; `exemplars` are places of its most typical rows among the rows of the source.

    `verdict` is the stability's ("very stable", "stable", "doubtful", "could be noise", "dissolves"), "" if it was not
    assessed; `confidence` and `silhouette` are means over its rows, NaN if unknown.
    """

    number: int
    name: str
    rows: int
    share: float
    traits: tuple[Trait, ...]
    categories: tuple[Overrepresented, ...]
    rule: Rule | None
    exemplars: tuple[int, ...]
    confidence: float = float("nan")
    silhouette: float = float("nan")
    verdict: str = ""


@dataclass(frozen=True)
class Outliers:
    """Rows far out along the directions kept (Hotelling's T2), or far away from them (the residual), beyond limits at `level`.

    `rows` are places among the rows of the source, the most extreme first; `t2` and `residual` are their figures, and
    `t2_limit` and `residual_limit` what few rows of one normal cloud exceed (`expected` of all rows would exceed each by
    chance). `columns` has, for each listed row, the column that sets it apart most. `t2_count` and `residual_count` count all
    rows beyond the limits, `count` those beyond either.
    """

    rows: NDArray[np.int64]
    t2: Floats
    residual: Floats
    columns: tuple[str, ...]
    components: int
    t2_limit: float
    residual_limit: float  # NaN if all directions are kept
    t2_count: int
    residual_count: int
    level: float
    expected: float
    count: int = 0


@dataclass(frozen=True)
class Points:
    """Rows to draw and list: all, or a random sample together with all exemplars and listed outliers; in rising order.

    `rows` are places among the rows of the source. `scores` are those of the components, `values` the cells of `columns` in
    the units of the data (NaN if missing), `codes` those of `categories` (-1 if missing). `id_names` and `ids` have for each
    row its number in the data as given (from 0; the first), and the identifiers and labels of a table, as text.
    """

    rows: NDArray[np.int64]
    total: int
    scores: Floats
    columns: tuple[str, ...]
    values: Floats
    labels: NDArray[np.int32]
    confidence: Floats
    t2: Floats
    residual: Floats
    categories: tuple[tuple[str, tuple[str, ...]], ...] = ()
    codes: NDArray[np.int32] | None = None
    id_names: tuple[str, ...] = ("row",)
    ids: tuple[tuple[str, ...], ...] = ()
    blank: int = 0  # rows left out, since nothing is known of them

    @property
    def sampled(self) -> bool:
        """Whether there are more rows of which something is known."""
        return len(self.rows) + self.blank < self.total


@dataclass(frozen=True, repr=False)
class Exploration(Reportable):
    """Everything that `fw.explore` found. What was not reached, because it was stopped, is None and named in `unfinished`.

    `clusters` is the model that was chosen, `kmeans` or `mixture`; None if there is only one group (`number.n_clusters`
    is 1). `labels` has the cluster of every row (-1: no cell observed), `confidence` how often it keeps it in fits to other
    rows (NaN if unknown). Steps that take long used `sampled_rows` rows at random; None if all.
    """

    overview: Overview
    names: tuple[str, ...]  # of the columns that are used
    scale: bool
    metric: str
    scale_reason: str
    sampled_rows: int | None
    pca: PCA
    components: ComponentChoice | None
    number: ClusterChoice | None = None
    kmeans: KMeans | None = None
    mixture: GaussianMixture | None = None
    comparison: Comparison | None = None
    clusters: KMeans | GaussianMixture | None = None
    profile: Profile | MixtureProfile | None = None
    labels: NDArray[np.int32] | None = None
    confidence: Floats | None = None
    silhouette: Silhouette | None = None  # of a sample of the rows, with the values of each
    silhouette_labels: NDArray[np.int32] | None = None  # clusters of these rows
    ensemble: ClusterEnsemble | None = None
    ensemble_agreement: float = float("nan")  # adjusted Rand index of the consensus and `labels`
    stability: Stability | None = None
    summaries: tuple[ClusterSummary, ...] = ()
    categories: tuple[Any, ...] = ()  # CategoryCounts, labels first
    outliers: Outliers | None = None
    distances: NDArray[np.float32] | None = None  # T2 and residual of every row
    points: Points | None = None
    unfinished: tuple[str, ...] = ()
    seconds: Mapping[str, float] = field(default_factory=dict)  # of each step
    settings: Mapping[str, Any] = field(default_factory=dict)  # parameters of the call
    source: Any = None  # the rows, as they were opened
    command: str = ""  # what repeats it, on the command line or in Python
    used_rows: Mapping[str, int] = field(
        default_factory=dict
    )  # by votes, comparison, silhouette, stability and consensus
    notes: tuple[str, ...] = ()  # what was left out, and why

    @property
    def model(self) -> ExplorationModel:
        """What is kept for new rows: `predict` gives clusters, `transform` scores; `fw.save` keeps it in a file."""
        pca = self.pca
        made = ExplorationModel(missing=pca.missing, n_threads=pca.n_threads)
        made.pca_, made.cluster_model_ = pca, self.clusters
        made.n_components_ = min(max(self.n_components or 0, 2), pca.n_components_)
        made.t2_components_ = made.n_components_ if self.outliers is None else self.outliers.components
        known = ("n_features_in_", "feature_names_in_", "recipe_", "indicators_", "fill_values_", "manifest_")
        for name in (*known, "image_shape_"):
            if hasattr(pca, name):
                setattr(made, name, getattr(pca, name))
        return made

    def frame(self) -> Any:
        """A line for each row, as a pandas DataFrame: cluster, confidence, T2, residual and scores."""
        import pandas as pd

        if self.labels is None or self.source is None:
            raise DataError("the groups were not worked out", advice="Run fw.explore again without stopping it")
        model = self.model
        scores = model.transform(self.source)
        columns: dict[str, Any] = {"cluster": self.labels}
        if self.confidence is not None:
            columns["confidence"] = self.confidence
        if self.distances is not None:
            columns |= {"t2": self.distances[:, 0], "residual": self.distances[:, 1]}
        names = self.pca.get_feature_names_out()[: model.n_components_]
        return pd.DataFrame(columns | {str(name): scores[:, j] for j, name in enumerate(names)})

    @property
    def sentences(self) -> tuple[str, ...]:
        """What was found, in five sentences."""
        import foldwise

        return tuple(foldwise.report(self).lead)

    def __repr__(self) -> str:
        import foldwise

        return str(foldwise.report(self))

    @property
    def n_components(self) -> int | None:
        """How many directions stand out from noise; None if no rule has an answer."""
        return None if self.components is None else self.components.agreed

    @property
    def n_clusters(self) -> int | None:
        """How many groups there are; 1 if none were found, None if that was not reached."""
        if self.settings.get("n_clusters") is not None:
            return int(self.settings["n_clusters"])
        return None if self.number is None else self.number.n_clusters
