"""The directions along which the rows vary: how many matter, what they mean, and how columns and rows lie along them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from foldwise.data.block import Floats
from foldwise.report.biplot import biplot, correlation_circle
from foldwise.report.explore.groups import number_colour, numbers_of
from foldwise.report.explore.images import image_shape_in
from foldwise.report.explore.meaning import directions_of, meaning
from foldwise.report.explore.votes import SURENESS, direction_votes
from foldwise.report.explore.words import also_plausible, listed, name_of, sentence_of, share_of
from foldwise.report.formats import counted, percent, whole_percent
from foldwise.report.heat_table import heat_table
from foldwise.report.image_charts import component_pictures
from foldwise.report.scree_rules import scree_with_rules
from foldwise.report.values import Chart, Column, Group, Note, Part, Table
from foldwise.selection.components import ComponentChoice
from foldwise.selection.explore.result import Exploration
from foldwise.selection.votes import said

_MOST_BARS = 30
_MOST_ARROWS = 14
_MOST_DIRECTIONS = 6  # in tables
_MOST_COLUMNS = 20  # in tables
_MOST_DOTS = 1500  # rows below the arrows
_RULES = {
    "parallel": "Does it vary more than directions of unrelated columns?",
    "held-out": "Does it help to predict cells that were left out?",
    "mle": "Which number is most probable if noise is alike everywhere?",
    "gavish-donoho": "Does it stand out enough to improve a reconstruction?",
    "broken-stick": "Is its share larger than that of a stick broken at random?",
    "share": "How many show most of the variation? (not counted)",
}


def shown_directions(found: Exploration) -> int:
    """How many directions tables and charts show: those that matter, at least two and at most six."""
    return min(max(found.n_components or 0, 2), _MOST_DIRECTIONS, len(found.pca.explained_variance_ratio_))


def axis_names(found: Exploration) -> list[str]:
    """The directions with their shares of the variation, as an axis names them."""
    return [
        f"direction {i + 1} ({percent(float(share))})" for i, share in enumerate(found.pca.explained_variance_ratio_)
    ]


def direction_parts(found: Exploration) -> list[Part]:
    """How many directions matter and why, what they mean, and the columns as arrows."""
    if not len(found.pca.explained_variance_ratio_) or not float(np.sum(found.pca.explained_variance_)) > 0:
        return [Note("The columns used do not vary, so there are no directions to show.", only="page")]
    if image_shape_in(found) is not None:  # the page began with them as images
        return [_number(found)]
    parts: list[Part] = [_number(found), _meanings(found)]
    if len(found.names) > 1 and len(found.pca.explained_variance_ratio_) > 1:
        parts += [_biplot(found), _circle(found)]
    if len(found.names) > 1:
        parts += [_contributions(found), _cos2(found)]
    return parts


def direction_pictures(found: Exploration) -> list[Part]:
    """The mean and the directions of images, as images."""
    kept = max(found.n_components or 0, shown_directions(found))
    names = [f"direction {i + 1}" for i in range(kept)]
    return [replace(one, only="page") for one in component_pictures(found.pca, names, "direction")]


def _number(found: Exploration) -> Group:
    shares = found.pca.explained_variance_ratio_[:_MOST_BARS].tolist()
    choice = found.components
    rules = [] if choice is None else [(v.rule, v.chosen) for v in choice.votes if v.chosen is not None]
    agreed = found.n_components
    held = share_of(float(np.sum(shares[: agreed or 1])))
    words = f"the first {agreed} hold {held}" if (agreed or 0) > 1 else f"the first holds {held}"
    chart = Chart(
        "",
        lambda: scree_with_rules(shares, rules, agreed),
        "Each bar is the share of the variation along one direction (scree plot). A line marks how many directions a rule "
        "keeps; bars in full colour are those that are kept in the end"
        + ("." if choice is None else f" ({direction_votes(choice)})."),
        alt=f"Shares of the variation by direction: {words}. " + ("" if agreed is None else f"Chosen: {agreed}."),
    )
    parts: list[Chart | Table | Note] = [chart]
    if choice is None:
        parts.append(Note("How many matter was not worked out."))
    else:
        parts += [_votes(choice), Note(f"{sentence_of(direction_votes(choice))} {SURENESS}.")]
    return Group(parts, "How many directions matter?", wide=True, only="page")


def _votes(choice: ComponentChoice) -> Table:
    votes = choice.votes
    return Table(
        "",
        [
            Column("rule", [one.rule for one in votes], left=True),
            Column("what it asks", [_RULES.get(one.rule.split()[0], "") for one in votes], left=True),
            Column("directions", [one.chosen for one in votes], [said(one) for one in votes]),
            Column("also plausible", [also_plausible(one) for one in votes]),
            Column("votes", [one.weight for one in votes], "{:g}".format),
            Column("its answer", [one.reason for one in votes], left=True),
        ],
    )


def _meanings(found: Exploration) -> Table:
    many, vectors = shown_directions(found), directions_of(found)
    shares = found.pca.explained_variance_ratio_
    more = len(shares) - many
    return Table(
        "What each direction means",
        [
            Column("direction", list(range(1, many + 1)), left=True),
            Column("share", shares[:many].tolist(), percent, bar=float(shares[0])),
            Column("with those before", np.cumsum(shares)[:many].tolist(), percent),
            Column("mainly", [meaning(vectors[i], found.names) for i in range(many)], left=True),
        ],
        '"A against B": rows with more of A have less of B.' + (f" {more:,} more not listed." if more > 0 else ""),
        wide=True,
        only="page",
    )


def _plane(found: Exploration) -> tuple[str, str]:
    names = axis_names(found)
    return names[0], names[1]


def _strongest(found: Exploration, arrows: Floats) -> list[int]:
    order = np.argsort(-np.hypot(*arrows.T), kind="stable")[:_MOST_ARROWS]
    return [int(j) for j in order]


def _hidden(found: Exploration) -> str:
    more = len(found.names) - _MOST_ARROWS
    return f" {counted(more, 'more column')} with shorter arrows not drawn." if more > 0 else ""


def _biplot(found: Exploration) -> Chart:
    loadings = np.asarray(found.pca.loadings_, dtype=np.float64)[:, :2]
    some = _strongest(found, loadings)
    points, numbers = found.points, numbers_of(found)

    def draw() -> str | None:
        if points is None or points.scores.shape[1] < 2:
            places, labels = np.zeros((0, 2)), np.zeros(0, dtype=np.intp)
        else:
            pick = np.linspace(0, len(points.rows) - 1, min(len(points.rows), _MOST_DOTS)).round().astype(np.intp)
            places, labels = points.scores[pick][:, :2], points.labels[pick].astype(np.intp)
        names = [name_of(found.names[j]) for j in some]
        return biplot(places, labels, lambda label: number_colour(label, numbers), loadings[some], names, _plane(found))

    caption = (
        "Points are rows, arrows are columns (biplot): a row far along an arrow has a high value in that column; long arrows "
        f"that point the same way rise together.{_hidden(found)}"
    )
    alt = (
        f"Rows and columns on the first two directions. Longest: {listed([name_of(found.names[j]) for j in some[:3]])}."
    )
    return Chart("Columns and rows together", draw, caption, alt=alt, only="page")


def correlations_with(found: Exploration) -> Floats:
    """The correlation of each column with each direction."""
    squares = np.asarray(found.pca.cos2(), dtype=np.float64)
    signs = np.sign(np.asarray(found.pca.loadings_, dtype=np.float64))
    return np.asarray(signs * np.sqrt(np.clip(squares, 0.0, 1.0)))


def _circle(found: Exploration) -> Chart:
    values = correlations_with(found)[:, :2]
    some = _strongest(found, values)
    caption = (
        "Arrows that reach the circle are columns that these two directions show completely; short ones live in other "
        f"directions (correlation circle).{_hidden(found)}"
    )
    best = some[0]
    alt = f"Correlations of columns with the first two directions; {name_of(found.names[best])} is shown best."
    return Chart(
        "How well two directions show the columns",
        lambda: correlation_circle(values[some], [name_of(found.names[j]) for j in some], _plane(found)),
        caption,
        alt=alt,
        only="page",
    )


def _shown_columns(values: Floats) -> list[int]:
    """The columns with the largest values, in the order of the table."""
    order = np.argsort(-values.max(axis=1), kind="stable")[:_MOST_COLUMNS]
    return sorted(int(j) for j in order)


def _heat(found: Exploration, values: Floats, heads: list[str], title: str, caption: str, alt: str) -> Chart:
    some = _shown_columns(values)
    more = len(values) - len(some)
    names = [name_of(found.names[j]) for j in some]
    words = f"{caption} {counted(more, 'more column')} with smaller values not listed." if more > 0 else caption
    top = float(values.max(initial=0.0))
    reach, show = (1.0, whole_percent) if top > 0.1 else (top, percent)  # of many columns, each has a small share
    return Chart(title, lambda: heat_table(values[some], names, heads, reach, show=show), words, alt=alt, only="page")


def _contributions(found: Exploration) -> Chart:
    many = shown_directions(found)
    values = np.asarray(found.pca.components_, dtype=np.float64)[:many].T ** 2
    top = int(values[:, 0].argmax())
    alt = f"{name_of(found.names[top])} makes up the largest part of the first direction, {share_of(float(values[top, 0]))}."
    heads = [f"dir. {i + 1}" for i in range(many)]
    return _heat(
        found,
        values,
        heads,
        "What the directions are made of",
        "Each column of figures adds up to 100 % (contributions).",
        alt,
    )


def _cos2(found: Exploration) -> Chart:
    many = shown_directions(found)
    squares = np.clip(np.asarray(found.pca.cos2(), dtype=np.float64)[:, :many], 0.0, 1.0)
    values = np.column_stack([squares, np.clip(squares.sum(axis=1), 0.0, 1.0)])
    best, worst = int(values[:, -1].argmax()), int(values[:, -1].argmin())
    alt = (
        f"The directions listed show {share_of(float(values[best, -1]))} of {name_of(found.names[best])} and "
        f"{share_of(float(values[worst, -1]))} of {name_of(found.names[worst])}."
    )
    heads = [*(f"dir. {i + 1}" for i in range(many)), "all of these"]
    caption = "The share of each column's variation that a direction shows (squared cosines)."
    return _heat(found, values, heads, "How much of each column they show", caption, alt)
