"""A report as plain values for JSON: figures and tables in full precision, without charts."""

from __future__ import annotations

import math
from typing import Any

from foldwise.report.values import Group, Note, Report, Table


def as_dict(report: Report) -> dict[str, Any]:
    """Facts by name, tables as columns by name; what is not a finite number is None.

    >>> from foldwise.report.values import Column
    >>> as_dict(Report("A title", parts=[Table("Shares", [Column("share", [0.25, float("nan")])])]))["tables"]
    {'Shares': {'share': [0.25, None]}}
    """
    parts = [one for part in report.parts for one in (part.parts if isinstance(part, Group) else [part])]
    tables = [part for part in parts if isinstance(part, Table)]
    return {
        "title": report.title,
        "data": list(report.data),
        "about": list(report.about),
        **({"lead": list(report.lead)} if report.lead else {}),
        "facts": {fact.name: plain(fact.value) for fact in report.facts},
        "tables": {t.title: {column.name.strip(): plain(list(column.values)) for column in t.columns} for t in tables},
        "notes": [line for part in parts if isinstance(part, Note) for line in part.text.splitlines()],
    }


def plain(value: Any) -> Any:
    """A value with all that is inside it, as JSON knows it: NaN and infinities become None.

    >>> plain({"a": (1.0, float("inf"))})
    {'a': [1.0, None]}
    """
    value = value.tolist() if hasattr(value, "tolist") else value  # of NumPy
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
