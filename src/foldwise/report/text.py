"""A report as text, the same on a terminal, in a pipe and in a file."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import fill

from foldwise.report.values import Chart, Note, Part, Report, Scatter, Table

WIDTH = 116  # characters that most terminals have room for


def as_text(report: Report) -> str:
    """What ran, the figures, the tables and the notes; charts are for pages.

    >>> from foldwise.report.values import Fact
    >>> print(as_text(Report("A title", ["data.csv: 9 rows"], [Fact("inertia", 2.5, "2.50", "of scaled columns")])))
    data.csv: 9 rows
    <BLANKLINE>
    inertia  2.50 of scaled columns
    """
    facts, parts = report.for_("text")
    widest = max((len(fact.name) for fact in facts), default=0)
    lines = [f"{fact.name:<{widest}}  {fact.text} {fact.remark}".rstrip() for fact in facts]
    lead = report.lead if report.lead_only in (None, "text") else []
    heads = [
        "\n".join([*report.data, *report.about]),
        "\n".join(fill(line, WIDTH, subsequent_indent="  ") for line in lead),
        "\n".join(lines),
    ]
    blocks = [*heads, *(_block(part) for part in parts)]
    return "\n\n".join(block for block in blocks if block)


def _block(part: Part) -> str:
    if isinstance(part, Note):
        return part.text
    if isinstance(part, (Chart, Scatter)):
        return ""
    if isinstance(part, Table):
        rows, hidden = part.rows(part.most)
        lines = [
            align(
                [column.name for column in part.columns],
                rows,
                left=[j for j, column in enumerate(part.columns) if column.left],
            )
        ]
        lines += [f"... and {hidden:,} more"] * (hidden > 0) + [fill(part.caption, WIDTH)] * bool(part.caption)
        return "\n".join(lines)
    shown = (_block(one) for one in part.parts if one.only in (None, "text"))
    return "\n\n".join(block for block in shown if block)


def align(head: Sequence[str], rows: Sequence[Sequence[str]], *, left: Sequence[int] = (0,)) -> str:
    """Columns as wide as their widest cell; those numbered in `left` are set flush left, the others flush right.

    >>> print(align(["name", "share"], [["a", "9.5 %"], ["bcd", "90.5 %"]]))
    name   share
    a      9.5 %
    bcd   90.5 %
    """
    widths = [max(len(cell) for cell in column) for column in zip(head, *rows, strict=True)]
    lines = []
    for row in [head, *rows]:
        cells = [f"{c:<{w}}" if j in left else f"{c:>{w}}" for j, (c, w) in enumerate(zip(row, widths, strict=True))]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)
