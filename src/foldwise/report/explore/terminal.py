"""The exploration on a terminal: the groups in a table, then a line each on directions, unusual rows and what was noted."""

from __future__ import annotations

from textwrap import fill

from foldwise.report.explore.cautions import cautions_not_said
from foldwise.report.explore.groups import groups_made_by, numbers_of, rule_quality
from foldwise.report.explore.notes import other_notes
from foldwise.report.explore.rows import unusual_words
from foldwise.report.explore.units import Units, rule_words, shown_name
from foldwise.report.explore.verdicts import verdict_words
from foldwise.report.explore.words import name_of, share_of
from foldwise.report.formats import counted
from foldwise.report.text import WIDTH
from foldwise.report.values import Column, Note, Part, Table
from foldwise.selection.explore.result import ClusterSummary, Exploration

_MOST_GROUPS = 20
_MOST_NOTES = 4
_MOST_RULES = 6
_NAME, _RULE = 34, 18  # characters of a group's name, and of each column in its rule


def terminal_parts(found: Exploration) -> list[Part]:
    """What a terminal shows below the sentences."""
    table, rules = _table(found) if found.summaries else (None, [])
    lines = [fill(line, WIDTH, subsequent_indent="  ") for line in [*rules, *_lines(found)]]
    return [*([] if table is None else [table]), *([Note("\n".join(lines), only="text")] if lines else [])]


def _table(found: Exploration) -> tuple[Table, list[str]]:
    """The groups, and their rules as lines if the table has no room for them."""
    units, groups = Units.of(found), found.summaries
    rules = [rule_words(one, units, _RULE, brief=True) for one in groups]
    shares = [
        "" if one.rule is None or not rule else f"{100 * one.rule.precision:.0f} / {100 * one.rule.recall:.0f} %"
        for one, rule in zip(groups, rules, strict=True)
    ]
    columns = [
        Column("group", [one.number for one in groups], left=True),
        Column("rows", [one.rows for one in groups], "{:,}".format),
        Column("share", [one.share for one in groups], share_of),
        Column("name", [_called(one, units, _NAME) for one in groups], left=True),
        Column("stability", [verdict_words(one.verdict) for one in groups], left=True),
        Column("rule", rules, left=True),
        Column("right / found", shares, left=True),
    ]
    shown = [column for column in columns if any(cell for cell in column.cells)]
    wide = len("  ".join(max([column.name, *column.cells], key=len) for column in shown))
    lines = []
    if wide > WIDTH:
        names = Column("name", [_called(one, units, 2 * _NAME) for one in groups], left=True)
        shown = [names if one.name == "name" else one for one in shown if one.name not in ("rule", "right / found")]
        told = [one for one in groups if rule_words(one, units)][:_MOST_RULES]
        lines = [f"group {one.number}: {rule_words(one, units)}. {rule_quality(one)}" for one in told]
    return Table("The groups", shown, most=_MOST_GROUPS, only="text"), lines


def _called(one: ClusterSummary, units: Units, most: int) -> str:
    return name_of(shown_name(one, units), most) if one.name else ""  # groups of images need not have names


def _lines(found: Exploration) -> list[str]:
    lines = []
    if numbers_of(found) and found.clusters is not None:
        why = "" if found.comparison is None else f": {found.comparison.reason.rstrip('.')}"
        lines.append(f"groups: {groups_made_by(found)}{why}")
    if found.outliers is not None:
        lines.append(f"unusual rows: {unusual_words(found)}")
    lines += [f"note: {one}" for one in cautions_not_said(found)[:_MOST_NOTES]]
    lines += [f"note: {name_of(one, 300)}" for one in found.notes]
    more = other_notes(found)
    lines += [f"note: {name_of(note, 300)}" for note in more[:_MOST_NOTES]]
    hidden = len(more) - _MOST_NOTES
    lines += [f"and {counted(hidden, 'more note')} on the page"] * (hidden > 0)
    return lines
