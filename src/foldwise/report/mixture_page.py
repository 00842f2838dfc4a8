"""A fitted mixture as one self-contained page: no script, nothing loaded from elsewhere."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from foldwise.data.source import Source
from foldwise.report.charts import histogram, lines_chart
from foldwise.report.cluster import centres_table, share, traits
from foldwise.report.mixture import header, merging_text, sureness
from foldwise.report.page import write_page
from foldwise.report.projection import panels, plane
from foldwise.report.run_header import column_names, counted, manifest_lines
from foldwise.report.scatter_plot import Cloud
from foldwise.report.svg_primitives import colour
from foldwise.report.tables import number, percent
from foldwise.selection.choose_mixture import MixtureChoice
from foldwise.selection.mixture_profile import MixtureProfile

_MOST_LINES = 60
_MOST_PANELS = 24
_BARS = 6


def write_mixture_page(
    model: Any,
    source: Source,
    found: MixtureProfile,
    choice: MixtureChoice | None,
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
        panels=panels(found, names, _MOST_PANELS, _BARS),
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


def _chart(choice: MixtureChoice | None) -> str | None:
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
    """The rows with the ellipses of the mixture's components and the numbers of the clusters."""
    drawn = plane(model, source, found.labels, len(found.means))
    if drawn is None:
        return None, 0
    k = len(model.weights_)
    of = np.asarray(getattr(model, "clusters_", np.arange(k)))
    matrices = model.covariance_matrices()
    ellipses = [(drawn.place(model.means_[j]), drawn.seen(matrices[j]), int(of[j])) for j in range(min(k, _MOST_LINES))]
    means = [
        np.average(model.means_[of == i], axis=0, weights=model.weights_[of == i]) for i in range(int(of.max()) + 1)
    ]
    centres = drawn.place(np.array(means[:_MOST_LINES]))
    return drawn.cloud.draw([], drawn.labels, centres=centres, ellipses=ellipses), drawn.cloud.rows


def _plane_note(rows: int, k: int) -> str:
    what = (
        "Each point is a row"
        if rows <= Cloud.MOST_POINTS
        else "Darker is more rows; the colour is that of most of them"
    )
    again = " Colours repeat from cluster 8 on: go by the numbers." if k > 8 else ""
    return f"{what}. Ellipses: two standard deviations of each Gaussian, as seen in this plane.{again}"
