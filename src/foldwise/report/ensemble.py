"""The report on a cluster ensemble: the consensus, how far the clusterings agree, and what sets the clusters apart."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from foldwise.data.block import Floats
from foldwise.data.missing import allow_missing, fill_missing
from foldwise.data.source import Source
from foldwise.models.ensemble.agreement import AMBIGUOUS, LEVELS
from foldwise.models.ensemble.choose import ConsensusChoice
from foldwise.models.ensemble.consensus_matrix import Coassociation
from foldwise.report.charts import share_histogram
from foldwise.report.choice import choice_charts, choice_fact, choice_parts
from foldwise.report.cluster_parts import (
    MOST_MARKED,
    agreement_facts,
    categories_table,
    clusters_table,
    column_parts,
    described,
    plane_chart,
)
from foldwise.report.formats import counted, percent
from foldwise.report.heat_map import heat_map
from foldwise.report.image_charts import telling_names
from foldwise.report.leads import agreement, fall_into
from foldwise.report.projection import Projection
from foldwise.report.run_header import about, column_names, run_table, told
from foldwise.report.svg import BLUE, INK, MUTED, ORANGE, SHADE, Plot, colour, text
from foldwise.report.values import Chart, Column, Fact, Group, Note, Part, Report, Table
from foldwise.selection.clusters.result import ClusterChoice
from foldwise.selection.ensemble_profile import EnsembleProfile, ensemble_profile

DOUBT = 0.5
_MOST_DRAWN = 360  # rows of the heat map
_CONSENSUS = "Consensus: how often two rows of the cluster are together, on average over pairs."
_CONFIDENCE = "the share of its own cluster in how often a row is together with rows of each cluster"


def ensemble_report(model: Any, source: Source, choice: ClusterChoice | None = None) -> Report:
    """What ran, the clusters, how far the clusterings agree, and what sets clusters apart; of labels, without the last.

    The rows, which must be those of the fit, are passed over twice, and a few times more for a page.
    """
    k, rows = model.n_clusters_, model.manifest_.rows
    steps: list[Part] = _choice(model.choice_) if choice is None else choice_parts(choice)
    if model.estimators_ is None:
        many = counted(len(model.base_sizes_), "clustering")
        title = f"{counted(k, 'consensus cluster')} of {counted(rows, 'row')} in {many}"
        parts = [_sizes(model), _heat_map(model), _cdf(model), _certainty(model), *steps, run_table(model.manifest_)]
        ran = model.manifest_
        lines = [
            f"{source.where}: {counted(rows, 'row')}, {counted(ran.columns, 'clustering')}",
            f"{ran.algorithm}, {ran.seconds:.2f} s",
        ]
        told_lines = [*lines, *(f"note: {note}" for note in ran.notes)]
        lead = [f"{many} of {counted(rows, 'row')} agree on {counted(k, 'cluster')}.", *_sure(model)]
        return Report(title, told_lines, _facts(model), parts, lead=lead, lead_only="page")
    found, names = ensemble_profile(model, source), column_names(model)
    together = f"fall, by {counted(len(model.base_sizes_), 'clustering')} together, into"
    categories = described(model, source, model.labels_, k)
    clusters = clusters_table(
        found,
        telling_names(model, names),
        [
            Column("consensus", model.cluster_consensus_.tolist(), "{:.2f}".format),
            Column("confidence", _by_cluster(model, model.confidence_).tolist(), percent),
        ],
        f"{_CONSENSUS} Confidence: {_CONFIDENCE}.",
    )
    drawn = fill_missing(allow_missing(source), found.mean) if model.missing == "model" else source
    marks = "Numbered rings are the means of the clusters." if k <= MOST_MARKED else ""
    return Report(
        f"{counted(k, 'consensus cluster')} of {counted(rows, 'row')}",
        about(model, _work(model)),
        [*([] if choice is None else [choice_fact(choice)]), *_facts(model), *agreement_facts(categories)],
        [
            *steps,
            clusters,
            *categories_table(categories),
            _heat_map(model),
            plane_chart(model, drawn, model.labels_, k, lambda seen: _draw_plane(model, found, seen), marks),
            _cdf(model),
            _certainty(model),
            *column_parts(model, found, names, "Means, in the units of the data"),
            Note("\n".join(_hints(model, choice)), only="text"),
            *([] if choice is None else choice_charts(choice)),
            run_table(model.manifest_),
        ],
        told(source),
        [
            *([] if choice is None else [choice.sentence]),
            fall_into(int(found.rows.sum()), k, telling_names(model, names), found.separation, said=together),
            *_sure(model),
            *agreement(categories),
        ],
        lead_only="page",
    )


def _sure(model: Any) -> list[str]:
    """How far the clusterings agree on the rows."""
    if model.n_clusters_ < 2:
        return []
    doubt, known = int(np.sum(model.confidence_ < DOUBT)), int(np.sum(~np.isnan(model.confidence_)))
    many = (
        f"{counted(doubt, 'row')} of {known:,} {'is' if doubt == 1 else 'are'} in doubt"
        if doubt
        else "no row is in doubt"
    )
    mean = percent(float(np.nanmean(model.confidence_)))
    return [f"When a row is together with others, {mean} of them on average are of its own cluster; {many}."]


def _work(model: Any) -> str:
    sizes = sorted(set(model.base_sizes_))
    clusters = f"of {sizes[0]} to {sizes[-1]} clusters" if len(sizes) > 1 else f"of {counted(sizes[0], 'cluster')}"
    return f"{model.manifest_.algorithm}, {clusters}"


def _facts(model: Any) -> list[Fact]:
    doubt, mean = float(np.mean(model.confidence_ < DOUBT)), float(np.nanmean(model.confidence_))
    return [
        *_ambiguous(model),
        Fact("mean confidence", mean, percent(mean), f"({_CONFIDENCE})"),
        Fact("rows in doubt", doubt, percent(doubt), f"(confidence below {DOUBT:g})"),
    ]


def _ambiguous(model: Any) -> list[Fact]:
    """PAC, where it speaks of the clusters: base clusterings with more clusters than the result part its rows on purpose."""
    choice, (low, high) = model.choice_, AMBIGUOUS
    pairs = f"share of pairs that are together in more than {low:.0%} and less than {high:.0%} of the clusterings"
    if choice is not None and choice.found and choice.eigenvalues is None:
        value = float(choice.pac[list(choice.numbers).index(choice.n_clusters)])
        pairs = f"{pairs} of subsamples into {choice.n_clusters}"
    elif model.estimators_ is None or model.diversity != "k-range":
        value = model.pac_
    else:
        return []
    return [Fact("ambiguous pairs (PAC)", value, percent(value), f"({pairs})")]


def _by_cluster(model: Any, values: Floats) -> Floats:
    inside = (model.labels_ >= 0) & ~np.isnan(values)
    labels = model.labels_[inside]
    counts = np.bincount(labels, minlength=model.n_clusters_)
    return np.asarray(np.bincount(labels, values[inside], model.n_clusters_) / np.where(counts > 0, counts, np.nan))


def _sizes(model: Any) -> Table:
    k = model.n_clusters_
    rows = np.bincount(model.labels_[model.labels_ >= 0], minlength=k)
    shares = rows / rows.sum()
    columns = [
        Column("cluster", range(k), left=True),
        Column("rows", rows.tolist(), "{:,}".format),
        Column("share", shares.tolist(), percent, bar=float(shares.max())),
        Column("consensus", model.cluster_consensus_.tolist(), "{:.2f}".format),
        Column("confidence", _by_cluster(model, model.confidence_).tolist(), percent),
    ]
    return Table(
        "The clusters",
        columns,
        f"{_CONSENSUS} Confidence: {_CONFIDENCE}.",
        colours=[colour(i) for i in range(k)],
        wide=True,
    )


# ---------------------------------------------------------------- charts


def _heat_map(model: Any) -> Chart:
    """M of some rows, in the order of the clusters."""
    rows = np.flatnonzero(model.labels_ >= 0)
    order = rows[np.argsort(model.labels_[rows], kind="stable")]
    few = len(order) <= _MOST_DRAWN
    shown = order if few else order[np.linspace(0, len(order) - 1, _MOST_DRAWN).astype(np.intp)]

    def draw() -> str | None:
        if len(shown) < 2:
            return None
        matrix = Coassociation(model.clusterings.some(shown)).toarray()
        places = neighbours_together(matrix, model.labels_[shown])
        return heat_map(matrix[np.ix_(places, places)], model.labels_[shown][places].tolist())

    which = "All rows" if few else f"{counted(_MOST_DRAWN, 'row')}, evenly from all"
    caption = (
        f"{which}, by cluster. The stronger the colour, the more often two rows are together: clear clusters are full squares, "
        "and coloured places outside them are rows between two clusters."
    )
    alt = f"How often pairs of rows are together, in {counted(model.n_clusters_, 'cluster')}. {' '.join(_sure(model))}"
    return Chart("The consensus matrix", draw, caption, alt=alt.strip())


def neighbours_together(matrix: Floats, labels: NDArray[np.int32]) -> NDArray[np.intp]:
    """The rows of a cluster in an order in which those that are often together are side by side."""
    from scipy.cluster.hierarchy import leaves_list, linkage
    from scipy.spatial.distance import squareform

    places = []
    for label in np.unique(labels):
        inside = np.flatnonzero(labels == label)
        if len(inside) > 2:
            apart = np.clip(1.0 - matrix[np.ix_(inside, inside)], 0.0, 1.0)
            np.fill_diagonal(apart, 0.0)
            inside = inside[leaves_list(linkage(squareform(apart, checks=False), "average"))]
        places.append(inside)
    return np.concatenate(places)


def _cdf(model: Any) -> Chart:
    """How often two rows are together: of all pairs, at each number of clusters that was tried."""
    choice: ConsensusChoice | None = model.choice_
    several = choice is not None and choice.cdfs is not None and len(choice.cdfs) > 1

    def draw() -> str:
        plot = Plot((0.0, 1.0), (0.0, 1.0), "share of clusterings in which two rows are together", percent=True)
        low, high = AMBIGUOUS
        plot.bars([low, high], [1.0], SHADE, gap=0)
        if several:
            assert choice is not None
            assert choice.cdfs is not None
            for k, cdf in zip(choice.numbers, choice.cdfs, strict=True):
                chosen = k == choice.n_clusters
                plot.line(*_steps(cdf), ORANGE if chosen else MUTED, 2.4 if chosen else 0.8)
            plot.add(
                text(
                    plot.right - 6,
                    plot.bottom - 8,
                    f"orange: {choice.n_clusters}" if choice.found else "",
                    "end",
                    ORANGE,
                )
            )
        else:
            plot.line(*_steps(model.consensus_cdf_), BLUE)
        return plot.svg()

    if several:
        caption = (
            "For each number of clusters (grey), of clusterings of subsamples. Flat in the middle: pairs are together always "
            "or never, so the clusters are clear. PAC is how much the line rises over the shaded part."
        )
    else:
        caption = (
            "Of all pairs. Flat in the middle: together always or never. PAC is how much it rises over the shaded part."
        )
    return Chart("How often two rows are together", draw, caption)


def _steps(cdf: Floats) -> tuple[list[float], list[float]]:
    return np.repeat(LEVELS, 2)[1:].tolist(), np.repeat(cdf, 2)[:-1].tolist()


def _certainty(model: Any) -> Chart:
    confidence = model.confidence_[~np.isnan(model.confidence_)]
    counts = np.histogram(confidence, bins=20, range=(0.0, 1.0))[0] / max(len(confidence), 1)
    caption = f"Rows by {_CONFIDENCE}."
    return Chart("How clearly rows belong to their clusters", lambda: share_histogram(counts, "confidence"), caption)


def _draw_plane(model: Any, found: EnsembleProfile, seen: Projection) -> str:
    if model.n_clusters_ > MOST_MARKED:
        return seen.draw()
    means = (
        found.means
        if model.scale_ is None
        else (found.means - (0.0 if model.mean_ is None else model.mean_)) / model.scale_
    )
    return seen.draw(centres=seen.points(np.nan_to_num(means)))


# ---------------------------------------------------------------- how many


def _choice(choice: ConsensusChoice | None) -> list[Part]:
    """Why this number of clusters."""
    if choice is None:
        return []
    if choice.eigenvalues is not None:
        shown = min(len(choice.numbers), max(choice.n_clusters + 4, 8))
        columns = [
            Column("clusters", choice.numbers[:shown]),
            Column("eigenvalue", choice.eigenvalues[:shown].tolist(), "{:.3f}".format, bar=1.0),
            Column("", ["chosen" if k == choice.n_clusters else "" for k in choice.numbers[:shown]], left=True),
        ]
        caption = (
            f"Of the normalised consensus matrix. Labels in random order reach {choice.threshold:.3f} after the first."
        )
        return [Table("How many clusters?", columns, caption)]
    if not len(choice.numbers):
        return []

    def draw() -> str:
        top = 1.1 * float(max(choice.pac.max(), choice.null_pac.max())) or 1.0
        plot = Plot((choice.numbers[0], choice.numbers[-1]), (0.0, top), "number of clusters", whole=True, percent=True)
        plot.line(choice.numbers, choice.null_pac, MUTED, 1.5, dash=4)
        plot.line(choice.numbers, choice.pac, BLUE)
        plot.dots(choice.numbers, choice.pac, BLUE, what="{x:g} clusters: {y:.3f}")
        if choice.found:
            plot.ring(choice.n_clusters, float(choice.pac[list(choice.numbers).index(choice.n_clusters)]))
        plot.add(text(plot.right - 6, plot.top + 12, "dashed: data without clusters", "end", INK))
        return plot.svg()

    chosen = ["chosen" if choice.found and k == choice.n_clusters else "" for k in choice.numbers]
    caption = (
        f"PAC: ambiguous pairs, in clusterings of subsamples of {counted(choice.rows, 'row')}. Without clusters: the mean PAC "
        "of sets with the same extent and no clusters. Gain: the log of their ratio; without clusters it reaches "
        f"{choice.threshold:.2f}."
    )
    table = Table(
        "PAC of each number",
        [
            Column("clusters", choice.numbers),
            Column("PAC", choice.pac.tolist(), percent),
            Column("without clusters", choice.null_pac.tolist(), percent),
            Column("gain", choice.gain.tolist(), "{:.2f}".format),
            Column("", chosen, left=True),
        ],
        caption,
    )
    reason = f"{choice.reason[0].upper()}{choice.reason[1:]}."
    return [Group([Chart("How many clusters?", draw, reason), table])]


def _hints(model: Any, choice: ClusterChoice | None) -> list[str]:
    lines, chosen = [], model.choice_ if choice is None else choice
    if chosen is None and len(model.labels_) > 8:
        lines.append("hint: -k auto chooses the number of clusters, and says if there are none")
    if chosen is not None and not chosen.found:
        lines.append("hint: -k 2 (or another number) divides the rows all the same")
    return lines
