"""What SQL may do here: a query is one statement that only reads, and a condition reads nothing but its own table.

The condition of files or a frame is held to that by settings of the connection (`Database`); SQL text reads what the user may.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import duckdb

from foldwise.data.duckdb_connection import literal
from foldwise.errors import DataError

_READS = {"SELECT_NODE", "SET_OPERATION_NODE", "RECURSIVE_CTE_NODE", "CTE_NODE"}
_WRITES = re.compile(r"\b(copy|insert|update|delete|merge)\b", re.IGNORECASE)
# Table functions that do something besides giving rows.
_ACTS = re.compile(
    r"(en|dis)able_\w+|truncate_duckdb_logs|set_\w+|(force_)?checkpoint|json_execute_\w+|\w+_external_resource|python_\w+"
)
_DRAWS = re.compile(r"\b(random|uuid\w*|gen_random_uuid|nextval)\s*\(", re.IGNORECASE)
_QUOTED = re.compile(r"""'[^']*'|"[^"]*\"""")
_ADVICE = "Give one query (SELECT, FROM or WITH) that only reads; anything else is for DuckDB itself"


def check_query(text: str, run: Any) -> None:
    """Refuse SQL text that is not one statement that only reads; `run(sql)` returns the rows of a query."""
    where = "SQL query"
    found = duckdb.extract_statements(text)
    # PIVOT, of which DuckDB makes several steps and shows no tree; before version 2 they are listed, without their text.
    steps = [one.type for one in found if not one.query]
    pivot = len(steps) == len(found) > 1 and duckdb.StatementType.SELECT not in steps[:-1]
    if len(found) != 1 and not pivot:
        raise DataError(f"the text holds {len(found)} statements instead of one", where=where, advice=_ADVICE)
    kind = found[0].type
    if pivot or kind == duckdb.StatementType.MULTI:
        word = _WRITES.search(text)
        if word:
            raise DataError(f"a PIVOT cannot be combined with {word[0].upper()}", where=where, advice=_ADVICE)
    elif kind != duckdb.StatementType.SELECT:
        raise DataError(f"this is a statement of type {kind.name}, not a query", where=where, advice=_ADVICE)
    else:
        tree = _tree(text, run)
        for name in _table_functions(tree):
            if _ACTS.fullmatch(name.lower()):
                raise DataError(f"the query calls {name}(), which does more than read", where=where, advice=_ADVICE)
        for node in _nodes(tree):
            if node not in _READS:  # WITH a AS (COPY ... TO 'file') SELECT ... counts as a SELECT
                what = node.partition("_")[0]
                raise DataError(f"the query contains {what}, which writes", where=where, advice=_ADVICE)


def check_steady(condition: str, table: str) -> None:
    """Refuse a condition that selects other rows each time: a fit and what follows it would not be about the same ones."""
    drawn = _DRAWS.search(_QUOTED.sub("", condition))
    if drawn:
        raise DataError(
            f"where={condition!r} selects other rows each time, because of {drawn[1]}()",
            where=table,
            advice='Write a sample to a file first, or select by a value, as in where="hash(id) % 10 = 0"',
        )


def check_condition(condition: str, table: str, run: Any) -> None:
    """Refuse a condition with a sub-query, where no setting confines it to its table."""
    if any(one == "SUBQUERY" for one in _types(_tree(f"SELECT 1 WHERE (\n{condition}\n)", run))):
        raise DataError(
            f"where={condition!r} contains a sub-query, which might read other tables",
            where=table,
            advice="Make it part of the query itself",
        )


def _tree(text: str, run: Any) -> Any:
    tree = json.loads(run(f"SELECT json_serialize_sql({literal(text)})")[0][0])
    if tree.get("error"):  # what cannot be looked into is not run
        raise DataError(f"this SQL cannot be checked: {tree.get('error_message', 'no reason given')}", advice=_ADVICE)
    return tree


def _parts(tree: Any) -> Iterator[dict[str, Any]]:
    """All objects of a parse tree."""
    if isinstance(tree, dict):
        yield tree
    for part in tree.values() if isinstance(tree, dict) else tree if isinstance(tree, list) else ():
        yield from _parts(part)


def _types(tree: Any) -> Iterator[str]:
    return (part["type"] for part in _parts(tree) if isinstance(part.get("type"), str))


def _table_functions(tree: Any) -> Iterator[str]:
    found = (part["function"] for part in _parts(tree) if part.get("type") == "TABLE_FUNCTION")
    return (str(one.get("function_name", "")) for one in found if isinstance(one, dict))


def _nodes(tree: Any) -> Iterator[str]:
    return (one for one in _types(tree) if one.endswith("_NODE"))
