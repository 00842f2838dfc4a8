"""SQL that turns cells into what models see: words, codes of levels, parts of dates."""

from __future__ import annotations

from foldwise.data.duckdb_connection import literal
from foldwise.prepare.encode import UNSEEN, Levels

# What can be used of a date.
PARTS = {
    "number": "epoch({}) / 86400",
    "year": "year({})",
    "month": "month({})",
    "day": "day({})",
    "weekday": "isodow({})",
    "hour": "hour({})",
}


def word_sql(value: str, kind: str) -> str:
    """SQL for a value as a word: whole numbers without a point."""
    text = f"CAST({value} AS VARCHAR)"
    if kind in ("DOUBLE", "FLOAT"):
        whole = f"CAST(CAST({value} AS BIGINT) AS VARCHAR)"
        is_whole = f"{value} = floor({value}) AND abs({value}) < 1e15"
        return f"CASE WHEN isnan({value}) THEN NULL WHEN {is_whole} THEN {whole} ELSE {text} END"
    return value if kind == "VARCHAR" else text


def code_sql(word: str, levels: Levels) -> str:
    """SQL of type DOUBLE for the code of a level: NULL where it is missing, -1 for a level that is not known."""
    codes = levels.codes
    listed = ", ".join(f"{literal(level)}: {code}" for level, code in codes.items())
    known = f"(MAP {{{listed}}})[{word}]"
    return f"CASE WHEN ({word}) IS NULL THEN NULL ELSE CAST(coalesce({known}, {UNSEEN}) AS DOUBLE) END"


def part_sql(value: str, part: str) -> str:
    """SQL of type DOUBLE for a part of a date."""
    return f"CAST({PARTS[part].format(f'CAST({value} AS TIMESTAMP)')} AS DOUBLE)"
