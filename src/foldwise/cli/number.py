"""`-k auto` and `-k 2:12`: the number of clusters by the votes of several criteria."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from foldwise.selection.clusters.result import ClusterChoice

_USED = ("scale", "missing", "metric", "random_state", "n_threads")  # of a model's settings


def chosen_number(
    source: Any, wanted: range | str, settings: dict[str, Any], checkpoint: Path | None, time_budget: float | None
) -> ClusterChoice:
    """The choice among the numbers of a range, or by default from 1 to 20; its checkpoint lies beside that of the fit."""
    from foldwise import choose_clusters, progress

    place = None if checkpoint is None else checkpoint.with_name(checkpoint.name + ".votes")
    used: dict[str, Any] = {name: settings[name] for name in _USED if name in settings}
    if isinstance(wanted, range):
        used["ks"] = wanted
    with progress():
        return choose_clusters(source, checkpoint=place, time_budget=time_budget, **used)

