"""How stable the clusters are: a section of the reports on clusters."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from foldwise.report.charts import share_histogram
from foldwise.report.formats import counted, percent
from foldwise.report.values import Chart, Column, Note, Part, Report, Table
from foldwise.selection.stability_result import Stability

_BINS = 20


def with_stability(report: Report, found: Stability) -> Report:
    """The report with a section on the stability of its clusters, after the table of the clusters."""
    parts = list(report.parts)
    place = next((i + 1 for i, part in enumerate(parts) if getattr(part, "title", "") == "The clusters"), len(parts))
    lead = [*report.lead, found.sentence] if report.lead else report.lead
    parts[place:place] = stability_parts(found, said=bool(report.lead))
    return replace(report, parts=parts, lead=lead)


def stability_parts(found: Stability, *, said: bool = False) -> list[Part]:
    """A table, what it means (unless a page has `said` it at its head), and on a page how confident the rows are."""
    figures, corrected = found.table, not np.isnan(found.one_group)
    columns = [
        Column("cluster", range(found.n_clusters), left=True),
        Column("Jaccard", found.jaccard.tolist(), "{:.2f}".format),
        *([Column("corrected", found.corrected.tolist(), "{:.2f}".format, bar=1.0)] if corrected else []),
        Column("dissolved", found.dissolved.tolist(), percent),
        Column("confidence", figures["confidence"].tolist(), "{:.2f}".format),
        Column("stability", list(found.verdicts), left=True),
    ]
    words = [
        f"{counted(found.n_repeats, 'fit')} to about {counted(round(found.drawn), 'row')} drawn at random ({found.method}), "
        f"which differ as fits to {counted(round(found.fresh_rows), 'fresh row')} would. "
        "Jaccard: rows in the cluster and in the most similar one of a fit, over rows in either."
    ]
    if corrected:
        words.append(
            f"Corrected: 0 is no more than clusters forced on rows without clusters reach ({found.one_group:.2f}), or chance; "
            "1 is never changed."
        )
    words.append(
        "Dissolved: fits that had no such cluster. Confidence: fits in which a row keeps its cluster, on average."
    )
    table = Table(
        "How stable the clusters are", columns, " ".join([*words, *(f"({note})" for note in found.notes)]), wide=True
    )
    known, weights = found.known_confidence

    def drawn() -> Any:
        counts, _ = np.histogram(known, _BINS, (0.0, 1.0), weights=weights)
        return share_histogram(counts / counts.sum(), "confidence")

    chart = Chart("How surely the rows keep their clusters", drawn, "Rows by confidence.", only="page")
    return [table, Note(found.sentence, only="text" if said else None), chart]
