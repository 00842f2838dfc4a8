"""What a criterion of the number of clusters is, and what several have in common."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from foldwise.data.block import Floats
from foldwise.selection.clusters.sweep import Sweep, Task
from foldwise.selection.votes import Vote


class Criterion(Protocol):
    """One way to judge numbers of clusters. Its work is a list of tasks, whose results the sweep's state keeps by name."""

    name: str
    label: str  # for tables and charts
    weight: float  # of its vote; 0 if it is only drawn

    def tasks(self, sweep: Sweep) -> list[Task]:
        """Its work."""

    def judge(self, sweep: Sweep) -> Judgement:
        """Its vote and its figures, once all tasks are done."""


@dataclass(frozen=True)
class Judgement:
    """A vote, and what was looked at: a value for each number of clusters, its standard error, and what no clusters give."""

    vote: Vote
    ks: tuple[int, ...]
    values: Floats
    errors: Floats | None = None
    null: Floats | None = None
    figures: dict[str, Floats] = field(default_factory=dict)
    at: int | None = None  # the number of clusters that the choice was found with, if it is another


def vote(criterion: Criterion, chosen: int | None, reason: str, also: Sequence[int] = ()) -> Vote:
    """A vote; the range is that of the chosen number and the others that would do."""
    numbers = [] if chosen is None else [chosen, *also]
    low, high = (min(numbers), max(numbers)) if numbers else (None, None)
    return Vote(criterion.name, chosen, low, high, reason, weight=criterion.weight)


def gathered(sweep: Sweep, names: Sequence[str]) -> Floats:
    """Results of several tasks as rows."""
    return np.array([sweep.state[name] for name in names], dtype=np.float64)
