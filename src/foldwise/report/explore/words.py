"""Words that sentences, captions and tables of an exploration share: names that fit, lists, shares, values in their units."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from foldwise.data.block import Floats
from foldwise.report.formats import counted, in_units, short_number
from foldwise.report.labels import cut
from foldwise.selection.explore.result import Exploration
from foldwise.selection.votes import Vote

LONGEST = 40  # characters of a name that are shown
NUMBERS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
ORDINALS = ("first", "second", "third", "fourth", "fifth")


def name_of(words: str, most: int = LONGEST) -> str:
    """A name from the data on one line, cut if it is long.

    >>> name_of("a\\n  b"), name_of("x" * 9, 5)
    ('a b', 'xxxx…')
    """
    start = words[: 20 * most]  # the rest of a name of ten thousand characters is never looked at
    return cut(" ".join("".join(c if c.isprintable() else " " for c in start).split()) or "(no name)", most)


def place_of(where: str, most: int = 60) -> str:
    """Where the data are from; of a file its name without the folders.

    >>> place_of("/data/2024/plants.csv"), place_of("an array")
    ('plants.csv', 'an array')
    """
    file = re.fullmatch(r".*[/\\]([^/\\]+\.\w+)", where[:5000], re.DOTALL)
    return name_of(file[1] if file else where, most)


def listed(words: Sequence[str], most: int = 4) -> str:
    """Words as they are said; of many only the first.

    >>> listed(["a"]), listed(["a", "b", "c"]), listed(["a", "b", "c", "d"], 2)
    ('a', 'a, b and c', 'a, b and 2 more')
    """
    some, more = list(words[:most]), len(words) - most
    if more > 0:
        return f"{', '.join(some)} and {more:,} more"
    return some[0] if len(some) == 1 else f"{', '.join(some[:-1])} and {some[-1]}" if some else "none"


def share_of(share: float) -> str:
    """A share in whole per cent, without claiming all or nothing where that is rounding.

    >>> share_of(0.7312), share_of(0.998), share_of(0.0004), share_of(1.0)
    ('73 %', 'more than 99 %', 'less than 1 %', '100 %')
    """
    if 0.995 <= share < 1 - 1e-9:
        return "more than 99 %"
    return "less than 1 %" if 0 < share < 0.005 else f"{100 * share:.0f} %"


def of_hundred(share: float) -> str:
    """A share as a number of a hundred.

    >>> of_hundred(0.974), of_hundred(1.0), of_hundred(0.999)
    ('97 of 100', 'all', 'nearly all')
    """
    if share == 1:
        return "all"
    if share == 0:
        return "none"
    rounded = round(100 * share)
    return "nearly all" if rounded == 100 else "hardly any" if rounded == 0 else f"{rounded} of 100"


def values_in_units(values: Floats | Sequence[float], deviation: float | None) -> list[str]:
    """Values of one column with as many decimals as they deserve."""
    given = np.asarray(values, dtype=np.float64)
    if deviation is None or not deviation > 0:
        return [short_number(float(value)) if value == value else "-" for value in given]
    return in_units(given, deviation)


def also_plausible(vote: Vote) -> str:
    """The range that a vote would accept, if it is more than its choice."""
    return "" if vote.low == vote.high else f"{vote.low} to {vote.high}"


def sentence_of(words: str) -> str:
    """Words as a sentence.

    >>> sentence_of("k-means is enough")
    'K-means is enough.'
    """
    return words if not words else f"{words[0].upper()}{words[1:].rstrip('.')}."


def group_count(found: Exploration) -> int | None:
    """How many groups the rows are in: those that were made, else the number chosen; None if neither is known."""
    return len(found.summaries) if len(found.summaries) > 1 else found.n_clusters


def rows_words(count: int) -> str:
    """A number of rows."""
    return counted(count, "row")


def row_name(found: Exploration, row: int) -> str:
    """What a row is called: its own identifier if there is one, else its number."""
    points = found.points
    if points is not None and points.ids:
        place = int(np.searchsorted(points.rows, row))
        if place < len(points.rows) and points.rows[place] == row:
            ids = points.ids[place]
            return f"row {ids[0]}" + (f" ({name_of(', '.join(ids[1:]), 30)})" if len(ids) > 1 else "")
    return f"row {row}"
