"""Searches for the best subset of columns, each a function of a criterion; how far one has come is on its path."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations
from typing import Protocol, TypeAlias

import numpy as np

from foldwise.data.block import Floats
from foldwise.selection.features.explained import TIE, first_best
from foldwise.selection.features.path import SelectionStep, subsets_of

Subset: TypeAlias = tuple[int, ...]  # positions, in the order in which the columns came in


class Criterion(Protocol):
    """What judges subsets: the higher, the better."""

    d: int

    def scores(self, subsets: Sequence[Subset]) -> Floats:
        """The score of each subset."""

    def adding(self, columns: Subset) -> Floats:
        """The score after adding each column; -inf for those that are in."""

    def removing(self, columns: Subset) -> Floats:
        """The score after removing each column; -inf for those that are not in."""

    def exchanges(self, columns: Subset) -> Floats:
        """The score after each exchange: a row for each of the columns, which leaves, and a column for each that comes."""


class Walk:
    """The steps of a search so far; a search that is interrupted leaves them here."""

    def __init__(self, enough: Callable[[SelectionStep], bool] = lambda step: False) -> None:
        self.steps: list[SelectionStep] = []
        self._enough = enough

    @property
    def columns(self) -> Subset:
        """The columns after the last step."""
        return list(subsets_of(self.steps))[-1] if self.steps else ()

    def step(self, score: float, size: int, added: Subset = (), removed: Subset = ()) -> bool:
        """Record a step; whether the search has gone far enough."""
        self.steps.append(SelectionStep(tuple(added), tuple(removed), size, float(score)))
        return self._enough(self.steps[-1])


Search: TypeAlias = Callable[[Criterion, int, Walk], None]


def forward(criterion: Criterion, size: int, walk: Walk) -> None:
    """From the empty set: the best column is added, again and again."""
    columns: Subset = ()
    while len(columns) < size:
        scores = criterion.adding(columns)
        best = first_best(scores)
        columns = (*columns, best)
        if walk.step(scores[best], len(columns), added=(best,)):
            return


def backward(criterion: Criterion, size: int, walk: Walk) -> None:
    """From the whole set: the column that matters least is removed, again and again; among equals the last one."""
    columns: Subset = tuple(range(criterion.d))
    if walk.step(criterion.scores([columns])[0], len(columns), added=columns):
        return
    while len(columns) > size:
        scores = criterion.removing(columns)
        worst = len(scores) - 1 - first_best(scores[::-1])
        columns = tuple(column for column in columns if column != worst)
        if walk.step(scores[worst], len(columns), removed=(worst,)):
            return


def floating(criterion: Criterion, size: int, walk: Walk) -> None:
    """Forward, but after each addition columns are removed as long as that beats the best subset of that size so far.

    Sequential floating forward selection (Pudil, Novovičová and Kittler 1994).
    """
    columns: Subset = ()
    best: dict[int, float] = {}
    while len(columns) < size:
        scores = criterion.adding(columns)
        new = first_best(scores)
        columns = (*columns, new)
        best[len(columns)] = max(best.get(len(columns), -np.inf), float(scores[new]))
        if walk.step(scores[new], len(columns), added=(new,)):
            return
        while len(columns) > 2:
            scores = criterion.removing(columns)
            worst = len(scores) - 1 - first_best(scores[::-1])
            fewer = len(columns) - 1
            if worst == columns[-1] or not _beats(scores[worst], best[fewer]):
                break
            columns = tuple(column for column in columns if column != worst)
            best[fewer] = float(scores[worst])
            if walk.step(scores[worst], fewer, removed=(worst,)):
                return


def swap(criterion: Criterion, size: int, walk: Walk) -> None:
    """Forward, but at each size columns are exchanged, the best exchange first, until none improves the subset."""
    columns: Subset = ()
    while len(columns) < size:
        scores = criterion.adding(columns)
        new = first_best(scores)
        columns, score = (*columns, new), float(scores[new])
        enough = walk.step(score, len(columns), added=(new,))
        while not enough and len(columns) > 1:
            table = criterion.exchanges(columns)
            place, comes = divmod(first_best(table.ravel()), table.shape[1])
            if not _beats(table[place, comes], score):
                break
            gone, score = columns[place], float(table[place, comes])
            columns = (*(column for column in columns if column != gone), comes)
            enough = walk.step(score, len(columns), added=(comes,), removed=(gone,))
        if enough:
            return


def exhaustive(criterion: Criterion, size: int, walk: Walk) -> None:
    """All subsets of each size up to `size`; the first of the best is taken."""
    before: Subset = ()
    for many in range(1, size + 1):
        if exhaustive_step(criterion, many, walk, before):
            return
        before = walk.columns


def exhaustive_of_one_size(criterion: Criterion, size: int, walk: Walk) -> None:
    """All subsets of this size."""
    exhaustive_step(criterion, size, walk, ())


def exhaustive_step(criterion: Criterion, size: int, walk: Walk, before: Subset) -> bool:
    """The best of all subsets of this size, told as a step from the one before."""
    subsets = list(combinations(range(criterion.d), size))
    scores = criterion.scores(subsets)
    best = first_best(scores)
    return record(walk, before, subsets[best], float(scores[best]))


def record(walk: Walk, before: Subset, after: Subset, score: float) -> bool:
    """A step from one subset to another."""
    added = tuple(column for column in after if column not in before)
    removed = tuple(column for column in before if column not in after)
    return walk.step(score, len(after), added=added, removed=removed)


def _beats(score: float, other: float) -> bool:
    return bool(score > other + TIE * max(1.0, abs(other)))


SEARCHES: dict[str, Search] = {
    "forward": forward,
    "backward": backward,
    "floating": floating,
    "swap": swap,
    "exhaustive": exhaustive,
}
