"""The report on clusters by k-means."""

from __future__ import annotations

from typing import Any

import numpy as np

from foldwise.data.source import Source
from foldwise.report.charts import convergence_chart
from foldwise.report.choice import choice_charts, choice_fact, choice_parts
from foldwise.report.cluster_parts import (
    MOST_MARKED,
    agreement_facts,
    categories_table,
    clusters_table,
    column_parts,
    described,
    plane_chart,
    scaled,
)
from foldwise.report.formats import counted, number, percent, short_number
from foldwise.report.image_charts import image_shape_of, telling_names
from foldwise.report.leads import agreement, apart, fall_into, names_of
from foldwise.report.projection import Projection
from foldwise.report.run_header import about, column_names, run_table, told
from foldwise.report.values import Chart, Column, Fact, Note, Report
from foldwise.selection.clusters.result import ClusterChoice
from foldwise.selection.profile import Profile, profile

SILHOUETTE = "1 is far apart, 0 is between two clusters"


def cluster_report(model: Any, source: Source, choice: ClusterChoice | None = None) -> Report:
    """What ran, how their number was chosen, the clusters, what sets them apart, and their centres in the units of the data.

    The rows, which must be those of the fit, are passed over two or three times, and a few times more for a page.
    """
    found, names, k = profile(model, source), column_names(model), model.n_clusters
    categories = described(model, source, model.labels_, k)
    units = ", in scaled columns" if model.scale_ is not None else ""
    clusters = clusters_table(
        found,
        telling_names(model, names),
        [
            Column("spread", found.spreads.tolist(), short_number),
            Column("silhouette", found.silhouettes.tolist(), "{:.2f}".format),
        ],
        f"Spread: root mean square distance of the rows to their centre{units}. Silhouette: {SILHOUETTE}{_sampled(found)}.",
    )
    caption = "The inertia after every iteration."
    if model.search == "breathing":
        caption += " Grey: with more centres than asked for, to leave a poor solution. Dots: ends of attempts."
    # A small table is searched before the first step, and nothing is left to draw.
    convergence = Chart(
        "Convergence",
        lambda: convergence_chart(model.trace_, "inertia", k) if len(model.trace_) > 2 else None,
        caption,
        wide=True,
        only="page",
        collapsed=True,
    )
    rings = "Numbered rings are the centres." if k <= MOST_MARKED else ""
    plane = plane_chart(model, source, model.labels_, k, lambda seen: _draw_plane(model, seen), rings)
    return Report(
        f"{counted(k, 'cluster')} of {counted(model.manifest_.rows, 'row')}",
        about(model, _work(model)),
        [*([] if choice is None else [choice_fact(choice)]), *_facts(model, found), *agreement_facts(categories)],
        [
            *([] if choice is None else choice_parts(choice)),
            clusters,
            *categories_table(categories),
            plane,
            *column_parts(model, found, names, "Centres, in the units of the data", separation=True),
            Note("\n".join(_hints(model, found, names, choice is not None)), only="text"),
            *([] if choice is None else choice_charts(choice)),
            convergence,
            run_table(model.manifest_, inertia=f"{number(model.inertia_)} {scaled(model)}".strip()),
        ],
        told(source),
        [
            *([] if choice is None else [choice.sentence]),
            fall_into(int(found.rows.sum()), k, telling_names(model, names), found.separation),
            *apart(found.silhouette),
            *agreement(categories),
            *_dominated(model, found, names),
        ],
        lead_only="page",
    )


def _work(model: Any) -> str:
    words = [model.manifest_.algorithm, *([model.geometry.label] if model.geometry.label else [])]
    words += [f"{model.search} search"] if model.search not in ("none", "auto") else []
    words.append(counted(model.outcome_.steps, "iteration"))
    return ", ".join([*words, *(["converged"] if model.outcome_.converged else [])])


def _facts(model: Any, found: Profile) -> list[Fact]:
    facts = [Fact("inertia", float(model.inertia_), number(model.inertia_), scaled(model), "text")]
    if model.geometry.similarity is not None:
        similarity = float(1.0 - model.inertia_ / (2.0 * found.weights.sum()))
        facts.append(Fact(model.geometry.similarity, similarity, f"{similarity:.3f}", "of a row with its centre"))
    else:
        facts.append(Fact("variance between clusters", found.between, percent(found.between)))
    if found.silhouette is not None:
        facts.append(
            Fact(
                "mean silhouette",
                found.silhouette,
                f"{found.silhouette:.2f}",
                f"({SILHOUETTE}{_sampled(found, errors=True)})",
            )
        )
    return facts


def _sampled(found: Profile, *, errors: bool = False) -> str:
    """The remark on silhouettes that were estimated."""
    if found.silhouette_rows is None:
        return ""
    bar = f", standard error {found.silhouette_error:.1g}" if errors else ""
    return f"; from a sample of {counted(found.silhouette_rows, 'row')}{bar}"


def _draw_plane(model: Any, seen: Projection) -> str:
    centres = seen.points(model.cluster_centers_.astype(np.float64))
    return seen.draw(centres=centres if model.n_clusters <= MOST_MARKED else None)


def _widest(model: Any, found: Profile) -> int | None:
    """The column whose spread decides the distances, if there is one; pixels of images have one unit, and are meant to."""
    if image_shape_of(model) is not None:
        return None
    largest, least = found.deviation.max(initial=0.0), found.deviation.min(initial=np.inf, where=found.deviation > 0)
    counts = model.scale_ is None and model.geometry.translates and largest > 10 * least
    return int(np.argmax(found.deviation)) if counts else None


def _dominated(model: Any, found: Profile, names: list[str]) -> list[str]:
    """What to be careful about, if columns have very different spreads."""
    widest = _widest(model, found)
    if widest is None:
        return []
    return [
        f"Columns were not scaled, so {names_of(names, [widest])}, which has the largest spread, counts most "
        "(--scale weights columns equally)."
    ]


def _hints(model: Any, found: Profile, names: list[str], chosen: bool) -> list[str]:
    """What to try next on the command line."""
    lines = []
    if (widest := _widest(model, found)) is not None:
        lines.append(
            f"hint: {names[widest]} has the largest spread and dominates the distances; --scale weights columns equally"
        )
    if model.search == "none" and model.n_clusters > 1:
        lines.append("hint: --search breathing often finds a lower inertia")
    if model.n_clusters > 1 and len(model.labels_) > 3 and not chosen:
        lines.append("hint: -k auto looks for the number of clusters, and says if there are none")
    return lines
