"""The path of a search for columns: every step with its score."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from foldwise.data.block import Floats
from foldwise.reportable import Reportable


@dataclass(frozen=True)
class SelectionStep:
    """Columns were added or removed (by their positions), after which `size` are in the subset, with this score.

    `error` is the score's standard error (NaN: not known), `bound` the highest score that any subset of this size can have
    (NaN: not known).
    """

    added: tuple[int, ...]
    removed: tuple[int, ...]
    size: int
    score: float
    error: float = float("nan")
    bound: float = float("nan")


def subsets_of(steps: Iterable[SelectionStep]) -> Iterator[tuple[int, ...]]:
    """The columns after each step, by position, in the order in which they were added.

    >>> list(subsets_of([SelectionStep((3,), (), 1, 0.5), SelectionStep((0,), (), 2, 0.8), SelectionStep((), (3,), 1, 0.6)]))
    [(3,), (3, 0), (0,)]
    """
    inside: dict[int, None] = {}
    for step in steps:
        for column in step.removed:
            del inside[column]
        inside.update(dict.fromkeys(step.added))
        yield tuple(inside)


@dataclass(frozen=True, repr=False)
class SelectionPath(Reportable):
    """All steps of a search, from no columns (or, going backward, from all of them) to the last subset that it looked at.

    `names` are those of all columns, `criterion` says what the scores are. Printed, it is a table; `frame()` is one of pandas.
    `by_size()` gives the best step of each size, `best(size)` its columns.
    """

    steps: tuple[SelectionStep, ...]
    names: tuple[str, ...]
    criterion: str

    def __len__(self) -> int:
        """How many steps there are."""
        return len(self.steps)

    def __iter__(self) -> Iterator[SelectionStep]:
        return iter(self.steps)

    def __getitem__(self, place: int) -> SelectionStep:
        return self.steps[place]

    def frame(self) -> Any:
        """The steps as a pandas DataFrame (pandas must be installed)."""
        import pandas as pd

        columns = {name: [getattr(step, name) for step in self.steps] for name in ("size", "score", "error", "bound")}
        return pd.DataFrame({**columns, "step": [self.told(step) for step in self.steps]})

    def subsets(self) -> Iterator[tuple[int, ...]]:
        """The columns after each step, by position, in the order in which they were added."""
        return subsets_of(self.steps)

    def best(self, size: int) -> tuple[int, ...]:
        """The columns of the best subset of this size on the path."""
        found = [
            (step.score, subset) for step, subset in zip(self.steps, self.subsets(), strict=True) if step.size == size
        ]
        if not found:
            raise KeyError(f"no subset of {size} columns is on the path")
        return max(found, key=lambda each: each[0])[1]

    def by_size(self) -> dict[int, SelectionStep]:
        """The best step for each size, by rising size."""
        found: dict[int, SelectionStep] = {}
        for step in self.steps:
            if step.size not in found or step.score > found[step.size].score:
                found[step.size] = step
        return dict(sorted(found.items()))

    @property
    def sizes(self) -> tuple[int, ...]:
        """The sizes of subsets on the path, rising."""
        return tuple(self.by_size())

    @property
    def scores(self) -> Floats:
        """The best score for each of `sizes`."""
        return np.array([step.score for step in self.by_size().values()])

    def told(self, step: SelectionStep) -> str:
        """What a step did, in words."""
        added, removed = [", ".join(self.names[j] for j in some) for some in (step.added, step.removed)]
        if added and removed:
            return f"{added} instead of {removed}"
        if removed:
            return f"without {removed}"
        return "all columns" if step.size == len(self.names) and len(step.added) > 1 else added

    def __repr__(self) -> str:
        bounded = any(step.bound == step.bound for step in self.steps)
        sure = any(step.error == step.error for step in self.steps)
        heads = ["columns", "score", *(["give or take"] if sure else []), *(["at most"] if bounded else []), "step"]
        rows = []
        for step in self.steps:
            figures = [step.score, *([step.error] if sure else []), *([step.bound] if bounded else [])]
            cells = [f"{value:.4f}" if value == value else "-" for value in figures]
            rows.append([str(step.size), *cells, self.told(step)])
        shown = rows if len(rows) <= 40 else [*rows[:20], ["..."] + [""] * (len(heads) - 1), *rows[-20:]]
        widths = [max(len(heads[i]), *(len(row[i]) for row in shown)) for i in range(len(heads) - 1)]
        lines = [
            "  ".join([*(cell.rjust(width) for cell, width in zip(row, widths, strict=False)), row[-1]]).rstrip()
            for row in [heads, *shown]
        ]
        return f"{self.criterion}\n" + "\n".join(lines)
