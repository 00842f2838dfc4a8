"""What the templates of pages say of values: short texts, numbers to sort by, names, and words for those who cannot see."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from numbers import Real
from typing import Any

from foldwise.report import labels

_MOST = 300  # characters of a cell or a title: a table with names of 10 kB stays a page
_CLUSTER = re.compile(r"var\(--c(\d+)\b")


def filters() -> dict[str, Callable[..., Any]]:
    """The filters by name."""
    return {"alt": alt, "cluster": cluster, "cut": cut, "name": name, "share": share, "sortable": sortable}


def cut(words: Any, most: int = _MOST) -> str:
    """Words, shortened if they are very long."""
    return labels.cut(str(words), most)


def name(part: Any) -> str:
    """The title of a part: its own, or that of the only titled part in it."""
    if title := getattr(part, "title", ""):
        return str(title)
    titles = [one.title for one in getattr(part, "parts", ()) if getattr(one, "title", "") and one.only != "text"]
    return str(titles[0]) if titles else ""


def alt(part: Any) -> str:
    """What a picture shows, for those who cannot see it."""
    return str(part.alt or ". ".join(words.rstrip(".") for words in (part.title, part.caption) if words))


def sortable(value: Any) -> str:
    """The number behind a cell, if there is one.

    >>> sortable(2.5), sortable("2.5 kg"), sortable(float("nan"))
    ('2.5', '', '')
    """
    if isinstance(value, bool) or not isinstance(value, Real) or not math.isfinite(value):
        return ""
    return repr(float(value))


def share(value: Any, whole: float) -> float:
    """How much of a bar is filled, in per cent.

    >>> share(-0.5, 2.0), share(None, 1.0)
    (25.0, 0.0)
    """
    if not isinstance(value, Real) or not math.isfinite(value):
        return 0.0
    return round(min(abs(100 * float(value) / whole), 100.0), 1)


def cluster(colour: str) -> str:
    """The number of the cluster whose colour this is.

    >>> cluster("var(--c3, #cc79a7)"), cluster("#2f6db3")
    ('3', '')
    """
    found = _CLUSTER.match(colour)
    return found[1] if found else ""
