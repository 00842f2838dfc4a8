"""What an exploration keeps for new rows: the components, and the clusters if there are any."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from foldwise.data.block import Block, Floats
from foldwise.data.source import Source
from foldwise.errors import ParameterError
from foldwise.fold.passes import Passes
from foldwise.models.base import KnownParameters, RowOutput, open_for_use, with_missing
from foldwise.models.fitted_rows import ShownModel
from foldwise.models.parameters import Parameter, constraints, shared
from foldwise.models.pca.normal_model import Completing, ObservedResiduals
from foldwise.models.pca.projection import Projection

PARAMETERS: dict[str, Parameter] = shared("missing", "n_threads")


class ExplorationModel(ShownModel, KnownParameters, BaseEstimator):  # type: ignore[misc]
    """PCA and a clustering of the same columns, as `fw.explore` found them (`Exploration.model`), to be applied to new rows.

    `pca_` is the PCA, `cluster_model_` the `fw.KMeans` or `fw.GaussianMixture` (None if all rows are one group),
    `n_components_` how many components stand out from noise, at least two if there are as many, and `t2_components_` those
    over which T2 is computed: how far a row is from the others along them; the residual is how far it is away from them.

    >>> import numpy as np
    >>> import foldwise as fw
    >>> rng = np.random.default_rng(0)
    >>> model = fw.explore(np.concatenate([rng.normal(size=(60, 3)) + 9 * i for i in range(2)])).model
    >>> model.predict([[0.0, 0.0, 0.0], [9.0, 9.0, 9.0]]), model.transform([[4.0, 5.0, 4.0]]).shape
    (array([0, 1], dtype=int32), (1, 2))
    """

    PARAMETERS: ClassVar[dict[str, Parameter]] = PARAMETERS
    _parameter_constraints: ClassVar[dict[str, Any]] = constraints(PARAMETERS)

    def __init__(self, *, missing: str = "error", n_threads: int | None = None) -> None:
        self.missing = missing
        self.n_threads = n_threads

    def predict(self, X: Any) -> NDArray[np.int32]:
        """The cluster of each row, -1 if nothing is observed of it; 0 for all if there is only one group."""
        check_is_fitted(self, "pca_")
        source = open_for_use(self, X)
        passes = Passes(source, n_threads=self.n_threads)
        if self.cluster_model_ is None:
            return np.asarray(passes.rows(_zeros))
        return np.asarray(np.where(passes.rows(is_blank), -1, self.cluster_model_.predict(source)), dtype=np.int32)

    def transform(self, X: Any) -> NDArray[Any]:
        """The scores on the leading components."""
        check_is_fitted(self, "pca_")
        return np.asarray(self.pca_.transform(X))[:, : self.n_components_]

    def fit(self, X: Any = None, y: Any = None) -> Any:
        """Not to be called: `fw.explore` makes these models."""
        raise ParameterError("an ExplorationModel is made by fw.explore(X); call that with the new rows instead.")

    def distances(self, X: Any) -> NDArray[np.float32]:
        """For each row T2 and the residual, which is the squared distance from the plane of the components."""
        check_is_fitted(self, "pca_")
        source = open_for_use(self, X)
        return np.asarray(Passes(source, n_threads=self.n_threads).rows(distances_of(self.pca_, self.t2_components_)))

    def row_output(self, source: Source) -> RowOutput:
        """For streamed output: the cluster of each row if there are any, T2 and residual, and the scores."""
        check_is_fitted(self, "pca_")
        scores = self.pca_.row_output(source)
        kept = scores.names[: self.n_components_]
        told = None if self.cluster_model_ is None else self.cluster_model_.row_output(with_missing(self, source))
        names = (*(("cluster",) if told is not None else ()), "t2", "residual", *kept)
        kinds = {"cluster": np.dtype(np.int32), "t2": np.dtype(np.float32), "residual": np.dtype(np.float32)}
        dtype = np.dtype([(name, kinds.get(name, scores.dtype)) for name in names])
        changes = () if told is None else changes_between(told.source, source)
        far = distances_of(self.pca_, self.t2_components_)
        task = _Records(scores.of, far, None if told is None else told.of, changes, dtype, kept)
        return RowOutput(source, names, dtype, task)


@dataclass(frozen=True)
class _Distances:
    """T2 and the residual of each row of a block, about the leading directions."""

    scores: Any
    residuals: Any
    variances: Floats

    def __call__(self, block: Block) -> NDArray[np.float32]:
        """Two numbers for each row; NaN where nothing is observed."""
        scores = np.asarray(self.scores(block), dtype=np.float64)
        t2 = (scores**2 / np.where(self.variances > 0, self.variances, np.inf)).sum(axis=1)
        with np.errstate(over="ignore"):
            found = np.column_stack([t2, self.residuals(block)]).astype(np.float32)
        found[is_blank(block)] = np.nan
        return found


def distances_of(pca: Any, components: int) -> Any:
    """The task that gives T2 over that many components, and the residual, of the rows of a block."""
    projection = Projection(pca.components_[:components], pca.mean_, pca.scale_)
    scores, residuals = pca._completing(projection.scores), projection.residual_norms
    if isinstance(scores, Completing):
        residuals = ObservedResiduals(scores.normal, projection)
    return _Distances(scores, residuals, np.asarray(pca.explained_variance_[:components], dtype=np.float64))


def is_blank(block: Block) -> NDArray[np.bool_]:
    """The rows of which nothing is observed."""
    if block.sparse:
        return np.zeros(block.n_rows, dtype=bool)
    return np.asarray(np.isnan(block.dense()).all(axis=1))


def changes_between(seen: Any, source: Any) -> tuple[Callable[[Block], Block], ...]:
    """What is done to the blocks of a source before a model sees them, in order."""
    changes = []
    while seen is not source:
        if getattr(seen, "change", None) is not None:
            changes.append(seen.change)
        seen = seen.source
    return tuple(reversed(changes))


@dataclass(frozen=True)
class _Records:
    """Records of the cluster, the distances and the leading scores."""

    scores: Callable[[Block], NDArray[Any]]
    far: Callable[[Block], NDArray[Any]]
    clusters: Callable[[Block], NDArray[Any]] | None
    changes: tuple[Callable[[Block], Block], ...]
    dtype: np.dtype[Any]
    kept: tuple[str, ...]

    def __call__(self, block: Block) -> NDArray[Any]:
        """One record per row."""
        out, found, far = np.zeros(block.n_rows, self.dtype), self.scores(block), self.far(block)
        for j, name in enumerate(self.kept):
            out[name] = found[:, j]
        out["t2"], out["residual"] = far[:, 0], far[:, 1]
        if self.clusters is not None:
            blank = is_blank(block)
            for change in self.changes:
                block = change(block)
            out["cluster"] = np.where(blank, -1, self.clusters(block)["cluster"])
        return out


def _zeros(block: Block) -> NDArray[np.int32]:
    return np.zeros(block.n_rows, dtype=np.int32)
