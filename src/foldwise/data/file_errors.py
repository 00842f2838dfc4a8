"""Finding what is wrong with a file, and where. Used only after an error, so speed does not matter."""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from foldwise.data import check
from foldwise.data.column_text import MISFIT
from foldwise.data.compressed import opened
from foldwise.data.duckdb_connection import duckdb_errors, literal
from foldwise.data.duckdb_sql import Column, Reader, quoted
from foldwise.data.files import Files
from foldwise.errors import DataError

if TYPE_CHECKING:
    from foldwise.data.duckdb_table import DuckDBTable


def first_bad(files: Files, reader: Reader, chosen: Sequence[Column], where: str | None, run: Any) -> None:
    """Raise for the first value of the chosen columns, in file order, that is not a finite number."""
    for path in files.paths if chosen else ():
        rows = run(_query(path, reader, chosen, where))
        if not rows:
            continue
        row, *values = rows[0]
        for column, value in zip(chosen, values, strict=True):
            _judge(path, reader, int(row), column.name if reader.named else reader.columns.index(column), value)


def stray_word(files: Files, reader: Reader, column: Column, word: str, run: Any) -> None:
    """Raise for the first cell of a column of numbers that holds this word."""
    found = _first_cell(files, reader, column, word, run)
    if found is not None:
        path, row = found
        name = column.name if reader.named else [one.sql for one in reader.columns].index(column.sql)
        check.not_a_number(word, None, where=path, row=row, column=name, extra=_line(path, reader, row, word))


def _first_cell(files: Files, reader: Reader, column: Column, cell: str, run: Any) -> tuple[str, int] | None:
    """The file and the row of the first cell that holds this text, apart from blanks."""
    for path in files.paths:
        numbered = f"SELECT row_number() OVER () - 1 AS fw_row, {quoted(column.sql)} AS cell"
        source = f"{numbered} FROM {reader.clause([path], text=True)}"
        rows = run(f"SELECT fw_row FROM ({source}) WHERE trim(cell) = trim({literal(cell)}) LIMIT 1")
        if rows:
            return path, int(rows[0][0])
    return None


def misfit(table: DuckDBTable, wanted: str, cell: str) -> NoReturn:
    """Raise for a cell that does not fit what its column was found to be, such as "a number"."""
    column = _refusing(table, cell)
    place, row, line = table.where, None, ""
    if column is not None and table.files is not None and table.reader is not None:
        found = _first_cell(table.files, table.reader, column, cell, table.database.query)
        if found is not None:
            place, row = found
            line = _line(place, table.reader, row, cell)
    name = "name" if column is None else column.name
    raise DataError(
        f"{cell[:60]!r} is not {wanted}, which this column has elsewhere{line}",
        where=place,
        row=row,
        column=None if column is None else table.label(column),
        advice=f"Correct it; or, when a model is fitted, let whole=True judge columns by all rows, or say what this one is: "
        f"as_={{{name!r}: 'category'}}",
    ) from None


def _refusing(table: DuckDBTable, cell: str) -> Column | None:
    """The column whose SQL refuses a cell."""
    able = [column for column in table.columns if column.type != "VARCHAR"]
    held = ", ".join(
        f"coalesce(bool_or(trim(CAST({quoted(c.sql)} AS VARCHAR)) = trim({literal(cell)})), false)" for c in able
    )
    having = table.as_given().aggregate(held).fetchall()[0] if able else ()
    some = [column for column, has in zip(able, having, strict=True) if has] or able
    for column in some:
        try:
            table.relation().aggregate(f"count({quoted(column.sql)})").fetchall()
        except duckdb_errors() as problem:
            if MISFIT in str(problem):
                return column
    return None


def _query(path: str, reader: Reader, chosen: Sequence[Column], where: str | None) -> str:
    """SQL for the first row with a bad value: its number in the file, and the chosen values as text."""
    by_text = reader.function != "read_parquet"
    source = f"SELECT row_number() OVER () - 1 AS fw_row, * FROM {reader.clause([path], text=by_text)}"
    texts = ", ".join(f"CAST({quoted(c.sql)} AS VARCHAR) AS fw_{k}" for k, c in enumerate(chosen))
    retyped = ", ".join(f"TRY_CAST({quoted(c.sql)} AS {c.type}) AS {quoted(c.sql)}" for c in reader.columns)
    finite = "coalesce(isfinite(TRY_CAST(fw_{} AS DOUBLE)), false)"
    truth = "TRY_CAST(fw_{} AS BOOLEAN) IS NOT NULL"
    good = " AND ".join((truth if c.type == "BOOLEAN" else finite).format(k) for k, c in enumerate(chosen))
    picked = ", ".join(f"fw_{k}" for k in range(len(chosen)))
    condition = f"({where}\n) AND NOT ({good})" if where else f"NOT ({good})"
    prepared = f"SELECT fw_row, {texts}, {retyped} FROM ({source})"
    return f"SELECT fw_row, {picked} FROM ({prepared}) WHERE {condition} LIMIT 1"


def _judge(path: str, reader: Reader, row: int, column: str | int, value: str | None) -> None:
    line = _line(path, reader, row, value)
    if value is None:
        raise DataError(
            f"missing value (empty or NULL{line}): Input contains NaN",
            where=path,
            row=row,
            column=column,
            advice=check.MISSING_ADVICE,
        )
    try:
        number = float(value)
    except ValueError:
        if value.lower() not in ("true", "false"):
            check.not_a_number(value, None, where=path, row=row, column=column, extra=line)
        return
    if not np.isfinite(number):
        check.bad_value(number, np.dtype(np.float64), where=path, row=row, column=column)


def _line(path: str, reader: Reader, row: int, value: str | None) -> str:
    """The line number in a text file."""
    if reader.text_files is not None:
        number = reader.text_files.line(path, row)
        return "" if number is None else f" (line {number})"
    if reader.function == "read_parquet" or value is None:
        return ""
    try:
        with opened(path) as file:
            line = next(islice(file, row, None), b"")
    except OSError:
        return ""
    return f" (line {row + 1})" if value.encode() in line else ""


def explain(files: Files, problem: Exception) -> NoReturn:
    """Raise a DataError that explains DuckDB's error about a file."""
    text = str(problem)
    named = next((path for path in files.paths if path in text), None)
    path = named or files.where
    if "utf-8" in text.lower() or "unicode" in text.lower():
        _encoding(files.paths if named is None else [named])
    if "Out of Memory" in text:
        raise DataError(
            "reading this file takes more memory than it may",
            where=path,
            advice="Choose fewer columns, or read it with fewer threads",
        ) from None
    if files.kind == "parquet":
        _parquet(text, path)
    if "Malformed JSON" in text:
        _malformed(files.paths if named is None else [named])
    line = re.search(r"(?:on Line: |in line )(\d+)", text, re.IGNORECASE)
    at = f" (line {line[1]})" if line else ""
    columns = re.search(r"Expected Number of Columns: (\d+) Found: (\d+)", text)
    if columns:
        raise DataError(
            f"a row has {columns[2]} cells instead of {columns[1]}{at}",
            where=path,
            advice="Correct that row, or give delimiter= or header=",
        ) from None
    raise DataError(f"cannot be read{at}: {_first_line(text)}", where=path) from None


def _parquet(text: str, path: str) -> NoReturn:
    advice = "Write or copy it again"
    if any(sign in text for sign in ("No magic bytes", "too small to be a Parquet file", "Footer length")):
        raise DataError(f"not a Parquet file, or truncated ({_first_line(text)})", where=path, advice=advice) from None
    raise DataError(f"this Parquet file cannot be read ({_first_line(text)})", where=path, advice=advice) from None


def _first_line(text: str) -> str:
    useful = [line for line in text.splitlines() if line.strip() and "CSV Error on Line" not in line]
    return useful[0].strip() if useful else text


def _malformed(paths: Sequence[str]) -> None:
    """Raise for the first line that is not JSON (DuckDB does not always report the right line)."""
    for path in paths:
        with opened(path) as file:
            for row, line in enumerate(file):
                try:
                    json.loads(line)
                except ValueError as problem:
                    if line.strip():
                        raise DataError(
                            f"this line is not JSON ({problem})", where=path, row=row, advice="Correct that line"
                        ) from None


def _encoding(paths: Sequence[str]) -> None:
    """Raise for the first byte that is not UTF-8."""
    for path in paths:
        decoder = codecs.getincrementaldecoder("utf-8")()
        lines = 0
        with opened(path) as file:
            while True:
                chunk = file.read(1 << 20)
                try:
                    decoder.decode(chunk, final=not chunk)
                except UnicodeDecodeError as problem:
                    lines += problem.object.count(b"\n", 0, problem.start)
                    raise DataError(
                        f"the file is not UTF-8 text (line {lines + 1}: {problem.reason})",
                        where=path,
                        advice="Convert it, for instance with iconv -f LATIN1 -t UTF-8",
                    ) from None
                if not chunk:
                    break
                lines += chunk.count(b"\n")
