"""How DuckDB is to read files: the FROM clause, the columns and their types, settled once for all files."""

from __future__ import annotations

import csv
import gzip
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from foldwise.data import check
from foldwise.data.files import Files
from foldwise.errors import DataError

SNIFFED = 20480  # the rows DuckDB looks at before it settles the types
_INTEGERS = {"TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT"}
_WIDE = {"HUGEINT", "UHUGEINT", "BIGNUM"}
_PLAIN = _INTEGERS | {"FLOAT", "DOUBLE", "BOOLEAN"}
TEXT = {"VARCHAR", "JSON"}


@dataclass(frozen=True)
class Column:
    """A column: the name people see, the name DuckDB uses, and its SQL type."""

    name: str
    sql: str
    type: str

    @property
    def is_number(self) -> bool:
        """Whether its values can become floats."""
        return self.type in _PLAIN or self.type in _WIDE or self.type.startswith("DECIMAL")

    @property
    def selected(self) -> str:
        """The SQL that selects it, as a type the copying kernel takes."""
        return quoted(self.sql) if self.type in _PLAIN else f"CAST({quoted(self.sql)} AS DOUBLE)"


@dataclass(frozen=True)
class Reader:
    """How to read the files: typed for the passes, as text to find what is wrong."""

    columns: tuple[Column, ...]
    named: bool  # whether the names come from the file
    options: str  # of the reading function, typed
    text_options: str  # the same with every value as text
    function: str
    header_lines: int = 0

    def clause(self, paths: Sequence[str], *, text: bool = False) -> str:
        """The FROM clause."""
        options = self.text_options if text else self.options
        return f"{self.function}([{', '.join(literal(path) for path in paths)}]{options})"


def quoted(name: str) -> str:
    """A name as SQL."""
    return '"' + name.replace('"', '""') + '"'


def literal(text: str) -> str:
    """A text as SQL."""
    return "'" + text.replace("'", "''") + "'"


def reader(files: Files, run: Any) -> Reader:
    """How to read these files; `run(sql)` gives the rows of a query."""
    make = {"csv": _csv, "parquet": _parquet, "json": _json}[files.kind]
    found = make(files, run)
    check.names([column.name for column in found.columns], files.where)
    return found


def _differ(first: str, other: str, column: str, what: str) -> DataError:
    return DataError(
        f"the files do not have the same columns: {what} than in {first}",
        where=other,
        column=column,
        advice="Read them separately, or write them alike",
    )


def _same_names(first: str, names: Sequence[str], other: str, found: Sequence[str]) -> None:
    for name in names:
        if name not in found:
            raise _differ(first, other, name, "it is missing here, other")
    for name in found:
        if name not in names:
            raise _differ(first, other, name, "it is one more")


def _csv(files: Files, run: Any) -> Reader:
    first = _sniff(files.paths[0], run)
    for path in files.paths[1:]:
        other = _sniff(path, run)
        names = [column.name for column in first.columns]
        found = [column.name for column in other.columns]
        _same_names(files.paths[0], names, path, found)
        for a, b in zip(first.columns, other.columns, strict=True):
            if a.name != b.name:
                raise _differ(files.paths[0], path, b.name, "it stands in another place")
            if a.is_number != b.is_number:
                raise _differ(files.paths[0], path, b.name, f"it is {b.type} and not {a.type}, other")
        if other.dialect != first.dialect:
            raise DataError(f"the separator, quote or header differs from {files.paths[0]}", where=path)
    # Whole numbers may have a fraction after the rows that were sniffed: all numbers are read as DOUBLE.
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
    # skip=0: left alone, the sniffer may skip the first rows of a ragged file in silence
    found = run(f"SELECT Delimiter, Quote, Escape, Comment, HasHeader, Columns FROM sniff_csv({literal(path)}, skip=0)")
    delimiter, quote, escape, comment, header, columns = found[0]
    delimiter, quote, escape, comment = ("" if x == "(empty)" else x for x in (delimiter, quote, escape, comment))
    # A sample without quotes says nothing about the rows after it.
    quote, escape = (quote or '"', escape or '"')
    dialect = ", ".join(
        f"{key}={literal(value)}"
        for key, value in (("delim", delimiter), ("quote", quote), ("escape", escape), ("comment", comment))
    )
    names = [column["name"] for column in columns]
    shown = _header(path, delimiter, quote, comment) if header else names
    if len(shown) != len(names):  # a dialect that Python's reader does not follow
        shown = names
    shown = [own or given for own, given in zip(shown, names, strict=True)]
    check.names(shown, path)  # DuckDB would rename the second of two
    return _Sniffed(
        tuple(Column(own, c["name"], c["type"]) for own, c in zip(shown, columns, strict=True)),
        f"{dialect}, header={str(header).lower()}, skip=0",
        bool(header),
    )


def _header(path: str, delimiter: str, quote: str, comment: str) -> list[str]:
    opener: Any = gzip.open if path.lower().endswith(".gz") else open
    with opener(path, "rt", encoding="utf-8-sig", newline="") as file:
        lines = (line for line in file if line.strip() and not (comment and line.startswith(comment)))
        return next(csv.reader(lines, delimiter=delimiter, quotechar=quote), [])


def _parquet(files: Files, run: Any) -> Reader:
    first: list[str] = []
    for path in files.paths:
        found = [row[0] for row in run(f"DESCRIBE FROM read_parquet({literal(path)})")]
        if not first:
            first = found
        _same_names(files.paths[0], first, path, found)
    # By name, so that numbers of different width widen instead of taking the first file's type.
    options = ", union_by_name=true" if len(files.paths) > 1 else ""
    return _described(files, run, "read_parquet", options, options)


def _json(files: Files, run: Any) -> Reader:
    lines = [not path.lower().removesuffix(".gz").endswith(".json") for path in files.paths]
    form = ", format='newline_delimited'" if all(lines) else ""
    found = _described(files, run, "read_json", form, form).columns
    columns = tuple(Column(c.name, c.sql, "DOUBLE" if c.is_number and c.type != "BOOLEAN" else c.type) for c in found)
    types = ", ".join(f"{literal(c.sql)}: {literal(c.type)}" for c in columns)
    texts = ", ".join(f"{literal(c.sql)}: 'VARCHAR'" for c in columns)
    return Reader(columns, True, f"{form}, columns={{{types}}}", f"{form}, columns={{{texts}}}", "read_json")


def _described(files: Files, run: Any, function: str, options: str, text_options: str) -> Reader:
    listed = ", ".join(literal(path) for path in files.paths)
    rows = run(f"DESCRIBE FROM {function}([{listed}]{options})")
    return Reader(tuple(Column(row[0], row[0], str(row[1])) for row in rows), True, options, text_options, function)
