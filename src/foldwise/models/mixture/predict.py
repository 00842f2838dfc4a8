"""What a fitted mixture says of rows: densities, probabilities, labels and criteria."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, DensityMixin
from sklearn.utils.validation import check_is_fitted

from foldwise.data.block import Block, Floats
from foldwise.data.mapped import standardised
from foldwise.data.source import Source
from foldwise.errors import DataError, ParameterError
from foldwise.fold.passes import Passes
from foldwise.kernels.mixture import Components
from foldwise.models.base import EachRow, KnownParameters, open_for_use
from foldwise.models.labelled_matrix import LabelledMatrix
from foldwise.models.mixture.covariance_types import CovarianceType
from foldwise.models.mixture.parameters import is_whole
from foldwise.stats.array_sum import ArraySum


class FittedMixture(KnownParameters, DensityMixin, BaseEstimator):  # type: ignore[misc]
    """Reads `weights_`, `means_`, `precisions_cholesky_` and, if components were merged, `clusters_`."""

    n_components: int
    covariance_type: str
    random_state: Any
    n_threads: int | None

    # ---------------------------------------------------------------- rows

    def score_samples(self, X: Any) -> Floats:
        """The log density of each row; not below -5e299, which rows so far away get all alike."""
        run, components = self._comparing(X)
        return run.rows(lambda block: self._logs(block, components)[0])

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """The mean log density of the rows."""
        log_likelihood, _, weight, _ = self._sums(X, sample_weight)
        return log_likelihood / weight

    def predict_proba(self, X: Any) -> Floats:
        """The probability of each component, or of each cluster if components were merged, for each row."""
        run, components = self._comparing(X)
        return run.rows(lambda block: self._probabilities(block, components))

    def predict(self, X: Any) -> NDArray[np.int64]:
        """The most probable component, or cluster, of each row; the lowest number among equals."""
        run, components = self._comparing(X)
        return run.rows(lambda block: self._labels(self._probabilities(block, components)))

    def each_row(self, source: Source) -> EachRow:
        """For those who stream: the most probable cluster, and the probabilities of all."""
        check_is_fitted(self, "weights_")
        components = self._components(self._dtype(source))
        k = self._n_groups
        names = ("cluster", *(f"p{i}" for i in range(k)), "log_density")
        dtype = np.dtype([("cluster", np.int32), *((name, np.float64) for name in names[1:])])

        def of(block: Block) -> NDArray[Any]:
            told = np.empty(block.n_rows, dtype)
            density, logs = self._logs(block, components)
            shares = self._grouped(np.exp(logs))
            told["cluster"], told["log_density"] = self._labels(shares), density
            for i in range(k):
                told[f"p{i}"] = shares[:, i]
            return told

        return EachRow(self._seen(source), names, dtype, of)

    @staticmethod
    def _labels(shares: Floats) -> NDArray[np.int64]:
        return np.asarray(shares.argmax(axis=1), dtype=np.int64)

    def _probabilities(self, block: Block, components: Components) -> Floats:
        return self._grouped(np.exp(self._logs(block, components)[1]))

    def _grouped(self, shares: Floats) -> Floats:
        """The probabilities of components summed up by the clusters that they were merged into."""
        clusters = getattr(self, "clusters_", None)
        if clusters is None:
            return shares
        out = np.zeros((len(shares), self._n_groups))
        for component, cluster in enumerate(clusters):
            out[:, cluster] += shares[:, component]
        return out

    @property
    def _n_groups(self) -> int:
        clusters = getattr(self, "clusters_", None)
        return len(self.weights_) if clusters is None else int(clusters.max()) + 1

    def _logs(self, block: Block, components: Components) -> tuple[Floats, Floats]:
        total, each = np.empty(block.n_rows), np.empty((block.n_rows, len(self.weights_)))
        components.logs(block.rows, total, each)
        return total, each

    def _comparing(self, X: Any, sample_weight: Any = None) -> tuple[Passes, Components]:
        check_is_fitted(self, "weights_")
        source = self._dense(open_for_use(self, X, sample_weight))
        return Passes(self._seen(source), n_threads=self.n_threads), self._components(self._dtype(source))

    def _dtype(self, source: Source) -> np.dtype[Any]:
        return source.dtype

    def _seen(self, source: Source) -> Source:
        """The rows as the model sees them: standardised with scale=True."""
        scale = getattr(self, "scale_", None)
        return source if scale is None else standardised(source, self.mean_, scale)

    def as_compared(self, source: Source) -> Source:
        """The same, for reports."""
        return self._seen(source)

    @staticmethod
    def _dense(source: Source) -> Source:
        if source.sparse:
            raise DataError(
                "sparse data was passed, but densities need rows with all their values",
                advice="Use X.toarray(), or reduce the columns first with fw.PCA, which takes sparse rows",
            )
        return source

    def _family(self) -> CovarianceType:
        d = self.means_.shape[1]
        return CovarianceType(self.covariance_type, d, getattr(self, "n_latent_", 0))

    def _components(self, dtype: np.dtype[Any]) -> Components:
        pivot = np.asarray(self.weights_ @ self.means_, dtype=np.float64)
        with np.errstate(over="ignore"):
            narrow = np.abs(self.means_).max() <= np.finfo(dtype).max
            pivot = pivot.astype(dtype).astype(np.float64) if narrow else pivot
        return self._family().components(
            self.weights_, self.means_, self.precisions_cholesky_, pivot, dtype, narrow=bool(narrow)
        )

    # ---------------------------------------------------------------- criteria

    def _sums(self, X: Any, sample_weight: Any = None) -> tuple[float, float, float, float]:
        """Summed up over the rows: log density, log of the largest probability, weight, entropy of the probabilities."""
        run, components = self._comparing(X, sample_weight)

        def of(block: Block) -> ArraySum:
            density, logs = self._logs(block, components)
            shares = self._grouped(np.exp(logs))
            w = np.ones(block.n_rows) if block.weights is None else block.weights
            with np.errstate(divide="ignore"):
                surest = np.log(shares.max(axis=1))
            entropy = -np.where(shares > 0, shares * np.log(np.where(shares > 0, shares, 1.0)), 0.0).sum(axis=1)
            return ArraySum(np.array([w @ density, w @ surest, w.sum(), w @ entropy]))

        found = run.fold(of).value
        return float(found[0]), float(found[1]), float(found[2]), float(found[3])

    def _n_parameters(self) -> int:
        family = self._family()  # a column that does not vary has nothing to be estimated
        varying = replace(family, d=max(family.d - len(getattr(self, "constant_columns_", ())), 1))
        return varying.n_parameters(len(self.weights_))

    def criteria(self, X: Any, sample_weight: Any = None) -> dict[str, float]:
        """Log-likelihood, number of parameters, BIC, ICL, AIC and the entropy of the probabilities, in one pass."""
        log_likelihood, surest, weight, entropy = self._sums(X, sample_weight)
        p = self._n_parameters()
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
        """Bayes's information criterion, -2 log L + p log n (Schwarz 1978); n is the rows' weight. Lower is better."""
        return self.criteria(X, sample_weight)["bic"]

    def aic(self, X: Any, sample_weight: Any = None) -> float:
        """Akaike's information criterion, -2 log L + 2 p. Lower is better."""
        return self.criteria(X, sample_weight)["aic"]

    def icl(self, X: Any, sample_weight: Any = None) -> float:
        """The BIC plus what rows in doubt cost, -2 sum log max_j r_j (Biernacki and others 2000). Lower is better."""
        return self.criteria(X, sample_weight)["icl"]

    # ---------------------------------------------------------------- drawing

    def sample(self, n_samples: int = 1) -> tuple[Floats, NDArray[np.int64]]:
        """Rows drawn from the model, with the components that they came from; grouped by component."""
        from sklearn.utils import check_random_state

        check_is_fitted(self, "weights_")
        if not is_whole(n_samples) or n_samples < 1:
            raise ParameterError(
                f"Invalid value for 'n_samples': {n_samples} . The sampling requires at least one sample, a whole number."
            )
        rng = check_random_state(self.random_state)
        family, (k, d) = self._family(), self.means_.shape
        counts = rng.multinomial(n_samples, self.weights_ / self.weights_.sum())
        if family.layout in ("full", "tied"):
            factors = np.linalg.cholesky(family.each(self.covariances_, k))
        else:
            factors = np.sqrt(self.covariances_)
        parts = []
        for j, count in enumerate(counts.tolist()):
            drawn = rng.standard_normal((count, d))
            parts.append(self.means_[j] + (drawn @ factors[j].T if factors.ndim == 3 else drawn * factors[j]))
        rows = np.vstack(parts)
        if getattr(self, "scale_", None) is not None:
            rows = rows * self.scale_ + self.mean_
        return rows, np.repeat(np.arange(k), counts)

    def means_in_data_units(self) -> LabelledMatrix:
        """The means as rows of the data would be, with names; with scale=False that is `means_`."""
        check_is_fitted(self, "weights_")
        means = self.means_
        if getattr(self, "scale_", None) is not None:
            means = means * self.scale_ + self.mean_
        names = getattr(self, "feature_names_in_", [f"x{j}" for j in range(self.n_features_in_)])
        return LabelledMatrix(means, tuple(str(i) for i in range(len(means))), tuple(names))
