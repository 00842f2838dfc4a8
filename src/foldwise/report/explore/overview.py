"""The data: what each column is and what is done with it, what it holds, and which columns go together."""

from __future__ import annotations

import numpy as np

from foldwise.report.column_charts import level_bars, small_histogram
from foldwise.report.explore.cautions import alike_pairs
from foldwise.report.explore.images import image_shape_in
from foldwise.report.explore.notes import other_notes, serious_notes
from foldwise.report.explore.units import own_words
from foldwise.report.explore.words import listed, name_of, sentence_of, share_of, values_in_units
from foldwise.report.formats import counted
from foldwise.report.heat_table import heat_grid, heat_table
from foldwise.report.values import Chart, Column, Group, Note, Part, Table
from foldwise.selection.explore.result import ColumnSummary, Exploration

_MOST_ROWS = 60  # columns in the table
_HEAD, _ACROSS = 86.0, 820.0  # pixels of the name of a column, and of all of them
_FEW = 12  # columns that need no search
_MOST_PANELS = 24
_WITH_FIGURES = 14  # columns up to which correlations are written
_MOST_CORRELATED = 40
_LEVELS = 6
_TOLD_PAIRS = 5
_NOTABLE = 0.3  # a correlation that is worth words
_ORDER = {"used": 0, "describing": 1, "label": 1, "weight": 2, "identifier": 2, "left out": 3}
_ROLES = {"used": "compared", "describing": "describes the rows", "label": "label, describes the rows"}


def overview_parts(found: Exploration) -> list[Part]:
    """Notes, the columns as a table, as small pictures, and how they go together; of images the notes."""
    if image_shape_in(found) is not None:
        return _notes(found)
    shown = _shown(found)
    return [*_notes(found), _table(found, shown[:_MOST_ROWS]), *_pictures(found, shown), *_correlations(found)]


def _notes(found: Exploration) -> list[Part]:
    """How the table was understood, what may be wrong first."""
    serious, others = serious_notes(found), other_notes(found)
    told = [*serious, *(name_of(note.rstrip("."), 400) for note in others)]
    if not told:
        return []
    lines = [sentence_of(note) for note in told]
    return [Group([Note("\n".join(lines))], "How the table was understood", wide=True, only="page")]


def _shown(found: Exploration) -> list[ColumnSummary]:
    """The columns, those that are used first; of very many, those that vary most among the rows or between groups."""
    columns = list(found.overview.columns)
    if len(columns) <= _MOST_ROWS:
        return sorted(columns, key=lambda one: _ORDER.get(one.role, 3))
    weight = np.asarray(found.pca.column_variances_, dtype=np.float64)
    if found.scale:
        weight = np.zeros(len(found.names))
    if found.profile is not None:
        weight = np.nan_to_num(np.asarray(found.profile.separation, dtype=np.float64))
    rank = dict(zip(found.names, weight.tolist(), strict=False))
    return sorted(columns, key=lambda one: (_ORDER.get(one.role, 3), -rank.get(one.name, 0.0)))


def _table(found: Exploration, shown: list[ColumnSummary]) -> Table:
    rows = found.overview.judged_rows
    every = len(found.overview.columns)
    ranges = [_range(one) for one in shown]
    missing = [one.missing / rows if rows else 0.0 for one in shown]
    columns = [
        Column("column", [one.name for one in shown], [name_of(one.name) for one in shown], left=True),
        Column("kind", [one.kind for one in shown], left=True),
        Column("what is done with it", [_ROLES.get(one.role, one.role) for one in shown], left=True),
        Column(
            "why", [one.why for one in shown], [name_of(one.why, 90) if one.why else "" for one in shown], left=True
        ),
        Column("missing", missing, [_missing(one, rows) for one in shown]),
        Column("distinct", [one.distinct for one in shown], [_distinct(one) for one in shown]),
        Column("low", [one.low for one in shown], [cells[0] for cells in ranges]),
        Column("mean", [one.mean for one in shown], [cells[1] for cells in ranges]),
        Column("high", [one.high for one in shown], [cells[2] for cells in ranges]),
    ]
    words = []
    if every > len(shown):
        most = "that differ most between the groups" if found.profile is not None else "that vary most"
        how = "those used first" if found.profile is None and found.scale else f"those {most} first"
        words.append(f"{len(shown)} of {counted(every, 'column')}, {how}.")
    if found.overview.judged_rows < found.overview.rows:
        words.append(f"Figures are of {counted(rows, 'row')} of {found.overview.rows:,}.")
    how = "brought to equal spread" if found.scale else "compared in their own units"
    words.append(f"The columns are {how}{f' ({found.scale_reason})' if found.scale_reason else ''}.")
    told = [column for column in columns if any(column.cells)]  # of very many columns, no figures were taken
    return Table("The columns", told, " ".join(words), most=_MOST_ROWS, searchable=every > _FEW, wide=True, only="page")


def _range(one: ColumnSummary) -> tuple[str, str, str]:
    if one.low is None or one.mean is None or one.high is None:
        return "", "", ""
    low, mean, high = values_in_units([one.low, one.mean, one.high], one.deviation)
    if one.why.startswith("whole numbers") and one.low.is_integer() and one.high.is_integer():
        return f"{one.low:,.0f}", mean, f"{one.high:,.0f}"
    return low, mean, high


def _missing(one: ColumnSummary, rows: int) -> str:
    return (
        "none"
        if not one.missing
        else f"{one.missing:,} ({share_of(one.missing / rows)})"
        if rows
        else f"{one.missing:,}"
    )


def _distinct(one: ColumnSummary) -> str:
    return "" if one.distinct is None else f"{one.distinct:,}"


def _pictures(found: Exploration, shown: list[ColumnSummary]) -> list[Part]:
    drawn = [one for one in shown if (one.counts is not None and one.edges is not None) or one.levels]
    charts = [_picture(one, found.overview.judged_rows) for one in drawn[:_MOST_PANELS]]
    more = len(drawn) - len(charts)
    caption = f"{counted(more, 'more column')} {'is' if more == 1 else 'are'} not drawn." if more > 0 else ""
    return [Group(charts, "What the columns hold", caption, panels=True, wide=True, only="page")] if charts else []


def _picture(one: ColumnSummary, rows: int) -> Chart:
    missing = f", {share_of(one.missing / rows)} missing" if one.missing and rows else ""
    name = name_of(one.name)
    if one.counts is not None and one.edges is not None:
        edges, counts = one.edges, [int(count) for count in one.counts]
        low, mean, high = _range(one)
        told = f"{low} to {high}, mean {mean}{missing}" if low else missing.lstrip(", ")
        return Chart(name, lambda: small_histogram(edges, counts), told, alt=f"{name}: numbers from {told}.")
    words = own_words(one)
    levels = [(name_of(words.get(level.lower(), level)), count) for level, count in one.levels[:_LEVELS]]
    rest = max(0, rows - one.missing - sum(count for _, count in levels))
    distinct = f"{counted(one.distinct, 'level')}{missing}" if one.distinct is not None else missing.lstrip(", ")
    most = listed([f"{level} ({count:,})" for level, count in levels], 3)
    alt = f"{name}: most frequent are {most}." if len(levels) > 1 else f"{name}: {most}."
    return Chart(name, lambda: level_bars(levels, rest, one.missing), distinct, alt=alt)


def pair_words(found: Exploration) -> str:
    """The most correlated pairs in words."""
    pairs = [pair for pair in alike_pairs(found) if abs(pair[2]) >= _NOTABLE][:_TOLD_PAIRS]
    if not pairs:
        return "No two columns go together closely: every correlation is below 0.3."
    said = [
        f"{name_of(one, 30)} and {name_of(two, 30)} {'rise together' if value > 0 else 'run against each other'} ({value:+.2f})"
        for one, two, value in pairs
    ]
    return f"The closest pairs: {'; '.join(said)}."


def _correlations(found: Exploration) -> list[Part]:
    matrix, places = found.overview.correlation, found.overview.correlated
    if matrix is None or len(places) < 2:
        return []
    some = min(len(places), _MOST_CORRELATED)
    names = [name_of(found.names[place]) for place in places[:some]]
    values = np.asarray(matrix, dtype=np.float64)[:some, :some]
    few = some <= _WITH_FIGURES

    def draw() -> str:
        if few:
            room = max(_HEAD, min(2 * _HEAD, _ACROSS / some - 12))
            return heat_table(values, names, names, 1.0, show="{:+.2f}".format, name=room)
        return heat_grid(values, names, 1.0)

    which = "" if some == len(found.names) else f"{some} of the {len(found.names):,} columns compared. "
    order = "" if few else "Columns from left to right are those from top to bottom. "
    colours = "Blue: they rise together. Orange: one falls as the other rises. The stronger, the closer to 1 or -1."
    caption = f"{which}{order}{colours}"
    chart = Chart("Which columns go together", draw, caption, alt=pair_words(found))
    return [Group([chart, Note(pair_words(found))], wide=True, only="page")]
