"""Words in drawings: how wide they are, and how long ones are wrapped or shortened."""

from __future__ import annotations

import re
from unicodedata import east_asian_width

_NARROW, _WIDE = set("iljtfrI.,:;'|![]()/ "), set("mwMWQOGD@%&—…")


def text_width(words: str, size: float = 12.0) -> float:
    """About how many pixels words take in a sans-serif font.

    >>> text_width("ill") < text_width("own")
    True
    """
    return size * sum(_width_of(letter) for letter in words)


def _width_of(letter: str) -> float:
    # Those of a wide font, such as DejaVu Sans: where another is narrower, there is room to spare.
    if east_asian_width(letter) in "WF":
        return 1.0
    if letter in _NARROW:
        return 0.39
    if letter in _WIDE:
        return 0.98
    return 0.72 if letter.isupper() else 0.62


def cut(words: str, most: int) -> str:
    """Words, shortened if they are too long.

    >>> cut("od280_od315_of_diluted_wines", 20)
    'od280_od315_of_dilu…'
    """
    return words if len(words) <= most else words[: most - 1] + "…"


def shortened(words: str, room: float, size: float = 12.0) -> str:
    """Words that take no more than `room` pixels: their beginning and their end, where names often differ.

    >>> shortened("concentration of calcium in the third sample", 150)
    'concentration …sample'
    """
    line = " ".join(words.split())
    if text_width(line[:4000], size) <= room:
        return line
    keep = max(len(line[:400]) - 1, 1)
    while keep > 1 and text_width(_ends(line, keep), size) > room:
        keep -= 1
    return _ends(line, keep)


def _ends(words: str, keep: int) -> str:
    first = -(-keep * 2 // 3)
    last = keep - first
    return f"{words[:first]}…{words[-last:] if last else ''}"


def wrapped(words: str, room: float, lines: int = 2, size: float = 12.0) -> list[str]:
    """Words on at most `lines` lines of `room` pixels, broken after blanks and signs; the last is shortened if need be.

    >>> wrapped("od280_od315_of_diluted_wines", 110)
    ['od280_od315_of_', 'diluted_wines']
    """
    line, made = " ".join(words.split()), list[str]()
    while line and len(made) < lines - 1 and text_width(line[:400], size) > room:
        ends = [place.end() for place in re.finditer(r"[\s_\-./,:;)]+", line[:400])]
        fitting = [end for end in ends if end < len(line) and text_width(line[:end].rstrip(), size) <= room]
        if not fitting:
            break
        made.append(line[: fitting[-1]].rstrip())
        line = line[fitting[-1] :]
    return [*made, shortened(line, room, size)]
