"""`look`: what a table holds, column by column, before anything is fitted."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Mapping
from textwrap import fill
from typing import Any

from foldwise.data.array_files import is_array_file
from foldwise.data.notes import Note
from foldwise.data.reading import Reading, reading_options
from foldwise.data.tables import open_table
from foldwise.prepare.decide import Decisions, decide
from foldwise.prepare.kinds import Decision
from foldwise.report.formats import counted
from foldwise.report.json import plain
from foldwise.report.look_images import ImageLook, MixedImageLook, look_at_images
from foldwise.report.text import WIDTH
from foldwise.report.values import Column, Part, Report, Table
from foldwise.report.values import Note as Sentences

_MOST_SHOWN = 100
_NAME, _VALUES, _REASON = 26, 38, 34  # characters
_LEVELS_IN_JSON = 20


class Look:
    """What a table holds: a line for each column (kind, missing cells, range or levels, shape, why), and what is worth knowing.

    Prints itself. `columns` are the decisions (`name`, `kind`, `reason`, `profile`), also found by name: `look["age"]`;
    `notes` have a topic and a text; `as_dict()` gives everything as plain values.
    """

    def __init__(self, decisions: Decisions) -> None:
        self._decisions = decisions

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return self._decisions.rows or 0

    @property
    def columns(self) -> tuple[Decision, ...]:
        """What was decided about each column."""
        return self._decisions.columns

    @property
    def notes(self) -> tuple[Note, ...]:
        """What is worth knowing about how the data were understood."""
        return self._decisions.notes

    def __getitem__(self, name: str) -> Decision:
        return self._decisions[name]

    def __iter__(self) -> Iterator[Decision]:
        return iter(self.columns)

    def __len__(self) -> int:
        return len(self.columns)

    def as_dict(self, *, values: bool = False) -> dict[str, Any]:
        """Rows, columns and warnings as plain values; with `values` every cell, dates as ISO text."""
        cells = self._values() if values else None
        columns = [
            _as_dict(one) | ({} if cells is None else {"values": cells[j]}) for j, one in enumerate(self.columns)
        ]
        warnings = [{"topic": note.topic, "text": note.text} for note in self.notes]
        return {"rows": self.rows, "columns": columns, "warnings": warnings}

    def _values(self) -> list[list[Any]]:
        rows = self._decisions.values().fetchall()
        columns = [list(column) for column in zip(*rows, strict=True)] if rows else [[] for _ in self.columns]
        return [_plain_cells(one, cells) for one, cells in zip(self.columns, columns, strict=True)]

    def report(self) -> Report:
        """The look as a report, which can be rendered as text or as a page."""
        return look_report(self)

    @property
    def about(self) -> str:
        """What was read, in one line."""
        table = self._decisions.table
        layout = f"; {table.layout}" if table.layout else ""
        return f"{table.where}: {counted(self.rows, 'row')}, {counted(len(self.columns), 'column')}{layout}"

    @property
    def judged(self) -> list[str]:
        """How many rows the kinds were judged by, if not by all."""
        first = self._decisions.first_rows
        return [f"kinds and levels are those of the first {first:,} rows"] if first < self.rows else []

    def __repr__(self) -> str:
        return str(self.report())

    def _repr_html_(self) -> str:
        return self.report()._repr_html_()


def look(
    x: Any, *, as_: Mapping[str, str] | None = None, reading: Reading | None = None, **options: Any
) -> Look | ImageLook | MixedImageLook:
    """What is in a table: which columns are numbers, categories, identifiers, dates, ..., with ranges, levels and warnings.

    `x` is a path, pattern, SQL text, DuckDB relation or data frame. `as_` says what columns are, as in {"zip": "category"}.
    `reading`, or its fields as options (header, delimiter, decimal, encoding, missing_values, sheet, table, skip, comment),
    says how a file is to be read. One pass over the rows; kinds are judged by the first million of them. Of images, it tells
    how many there are, their size, and their labels.

    >>> import pandas as pd
    >>> look(pd.DataFrame({"pet": ["cat", "dog", "cat", "cat"], "weight": [4.5, 9.0, 3.5, None]}))
    data frame: 4 rows, 2 columns
    <BLANKLINE>
    column  kind      missing  distinct  values                shape       why
    pet     category                  2  cat 3, dog 1                      words that repeat
    weight  number          1         3  3.5 to 9, mean 5.667  ██       █  numbers
    """
    asked = reading_options(reading, options)
    if is_array_file(x, asked.table) and (images := look_at_images(x, asked)) is not None:
        return images
    return Look(decide(open_table(x, asked), asked, as_=as_, whole=True))


def look_report(look: Look) -> Report:
    """The report on the columns of a table."""
    columns = look.columns
    shown = [_shown(one) for one in columns]
    table = Table(
        "Columns",
        [
            Column("column", [one.name for one in columns], [_cut(one.name, _NAME) for one in columns], left=True),
            Column("kind", [one.kind for one in columns], left=True),
            Column("missing", [one.profile.missing for one in columns], [_missing(one) for one in columns]),
            Column("distinct", [one.profile.distinct for one in columns], [_distinct(one) for one in columns]),
            Column("values", shown, [_cut(text, _VALUES) for text in shown], left=True),
            Column("shape", [_shape(one) for one in columns], left=True),
            Column("why", [one.reason for one in columns], [_cut(one.reason, _REASON) for one in columns], left=True),
        ],
        most=_MOST_SHOWN,
        wide=True,
    )
    lines = [fill(f"- {note.text}", WIDTH, subsequent_indent="  ") for note in look.notes]
    parts: list[Part] = [table, *([Sentences("\n".join(lines))] if lines else [])]
    return Report("What the table holds", [look.about, *look.judged], parts=parts)


def _cut(text: str, most: int) -> str:
    line = " ".join(text.split())
    return line if len(line) <= most else line[: most - 1] + "…"


def _missing(one: Decision) -> str:
    seen = one.profile
    if not seen.missing:
        return ""
    share = seen.missing_share
    return f"{seen.missing:,}" if share < 0.01 or seen.rows < 100 else f"{seen.missing:,} ({100 * share:.0f} %)"


def _distinct(one: Decision) -> str:
    if one.kind in ("nested", "empty"):
        return ""
    return f"{'' if one.profile.exact else '~'}{one.profile.distinct:,}"


def _shape(one: Decision) -> str:
    found = one.profile.histogram
    return found.line if found is not None and one.kind == "number" else ""


def _shown(one: Decision) -> str:
    seen = one.profile
    if one.kind in ("nested", "empty"):
        return ""
    if one.kind == "number" and seen.minimum is not None:
        unit = f" {one.unit}" if one.unit else ""
        return f"{figure(seen.minimum)} to {figure(seen.maximum)}{unit}, mean {figure(seen.mean or 0.0)}"
    if seen.holds == "numbers" and not seen.levels:
        return (
            figure(seen.minimum)
            if seen.minimum == seen.maximum
            else f"{figure(seen.minimum)} to {figure(seen.maximum)}"
        )
    if seen.holds == "dates":
        return f"{_moment(seen.minimum)} to {_moment(seen.maximum)}"
    if one.kind in ("identifier", "text"):
        return ", ".join(sorted(level for level, _ in seen.levels[:3])) + (", …" if seen.distinct > 3 else "")
    if one.kind == "constant":
        return seen.levels[0][0] if seen.levels else ""
    parts = [f"{_cut(level, 16)} {n:,}" for level, n in seen.levels[:6]]
    while len(parts) > 1 and len(", ".join(parts)) > _VALUES - 3:
        parts.pop()
    return ", ".join(parts) + (", …" if seen.distinct > len(parts) else "")


def figure(value: float) -> str:
    """A number with four significant digits, whole ones in full.

    >>> figure(1234567.0), figure(3.14159), figure(0.00001234)
    ('1,234,567', '3.142', '1.234e-05')
    """
    size = abs(value)
    if size < 1e15 and value == int(value):
        return f"{int(value):,}"
    if size >= 1e9 or 0 < size < 1e-4:
        return f"{value:.3e}"
    return f"{value:,.0f}" if size >= 1000 else f"{value:.4g}"


def _moment(value: Any) -> str:
    if not isinstance(value, dt.datetime):
        return str(value)
    day = value.date().isoformat()
    return day if value.time() == dt.time() else f"{day} {value:%H:%M}"


def _as_dict(one: Decision) -> dict[str, Any]:
    seen = one.profile
    found: dict[str, Any] = {"name": one.name, "kind": one.kind, "missing": seen.missing, "reason": one.reason}
    if one.kind in ("nested", "empty"):
        return found
    found |= {"distinct": seen.distinct, "distinct_exact": seen.exact}
    if seen.holds == "numbers":
        found |= {"min": seen.minimum, "max": seen.maximum, "mean": seen.mean, "deviation": seen.deviation}
        if seen.histogram is not None:
            found["histogram"] = list(seen.histogram.counts)
    elif seen.holds == "dates":
        found |= {"min": seen.minimum.isoformat(), "max": seen.maximum.isoformat()}
    if seen.levels:
        found["levels"] = dict(seen.levels[:_LEVELS_IN_JSON])
    if one.unit:
        found["unit"] = one.unit
    made: dict[str, Any] = plain(found)
    return made


def _plain_cells(one: Decision, cells: list[Any]) -> list[Any]:
    if one.kind != "date":
        return [plain(cell) for cell in cells]
    if one.zoned:
        return [None if cell is None else cell.replace(tzinfo=dt.UTC).isoformat() for cell in cells]
    days = all(cell is None or cell.time() == dt.time() for cell in cells)
    return [None if cell is None else cell.date().isoformat() if days else cell.isoformat() for cell in cells]
