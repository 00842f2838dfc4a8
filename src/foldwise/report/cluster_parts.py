"""What reports on clusters share, whether by k-means or by a mixture: sizes, traits, means, and the plane of the rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from foldwise.data.block import Block, Floats
from foldwise.data.mapped import MappedSource
from foldwise.data.missing import allow_missing, incomplete_rows
from foldwise.data.source import Source
from foldwise.fold.passes import Passes
from foldwise.models.base import with_missing
from foldwise.models.impute import completed
from foldwise.models.pca import PCA
from foldwise.report.charts import difference_bars
from foldwise.report.formats import counted, in_units, number, percent, whole_percent
from foldwise.report.image_charts import mean_pictures
from foldwise.report.plane import MOST_POINTS
from foldwise.report.projection import Projection
from foldwise.report.svg import PALETTE, colour
from foldwise.report.text import WIDTH
from foldwise.report.values import Chart, Column, Fact, Group, Note, Part, Table
from foldwise.selection.describe import CategoryCounts, describe_clusters
from foldwise.selection.ensemble_profile import EnsembleProfile
from foldwise.selection.mixture_profile import MixtureProfile
from foldwise.selection.profile import Profile

AnyProfile: TypeAlias = Profile | MixtureProfile | EnsembleProfile

_MOST_SEPARATING = 6
MOST_MARKED = 60  # centres that are drawn in the plane
_MOST_COLUMNS = 20  # of the data, as rows of the table of means
_SIDE_BY_SIDE = 8  # clusters that fit beside each other
_MOST_PANELS = 24
_TRAITS, _BARS = 4, 6
_LEAST_ASSOCIATION = 0.1
_MOST_CATEGORIES, _MOST_SHOWN_LEVELS = 6, 6
_LEAST = 0.25  # standard deviations: a smaller difference does not set a cluster apart
_APART = "What sets it apart: cluster mean minus overall mean, in standard deviations."


def clusters_table(found: AnyProfile, names: list[str], figures: list[Column], caption: str) -> Table:
    """Sizes and traits of the clusters, with `figures` between them; without names of columns, no traits."""
    k, weighted = len(found.rows), bool((found.rows != found.weights).any())
    shares = found.weights / found.weights.sum()
    columns = [
        Column("cluster", range(k), left=True),
        Column("rows", found.rows.tolist(), "{:,}".format),
        *([Column("weight", found.weights.tolist(), number)] if weighted else []),
        Column("share", shares.tolist(), percent, bar=float(shares.max())),
        *figures,
    ]
    if names:
        cells = [traits(each, names) for each in found.differences]
        columns.append(Column("what sets it apart", cells, left=True))
        caption = f"{caption} {_APART}"
    return Table("The clusters", columns, caption, colours=[colour(i) for i in range(k)], wide=True)


def strongest(differences: Floats, most: int) -> list[int]:
    """The columns in which a cluster differs most, as far as it differs at all."""
    order = np.argsort(-np.abs(np.nan_to_num(differences)), kind="stable")[:most]
    return [int(j) for j in order if abs(differences[j]) >= _LEAST]


def traits(differences: Floats, names: list[str]) -> str:
    """What sets a cluster apart.

    >>> traits(np.array([1.24, 0.01, -0.9]), ["alcohol", "ash", "hue"])
    'alcohol +1.2, hue -0.9'
    """
    if np.isnan(differences).all():
        return "(empty)"
    listed = strongest(differences, _TRAITS)
    return ", ".join(f"{names[j]} {differences[j]:+.1f}" for j in listed) or "(close to the overall mean)"


def trait_panels(found: AnyProfile, names: list[str]) -> Group:
    """Bars of each cluster's largest differences, all on one scale."""
    reach = float(np.nanmax(np.abs(found.differences), initial=0.0))

    def panel(i: int) -> Chart | Note:
        columns = strongest(found.differences[i], _BARS)
        shown, values = [names[j] for j in columns], found.differences[i, columns]
        title = f"cluster {i} ({counted(int(found.rows[i]), 'row')})"
        if not columns:
            return Note(f"{title}: {traits(found.differences[i], names).strip('()')}")
        alt = f"Bars of {title}: {traits(found.differences[i], names)} standard deviations from the overall mean."
        return Chart(title, lambda: difference_bars(shown, values, reach, colour(i)), colour=colour(i), alt=alt)

    shown, hidden = found.differences[:_MOST_PANELS], len(found.differences) - _MOST_PANELS
    more = f" {counted(hidden, 'more cluster')} are not drawn." if hidden > 0 else ""
    caption = f"Cluster mean minus overall mean, in standard deviations; the largest few.{more}"
    return Group(
        [panel(i) for i in range(len(shown))], "What sets each cluster apart", caption, True, wide=True, only="page"
    )


def column_parts(
    model: Any, found: AnyProfile, names: list[str], title: str, *, separation: bool = False
) -> list[Part]:
    """How the clusters differ, column by column; of images, which have a column for each pixel, their means as images."""
    pictures = mean_pictures(model, np.asarray(found.means), found.rows.tolist(), "The mean image of each cluster")
    if pictures is not None:
        return [pictures]
    table = [separation_table(found, names)] if separation else []
    return [*table, trait_panels(found, names), means_table(found, names, title)]


def means_table(found: AnyProfile, names: list[str], title: str) -> Table:
    """Means in the units of the data: clusters side by side if they are few, else one below the other."""
    clusters, everything = len(found.means), np.vstack([found.means, found.mean])
    order = [int(j) for j in np.argsort(-found.separation, kind="stable")]
    side_by_side = clusters <= _SIDE_BY_SIDE
    chosen = sorted(order[: _MOST_COLUMNS if side_by_side else _as_many_as_fit([names[j] for j in order])])
    cells = [in_units(everything[:, j], float(found.deviation[j])) for j in chosen]
    rows, columns = [*map(str, range(clusters)), "all"], [names[j] for j in chosen]
    values = everything[:, chosen]
    if side_by_side:
        head, rows, columns, values = "mean of cluster", columns, rows, values.T
        cells = [list(column) for column in zip(*cells, strict=True)]
    else:
        head = "cluster"
    figures = [Column(name, values[:, i].tolist(), cells[i]) for i, name in enumerate(columns)]
    hidden = len(names) - len(chosen)
    caption = f"({counted(hidden, 'column')} that differ less between the clusters are not shown)" if hidden else ""
    return Table(title, [Column(head, rows, left=True), *figures], caption, total=not side_by_side, wide=True)


def separation_table(found: AnyProfile, names: list[str]) -> Table:
    """The columns that differ most between the clusters."""
    order = np.argsort(-found.separation, kind="stable")
    return Table(
        "Columns that tell the clusters apart",
        [
            Column("column", [names[j] for j in order], left=True),
            Column("between clusters", found.separation[order].tolist(), percent, bar=1.0),
        ],
        "The share of each column's variance that lies between the clusters.",
        most=_MOST_SEPARATING,
        only="page",
    )


def _as_many_as_fit(names: list[str]) -> int:
    room, most = WIDTH - len("cluster"), 0
    while most < len(names) and room >= (need := 2 + max(8, len(names[most]))):
        room, most = room - need, most + 1
    return max(most, 1)


def categories_table(found: list[CategoryCounts]) -> list[Table]:
    """The share of each level in each cluster, of the categories that go with the clusters most."""
    shown = [one for one in found if one.is_label or one.association >= _LEAST_ASSOCIATION][:_MOST_CATEGORIES]
    if not shown or len(shown[0].counts) > _SIDE_BY_SIDE:
        return []
    names, levels, shares = list[str](), list[str](), list[Floats]()
    for one in shown:
        order = np.argsort(-one.overall, kind="stable")[:_MOST_SHOWN_LEVELS]
        names += [one.name] + [""] * (len(order) - 1)
        levels += [one.levels[j] for j in order]
        shares += [np.append(one.shares[:, j], one.overall[j]) for j in order]
    values = np.array(shares)
    heads = [*map(str, range(values.shape[1] - 1)), "all"]
    columns = [Column("category", names, left=True), Column("level", levels, left=True)]
    columns += [Column(head, values[:, i].tolist(), whole_percent) for i, head in enumerate(heads)]
    caption = "The share of each level among the rows of each cluster where it is known. Categories were not used to find them."
    return [Table("Categories by cluster", columns, caption, most=60, wide=True)]


def described(model: Any, source: Source, labels: NDArray[Any], groups: int) -> list[CategoryCounts]:
    """How the categories of a table go with the clusters of the rows in the fit."""
    if getattr(model, "missing", "error") == "drop":  # rows that were left out describe nothing
        gaps = Passes(allow_missing(source), n_threads=model.n_threads).rows(incomplete_rows)
        labels = np.where(gaps, -1, labels)
    return describe_clusters(source, labels, groups)


def agreement_facts(found: list[CategoryCounts]) -> list[Fact]:
    """How well the clusters agree with labels that were given."""
    remark = "(adjusted Rand index: 1 is the same groups, 0 is chance)"
    return [
        Fact(f"agreement with {one.name}", one.agreement, f"{one.agreement:.2f}", remark)
        for one in found
        if one.is_label
    ]


def plane_chart(
    model: Any,
    source: Source,
    labels: NDArray[Any],
    groups: int,
    draw: Callable[[Projection], str],
    marks: str,
    *,
    scale: bool = False,
) -> Chart:
    """The rows, as the model compares them, on their first two principal components, in the colours of the clusters.

    With `scale`, components of columns that are scaled for the picture, where the model does not care for their units.
    """

    def drawn() -> str | None:
        if source.n_columns < 2 or len(labels) < 2:
            return None
        compared = model.as_compared(filled_from_centres(model, source, labels))
        pca = PCA(2, scale=scale, n_threads=model.n_threads).fit(compared)
        return draw(Projection(pca, compared, labels, groups))

    few = len(labels) <= MOST_POINTS
    caption = "Each point is a row." if few else "The stronger the colour, the more rows; it is that of most of them."
    more = f" Colours repeat from cluster {len(PALETTE)} on: go by the numbers." if groups > len(PALETTE) else ""
    how = " Columns are scaled for the picture." if scale and model.scale_ is None else ""
    title = "The rows on their first two principal components"
    alt = f"{title}: {counted(len(labels), 'row')} in the colours of {counted(groups, 'cluster')}."
    return Chart(title, drawn, f"{caption} {marks}{more}{how}", alt=alt)


@dataclass(frozen=True)
class _FromCentres:
    """Missing cells as in the centre of the row's cluster; a row with nothing observed, which is in none, as in the first."""

    centres: Floats
    labels: NDArray[Any]

    def __call__(self, block: Block) -> Block:
        rows, own = block.dense(), self.labels[block.start : block.start + block.n_rows]
        return block.with_rows(np.where(np.isnan(rows), self.centres[np.maximum(own, 0)].astype(rows.dtype), rows))


def filled_from_centres(model: Any, source: Source, labels: NDArray[Any]) -> Source:
    """Rows to draw: with missing="model", a missing cell is where the model expects it."""
    seen = with_missing(model, source)
    if getattr(model, "missing", "error") != "model" or source.sparse or not hasattr(model, "centers_in_data_units"):
        return completed(model, source)
    return MappedSource(seen, _FromCentres(np.asarray(model.centers_in_data_units()), labels))


def scaled(model: Any) -> str:
    """The remark on figures of scaled columns."""
    return "of scaled columns" if model.scale_ is not None else ""
