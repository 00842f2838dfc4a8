"""Pictures of clusters: silhouettes, the consensus of an ensemble, and what sets clusters apart."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from foldwise.data.block import Floats
from foldwise.errors import ParameterError
from foldwise.models.ensemble import ClusterEnsemble, Coassociation
from foldwise.models.mixture import GaussianMixture
from foldwise.plot.axes import INK, MUTED, axes, ink_of, part_of, refuse, titled
from foldwise.plot.components import heat_table
from foldwise.report.formats import whole_percent
from foldwise.report.of import rows_for
from foldwise.report.run_header import column_names
from foldwise.selection.ensemble_profile import ensemble_profile
from foldwise.selection.explore.result import Exploration
from foldwise.selection.mixture_profile import mixture_profile
from foldwise.selection.silhouette import silhouette as silhouettes

_MOST_LINES = 4_000  # rows of a picture of silhouettes
_MOST_DRAWN = 400  # rows of a consensus matrix
_MOST_COLUMNS = 30


# ---------------------------------------------------------------- silhouettes


def silhouette(model_or_labels: Any, X: Any = None, ax: Any = None) -> Any:
    """The silhouette of every row, by cluster and in order: 1 is far from the other clusters, below 0 nearer to one of them.

    Of a model, or of labels with the rows `X`; of many rows, those of a random sample, which the title says.
    """
    values, groups, names, total = _silhouettes(model_or_labels, X)
    ax = axes(ax, 6.4, 4.8)
    step = max(1, -(-len(values) // _MOST_LINES))
    gap, at = 0.02 * len(values) / step + 1, 0.0
    places: list[float] = []
    kept = [number for number in range(len(names)) if (groups == number).any()]
    for number in kept:
        own = np.sort(values[groups == number])[::-1][::step]
        ys = at + np.arange(len(own) + 1)
        ax.fill_betweenx(np.repeat(ys, 2)[1:-1], 0.0, np.repeat(own, 2), color=ink_of(number), linewidth=0)
        places.append(at + len(own) / 2)
        at += len(own) + gap
    mean = float(values.mean())
    ax.axvline(mean, color=MUTED, linestyle="--", linewidth=1)
    ax.axvline(0.0, color=INK, linewidth=0.8)
    ax.set_yticks(places, [f"{names[number]} ({np.count_nonzero(groups == number):,})" for number in kept])
    ax.set_ylim(at, -gap)
    ax.set_xlim(min(-0.1, float(values.min()) - 0.02), 1.0)
    ax.tick_params(axis="y", length=0)
    ax.spines["left"].set_visible(False)
    sample = f", {len(values):,} of {total:,} rows" if len(values) < total else ""
    return titled(ax, f"Silhouettes (mean {mean:.2f}){sample}", "silhouette", "cluster (rows)")


def _silhouettes(given: Any, X: Any) -> tuple[Floats, NDArray[Any], list[str], int]:
    """The values, the numbers of their clusters, the names of the clusters, and the number of rows."""
    if isinstance(given, Exploration) and X is None:
        found, labels = part_of(given, "silhouette"), part_of(given, "silhouette_labels")
        known = np.isfinite(found.values)
        total = given.overview.rows if given.labels is None else len(given.labels)
        return found.values[known], labels[known], [str(one) for one in range(int(labels.max()) + 1)], total
    model = part_of(given, "clusters")
    labels = given
    if hasattr(model, "fit"):
        if not hasattr(model, "predict") and not hasattr(model, "labels_"):
            raise refuse("silhouette", given, "a model of clusters, labels with rows, or what fw.explore found")
        X = rows_for(model, X)
        labels = np.asarray(model.labels_ if hasattr(model, "labels_") else model.predict(X))
    elif X is None:
        raise ParameterError("fw.plot.silhouette(labels, X): silhouettes of labels need the rows; give them as X.")
    else:
        labels = np.asarray(labels)
        if labels.ndim != 1:
            raise refuse("silhouette", given, "a model of clusters, labels with rows, or what fw.explore found")
    found = silhouettes(X, model if hasattr(model, "fit") else labels, values=True, random_state=0)
    own = labels if found.rows is None else labels[found.rows]
    names = list(found.clusters)
    groups = np.array([names.index(one) if one in names else -1 for one in own.tolist()])
    values = np.asarray(found.values)  # as they were asked for
    known = np.isfinite(values) & (groups >= 0)
    return values[known], groups[known], [str(one) for one in names], len(labels)


# ---------------------------------------------------------------- consensus


def consensus(ensemble: Any, ax: Any = None) -> Any:
    """How often each two rows are in the same cluster, in the order of the consensus clusters.

    Dark squares are clusters that the clusterings agree on. Takes a fitted `fw.ClusterEnsemble`, a `fw.coassociation` or what
    `fw.explore` found; of more than 400 rows, as many evenly from all.
    """
    found = part_of(ensemble, "ensemble")
    if isinstance(found, ClusterEnsemble):
        matrix, labels = found.coassociation_, np.asarray(found.labels_)
        rows = np.flatnonzero(labels >= 0)
        rows = rows[np.argsort(labels[rows], kind="stable")]
    elif isinstance(found, Coassociation):
        matrix, labels, rows = found, None, np.arange(found.shape[0])
    else:
        raise refuse(
            "consensus",
            ensemble,
            "a fitted fw.ClusterEnsemble, the matrix of fw.coassociation, or what fw.explore found",
        )
    total = len(rows)
    if total > _MOST_DRAWN:
        rows = rows[np.linspace(0, total - 1, _MOST_DRAWN).astype(np.intp)]
    values = np.asarray(matrix.entries(rows, rows))
    if labels is not None:
        order = _neighbours_together(values, labels[rows])
        values, rows = values[np.ix_(order, order)], rows[order]
    ax = axes(ax, 5.8, 5.0)
    from matplotlib.colors import LinearSegmentedColormap

    shades = LinearSegmentedColormap.from_list("foldwise", ["#ffffff", "#103e78"])
    image = ax.imshow(values, cmap=shades, vmin=0.0, vmax=1.0, interpolation="nearest")
    ax.set_xticks([])
    ax.set_yticks([])
    for spine in ax.spines.values():
        spine.set_visible(False)
    if labels is not None:
        _mark_clusters(ax, labels[rows])
    bar = ax.figure.colorbar(image, ax=ax, shrink=0.7, label="share of the clusterings with both together")
    bar.outline.set_visible(False)
    sample = f"{len(rows):,} of {total:,} rows" if len(rows) < total else f"{total:,} rows"
    return titled(ax, f"Consensus of {matrix.n_clusterings} clusterings, {sample}", pad=18)


def _neighbours_together(values: Floats, labels: NDArray[Any]) -> NDArray[np.intp]:
    """Cluster by cluster, rows that are often together side by side."""
    from scipy.cluster.hierarchy import leaves_list, linkage
    from scipy.spatial.distance import squareform

    places = []
    for label in np.unique(labels):
        inside = np.flatnonzero(labels == label)
        if len(inside) > 2:
            apart = np.clip(1.0 - values[np.ix_(inside, inside)], 0.0, 1.0)
            np.fill_diagonal(apart, 0.0)
            inside = inside[leaves_list(linkage(squareform((apart + apart.T) / 2, checks=False), "average"))]
        places.append(inside)
    return np.concatenate(places) if places else np.zeros(0, dtype=np.intp)


def _mark_clusters(ax: Any, labels: NDArray[Any]) -> None:
    """Coloured edges with the numbers of the clusters."""
    for one in np.unique(labels):
        inside = np.flatnonzero(labels == one)
        low, high = inside[0] - 0.5, inside[-1] + 0.5
        wide = 0.015 * len(labels)
        for place in (((low, -0.5 - 2 * wide), high - low, wide), ((-0.5 - 2 * wide, low), wide, high - low)):
            from matplotlib.patches import Rectangle

            ax.add_patch(Rectangle(*place, color=ink_of(int(one)), clip_on=False, linewidth=0))
        ax.text(-0.5 - 3 * wide, (low + high) / 2, str(one), ha="right", va="center", fontsize=9, color=INK)


# ---------------------------------------------------------------- profiles


def profiles(model: Any, X: Any = None, ax: Any = None) -> Any:
    """What sets clusters apart: the mean of each column in each cluster minus that of all rows, in standard deviations.

    Of more than 30 columns, those that tell the clusters apart best are shown, in their order.
    """
    if isinstance(model, Exploration) and X is None:
        found, names = part_of(model, "profile"), list(model.names)
    else:
        fitted = part_of(model, "clusters")
        if not hasattr(fitted, "fit") or not (hasattr(fitted, "predict") or hasattr(fitted, "labels_")):
            raise refuse("profiles", model, "a fitted model of clusters, or what fw.explore found")
        source = rows_for(fitted, X)
        found = (
            mixture_profile(fitted, source) if isinstance(fitted, GaussianMixture) else ensemble_profile(fitted, source)
        )
        names = column_names(fitted)
    values = np.asarray(found.differences, dtype=np.float64)
    columns = np.arange(len(names))
    if len(columns) > _MOST_COLUMNS:
        columns = np.sort(np.argsort(-np.nan_to_num(found.separation), kind="stable")[:_MOST_COLUMNS])
    shares = np.asarray(found.weights) / np.asarray(found.weights).sum()
    heads = [f"{number}\n{whole_percent(share)}" for number, share in enumerate(shares)]
    more = f" ({len(columns)} of {len(names)} columns)" if len(columns) < len(names) else ""
    title = f"What sets the clusters apart{more}"
    ax = heat_table(values[:, columns].T, [names[j] for j in columns], heads, title, ax)
    for number, word in enumerate(ax.get_xticklabels()):
        word.set_color(ink_of(number))
        word.set_fontweight("bold")
    return titled(ax, title, "cluster, and its share of the rows\n(figures: standard deviations)")
