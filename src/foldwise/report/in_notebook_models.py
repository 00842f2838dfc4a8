"""What a notebook shows of fitted models, from their attributes alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from foldwise.models.base import n_clusters_of
from foldwise.report.choice import choice_parts
from foldwise.report.explore.sentences import sentences
from foldwise.report.formats import counted, number, percent
from foldwise.report.pca import top_loadings, votes_of
from foldwise.report.results import result_report
from foldwise.report.run_header import column_names
from foldwise.report.small_bars import small_bars
from foldwise.report.svg import BLUE, ORANGE, colour
from foldwise.report.values import Chart, Column, Fact, Note, Part, Report, Table

_MOST_BARS = 12


def brief_of_model(model: Any) -> Report | None:
    """A few figures, a table and a picture; None if it is not a model (or a fit, whose report would read its values)."""
    for kind in type(model).__mro__:
        name = f"{kind.__module__}.{kind.__qualname__}".removeprefix("foldwise.")
        if name in _BRIEFS:
            return _BRIEFS[name](model)
    return None


def _title(model: Any, what: str) -> str:
    return f"{type(model).__name__}: {what}"


def _size(model: Any) -> list[str]:
    """What it was fitted to; a model that grew by parts has no manifest, or one of its last part."""
    ran = getattr(model, "manifest_", None)
    if ran is None:
        return [counted(model.n_features_in_, "column")]
    words = [counted(ran.rows, "row"), counted(ran.columns, "column")]
    scaled = getattr(model, "scale_", None) is not None and getattr(model, "scale", True)
    words += ["scaled columns"] if scaled or getattr(model, "indicators_", None) is not None else []
    lines = [f"{', '.join(words)}; {ran.algorithm}, {ran.seconds:.2f} s"]
    outcome = getattr(model, "outcome_", None)
    if outcome is not None and not outcome.converged:
        lines.append(f"stopped early: {outcome.reason} after {counted(outcome.steps, 'step')}")
    return lines


def _bars(names: Sequence[str], values: Any, figures: Sequence[str], inks: Sequence[str], what: str) -> Chart:
    shown = slice(0, _MOST_BARS)
    return Chart(
        what,
        lambda: small_bars(names[shown], [float(v) for v in values[shown]], figures[shown], inks[shown], what),
    )


# ---------------------------------------------------------------- directions


def _pca(model: Any) -> Report:
    shares = np.asarray(model.explained_variance_ratio_, dtype=np.float64)
    names, loadings = list(model.get_feature_names_out()), np.asarray(model.loadings_)
    kept = slice(0, _MOST_BARS)
    table = Table(
        "Components",
        [
            Column("component", names[kept], left=True),
            Column("share", shares[kept].tolist(), percent),
            Column("cumulative", np.cumsum(shares)[kept].tolist(), percent),
            Column("top loadings", [top_loadings(one, column_names(model)) for one in loadings.T[kept]], left=True),
        ],
    )
    whole = float(shares.sum())
    chart = _bars(names, shares, [percent(one) for one in shares], [BLUE] * len(shares), "Share of variance")
    facts = [Fact("variance explained", whole, percent(whole))]
    return Report(_title(model, counted(len(shares), "component")), _size(model), facts, [table, chart])


def _linear(model: Any) -> Report:
    lost, least = float(model.reconstruction_error_), float(model.pca_error_)
    facts = [
        Fact("squared error of a row", lost, number(lost)),
        Fact("by PCA", least, number(least), "(the least possible)"),
    ]
    return Report(_title(model, f"codes of {counted(model.n_components_, 'number')}"), _size(model), facts)


def _autoencoder(model: Any) -> Report:
    total = float(model.held_out_variance_) or 1.0
    lost, by_pca = float(model.held_out_error_) / total, float(model.pca_error_) / total
    names, values = ["autoencoder", "PCA"], [lost, by_pca]
    chart = _bars(names, values, [percent(one) for one in values], [colour(0), colour(1)], "Lost of held-out rows")
    facts = [
        Fact("lost of held-out rows", lost, percent(lost)),
        Fact("by PCA", by_pca, percent(by_pca)),
        Fact("best epoch", model.best_epoch_, f"{model.best_epoch_:,}"),
    ]
    return Report(_title(model, f"codes of {counted(model.n_components_, 'number')}"), _size(model), facts, [chart])


def _selector(model: Any) -> Report:
    names = column_names(model)
    chosen = [names[j] for j in model.path_.best(model.n_features_)]
    lost = getattr(model, "losses_", None)
    columns = [Column("kept", chosen, left=True)]
    if lost is not None and len(lost) == len(chosen):
        columns.append(Column("lost without it", np.asarray(lost).tolist(), number))
    title = _title(model, f"{counted(model.n_features_, 'column')} of {len(names)}")
    return Report(
        title, _size(model), [Fact("score", float(model.score_), number(model.score_))], [Table("Kept", columns)]
    )


# ---------------------------------------------------------------- clusters


def _clusters(model: Any) -> Report:
    k, weights = n_clusters_of(model), np.asarray(model.cluster_weights_, dtype=np.float64)
    facts = [Fact("inertia", float(model.inertia_), number(float(model.inertia_)))]
    parts: list[Part] = _centres(model, weights)
    return Report(_title(model, counted(k, "cluster")), _size(model), facts, [*parts, _sizes(weights)])


def _sizes(weights: Any) -> Chart:
    shares = weights / (weights.sum() or 1.0)
    names = [f"cluster {i}" for i in range(len(weights))]
    inks = [colour(i) for i in range(len(weights))]
    return _bars(names, shares, [percent(one) for one in shares], inks, "Share of the rows")


def _centres(model: Any, weights: Any) -> list[Part]:
    """The centres in the units of the data, if it has any."""
    if not hasattr(model, "centers_in_data_units"):
        return []
    return [_means(model, np.asarray(model.centers_in_data_units(), dtype=np.float64), weights)]


def _means(model: Any, means: Any, weights: Any) -> Table:
    """One line for each cluster, and the columns in which they lie furthest apart, in units of their spread."""
    names, shares = column_names(model), weights / (weights.sum() or 1.0)
    middle = shares @ np.nan_to_num(means)
    spread = np.sqrt(shares @ np.square(np.nan_to_num(means) - middle))
    apart = spread / np.maximum(np.abs(middle), 1e-300)
    order = np.sort(np.argsort(-apart, kind="stable")[:6]) if len(names) > 6 else np.arange(len(names))
    columns = [
        Column("cluster", list(range(len(means))), left=True),
        Column("share", shares.tolist(), percent),
        *(Column(names[j], means[:, j].tolist(), "{:.4g}".format) for j in order),
    ]
    return Table("Centres", columns, colours=[colour(i) for i in range(len(means))])


def _mixture(model: Any) -> Report:
    weights = np.asarray(model.weights_, dtype=np.float64)
    means = np.asarray(model.means_, dtype=np.float64)
    if getattr(model, "scale_", None) is not None:
        means = means * model.scale_ + (0.0 if model.mean_ is None else model.mean_)
    merged = getattr(model, "clusters_", None)
    told: list[Part] = []
    if merged is not None:
        told = [Note(f"The components were merged into {counted(int(np.max(merged)) + 1, 'cluster')}.")]
    bound = float(model.lower_bound_)
    facts = [
        Fact("covariance", model.covariance_type, model.covariance_type),
        Fact("log-likelihood of a row", bound, number(bound)),
    ]
    title = _title(model, counted(len(weights), "Gaussian"))
    return Report(title, _size(model), facts, [*told, _means(model, means, weights), _sizes(weights)])


def _ensemble(model: Any) -> Report:
    k, labels = model.n_clusters_, np.asarray(model.labels_)
    weights = np.bincount(labels[labels >= 0], minlength=k).astype(np.float64)
    mean = float(np.nanmean(model.confidence_))
    table = Table(
        "Clusters",
        [
            Column("cluster", list(range(k)), left=True),
            Column("rows", weights.tolist(), "{:,.0f}".format),
            Column("consensus", np.asarray(model.cluster_consensus_).tolist(), "{:.2f}".format),
        ],
        colours=[colour(i) for i in range(k)],
    )
    facts = [
        Fact("clusterings", len(model.base_sizes_), f"{len(model.base_sizes_):,}"),
        Fact("mean confidence", mean, percent(mean)),
    ]
    return Report(_title(model, counted(k, "consensus cluster")), _size(model), facts, [table, _sizes(weights)])


# ---------------------------------------------------------------- votes


def _votes(choice: Any, what: str) -> Chart:
    """How much weight the votes for each number have."""
    weights: dict[int, float] = {}
    for vote in choice.votes:
        if vote.counts:
            weights[vote.chosen] = weights.get(vote.chosen, 0.0) + vote.weight
    numbers = sorted(weights)
    agreed = choice.agreed if hasattr(choice, "agreed") else choice.n_clusters
    inks = [ORANGE if one == agreed else BLUE for one in numbers]
    figures = [f"{weights[one]:g} vote{'s' * (weights[one] != 1)}" for one in numbers]
    return _bars([counted(one, what) for one in numbers], [weights[one] for one in numbers], figures, inks, "Votes")


def _cluster_choice(choice: Any) -> Report | None:
    told = result_report(choice)
    return told and replace(told, parts=[*choice_parts(choice), *([_votes(choice, "cluster")] if choice.votes else [])])


def _component_choice(choice: Any) -> Report | None:
    told = result_report(choice)
    return told and replace(told, parts=[*votes_of(choice), _votes(choice, "component")])


def _silhouette(found: Any) -> Report | None:
    told, means = result_report(found), np.asarray(found.cluster_means)
    names, inks = [f"cluster {one}" for one in found.clusters], [colour(i) for i in range(len(means))]
    figures = [f"{one:.2f}" for one in means]
    return told and replace(told, parts=[_bars(names, means, figures, inks, "Mean silhouette")])


# ---------------------------------------------------------------- distributions


def _fit(fit: Any) -> Report:
    names = list(fit.parameters)
    ends = [fit.intervals.get(name, (float("nan"),) * 2) for name in names]
    table = Table(
        "Parameters",
        [
            Column("parameter", names, left=True),
            Column("estimate", list(fit.parameters.values()), "{:.5g}".format),
            Column("from", [low for low, _ in ends], "{:.5g}".format),
            Column("to", [high for _, high in ends], "{:.5g}".format),
        ],
    )
    facts = [Fact("values", fit.n, f"{fit.n:,.10g}"), Fact("AIC", fit.aic, number(fit.aic), "(lower is better)")]
    title = f"{fit.family.capitalize()} distribution of {fit.column or 'values'}"
    return Report(title, [f"{fit.confidence:.0%} intervals"], facts, [table, *map(Note, fit.notes)])


def _comparison(found: Any) -> Report | None:
    if not found.fits:
        return None
    name = found.criterion.upper()
    table = Table(
        "Families",
        [
            Column("family", [fit.family for fit in found.fits], left=True),
            Column(name, [found.score(fit) for fit in found.fits], number),
            Column("behind", [found.behind(fit) for fit in found.fits], number),
        ],
    )
    best = found.best
    facts = [Fact("best", best.family, best.family), Fact("values", best.n, f"{best.n:,.10g}")]
    return Report(f"Distributions of {best.column or 'values'}", [], facts, [table])


def _exploration(found: Any) -> Report:
    """In short; its report has all of it."""
    parts: list[Part] = []
    if found.summaries:
        columns = [
            Column("cluster", [one.number for one in found.summaries], left=True),
            Column("rows", [one.rows for one in found.summaries], "{:,}".format),
            Column("share", [one.share for one in found.summaries], percent),
            Column("name", [one.name for one in found.summaries], left=True),
        ]
        inks = [colour(one.number) for one in found.summaries]
        parts.append(Table("Clusters", columns, colours=inks))
    parts += list(_pca(found.pca).parts[1:])
    stopped = [f"not finished: {', '.join(found.unfinished)}"] if found.unfinished else []
    advice = 'The whole report, as a page: .report("report.html")'
    return Report(
        f"Exploration of {found.overview.where}", stopped, parts=[*parts, Note(advice)], lead=sentences(found)
    )


def _exploration_model(model: Any) -> Report | None:
    components = _pca(model.pca_)
    if model.cluster_model_ is None:
        return replace(components, title=_title(model, f"{counted(model.n_components_, 'component')}, one group"))
    clusters = brief_of_model(model.cluster_model_)
    words = f"{counted(model.n_components_, 'component')}, and {clusters.title}" if clusters else ""
    return clusters and replace(clusters, title=_title(model, words), facts=[*components.facts, *clusters.facts])


_BRIEFS: dict[str, Callable[[Any], Report | None]] = {
    "models.pca.estimator.PCA": _pca,
    "models.autoencoder.linear.LinearAutoencoder": _linear,
    "models.autoencoder.estimator.Autoencoder": _autoencoder,
    "selection.features.estimator.FeatureSelector": _selector,
    "models.kmeans.centre_model.CentreModel": _clusters,
    "models.kernel.estimator.KernelKMeans": _clusters,
    "models.mixture.estimator.GaussianMixture": _mixture,
    "models.ensemble.estimator.ClusterEnsemble": _ensemble,
    "models.likelihood.result.FittedDistribution": _fit,
    "models.likelihood.result.Comparison": _comparison,
    "models.exploration.ExplorationModel": _exploration_model,
    "selection.clusters.result.ClusterChoice": _cluster_choice,
    "selection.components.ComponentChoice": _component_choice,
    "selection.silhouette_result.Silhouette": _silhouette,
    "selection.explore.result.Exploration": _exploration,
}
