"""The option --stability, which several commands have."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from foldwise.report.values import Report


def add_stability(report: Report, model: Any, source: Any, seed: int) -> tuple[Report, dict[str, Any]]:
    """The report with a section on stability, and what `finish` needs to know of it."""
    import foldwise as fw
    from foldwise.models.base import n_clusters_of
    from foldwise.report.stability import with_stability
    from foldwise.report.values import Note

    if n_clusters_of(model) < 2:
        return replace(
            report, parts=[*report.parts, Note("One cluster has no stability: there is nothing to compare.")]
        ), {}
    with fw.progress():
        found = fw.stability(model, source, random_state=seed, n_threads=model.n_threads)
    ending = {"beside": [("confidence", found.confidence)], "interrupted": found.outcome.reason == "interrupted"}
    return with_stability(report, found), ending
