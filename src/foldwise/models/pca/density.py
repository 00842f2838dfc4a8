"""PCA as a probability model: its covariance, the density of rows, and what it expects of missing cells."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from foldwise.data.block import Floats
from foldwise.fold import blas
from foldwise.fold.passes import Passes
from foldwise.models.base import open_for_use
from foldwise.models.pca import ppca
from foldwise.models.pca.normal_model import Completing, NormalModel, ObservedDensities, RefuseMissing
from foldwise.models.pca.observed import ObservedFit

_MOST_TO_FILL = 10_000  # columns: filling takes a matrix of columns by columns


class DensityOutputs:
    """Mixin of PCA: the directions with their variances, the same noise in all others, are a normal distribution."""

    components_: NDArray[Any]
    explained_variance_: Floats
    noise_variance_: float
    mean_: Floats
    scale_: Floats | None
    fill_scale_: Floats
    fill_precision_: Floats
    shrinkage_: float
    held_out_error_: float
    missing: str
    n_threads: int | None

    def get_covariance(self) -> Floats:
        """The covariance of the probabilistic model (Tipping and Bishop 1999), in the units of the data."""
        with blas.single():
            return ppca.covariance(*self._model())

    def get_precision(self) -> Floats:
        """The inverse of `get_covariance()`."""
        floor = float(getattr(self, "variance_floor_", 0.0))  # models saved by earlier versions have none
        with blas.single():
            return ppca.precision(*self._model(), floor)

    def _model(self) -> tuple[Floats, Floats, float, Floats | None]:
        check_is_fitted(self)
        directions = np.asarray(self.components_, dtype=np.float64)
        return directions, self.explained_variance_, self.noise_variance_, self.scale_

    def score_samples(self, X: Any) -> Floats:
        """The log-likelihood of each row under the probabilistic model; of its observed cells, if missing="model"."""
        precision = self.get_precision()
        with blas.single():
            constant = ppca.log_constant(precision)
        task = partial(ppca.log_density, centre=self.mean_, precision=precision, constant=constant)
        if self.missing != "model":
            return self._rows_as_they_are(X, task)
        normal = NormalModel(self.mean_, np.ones(len(self.mean_)), precision)
        return self._rows_as_they_are(X, ObservedDensities(normal, task))

    def score(self, X: Any, y: Any = None) -> float:
        """The mean log-likelihood of the rows."""
        return float(np.mean(self.score_samples(X)))

    # ---------------------------------------------------------------- missing cells

    def _remember_normal(self, observed: ObservedFit | None) -> None:
        """Keep the normal distribution of a fit with missing cells; forget that of an earlier one."""
        for name in ("fill_scale_", "fill_precision_", "shrinkage_", "held_out_error_"):
            self.__dict__.pop(name, None)
        if observed is not None:
            self.fill_scale_, self.fill_precision_ = observed.normal.scale, observed.normal.precision
            self.shrinkage_, self.held_out_error_ = observed.strength, observed.error

    def _normal(self) -> NormalModel:
        """The normal distribution that missing cells are filled by: of the fit, or the probabilistic PCA's if it had none."""
        check_is_fitted(self)
        if "fill_precision_" in self.__dict__:
            return NormalModel(self.mean_, self.fill_scale_, self.fill_precision_)
        with blas.single():
            return ppca.normal(*self._model()[:3], self.mean_, self.scale_)

    def _completing(self, task: Any) -> Any:
        """The task on rows whose missing cells are filled, if the model is to fill any."""
        if self.missing != "model":
            return task
        if "fill_precision_" not in self.__dict__ and len(self.mean_) > _MOST_TO_FILL:
            return RefuseMissing(task)
        return Completing(self._normal(), task)

    def _rows_as_they_are(self, X: Any, task: Any) -> NDArray[Any]:
        return Passes(open_for_use(self, X), n_threads=self.n_threads).rows(task)

    def _impute_block(self, values: NDArray[Any]) -> tuple[NDArray[Any], Floats]:
        """Rows completed, and the standard deviation of each filled cell; see `models/impute.py`."""
        return self._normal().fill(values)
