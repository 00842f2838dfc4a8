"""Fitted clusters, or the curve of the inertia, as one self-contained page: no script, nothing loaded from elsewhere."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from foldwise.data.source import Source
from foldwise.report.charts import numbers_chart, trace_chart
from foldwise.report.cluster import centres_table, figure, header, share, traits, two_digits
from foldwise.report.curve import best_silhouette, curve_table, verdict
from foldwise.report.curve import header as curve_header
from foldwise.report.page import write_page
from foldwise.report.projection import panels, plane
from foldwise.report.run_header import column_names, counted, manifest_lines
from foldwise.report.scatter_plot import Cloud
from foldwise.report.svg_primitives import colour
from foldwise.report.tables import number, percent
from foldwise.selection.curve import InertiaCurve
from foldwise.selection.profile import Profile

_MOST_LINES = 60
_MOST_PANELS = 24
_BARS = 6
_MOST_COLUMNS = 8


def write_cluster_page(model: Any, source: Source, found: Profile, path: str | os.PathLike[str]) -> str:
    """Write the page; the rows, which must be those of the fit, are passed over a few times more for their picture."""
    names, k = column_names(model), model.n_clusters
    plane, seen = _plane(model, source)
    return write_page(
        path,
        "cluster.html",
        title=f"{counted(k, 'cluster')} of {counted(model.manifest_.rows, 'row')}",
        header=header(model).splitlines(),
        figures=_figures(model, found),
        lines=[_line(found, i, names) for i in range(min(k, _MOST_LINES))],
        hidden=k - _MOST_LINES,
        weighted=bool((found.rows != found.weights).any()),
        units=", in scaled columns" if model.scale_ is not None else "",
        plane=plane,
        plane_note=_plane_note(model, seen),
        trace=trace_chart(model.trace_, k),
        trace_note=_trace_note(model),
        separation=_separation(found, names),
        columns_hidden=len(names) - _MOST_COLUMNS,
        panels=panels(found, names, _MOST_PANELS, _BARS),
        panels_hidden=k - _MOST_PANELS,
        centres=centres_table(model, found),
        manifest=manifest_lines(model.manifest_),
    )


def write_curve_page(curve: InertiaCurve, source: Source, path: str | os.PathLike[str]) -> str:
    """Write the page of a curve."""
    return write_page(
        path,
        "curve.html",
        header=curve_header(curve, source).splitlines(),
        chart=numbers_chart(
            curve.n_clusters, [float(value) for value in curve.inertias], curve.knee, "knee", chord=True
        ),
        silhouettes=_silhouettes(curve),
        table=curve_table(curve),
        verdict=verdict(curve),
    )


def _silhouettes(curve: InertiaCurve) -> str | None:
    known = [
        (k, float(value)) for k, value in zip(curve.n_clusters, curve.silhouettes, strict=True) if not np.isnan(value)
    ]
    if len(known) < 2:
        return None
    ks, values = zip(*known, strict=True)
    return numbers_chart(ks, values, best_silhouette(curve), "largest", chord=False, height=220)


def _figures(model: Any, found: Profile) -> list[dict[str, str]]:
    shown = [{"value": number(model.inertia_), "what": "inertia"}]
    if model.metric == "euclidean":
        shown.append({"value": percent(found.between), "what": "of the variance between clusters"})
    if found.silhouette is not None:
        shown.append({"value": f"{found.silhouette:.2f}", "what": "mean silhouette"})
    return [*shown, {"value": str(model.outcome_.reason), "what": f"after {counted(model.outcome_.steps, 'step')}"}]


def _line(found: Profile, cluster: int, names: list[str]) -> dict[str, Any]:
    largest = float(found.weights.max())
    return {
        "number": cluster,
        "colour": colour(cluster),
        "rows": f"{found.rows[cluster]:,}",
        "weight": number(float(found.weights[cluster])),
        "share": percent(share(found, cluster)),
        "width": f"{100 * found.weights[cluster] / largest:.0f}",
        "spread": figure(found.spreads[cluster]),
        "silhouette": two_digits(found.silhouettes[cluster]),
        "traits": traits(found.differences[cluster], names),
    }


def _separation(found: Profile, names: list[str]) -> list[dict[str, str]]:
    order = np.argsort(-found.separation, kind="stable")[:_MOST_COLUMNS]
    return [
        {
            "name": names[j],
            "share": percent(float(found.separation[j])),
            "width": f"{100 * max(0.0, float(found.separation[j])):.0f}",
        }
        for j in order
    ]


def _plane(model: Any, source: Source) -> tuple[str | None, int]:
    """The rows with the centres."""
    drawn = plane(model, source, model.labels_, model.n_clusters)
    if drawn is None:
        return None, 0
    centres = drawn.place(model.cluster_centers_.astype(np.float64))
    few = centres if model.n_clusters <= _MOST_LINES else None
    return drawn.cloud.draw([], drawn.labels, centres=few), drawn.cloud.rows


def _plane_note(model: Any, rows: int) -> str:
    what = (
        "Each point is a row"
        if rows <= Cloud.MOST_POINTS
        else "Darker is more rows; the colour is that of most of them"
    )
    again = " Colours repeat from cluster 8 on: go by the numbers." if model.n_clusters > 8 else ""
    return f"{what}. Numbered rings are the centres.{again}"


def _trace_note(model: Any) -> str:
    words = "The inertia after every step."
    if model.search == "breathing":
        return (
            f"{words} Grey: with more centres than asked for, on the way out of a bad solution. Dots: ends of attempts."
        )
    return words
