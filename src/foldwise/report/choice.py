"""The report on the number of clusters: the votes, and what each criterion looked at."""

from __future__ import annotations

from functools import partial

import numpy as np

from foldwise.data.source import Source
from foldwise.models.kmeans.geometry import GEOMETRIES
from foldwise.report.charts import vote_curve
from foldwise.report.formats import counted
from foldwise.report.run_header import left_out, told
from foldwise.report.values import Chart, Column, Fact, Group, Note, Part, Report, Table
from foldwise.selection.clusters.criteria import CRITERIA
from foldwise.selection.clusters.criterion import Judgement
from foldwise.selection.clusters.result import ClusterChoice
from foldwise.selection.votes import accepted, said


def choice_report(choice: ClusterChoice, source: Source, *, scale: bool = False, metric: str = "euclidean") -> Report:
    """The answer, the votes, and a chart for each criterion."""
    rows = "" if source.n_rows is None else f"{counted(source.n_rows, 'row')}, "
    label = GEOMETRIES[metric].label
    words = [*(["scaled columns"] if scale else []), "k-means", *([label] if label else [])]
    work = ", ".join([*words, f"1 to {choice.ks[-1]} clusters", f"{choice.outcome.seconds:.2f} s"])
    size = f"{rows}{counted(source.n_columns, 'column')} ({source.dtype.name})"
    if getattr(source, "recipe", None) is not None:  # the lines before tell what was read
        about = [f"in the fits: {size}", work]
    else:
        about = [f"{source.where}: {size}", work, *left_out(source.left_out)]
    parts = [*choice_parts(choice), *choice_charts(choice)]
    return Report("How many clusters?", about, [choice_fact(choice)], parts, told(source), [choice.sentence], "page")


def choice_fact(choice: ClusterChoice) -> Fact:
    """The answer as a headline."""
    answer = "not known" if choice.n_clusters is None else str(choice.n_clusters) if choice.found else "none"
    return Fact("clusters found", choice.n_clusters, answer, f"({choice.strength:.0%} of the votes)")


def choice_parts(choice: ClusterChoice) -> list[Part]:
    """The answer and its reasons, for reports that go on with the clusters themselves and end with `choice_charts`."""
    table = Table(
        "Votes",
        [
            Column("criterion", [one.rule for one in choice.votes], left=True),
            Column("clusters", [one.chosen for one in choice.votes], [said(one) for one in choice.votes]),
            Column("range", [accepted(one) for one in choice.votes], left=True),
            Column("counts", [one.weight for one in choice.votes], "{:g}".format),
            Column("reason", [one.reason for one in choice.votes], left=True),
        ],
        _caption(choice),
    )
    return [Group([Note(choice.sentence, only="text"), table], "How many clusters?", wide=True)]


def choice_charts(choice: ClusterChoice) -> list[Part]:
    """What each criterion looked at: charts and figures, for pages."""
    charts = [_chart(name, one) for name, one in choice.judgements.items()]
    words = "Orange: the choice of the criterion. Dashed: what rows without clusters have."
    curves = Group(charts, "What each criterion saw", words, panels=True, wide=True, only="page")
    figures = _by_number(choice)
    return [curves, figures]


def _caption(choice: ClusterChoice) -> str:
    parts = [
        "1 means no clusters. Where dip finds no gap there are none, unless 90 % of the other votes are for one number."
    ]
    if choice.n_clusters == 1 and any(one.rule == "dip" and one.chosen != 1 for one in choice.votes):
        parts.append("Here 60 % of the other votes or more are for 1, and overrule it: gaps can occur by chance.")
    parts += [f"{note.capitalize()}." for note in choice.notes]
    if choice.unfinished:
        parts.append(f"Not finished when it was stopped: {', '.join(choice.unfinished)}.")
    return " ".join(parts)


def _by_number(choice: ClusterChoice) -> Table:
    """The figures of all criteria, one line for each number."""
    found = choice.table
    columns = [Column("clusters", list(choice.ks))]
    for place, name in enumerate(found.columns):
        columns.append(Column(name, found.values[:, place].tolist(), "{:.4g}".format))
    return Table("Figures of all criteria", columns, most=100, wide=True, only="page", collapsed=True)


def _chart(name: str, one: Judgement) -> Chart:
    label = CRITERIA[name].label
    draw = partial(_draw, one)
    title = label[0].upper() + label[1:]
    chosen = "no number" if one.vote.chosen is None else f"{one.vote.chosen}"
    return Chart(title, draw, alt=f"{title} by the number of clusters; it votes for {chosen}: {one.vote.reason}.")


def _draw(one: Judgement) -> str | None:
    some = np.isfinite(one.values)
    if np.count_nonzero(some) < 2:
        return None
    ks = [k for k, known in zip(one.ks, some, strict=True) if known]
    errors = None if one.errors is None else one.errors[some]
    null = None if one.null is None else one.null[some]
    return vote_curve(ks, one.values[some], errors, null, one.vote.chosen if one.at is None else one.at)
