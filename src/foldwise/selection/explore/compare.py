"""Whether k-means or a Gaussian mixture describes rows better that neither has seen."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from foldwise.data.block import Floats
from foldwise.data.source import Source
from foldwise.errors import DataError
from foldwise.fold import events
from foldwise.models.kmeans import KMeans
from foldwise.models.mixture import GaussianMixture
from foldwise.selection.agreement import adjusted_rand
from foldwise.selection.choose_mixture import choose_mixture
from foldwise.selection.clusters.rows import uninterrupted
from foldwise.selection.explore.result import Comparison
from foldwise.selection.stability import stability

MOST_COLUMNS = 50  # of a mixture; wider tables are compared by their leading components
MOST_ROWS = 20_000
_FOLDS_OF_FEW, _FEW = 5, 5_000
_TYPES = ("full", "tied", "diag", "spherical")
_CLEARLY = 3.0  # standard errors
_THE_SAME = 0.98  # adjusted Rand index
_STABILITY_ROWS, _REPEATS = 5_000, 20


def fit_mixture(rows: Source, k: int, settings: dict[str, Any]) -> GaussianMixture | None:
    """A mixture of k components, of the covariance type with the best BIC; None if none can be fitted."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what did not work is not chosen
        try:
            found = choose_mixture(rows, [k], covariance_types=_TYPES, **settings)
        except DataError:
            return None
    if found.interrupted:
        raise KeyboardInterrupt
    return None if found.best.collapsed else found.best_model


def compare(
    rows: Floats,
    weights: Floats | None,
    mixture: GaussianMixture,
    kmeans: KMeans,
    labels: NDArray[Any],
    seed: int,
    *,
    reduced: bool,
) -> Comparison:
    """Fit both to some of the rows (standardised already, NaN where missing) and compare the densities of the others.

    `labels` are those of the k-means of all rows; k-means stands for round clusters with one spread and their own shares.
    `reduced`: the rows are scores on the leading components, so that the mixture cannot take the place of k-means.
    """
    n, k = len(rows), mixture.n_components
    folds = _FOLDS_OF_FEW if n <= _FEW else 2
    fold = np.random.default_rng([seed, 12]).permutation(n) % folds
    ours, theirs = np.full(n, np.nan), np.full(n, np.nan)
    with warnings.catch_warnings(), events.muted():
        warnings.simplefilter("ignore")
        for number in range(folds):
            inside, outside = rows[fold != number], rows[fold == number]
            weight = None if weights is None else weights[fold != number]
            try:
                ours[fold == number] = _kmeans_density(inside, weight, outside, k, kmeans, seed)
                again = GaussianMixture(
                    k, covariance_type=mixture.covariance_type, missing="model", random_state=seed
                ).fit(inside, sample_weight=weight)
                uninterrupted(again)
                theirs[fold == number] = again.score_samples(outside)
            except DataError:
                continue  # too few rows for so many clusters
    judged = np.isfinite(theirs - ours) & np.isfinite(rows).any(axis=1)
    weight = (np.ones(n) if weights is None else weights)[judged]
    total = float(weight.sum())
    gains = (theirs - ours)[judged]
    gain = float(weight @ gains / total) if total > 0 else float("nan")
    error = float(np.sqrt(weight @ (gains - gain) ** 2 / total / total)) if total > 0 else float("nan")
    agreement = float(adjusted_rand(labels, mixture.predict(rows)))
    better = gain > _CLEARLY * error
    stabilities = (float("nan"), float("nan"))
    if better and agreement < _THE_SAME and not reduced:
        stabilities = _stabilities(rows, mixture, seed)
    chosen, reason = _verdict(gain, better, agreement, stabilities, reduced=reduced)
    return Comparison(
        kmeans=float(weight @ ours[judged] / total) if total > 0 else float("nan"),
        mixture=float(weight @ theirs[judged] / total) if total > 0 else float("nan"),
        gain=gain,
        error=error,
        rows=int(np.count_nonzero(judged)),
        covariance_type=mixture.covariance_type,
        agreement=agreement,
        chosen=chosen,
        reason=reason,
        kmeans_stability=stabilities[0],
        mixture_stability=stabilities[1],
    )


def _stabilities(rows: Floats, mixture: GaussianMixture, seed: int) -> tuple[float, float]:
    """The mean stability of the clusters of k-means and of the mixture, corrected for that of clusters forced on one group.

    The likelihood of held-out rows prefers a mixture wherever groups are not quite round, also if its components then share
    groups in another way each time.
    """
    some = rows[np.sort(np.random.default_rng([seed, 13]).permutation(len(rows))[:_STABILITY_ROWS])]
    settings: dict[str, Any] = {"missing": "model", "random_state": seed}
    k = mixture.n_components
    models = (
        KMeans(k, search="breathing", **settings),
        GaussianMixture(k, covariance_type=mixture.covariance_type, **settings),
    )
    found = []
    with warnings.catch_warnings(), events.muted():
        warnings.simplefilter("ignore")
        for model in models:
            try:
                made = stability(model, some, n_repeats=_REPEATS, random_state=seed)
            except DataError:
                return float("nan"), float("nan")
            if made.interrupted:
                raise KeyboardInterrupt
            found.append(float(np.mean(made.corrected)))
    return found[0], found[1]


def _verdict(
    gain: float, better: bool, agreement: float, stabilities: tuple[float, float], *, reduced: bool
) -> tuple[str, str]:
    if not np.isfinite(gain):
        return "k-means", "there are too few rows to compare k-means with a mixture"
    if agreement >= _THE_SAME:
        return "k-means", "k-means and a mixture put nearly all rows in the same groups"
    if not better:
        return "k-means", "groups of different sizes and shapes do not describe rows that were held out clearly better"
    if reduced:
        return "k-means", (
            "a mixture describes rows on the leading components better, but there are too many columns to fit one to all"
        )
    if not stabilities[1] >= stabilities[0]:
        return "k-means", (
            "groups of different sizes and shapes describe rows that were held out better, but are less stable"
        )
    return "mixture", (
        "groups of different sizes and shapes describe rows that were held out clearly better than round ones"
    )


def _kmeans_density(inside: Floats, weights: Floats | None, outside: Floats, k: int, like: KMeans, seed: int) -> Floats:
    """The log-density of held-out rows, over their observed cells, under round clusters with one spread."""
    from scipy.special import logsumexp

    model = KMeans(k, search="breathing", missing="model", random_state=seed, n_threads=like.n_threads)
    uninterrupted(model.fit(inside, sample_weight=weights))
    weight = np.ones(len(inside)) if weights is None else weights
    cells = float(weight @ np.isfinite(inside).sum(axis=1))
    placed = model.labels_ >= 0
    shares = np.bincount(model.labels_[placed], weight[placed], minlength=k) / max(float(weight[placed].sum()), 1e-300)
    centres = np.asarray(model.cluster_centers_, dtype=np.float64)
    away = inside - centres[np.maximum(model.labels_, 0)]
    variance = float(weight @ np.nansum(away**2, axis=1) / cells)
    if not variance > 0:
        raise DataError("no spread about the centres")
    known = np.isfinite(outside)
    squares = np.stack([np.where(known, outside - centre, 0.0) ** 2 for centre in centres]).sum(axis=2)
    with np.errstate(divide="ignore"):
        logs = np.log(shares)[:, None] - squares / (2 * variance)
    return np.asarray(logsumexp(logs, axis=0) - known.sum(axis=1) * 0.5 * np.log(2 * np.pi * variance))
