"""The linear autoencoder: the same subspace as PCA, by its closed form or trained by gradients to see that it is."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from foldwise.data.block import Block, Floats
from foldwise.data.source import Source
from foldwise.errors import DataError
from foldwise.fold import blas
from foldwise.fold.iterate import iterate
from foldwise.fold.outcome import Outcome
from foldwise.models.autoencoder.coded_rows import CodedRows
from foldwise.models.autoencoder.linear_descent import LinearDescent
from foldwise.models.autoencoder.linear_rows import LinearCode
from foldwise.models.base import KnownParameters, RowOutput, remember_columns
from foldwise.models.fitted_rows import ShownModel
from foldwise.models.parameters import Parameter, constraints, one_of, shared, whole
from foldwise.models.pca import PCA
from foldwise.models.pca.covariance import folded, from_moments
from foldwise.models.pca.observed import ObservedFit, fit_observed
from foldwise.models.pca.solver import SolverOptions
from foldwise.models.pca.spectrum import Spectrum
from foldwise.models.session import Session, session

_MOST_COLUMNS = 16_384  # of which the gradient solver forms a covariance
# fmt: off
PARAMETERS: dict[str, Parameter] = {
    "n_components": whole(),
    "solver": one_of("closed-form", "gradient"),
    **shared("scale", "tol", "max_iter", "missing", "prepare", "random_state", "time_budget", "checkpoint", "n_threads"),
}
# fmt: on


class LinearAutoencoder(
    ShownModel,
    KnownParameters,
    CodedRows,
    BaseEstimator,  # type: ignore[misc]
):
    """An encoder and a decoder without hidden layers or activations, of least squared error: PCA by another name.

    Codes are W1 (x - mean) and reconstructions mean + W2 z. At the least error W2 spans the leading principal components,
    and any invertible mix of the codes does as well (Baldi and Hornik, Neural Networks 2, 1989).

    Parameters
    ----------
    n_components : numbers per code.
    solver : "closed-form" takes the principal components for both W1 and W2. "gradient" starts at random and goes downhill by
        conjugate gradients, so that one can watch it arrive at them: `trace_` has, of every step, the error as a share
        of the variance and the largest angle between a principal component and the span of W2.
    scale : columns are divided by their standard deviation first, and multiplied back by `inverse_transform`.
    tol, max_iter, random_state : of the gradient solver. It stops when every direction of W2 is an eigenvector of the
        covariance to this share of its variance, and W1 finds its coordinates.
    missing : "error", "drop", "mean" or "model", as in `fw.PCA`; so is `prepare`.
    time_budget (seconds), checkpoint (a file) : a fit that was killed resumes from it and ends with the same bits.
    n_threads : threads; None means FOLDWISE_THREADS or all cores. The result does not depend on it.

    Attributes: `encoder_weights_` (W1), `decoder_weights_` (W2), `mean_`, `scale_` (None if not scaled),
    `reconstruction_error_` and `pca_error_` (mean squared error of the rows of the fit, over the cells that they have, by this
    model and by PCA), `angle_`
    (the largest angle to a principal component that has variance, in radians; two components of equal variance, of which
    only one is kept, have no angle worth reading), `pca_`, `trace_`, `n_iter_`, `outcome_`, `manifest_`.

    >>> import foldwise as fw
    >>> rows = [[-1.0, -1.0], [-2.0, -1.0], [1.0, 1.0], [2.0, 1.0]]
    >>> trained = fw.LinearAutoencoder(1, solver="gradient").fit(rows)
    >>> bool(trained.angle_ < 1e-3), round(trained.reconstruction_error_, 4)
    (True, 0.0729)
    >>> fw.LinearAutoencoder(1).fit(rows).encoder_weights_.round(3)
    array([[0.851, 0.526]])
    """

    PARAMETERS: ClassVar[dict[str, Parameter]] = PARAMETERS
    standardises: ClassVar[bool] = False  # scale=True scales the covariance, not the rows
    _parameter_constraints: ClassVar[dict[str, Any]] = constraints(PARAMETERS)

    def __init__(
        self,
        n_components: int = 2,
        *,
        solver: str = "closed-form",
        scale: bool = False,
        tol: float = 1e-6,
        max_iter: int = 10_000,
        missing: str = "error",
        prepare: str | None = None,
        random_state: Any = None,
        time_budget: float | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
        n_threads: int | None = None,
    ) -> None:
        self.n_components = n_components
        self.solver = solver
        self.scale = scale
        self.tol = tol
        self.max_iter = max_iter
        self.missing = missing
        self.prepare = prepare
        self.random_state = random_state
        self.time_budget = time_budget
        self.checkpoint = checkpoint
        self.n_threads = n_threads

    # ---------------------------------------------------------------- fitting

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, *, engine: Any = None) -> Self:
        """Find encoder and decoder; `sample_weight` counts a row as that many equal rows."""
        with session(self, X, sample_weight, engine=engine, spool=self._reads_again) as opened:
            gradient = self.solver == "gradient"
            pca = PCA(
                self.n_components,
                svd_solver="covariance_eigh" if gradient else "auto",
                scale=self.scale,
                missing=self.missing,
                random_state=opened.seed,
                n_threads=self.n_threads,
            )
            if gradient:
                spectrum, outcome, algorithm, resumed_at = self._descend(opened, pca)
            else:
                spectrum, observed, algorithm = pca.solve(opened)
                pca.settle(opened, spectrum, observed)
                outcome, resumed_at = spectrum.outcome, spectrum.resumed_at
                self.encoder_weights_, self.decoder_weights_ = pca.components_, pca.components_.T.copy()
                self.angle_, self.reconstruction_error_ = 0.0, _mean_error(spectrum, _left_out(spectrum))
            remember_columns(pca, opened.data)
            self.pca_, self.pca_error_ = pca, _mean_error(spectrum, _left_out(spectrum))
            self.n_components_, self.mean_, self.scale_ = pca.n_components_, pca.mean_, pca.scale_
            if opened.missing is not None:  # the variances are those that complete rows would have
                by_pca = LinearCode(pca.components_, pca.components_.T, pca.mean_, pca.scale_, pca._normal())
                errors = _mean_errors(opened, (self._coder(), by_pca) if gradient else (by_pca,))
                self.reconstruction_error_, self.pca_error_ = float(errors[0]), float(errors[-1])
            self.trace_, self.n_iter_ = outcome.trace, max(1, outcome.steps)
            warning = f"LinearAutoencoder (solver={self.solver!r})"
            opened.finish(outcome, algorithm, pca.n_samples_, resumed_at=resumed_at, warning=warning)
        return self

    def _reads_again(self, source: Source) -> bool:
        return self.missing == "model"

    def _descend(self, opened: Session, pca: PCA) -> tuple[Spectrum, Outcome, str, int]:
        """Train by gradients; the PCA is settled too, to compare with."""
        d = opened.data.n_columns
        if d > _MOST_COLUMNS:
            raise DataError(
                f"solver='gradient' forms a matrix of columns by columns, and there are {d}",
                advice="Use solver='closed-form', or fewer columns",
            )
        indicators = getattr(opened.data, "indicators", None)
        options = pca.solver_options(self.n_components, opened.seed, None, indicators)
        spectrum, covariance, observed = _covariance(opened, options)
        pca.settle(opened, spectrum, observed)
        total = float(np.trace(covariance))
        known = pca.components_[pca.explained_variance_ > max(spectrum.floor, 0.0)].astype(np.float64).T
        with blas.single():
            descent = LinearDescent(
                covariance / (total or 1.0), self.n_components, known, opened.seed, max(float(self.tol), 0.0)
            )
            state, outcome, resumed_at = iterate(
                descent.start,
                descent.step,
                descent.done,
                max_iter=self.max_iter,
                time_budget=self.time_budget,
                checkpoint=opened.checkpoint(spectrum.weight, spectrum.mean, covariance, resumable_cap=True),
            )
        self.encoder_weights_, self.decoder_weights_ = (state[name].astype(opened.data.dtype) for name in ("W1", "W2"))
        self.angle_ = float(state["angle"])
        self.reconstruction_error_ = _mean_error(spectrum, float(state["error"]) * total)
        return spectrum, outcome, "conjugate gradients on the covariance", resumed_at

    # ---------------------------------------------------------------- rows

    def row_output(self, source: Source) -> RowOutput:
        """The code and the error of each row, block by block."""
        return self._coder().output(source, tuple(map(str, self.get_feature_names_out())))

    def _coder(self) -> LinearCode:
        check_is_fitted(self)
        normal = self.pca_._normal() if self.missing == "model" else None
        return LinearCode(self.encoder_weights_, self.decoder_weights_, self.mean_, self.scale_, normal)


def _covariance(opened: Session, options: SolverOptions) -> tuple[Spectrum, Floats, ObservedFit | None]:
    """The principal components, and the covariance of the (scaled) rows that they come from."""
    if opened.missing is not None:  # what the EM expects of complete rows
        whole = fit_observed(opened.passes, opened.missing, replace(options, n_components=None), options.n_components)
        spectrum, k = whole.spectrum, options.n_components
        directions = spectrum.directions
        few = replace(
            spectrum,
            variances=spectrum.variances[:k],
            directions=directions[:k],
            residuals=spectrum.residuals[:k],
            dropped=float(spectrum.variances[k:].sum()),
        )
        return few, (directions.T * spectrum.variances) @ directions, replace(whole, spectrum=few)
    moments = folded(opened.passes, options)
    spectrum = from_moments(moments, options, options.arithmetic(opened.passes.source))
    upper = moments.covariance(options.ddof)
    covariance = np.triu(upper) + np.triu(upper, 1).T
    if spectrum.scale is not None:
        covariance = covariance / np.outer(spectrum.scale, spectrum.scale)
    return spectrum, covariance, None


def _mean_errors(opened: Session, codes: tuple[LinearCode, ...]) -> Floats:
    """The mean error of the rows by several models, over the cells that they have."""
    sums = np.sum(opened.passes.each(_SummedErrors(codes)), axis=0)
    return np.asarray(sums[:-1] / sums[-1])


@dataclass(frozen=True)
class _SummedErrors:
    """Weighted sums over the rows of a block of their errors by several models, and of their weights."""

    codes: tuple[LinearCode, ...]

    def __call__(self, block: Block) -> Floats:
        weights = np.ones(block.n_rows) if block.weights is None else block.weights
        return np.array([*(weights @ code.errors(block) for code in self.codes), weights.sum()])


def _left_out(spectrum: Spectrum) -> float:
    """The variance beyond the principal components."""
    if spectrum.dropped is not None:
        return spectrum.dropped
    return max(0.0, spectrum.total_variance - float(spectrum.variances.sum()))


def _mean_error(spectrum: Spectrum, variance: float) -> float:
    """The mean squared error of rows of which this variance is lost."""
    return variance * (spectrum.weight - spectrum.ddof) / spectrum.weight
