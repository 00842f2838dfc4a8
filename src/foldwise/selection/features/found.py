"""What a search for columns has found."""

from __future__ import annotations

from dataclasses import dataclass

from foldwise.data.block import Floats
from foldwise.data.image_shape import names_of_columns
from foldwise.data.source import Source
from foldwise.fold.outcome import Outcome
from foldwise.models.pca.rank import RankChoice
from foldwise.selection.features.explained import ExplainedVariance
from foldwise.selection.features.path import SelectionPath


@dataclass(frozen=True)
class Found:
    """The path, the size of the subset that is taken from it and why, and what ran."""

    path: SelectionPath
    size: int
    choice: RankChoice | None
    compared: int
    outcome: Outcome
    resumed_at: int
    rows: int
    mean: Floats | None
    scale: Floats | None
    by_variance: ExplainedVariance | None = None


def names_in(source: Source) -> tuple[str, ...]:
    """The names of the columns; pixels by their places, and x0, x1, ... if they have none."""
    return names_of_columns(source)
