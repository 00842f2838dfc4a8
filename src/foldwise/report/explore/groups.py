"""The groups: how many and why, a card for each, and how they differ."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from foldwise.models.mixture import GaussianMixture
from foldwise.report.charts import difference_bars
from foldwise.report.explore.images import group_pictures, image_shape_in
from foldwise.report.explore.units import Units, group_name, level_words, rule_words, trait_words, traits_told
from foldwise.report.explore.verdicts import verdict_sentence
from foldwise.report.explore.votes import SURENESS, vote_words
from foldwise.report.explore.words import (
    also_plausible,
    group_count,
    listed,
    name_of,
    of_hundred,
    row_name,
    sentence_of,
    share_of,
)
from foldwise.report.formats import counted
from foldwise.report.group_charts import ridgelines
from foldwise.report.heat_table import heat_table
from foldwise.report.svg import BLUE, MUTED, ORANGE, PALE, Plot, colour
from foldwise.report.values import Chart, Column, Group, Note, Part, Table
from foldwise.selection.clusters.criteria import CRITERIA
from foldwise.selection.clusters.result import ClusterChoice
from foldwise.selection.explore.result import ClusterSummary, Exploration
from foldwise.selection.votes import said

_MOST_COLUMNS = 20  # in the heat table
_TWO_LINES = 8  # groups up to which means stand below the differences
_DISTRIBUTIONS = 6
_MOST_CARDS = 40
_BARS = 5
_LEAST = 0.25  # standard deviations: a smaller difference does not set a group apart
ROWS_FROM_0 = " Rows are numbered from 0."
_ASKS = {
    "dip": "Are there gaps between the groups?",
    "prediction strength": "Do other rows fall into the same groups?",
    "bic": "Which number of round or long clouds describes the rows best?",
    "icl": "The same, if clouds must not overlap",
    "silhouette": "Are rows nearer to their own group than to others?",
    "calinski-harabasz": "Do groups differ more than rows within them?",
    "davies-bouldin": "Are groups small compared to their distances?",
    "gap": "Are the groups tighter than those of rows without groups?",
    "stability": "Do fits to other draws agree?",
    "knee": "Where does one more group stop helping? (not counted)",
}


def numbers_of(found: Exploration) -> list[int]:
    """The numbers of the groups; none if there is only one."""
    if found.n_clusters == 1:
        return []
    if found.summaries:
        return [one.number for one in found.summaries]
    if found.profile is not None:
        return list(range(len(found.profile.rows)))
    if found.labels is not None and len(found.labels):
        return list(range(int(found.labels.max()) + 1))
    return []


def number_colour(label: int, numbers: Sequence[int]) -> str:
    """The colour of a row by its group; blue if there are no groups, grey for a row in none."""
    return BLUE if not numbers else colour(label) if label >= 0 else MUTED


def group_parts(found: Exploration) -> list[Part]:
    """Votes, cards, differences, distributions."""
    parts: list[Part] = []
    if found.number is not None:
        parts.append(_votes(found.number))
    if not numbers_of(found):
        why = (
            "There is one group, so no groups were made."
            if found.settings.get("n_clusters") == 1
            else "The rows form one cloud, so no groups were made."
            if found.n_clusters == 1
            else "No groups were made: the exploration ended before that."
        )
        return [*parts, Group([Note(why)], "The groups", only="page", wide=True)]
    if image_shape_in(found) is not None:  # the page began with the groups, and nothing is said of single pixels
        return [*parts, *(part for part in [_comparison(found)] if part is not None)]
    return [
        *parts,
        *cards(found),
        *(part for part in (_profile(found), _distributions(found), _comparison(found)) if part is not None),
    ]


def _votes(number: ClusterChoice) -> Group:
    votes = number.votes
    table = Table(
        "",
        [
            Column(
                "way of counting", [CRITERIA[v.rule].label if v.rule in CRITERIA else v.rule for v in votes], left=True
            ),
            Column("what it asks", [_ASKS.get(v.rule, "") for v in votes], left=True),
            Column("groups", [v.chosen for v in votes], [said(v) for v in votes]),
            Column("also plausible", [also_plausible(v) for v in votes]),
            Column("votes", [v.weight for v in votes], "{:g}".format),
            Column("its answer", [v.reason for v in votes], left=True),
        ],
        "1 means no groups. "
        + (f"Not finished: {listed(list(number.unfinished), 9)}. " if number.unfinished else "")
        + " ".join(map(sentence_of, number.notes)),
    )
    sums: dict[int, float] = {}
    for v in votes:
        if v.counts and v.chosen is not None:
            sums[v.chosen] = sums.get(v.chosen, 0.0) + v.weight
    most = f"{number.n_clusters} has {share_of(number.strength)} of them" if number.n_clusters else "none counted"
    chart = Chart(
        "",
        lambda: _vote_bars(sums, number.n_clusters, number.ks),
        "The share of the votes for each number of groups; some ways of counting have more votes than others, as the table "
        f"says. Here {number.n_clusters or 'no number'} has {vote_words(number)}. {SURENESS}, if the groups are stable, too.",
        alt=f"Votes for the number of groups: {most}.",
    )
    return Group([chart, table], "How many groups?", wide=True, only="page")


def _vote_bars(sums: dict[int, float], chosen: int | None, ks: Sequence[int]) -> str | None:
    if not sums:
        return None
    last = max(max(sums) + 1, min(ks[-1], 10)) if ks else max(sums) + 1
    total = sum(sums.values())
    shares = {k: weight / total for k, weight in sums.items()}
    ends = (0.0, 1.1 * max(shares.values()))
    plot = Plot(
        (0.5, last + 0.5), ends, "number of groups", 620, 230, whole=True, percent=True, beside="share of the votes"
    )
    gap = 0.3 * (plot.x(1) - plot.x(0))
    for k, share in shares.items():
        plot.bars([k - 0.5, k + 0.5], [share], ORANGE if k == chosen else PALE, f"{k}: {share:.0%} of the votes", gap)
    return plot.svg()


def cards(found: Exploration) -> list[Group]:
    """A card for each group."""
    if not found.summaries or not numbers_of(found):
        return []
    pictures = group_pictures(found)
    hidden = len(found.summaries) - _MOST_CARDS
    caption = (
        (
            "The mean of the images of each group, and its most typical images."
            if pictures
            else "Bars: the mean of the group minus that of all rows, in standard deviations of the column."
        )
        + ROWS_FROM_0
        + (f" {counted(hidden, 'more group')} not shown." if hidden > 0 else "")
    )
    made = [_card(found, one, pictures.get(one.number)) for one in found.summaries[:_MOST_CARDS]]
    return [Group(made, "The groups", caption, panels=True, wide=True, only="page")]


def _card(found: Exploration, one: ClusterSummary, pictures: Callable[[], str] | None) -> Chart:
    """A group: its name, its largest differences as bars or its images, and what is known of it, a sentence to a line."""
    units = Units.of(found)
    lines = [f"{counted(one.rows, 'row')}, {share_of(one.share)} of all."]
    traits = traits_told(one, units, 3)
    if traits and len(found.summaries) <= _TWO_LINES:  # of many groups the bars say enough
        lines.append(sentence_of(listed([trait_words(trait, units) for trait in traits])))
    lines += [sentence_of(level_words(level, units)) for level in one.categories[:3]]
    if words := rule_words(one, units):
        assert one.rule is not None
        lines.append(f"Rule: {words}. {rule_quality(one)}")
    elif one.rule is not None:
        lines.append("No short rule tells it from the others.")
    if one.exemplars:
        rows = listed([row_name(found, row) for row in one.exemplars[:3]])
        lines.append(f"Most typical: {rows}.")
    if one.verdict:
        lines.append(verdict_sentence(one.verdict))
    if one.confidence == one.confidence:
        lines.append(f"Its rows keep their group in {share_of(one.confidence)} of the repeats, on average.")
    title = group_name(one, units, 70)
    apart = [trait_words(trait, units) for trait in traits] or [
        level_words(level, units) for level in one.categories[:3]
    ]
    if pictures is not None:
        alt = f"The mean image of group {one.number}, and its most typical images."
        return Chart(title, pictures, "\n".join(lines), colour(one.number), alt=alt)
    chart = _differences(found, one)
    alt = f"What sets group {one.number} apart: {listed(apart)}."
    return Chart(title, lambda: chart, "\n".join(lines), colour(one.number), alt=alt)


def rule_quality(one: ClusterSummary) -> str:
    """How often a rule is right, and how many rows of its group it finds."""
    assert one.rule is not None
    right, finds = of_hundred(one.rule.precision), of_hundred(one.rule.recall)
    right = f"{right[0].upper()}{right[1:]}"
    verb = "belongs" if right.startswith("1 of") or right == "None" else "belong"
    return f"{right} rows that satisfy it {verb} to the group; it finds {finds} of its rows."


def _differences(found: Exploration, one: ClusterSummary) -> str:
    """Bars of a group's largest differences, on one scale for all groups."""
    profile = found.profile
    if profile is None or not one.number < len(profile.differences):
        return ""
    own = np.nan_to_num(profile.differences[one.number])
    order = [int(j) for j in np.argsort(-np.abs(own), kind="stable")[:_BARS] if abs(own[j]) >= _LEAST]
    reach = float(np.nanmax(np.abs(profile.differences), initial=0.0))
    if not order:
        return ""
    names = [name_of(found.names[j]) for j in order]
    return difference_bars(names, own[order], reach, colour(one.number), width=340)


def _strongest_columns(found: Exploration, most: int) -> list[int]:
    assert found.profile is not None
    order = np.argsort(-np.nan_to_num(found.profile.separation), kind="stable")
    return [int(j) for j in order[:most]]


def _profile(found: Exploration) -> Chart | None:
    """Groups and columns as a heat table: differences in standard deviations, and means in the units of the data."""
    profile = found.profile
    if profile is None:
        return None
    some, numbers = _strongest_columns(found, _MOST_COLUMNS), numbers_of(found)
    values = np.asarray(profile.differences, dtype=np.float64)[numbers][:, some].T
    units = Units.of(found)
    means = [units.values(found.names[j], np.asarray(profile.means)[numbers, j]) for j in some]
    names = [name_of(found.names[j]) for j in some]
    reach = max(1.0, min(3.0, float(np.nanmax(np.abs(values), initial=1.0))))

    def draw() -> str:
        heads = [str(number) for number in numbers]
        return heat_table(
            values,
            names,
            heads,
            reach,
            below=means if len(numbers) <= _TWO_LINES else None,
            dots=[colour(number) for number in numbers],
        )

    more = len(found.names) - len(some)
    second = " Second line: the mean in the units of the data." if len(numbers) <= _TWO_LINES else ""
    caption = (
        "The mean of each group minus the mean of all rows, in standard deviations of the column; columns that tell groups "
        f"apart best come first.{second}" + (f" {counted(more, 'more column')} not listed." if more > 0 else "")
    )
    alt = f"Groups differ most in {listed([name_of(name) for name in names[:3]])}."
    return Chart("How the groups differ, column by column", draw, caption, alt=alt, wide=True, only="page")


def _distributions(found: Exploration) -> Group | None:
    points, numbers = found.points, numbers_of(found)
    if points is None or found.profile is None or not len(points.columns):
        return None
    place = {name: j for j, name in enumerate(points.columns)}
    some = [j for j in _strongest_columns(found, 3 * _DISTRIBUTIONS) if found.names[j] in place][:_DISTRIBUTIONS]
    if not some:
        return None
    charts = []
    for j in some:
        values = np.asarray(points.values[:, place[found.names[j]]], dtype=np.float64)
        name = name_of(found.names[j])
        share = share_of(float(found.profile.separation[j]))
        charts.append(
            Chart(
                name,
                lambda values=values: ridgelines(values, points.labels, numbers),  # type: ignore[misc]
                sentence_of(f"{share} of its variation lies between the groups"),
                alt=f"Distribution of {name} in each group: {share} of its variation lies between the groups.",
            )
        )
    sample = f" Of {counted(len(points.rows), 'row')} drawn at random." if points.sampled else ""
    caption = f"The columns that tell the groups apart best; each outline is a group, drawn to the same height.{sample}"
    return Group(charts, "Distributions by group", caption, panels=True, wide=True, only="page")


def comparison_words(found: Exploration) -> str:
    """Whether k-means or a mixture describes the rows better, and what follows."""
    one = found.comparison
    if one is None:
        return ""
    return f"{sentence_of(one.reason)} Therefore the groups shown are {groups_made_by(found)}."


def groups_made_by(found: Exploration) -> str:
    """Which model the groups are of."""
    mixture = isinstance(found.clusters, GaussianMixture)
    return "clouds of any shape (a mixture)" if mixture else "round groups of about equal size (k-means)"


def _comparison(found: Exploration) -> Group | None:
    one = found.comparison
    if one is None:
        return None
    table = Table(
        "",
        [
            Column("model", ["k-means", f"mixture ({one.covariance_type})"], left=True),
            Column("how well it describes new rows", [one.kmeans, one.mixture], "{:.3f}".format),
            Column("", ["chosen" if one.chosen == name else "" for name in ("k-means", "mixture")], left=True),
        ],
        f"Mean log-density of {counted(one.rows, 'held-out row')}, the larger the better; difference {one.gain:+.2g}, its "
        f"standard error {one.error:.1g}. Agreement of both groupings: {one.agreement + 0.0:.2f} (adjusted Rand index; 1 is "
        "the same groups, 0 is chance).",
    )
    return Group([Note(comparison_words(found)), table], "Round groups or clouds of any shape?", wide=True, only="page")


def group_total(found: Exploration) -> str:
    """The number of groups as a headline."""
    k = group_count(found)
    return "not known" if k is None else "none" if k == 1 else f"{k:,}"
