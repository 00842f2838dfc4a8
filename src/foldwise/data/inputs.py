"""Which files a path, a pattern or a query reads, so that none of them is overwritten."""

from __future__ import annotations

import glob
import os
import re

from foldwise.data.files import matching
from foldwise.data.scan import is_query
from foldwise.errors import DataError

_QUOTED = re.compile(r"""'((?:[^']|'')*)'|"((?:[^"]|"")*)"|\$\$(.*?)\$\$""", re.DOTALL)
_READS_FOLDERS = re.compile(r"parquet(_scan)?\s*\(", re.IGNORECASE)  # read_parquet('folder') reads the files in it


def files_read(text: str) -> list[str]:
    """The files, as far as they exist, that a command with this argument reads."""
    found = _named_in(text) | _opened_by(text) if is_query(text) else set(matching(text))
    return sorted(path for path in found if os.path.exists(path))


def _named_in(query: str) -> set[str]:
    """What the texts and names in quotes of a query refer to, if they are taken for paths or patterns."""
    found = set()
    folders = _READS_FOLDERS.search(query) is not None
    for one, other, third in _QUOTED.findall(query):
        text = one.replace("''", "'") or other.replace('""', '"') or third
        if not text or "\0" in text:
            continue
        if folders and os.path.isdir(text):
            found.update(matching(os.path.join(glob.escape(text), "**", "*")))
        else:
            found.update(path for path in matching(text) if not os.path.isdir(path))
    return found


def _opened_by(query: str) -> set[str]:
    """What DuckDB opens when it prepares a query: the file, or the first of several, however its name is put together."""
    import duckdb

    from foldwise.data.duckdb_connection import connect
    from foldwise.data.sql_rights import check_query

    connection = connect()
    try:
        # The text is a stranger's: only what would be accepted as a source is prepared.
        check_query(query, lambda sql: connection.execute(sql).fetchall())
        connection.execute("CALL enable_logging('FileSystem')")
        connection.execute("SET lock_configuration = true")
        connection.execute(f"DESCRIBE {query}")
        rows = connection.execute("SELECT DISTINCT message ->> 'path' FROM duckdb_logs WHERE type = 'FileSystem'")
        return {str(path) for (path,) in rows.fetchall() if path}
    except (duckdb.Error, DataError):  # the query is wrong, as its reader will tell
        return set()
    finally:
        connection.close()
