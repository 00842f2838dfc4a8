"""The report on a fitted PCA."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from foldwise.data.block import Floats
from foldwise.data.source import Source
from foldwise.models.impute import completed
from foldwise.report.charts import scree
from foldwise.report.formats import counted, number, percent, whole_percent
from foldwise.report.image_charts import component_pictures, image_shape_of, telling_names
from foldwise.report.leads import names_of
from foldwise.report.projection import Projection
from foldwise.report.run_header import about, column_names, run_table, told
from foldwise.report.values import Chart, Column, Group, Note, Report, Table
from foldwise.selection.components import ComponentChoice, choice_of_model
from foldwise.selection.describe import describe_components
from foldwise.selection.votes import accepted, said

_MOST_COMPONENTS = 30
_MOST_ARROWS = 12
_MOST_COLUMNS = 500  # for advice that nobody asked for
_LOADINGS = 4
_MOST_CATEGORIES, _MOST_LEVELS = 6, 6
_SMALL = 0.1  # a share that is told with a decimal
_ROUNDING = 1e-14  # of all variance: less is none
_LEAST = 0.05  # share of a component's variance between levels, below which a category says nothing of it


def pca_report(pca: Any, source: Source, choice: ComponentChoice | None = None) -> Report:
    """What ran, the variance of each component, the columns that make it up, and how many components to keep.

    `choice` is how their number was chosen, if by `fw.choose_components`. The charts of a page take another pass over the rows.
    """
    names, loadings = column_names(pca), np.asarray(pca.loadings_)
    shares = pca.explained_variance_ratio_
    components = Table(
        "Components",
        [
            Column("component", list(pca.get_feature_names_out()), left=True),
            Column("variance", pca.explained_variance_.tolist(), variances(pca.explained_variance_)),
            Column("share", shares.tolist(), percent),
            Column("cumulative", np.cumsum(shares).tolist(), percent),
            *(
                [Column("top loadings", [top_loadings(each, names) for each in loadings.T], left=True)]
                if telling_names(pca, names)
                else []
            ),
        ],
        most=20,
        wide=True,
    )
    scree_chart = Chart(
        "Share of variance",
        lambda: scree(shares[:_MOST_COMPONENTS].tolist()),
        "Bars: each component. Line: the cumulative share.",
        alt=f"Bars of the share of variance of each component, and a line of their sum. {_held(shares)}",
    )
    plane = Chart(
        "The rows on the first two components",
        lambda: _plane(pca, source, names),
        ""
        if image_shape_of(pca) is not None
        else "Orange: the columns with the largest loadings; the longer the arrow, the larger the loading.",
        alt=_seen(pca, names),
    )
    off = getattr(pca, "variance_errors_", pca.residuals_)  # older saved models have only the latter
    residual = f"{float(off.max(initial=0.0)):.1e}"
    advice = number_of_components(pca, source, choice)
    return Report(
        "Principal components",
        about(pca, pca.manifest_.algorithm),
        parts=[
            components,
            *component_pictures(pca),
            *_categories(pca, source),
            plane,
            scree_chart,
            *([Group([_in_text(part) for part in advice], wide=True)] if advice else []),
            run_table(pca.manifest_, **{"variances are right to within": residual}),
        ],
        data=told(source),
        lead=[_held(shares), *_made_of(pca, names), *_how_many(advice)],
        lead_only="page",
    )


def variances(found: Floats) -> list[str]:
    """The variances of components in one form: large ones without decimals, rounding as nothing.

    >>> variances(np.array([1528617.2, 94355.91, 6.3e-10]))
    ['1,528,617', '94,356', '0']
    >>> variances(np.array([2.5, 0.125]))
    ['2.5', '0.125']
    """
    values = np.asarray(found, np.float64)
    total, whole = float(values.sum()), float(values.max(initial=0.0)) >= 1e5
    cells = []
    for value in values.tolist():
        if value <= _ROUNDING * total:
            cells.append("0")
        else:
            cells.append(f"{value:,.0f}" if whole and value >= 100 else number(value))
    return cells


def _held(shares: Floats) -> str:
    """How much of the variance the first components hold.

    >>> _held(np.array([0.5, 0.25, 0.25]))
    'The first two components hold 75.0 % of the variance, the first alone 50.0 %.'
    """
    if not shares.sum() > 0:
        return "There is no variance that components could hold." if len(shares) else "No component is kept."
    if len(shares) == 1:
        return f"One component holds {percent(float(shares[0]))} of the variance."
    two = percent(float(shares[:2].sum()))
    which = "Two components hold" if len(shares) == 2 else "The first two components hold"
    return f"{which} {two} of the variance, the first alone {percent(float(shares[0]))}."


def _made_of(pca: Any, names: list[str]) -> list[str]:
    """The columns that the first two components follow."""
    if not pca.explained_variance_.sum() > 0 or len(names) < 3 or image_shape_of(pca) is not None:
        return []
    told = []
    for place, which in enumerate(("The first", "the second")[: pca.n_components_]):
        sizes = np.abs(np.asarray(pca.loadings_)[:, place])
        order = [int(j) for j in np.argsort(-sizes, kind="stable")[:3] if sizes[j] > 0.5 * sizes.max(initial=0.0)]
        told.append(f"{which} goes mostly with {names_of(names, order)}")
    return [f"{', '.join(told)}."]


def _how_many(advice: list[Table | Note]) -> list[str]:
    """The sentence on the number of components, which closes the section on it."""
    said = [part.text for part in advice if isinstance(part, Note)]
    return [f"{text[0].upper()}{text[1:]}{'' if text.endswith('.') else '.'}" for text in said]


def _in_text(part: Table | Note) -> Table | Note:
    """A part of the advice, without the sentence that a page begins with."""
    return replace(part, only="text") if isinstance(part, Note) else part


def _seen(pca: Any, names: list[str]) -> str:
    told = "" if pca.n_components_ < 2 else " ".join(["", _held(pca.explained_variance_ratio_), *_made_of(pca, names)])
    return f"The rows as points on the first two components, with columns as arrows.{told}"


def _categories(pca: Any, source: Source) -> list[Table]:
    """Where the levels of the categories that go with the components most lie along them."""
    found = [
        one for one in describe_components(pca, source) if one.is_label or one.explained.max(initial=0.0) >= _LEAST
    ]
    if not found:
        return []
    rows, more = [], ""
    for one in found[:_MOST_CATEGORIES]:
        order = np.argsort(-one.shares, kind="stable")[:_MOST_LEVELS]
        if (hidden := len(one.levels) - len(order)) > 0:
            more += f" {counted(hidden, 'more level')} of {one.name} not listed."
        for i, j in enumerate(order):
            rows.append((one.name if i == 0 else "", one.levels[j], float(one.shares[j]), *one.means[j].tolist()))
    names = list(pca.get_feature_names_out())
    columns = [
        Column("category", [row[0] for row in rows], left=True),
        Column("level", [row[1] for row in rows], left=True),
    ]
    shares = [row[2] for row in rows]
    columns.append(Column("share", shares, percent if min(shares) < _SMALL else whole_percent))
    columns += [Column(names[k], [row[3 + k] for row in rows], "{:+.2f}".format) for k in range(len(rows[0]) - 3)]
    caption = "Mean scores of the rows of each level, in standard deviations. Categories were not used to find the components."
    return [Table("Categories along the components", columns, f"{caption}{more}", most=60, wide=True)]


def top_loadings(loadings: Floats, names: list[str]) -> str:
    """The largest few of a component's loadings, with their columns; negligible ones are left out."""
    order = np.argsort(-np.abs(loadings), kind="stable")[:_LOADINGS]
    floor = 0.005 * float(np.abs(loadings).max(initial=0.0))
    return ", ".join(f"{loadings[j]:+.{_digits(loadings[j])}f} {names[j]}" for j in order if abs(loadings[j]) > floor)


def _digits(value: float) -> int:
    """Decimals that show two or three digits."""
    return int(np.clip(2 - np.floor(np.log10(max(abs(value), 1e-12))), 0, 8)) if abs(value) < 0.1 else 2


def number_of_components(pca: Any, source: Source | None, choice: ComponentChoice | None = None) -> list[Table | Note]:
    """How many components to keep: by the rule that was asked for, or by the votes of several."""
    if (chosen := pca.rank_) is not None:
        return [
            Note(f"{chosen.rule} keeps {chosen.chosen} (plausible: {chosen.low} to {chosen.high}, {chosen.meaning})")
        ]
    rows, columns = pca.total_weight_, pca.n_features_in_
    if choice is None and 3 <= columns <= _MOST_COLUMNS and rows >= 3 and pca.explained_variance_.sum() > 0:
        choice = choice_of_model(pca, source)
    return [] if choice is None else votes_of(choice)


def votes_of(choice: ComponentChoice) -> list[Table | Note]:
    """The votes for a number of components, as a table, and the number they agree on."""
    votes = choice.votes
    table = Table(
        "How many components?",
        [
            Column("how many to keep", [vote.rule for vote in votes], left=True),
            Column("components", [vote.chosen for vote in votes], [said(vote) for vote in votes]),
            Column("plausible", [accepted(vote) for vote in votes]),
            Column("because", [vote.reason for vote in votes], left=True),
        ],
        wide=True,
    )
    return [table, Note(choice.sentence)]


def _plane(pca: Any, source: Source, names: list[str]) -> str | None:
    """The rows on the first two components, and the columns with the largest loadings."""
    if pca.n_components_ < 2:
        return None
    seen = Projection(pca, completed(pca, source))
    if image_shape_of(pca) is not None:  # pixels as arrows say nothing: the components are shown as images
        return seen.draw(arrows=[])
    strongest = np.argsort(-np.linalg.norm(seen.directions, axis=0), kind="stable")[:_MOST_ARROWS]
    ends = seen.directions[:, strongest]
    ends = ends / (float(np.linalg.norm(ends, axis=0).max(initial=0.0)) or 1.0)
    return seen.draw(arrows=[(float(x), float(y), names[j]) for (x, y), j in zip(ends.T, strongest, strict=True)])
