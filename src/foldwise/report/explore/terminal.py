"""The exploration on a terminal: the groups in a table, then a line each on directions, unusual rows and what was noted."""

from __future__ import annotations

from textwrap import fill

from foldwise.report.explore.cautions import cautions
from foldwise.report.explore.groups import rule_quality
from foldwise.report.explore.words import deviations, name_of, rows_words, rule_words, share_of
from foldwise.report.formats import short_number
from foldwise.report.text import WIDTH
from foldwise.report.values import Column, Note, Part, Table
from foldwise.selection.explore.result import Exploration

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
    spread, groups = deviations(found), found.summaries
    rules = [rule_words(one, spread, _RULE, brief=True) for one in groups]
    shares = [
        "" if one.rule is None or not rule else f"{100 * one.rule.precision:.0f} / {100 * one.rule.recall:.0f} %"
        for one, rule in zip(groups, rules, strict=True)
    ]
    columns = [
        Column("group", [one.number for one in groups], left=True),
        Column("rows", [one.rows for one in groups], "{:,}".format),
        Column("share", [one.share for one in groups], share_of),
        Column("name", [name_of(one.name, _NAME) for one in groups], left=True),
        Column("found again", [one.verdict or "not checked" for one in groups], left=True),
        Column("rule", rules, left=True),
        Column("right / found", shares, left=True),
    ]
    shown = [column for column in columns if any(cell for cell in column.cells)]
    wide = len("  ".join(max([column.name, *column.cells], key=len) for column in shown))
    lines = []
    if wide > WIDTH:
        shown = [column for column in shown if column.name not in ("rule", "right / found")]
        told = [one for one in groups if rule_words(one, spread)][:_MOST_RULES]
        lines = [f"group {one.number}: {rule_words(one, spread)}. {rule_quality(one)}" for one in told]
    return Table("The groups", shown, most=_MOST_GROUPS, only="text"), lines


def _lines(found: Exploration) -> list[str]:
    lines = []
    if found.components is not None:
        lines.append(f"directions: {found.components.sentence}")
    if (out := found.outliers) is not None:
        limits = f"T2 above {short_number(out.t2_limit)}: {rows_words(out.t2_count)}"
        if out.residual_limit == out.residual_limit:
            limits += f"; residual above {short_number(out.residual_limit)}: {rows_words(out.residual_count)}"
        first = [str(row) for row in out.rows[:5].tolist()]
        more = f"; the most extreme are rows {', '.join(first)}" if len(first) > 1 else ""
        lines.append(
            f"unusual rows: {limits} (by chance about {out.expected:,.{1 if out.expected < 10 else 0}f}){more}"
        )
    lines += [f"note: {name_of(note, 300)}" for note in found.overview.notes[:_MOST_NOTES]]
    hidden = len(found.overview.notes) - _MOST_NOTES
    lines += [f"and {hidden} more notes on the page"] * (hidden > 0)
    said = cautions(found)
    lines += [f"note: {one}" for one in said[3:6]]
    return lines
