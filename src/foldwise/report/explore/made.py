"""How it was made: settings, time, what ran, versions, and the command that repeats it."""

from __future__ import annotations

import platform
from typing import Any

import numpy as np

import foldwise
from foldwise.report.explore.words import listed, name_of, sentence_of
from foldwise.report.run_header import run_table
from foldwise.report.values import Column, Group, Note, Part, Table
from foldwise.selection.explore.result import Exploration


def versions() -> dict[str, str]:
    """What it was made with."""
    return {"foldwise": foldwise.__version__, "numpy": np.__version__, "python": platform.python_version()}


def manifests(found: Exploration) -> dict[str, Any]:
    """The record of each fit, by what it was for."""
    models = {
        "directions": found.pca,
        "k-means": found.kmeans,
        "mixture": found.mixture,
        "consensus": found.ensemble,
    }
    known = {name: getattr(model, "manifest_", None) for name, model in models.items()}
    return {name: ran for name, ran in known.items() if ran is not None}


def made_part(found: Exploration) -> Part:
    """Everything that is needed to repeat it, shown when asked for."""
    parts: list[Table | Note] = []
    if found.command:
        parts.append(Note(f"To repeat it: {found.command}"))
    if found.unfinished:
        parts.append(Note(f"Not done: {listed([name_of(one) for one in found.unfinished], 20)}."))
    if found.notes:
        parts.append(Note("\n".join(sentence_of(name_of(note, 300)) for note in found.notes)))
    if found.sampled_rows is not None:
        parts.append(Note(f"Steps that take long used {found.sampled_rows:,} rows drawn at random."))
    if found.overview.lines:
        parts.append(Note("\n".join(name_of(line, 400) for line in found.overview.lines)))
    if found.used_rows and min(found.used_rows.values()) < found.overview.rows:
        parts.append(_pairs("Rows that steps used", {one: f"{count:,}" for one, count in found.used_rows.items()}))
    if found.settings:
        parts.append(_pairs("Settings", {str(key): name_of(str(value), 200) for key, value in found.settings.items()}))
    if found.seconds:
        total = sum(found.seconds.values())
        steps = {str(key): f"{value:.2f} s" for key, value in found.seconds.items()}
        parts.append(_pairs("Time", steps | {"all": f"{total:.2f} s"}))
    parts.append(_pairs("Versions", versions()))
    for name, ran in manifests(found).items():
        table = run_table(ran)
        parts.append(Table(f"What ran: {name}", table.columns, only="page"))
    return Group(parts, "How it was made", wide=True, collapsed=True, only="page")


def _pairs(title: str, entries: dict[str, str]) -> Table:
    names, values = Column("", list(entries), left=True), Column("", list(entries.values()), left=True)
    return Table(title, [names, values], most=60)
