"""`-k auto` and `-k 2:12`: the number of clusters by the votes of several criteria."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from foldwise.cli.options import Output
    from foldwise.report.values import Report
    from foldwise.selection.clusters.result import ClusterChoice

_USED = ("scale", "missing", "metric", "random_state", "n_threads")  # of a model's settings


def chosen_number(
    source: Any, wanted: range | str, settings: dict[str, Any], checkpoint: Path | None, time_budget: float | None
) -> ClusterChoice:
    """The choice among the numbers of a range, or by default from 1 to 20; its checkpoint lies beside that of the fit."""
    from foldwise import choose_clusters, progress

    place = votes_file(checkpoint)
    used: dict[str, Any] = {name: settings[name] for name in _USED if name in settings}
    if isinstance(wanted, range):
        used["ks"] = wanted
    with progress():
        return choose_clusters(source, checkpoint=place, time_budget=time_budget, **used)


def votes_file(checkpoint: Path | None) -> Path | None:
    """Where the votes are kept while they are computed: beside the checkpoint of the fit."""
    return None if checkpoint is None else checkpoint.with_name(checkpoint.name + ".votes")


def end_with_votes(choice: ClusterChoice, report: Report, output: Output, checkpoint: Path | None) -> int:
    """The end of a command without clusters: shows the votes, and writes neither rows nor model."""
    from foldwise.cli.output import finish
    from foldwise.report.values import Note

    files = [str(path) for path in (output.out, output.model) if path is not None]
    note = (
        [Note(f"not written, since the number of clusters is not settled: {', '.join(files)}", only="text")]
        if files
        else []
    )
    report, output = replace(report, parts=[*report.parts, *note]), replace(output, out=None)
    return finish(report, output, checkpoint=votes_file(checkpoint), interrupted=choice.interrupted)


def rest_of(time_budget: float | None, choice: ClusterChoice | None) -> float | None:
    """What the votes have left of a time budget."""
    return time_budget if time_budget is None or choice is None else max(time_budget - choice.outcome.seconds, 0.001)
