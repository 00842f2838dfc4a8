"""Where the table is in a sheet: below titles, beside an empty column, under one or two header lines, above a total."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from foldwise.data.cells import MISSING, shown
from foldwise.data.notes import Note
from foldwise.data.reading import Reading

Grid = list[list[Any]]  # all rows of a sheet from its first, of one length, "" where a cell is empty
Merged = Sequence[tuple[tuple[int, int], tuple[int, int]]]  # first and last cell of each range, by row and column
_TOTAL = re.compile(
    r"(grand[ -]?)?(sub[ -]?)?(totals?|sums?|summe|gesamt|gesamtsumme|insgesamt|totaal|totale|suma|somme)\b:?\s*$",
    re.IGNORECASE,
)
_MOST_HEADERS = 3  # lines


@dataclass(frozen=True)
class Layout:
    """The table within a grid: names (None without a header), the rows of the data and their columns."""

    names: list[str] | None
    rows: list[int]
    columns: list[int]
    notes: tuple[Note, ...]


def layout(grid: Grid, merged: Merged, reading: Reading) -> Layout:
    """Find the table; `reading` may say how many rows to skip, and whether there is a header."""
    notes: list[Note] = []
    first = reading.skip or 0
    filled = [i for i in range(first, len(grid)) if any(not _empty(cell) for cell in grid[i])]
    if not filled:
        return Layout([], [], [], ())
    start = first if reading.skip else _start(grid, filled)
    titles = [i for i in filled if i < start]
    if titles:
        notes.append(Note("title-rows", f"{_lines(titles)} above the table left out: {_quoted(grid, titles)}"))
    body = [i for i in filled if i >= start]
    body, below = _without_remarks(grid, body)
    if below:
        notes.append(Note("comment-lines", f"{_lines(below)} below the table left out: {_quoted(grid, below)}"))
    columns = [j for j in range(len(grid[0])) if any(not _empty(grid[i][j]) for i in body)]
    height = _header_height(grid, body, columns, merged, reading.header)
    names = None
    if height:
        names = _names(grid, body[:height], columns, merged)
        if height > 1:
            notes.append(
                Note("merged-cells", f"the header is {height} lines, which were joined: {', '.join(names[:8])}")
            )
    elif reading.header is None:
        notes.append(Note("no-header", f"row {body[0] + 1} holds values, so that the columns have no names"))
    rows = body[height:]
    if len(rows) > 1 and (word := _total(grid, rows, columns)):
        cells = ", ".join(shown(grid[rows[-1]][j]) for j in columns if not _empty(grid[rows[-1]][j]))
        notes.append(Note("total-row", f"row {rows[-1] + 1} ({word}) is no record and was left out: {cells}"))
        rows = rows[:-1]
    return Layout(names, rows, columns, tuple(notes))


def _empty(cell: Any) -> bool:
    return cell is None or (isinstance(cell, str) and not cell.strip())


def _is_word(cell: Any) -> bool:
    """Whether a cell holds text that is neither a number nor a sign of a missing value."""
    if not isinstance(cell, str) or cell.strip().lower() in MISSING:
        return False
    try:
        float(cell)
    except ValueError:
        return True
    return False


def _lines(rows: Sequence[int]) -> str:
    return f"row {rows[0] + 1}" if len(rows) == 1 else f"rows {rows[0] + 1} to {rows[-1] + 1}"


def _quoted(grid: Grid, rows: Sequence[int]) -> str:
    texts = [shown(next(cell for cell in grid[i] if not _empty(cell)))[:60] for i in rows]
    return "; ".join(texts[:3]) + ("; ..." if len(texts) > 3 else "")


def _width(grid: Grid, row: int) -> int:
    return sum(not _empty(cell) for cell in grid[row])


def _start(grid: Grid, filled: list[int]) -> int:
    """The first row of the table: titles are narrow, and stand alone or before an empty row."""
    widths = {i: _width(grid, i) for i in filled}
    widest = max(widths.values())
    if widest < 2:
        return filled[0]
    parts: list[list[int]] = []
    for i in filled:
        if parts and parts[-1][-1] == i - 1:
            parts[-1].append(i)
        else:
            parts.append([i])
    rest = len(filled)
    for part in parts:
        rest -= len(part)
        if rest == 0 or max(widths[i] for i in part) > max(1, widest // 2) or len(part) > max(rest, 2):
            break
        filled = [i for i in filled if i > part[-1]]
    for k, i in enumerate(filled[:-1]):
        if widths[i] > 1 or widest == 1:
            return i
        if k > 10:
            break
    return filled[0]


def _without_remarks(grid: Grid, body: list[int]) -> tuple[list[int], list[int]]:
    """The rows without those below an empty row at the end that hold a single text."""
    keep = len(body)
    while (
        keep > 1 and _width(grid, body[keep - 1]) == 1 and any(isinstance(c, str) and c for c in grid[body[keep - 1]])
    ):
        keep -= 1
    apart = [k for k in range(keep, len(body)) if body[k] - body[k - 1] > 1]
    if not apart or max((_width(grid, i) for i in body[:keep]), default=0) < 3:
        return body, []
    return body[: apart[0]], body[apart[0] :]


def _header_height(grid: Grid, body: list[int], columns: list[int], merged: Merged, asked: bool | None) -> int:
    if asked is False:
        return 0
    if asked is None and not _has_header(grid, body, columns):
        return 0
    height = 1
    place = {row: k for k, row in enumerate(body)}
    for (top, left), (bottom, right) in merged:
        if top not in place or place[top] >= height or right < columns[0] or left > columns[-1]:
            continue
        end = (
            bottom if bottom > top else top + (right > left)
        )  # below a name over several columns stand their own names
        height = max(height, place.get(end, place[top]) + 1)
    if height == 1 and len(body) > 2 and _two_lines(grid, body, columns):
        height = 2
    return min(height, _MOST_HEADERS, len(body))


def _has_header(grid: Grid, body: list[int], columns: list[int]) -> bool:
    """Whether the first row has a word, and not only such as come again below in the same columns."""
    words = [j for j in columns if _is_word(grid[body[0]][j])]
    if not words:
        return False
    again = [j for j in words if any(grid[i][j] == grid[body[0]][j] for i in body[1:])]
    return len(again) < len(words) or len(body) == 1


def _two_lines(grid: Grid, body: list[int], columns: list[int]) -> bool:
    """Without a record of merged cells: gaps in the first line, words in every gap of the second, and values below."""
    top, second, third = (grid[i] for i in body[:3])
    gaps = [j for j in columns if _empty(top[j])]
    filled = [j for j in columns if not _empty(second[j])]
    return (
        bool(gaps)
        and set(gaps) <= set(filled)
        and all(_is_word(second[j]) for j in filled)
        and any(not _empty(third[j]) and not _is_word(third[j]) for j in filled)
        and not _empty(top[columns[0]])
    )


def _names(grid: Grid, rows: list[int], columns: list[int], merged: Merged) -> list[str]:
    spread: dict[tuple[int, int], Any] = {}
    for (top, left), (bottom, right) in merged:
        if top in rows and bottom == top:
            spread |= {(top, j): grid[top][left] for j in range(left, right + 1) if left < len(grid[top])}
    names = []
    for j in columns:
        parts: list[str] = []
        for i in rows:
            cell = spread.get((i, j), grid[i][j])
            if _empty(cell) and i == rows[0] and len(rows) > 1 and not merged:
                cell = next((grid[i][k] for k in range(j, -1, -1) if not _empty(grid[i][k])), "")
            text = "" if _empty(cell) else " ".join(shown(cell).split())
            if text and text not in parts:
                parts.append(text)
        names.append(" ".join(parts))
    return names


def _total(grid: Grid, rows: list[int], columns: list[int]) -> str | None:
    """The word for a total in the last row, unless it stands in the same column above too."""
    last = grid[rows[-1]]
    for j in columns:
        if _empty(last[j]):
            continue
        if not isinstance(last[j], str) or not _TOTAL.match(last[j].strip()):
            return None
        return None if any(grid[i][j] == last[j] for i in rows[:-1]) else last[j].strip()
    return None
