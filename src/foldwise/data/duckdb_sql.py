"""How DuckDB reads files: the FROM clause, the columns and their types, determined once for all files."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from foldwise.data import check
from foldwise.data.compressed import opened
from foldwise.data.duckdb_connection import literal
from foldwise.data.files import Files, without_compression
from foldwise.errors import DataError

if TYPE_CHECKING:
    from foldwise.data.text_table import TextFiles

SNIFFED = 20480  # rows DuckDB samples to determine the types
_INTEGERS = {"TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT"}
_WIDE = {"HUGEINT", "UHUGEINT", "BIGNUM"}
_PLAIN = _INTEGERS | {"FLOAT", "DOUBLE", "BOOLEAN"}
TEXT = {"VARCHAR", "JSON"}
_NESTED = ("STRUCT", "MAP", "UNION", "LIST", "VARIANT")
_NO_TYPE = '"NULL"'
_SMALL = 30_000_000  # bytes of JSON, all of which are looked at for types
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
    def is_nested(self) -> bool:
        """Whether its cells are lists or objects."""
        return self.type.endswith("]") or self.type.startswith(_NESTED)

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
    text_files: TextFiles | None = None  # for text files, which may be read from copies
    nulls: tuple[str, ...] = ()  # of text files: what is written for missing cells besides nothing at all

    def clause(
        self,
        paths: Sequence[str],
        *,
        text: bool = False,
        types: Mapping[str, str] | None = None,
    ) -> str:
        """The FROM clause.

        For text files, `types` gives the SQL types of some columns, by their SQL names; `text` makes all columns text.
        """
        if self.text_files is not None:
            own = {c.sql: "VARCHAR" if text else (types or {}).get(c.sql, c.type) for c in self.columns}
            return self.text_files.clause(paths, own, () if text else self.nulls)
        options = self.text_options if text else self.options
        return f"{self.function}([{', '.join(literal(path) for path in paths)}]{options})"


def quoted(name: str) -> str:
    """A name as an SQL identifier."""
    return '"' + name.replace('"', '""') + '"'


def reader(files: Files, run: Any) -> Reader:
    """How to read these files; `run(sql)` returns the rows of a query."""
    make = {"parquet": _parquet, "json": _json}[files.kind]
    found = make(files, run)
    check.names([column.name for column in found.columns], files.where)
    return found


def differ(first: str, other: str, column: str, what: str) -> DataError:
    """The error for files that do not have the same columns."""
    return DataError(
        f"the files do not have the same columns: {what} {first}",
        where=other,
        column=column,
        advice="Read them separately, or write them with the same columns",
    )


def same_names(first: str, names: Sequence[str], other: str, found: Sequence[str]) -> None:
    """Refuse files of which one has a column that the other has not."""
    known, here = set(names), set(found)
    for name in names:
        if name not in here:
            raise differ(first, other, name, "it is missing here but present in")
    for name in found:
        if name not in known:
            raise differ(first, other, name, "it does not occur in")


def _parquet(files: Files, run: Any) -> Reader:
    first: list[str] = []
    for path in files.paths:
        found = _parquet_names(path, run)
        if not first:
            first = found
        same_names(files.paths[0], first, path, found)
    # By name, so that numeric types are widened where files differ, rather than cast to the first file's type.
    options = ", hive_partitioning=false" + (", union_by_name=true" if len(files.paths) > 1 else "")
    described = _described(files, run, "read_parquet", options, options)
    described = replace(described, columns=tuple(replace(c, type=_castable(c.type)) for c in described.columns))
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
    lines = [not without_compression(path).endswith(".json") for path in files.paths]
    form = ", hive_partitioning=false" + (", format='newline_delimited'" if all(lines) else "")
    # Keys that are first seen late must not be lost: if the sample cannot have shown them all, all rows are looked at.
    small = sum(stamp.size for stamp in files.stamps) < _SMALL
    found = _described(files, run, "read_json", f"{form}, sample_size=-1" if small else form, form).columns
    if not small and (any(c.type == _NO_TYPE for c in found) or _other_keys(files, found, all(lines), run)):
        found = _described(files, run, "read_json", f"{form}, sample_size=-1", form).columns
    _json_names(files)
    types = {c.sql: _json_type(files, c, form, run) for c in found}
    columns = tuple(Column(c.name, c.sql, types[c.sql]) for c in found)
    if len(columns) == 1 and columns[0].name == "json" and columns[0].type.endswith("[]"):
        raise DataError(
            "the records are lists, not objects with names",
            where=files.where,
            advice='Write them as objects, {"a": 1, "b": 2}, or as CSV',
        )
    listed = ", ".join(f"{literal(c.sql)}: {literal(c.type)}" for c in columns)
    texts = ", ".join(f"{literal(c.sql)}: 'VARCHAR'" for c in columns)
    return Reader(columns, True, f"{form}, columns={{{listed}}}", f"{form}, columns={{{texts}}}", "read_json")


def _other_keys(files: Files, found: Sequence[Column], lines: bool, run: Any) -> bool:
    """Whether records have keys besides these; for files that are one long list, this cannot be told so quickly."""
    if not lines:
        return True
    known = ", ".join(literal(column.name) for column in found)
    listed = ", ".join(literal(path) for path in files.paths)
    rows = run(
        f"SELECT 1 FROM (SELECT unnest(json_keys(json)) AS k FROM read_ndjson_objects([{listed}], ignore_errors=true)) "
        f"WHERE k NOT IN ({known}) LIMIT 1"
    )
    return bool(rows)


def _json_type(files: Files, column: Column, form: str, run: Any) -> str:
    """The type to read a column as: numbers as DOUBLE, also where some of them are written as text."""
    if column.type != "JSON":
        return "DOUBLE" if column.is_number and column.type != "BOOLEAN" else _castable(column.type)
    listed = ", ".join(literal(path) for path in files.paths)
    text = f"{quoted(column.sql)} ->> '$'"
    present, numbers, bare, nested = run(
        f"SELECT count({text}), count(TRY_CAST({text} AS DOUBLE)), "
        f"count(*) FILTER (json_type({quoted(column.sql)}) IN ('BIGINT', 'UBIGINT', 'DOUBLE')), "
        f"count(*) FILTER (json_type({quoted(column.sql)}) IN ('OBJECT', 'ARRAY')) "
        f"FROM read_json([{listed}]{form}, columns={{{literal(column.sql)}: 'JSON'}})"
    )[0]
    if nested:
        return "JSON"
    return "DOUBLE" if 0 < present == numbers and 2 * bare >= present else "VARCHAR"


def _json_names(files: Files) -> None:
    """Refuse names that differ only by case, one of which DuckDB would rename and then not find."""
    for path in files.paths:
        if path.lower().endswith(".zst"):  # which only DuckDB decompresses
            continue
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
    columns = tuple(Column(row[0], row[0], str(row[1])) for row in rows)
    return Reader(columns, True, options, text_options, function)


def _castable(kind: str) -> str:
    """The type; a column without any value has one of its own, to which nothing can be cast, and becomes text."""
    return "VARCHAR" if kind == _NO_TYPE else kind
