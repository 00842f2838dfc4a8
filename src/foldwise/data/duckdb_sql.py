"""How DuckDB reads files: the FROM clause, the columns and their types, determined once for all files."""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from foldwise.data import check
from foldwise.data.compressed import opened
from foldwise.data.duckdb_connection import literal
from foldwise.data.files import Files
from foldwise.errors import DataError

SNIFFED = 20480  # rows DuckDB samples to determine the types
_INTEGERS = {"TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT"}
_WIDE = {"HUGEINT", "UHUGEINT", "BIGNUM"}
_PLAIN = _INTEGERS | {"FLOAT", "DOUBLE", "BOOLEAN"}
TEXT = {"VARCHAR", "JSON"}
_MOST_OF_A_LINE = 1 << 20  # characters, in which to look for names
_BY_CASE = "the names of two columns differ only by case, which DuckDB ignores"


@dataclass(frozen=True)
class Column:
    """A column: its display name, the name DuckDB uses, and its SQL type."""

    name: str
    sql: str
    type: str
    expression: str | None = None  # SQL of type DOUBLE that is selected instead of the column itself

    @property
    def is_number(self) -> bool:
        """Whether its values can be converted to floats."""
        return self.type in _PLAIN or self.type in _WIDE or self.type.startswith("DECIMAL")

    @property
    def selected(self) -> str:
        """The SQL expression that selects it, as a type the copying kernel accepts."""
        if self.expression is not None:
            return self.expression
        return quoted(self.sql) if self.type in _PLAIN else f"CAST({quoted(self.sql)} AS DOUBLE)"


@dataclass(frozen=True)
class Reader:
    """How to read the files: typed for the passes, or as text to locate errors."""

    columns: tuple[Column, ...]
    named: bool  # whether the names come from the file
    options: str  # of the reading function, with types
    text_options: str  # the same with every value as text
    function: str
    header_lines: int = 0

    def clause(self, paths: Sequence[str], *, text: bool = False) -> str:
        """The FROM clause."""
        options = self.text_options if text else self.options
        return f"{self.function}([{', '.join(literal(path) for path in paths)}]{options})"


def quoted(name: str) -> str:
    """A name as an SQL identifier."""
    return '"' + name.replace('"', '""') + '"'


def reader(files: Files, run: Any) -> Reader:
    """How to read these files; `run(sql)` returns the rows of a query."""
    make = {"csv": _csv, "parquet": _parquet, "json": _json}[files.kind]
    found = make(files, run)
    check.names([column.name for column in found.columns], files.where)
    return found


def _differ(first: str, other: str, column: str, what: str) -> DataError:
    return DataError(
        f"the files do not have the same columns: {what} {first}",
        where=other,
        column=column,
        advice="Read them separately, or write them with the same columns",
    )


def _same_names(first: str, names: Sequence[str], other: str, found: Sequence[str]) -> None:
    for name in names:
        if name not in found:
            raise _differ(first, other, name, "it is missing here but present in")
    for name in found:
        if name not in names:
            raise _differ(first, other, name, "it does not occur in")


def _csv(files: Files, run: Any) -> Reader:
    first = _sniff(files.paths[0], run)
    for path in files.paths[1:]:
        other = _sniff(path, run)
        names = [column.name for column in first.columns]
        found = [column.name for column in other.columns]
        _same_names(files.paths[0], names, path, found)
        for a, b in zip(first.columns, other.columns, strict=True):
            if a.name != b.name:
                raise _differ(files.paths[0], path, b.name, "its position differs from that in")
            if a.is_number != b.is_number:
                raise _differ(files.paths[0], path, b.name, f"it is {b.type} here but {a.type} in")
        if other.dialect != first.dialect:
            raise DataError(f"the separator, quote character or header differs from {files.paths[0]}", where=path)
    # A column that looks integer in the sample may have fractions further down, so all numbers are read as DOUBLE.
    columns = tuple(
        Column(c.name, c.sql, "DOUBLE" if c.is_number and c.type != "BOOLEAN" else c.type) for c in first.columns
    )
    types = ", ".join(f"{literal(c.sql)}: {literal(c.type)}" for c in columns)
    texts = ", ".join(f"{literal(c.sql)}: 'VARCHAR'" for c in columns)
    dialect = f", auto_detect=false, {first.dialect}"
    return Reader(
        columns,
        first.header,
        f"{dialect}, columns={{{types}}}",
        f"{dialect}, columns={{{texts}}}",
        "read_csv",
        int(first.header),
    )


@dataclass(frozen=True)
class _Sniffed:
    columns: tuple[Column, ...]
    dialect: str
    header: bool


def _sniff(path: str, run: Any) -> _Sniffed:
    # skip=0: otherwise the sniffer may silently skip the first rows of a ragged file
    found = run(f"SELECT Delimiter, Quote, Escape, Comment, HasHeader, Columns FROM sniff_csv({literal(path)}, skip=0)")
    delimiter, quote, escape, comment, header, columns = found[0]
    delimiter, quote, escape, comment = ("" if x == "(empty)" else x for x in (delimiter, quote, escape, comment))
    # A sample without quotes does not mean that later rows have none.
    quote, escape = (quote or '"', escape or '"')
    dialect = ", ".join(
        f"{key}={literal(value)}"
        for key, value in (("delim", delimiter), ("quote", quote), ("escape", escape), ("comment", comment))
    )
    names = [column["name"] for column in columns]
    shown = _header(path, delimiter, quote, comment) if header else names
    if len(shown) != len(names):  # a dialect that Python's csv module does not parse
        shown = names
    shown = [own or given for own, given in zip(shown, names, strict=True)]
    check.names(shown, path)  # DuckDB would rename a duplicate
    return _Sniffed(
        tuple(Column(own, c["name"], c["type"]) for own, c in zip(shown, columns, strict=True)),
        f"{dialect}, header={str(header).lower()}, skip=0",
        bool(header),
    )


def _header(path: str, delimiter: str, quote: str, comment: str) -> list[str]:
    with opened(path, "rt", encoding="utf-8-sig", newline="") as file:
        lines = (line for line in file if line.strip() and not (comment and line.startswith(comment)))
        return next(csv.reader(lines, delimiter=delimiter, quotechar=quote), [])


def _parquet(files: Files, run: Any) -> Reader:
    first: list[str] = []
    for path in files.paths:
        found = _parquet_names(path, run)
        if not first:
            first = found
        _same_names(files.paths[0], first, path, found)
    # By name, so that numeric types are widened where files differ, rather than cast to the first file's type.
    options = ", union_by_name=true" if len(files.paths) > 1 else ""
    described = _described(files, run, "read_parquet", options, options)
    if len(described.columns) != len(first) or len({name.lower() for name in first}) == len(first):
        return described
    if len(files.paths) > 1:  # by name DuckDB could not tell them apart
        raise DataError(_BY_CASE, where=files.where, advice="Rename one of them, or read the files one by one")
    columns = tuple(Column(own, c.sql, c.type) for own, c in zip(first, described.columns, strict=True))
    return replace(described, columns=columns)


def _parquet_names(path: str, run: Any) -> list[str]:
    """The names as they are in the file; DuckDB renames one of two that differ only by case."""
    rows = run(f"SELECT name, coalesce(num_children, 0) FROM parquet_schema({literal(path)})")
    names, inside = [], 0
    for name, children in rows[1:]:  # the first is the table; the parts of a nested column follow it
        if not inside:
            names.append(name)
        inside = inside - (inside > 0) + children
    return names


def _json(files: Files, run: Any) -> Reader:
    lines = [not path.lower().removesuffix(".gz").endswith(".json") for path in files.paths]
    form = ", format='newline_delimited'" if all(lines) else ""
    found = _described(files, run, "read_json", form, form).columns
    _json_names(files)
    columns = tuple(Column(c.name, c.sql, "DOUBLE" if c.is_number and c.type != "BOOLEAN" else c.type) for c in found)
    types = ", ".join(f"{literal(c.sql)}: {literal(c.type)}" for c in columns)
    texts = ", ".join(f"{literal(c.sql)}: 'VARCHAR'" for c in columns)
    return Reader(columns, True, f"{form}, columns={{{types}}}", f"{form}, columns={{{texts}}}", "read_json")


def _json_names(files: Files) -> None:
    """Refuse names that differ only by case, one of which DuckDB would rename and then not find."""
    for path in files.paths:
        with opened(path, "rt", encoding="utf-8") as file:
            line = file.readline(_MOST_OF_A_LINE)
        try:
            found = json.loads(line)
        except ValueError:  # a list over several lines, a very long one, or damaged, which DuckDB reports
            continue
        names = list(found) if isinstance(found, dict) else []
        if len({name.lower() for name in names}) < len(set(names)):
            raise DataError(_BY_CASE, where=path, advice="Rename one of them")


def _described(files: Files, run: Any, function: str, options: str, text_options: str) -> Reader:
    listed = ", ".join(literal(path) for path in files.paths)
    rows = run(f"DESCRIBE FROM {function}([{listed}]{options})")
    return Reader(tuple(Column(row[0], row[0], str(row[1])) for row in rows), True, options, text_options, function)
