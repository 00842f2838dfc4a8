"""Fitted clusters, or the curve of the inertia, as one self-contained page: no script, nothing loaded from elsewhere."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from numpy.typing import NDArray

from foldwise.data.block import Block
from foldwise.data.source import Source
from foldwise.fold.run import Run
from foldwise.models.pca import PCA
from foldwise.report.charts import difference_bars, numbers_chart, trace_chart
from foldwise.report.cluster import centres_table, figure, header, share, strongest, traits, two_digits
from foldwise.report.curve import best_silhouette, curve_table, verdict
from foldwise.report.curve import header as curve_header
from foldwise.report.marks import colour
from foldwise.report.page import write_page
from foldwise.report.ran import column_names, counted, manifest_lines
from foldwise.report.svg import Cloud
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
        panels=_panels(found, names),
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
        chart=numbers_chart(curve.ks, [float(value) for value in curve.inertias], curve.knee, "knee", chord=True),
        silhouettes=_silhouettes(curve),
        table=curve_table(curve),
        verdict=verdict(curve),
    )


def _silhouettes(curve: InertiaCurve) -> str | None:
    known = [(k, float(value)) for k, value in zip(curve.ks, curve.silhouettes, strict=True) if not np.isnan(value)]
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


def _panels(found: Profile, names: list[str]) -> list[dict[str, Any]]:
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


def _plane(model: Any, source: Source) -> tuple[str | None, int]:
    """The rows, as the model compares them, on their first two principal components."""
    compared = model.as_compared(source)
    if source.n_columns < 2 or len(model.labels_) < 2:
        return None, 0
    pca = PCA(2, n_threads=model.n_threads).fit(compared)
    directions = np.asarray(pca.components_, dtype=np.float64)
    run = Run(compared, n_threads=model.n_threads)

    def scores(block: Block) -> NDArray[np.float64]:
        return block.times(directions.T, pca.mean_)

    def labelled(block: Block) -> tuple[NDArray[np.float64], NDArray[np.int32]]:
        return scores(block), model.labels_[block.start : block.start + block.n_rows]

    reach = 2.8 * np.sqrt(pca.explained_variance_)
    if len(model.labels_) <= Cloud.MOST_POINTS:
        reach = 1.03 * np.abs(run.rows(scores)).max(axis=0)
    cloud = Cloud(float(reach[0]), float(reach[1]), groups=model.n_clusters)
    run.in_order(labelled, lambda told: cloud.add(*told))
    centres = (model.cluster_centers_.astype(np.float64) - pca.mean_) @ directions.T
    labels = [f"component {i} ({percent(float(ratio))})" for i, ratio in enumerate(pca.explained_variance_ratio_)]
    few = centres if model.n_clusters <= _MOST_LINES else None
    return cloud.draw([], (labels[0], labels[1]), centres=few), cloud.rows


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
