"""Tables read by DuckDB: CSV, Parquet, JSON lines, SQL, relations, and data frames with a condition.

DuckDB decodes into Arrow batches on demand; each piece converts its batches to a row block in the thread that loads it.
Memory therefore holds the batches of the blocks in flight and whatever DuckDB itself buffers.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

import duckdb
import numpy as np
from numpy.typing import NDArray

from foldwise.data import check, column_selection, sql_rights
from foldwise.data.block import DenseBlock
from foldwise.data.duckdb_connection import Database, duckdb_errors
from foldwise.data.duckdb_sql import SNIFFED, TEXT, Column, quoted
from foldwise.data.duckdb_table import DuckDBTable
from foldwise.data.rebatch import Part, grouped, rows_of
from foldwise.data.source import Piece, block_rows
from foldwise.errors import DataError
from foldwise.kernels.arrow import Batch, Stream
from foldwise.kernels.parquet import ParquetReader, RowRange

_ALL = 2**62  # rows
_WIDE = 1000  # columns


class DuckDBSource:
    """The chosen columns of a table."""

    sparse = False
    slow = True
    in_memory = False
    cut_anywhere = True

    def __init__(
        self,
        table: DuckDBTable,
        chosen: list[Column],
        left_out: tuple[str, ...],
        where: str | None,
        weight: Column | None,
        weights: NDArray[np.float64] | None,
        dtype: np.dtype[np.floating] | None,
    ) -> None:
        self.where, self.left_out, self.n_columns = table.where, left_out, len(chosen)
        if table.named:
            self.names: tuple[str, ...] | None = tuple(column.name for column in chosen)
        else:
            self.names = column_selection.labels([table.columns.index(one) for one in chosen], len(table.columns))
        self._table, self._chosen, self._condition = table, chosen, where
        self._weight, self._weights = weight, weights
        single = all(column.type == "FLOAT" for column in chosen)
        self.dtype: np.dtype[np.floating] = dtype or (np.dtype(np.float32) if single else np.dtype(np.float64))
        self.n_rows: int | None = table.n_rows if where is None else None
        self.in_memory = table.object is not None
        self._by_duckdb = False  # whether pages of Parquet files turned out to be of a kind that only DuckDB reads
        self.divisible = table.files is not None  # the rows of a query need not come in the same order twice

    def count(self, most: int | None = None) -> int:
        """The number of rows, as counted by DuckDB; only the first `most` are looked at."""
        try:
            found = self._table.ask(lambda relation: self._counted(relation, most))
        except duckdb_errors() as problem:
            self._table.explain(problem, self._needed(), self._condition)
        if most is None or found < most:
            self.n_rows = found
        return found

    def _counted(self, relation: Any, most: int | None) -> int:
        relation = self._filtered(relation)
        relation = relation if most is None else relation.limit(most)
        return int(relation.aggregate("count(*)").fetchall()[0][0])

    def _needed(self) -> list[Column]:
        return self._chosen if self._weight is None else [*self._chosen, self._weight]

    def _filtered(self, relation: Any) -> Any:
        return relation if self._condition is None else relation.filter(self._condition)

    def _batches(self, skipped: int, wanted: int | None) -> Iterator[Batch]:
        needed = self._needed()
        # Numbered names, because real names may differ only in case, which DuckDB ignores.
        select = ", ".join(f"{column.selected} AS c{k}" for k, column in enumerate(needed))
        given = 0
        if needed == list(self._table.columns) and all(column.selected == quoted(column.sql) for column in needed):
            select = "*"  # planning takes time by the square of the number of columns that are named
        try:
            relation = self._filtered(self._table.relation()).project(select)
            if skipped or wanted is not None:
                relation = relation.limit(_ALL if wanted is None else wanted, skipped)
            stream = Stream(relation.__arrow_c_stream__())
            try:
                while (batch := stream.next()) is not None:
                    given += batch.rows
                    yield batch
            finally:
                stream.close()
            return
        except duckdb_errors() as problem:
            self.check_unchanged()
            if not self._table.fall_back(problem):
                self._table.explain(problem, needed, self._condition)
        # Read in another way, the rows up to the one that DuckDB refused are the same.
        yield from self._batches(skipped + given, None if wanted is None else wanted - given)

    def pieces(self, first: int = 0, last: int | None = None) -> Iterator[Piece]:
        """The blocks to load."""
        self.check_unchanged()
        reader = self._page_reader()
        if reader is None:
            yield from self._from_batches(first, last)
        else:
            yield from self._from_pages(reader, first, last)
        self.check_unchanged()

    def _page_reader(self) -> ParquetReader | None:
        """What reads the columns of Parquet files without DuckDB, if all of them are plain."""
        table = self._table
        computed = table.projection is not None or table.mask is not None or self._condition is not None
        if table.pages is None or computed or self._by_duckdb or self.n_rows != table.pages.n_rows:
            return None
        needed = self._needed()
        return None if any(one.expression is not None for one in needed) else table.pages.reader(needed)

    def check_unchanged(self) -> None:
        """Raise if the files have changed since they were opened."""
        if self._table.files is not None:
            self._table.files.check_unchanged()

    def _from_pages(self, reader: ParquetReader, first: int, last: int | None) -> Iterator[Piece]:
        rows, n_rows = block_rows(self), self.n_rows or 0
        stop = n_rows if last is None else min(n_rows, last * rows)
        given = _Given()
        for start in range(first * rows, stop, rows):
            if self._by_duckdb:
                given.all = True
                yield from self._from_batches(start // rows, last)
                return
            yield _Pages(self, reader, start, min(start + rows, n_rows), given)
        given.all = True  # before the files are checked, so that whoever is still reading checks them once more
        check.not_empty(n_rows, self.n_columns, self.where)

    def load_again(self, start: int) -> DenseBlock:
        """The block that begins at row `start`, by DuckDB: its pages are damaged, or of a kind that is read only there."""
        self._by_duckdb = True  # what follows as well
        number = start // block_rows(self)
        for piece in self._from_batches(number, number + 1):
            return piece.load()
        raise DataError("the file has fewer rows than it says", where=self.where, advice="Write or copy it again")

    def _from_batches(self, first: int, last: int | None) -> Iterator[_Batches]:
        rows = block_rows(self)
        # Files keep their order, so a range can be cut out by the database; of a query, all before it is passed over.
        stop = skipped = first * rows if self.divisible else 0
        wanted = None if last is None else last * rows - skipped
        for at, parts in grouped(self._batches(skipped, wanted), rows):
            start = skipped + at
            if start < first * rows:
                continue
            stop = start + sum(end - begin for _, begin, end in parts)
            if self._weights is not None and stop > len(self._weights):
                self._wrong_count()
            yield _Batches(self, start, parts)
        if not stop and self._condition is not None:
            check.no_match(self._condition, self.where)
        check.not_empty(stop, self.n_columns, self.where)
        if self._weights is not None and last is None and stop != len(self._weights):
            self._wrong_count()

    def _wrong_count(self) -> NoReturn:
        assert self._weights is not None
        n_rows = self._table.ask(lambda relation: self._counted(relation, None))
        check.weight_count(len(self._weights), n_rows, self.where)

    def load(self, start: int, parts: list[Part]) -> DenseBlock:
        """The block that begins at row `start`, assembled from these parts of batches."""
        values = rows_of(parts, self.n_columns, self.dtype)
        return DenseBlock(values, start, self._block_weights(start, parts), self._finite)

    def _finite(self, values: NDArray[Any], start: int) -> None:
        try:
            check.Finite(self.where, self.names)(values, start)
        except DataError:
            self._table.find_bad(self._chosen, self._condition)  # reports the file and the row within it
            raise

    def _block_weights(self, start: int, parts: list[Part]) -> NDArray[np.float64] | None:
        if self._weight is None:
            n_rows = sum(last - first for _, first, last in parts)
            return None if self._weights is None else self._weights[start : start + n_rows]
        found = rows_of(parts, 1, np.dtype(np.float64), first=self.n_columns)
        check.weight_values(found[:, 0], start, self.where, self._weight.name)
        return np.ascontiguousarray(found[:, 0])

    def fingerprint(self) -> str:
        """The files' names, sizes and modification times (or the query), how they are read, the columns and the condition."""
        files = self._table.files
        stamps = zip(files.paths, files.stamps, strict=True) if files is not None else ()
        shown = str([(Path(path).name, *stamp) for path, stamp in stamps] or "") + self._table.key
        if self._table.reading.given:
            shown += f" {self._table.reading.given}"
        if self._table.projection is not None:
            shown += f" computed {hashlib.sha256(self._table.projection.encode()).hexdigest()}"
        weight = None if self._weight is None else self._weight.name
        chosen = [column.expression or column.sql for column in self._chosen]
        return f"table {shown} {chosen} where={self._condition!r} weights={weight!r} {self.dtype.name}"


class _Batches:
    """A piece whose columns are decoded but not yet converted to rows."""

    __slots__ = ("parts", "source", "start")

    def __init__(self, source: DuckDBSource, start: int, parts: list[Part]) -> None:
        self.source, self.start, self.parts = source, start, parts

    def load(self) -> DenseBlock:
        """The block."""
        return self.source.load(self.start, self.parts)


class _Given:
    """Whether all pieces of a pass have been handed out, and the files checked for changes: some may still be read."""

    all = False


class _Pages:
    """A piece of Parquet files; its pages are decoded when it is loaded, unless another piece with the same ones was first."""

    __slots__ = ("_given", "_range", "_reader", "_source", "_start")

    def __init__(self, source: DuckDBSource, reader: ParquetReader, start: int, stop: int, given: _Given) -> None:
        self._source, self._reader, self._start, self._given = source, reader, start, given
        self._range: RowRange | None = reader.range(start, stop)

    def load(self) -> DenseBlock:
        """The block; as a piece is loaded once, its pages can be given up afterwards."""
        assert self._range is not None
        try:
            batches = self._reader.read(self._range)
        except RuntimeError:  # what the reader refuses
            return self._source.load_again(self._start)
        finally:
            self._range = None
        block = self._source.load(self._start, [(batch, 0, batch.rows) for batch in batches])
        if self._given.all:
            self._source.check_unchanged()
        return block


def open_source(table: DuckDBTable, *, columns_: Any, where: Any, weights: Any, dtype: Any) -> DuckDBSource:
    """Choose the columns, find the weights and test the condition, for every kind of table."""
    if where is None and table.files is not None:
        _has_rows(table)
    try_condition(table, where)
    weight = (
        table.columns[column_selection.find(weights, table.names, table.where)] if isinstance(weights, str) else None
    )
    chosen, left_out = _chosen(table, columns_, where, weight)
    if weight is not None and not weight.is_number:
        table.find_bad([weight], where)
        raise DataError("the weights are not numbers", where=table.where, column=weight.name)
    given = None if weights is None or weight is not None else check.weights(weights, table.where, None)
    if given is not None and table.n_rows is not None and where is None and len(given) != table.n_rows:
        check.weight_count(len(given), table.n_rows, table.where)
    source = DuckDBSource(table, chosen, left_out, where, weight, given, check.float_dtype(dtype))
    if weight is not None:
        positive = f"{quoted(weight.sql)} > 0"
        counts = table.ask(lambda rows: source._filtered(rows).filter(positive).limit(1).project("1").fetchall())
        if not counts:
            raise DataError("all weights are zero", where=table.where, column=weight.name)
    return source


def _chosen(
    table: DuckDBTable, asked: Any, where: str | None, weight: Column | None
) -> tuple[list[Column], tuple[str, ...]]:
    if column_selection.all_numeric(asked):
        for column in table.columns:
            if column.type in TEXT and column is not weight and _mostly_numbers(table, column):
                table.find_bad([column], None)
        without = None if weight is None else table.columns.index(weight)
        names = [column.name for column in table.columns]
        are_numbers = [column.is_number for column in table.columns]
        kept, left_out = column_selection.numeric(names, are_numbers, without, table.where)
        return [table.columns[j] for j in kept], left_out
    found = column_selection.positions(asked, table.names, len(table.columns), table.where)
    for j in found:
        column = table.columns[j]
        if not column.is_number:
            table.find_bad([column], where)
            raise DataError(
                f"this column does not hold numbers (its type is {column.type})",
                where=table.where,
                column=table.label(column),
                advice="Leave it out, or convert it in SQL",
            )
    return [table.columns[j] for j in found], ()


def _mostly_numbers(table: DuckDBTable, column: Column) -> bool:
    """Whether most values of a text column are numbers, judged by the rows that the sniffer saw."""
    if column.sql in dict(table.strays):
        return True
    if table.files is None or table.reader is None or table.files.kind == "parquet" or table.projection is not None:
        return False
    value = f"TRY_CAST(CAST({quoted(column.sql)} AS VARCHAR) AS DOUBLE)"
    if column.type == "JSON":
        value = f"TRY_CAST({quoted(column.sql)} ->> '$' AS DOUBLE)"
    counts = f"count({value}), count({quoted(column.sql)})"
    numbers, present = table.ask(lambda relation: relation.limit(SNIFFED).aggregate(counts).fetchall())[0]
    return bool(2 * numbers > present)


def try_condition(table: DuckDBTable, where: Any) -> None:
    """Refuse a condition that DuckDB does not understand, that reads what it may not, or that is not steady."""
    if where is not None and not isinstance(where, str):
        raise DataError("where= for a table must be SQL text", where=table.where, advice='For instance where="x > 0"')
    if where is not None:
        sql_rights.check_steady(where, table.where)
        _check_cases(table, where)
        try:
            _ = table.relation().filter(where).columns
            if not table.confined:
                sql_rights.check_condition(where, table.where, Database(files=()).query)
        except duckdb.Error as problem:
            lines = str(problem).split("\nLINE ")[0].split("\n")  # without the drawing of where in the SQL it is
            told = "; ".join(line.strip().rstrip("!") for line in lines if line.strip())
            advice = "It is SQL, such as: age >= 18 AND name = 'Ann'; a name with blanks is in double quotes"
            raise DataError(f"where={where!r} is not understood: {told}", where=table.where, advice=advice) from None


def _check_cases(table: DuckDBTable, where: str) -> None:
    """Refuse a condition where SQL, which ignores case, could take one column for another."""
    seen: dict[str, str] = {}
    for column in table.columns:
        other = seen.setdefault(column.name.lower(), column.name)
        named = re.search(rf"(?<!\w){re.escape(column.name)}(?!\w)", where, re.IGNORECASE)
        if other != column.name and named:
            raise DataError(
                f"where= cannot tell {other!r} from {column.name!r}: SQL ignores case",
                where=table.where,
                advice="Rename one of these columns",
            )


def _has_rows(table: DuckDBTable) -> None:
    quick = table.scratch is None and table.pages is None and len(table.columns) <= _WIDE
    if table.n_rows is not None and not quick:
        check.not_empty(table.n_rows, len(table.columns), table.where)
        return  # to read even one row of a wide table, or of large row groups, takes long
    try:
        some = table.ask(lambda relation: relation.limit(1).fetchall())
    except duckdb.Error as problem:
        table.explain(problem, [column for column in table.columns if column.is_number], None)
    if not some:
        check.not_empty(0, len(table.columns), table.where)
