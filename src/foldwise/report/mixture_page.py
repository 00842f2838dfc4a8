"""A fitted mixture as one self-contained page: no script, nothing loaded from elsewhere."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from numpy.typing import NDArray

from foldwise.data.block import Block
from foldwise.data.source import Source
from foldwise.fold.run import Run
from foldwise.models.pca import PCA
from foldwise.report.charts import difference_bars, histogram, lines_chart
from foldwise.report.cluster import centres_table, share, strongest, traits
from foldwise.report.marks import colour
from foldwise.report.mixture import header, merging_text, sureness
from foldwise.report.page import write_page
from foldwise.report.ran import column_names, counted, manifest_lines
from foldwise.report.svg import Cloud
from foldwise.report.tables import number, percent
from foldwise.selection.mixture import MixtureSelection
from foldwise.selection.mixture_profile import MixtureProfile

_MOST_LINES = 60
_MOST_PANELS = 24
_BARS = 6


def write_mixture_page(
    model: Any,
    source: Source,
    found: MixtureProfile,
    choice: MixtureSelection | None,
    path: str | os.PathLike[str],
) -> str:
    """Write the page; the rows, which must be those of the fit, are passed over a few times more for their picture."""
    names, k = column_names(model), len(found.means)
    plane, rows = _plane(model, source, found)
    return write_page(
        path,
        "mixture.html",
        title=f"{counted(k, 'cluster')} of {counted(model.manifest_.rows, 'row')}, by a mixture of Gaussians",
        header=header(model, choice).splitlines(),
        figures=_figures(found),
        lines=[_line(model, found, i, names) for i in range(min(k, _MOST_LINES))],
        hidden=k - _MOST_LINES,
        weighted=bool((found.rows != found.weights).any()),
        plane=plane,
        plane_note=_plane_note(rows, k),
        doubt=histogram(
            [float(v) for v in found.histogram / found.histogram.sum()], "probability of the row's cluster"
        ),
        choice=None if choice is None else str(choice),
        chart=_chart(choice),
        criterion="" if choice is None else choice.criterion.upper(),
        merging=merging_text(model),
        panels=_panels(found, names),
        panels_hidden=k - _MOST_PANELS,
        centres=centres_table(model, found),
        manifest=manifest_lines(model.manifest_),
    )


def _figures(found: MixtureProfile) -> list[dict[str, str]]:
    figures = found.criteria
    return [
        {"value": number(figures["bic"]), "what": "BIC"},
        {"value": number(figures["icl"]), "what": "ICL"},
        {
            "value": number(figures["log_likelihood"]),
            "what": f"log-likelihood, {int(figures['parameters'])} parameters",
        },
        {"value": percent(found.in_doubt), "what": "of the rows in doubt"},
    ]


def _line(model: Any, found: MixtureProfile, cluster: int, names: list[str]) -> dict[str, Any]:
    largest = float(found.weights.max())
    return {
        "number": cluster,
        "colour": colour(cluster),
        "rows": f"{found.rows[cluster]:,}",
        "weight": number(float(found.weights[cluster])),
        "share": percent(share(found, cluster)),
        "width": f"{100 * found.weights[cluster] / largest:.0f}",
        "sureness": sureness(found, cluster),
        "traits": traits(found.differences[cluster], names),
    }


def _panels(found: MixtureProfile, names: list[str]) -> list[dict[str, Any]]:
    """Bars of each cluster's largest differences, all on one scale."""
    panels = []
    reach = float(np.nanmax(np.abs(found.differences), initial=0.0))
    for i, differences in enumerate(found.differences[:_MOST_PANELS]):
        columns = strongest(differences, _BARS)
        bars = difference_bars([names[j] for j in columns], [float(differences[j]) for j in columns], reach, colour(i))
        rows = counted(int(found.rows[i]), "row")
        panels.append(
            {"number": i, "colour": colour(i), "rows": rows, "bars": bars if columns else "near the mean of all"}
        )
    return panels


def _chart(choice: MixtureSelection | None) -> str | None:
    if choice is None:
        return None
    grid = choice.grid()
    if len(grid.rows) < 2:
        return None
    collapsed = {(e.covariance_type, e.n_components) for e in choice.entries if e.collapsed}
    series = {
        kind: [
            float("nan") if (kind, int(row)) in collapsed else float(v)  # no more than a few rows speak from such a fit
            for row, v in zip(grid.rows, grid[kind], strict=True)
        ]
        for kind in grid.columns
    }
    best = (choice.best.covariance_type, choice.best.n_components)
    return lines_chart([int(row) for row in grid.rows], series, best, "number of components")


def _plane(model: Any, source: Source, found: MixtureProfile) -> tuple[str | None, int]:
    """The rows on their first two principal components, with the ellipses of the mixture's components."""
    compared = model.as_compared(source)
    if source.n_columns < 2 or len(found.labels) < 2:
        return None, 0
    pca = PCA(2, n_threads=model.n_threads).fit(compared)
    directions = np.asarray(pca.components_, dtype=np.float64)
    run = Run(compared, n_threads=model.n_threads)

    def scores(block: Block) -> NDArray[np.float64]:
        return block.times(directions.T, pca.mean_)

    def labelled(block: Block) -> tuple[NDArray[np.float64], NDArray[np.int32]]:
        return scores(block), found.labels[block.start : block.start + block.n_rows]

    reach = 2.8 * np.sqrt(pca.explained_variance_)
    if len(found.labels) <= Cloud.MOST_POINTS:
        reach = 1.03 * np.abs(run.rows(scores)).max(axis=0)
    cloud = Cloud(float(reach[0]), float(reach[1]), groups=len(found.means))
    run.in_order(labelled, lambda told: cloud.add(*told))
    k = len(model.weights_)
    clusters = getattr(model, "clusters_", None)
    matrices = model._family().each(model.covariances_, k)
    ellipses = [
        (
            (model.means_[j] - pca.mean_) @ directions.T,
            directions @ matrices[j] @ directions.T,
            j if clusters is None else int(clusters[j]),
        )
        for j in range(min(k, _MOST_LINES))
    ]
    labels = [f"component {i} ({percent(float(ratio))})" for i, ratio in enumerate(pca.explained_variance_ratio_)]
    of = np.arange(k) if clusters is None else np.asarray(clusters)
    means = [
        np.average(model.means_[of == i], axis=0, weights=model.weights_[of == i]) for i in range(int(of.max()) + 1)
    ]
    centres = (np.array(means[:_MOST_LINES]) - pca.mean_) @ directions.T
    return cloud.draw([], (labels[0], labels[1]), centres=centres, ellipses=ellipses), cloud.rows


def _plane_note(rows: int, k: int) -> str:
    what = (
        "Each point is a row"
        if rows <= Cloud.MOST_POINTS
        else "Darker is more rows; the colour is that of most of them"
    )
    again = " Colours repeat from cluster 8 on: go by the numbers." if k > 8 else ""
    return f"{what}. Ellipses: two standard deviations of each Gaussian, as seen in this plane.{again}"
