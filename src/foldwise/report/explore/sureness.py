"""How sure the groups are: silhouettes, groups found again in other draws, and the consensus of many clusterings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from foldwise.models.ensemble.consensus_matrix import Coassociation
from foldwise.report.charts import share_histogram
from foldwise.report.ensemble import neighbours_together
from foldwise.report.explore.groups import numbers_of
from foldwise.report.explore.units import Units
from foldwise.report.explore.verdicts import groups_in_words, verdict_words
from foldwise.report.explore.words import listed, name_of, sentence_of, share_of
from foldwise.report.formats import counted, whole_percent
from foldwise.report.group_charts import found_again, silhouette_areas
from foldwise.report.heat_map import heat_map
from foldwise.report.svg import colour
from foldwise.report.values import Chart, Column, Group, Part, Table
from foldwise.selection.explore.result import Exploration

_MOST_DRAWN = 300  # rows of the consensus matrix
_MOST_LEVELS = 8
_MOST_CATEGORIES = 4
_LEAST_ASSOCIATION = 0.1


def sureness_parts(found: Exploration) -> list[Part]:
    """What is known about it; what was not reached is left out."""
    if not numbers_of(found):
        return []
    made = [*_stability(found), _silhouettes(found), _consensus(found)]
    return [*paired([part for part in made if part is not None]), *_categories(found)]


def paired(charts: Sequence[Chart]) -> list[Chart]:
    """Charts two by two beside each other; the last of an odd number takes the whole width."""
    return [replace(one, wide=i == len(charts) - 1 and i % 2 == 0) for i, one in enumerate(charts)]


def _stability(found: Exploration) -> list[Chart]:
    one = found.stability
    if one is None:
        return []
    numbers = list(range(one.n_clusters))
    told = {each.number: verdict_words(each.verdict) for each in found.summaries}
    verdicts = [told.get(number, "") for number in numbers]
    known, weights = one.known_confidence
    fine = ~np.isnan(known)
    sure = float(weights[fine][known[fine] >= 0.9].sum() / max(weights[fine].sum(), 1e-300))
    bars = Chart(
        "Are the groups found again?",
        lambda: found_again(one.jaccard, one.base, verdicts, numbers),
        f"{counted(one.n_repeats, 'repeat')} with rows drawn at random. Bars: rows in the group and in the most similar one of "
        f"a repeat, over rows in either; 1 is never changed.{_marks(found)}",
        alt=sentence_of(groups_in_words(found) or "how well each group is found again"),
        only="page",
    )

    def histogram() -> str:
        counts, _ = np.histogram(known[fine], 20, (0.0, 1.0), weights=weights[fine])
        return share_histogram(counts / max(counts.sum(), 1e-300), "share of repeats in which a row keeps its group")

    rows = Chart(
        "How surely rows keep their groups",
        histogram,
        sentence_of(f"{share_of(sure)} of the rows keep their group in 9 of 10 repeats or more")
        + " Rows at the left lie between groups.",
        alt=sentence_of(f"{share_of(sure)} of the rows keep their group in at least 9 of 10 repeats"),
        only="page",
    )
    return [bars, rows]


def _marks(found: Exploration) -> str:
    """What the marks are, and why a verdict may be better than they say."""
    assert found.stability is not None
    if not np.isfinite(found.stability.base).any():
        return ""
    own = [one.verdict for one in found.summaries]
    told = " Marks: what parts of a single cloud, or chance, would reach."
    if not own or own == list(found.stability.verdicts):
        return told
    return f"{told} Gaps between all of these groups speak for them, and make the verdict on each better by a step."


def _silhouettes(found: Exploration) -> Chart | None:
    judged, labels = found.silhouette, found.silhouette_labels
    if judged is None or judged.values is None or labels is None or not len(judged.values):
        return None
    fine = ~np.isnan(judged.values) & (labels >= 0)
    values, own = judged.values[fine], labels[fine]
    wrong = share_of(float(np.mean(values < 0))) if len(values) else "0 %"
    sample = (
        ""
        if judged.exact
        else f" Of {counted(len(values), 'row')} drawn at random, standard error {judged.standard_error:.1g}."
    )
    return Chart(
        "How far apart the groups are",
        lambda: silhouette_areas(values, own, numbers_of(found), judged.mean),
        "One line for each row, sorted within its group (silhouettes): near 1 it is far from other groups, at 0 between two, "
        f"below 0 nearer to another; {wrong} of the rows are.{sample}",
        alt=f"Mean silhouette {judged.mean:.2f}; {wrong} of the rows are nearer to another group than to their own.",
        only="page",
    )


def _consensus(found: Exploration) -> Chart | None:
    model = found.ensemble
    if model is None:
        return None
    same = found.labels is not None and len(found.labels) == len(model.labels_)
    labels = found.labels if same and found.labels is not None else model.labels_
    rows = np.flatnonzero((labels >= 0) & (model.labels_ >= 0))
    order = rows[np.argsort(labels[rows], kind="stable")]
    few = len(order) <= _MOST_DRAWN
    shown = order if few else order[np.linspace(0, len(order) - 1, _MOST_DRAWN).astype(np.intp)]

    def draw() -> str | None:
        if len(shown) < 2:
            return None
        matrix = Coassociation(model.clusterings.some(shown)).toarray()
        places = neighbours_together(matrix, labels[shown])
        return heat_map(matrix[np.ix_(places, places)], labels[shown][places].tolist())

    agree = found.ensemble_agreement
    closely = "the same groups" if agree > 0.9 else "much the same groups" if agree > 0.6 else "partly other groups"
    told = f" On the whole they find {closely} (agreement {agree:.2f}, 1 is the same)." if agree == agree else ""
    numbers = "" if same else " The numbers are those of the consensus, found from a sample."
    sizes = sorted({int(size) for size in model.base_sizes_})
    parts = (
        f" The clusterings have {sizes[0]} to {sizes[-1]} parts each: those with many parts split a group, which then shows "
        "as several dark squares; paler colour between them, within the lines of the group, comes from those with few parts."
        if len(sizes) > 1
        else ""
    )
    which = "all rows" if few else f"{counted(len(shown), 'row')}, evenly from all"
    return Chart(
        "Do many clusterings agree?",
        draw,
        f"For {which}, in the order of the groups: the stronger the colour, the more often two rows are together in "
        f"{counted(len(model.base_sizes_), 'clustering')}. Pale between two groups: they are hardly ever mixed."
        f"{parts}{told}{numbers}",
        alt=f"Consensus of {len(model.base_sizes_)} clusterings.{told}",
        only="page",
    )


def _categories(found: Exploration) -> list[Part]:
    """How labels and other categories are spread over the groups."""
    tables: list[Table | Chart] = []
    units = Units.of(found)
    close = [one for one in found.categories if one.is_label or one.association >= _LEAST_ASSOCIATION]
    for one in close[:_MOST_CATEGORIES]:
        order = np.argsort(-one.overall, kind="stable")[:_MOST_LEVELS]
        numbers = [number for number in numbers_of(found) if number < len(one.counts)]
        columns = [Column("group", [*map(str, numbers), "all"], left=True)]
        for j in order:
            shares = [*(float(one.shares[number, j]) for number in numbers), float(one.overall[j])]
            columns.append(Column(name_of(units.word(one.name, one.levels[j]), 24), shares, whole_percent))
        hidden = len(one.levels) - len(order)
        rest = f" {counted(hidden, 'more level')} not listed." if hidden > 0 else ""
        agrees = (
            f"Agreement with the groups: {one.agreement + 0.0:.2f} (adjusted Rand index; 1 is the same, 0 is chance)."
        )
        tables.append(
            Table(
                name_of(one.name, 24),
                columns,
                f"{agrees}{rest}",
                total=True,
                colours=[*(colour(number) for number in numbers), "transparent"],
            )
        )
    if not tables:
        return []
    apart = [name_of(one.name, 24) for one in found.categories if not any(one is other for other in close)]
    rest = f" Hardly related to the groups: {listed(apart)}." if apart else ""
    caption = f"Shares of the rows of each group. Categories did not take part in finding the groups.{rest}"
    return [Group(tables, "Groups and categories", caption, wide=True, only="page")]
