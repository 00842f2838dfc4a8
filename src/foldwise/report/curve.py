"""The report on the curve of the inertia: how many clusters?"""

from __future__ import annotations

import numpy as np

from foldwise.data.source import Source
from foldwise.models.kmeans.geometry import GEOMETRIES
from foldwise.report.charts import curve_chart
from foldwise.report.cluster import SILHOUETTE
from foldwise.report.formats import counted, in_units, percent
from foldwise.report.run_header import left_out, told
from foldwise.report.values import Chart, Column, Group, Note, Report, Table
from foldwise.selection.curve import InertiaCurve


def curve_report(curve: InertiaCurve, source: Source) -> Report:
    """The data, one row for each number of clusters, and what it suggests."""
    some = ~np.isnan(curve.silhouettes)
    best = curve.n_clusters[int(np.nanargmax(curve.silhouettes))] if some.any() else None
    before = np.append(np.nan, curve.inertias[:-1])
    change = np.divide(curve.inertias, before, out=np.full(len(before), np.nan), where=before > 0) - 1.0
    marks = [", ".join(["knee"] * (k == curve.knee) + ["best silhouette"] * (k == best)) for k in curve.n_clusters]
    numbers = Table(
        "Numbers of clusters",
        [
            Column("clusters", curve.n_clusters),
            Column("inertia", curve.inertias.tolist(), in_units(curve.inertias, float(curve.inertias.max()) / 1000)),
            Column("change", change.tolist(), percent),
            Column("silhouette", curve.silhouettes.tolist(), "{:.2f}".format),
            Column("", marks, left=True),
        ],
        most=1000,
    )
    inertia = Chart(
        "Inertia",
        lambda: curve_chart(curve.n_clusters, curve.inertias, curve.knee, "knee", chord=True),
        "Dashed: the straight line between the ends. The knee is where the curve lies farthest below it.",
    )
    known = [k for k, judged in zip(curve.n_clusters, some, strict=True) if judged]

    def silhouettes() -> str | None:
        values = curve.silhouettes[some]
        return curve_chart(known, values, best, "largest", chord=False, height=220) if len(known) > 1 else None

    silhouette = Chart("Mean silhouette", silhouettes, f"{SILHOUETTE.capitalize()}{_estimated(curve)}.")
    verdict = Note("\n".join(_verdict(curve, best)))
    parts = [Group([inertia, silhouette]), Group([numbers, verdict])]
    return Report("How many clusters?", _about(curve, source), parts=parts, data=told(source))


def _about(curve: InertiaCurve, source: Source) -> list[str]:
    rows = "" if source.n_rows is None else f"{counted(source.n_rows, 'row')}, "
    given = curve.parameters
    words = [*(["scaled columns"] if given.get("scale") else []), "k-means"]
    label = GEOMETRIES[given.get("metric", "euclidean")].label
    words += [label] if label else []
    words += [f"{given['search']} search"] if given.get("search", "none") != "none" else []
    work = ", ".join([*words, f"{curve.n_clusters[0]} to {curve.n_clusters[-1]} clusters"])
    size = f"{rows}{counted(source.n_columns, 'column')} ({source.dtype.name})"
    if getattr(source, "recipe", None) is not None:  # the lines before tell what was read
        return [f"in the fits: {size}", work]
    return [f"{source.where}: {size}", work, *left_out(source.left_out)]


def _estimated(curve: InertiaCurve) -> str:
    """The remark on silhouettes that were estimated from a sample."""
    largest = float(np.nanmax(curve.silhouette_errors, initial=0.0))
    return f", estimated from a sample of rows, standard errors up to {largest:.1g}" if largest > 0 else ""


def _verdict(curve: InertiaCurve, best: int | None) -> list[str]:
    """What the curve suggests, and how far to trust it."""
    lines = ["interrupted: only finished numbers of clusters are listed"] if curve.interrupted else []
    if estimate := _estimated(curve):
        lines.append(f"silhouettes are{estimate.lstrip(',')}")
    if curve.knee is None:
        return [*lines, "knee: none (that takes at least three numbers of clusters, and a curve that bends)"]
    lines.append(f"knee: {curve.knee} (where the curve lies farthest below the straight line between its ends)")
    if best is not None and best != curve.knee:
        lines.append(f"the mean silhouette is largest at {best}: look at both")
    return [*lines, "knee and silhouette are rules of thumb: they give a number even where there are no clusters"]
