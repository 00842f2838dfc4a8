"""The curve of the inertia in words and figures."""

from __future__ import annotations

import numpy as np

from foldwise.data.source import Source
from foldwise.report.cluster import in_units
from foldwise.report.run_header import counted
from foldwise.report.tables import percent, table
from foldwise.selection.curve import InertiaCurve


def summary(curve: InertiaCurve, source: Source) -> str:
    """The data, the table, and what it suggests."""
    parts = [header(curve, source), curve_table(curve), "\n".join(verdict(curve))]
    return "\n\n".join(parts) + "\n"


def header(curve: InertiaCurve, source: Source) -> str:
    """One line on the data, and what was left out."""
    rows = "" if source.n_rows is None else f"{counted(source.n_rows, 'row')}, "
    lines = [f"{source.where}: {rows}{counted(source.n_columns, 'column')} ({source.dtype.name})"]
    told = curve.parameters
    words = ["scaled columns"] if told.get("scale") else []
    words.append("k-means")
    words += ["cosine"] if told.get("metric") == "cosine" else []
    words += [f"{told['search']} search"] if told.get("search", "none") != "none" else []
    lines.append(", ".join([*words, f"{curve.n_clusters[0]} to {curve.n_clusters[-1]} clusters"]))
    if source.left_out:
        lines.append(f"left out, not numbers: {', '.join(source.left_out)}")
    return "\n".join(lines)


def curve_table(curve: InertiaCurve) -> str:
    """One line for each number of clusters."""
    before = np.append(np.nan, curve.inertias[:-1])
    fall = 1.0 - np.divide(curve.inertias, before, out=np.full(len(before), np.nan), where=before > 0)
    best = best_silhouette(curve)
    inertias = in_units(curve.inertias, float(curve.inertias.max()) / 1000)
    lines = [
        [
            str(k),
            inertias[i],
            "" if np.isnan(fall[i]) else f"-{percent(float(fall[i]))}",
            "" if np.isnan(curve.silhouettes[i]) else f"{curve.silhouettes[i]:.2f}",
            ", ".join(["knee"] * (k == curve.knee) + ["best silhouette"] * (k == best)),
        ]
        for i, k in enumerate(curve.n_clusters)
    ]
    return table(["clusters", "inertia", "change", "silhouette", ""], lines, left=(4,))


def best_silhouette(curve: InertiaCurve) -> int | None:
    """The number of clusters with the largest mean silhouette."""
    some = ~np.isnan(curve.silhouettes)
    return curve.n_clusters[int(np.nanargmax(curve.silhouettes))] if some.any() else None


def verdict(curve: InertiaCurve) -> list[str]:
    """What the curve suggests, and how far to trust it."""
    if curve.knee is None:
        return ["knee: none (it takes at least three numbers, and a curve that bends)"]
    lines = [f"knee: {curve.knee} (where the curve lies farthest below the straight line between its ends)"]
    best = best_silhouette(curve)
    if best is not None and best != curve.knee:
        lines.append(f"the mean silhouette is largest at {best}: look at both")
    lines.append("knee and silhouette are rules of thumb: they name a number even where there are no clusters")
    return lines
