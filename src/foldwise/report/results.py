"""Reports on results, from what they hold themselves: no pass over any rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from foldwise.report.charts import path_chart, share_histogram, vote_curve
from foldwise.report.choice import choice_charts, choice_fact, choice_parts
from foldwise.report.distribution import distribution_report
from foldwise.report.formats import counted, number, percent, short_number
from foldwise.report.heat_map import heat_map
from foldwise.report.pca import votes_of
from foldwise.report.quantize import quantize_report
from foldwise.report.stability import stability_parts
from foldwise.report.superpixels import superpixels_report
from foldwise.report.svg import BLUE, MUTED, ORANGE, Plot
from foldwise.report.values import Chart, Column, Fact, Group, Note, Part, Report, Table
from foldwise.selection.scores import MEANINGS

_MOST_COLUMNS = 12  # of a matrix, side by side
_MOST_ROWS = 1000
_MOST_DRAWN = 200  # rows of a consensus matrix
_MOST_SIZES = 100  # steps of a search whose columns are listed
_SMALL = 0.05


def result_report(found: Any) -> Report | None:
    """The report on a result; None if it is not one."""
    for kind in type(found).__mro__:
        name = f"{kind.__module__}.{kind.__qualname__}".removeprefix("foldwise.")
        if name in _RESULTS:
            return _RESULTS[name](found)
    return None


def matrix_table(title: str, matrix: Any, beside: str = "", caption: str = "") -> Table:
    """A matrix with names as a table; of very many columns, the first."""
    shown, more = matrix.columns[:_MOST_COLUMNS], len(matrix.columns) - _MOST_COLUMNS
    columns = [Column(beside, list(matrix.rows[:_MOST_ROWS]), left=True)]
    columns += [Column(name, matrix.values[:_MOST_ROWS, j].tolist(), _figure) for j, name in enumerate(shown)]
    told = f"And {counted(more, 'more column', 'more columns')}." if more > 0 else ""
    told += f" These are the first {_MOST_ROWS:,} of {len(matrix.rows):,} rows." * (len(matrix.rows) > _MOST_ROWS)
    return Table(title, columns, f"{caption} {told}".strip(), wide=True)


def _figure(value: float) -> str:
    return f"{value:,.0f}" if float(value).is_integer() and abs(value) < 1e15 else f"{value:.4g}"


# ---------------------------------------------------------------- numbers of clusters and components


def _cluster_choice(choice: Any) -> Report:
    rows = counted(choice.rows, "row")
    judged = "" if choice.judged_rows == choice.rows else f", judged by {counted(choice.judged_rows, 'row')} of them"
    lines = [f"{rows}{judged}", f"k-means, 1 to {choice.ks[-1]} clusters, {choice.outcome.seconds:.2f} s"]
    parts = [*choice_parts(choice), *choice_charts(choice)]
    return Report("How many clusters?", lines, [choice_fact(choice)], parts)


def _component_choice(choice: Any) -> Report:
    answer = "not known" if choice.agreed is None else str(choice.agreed)
    fact = Fact("components", choice.agreed, answer, f"({choice.strength:.0%} of the votes)")
    scores = [] if choice.task is None else list(_task_scores(choice.task).parts)
    return Report("How many components?", facts=[fact], parts=[Group(votes_of(choice), wide=True), *scores])


def _mixture_choice(choice: Any) -> Report:
    best, name = choice.best, choice.criterion.upper()
    facts = [
        Fact("components", best.n_components, str(best.n_components)),
        Fact("covariance", best.covariance_type, best.covariance_type),
        Fact(name, getattr(best, choice.criterion), number(getattr(best, choice.criterion)), "(lower is better)"),
    ]
    notes = [f"Linear combinations of other columns: {', '.join(choice.collinear)}"] if choice.collinear else []
    many = counted(len(choice.entries), "fit")
    grid = matrix_table(f"{name} of each fit", choice.grid(), "components", "Lower is better; a dash: no such fit.")
    parts: list[Part] = [grid, *(Note(note) for note in notes)]
    return Report("Which mixture of Gaussians?", [f"the best of {many}"], facts, parts)


def _consensus_choice(choice: Any) -> Report:
    answer = str(choice.n_clusters) if choice.found else "none"
    known = {"PAC": choice.pac, "without clusters": choice.null_pac, "gain": choice.gain}
    if choice.eigenvalues is not None:
        known = {"eigenvalue": choice.eigenvalues}
    columns = [Column("clusters", list(choice.numbers))]
    columns += [
        Column(name, np.asarray(values)[: len(choice.numbers)].tolist(), "{:.3f}".format)
        for name, values in known.items()
    ]
    reason = f"{choice.reason[:1].upper()}{choice.reason[1:]}."
    table = Table("Each number of clusters", columns, reason, most=30)
    return Report(
        "How many consensus clusters?", facts=[Fact("clusters found", choice.n_clusters, answer)], parts=[table]
    )


def _rank_choice(choice: Any) -> Report:
    plausible = f"({choice.low} to {choice.high}: {choice.meaning})"
    fact = Fact("components", choice.chosen, str(choice.chosen), plausible)
    same = {name: np.asarray(values) for name, values in choice.figures.items() if np.ndim(values) == 1}
    tables: list[Part] = []
    for size in sorted({len(values) for values in same.values()}):
        some = [
            Column(name.replace("_", " "), values.tolist(), _figure)
            for name, values in same.items()
            if len(values) == size
        ]
        tables.append(Table("What the rule looked at", [Column("", list(range(size))), *some], most=20))
    return Report(f"How many components, by {choice.rule}", facts=[fact], parts=tables)


def _vote(vote: Any) -> Report:
    answer = "no answer" if vote.chosen is None else str(vote.chosen)
    plausible = "" if vote.low is None or vote.low == vote.high else f"(plausible: {vote.low} to {vote.high})"
    return Report(
        f"The vote of {vote.rule}", facts=[Fact("number", vote.chosen, answer, plausible)], parts=[Note(vote.reason)]
    )


def _task_scores(found: Any) -> Report:
    def draw() -> str | None:
        if len(found.n_components) < 2:
            return None
        low, high = float((found.mean - found.error).min()), float((found.mean + found.error).max())
        ends = (found.n_components[0], found.n_components[-1])
        plot = Plot(ends, (low, high), "number of components", 420, whole=True)
        plot.line(found.n_components, found.mean, BLUE)
        plot.line(found.n_components, found.mean - found.error, MUTED, 1, dash=4)
        plot.line(found.n_components, found.mean + found.error, MUTED, 1, dash=4)
        plot.ring(found.simplest, float(found.mean[found.n_components.index(found.simplest)]))
        return plot.svg()

    caption = "Dashed: one standard error to either side. The ring: the smallest number within one of the best."
    chart = Chart("Score of the task", draw, caption)
    facts = [
        Fact("components to use", found.simplest, str(found.simplest), "(the fewest within one standard error)"),
        Fact("best", found.best, str(found.best)),
    ]
    return Report(
        "How many components does the task need?", facts=facts, parts=[matrix_table("Scores", found.table), chart]
    )


# ---------------------------------------------------------------- clusters


def _stability(found: Any) -> Report:
    mean = float(np.nanmean(found.confidence)) if np.isfinite(found.confidence).any() else float("nan")
    facts = [Fact("mean confidence", mean, percent(mean), "(fits in which a row keeps its cluster)")]
    title = f"Stability of {counted(found.n_clusters, 'cluster')}"
    return Report(title, [counted(found.n_repeats, "repeat")], facts, stability_parts(found))


def _silhouette(found: Any) -> Report:
    error = "" if found.exact else f", standard error {found.standard_error:.1g}"
    facts = [
        Fact("mean silhouette", found.mean, f"{found.mean:.2f}", f"(1 is far apart, 0 is between two clusters{error})")
    ]
    table = matrix_table("Clusters", found.table, "cluster")
    charts = []
    if found.values is not None and len(found.values):
        counts = np.histogram(np.clip((1 + np.nan_to_num(found.values)) / 2, 0, 1), 20, (0.0, 1.0))[0]
        caption = "0: nearer to another cluster; 0.5: between two; 1: far from all others, as (1 + silhouette) / 2."
        charts = [
            Chart("Rows by silhouette", lambda: share_histogram(counts / counts.sum(), "(1 + silhouette) / 2"), caption)
        ]
    return Report(f"Silhouettes of {counted(len(found.clusters), 'cluster')}", facts=facts, parts=[table, *charts])


def _scores(found: Any) -> Report:
    table = found.table
    columns = [
        Column("score", list(table.rows), left=True),
        Column("value", table.values[:, 0].tolist(), "{:.4f}".format),
        Column("how it is read", [MEANINGS[name] for name in table.rows], left=True),
    ]
    return Report(f"Scores of {counted(found.n_clusters, 'cluster')}", parts=[Table("Scores", columns, wide=True)])


def _curve(found: Any) -> Report:
    facts = (
        []
        if found.knee is None
        else [Fact("knee", found.knee, str(found.knee), "(data without clusters have one too)")]
    )
    chart = Chart(
        "Inertia",
        lambda: (
            vote_curve(found.n_clusters, found.inertias, None, None, found.knee) if len(found.n_clusters) > 1 else None
        ),
        "Sum of squared distances to the centres; the ring is the knee.",
    )
    lines = ["interrupted: only finished numbers are listed"] if found.interrupted else []
    return Report(
        "Inertia by number of clusters", lines, facts, [chart, matrix_table("Figures", found.table, "clusters")]
    )


def _dip(found: Any) -> Report:
    several = found.p_value < _SMALL
    verdict = "The values have more than one peak." if several else "One peak is enough to explain the values."
    p = "below 0.0001" if found.p_value < 1e-4 else f"{found.p_value:.4f}"
    facts = [
        Fact("dip", found.dip, f"{found.dip:.4f}", "(0: one peak; at most 0.25)"),
        Fact("p-value", found.p_value, p, "(at most: as large a dip by chance, with one peak)"),
    ]
    return Report("One peak or several?", facts=facts, parts=[Note(verdict)])


def _coassociation(found: Any) -> Report:
    n = found.shape[0]
    rows = np.arange(n) if n <= _MOST_DRAWN else np.linspace(0, n - 1, _MOST_DRAWN).astype(np.intp)

    def draw() -> str | None:
        return heat_map(found.entries(rows, rows), [0] * len(rows)) if len(rows) > 1 else None

    which = "All rows, as they are given." if n <= _MOST_DRAWN else f"{_MOST_DRAWN} rows, evenly from all."
    chart = Chart("How often two rows are together", draw, f"{which} The darker, the more often.")
    facts = [
        Fact("rows", n, f"{n:,}"),
        Fact(
            "clusterings", found.n_clusterings, f"{found.n_clusterings:,}", "(soft)" if found.clusterings.soft else ""
        ),
    ]
    return Report("Consensus matrix", facts=facts, parts=[chart])


# ---------------------------------------------------------------- columns, codes, values


def _path(found: Any) -> Report:
    best = found.by_size()
    sizes = list(best)[:_MOST_SIZES]
    columns = [
        Column("columns", sizes),
        Column("score", [best[size].score for size in sizes], "{:.4f}".format),
        Column("which", [", ".join(found.names[j] for j in found.best(size)) for size in sizes], left=True),
    ]
    scores = np.array([best[size].score for size in sizes], dtype=np.float64)
    known = np.isfinite(scores)

    def draw() -> str | None:
        if np.count_nonzero(known) < 2:
            return None
        some = [size for size, one in zip(sizes, known, strict=True) if one]
        top = some[int(np.argmax(scores[known]))]
        return path_chart(some, scores[known], None, None, top, (found.criterion, ""), percent=False)

    chart = Chart("The best score of each size", draw, "The ring is the largest.", wide=True)
    return Report(
        f"Path of a search over {counted(len(found.names), 'column')}",
        parts=[Table("Best of each size", columns, wide=True), chart],
    )


def _codes(found: Any) -> Report:
    def draw() -> str | None:
        if len(found.sizes) < 2:
            return None
        top = 1.05 * float(max(found.pca_errors.max(), found.autoencoder_errors.max()))
        plot = Plot((min(found.sizes), max(found.sizes)), (0.0, top), "size of the code", whole=True, percent=True)
        plot.line(found.sizes, found.pca_errors, ORANGE)
        plot.line(found.sizes, found.autoencoder_errors, BLUE)
        return plot.svg()

    rows = f"{counted(found.rows, 'row')} to learn from, {counted(found.held_out_rows, 'row')} held out"
    chart = Chart("Lost of held-out rows", draw, "Blue: autoencoders. Orange: as many principal components.")
    return Report(
        "Codes of several sizes",
        [rows],
        parts=[Note(found.sentence), matrix_table("Figures", found.table, "size"), chart],
    )


def _distribution(found: Any) -> Report:
    fits = getattr(found, "fits", None)
    if fits is None or len(fits):
        return distribution_report(found)
    columns = [
        Column("family", list(found.refused), left=True),
        Column("why not", list(found.refused.values()), left=True),
    ]
    return Report("No distribution could be fitted", parts=[Table("Refused", columns, wide=True)])


def _goodness(found: Any) -> Report:
    columns = [
        Column("test", list(found.statistics), left=True),
        Column("statistic", list(found.statistics.values()), "{:.4g}".format),
        Column("p-value", [found.p_values.get(name, float("nan")) for name in found.statistics], "{:.4f}".format),
    ]
    p = found.p_value
    verdict = (
        "" if p != p else "The family does not describe these values." if p < _SMALL else "Nothing speaks against it."
    )
    return Report(
        "Goodness of fit", [f"{found.n:,.10g} values"], parts=[Note(verdict), Table("Tests", columns, found.note)]
    )


def _matrix(found: Any) -> Report:
    return Report(f"{len(found.rows):,} x {len(found.columns):,} values", parts=[matrix_table("", found)])


def _eigenfaces(found: Any) -> Report:
    from foldwise.report.images.eigenfaces import eigenfaces_report

    return eigenfaces_report(found)


def _recognition(found: Any) -> Report:
    table = matrix_table("Accuracy by number of components", found.table, "components")
    return Report(f"Recognition of {found.judged:,} images with {found.n_labels:,} labels", parts=[table])


def _novelty(found: Any) -> Report:
    fact = Fact("AUC", found.all_auc, f"{found.all_auc:.4f}", f"({found.misplaced:,} of {found.n_others:,} misplaced)")
    return Report("Novelty of images", facts=[fact], parts=[matrix_table("By kind", found.table, "other images")])


def _recipe(found: Any) -> Report:
    columns = [
        Column("column", [one.name for one in found.columns], left=True),
        Column("kind", [one.kind for one in found.columns], left=True),
        Column("role", [one.role for one in found.columns], left=True),
        Column("because", [one.reason for one in found.columns], left=True),
    ]
    parts: list[Part] = [Table("Columns", columns, wide=True, searchable=True)]
    parts += [Note("\n".join(str(note) for note in found.notes))] if found.notes else []
    return Report(f"What becomes of {counted(len(found.columns), 'column')}", parts=parts)


def _imputed(found: Any) -> Report:
    counts = found.missing.sum(axis=0)
    order = [j for j in np.argsort(-counts, kind="stable") if counts[j]]
    squares = np.where(found.missing, np.square(found.deviations, dtype=np.float64), 0.0).sum(axis=0)
    columns = [
        Column("column", [found.columns[j] for j in order], left=True),
        Column("filled", [int(counts[j]) for j in order], "{:,}".format),
        Column("give or take", [float(np.sqrt(squares[j] / counts[j])) for j in order], short_number),
    ]
    n, d = found.values.shape
    rows = int(found.missing.any(axis=1).sum())
    facts = [
        Fact(
            "cells filled",
            int(counts.sum()),
            f"{int(counts.sum()):,}",
            f"(in {counted(rows, 'row')}, by {found.model})",
        )
    ]
    caption = "Give or take: root mean square of the standard deviations of the filled cells."
    return Report(f"A completed table of {n:,} x {d:,} values", facts=facts, parts=[Table("Filled", columns, caption)])


_RESULTS: dict[str, Callable[[Any], Report]] = {
    "selection.clusters.result.ClusterChoice": _cluster_choice,
    "selection.components.ComponentChoice": _component_choice,
    "selection.choose_mixture.MixtureChoice": _mixture_choice,
    "models.ensemble.choose.ConsensusChoice": _consensus_choice,
    "models.pca.rank.RankChoice": _rank_choice,
    "selection.votes.Vote": _vote,
    "selection.component_task.TaskScores": _task_scores,
    "selection.stability_result.Stability": _stability,
    "selection.silhouette_result.Silhouette": _silhouette,
    "selection.scores.ClusterScores": _scores,
    "selection.curve.InertiaCurve": _curve,
    "selection.dip_test.DipTest": _dip,
    "models.ensemble.consensus_matrix.Coassociation": _coassociation,
    "selection.features.path.SelectionPath": _path,
    "selection.code_comparison.CodeComparison": _codes,
    "models.likelihood.result.FittedDistribution": _distribution,
    "models.likelihood.result.Comparison": _distribution,
    "models.likelihood.goodness.Goodness": _goodness,
    "models.labelled_matrix.LabelledMatrix": _matrix,
    "models.images.eigenfaces.Eigenfaces": _eigenfaces,
    "models.images.recognition.Recognition": _recognition,
    "models.images.novelty.Novelty": _novelty,
    "prepare.recipe.Recipe": _recipe,
    "models.impute.Imputed": _imputed,
    "models.images.quantized.QuantizedImage": quantize_report,
    "models.images.superpixels.Superpixels": superpixels_report,
}
