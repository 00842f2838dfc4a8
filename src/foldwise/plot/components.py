"""Pictures of principal components: how much each explains, where the rows lie, and what the columns have to do with it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from foldwise.data.block import Floats
from foldwise.errors import ParameterError
from foldwise.models.pca import PCA
from foldwise.plot.axes import (
    BLUE,
    FAINT,
    INK,
    MUTED,
    ORANGE,
    axes,
    cut,
    part_of,
    percent_ticks,
    refuse,
    titled,
    whole_ticks,
)
from foldwise.plot.colours import Colouring
from foldwise.plot.labels import place_labels
from foldwise.report.cluster_parts import filled_from_centres
from foldwise.report.formats import percent
from foldwise.report.of import rows_for
from foldwise.report.run_header import column_names
from foldwise.selection.explore.result import Exploration

_MOST_POINTS = 20_000
_RASTER = 2_000  # points beyond which a vector file would be large
_MOST_COLUMNS = 40
_MOST_BARS = 40


def _pca_of(given: Any, function: str) -> PCA:
    model = part_of(given, "pca")
    if not isinstance(model, PCA):
        raise refuse(function, given, "a fitted fw.PCA, or what fw.explore found")
    _check_fitted(model)
    return model


def _check_fitted(model: Any) -> None:
    from sklearn.utils.validation import check_is_fitted

    check_is_fitted(model)


def scree(model: Any, ax: Any = None) -> Any:
    """The share of the variance that each component explains (bars), and all up to it (line).

    A dashed line ends the components that a rule, or most of several rules, keeps.
    """
    pca = _pca_of(model, "scree")
    kept = model.n_components if isinstance(model, Exploration) else None if pca.rank_ is None else pca.rank_.chosen
    shares = np.asarray(pca.explained_variance_ratio_, dtype=np.float64)
    shown = shares[:_MOST_BARS]
    ax, places = axes(ax), np.arange(1, len(shown) + 1)
    ax.bar(places, shown, color=BLUE, width=0.7, label="each component")
    ax.plot(places, np.cumsum(shown), color=ORANGE, marker="o", markersize=3.5, linewidth=1.6, label="cumulative")
    if kept and kept < len(shown):
        ax.axvline(kept + 0.5, color=MUTED, linestyle="--", linewidth=1)
        ax.annotate(f" {kept} kept", (kept + 0.5, 1.0), color=INK, fontsize=9, va="bottom", annotation_clip=False)
    whole_ticks(ax.xaxis)
    percent_ticks(ax.yaxis)
    ax.set_ylim(0, 1.04)
    ax.set_xlim(0.4, max(len(shown), 1) + 0.6)
    ax.grid(axis="y", color=FAINT, linewidth=0.6)
    ax.set_axisbelow(True)
    ax.legend(frameon=False, fontsize=9, loc="center right")
    more = f" (the first {len(shown)} of {len(shares)})" if len(shares) > len(shown) else ""
    return titled(ax, f"Variance explained{more}", "component", "share of the variance")


def scores(model: Any, X: Any = None, color: Any = None, components: tuple[int, int] = (0, 1), ax: Any = None) -> Any:
    """The rows on two components, in equal units on both axes.

    `model` is a fitted PCA, a model of clusters (whose rows are drawn on their own principal components, in the colours of
    the clusters), or what `fw.explore` found. `X` are the rows, by default those of the fit; `color` has one value for each
    row (clusters, categories or numbers), or is the name of a column of the frame `X`. Of more than 20,000 rows, a random
    sample is drawn, and the title says so.
    """
    return _draw_rows(_rows(model, X, color, components, "scores"), ax)


@dataclass(frozen=True)
class _Rows:
    """Rows in a plane: their places and colours, the names of the axes, and how many rows there are in all."""

    places: Floats
    colours: Colouring
    names: tuple[str, str]
    total: int
    blank: int = 0  # rows of which nothing is known, and which are not drawn


def _draw_rows(rows: _Rows, ax: Any, fade: float = 1.0) -> Any:
    places, colours, total = rows.places, rows.colours, rows.total
    if len(places) > _MOST_POINTS:
        few = np.sort(np.random.default_rng(0).permutation(len(places))[:_MOST_POINTS])
        places, colours = places[few], colours.some(few)
    ax, many = axes(ax, 6.8, 5.4), len(places)
    size = 18 if many <= 500 else 9 if many <= _RASTER else 3
    alpha = (0.75 if many <= _RASTER else 0.5) * fade
    look = {"s": size, "alpha": alpha, "linewidths": 0, "rasterized": many > _RASTER, "zorder": 2}
    for line in (ax.axhline, ax.axvline):
        line(0.0, color=FAINT, linewidth=0.8, zorder=1)
    colours.draw(ax, places[:, 0], places[:, 1], **look)
    ax.set_aspect("equal", adjustable="datalim")
    known = total - rows.blank
    sample = f"{many:,} of {total:,} rows, drawn at random" if many < known else f"{many:,} rows"
    sample += f"; {rows.blank:,} without any value left out" if rows.blank else ""
    return titled(ax, sample, *rows.names)


def _rows(model: Any, X: Any, color: Any, components: tuple[int, int], function: str) -> _Rows:
    """The rows that are to be drawn."""
    if isinstance(model, Exploration) and X is None and model.points is not None:
        points, pca = model.points, model.pca
        _check_components(components, min(points.scores.shape[1], pca.n_components_))
        found = Colouring.of(color, None, len(points.rows))
        if color is None and model.n_clusters not in (None, 1):
            found = Colouring(np.asarray(points.labels), "cluster")
        return _Rows(
            points.scores[:, list(components)], found, _axis_names(pca, components), points.total, points.blank
        )
    fitted = part_of(model, "pca")
    own = None
    if isinstance(fitted, PCA):
        _check_fitted(fitted)
        _check_components(components, fitted.n_components_)
        places = np.asarray(fitted.transform(rows_for(fitted) if X is None else X))
        pca = fitted
    else:
        pca, places, own = _of_clusters(fitted, X, components, function)
    found = Colouring.of(color, X, len(places))
    if color is None and own is not None:
        found = Colouring(own, "cluster")
    return _Rows(places[:, list(components)], found, _axis_names(pca, components), len(places))


def _of_clusters(model: Any, X: Any, components: tuple[int, int], function: str) -> tuple[PCA, Floats, Any]:
    """Rows as a model of clusters compares them, on their principal components, and their clusters."""
    if not hasattr(model, "as_compared") or not hasattr(model, "predict"):
        raise refuse(
            function, model, "a fitted fw.PCA, a model of clusters such as fw.KMeans, or what fw.explore found"
        )
    _check_fitted(model)
    source = rows_for(model, X)
    labels = np.asarray(model.labels_ if hasattr(model, "labels_") else model.predict(source))
    compared = model.as_compared(filled_from_centres(model, source, labels))
    most = min(max(components) + 1, source.n_columns)
    _check_components(components, source.n_columns)
    pca = PCA(most, n_threads=model.n_threads).fit(compared)
    return pca, np.asarray(pca.transform(compared)), labels


def _check_components(components: tuple[int, int], most: int) -> None:
    try:
        first, second = components
        fine = 0 <= int(first) < most and 0 <= int(second) < most
    except (TypeError, ValueError):
        fine = False
    if not fine:
        raise ParameterError(
            f"components={components!r}: give two numbers from 0 to {most - 1}, as the model has {most} component"
            f"{'s' * (most != 1)}."
        )


def _axis_names(pca: Any, components: tuple[int, int]) -> tuple[str, str]:
    names, shares = pca.get_feature_names_out(), pca.explained_variance_ratio_
    first, second = (f"{names[j]} ({percent(shares[j])})" for j in components)
    return first, second


def biplot(
    model: Any, X: Any = None, color: Any = None, components: tuple[int, int] = (0, 1), most: int = 12, ax: Any = None
) -> Any:
    """The rows on two components, and the columns as arrows: the longer, the more a column has to do with them.

    Of many columns, the `most` with the longest arrows are drawn. Arrows have their own scale: only their directions, and
    their lengths among each other, mean something.
    """
    pca = _pca_of(model, "biplot")
    ax = _draw_rows(_rows(model, X, color, components, "biplot"), ax, 0.6)
    loads, names = np.asarray(pca.loadings_)[:, list(components)], column_names(pca)
    strongest = np.argsort(-np.hypot(*loads.T), kind="stable")[:most]
    longest = float(np.hypot(*loads[strongest].T).max(initial=0.0))
    if longest > 0:
        far = np.abs(ax.dataLim.get_points())  # of the rows
        ends = loads[strongest] / longest * 0.9 * float(far.min(axis=0).max())
        ax.update_datalim(ends * [1.35, 1.2])  # room for the names
        ax.autoscale_view()
        for x, y in ends:
            arrow = {
                "arrowstyle": "-|>",
                "color": ORANGE,
                "linewidth": 1.2,
                "shrinkA": 0,
                "shrinkB": 0,
                "mutation_scale": 9,
            }
            ax.annotate("", (x, y), (0.0, 0.0), arrowprops=arrow, zorder=3)
        place_labels(ax, ends, [cut(names[j]) for j in strongest], INK)
    left = len(names) - len(strongest)
    more = f"; arrows: {len(strongest)} of {len(names)} columns" if left > 0 else "; arrows: columns"
    ax.set_title(f"{ax.get_title(loc='left')}{more}", loc="left", fontsize=11, fontweight="bold", color=INK)
    return ax


def loadings(model: Any, components: Any = None, ax: Any = None) -> Any:
    """How much each column has to do with each component, as a table of colours with the figures in it.

    `components` are the numbers of those to show, by default the first eight. Of more than 40 columns, those with the
    largest loadings are shown, in their order.
    """
    pca = _pca_of(model, "loadings")
    chosen = list(range(min(8, pca.n_components_))) if components is None else list(components)
    if not chosen or not all(0 <= int(j) < pca.n_components_ for j in chosen):
        raise ParameterError(f"components={components!r}: give numbers from 0 to {pca.n_components_ - 1}.")
    values, names = np.asarray(pca.loadings_)[:, chosen], column_names(pca)
    rows = np.arange(len(names))
    if len(rows) > _MOST_COLUMNS:
        rows = np.sort(np.argsort(-np.abs(values).max(axis=1), kind="stable")[:_MOST_COLUMNS])
    heads = [str(pca.get_feature_names_out()[j]) for j in chosen]
    more = f" ({len(rows)} of {len(names)} columns)" if len(rows) < len(names) else ""
    return heat_table(values[rows], [names[j] for j in rows], heads, f"Loadings{more}", ax)


def heat_table(values: Floats, rows: list[str], columns: list[str], title: str, ax: Any) -> Any:
    """A table of colours, orange below and blue above zero as on pages, with figures or, if these are too many, a scale."""
    wide, tall = 2.4 + 0.75 * len(columns), 1.0 + 0.27 * len(rows)
    ax = axes(ax, min(max(wide, 4.4), 12), min(max(tall, 2.0), 12))
    from matplotlib.colors import LinearSegmentedColormap

    reach = float(np.nanmax(np.abs(values), initial=0.0)) or 1.0
    shades = LinearSegmentedColormap.from_list("foldwise", ["#c8501b", "#f6b48a", "#f7f7f7", "#a6cbe3", "#2166ac"])
    image = ax.imshow(
        values,
        cmap=shades.with_extremes(bad="#ffffff"),
        vmin=-reach,
        vmax=reach,
        aspect="auto",
        interpolation="nearest",
    )
    ax.set_xticks(
        range(len(columns)),
        [cut(name) for name in columns],
        rotation=0 if _short(columns) else 35,
        ha="center" if _short(columns) else "right",
    )
    ax.set_yticks(range(len(rows)), [cut(name, 30) for name in rows])
    ax.tick_params(length=0)
    for spine in ax.spines.values():
        spine.set_visible(False)
    if values.size <= 400:
        for (i, j), value in np.ndenumerate(values):
            dark = abs(value) > 0.72 * reach
            if value == value:
                ax.text(j, i, f"{value:.2f}", ha="center", va="center", fontsize=8, color="white" if dark else INK)
    else:
        ax.figure.colorbar(image, ax=ax, shrink=0.8).outline.set_visible(False)
    return titled(ax, title)


def _short(names: list[str]) -> bool:
    return max((len(name) for name in names), default=0) <= 8
