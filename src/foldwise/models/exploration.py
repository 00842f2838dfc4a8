"""What an exploration keeps for new rows: the components, and the clusters if there are any."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from foldwise.data.block import Block
from foldwise.data.source import Source
from foldwise.errors import ParameterError
from foldwise.fold.passes import Passes
from foldwise.models.base import KnownParameters, RowOutput, open_for_use, with_missing
from foldwise.models.fitted_rows import ShownModel
from foldwise.models.parameters import Parameter, constraints, shared

PARAMETERS: dict[str, Parameter] = shared("missing", "n_threads")


class ExplorationModel(ShownModel, KnownParameters, BaseEstimator):  # type: ignore[misc]
    """PCA and a clustering of the same columns, as `fw.explore` found them (`Exploration.model`), to be applied to new rows.

    `pca_` is the PCA, `cluster_model_` the `fw.KMeans` or `fw.GaussianMixture` (None if all rows are one group), and
    `n_components_` how many components stand out from noise, at least two if there are as many.

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
        """The cluster of each row; 0 for all if there is only one group."""
        check_is_fitted(self, "pca_")
        if self.cluster_model_ is None:
            source = open_for_use(self, X)
            return np.asarray(Passes(source, n_threads=self.n_threads).rows(_zeros))
        return np.asarray(self.cluster_model_.predict(X))

    def transform(self, X: Any) -> NDArray[Any]:
        """The scores on the leading components."""
        check_is_fitted(self, "pca_")
        return np.asarray(self.pca_.transform(X))[:, : self.n_components_]

    def fit(self, X: Any = None, y: Any = None) -> Any:
        """Not to be called: `fw.explore` makes these models."""
        raise ParameterError("an ExplorationModel is made by fw.explore(X); call that with the new rows instead.")

    def row_output(self, source: Source) -> RowOutput:
        """For streamed output: the cluster of each row, and its scores."""
        check_is_fitted(self, "pca_")
        scores = self.pca_.row_output(source)
        kept = scores.names[: self.n_components_]
        dtype = np.dtype([("cluster", np.int32), *((name, scores.dtype) for name in kept)])
        told = None if self.cluster_model_ is None else self.cluster_model_.row_output(with_missing(self, source))
        changes = () if told is None else changes_between(told.source, source)
        task = _ClusterAndScores(scores.of, None if told is None else told.of, changes, dtype)
        return RowOutput(source, ("cluster", *kept), dtype, task)


def changes_between(seen: Any, source: Any) -> tuple[Callable[[Block], Block], ...]:
    """What is done to the blocks of a source before a model sees them, in order."""
    changes = []
    while seen is not source:
        if getattr(seen, "change", None) is not None:
            changes.append(seen.change)
        seen = seen.source
    return tuple(reversed(changes))


@dataclass(frozen=True)
class _ClusterAndScores:
    """Records of the cluster and of the leading scores."""

    scores: Callable[[Block], NDArray[Any]]
    clusters: Callable[[Block], NDArray[Any]] | None
    changes: tuple[Callable[[Block], Block], ...]
    dtype: np.dtype[Any]

    def __call__(self, block: Block) -> NDArray[Any]:
        """One record per row."""
        out, names = np.zeros(block.n_rows, self.dtype), self.dtype.names or ()
        found = self.scores(block)
        for j, name in enumerate(names[1:]):
            out[name] = found[:, j]
        if self.clusters is not None:
            for change in self.changes:
                block = change(block)
            out["cluster"] = self.clusters(block)["cluster"]
        return out


def _zeros(block: Block) -> NDArray[np.int32]:
    return np.zeros(block.n_rows, dtype=np.int32)
