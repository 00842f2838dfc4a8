"""The report on clusters by a mixture of Gaussians."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from foldwise.data.source import Source
from foldwise.models.mixture.covariance import COVARIANCE_TYPES
from foldwise.report.charts import criterion_chart, share_histogram
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
from foldwise.report.formats import counted, number, percent
from foldwise.report.image_charts import telling_names
from foldwise.report.leads import agreement, fall_into
from foldwise.report.projection import Projection
from foldwise.report.run_header import about, column_names, run_table, told
from foldwise.report.values import Chart, Column, Fact, Note, Part, Report, Table
from foldwise.selection.choose_mixture import MixtureChoice
from foldwise.selection.clusters.result import ClusterChoice
from foldwise.selection.mixture_profile import DOUBT, MixtureProfile, mixture_profile


def mixture_report(
    model: Any, source: Source, choice: MixtureChoice | None = None, votes: ClusterChoice | None = None
) -> Report:
    """What ran, how it was chosen, the clusters, what sets them apart, and their means in the units of the data.

    The rows, which must be those of the fit, are passed over four times, and a few times more for a page.
    """
    found, names = mixture_profile(model, source), column_names(model)
    k = len(found.means)
    categories = described(model, source, found.labels, k)
    clusters = clusters_table(
        found,
        telling_names(model, names),
        [Column("probability", found.sureness.tolist(), percent)],
        "Rows count towards their most probable cluster. Probability: the mean probability of the cluster over its rows.",
    )
    ellipses = "Ellipses: two standard deviations of each Gaussian, seen in this plane."
    certainty = Chart(
        "How certain the assignments are",
        lambda: share_histogram(found.histogram / found.histogram.sum(), "probability of the row's cluster"),
        f"Rows by the probability of their most probable cluster. Below {DOUBT:g} a row counts as uncertain.",
        alt=" ".join(["Histogram of the probability of each row's cluster.", *_sure(found)]),
    )
    # Spheres alone depend on the units of the columns.
    scale = model.covariance_type != "spherical"
    plane = plane_chart(model, source, found.labels, k, lambda seen: _draw_plane(model, seen), ellipses, scale=scale)
    parts: list[Part] = [] if votes is None else choice_parts(votes)
    parts += [] if choice is None else _choice(choice)
    parts += [
        clusters,
        *categories_table(categories),
        plane,
        certainty,
        *_merging(model),
        *column_parts(model, found, names, "Means, in the units of the data"),
        Note("\n".join(_hints(model, found, choice)), only="text"),
        *([] if votes is None else choice_charts(votes)),
        *([] if choice is None else [_all_fits(choice)]),
        _criteria(found),
        run_table(model.manifest_),
    ]
    title = f"{counted(k, 'cluster')} of {counted(model.manifest_.rows, 'row')}, by a mixture of Gaussians"
    known = (
        [Fact("cluster" if k == 1 else "clusters", k, str(k), only="page")] if votes is None else [choice_fact(votes)]
    )
    facts = [*known, *_facts(model, found), *agreement_facts(categories)]
    lead = [
        *([] if votes is None else [votes.sentence]),
        *([] if choice is None or votes is not None else _best_of(choice)),
        fall_into(int(found.rows.sum()), k, telling_names(model, names), found.separation),
        *_sure(found),
        *agreement(categories),
    ]
    return Report(title, _about(model, choice), facts, parts, told(source), lead, "page")


def _best_of(choice: MixtureChoice) -> list[str]:
    """How the number was chosen, if several were tried."""
    numbers = sorted({entry.n_components for entry in choice.entries})
    if len(numbers) < 2:
        return []
    best, tried = choice.best.n_components, f"{numbers[0]} to {numbers[-1]}"
    most = ", the most that was tried" if best == numbers[-1] else ""
    describe = "describes" if best == 1 else "describe"
    return [f"Of {tried} components, {best} {describe} the rows best by {choice.criterion.upper()}{most}."]


def _sure(found: MixtureProfile) -> list[str]:
    """How sure it is which row belongs to which cluster."""
    if len(found.means) < 2:
        return []
    doubt = f"{percent(found.in_doubt)} of the rows lie between clusters (none has a probability of {DOUBT:g})"
    if found.in_doubt == 0:
        return [f"Every row belongs to one of them with a probability of {DOUBT:g} or more."]
    return [f"{percent(1 - found.in_doubt)} of the rows clearly belong to one of them; {doubt}."]


def _about(model: Any, choice: MixtureChoice | None) -> list[str]:
    words = [f"mixture of {counted(model.n_components, 'Gaussian')} ({COVARIANCE_TYPES[model.covariance_type].label})"]
    words.append(counted(model.outcome_.steps, "EM iteration"))
    lines = about(model, ", ".join([*words, *(["converged"] if model.outcome_.converged else [])]))
    if choice is not None:
        seconds = sum(entry.seconds for entry in choice.entries)
        lines.insert(2, f"the best of {counted(len(choice.entries), 'fit')}, which took {seconds:.2f} s")
    return lines


def _facts(model: Any, found: MixtureProfile) -> list[Fact]:
    facts, lower = found.criteria, "(lower is better)"
    parameters = f"({int(facts['parameters'])} parameters)"
    clear = 1 - found.in_doubt
    mean = float(np.average(np.nan_to_num(found.sureness), weights=found.rows)) if found.rows.sum() else float("nan")
    remark = f"(no cluster has a probability of {DOUBT:g})"
    return [
        Fact(
            "log-likelihood",
            facts["log_likelihood"],
            number(facts["log_likelihood"]),
            f"{scaled(model)} {parameters}".strip(),
            only="text",
        ),
        *(Fact(name.upper(), facts[name], number(facts[name]), lower, "text") for name in ("bic", "icl", "aic")),
        Fact("rows clearly in one", clear, percent(clear), f"(probability {DOUBT:g} or more)", "page"),
        Fact("mean probability", mean, percent(mean), "(of the cluster of a row)", "page"),
        Fact("uncertain rows", found.in_doubt, percent(found.in_doubt), remark),
    ]


def _criteria(found: MixtureProfile) -> Table:
    """The figures by which mixtures are compared, for those who ask for them."""
    facts = found.criteria
    named = {"log-likelihood": "log_likelihood", "BIC": "bic", "ICL": "icl", "AIC": "aic", "parameters": "parameters"}
    values = [facts[key] for key in named.values()]
    columns = [Column("", list(named), left=True), Column("", values, number)]
    caption = "To compare mixtures of the same rows: the log-likelihood should be high, BIC, ICL and AIC low."
    return Table("Criteria", columns, caption, wide=True, only="page", collapsed=True)


def _choice(choice: MixtureChoice) -> list[Part]:
    """The criterion of all fits as a chart, and as a table in text, where there are no charts."""
    grid, best = choice.grid(), (choice.best.covariance_type, choice.best.n_components)
    collapsed, numbers, name = _collapsed(choice), [int(row) for row in grid.rows], choice.criterion.upper()

    def draw() -> str | None:
        # A fit with collapsed components speaks of a few rows only.
        series = {
            kind: [
                float("nan") if (kind, k) in collapsed else float(v) for k, v in zip(numbers, grid[kind], strict=True)
            ]
            for kind in grid.columns
        }
        return criterion_chart(numbers, series, best) if len(numbers) > 1 and best not in collapsed else None

    caption = (
        f"{name}, lower is better: the ring is the best. Arrows lead to fits far above; those with collapsed components are "
        "left out."
    )
    shape = COVARIANCE_TYPES[best[0]].label
    alt = f"{name} by the number of components, a line for each shape. The best has {counted(best[1], 'component')} ({shape})."
    chart = Chart("How many components, of which shape?", draw, caption, alt=alt)
    return [chart, replace(_all_fits(choice), only="text", wide=False, collapsed=False)]


def _collapsed(choice: MixtureChoice) -> set[tuple[str, int]]:
    return {(e.covariance_type, e.n_components) for e in choice.entries if e.collapsed}


def _all_fits(choice: MixtureChoice) -> Table:
    """The criterion of all fits."""
    grid, best = choice.grid(), (choice.best.covariance_type, choice.best.n_components)
    collapsed, numbers, name = _collapsed(choice), [int(row) for row in grid.rows], choice.criterion.upper()

    def cell(kind: str, k: int, value: float) -> str:
        mark = "*" if (kind, k) == best else "!" if (kind, k) in collapsed else " "
        return f"{'-' if np.isnan(value) else f'{value:.2f}'}{mark}"

    columns = [Column("components", numbers, left=True)]
    for kind in grid.columns:
        values = [float(value) for value in grid[kind]]
        columns.append(Column(f"{kind} ", values, [cell(kind, k, v) for k, v in zip(numbers, values, strict=True)]))
    caption = f"{name}, lower is better. *: the best ({best[0]}, {best[1]})"
    caption += "; !: with collapsed components" if collapsed else ""
    return Table(f"{name} of all fits", columns, caption, most=1000, wide=True, only="page", collapsed=True)


def _merging(model: Any) -> list[Table]:
    """How components were merged, if they were."""
    merging = getattr(model, "merging_", None)
    if merging is None:
        return []
    pairs = ["", *(f"{_joined(a)} with {_joined(b)}" for a, b in merging.pairs)][: len(merging.numbers)]
    groups = [np.flatnonzero(model.clusters_ == i) for i in range(int(model.clusters_.max()) + 1)]
    made = ", ".join(f"{i}: {_joined(group)}" for i, group in enumerate(groups))
    columns = [
        Column("clusters", list(merging.numbers)),
        Column("entropy", [float(value) for value in merging.entropies], number),
        Column("merged", pairs, left=True),
        Column("", ["chosen" if n == merging.chosen else "" for n in merging.numbers], left=True),
    ]
    caption = f"Components merged by entropy; {merging.rule}. Clusters and their components: {made}."
    return [Table("Components merged into clusters", columns, caption)]


def _joined(group: Any) -> str:
    return "+".join(map(str, group))


def _draw_plane(model: Any, seen: Projection) -> str:
    """The rows with the ellipses of the mixture's components and the numbers of the clusters."""
    k = len(model.weights_)
    of = np.asarray(getattr(model, "clusters_", np.arange(k)))
    matrices = model.covariance_matrices()
    ellipses = [
        (seen.points(model.means_[j]), seen.covariance(matrices[j]), int(of[j])) for j in range(min(k, MOST_MARKED))
    ]
    groups = [of == i for i in range(min(int(of.max()) + 1, MOST_MARKED))]
    means = [np.average(model.means_[group], axis=0, weights=model.weights_[group]) for group in groups]
    return seen.draw(centres=seen.points(np.array(means)), ellipses=ellipses)


def _hints(model: Any, found: MixtureProfile, choice: MixtureChoice | None) -> list[str]:
    """What to try next on the command line."""
    lines = []
    if choice is None:
        lines.append("hint: -k 1:9 --type full,tied,diag,spherical compares numbers and shapes by BIC")
    elif choice.best.n_components == max(numbers := {e.n_components for e in choice.entries}) and len(numbers) > 1:
        lines.append("hint: the best is the largest number tried; a wider range may contain a better one")
    if getattr(model, "merging_", None) is None and model.n_components > 2 and found.in_doubt > 0.05:
        lines.append("hint: many rows are uncertain; --merge joins components that share them into clusters")
    return lines
