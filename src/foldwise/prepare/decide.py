"""Deciding what the columns of a table are, and how their values are read.

The first rows are judged; with `whole`, one more pass gives the profiles of all rows. A cell further down that does not fit the
format of its column makes that column be judged again, by all rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from foldwise.data.column_dates import DateFormat
from foldwise.data.column_text import MISFIT, TOKENS, BooleanFormat, Format, NumberFormat, WordFormat
from foldwise.data.duckdb_connection import duckdb_errors
from foldwise.data.duckdb_sql import Column, quoted
from foldwise.data.duckdb_table import DuckDBTable
from foldwise.data.first_rows import Cells, FirstRows, aggregates, counts_of, own_aggregates
from foldwise.data.notes import Note
from foldwise.data.reading import FOUND_OUT, Reading
from foldwise.data.text_columns import TextColumn, read_text, words_missing
from foldwise.data.typed_text import with_text_cells
from foldwise.errors import DataError, ParameterError
from foldwise.prepare import column_notes, days, duplicates, sentinels
from foldwise.prepare.codes import ZONED, held, text_sql, value_sql, word_sql
from foldwise.prepare.kinds import KINDS, Decision, Facts, Kind, kind_of
from foldwise.prepare.profile import ColumnProfile, Holds, Plan, profile

_UNIQUE = 0.8  # estimated share of different values from which it is counted whether all differ
_MOST_COUNTED = 100  # columns
_FEW_LEVELS = 50


@dataclass(frozen=True)
class Decisions:
    """What the columns of a table are: rows (None if they were not counted), one decision a column, and what is to be told."""

    table: DuckDBTable
    rows: int | None
    columns: tuple[Decision, ...]
    notes: tuple[Note, ...]
    first_rows: int  # that were judged

    def __getitem__(self, name: str) -> Decision:
        for one in self.columns:
            if one.name == name:
                return one
        raise KeyError(name)

    def values(self) -> Any:
        """A relation with the values of all columns, c0, c1, ..."""
        listed = ", ".join(f"{one.expression} AS c{j}" for j, one in enumerate(self.columns))
        return self.table.relation().project(listed)


def decide(
    table: DuckDBTable,
    reading: Reading = FOUND_OUT,
    *,
    as_: Mapping[str, str] | None = None,
    whole: bool = False,
    rows: int | None = None,
) -> Decisions:
    """What each column is. `as_` has kinds that the user asks for, by name; `rows` is how many of the first rows are judged."""
    table = with_text_cells(table)
    _check_asked(as_ or {}, table)
    try:
        with FirstRows(table, rows) as first:
            return _decided(table, reading, as_ or {}, first, whole)
    except duckdb_errors() as problem:
        table.explain(problem, [], None)


def _decided(
    table: DuckDBTable, reading: Reading, asked: Mapping[str, str], first: FirstRows, whole: bool
) -> Decisions:
    rows = first.relation()
    texts = [column for column in table.columns if held(column) == "text"]
    nested = _nested_json(rows, texts)
    texts = [column for column in texts if column not in nested]
    text = read_text(rows, [text_sql(column) for column in texts], reading)
    found = dict(zip(texts, text.columns, strict=True))
    for column in texts:
        if asked.get(column.name) == "number":
            _check_numbers(rows, column, found[column], table.where)
    found |= days.find(rows, table.columns, found, asked)
    plans = [plan(column, found.get(column), column in nested) for column in table.columns]
    if not whole or first.complete:
        profiles = profile(first, plans, histograms=whole)
    else:
        try:
            profiles = table.ask(lambda relation: profile(first, plans, relation))
        except duckdb_errors() as problem:
            if MISFIT not in str(problem):
                raise
            found = _fitting_all(table.relation(), found, text.decimal, reading)
            plans = [plan(column, found.get(column), column in nested) for column in table.columns]
            profiles = profile(first, plans, table.relation())
    facts = _facts(first, table.columns, plans, profiles, found)
    decisions = [_decision(one, asked.get(one.name)) for one in facts]
    decisions = _with_levels(rows, decisions)
    numbers = [j for j, one in enumerate(decisions) if one.kind == "number"]
    marked: list[tuple[sentinels.Sentinel, ...]] = [()] * len(decisions)
    for j, marks in zip(
        numbers, sentinels.find(rows, [plans[j].cells for j in numbers], [profiles[j] for j in numbers]), strict=True
    ):
        marked[j] = marks
    told = column_notes.notes(
        facts,
        decisions,
        marked,
        _pairs(rows, decisions),
        decimal=text.decimal,
        stored=len(texts) < len(table.columns),
        commas=_has_commas(table),
    )
    n_rows = profiles[0].rows if profiles and (whole or first.complete) else table.n_rows
    return Decisions(table, n_rows, tuple(decisions), (*table.notes, *told), first.rows)


def _has_commas(table: DuckDBTable) -> bool:
    """Whether the table is of text files whose cells are separated by commas."""
    files = table.reader.text_files if table.reader is not None else None
    return files is not None and files.layouts[0].dialect.delimiter == ","


def _fitting_all(
    relation: Any, found: dict[Column, TextColumn], decimal: str, reading: Reading
) -> dict[Column, TextColumn]:
    """Columns in which a cell further down does not fit, judged again by all rows."""
    columns = [column for column, one in found.items() if not isinstance(one.format, WordFormat)]
    wanted = [(f"count(*) FILTER ({found[column].format.misfit('{x}')})",) for column in columns]
    counts = own_aggregates(relation, [Cells(text_sql(column)) for column in columns], wanted)
    late = [column for column, (count,) in zip(columns, counts, strict=True) if count]
    again = read_text(relation, [text_sql(column) for column in late], reading, decimal=decimal)
    return found | dict(zip(late, again.columns, strict=True))


# What the cells hold


def _nested_json(rows: Any, columns: Sequence[Column]) -> list[Column]:
    json = [column for column in columns if column.type == "JSON"]
    wanted = ("count(*) FILTER (json_type({x}) IN ('OBJECT', 'ARRAY'))",)
    counts = aggregates(rows, [Cells(quoted(column.sql)) for column in json], wanted)
    return [column for column, (count,) in zip(json, counts, strict=True) if count]


def plan(column: Column, text: TextColumn | None, nested: bool = False) -> Plan:
    """What a column holds and the SQL of its values."""
    name, holding = quoted(column.sql), held(column)
    if nested or holding == "nested":
        return Plan("nested", Cells(name))
    if text is not None:
        form = text.format
        holds: Holds = "words"
        if isinstance(form, NumberFormat):
            holds = "numbers"
        elif isinstance(form, DateFormat):
            holds = "dates"
        elif isinstance(form, BooleanFormat):
            holds = "booleans"
        return Plan(holds, Cells(text_sql(column), form.sql("{x}")))
    if holding == "numbers":
        return Plan("numbers", Cells(name, "nullif(CAST({x} AS DOUBLE), 'NaN')"))
    if holding == "dates":
        zoned = column.type == ZONED
        return Plan("dates", Cells(name, "make_timestamp(epoch_us({x}))" if zoned else "CAST({x} AS TIMESTAMP)"))
    return Plan("booleans", Cells(name))


# Deciding


def _facts(
    first: FirstRows,
    columns: Sequence[Column],
    plans: Sequence[Plan],
    profiles: Sequence[ColumnProfile],
    texts: Mapping[Column, TextColumn],
) -> list[Facts]:
    """With what takes another query: whether cells are all different, and whether numbers run on."""
    rows = first.relation()
    wide = {
        j for j, column in enumerate(columns) if column.type in ("HUGEINT", "UHUGEINT", "BIGNUM", "UBIGINT", "BIGINT")
    }
    asked = [
        j
        for j, seen in enumerate(profiles)
        if seen.missing_share <= 0.1
        and seen.present > 1
        and (j in wide or seen.distinct >= _UNIQUE * seen.present)
        and (seen.holds == "words" or (seen.holds == "numbers" and seen.whole))
    ][:_MOST_COUNTED]
    exact = {j for j in asked if profiles[j].exact and first.complete and j not in wide}
    different = {j: profiles[j].distinct for j in exact}
    counted = [j for j in asked if j not in exact]
    raw = [quoted(columns[j].sql) if j in wide else _value(plans[j]) for j in counted]
    for j, value in zip(counted, raw, strict=True):
        different[j] = int(rows.aggregate(f"count(DISTINCT {value})").fetchall()[0][0])
    made = []
    for j, (column, seen) in enumerate(zip(columns, profiles, strict=True)):
        if j in different and j in wide and different[j] != seen.distinct and first.complete:
            seen = replace(seen, distinct=different[j], exact=True)  # doubles would not tell them apart
        there = first.rows if seen.missing == 0 else seen.present
        unique = j in different and different[j] >= there and seen.missing == 0
        runs = (
            unique
            and seen.holds == "numbers"
            and _runs(rows, quoted(columns[j].sql) if j in wide else _value(plans[j]))
        )
        made.append(Facts(column, replace(seen, running=runs), texts.get(column), unique, runs))
    return made


def _value(plan_: Plan) -> str:
    return plan_.cells.value.replace("{x}", plan_.cells.cell)


def _runs(rows: Any, value: str) -> bool:
    """Whether each number is one more than that before."""
    numbered = rows.project(f"{value} AS x, row_number() OVER () AS n")
    low, high = numbered.aggregate("min(x - n), max(x - n)").fetchall()[0]
    return bool(low == high)


def _decision(facts: Facts, asked: str | None) -> Decision:
    kind, reason = kind_of(facts)
    if asked is not None:
        kind, reason = _as_asked(asked, facts), "as asked"
    found = facts.text.format if facts.text is not None else None
    form = None if found is None or kind == "nested" else format_for(kind, found)
    unit = (form.prefix or form.suffix) if isinstance(form, NumberFormat) else ""
    zoned = form.zoned if isinstance(form, DateFormat) else facts.column.type == ZONED
    return Decision(
        facts.name,
        kind,
        reason,
        facts.column,
        _expression(kind, facts.column, form),
        facts.profile,
        unit if kind == "number" else "",
        zoned and kind == "date",
        asked is not None,
        form,
    )


def format_for(kind: str, found: Format) -> Format:
    """How the cells of a text column are read as a kind, if by themselves they have this format."""
    if kind == "number" and not isinstance(found, NumberFormat | BooleanFormat):
        return NumberFormat(missing=_tokens(found))
    if kind == "boolean" and not isinstance(found, NumberFormat | BooleanFormat):
        return BooleanFormat("true", "false", _tokens(found))
    if kind == "date" and not isinstance(found, DateFormat):
        return DateFormat(missing=_tokens(found))
    if kind in ("number", "boolean", "date") or isinstance(found, WordFormat):
        return found
    if kind == "category" and isinstance(found, NumberFormat) and found.plain:  # codes, by which 1.0 is 1
        return WordFormat(found.missing, numbers=True)
    return WordFormat(words_missing(found.missing))


def _tokens(found: Format) -> tuple[str, ...]:
    """All that is missing besides words, and what the user says."""
    return tuple(dict.fromkeys((*TOKENS, *found.missing)))


def _with_levels(rows: Any, decisions: list[Decision]) -> list[Decision]:
    """Numbers that are codes, or 0 and 1, have levels like words."""
    coded = [j for j, one in enumerate(decisions) if one.kind in ("category", "boolean") and one.is_number][
        :_MOST_COUNTED
    ]
    for j in coded:
        one = decisions[j]
        value = one.expression if one.kind == "category" else f"CAST(CAST({one.expression} AS INTEGER) AS VARCHAR)"
        levels = tuple(counts_of(rows, value, f"({value}) IS NOT NULL", _FEW_LEVELS))
        complete = len(levels) < _FEW_LEVELS
        decisions[j] = replace(one, profile=replace(one.profile, levels=levels, all_levels=complete))
    return decisions


def _expression(kind: Kind, column: Column, form: Format | None) -> str:
    """SQL for the values of a column, of the type that its kind has (see `Decision`)."""
    value, sql_type = value_sql(column, form)
    if kind == "date":
        return value if sql_type == "TIMESTAMP" else f"CAST({value} AS TIMESTAMP)"
    if kind not in ("number", "boolean"):
        return word_sql(value, sql_type)
    if sql_type == "BOOLEAN":
        return value if kind == "boolean" else f"CAST({value} AS DOUBLE)"
    number = value if form is not None else f"nullif(CAST({value} AS DOUBLE), 'NaN')"
    return number if kind == "number" else f"({number} <> 0)"


def _check_numbers(rows: Any, column: Column, text: TextColumn, where: str) -> None:
    """Refuse words that are asked for as numbers."""
    form, cell = format_for("number", text.format), text_sql(column)
    bad = [] if isinstance(text.format, DateFormat) else counts_of(rows, cell, form.misfit(cell), 1)
    if bad:
        raise DataError(
            f"the cells cannot be read as numbers: {bad[0][0]!r} is none ({bad[0][1]:,} cells)",
            where=where,
            column=column.name,
            advice="missing_values=[...] says what is missing; categories='encode' uses words",
        )


def _check_asked(asked: Mapping[str, str], table: DuckDBTable) -> None:
    names = [column.name for column in table.columns]
    for name, kind in asked.items():
        if name not in names:
            listed = ", ".join(names[:10]) + (", ..." if len(names) > 10 else "")
            raise ParameterError(f"as_: there is no column {name!r}; the columns are {listed}")
        if kind not in ("number", "category", "boolean", "identifier", "date", "text"):
            raise ParameterError(f"as_: {name}={kind}: give number, category, boolean, identifier, date or text")


def _as_asked(asked: str, facts: Facts) -> Kind:
    holds = facts.profile.holds
    impossible = {
        "number": holds == "nested",
        "boolean": holds not in ("booleans", "numbers"),
        "date": holds != "dates",
    }
    ends = facts.profile.minimum, facts.profile.maximum
    if asked == "boolean" and holds == "numbers" and (not facts.profile.whole or not {*ends} <= {0, 1, None}):
        raise DataError(
            f"the cells cannot be read as boolean: they hold numbers from {ends[0]:g} to {ends[1]:g}, not only 0 and 1",
            column=facts.name,
            advice=f"as_={{{facts.name!r}: 'category'}} takes numbers for levels",
        )
    if impossible.get(asked, holds == "nested"):
        kind = {
            "numbers": "numbers",
            "dates": "dates",
            "words": "words",
            "booleans": "yes and no",
            "nested": "lists or objects",
        }
        raise DataError(
            f"the cells cannot be read as {asked}: they hold {kind[holds]}",
            column=facts.name,
            advice="Leave the column as it is, or convert it before reading",
        )
    if asked == "number" and holds == "dates":  # a date that is used as a number stays one
        return "date"
    return next(kind for kind in KINDS if kind == asked)


def _pairs(rows: Any, decisions: Sequence[Decision]) -> list[duplicates.Pair]:
    numbers = {j: one.expression for j, one in enumerate(decisions) if one.kind == "number"}
    levels = {
        j: f"CAST({one.expression} AS VARCHAR)"
        for j, one in enumerate(decisions)
        if one.kind in ("category", "boolean") or (one.kind == "number" and one.profile.distinct <= _FEW_LEVELS)
        if one.profile.distinct <= 0.5 * one.profile.present
    }
    found = duplicates.of_numbers(rows, numbers)
    known = {(pair.first, pair.second) for pair in found}
    return found + [pair for pair in duplicates.of_words(rows, levels) if (pair.first, pair.second) not in known]
