"""What was noted while the table was read and understood, the most serious first, and what to do about it."""

from __future__ import annotations

import re

from foldwise.report.explore.words import name_of
from foldwise.selection.explore.result import Exploration

_MISSING = "may stand for missing: "
# What changes the rows or the meaning of cells, and what the note on it says; the rest is good to know.
_SERIOUS = (
    r"^may stand for missing: ",
    r"is no record and was left out",
    r"^several units in a column",
    r"^infinite numbers",
    r"^the mark may be the decimal one",
    r"^day and month could be the other way",
    r"has words among (numbers|dates), read as missing",
    r"\d sheets \(.*; read: ",
    r"table\(s\): .*; read: ",
    r"^\d+ arrays: .*; read: ",
    r"^the first line is data",
    r"^the file does not say its encoding",
    r"(above|below) the table left out",
)


def ranked_notes(found: Exploration) -> list[str]:
    """All notes, the most serious first."""
    return sorted(found.overview.notes, key=_rank)


def serious_notes(found: Exploration) -> list[str]:
    """Notes on what may make everything else wrong, each as a clause with its remedy."""
    return [_with_remedy(note, found) for note in ranked_notes(found) if _rank(note) < len(_SERIOUS)]


def other_notes(found: Exploration) -> list[str]:
    """Notes that are good to know."""
    return [note for note in found.overview.notes if _rank(note) == len(_SERIOUS)]


def _rank(note: str) -> int:
    return next((i for i, words in enumerate(_SERIOUS) if re.search(words, note)), len(_SERIOUS))


def _with_remedy(note: str, found: Exploration) -> str:
    if not note.startswith(_MISSING):
        return name_of(note.rstrip("."), 160)
    values = list(dict.fromkeys(re.findall(r"(\S+) of .*?\([\d,]+ cells?\)", note.removeprefix(_MISSING))))
    values = [value.lstrip(";,") for value in values]
    told = f"{name_of(note.removeprefix(_MISSING), 120)} may stand for missing"
    if not values:
        return told
    typed = found.command.startswith("foldwise ")
    remedy = f"--missing-values {','.join(values)}" if typed else f"missing_values={values!r}"
    return f"{told} (if so, explore again with {name_of(remedy, 60)})"
