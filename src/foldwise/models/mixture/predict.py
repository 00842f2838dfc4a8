"""What a fitted mixture says of rows: densities, probabilities, labels and criteria."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, DensityMixin
from sklearn.utils.validation import check_is_fitted

from foldwise.data.block import Block, Floats
from foldwise.data.mapped import standardised
from foldwise.data.source import Source
from foldwise.errors import ParameterError
from foldwise.fold.passes import Passes
from foldwise.kernels.mixture import Components
from foldwise.kernels.mixture_gaps import GapComponents
from foldwise.models.base import KnownParameters, RowOutput, open_for_use
from foldwise.models.fitted_rows import ShownModel
from foldwise.models.labelled_matrix import LabelledMatrix
from foldwise.models.mixture.covariance import COVARIANCE_TYPES, CovarianceType
from foldwise.models.parameters import is_whole
from foldwise.models.session import check_dense
from foldwise.stats.array_sum import ArraySum


@dataclass(frozen=True)
class Posterior:
    """What a mixture says of the rows of a block; `clusters` are those that components were merged into, if they were."""

    components: Components | GapComponents
    clusters: NDArray[np.int32] | None

    @property
    def n_clusters(self) -> int:
        """How many clusters rows are given to."""
        return len(self.components.means) if self.clusters is None else int(self.clusters.max()) + 1

    def logs(self, block: Block) -> tuple[Floats, Floats]:
        """The log density of each row, and the log probability of each component for it."""
        total, each = np.empty(block.n_rows), np.empty((block.n_rows, len(self.components.means)))
        self.components.logs(block.rows, total, each)
        return total, each

    def grouped(self, logs: Floats) -> Floats:
        """The probabilities of components, summed by the clusters that they were merged into."""
        shares = np.exp(logs)
        if self.clusters is None:
            return shares
        out = np.zeros((len(shares), self.n_clusters))
        for component, cluster in enumerate(self.clusters):
            out[:, cluster] += shares[:, component]
        return out


# Tasks, each given what the mixture says and a block.


def densities(posterior: Posterior, block: Block) -> Floats:
    """The log density of each row."""
    return posterior.logs(block)[0]


def probabilities(posterior: Posterior, block: Block) -> Floats:
    """The probability of each cluster, for each row."""
    return posterior.grouped(posterior.logs(block)[1])


def labels(posterior: Posterior, block: Block) -> NDArray[np.int32]:
    """The most probable cluster of each row."""
    return most_probable(probabilities(posterior, block))


def most_probable(shares: Floats) -> NDArray[np.int32]:
    """The cluster with the largest probability; the lowest number among equals."""
    return np.asarray(shares.argmax(axis=1), dtype=np.int32)


def all_of(posterior: Posterior, dtype: np.dtype[Any], block: Block) -> NDArray[Any]:
    """Cluster, probabilities and log density of each row, as records."""
    out = np.empty(block.n_rows, dtype)
    out["log_density"], logs = posterior.logs(block)
    shares = posterior.grouped(logs)
    out["cluster"] = most_probable(shares)
    for i in range(posterior.n_clusters):
        out[f"p{i}"] = shares[:, i]
    return out


def sums(posterior: Posterior, block: Block) -> ArraySum:
    """Summed over the rows: log density, log of the largest probability, weight, entropy of the probabilities."""
    density, logs = posterior.logs(block)
    shares = posterior.grouped(logs)
    w = np.ones(block.n_rows) if block.weights is None else block.weights
    with np.errstate(divide="ignore"):
        surest = np.log(shares.max(axis=1))
    entropy = -np.where(shares > 0, shares * np.log(np.where(shares > 0, shares, 1.0)), 0.0).sum(axis=1)
    return ArraySum(np.array([w @ density, w @ surest, w.sum(), w @ entropy]))


class FittedMixture(ShownModel, KnownParameters, DensityMixin, BaseEstimator):  # type: ignore[misc]
    """Reads `weights_`, `means_`, `precisions_cholesky_` and, if components were merged, `clusters_`."""

    n_components: int
    covariance_type: str
    random_state: Any
    n_threads: int | None

    # ---------------------------------------------------------------- rows

    def score_samples(self, X: Any) -> Floats:
        """The log density of each row; not below -5e299, which rows so far away get all alike."""
        passes, posterior = self._comparing(X)
        return passes.rows(partial(densities, posterior))

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """The mean log density of the rows."""
        log_likelihood, _, weight, _ = self._sums(X, sample_weight)
        return log_likelihood / weight

    def predict_proba(self, X: Any) -> Floats:
        """The probability of each component, or of each cluster if components were merged, for each row."""
        passes, posterior = self._comparing(X)
        return passes.rows(partial(probabilities, posterior))

    def predict(self, X: Any) -> NDArray[np.int32]:
        """The most probable component, or cluster, of each row; the lowest number among equals."""
        passes, posterior = self._comparing(X)
        return passes.rows(partial(labels, posterior))

    def row_output(self, source: Source) -> RowOutput:
        """For output that is streamed: the most probable cluster, the probabilities of all, and the log density."""
        check_is_fitted(self, "weights_")
        names = ("cluster", *(f"p{i}" for i in range(self.n_clusters_)), "log_density")
        dtype = np.dtype([("cluster", np.int32), *((name, np.float64) for name in names[1:])])
        return RowOutput(self.as_compared(source), names, dtype, partial(all_of, self.posterior(source.dtype), dtype))

    def posterior(self, dtype: np.dtype[Any], *, gaps: bool = False) -> Posterior:
        """What the model says of rows of this dtype, seen `as_compared`; with `gaps`, whatever `missing` is."""
        check_is_fitted(self, "weights_")
        pivot = np.asarray(self.weights_ @ self.means_, dtype=np.float64)
        with np.errstate(over="ignore"):
            narrow = np.abs(self.means_).max() <= np.finfo(dtype).max
            pivot = pivot.astype(dtype).astype(np.float64) if narrow else pivot
        compared = self.covariance.components(
            self.weights_,
            self.means_,
            self.precisions_cholesky_,
            pivot,
            dtype,
            narrow=bool(narrow),
            gaps=gaps or self._takes_gaps,
        )
        return Posterior(compared, getattr(self, "clusters_", None))

    @property
    def _takes_gaps(self) -> bool:
        return getattr(self, "missing", "error") == "model"

    def as_compared(self, source: Source) -> Source:
        """The rows as the model sees them: standardised with scale=True."""
        scale = getattr(self, "scale_", None)
        return source if scale is None else standardised(source, self.mean_, scale)

    @property
    def n_clusters_(self) -> int:
        """How many clusters `predict` gives rows to: the components, or what they were merged into."""
        check_is_fitted(self, "weights_")
        clusters = getattr(self, "clusters_", None)
        return len(self.weights_) if clusters is None else int(clusters.max()) + 1

    def _comparing(self, X: Any, sample_weight: Any = None) -> tuple[Passes, Posterior]:
        source = self.open_rows(X, sample_weight)
        return Passes(self.as_compared(source), n_threads=self.n_threads), self.posterior(source.dtype)

    def open_rows(self, X: Any, sample_weight: Any = None) -> Source:
        """Rows to apply the model to, checked."""
        check_is_fitted(self, "weights_")
        source = open_for_use(self, X, sample_weight)
        check_dense(source, "densities")
        return source

    def _impute_block(self, values: NDArray[Any]) -> tuple[Floats, Floats]:
        """Rows completed by what is expected of missing cells given the others, and the standard deviations of these.

        Both are moments of the whole mixture, in the units of the data: the deviation counts what is unknown within components
        and between them. Observed cells stay as they are, with a deviation of 0.
        """
        scale = getattr(self, "scale_", None)
        rows = values if scale is None else (values.astype(np.float64) - self.mean_) / scale
        components = self.posterior(rows.dtype, gaps=True).components
        assert isinstance(components, GapComponents)
        completed, deviations = components.completed(np.ascontiguousarray(rows))
        if scale is not None:
            completed, deviations = completed * scale + self.mean_, deviations * scale
        return np.where(np.isnan(values), completed, values), deviations

    # ---------------------------------------------------------------- components

    @property
    def covariance(self) -> CovarianceType:
        """The covariance type, for the columns of the fit."""
        return COVARIANCE_TYPES[self.covariance_type].of_columns(self.means_.shape[1], getattr(self, "n_latent_", None))

    def covariance_matrices(self) -> Floats:
        """The covariances as (components, columns, columns), whatever the type."""
        check_is_fitted(self, "weights_")
        return np.array(self.covariance.matrices(self.covariances_, len(self.weights_)))

    def n_parameters(self) -> int:
        """How many numbers were estimated; a column that does not vary has nothing to be estimated."""
        check_is_fitted(self, "weights_")
        covariance = self.covariance
        varying = max(covariance.d - len(getattr(self, "constant_columns_", ())), 1)
        return replace(covariance, d=varying).n_parameters(len(self.weights_))

    _n_parameters = n_parameters  # as scikit-learn calls it

    # ---------------------------------------------------------------- criteria

    def _sums(self, X: Any, sample_weight: Any = None) -> tuple[float, float, float, float]:
        passes, posterior = self._comparing(X, sample_weight)
        found = passes.fold(partial(sums, posterior)).value
        return float(found[0]), float(found[1]), float(found[2]), float(found[3])

    def criteria(self, X: Any, sample_weight: Any = None) -> dict[str, float]:
        """Log-likelihood, number of parameters, BIC, ICL, AIC and the entropy of the probabilities, in one pass."""
        log_likelihood, surest, weight, entropy = self._sums(X, sample_weight)
        p = self.n_parameters()
        bic = -2 * log_likelihood + p * math.log(weight)
        return {
            "log_likelihood": log_likelihood,
            "parameters": float(p),
            "bic": bic,
            "icl": bic - 2 * surest,
            "aic": -2 * log_likelihood + 2 * p,
            "entropy": entropy,
        }

    def bic(self, X: Any, sample_weight: Any = None) -> float:
        """The Bayesian information criterion, -2 log L + p log n (Schwarz 1978); n is the rows' weight. Lower is better."""
        return self.criteria(X, sample_weight)["bic"]

    def aic(self, X: Any, sample_weight: Any = None) -> float:
        """Akaike's information criterion, -2 log L + 2 p. Lower is better."""
        return self.criteria(X, sample_weight)["aic"]

    def icl(self, X: Any, sample_weight: Any = None) -> float:
        """The BIC plus what rows in doubt cost, -2 sum log max_j r_j (Biernacki and others 2000). Lower is better."""
        return self.criteria(X, sample_weight)["icl"]

    # ---------------------------------------------------------------- drawing

    def sample(self, n_samples: int = 1) -> tuple[Floats, NDArray[np.int32]]:
        """Rows drawn from the model, with the components that they came from; grouped by component."""
        from sklearn.utils import check_random_state

        check_is_fitted(self, "weights_")
        if not is_whole(n_samples) or n_samples < 1:
            raise ParameterError(
                f"Invalid value for 'n_samples': {n_samples} . The sampling requires at least one sample, a whole number."
            )
        rng = check_random_state(self.random_state)
        covariance, (k, d) = self.covariance, self.means_.shape
        counts = rng.multinomial(n_samples, self.weights_ / self.weights_.sum())
        each = np.broadcast_to(
            covariance.stacked(self.covariances_), (k, *covariance.stacked(self.covariances_).shape[1:])
        )
        rows = np.vstack(
            [
                self.means_[j] + covariance.draw(rng.standard_normal((count, d)), each[j])
                for j, count in enumerate(counts.tolist())
            ]
        )
        return self._in_data_units(rows), np.repeat(np.arange(k, dtype=np.int32), counts)

    def means_in_data_units(self) -> LabelledMatrix:
        """The means as rows of the data would be, with names; with scale=False that is `means_`."""
        check_is_fitted(self, "weights_")
        names = getattr(self, "feature_names_in_", [f"x{j}" for j in range(self.n_features_in_)])
        return LabelledMatrix(
            self._in_data_units(self.means_), tuple(str(i) for i in range(len(self.means_))), tuple(names)
        )

    def _in_data_units(self, rows: Floats) -> Floats:
        scale = getattr(self, "scale_", None)
        return rows if scale is None else np.asarray(rows * scale + self.mean_)
