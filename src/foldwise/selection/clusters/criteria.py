"""The criteria, by name; adding one is adding its file and a line here."""

from __future__ import annotations

from collections.abc import Iterable

from foldwise.errors import ParameterError
from foldwise.selection.clusters.criterion import Criterion
from foldwise.selection.clusters.dip import Dip
from foldwise.selection.clusters.gap import Gap
from foldwise.selection.clusters.information import BIC, ICL
from foldwise.selection.clusters.knee import Knee
from foldwise.selection.clusters.partition import PARTITION
from foldwise.selection.clusters.resampling import PredictionStrength, Stability

# In this order they are computed, the decisive ones first, and listed.
_ALL: list[Criterion] = [Dip(), PredictionStrength(), BIC(), ICL(), *PARTITION, Gap(), Stability(), Knee()]
CRITERIA = {one.name: one for one in _ALL}


def chosen_criteria(names: str | Iterable[str] | None) -> list[Criterion]:
    """The criteria asked for, in the order of the list; None for all."""
    if names is None:
        return list(CRITERIA.values())
    given = [names] if isinstance(names, str) else list(names)
    unknown = [name for name in given if name not in CRITERIA]
    if unknown or not given:
        shown = ", ".join(map(repr, unknown)) or "nothing"
        raise ParameterError(f"criteria: {shown} is not known. Give some of {', '.join(CRITERIA)}.")
    return [one for name, one in CRITERIA.items() if name in given]
