"""The rows: all of them on the directions, and those worth a look in a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from foldwise.report.equal_plane import cross, draw_points, ends_of, equal_plot
from foldwise.report.explore.cautions import by_chance
from foldwise.report.explore.directions import axis_names
from foldwise.report.explore.groups import ROWS_FROM_0, number_colour, numbers_of
from foldwise.report.explore.units import Units, group_name
from foldwise.report.explore.words import listed, name_of, rows_words, share_of
from foldwise.report.formats import counted, short_number, whole_percent
from foldwise.report.svg import colour
from foldwise.report.values import Column, Part, Scatter, Table
from foldwise.selection.explore.result import Exploration, Points


def scatter_parts(found: Exploration) -> list[Part]:
    """The rows on two directions; nothing if there are not two."""
    points = found.points
    if points is None or points.scores.shape[1] < 2 or not len(points.rows):
        return []
    names = axis_names(found)[: points.scores.shape[1]]
    units = Units.of(found)
    groups = [group_name(one, units, 40) for one in found.summaries] or [
        f"group {number}" for number in numbers_of(found)
    ]
    which = f"{len(points.rows):,} of {rows_words(points.total)}, drawn at random" if points.sampled else "All rows"
    if points.blank:
        which += f" but {counted(points.blank, 'row')} without any value"
    caption = f"{which}; equal scales on both axes, and nothing lies outside the frame.{ROWS_FROM_0}"
    alt = _alt(found, points)
    named = tuple((name, tuple(units.word(name, level) for level in levels)) for name, levels in points.categories)
    points = replace(points, categories=named)
    return [
        Scatter("The rows", points, names, groups, lambda: _static(found, points), caption, alt, wide=True, only="page")
    ]


def _alt(found: Exploration, points: Points) -> str:
    shares = found.pca.explained_variance_ratio_[:2]
    held = share_of(float(np.sum(shares)))
    numbers = numbers_of(found)
    if not numbers:
        return f"The rows on the first two directions, which hold {held} of the variation: one cloud."
    middles = [
        f"group {number} around {points.scores[points.labels == number, 0].mean():.1f} and "
        f"{points.scores[points.labels == number, 1].mean():.1f}"
        for number in numbers
        if np.any(points.labels == number)
    ]
    return f"The rows on the first two directions, which hold {held} of the variation: {listed(middles, 6)}."


def _static(found: Exploration, points: Points) -> str | None:
    """The picture for print, and for pages whose scripts do not run."""
    places, numbers, names = points.scores[:, :2], numbers_of(found), axis_names(found)
    fine = np.isfinite(places).all(axis=1)
    places, labels = np.asarray(places[fine], dtype=np.float64), points.labels[fine].astype(np.intp)
    if not len(places):
        return None
    plot = equal_plot(ends_of(places[:, 0]), ends_of(places[:, 1]), names[0], names[1])
    cross(plot)
    draw_points(plot, places, labels, lambda label: number_colour(label, numbers))
    return plot.svg()


@dataclass(frozen=True)
class _Row:
    """A row of the table: its place in the source, why it is there, and what sets it apart."""

    place: int
    why: str
    column: str
    t2: float
    residual: float
    group: int
    confidence: float
    ids: tuple[str, ...]


def noted_rows(found: Exploration) -> list[_Row]:
    """Outliers, the most extreme first, then the typical rows of each group."""
    outliers, made = found.outliers, list[_Row]()
    if outliers is not None:
        for i, place in enumerate(outliers.rows.tolist()):
            far = outliers.t2[i] > outliers.t2_limit
            off = outliers.residual[i] > outliers.residual_limit
            why = "unusual in both ways" if far and off else "does not fit the directions" if off else "extreme"
            figures = float(outliers.t2[i]), float(outliers.residual[i])
            made.append(
                _row(found, place, why, name_of(outliers.columns[i]) if i < len(outliers.columns) else "", figures)
            )
    for one in found.summaries:
        made += [_row(found, place, f"typical of group {one.number}", "") for place in one.exemplars]
    return made


def _row(
    found: Exploration, place: int, why: str, column: str, figures: tuple[float, float] = (np.nan, np.nan)
) -> _Row:
    points, labels, sure = found.points, found.labels, found.confidence
    ids: tuple[str, ...] = (str(place),)
    if points is not None:
        at = int(np.searchsorted(points.rows, place))
        if at < len(points.rows) and points.rows[at] == place:
            ids = tuple(points.ids[at]) if at < len(points.ids) else ids
            known = float(points.t2[at]), float(points.residual[at])
            figures = figures if figures[0] == figures[0] else known
    group = int(labels[place]) if labels is not None and place < len(labels) else -1
    confidence = float(sure[place]) if sure is not None and place < len(sure) else float("nan")
    return _Row(place, why, column, *figures, group, confidence, ids)


def row_table(found: Exploration) -> list[Part]:
    """Typical and unusual rows, to sort and to search."""
    rows, outliers = noted_rows(found), found.outliers
    if not rows:
        return []
    id_names = found.points.id_names if found.points is not None else ("row",)
    columns = [
        Column(name_of(name, 24), *_ids([row.ids[j] if j < len(row.ids) else "" for row in rows]), left=True)
        for j, name in enumerate(id_names)
    ]
    columns.append(Column("why it is here", [row.why for row in rows], left=True))
    if numbers_of(found):
        columns.append(
            Column("group", [row.group for row in rows], [str(row.group) if row.group >= 0 else "-" for row in rows])
        )
        if found.confidence is not None:
            columns.append(Column("keeps its group", [row.confidence for row in rows], whole_percent))
    columns += [
        Column("how far out", [row.t2 for row in rows], "{:,.2f}".format),
        Column("misfit", [row.residual for row in rows], "{:,.3g}".format),
    ]
    if any(row.column for row in rows):  # of images, it would be a pixel
        columns.append(Column("mainly by", [row.column for row in rows], left=True))
    words = _limits(found) if outliers is not None else []
    words.append(ROWS_FROM_0.strip())
    colours = [colour(row.group) if row.group >= 0 else "transparent" for row in rows] if numbers_of(found) else ()
    return [
        Table(
            "Rows worth a look",
            columns,
            " ".join(words),
            len(rows),
            colours=colours,
            searchable=True,
            wide=True,
            only="page",
        )
    ]


def _limits(found: Exploration) -> list[str]:
    """What counts as far out and as a misfit, and how many rows that is."""
    out = found.outliers
    assert out is not None
    chance = f"about {by_chance(out):,.0f}" if by_chance(out) >= 0.5 else "hardly any"
    first = "the first direction" if out.components == 1 else f"the first {out.components} directions"
    although = ", although none stands out from chance" if found.n_components == 0 else ""
    words = [f"Far out: {rows_words(out.t2_count)} along {first}{although} (T2 above {short_number(out.t2_limit)})."]
    if out.residual_limit == out.residual_limit:
        words.append(
            f"Misfits: {rows_words(out.residual_count)} far away from these directions (residual above "
            f"{short_number(out.residual_limit)})."
        )
    words.append(f"Together {rows_words(out.count)}; one normal cloud would have {chance}.")
    if out.count > len(out.rows):
        words.append("The most extreme are listed.")
    return words


def unusual_words(found: Exploration) -> str:
    """How many rows lie far from the others, how many would by chance, and which are the most extreme."""
    out = found.outliers
    assert out is not None
    chance = f"about {by_chance(out):,.0f}" if by_chance(out) >= 0.5 else "hardly any"
    if not out.count:
        return f"none lies far from the others (of one normal cloud, {chance} would)"
    lies = "lies" if out.count == 1 else "lie"
    told = f"{rows_words(out.count)} {lies} far from the others (of one normal cloud, {chance} would)"
    some = [str(row) for row in out.rows[:5].tolist()]
    if not some:
        return told
    which = f"row {some[0]}" if len(some) == 1 else f"rows {listed(some, 5)}"
    return f"{told}; {'it is' if out.count == 1 else 'most extreme:'} {which}, counted from 0"


def _ids(cells: Sequence[str]) -> tuple[list[object], list[str]]:
    """Identifiers as numbers where all are, so that a page sorts them well, and as they are written."""
    shown = [name_of(cell, 60) if cell else "" for cell in cells]
    if all(cell.isdecimal() and len(cell) < 16 for cell in cells):
        return [int(cell) for cell in cells], shown
    return list(shown), shown
