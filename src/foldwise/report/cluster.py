"""Fitted clusters in words and figures."""

from __future__ import annotations

from typing import Any

import numpy as np

from foldwise.data.block import Floats
from foldwise.report import run_header
from foldwise.report.run_header import column_names, counted
from foldwise.report.tables import number, percent, table
from foldwise.selection.mixture_profile import MixtureProfile
from foldwise.selection.profile import Profile

_MOST_LINES = 40
_MOST_COLUMNS = 20  # of the data, as lines of the table of centres
_FEW = 8  # clusters that fit side by side
_WIDTH = 116
_TRAITS = 4
_LEAST = 0.25  # standard deviations: a smaller difference does not set a cluster apart


def summary(model: Any, found: Profile) -> str:
    """What ran, the clusters, what sets them apart, and their centres in the units of the data."""
    parts = [header(model), overall(model, found), clusters_table(model, found), centres_table(model, found)]
    parts.append("\n".join(hints(model, found)))
    return "\n\n".join(part for part in parts if part) + "\n"


def header(model: Any) -> str:
    """What ran."""
    words = [model.manifest_.algorithm]
    if model.metric == "cosine":
        words.append("cosine")
    if model.search != "none":
        words.append(f"{model.search} search")
    words.append(counted(model.outcome_.steps, "iteration"))
    if model.outcome_.converged:
        words.append("converged")
    return run_header.header(model, ", ".join(words))


def overall(model: Any, found: Profile) -> str:
    """Inertia and silhouette, and what they mean."""
    units = " of scaled columns" if model.scale_ is not None else ""
    if model.metric == "cosine":
        cosine = 1.0 - model.inertia_ / (2.0 * found.weights.sum())
        lines = [f"inertia     {number(model.inertia_)} (mean cosine of a row with its centre: {cosine:.3f})"]
    else:
        lines = [
            f"inertia     {number(model.inertia_)}{units} ({percent(found.between)} of the variance is between clusters)"
        ]
    if found.silhouette is not None:
        lines.append(
            f"silhouette  {found.silhouette:.2f} (of squared distances: 1 is far apart, 0 is between two clusters)"
        )
    return "\n".join(lines)


def clusters_table(model: Any, found: Profile) -> str:
    """Sizes, spreads, silhouettes and traits, aligned."""
    names, weighted = column_names(model), bool((found.rows != found.weights).any())
    head = ["cluster", "rows", *(["weight"] if weighted else []), "share", "spread", "silhouette", "what sets it apart"]
    lines = []
    for i in range(min(model.n_clusters, _MOST_LINES)):
        line = [str(i), f"{found.rows[i]:,}"]
        if weighted:
            line.append(number(float(found.weights[i])))
        line += [percent(share(found, i)), figure(found.spreads[i]), two_digits(found.silhouettes[i])]
        lines.append([*line, traits(found.differences[i], names)])
    text = table(head, lines, left=(0, len(head) - 1))
    hidden = model.n_clusters - len(lines)
    note = "(differences of the cluster's mean from that of all rows, in standard deviations)"
    return "\n".join([text, *([f"... and {hidden} more"] if hidden > 0 else []), note])


def share(found: Profile | MixtureProfile, cluster: int) -> float:
    """A cluster's share of the rows, by weight."""
    return float(found.weights[cluster] / found.weights.sum())


def figure(value: float) -> str:
    """Three digits.

    >>> figure(2.0937), figure(1234.5), figure(float("nan"))
    ('2.09', '1,234', '-')
    """
    if np.isnan(value):
        return "-"
    size = abs(value)
    if size == 0 or 1e-3 <= size < 100:
        return f"{value:.{2 if size < 10 else 1}f}" if size == 0 or size >= 0.1 else f"{value:.3g}"
    return f"{value:,.0f}" if 100 <= size < 1e7 else f"{value:.2e}"


def two_digits(value: float) -> str:
    """A silhouette."""
    return "-" if np.isnan(value) else f"{value:.2f}"


def strongest(differences: Floats, most: int = _TRAITS) -> list[int]:
    """The columns in which a cluster differs most, as far as it differs at all."""
    if np.isnan(differences).any():
        return []
    order = np.argsort(-np.abs(differences), kind="stable")[:most]
    return [int(j) for j in order if abs(differences[j]) >= _LEAST]


def traits(differences: Floats, names: list[str]) -> str:
    """What sets a cluster apart.

    >>> traits(np.array([1.24, 0.01, -0.9]), ["alcohol", "ash", "hue"])
    'alcohol +1.2, hue -0.9'
    """
    if np.isnan(differences).any():
        return "(empty)"
    return ", ".join(f"{names[j]} {differences[j]:+.1f}" for j in strongest(differences)) or "(near the mean of all)"


# -------------------------------------------------------------------- centres


def centres_table(model: Any, found: Profile | MixtureProfile) -> str:
    """Means in the units of the data: columns as lines if the clusters fit side by side, else clusters as lines."""
    names, clusters = column_names(model), len(found.means)
    side_by_side = clusters <= _FEW
    chosen = _columns_to_show(found, names, _MOST_COLUMNS if side_by_side else None)
    cells = {j: in_units(np.append(found.means[:, j], found.mean[j]), float(found.deviation[j])) for j in chosen}
    if side_by_side:
        head = ["mean of cluster", *(str(i) for i in range(clusters)), "all"]
        text = table(head, [[names[j], *cells[j]] for j in chosen])
    else:
        shown = min(clusters, _MOST_LINES)
        lines = [[str(i), *(cells[j][i] for j in chosen)] for i in range(shown)]
        text = table(["cluster", *(names[j] for j in chosen)], [*lines, ["all", *(cells[j][-1] for j in chosen)]])
    hidden = len(names) - len(chosen)
    if hidden:
        text += f"\n({counted(hidden, 'column')} that differ less between the clusters are not shown)"
    return text


def _columns_to_show(found: Profile | MixtureProfile, names: list[str], most: int | None) -> list[int]:
    """The columns that differ most between clusters, in their own order; without a number, as many as fit a line."""
    order = [int(j) for j in np.argsort(-found.separation, kind="stable")]
    if most is None:
        most, room = 0, _WIDTH - len("cluster")
        while most < len(order) and room >= (need := 2 + max(8, len(names[order[most]]))):
            room, most = room - need, most + 1
        most = max(most, 1)
    return sorted(order[:most])


def in_units(values: Floats, deviation: float) -> list[str]:
    """Values of one column with as many decimals as its deviation calls for.

    >>> in_units(np.array([13.7447, 12.25]), 0.81), in_units(np.array([1115.7, 519.5]), 314.0)
    (['13.74', '12.25'], ['1,116', '520'])
    """
    size = float(np.nanmax(np.abs(values), initial=0.0))
    decimals = int(np.ceil(1.3 - np.log10(deviation))) if 0 < deviation < np.inf else 2
    if size >= 1e9 or decimals > 6 or (size > 0 and size < 1e-4):
        return ["-" if np.isnan(value) else number(float(value)) for value in values]
    rounded = np.round(values, max(decimals, 0)) + 0.0  # no -0.0
    return ["-" if np.isnan(value) else f"{value:,.{max(decimals, 0)}f}" for value in rounded]


def hints(model: Any, found: Profile) -> list[str]:
    """What to try next."""
    lines = []
    largest, least = found.deviation.max(initial=0.0), found.deviation.min(initial=np.inf, where=found.deviation > 0)
    if model.scale_ is None and model.metric == "euclidean" and largest > 10 * least:
        names = column_names(model)
        wide = names[int(np.argmax(found.deviation))]
        lines.append(
            f"hint: distances are mostly {wide}, whose spread is the largest; --scale lets columns count alike"
        )
    if model.search == "none" and model.n_clusters > 1:
        lines.append("hint: --search breathing often finds a lower inertia")
    if model.n_clusters > 1 and len(model.labels_) > 3:
        most = min(max(10, model.n_clusters + 4), len(model.labels_) - 1)
        lines.append(f"hint: -k 2:{most} shows other numbers of clusters")
    return lines
