"""What a notebook shows of a fitted model or a result: one line, a few figures, a small table, a small picture.

It comes after every line that ends in a model, so it reads no rows and takes a few milliseconds.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from html import escape
from typing import Any

from foldwise.report.in_notebook_models import brief_of_model
from foldwise.report.results import result_report
from foldwise.report.values import Chart, Column, Group, Note, Part, Report, Table

_MOST_ROWS, _MOST_COLUMNS, _MOST_FACTS, _MOST_LETTERS = 10, 8, 4, 60
_STYLE = """
.foldwise-brief{font:13px/1.45 system-ui,sans-serif;max-width:960px}
.foldwise-brief{--ink:currentColor;--muted:#7b8794;--faint:#8883;--paper:transparent}
.foldwise-brief .fw-head{font-weight:600}.foldwise-brief .fw-note{opacity:.75}
.foldwise-brief ul{margin:4px 0;padding-left:1.3em}
.foldwise-brief .fw-row{display:flex;flex-wrap:wrap;gap:8px 28px;align-items:flex-start;margin-top:4px}
.foldwise-brief table{border-collapse:collapse;margin:0;font-variant-numeric:tabular-nums;font-size:13px}
.foldwise-brief th,.foldwise-brief td{padding:1px 12px 1px 0;text-align:right;vertical-align:top;border:0;background:none}
.foldwise-brief th{font-weight:600;border-bottom:1px solid #8885}.foldwise-brief .fw-l{text-align:left}
.foldwise-brief svg{max-width:340px;height:auto}.foldwise-brief svg text{fill:currentColor}
.foldwise-brief i.fw-dot{display:inline-block;width:9px;height:9px;border-radius:50%;margin-right:6px}
"""


def brief(shown: Any) -> str | None:
    """The element, or what Python prints if that goes wrong: a notebook should not fail at the sight of a result."""
    try:
        report = brief_of_model(shown) or result_report(shown)
        return None if report is None else _element(report)
    except Exception:
        return f"<pre>{escape(repr(shown))}</pre>"


def _element(report: Report) -> str:
    head = f'<div class="fw-head">{escape(report.title)}</div>'
    lines = "".join(f'<div class="fw-note">{escape(line)}</div>' for line in report.about[:2])
    facts = " · ".join(
        f"{escape(fact.name)} <b>{escape(fact.text)}</b> <span class='fw-note'>{escape(fact.remark)}</span>"
        for fact in report.facts[:_MOST_FACTS]
    )
    lead = "".join(f"<li>{escape(_cut(one, 600))}</li>" for one in report.lead)
    parts = list(_flat(report.parts))
    notes = "".join(f"<div>{escape(_cut(one.text, 400))}</div>" for one in parts if isinstance(one, Note))
    tables = [_table(one) for one in parts if isinstance(one, Table)][:1]
    picture = next(filter(None, (one.draw() for one in parts if isinstance(one, Chart))), None)
    row = "".join(f"<div>{one}</div>" for one in [*tables, *([picture] if picture else [])])
    body = [head, lines, _inside("div", facts), _inside("ul", lead), notes, f"<div class='fw-row'>{row}</div>"]
    return f'<div class="foldwise-brief"><style>{_STYLE}</style>{"".join(body)}</div>'


def _inside(element: str, content: str) -> str:
    return f"<{element}>{content}</{element}>" if content else ""


def _flat(parts: Any) -> Iterator[Part]:
    for part in parts:
        if isinstance(part, Group):
            yield from _flat(part.parts)
        elif part.only != "text":
            yield part


def _table(table: Table) -> str:
    columns, unseen = table.columns[:_MOST_COLUMNS], len(table.columns) - _MOST_COLUMNS
    many = len(columns[0].values) - table.total if columns else 0
    hidden = max(0, many - _MOST_ROWS)
    if hidden and not table.total:  # what is not shown need not be written
        columns = [replace(one, values=one.values[:_MOST_ROWS], show=_some(one)) for one in columns]
    rows, _ = Table(table.title, columns, total=table.total).rows(_MOST_ROWS)
    side = [' class="fw-l"' if column.left else "" for column in columns]
    head = "".join(f"<th{one}>{escape(_cut(column.name))}</th>" for one, column in zip(side, columns, strict=True))
    lines = []
    for i, row in enumerate(rows):
        cells = [escape(_cut(cell)) for cell in row]
        if table.colours:
            cells[0] = f'<i class="fw-dot" style="background:{escape(table.colours[i])}"></i>{cells[0]}'
        lines.append("<tr>" + "".join(f"<td{one}>{cell}</td>" for one, cell in zip(side, cells, strict=True)) + "</tr>")
    more = [f"{hidden:,} more rows"] * (hidden > 0) + [f"{unseen:,} more columns"] * (unseen > 0)
    after = f'<div class="fw-note">and {" and ".join(more)}</div>' if more else ""
    named = any(column.name for column in columns)
    return f"<table>{f'<tr>{head}</tr>' if named else ''}{''.join(lines)}</table>{after}"


def _some(column: Column) -> Any:
    return column.show if callable(column.show) else list(column.show)[:_MOST_ROWS]


def _cut(words: str, most: int = _MOST_LETTERS) -> str:
    return words if len(words) <= most else words[: most - 1] + "…"
